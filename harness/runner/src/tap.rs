//! Stands where a guest stands: relays between whoever started us and the guest, and records what passes.
//!
//! ```text
//!  host ==stdin==> [ relay ==> ] ==pipe==> guest     each relay: 64 KiB, plain blocking reads and writes
//!  host <=stdout== [ <== relay ] <==pipe== guest     standard error, group, session, folder and environment: inherited
//!                        └──> overheard ──> recorder ──> file
//! ```
//!
//! It promises that neither end notices: the same bytes, each end of file where it was, the same end. A relay takes
//! from one end only what it can give to the other, so a peer that does not read is felt by the one who writes. What
//! is recorded stands before what it causes. A recording that lags, or cannot be, costs the recording and nothing else.

mod record;

use std::{
    env,
    ffi::OsString,
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::ffi::OsStrExt as _,
    },
    process::{Child, Command, Stdio},
    sync::Arc,
    thread,
};

use sidecert_proto::{contract::Side, machine::Exited};
use signal_hook::{
    consts::{SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGXFSZ},
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::siginfo::Cause,
};

use crate::{budget::READ_BYTES, os, process::SpawnFault};
use record::{Heard, Overheard};
pub use record::{Record, Recorded};

/// The signals that are handed on. Not those that tell a process of itself, nor those that stop it and let it go on.
const HANDED_ON: [i32; 8] = [SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGWINCH];

/// What came of a guest that was listened to.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    /// How the guest ended.
    pub exited: Exited,
    /// What came of the recording.
    pub recorded: Recorded,
}

/// Runs a guest on our own standard input and output, which are closed afterwards, and records what passes.
///
/// It blocks until the guest has ended and everything that it wrote was relayed. Call it once, and end soon: its
/// threads end with the process.
pub fn tap(argv: &[OsString], record: Record) -> Result<Ended, SpawnFault> {
    let ours = |error| SpawnFault::Ours { error };
    let program = argv.first().filter(|program| !program.as_bytes().is_empty());
    let program = program.ok_or(SpawnFault::NoProgram)?;
    // Before there is a guest: a signal that comes now is for it.
    let signals = signals().map_err(ours)?;
    let (host_input, host_output) = (os::keep_stdin().map_err(ours)?, os::keep_stdout().map_err(ours)?);
    let mut command = Command::new(program);
    command.args(&argv[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut guest = command.spawn().map_err(|error| {
        let env: Vec<_> = env::vars_os().collect();
        SpawnFault::of(program, None, &env, error)
    })?;
    let overheard = Arc::new(Overheard::begin());
    let Some((guest_input, guest_output)) = ends(&mut guest) else {
        return Err(ours(io::ErrorKind::BrokenPipe.into()));
    };
    let alive = os::watch(os::id_of(&guest)).map_err(ours)?;
    let handed = alive.try_clone().map_err(ours)?;
    spawn("signals", move || hand_on(signals, &handed)).map_err(ours)?;
    let recorder = Arc::clone(&overheard);
    spawn("recorder", move || recorder.record(record)).map_err(ours)?;
    let heard = Arc::clone(&overheard);
    spawn("host", move || {
        Relay { from: host_input, to: guest_input, side: Side::Host, overheard: &heard }.run(None);
    })
    .map_err(ours)?;
    Relay { from: guest_output, to: host_output, side: Side::Guest, overheard: &overheard }.run(Some(&alive));
    let exited = os::wait(&mut guest);
    let recorded = overheard.end(exited);
    Ok(Ended { exited, recorded })
}

/// Ends us as the guest ended, if that was by a signal and the platform lets us die of the same.
pub fn die_of(signal: i32) {
    // A core file of ours would be about nothing.
    os::forbid_core_file();
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

fn ends(guest: &mut Child) -> Option<(OwnedFd, OwnedFd)> {
    Some((guest.stdin.take()?.into(), guest.stdout.take()?.into()))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(run).map(drop)
}

/// Hears signals from now on. One that is ignored stays so, for the guest as well, which inherits that and nothing else.
fn signals() -> io::Result<SignalsInfo<WithOrigin>> {
    // A file that may not grow is a full disk: an error that can be told, and no reason to die.
    let heard = HANDED_ON.into_iter().chain([SIGXFSZ]).filter(|signal| !os::is_ignored(*signal));
    SignalsInfo::new(heard)
}

/// Hands signals to the guest. What the kernel sends, a Ctrl-C for example, it sends to the whole group of the terminal,
/// so the guest has it already.
fn hand_on(mut signals: SignalsInfo<WithOrigin>, guest: &OwnedFd) {
    for origin in signals.forever() {
        if origin.cause != Cause::Kernel && origin.signal != SIGXFSZ {
            os::send_signal_through(guest, origin.signal);
        }
    }
}

/// One direction.
struct Relay<'o> {
    from: OwnedFd,
    to: OwnedFd,
    side: Side,
    overheard: &'o Overheard,
}

impl Relay<'_> {
    /// Until one of the two ends is closed; then both are. Or, if `alive` says that the writing process has ended, until
    /// all is relayed that was there by then: others may hold its output open for as long as they like.
    fn run(self, alive: Option<&OwnedFd>) {
        let mut buffer = vec![0; READ_BYTES];
        let mut left = None;
        loop {
            let seen = os::await_bytes(self.from.as_fd(), self.to.as_fd(), alive.map(|fd| fd.as_fd()));
            if seen.broken {
                return self.overheard.push(self.side, Heard::Broken);
            }
            if seen.ended && left.is_none() {
                // What was seen of the pipe may be older than the end, so it is looked at again.
                left = Some(usize::try_from(os::unread(&self.from)).unwrap_or(usize::MAX));
                continue;
            }
            if seen.closed && !seen.bytes {
                return self.overheard.push(self.side, Heard::Closed);
            }
            if left == Some(0) {
                return;
            }
            if !seen.bytes {
                continue;
            }
            let most = left.unwrap_or(buffer.len()).min(buffer.len());
            let read = match os::read(&self.from, &mut buffer[..most]) {
                Ok(0) => return self.overheard.push(self.side, Heard::Closed),
                Ok(read) => read,
                Err(error) if is_passing(&error) => continue,
                Err(_) => return self.overheard.push(self.side, Heard::Closed),
            };
            left = left.map(|left| left - read);
            // Before it is written: what it causes comes later. Waking the recorder can wait.
            let wakes = self.overheard.bytes(self.side, &buffer[..read]);
            let written = os::write_all(self.to.as_fd(), &buffer[..read]);
            if wakes {
                self.overheard.wake();
            }
            if written.is_err() {
                return self.overheard.push(self.side, Heard::Broken);
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}
