//! A remote-controlled process: a host launches it as its guest, and through it the harness plays the guest.
//!
//! ```text
//!  host ==stdin==> [ input ] ──read──┐              a thread for each, which blocks as a guest's would
//!  host <=stdout== [ output ] <─write┤ socket ── harness
//!  host <=stderr== [ errors ] <──────┘
//! ```
//!
//! It promises to do nothing of its own accord: it reads what it has credit for, writes what it is told, does not end
//! when its input does, and leaves signals as they are but for SIGPIPE and what it is told to ignore. When the harness
//! is gone it is gone, too. `docs/probe.md` says what travels on the socket.

mod frame;
mod hello;
mod streams;

use std::{
    env,
    error::Error,
    ffi::OsString,
    fmt, io,
    net::{SocketAddr, TcpStream},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::Path,
    process::Command,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use bytes::BytesMut;
use signal_hook::{consts::SIGTERM, iterator::Signals};

use crate::{
    budget::{CONNECT_WITHIN, READ_BYTES},
    os,
};
pub(crate) use frame::{FromProbe, Garbage, ToProbe};
pub(crate) use hello::read as read_hello;
use streams::{Input, Output, Which};

/// The variable that says where the harness listens: `unix:PATH` or `tcp:ADDRESS:PORT`.
pub const AT: &str = "SIDECERT_PROBE";

/// The variable with the word that proves that the harness asked for us.
pub const TOKEN: &str = "SIDECERT_PROBE_TOKEN";

/// The variable that a probe sets for another one that it starts: `group` or `session`.
const SPAWNED: &str = "SIDECERT_PROBE_SPAWNED";

/// A probe that is to be.
pub struct Probe {
    /// Which guest it is.
    pub name: String,
    /// Where the harness listens; otherwise the variable [`AT`] says it.
    pub at: Option<String>,
    /// The word; otherwise the variable [`TOKEN`] has it.
    pub token: Option<String>,
    /// Of which variables the harness is told the value, and not the name only.
    pub shown: Box<dyn Fn(&str) -> bool>,
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What lists of processes call a probe, and what it started in its own name.
const NAME: &str = "sidecert-probe";

/// How a probe is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With this code.
    Exit(u8),
    /// By SIGABRT.
    Abort,
}

/// Why a probe cannot go on.
#[derive(Debug)]
pub enum ProbeFault {
    /// Nothing says where the harness listens.
    NoAddress,
    /// Nothing says the word.
    NoToken,
    /// The address is none.
    Address {
        /// As it was given.
        at: String,
    },
    /// The harness cannot be reached.
    Unreachable {
        /// Where.
        at: String,
        /// What the platform says.
        error: io::Error,
    },
    /// The harness has closed the connection.
    Gone,
    /// What came is no frame, or one out of place.
    Garbage,
    /// The platform gave us no thread or no descriptor.
    Ours {
        /// What the platform says.
        error: io::Error,
    },
}

/// Is a probe until it is told to end or cannot go on. Call it once, and end at once: its threads end with the process.
pub fn probe(probe: &Probe) -> Result<Ended, ProbeFault> {
    os::call_process(NAME);
    let spawned = env::var(SPAWNED).ok();
    if spawned.as_deref() == Some("session") {
        os::lead_session().map_err(|error| ProbeFault::Ours { error })?;
    }
    let launched = hello::look_around(&probe.name, spawned.is_some(), &probe.shown);
    let given = |given: &Option<String>, name: &str| given.clone().or_else(|| env::var(name).ok());
    let at = given(&probe.at, AT).ok_or(ProbeFault::NoAddress)?;
    let token = given(&probe.token, TOKEN).ok_or(ProbeFault::NoToken)?;
    let socket = Arc::new(Socket { socket: connect(&at)?, saying: Mutex::new(BytesMut::new()) });
    socket.say(&FromProbe::Hello(hello::write(&launched, &token).into()));
    Puppet::new(socket).map_err(|error| ProbeFault::Ours { error })?.obey()
}

fn connect(at: &str) -> Result<OwnedFd, ProbeFault> {
    let unreachable = |error| ProbeFault::Unreachable { at: at.to_owned(), error };
    if let Some(path) = at.strip_prefix("unix:") {
        return os::connect(Path::new(path), CONNECT_WITHIN).map_err(unreachable);
    }
    // What travels there is not encrypted, so it stays on this machine.
    let address = at.strip_prefix("tcp:").and_then(|address| address.parse::<SocketAddr>().ok());
    let address = address.filter(|address| address.ip().is_loopback());
    let address = address.ok_or_else(|| ProbeFault::Address { at: at.to_owned() })?;
    let stream = TcpStream::connect_timeout(&address, CONNECT_WITHIN).map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    Ok(stream.into())
}

/// The connection to the harness, over which every thread says what it has to say.
struct Socket {
    socket: OwnedFd,
    /// Held while something is said; its memory is used again.
    saying: Mutex<BytesMut>,
}

impl Socket {
    /// Says it, and waits until it is said. If nobody hears it any more, who listens to the harness finds out.
    fn say(&self, told: &FromProbe) {
        let mut bytes = self.saying.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.clear();
        told.put(&mut bytes);
        let _ = os::write_all(self.socket.as_fd(), &bytes);
    }
}

/// What obeys the harness.
struct Puppet {
    socket: Arc<Socket>,
    input: Arc<Input>,
    output: Output,
    errors: Output,
    ignores_term: bool,
}

impl Puppet {
    fn new(socket: Arc<Socket>) -> io::Result<Self> {
        Ok(Self {
            input: Input::begin(&socket)?,
            output: Output::begin(&socket, Which::Output)?,
            errors: Output::begin(&socket, Which::Errors)?,
            socket,
            ignores_term: false,
        })
    }

    /// Nothing here waits for the other end of a pipe, so an order is always heard.
    fn obey(&mut self) -> Result<Ended, ProbeFault> {
        let mut heard = BytesMut::new();
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match os::read(&self.socket.socket, &mut buffer) {
                Ok(n @ 1..) => heard.extend_from_slice(&buffer[..n]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return Err(ProbeFault::Gone),
            }
            while let Some(told) = ToProbe::take(&mut heard).map_err(|Garbage| ProbeFault::Garbage)? {
                match told {
                    ToProbe::Exit(code) => return Ok(Ended::Exit(code)),
                    ToProbe::Abort => return Ok(Ended::Abort),
                    told => self.follow(told)?,
                }
            }
        }
    }

    fn follow(&mut self, told: ToProbe) -> Result<(), ProbeFault> {
        let ours = |error| ProbeFault::Ours { error };
        let taken = match told {
            ToProbe::Write { bytes, after_drain } => self.output.push(bytes, after_drain),
            ToProbe::CloseOutput => self.output.close(),
            ToProbe::Errors(bytes) => self.errors.push(bytes, false),
            ToProbe::Credit(count) => self.input.credit(count as usize),
            ToProbe::CloseInput => {
                self.input.close();
                Ok(())
            }
            ToProbe::IgnoreTerm => {
                self.ignore_term().map_err(ours)?;
                Ok(())
            }
            ToProbe::Spawn { session } => {
                self.spawn(session).map_err(ours)?;
                Ok(())
            }
            ToProbe::Ping => {
                self.input.ping();
                Ok(())
            }
            // Ended before it came here.
            ToProbe::Exit(_) | ToProbe::Abort => Ok(()),
        };
        taken.map_err(|Garbage| ProbeFault::Garbage)
    }

    fn ignore_term(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.ignores_term, true) {
            return Ok(());
        }
        let mut signals = Signals::new([SIGTERM])?;
        let socket = Arc::clone(&self.socket);
        start("signals", move || {
            for signal in signals.forever() {
                socket.say(&FromProbe::Signal(signal.unsigned_abs()));
            }
        })
    }

    /// Another one with the same words on its command line, and the same three pipes.
    fn spawn(&self, session: bool) -> io::Result<()> {
        let mut args = env::args_os();
        let zeroth = args.next().unwrap_or_else(|| OsString::from("probe"));
        let mut command = Command::new("/proc/self/exe");
        command.arg0(zeroth).args(args).env(SPAWNED, if session { "session" } else { "group" });
        match command.spawn() {
            Ok(mut child) => {
                self.socket.say(&FromProbe::Spawned(child.id()));
                start("child", move || {
                    os::wait(&mut child);
                })
            }
            Err(error) => {
                self.socket.say(&FromProbe::NotSpawned(number(&error)));
                Ok(())
            }
        }
    }
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(run).map(drop)
}

/// The platform's number of an error, 0 if it has none.
fn number(error: &io::Error) -> u32 {
    error.raw_os_error().map_or(0, i32::unsigned_abs)
}

impl fmt::Display for ProbeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAddress => {
                write!(f, "{AT} is not set: a probe is started by a host that sidecert checks")
            }
            Self::NoToken => write!(f, "{TOKEN} is not set: does the host pass the environment on?"),
            Self::Address { at } => {
                write!(f, "{at:?} is no address: it is unix:PATH or tcp:127.0.0.1:PORT")
            }
            Self::Unreachable { at, error } => write!(f, "nobody listens at {at:?}: {error}"),
            Self::Gone => write!(f, "the harness has closed the connection"),
            Self::Garbage => write!(f, "the harness says what this version of sidecert does not know"),
            Self::Ours { error } => write!(f, "the platform refused what a probe needs: {error}"),
        }
    }
}

impl Error for ProbeFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreachable { error, .. } | Self::Ours { error } => Some(error),
            _ => None,
        }
    }
}
