//! Where probes connect to, and the door through which they become links.

use std::{
    fs, io,
    os::{
        fd::OwnedFd,
        unix::{fs::DirBuilderExt as _, net::UnixListener},
    },
    path::{Path, PathBuf},
};

use bytes::BytesMut;
use sidecert_proto::machine::{Launched, Micros};

use super::{
    Link,
    end::{Ask, End},
    micros,
    remote::Remote,
};
use crate::{
    budget::{HELLO_WITHIN, PENDING_MOST, PROBES_MOST},
    os,
    probe::{self, FromProbe, Garbage},
};

/// A socket to which the probes of one host connect. Dropping it removes it.
#[derive(Debug)]
pub struct Probes {
    listener: OwnedFd,
    folder: Removed,
    token: String,
}

impl Probes {
    /// Listens in a folder of its own that is made in this one, and that only its owner may enter.
    ///
    /// Fails where the path becomes too long for a socket, which may have some 100 bytes.
    pub fn listen(folder: &Path) -> io::Result<Self> {
        let folder = folder.join(format!("probes-{}", hex(&os::random::<4>()?)));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let folder = Removed { socket: folder.join("socket"), folder };
        let listener = UnixListener::bind(&folder.socket)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener: listener.into(), folder, token: hex(&os::random::<16>()?) })
    }

    /// The variables that a probe must find in its environment.
    pub fn environment(&self) -> Vec<(String, String)> {
        let at = format!("unix:{}", self.folder.socket.display());
        vec![(probe::AT.to_owned(), at), (probe::TOKEN.to_owned(), self.token.clone())]
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// A folder with a socket in it; both are removed when this is dropped.
#[derive(Debug)]
struct Removed {
    folder: PathBuf,
    socket: PathBuf,
}

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The socket at work, and who has connected and not yet said who it is.
pub(crate) struct Door {
    listener: End,
    token: String,
    pending: Vec<Pending>,
    admitted: usize,
    _folder: Removed,
}

struct Pending {
    end: End,
    heard: BytesMut,
    due: Micros,
}

/// What became of somebody at the door.
enum Seen {
    Waits,
    SentAway,
    Admitted(Box<Launched>),
}

impl Door {
    /// Needs a runtime.
    pub(super) fn new(Probes { listener, folder, token }: Probes) -> io::Result<Self> {
        let listener = End::reading(listener)?;
        Ok(Self { listener, token, pending: Vec::new(), admitted: 0, _folder: folder })
    }

    /// Lets those in who say the word, in the order in which they do; `true` when anything happened.
    pub(crate) fn admit(
        &mut self,
        ask: &mut Ask<'_, '_>,
        now: Micros,
        buffer: &mut [u8],
        links: &mut Vec<Box<dyn Link>>,
    ) -> bool {
        let mut any = false;
        while self.pending.len() < PENDING_MOST
            && let Some(Ok(accepted)) = self.listener.accept(ask)
        {
            any = true;
            // One that cannot be watched is sent away.
            if let Ok(end) = End::both(accepted) {
                let due = now + micros(HELLO_WITHIN);
                self.pending.push(Pending { end, heard: BytesMut::new(), due });
            }
        }
        for mut pending in std::mem::take(&mut self.pending) {
            match pending.look(ask, &self.token, buffer) {
                Seen::Waits if now < pending.due => self.pending.push(pending),
                Seen::Admitted(launched) if self.admitted < PROBES_MOST => {
                    any = true;
                    self.admitted += 1;
                    links.push(Box::new(Remote::new(pending.end, *launched)));
                }
                _ => any = true,
            }
        }
        any
    }

    /// When to look even if nothing happens.
    pub(crate) fn due(&self) -> Option<Micros> {
        self.pending.iter().map(|pending| pending.due).min()
    }
}

impl Pending {
    /// Reads on until it has said who it is.
    fn look(&mut self, ask: &mut Ask<'_, '_>, token: &str, buffer: &mut [u8]) -> Seen {
        loop {
            match FromProbe::take(&mut self.heard) {
                Ok(None) => {}
                Ok(Some(FromProbe::Hello(hello))) => {
                    let launched = probe::read_hello(&hello, token).filter(|_| self.heard.is_empty());
                    return launched.map_or(Seen::SentAway, |launched| Seen::Admitted(Box::new(launched)));
                }
                Ok(Some(_)) | Err(Garbage) => return Seen::SentAway,
            }
            match self.end.read(ask, buffer) {
                Some(Ok(n @ 1..)) => self.heard.extend_from_slice(&buffer[..n]),
                Some(Ok(0) | Err(_)) => return Seen::SentAway,
                None => return Seen::Waits,
            }
        }
    }
}
