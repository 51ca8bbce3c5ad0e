//! The user's wish to stop: INT, TERM and HUP, heard on a thread of their own so that any number of drives can watch.
//!
//! The first signal asks, the second one insists, and more change nothing; QUIT is left as it is, for the case that we
//! hang. A signal that was ignored when we were started (`nohup`) stays so.

use std::{io, thread};

use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
    sync::watch,
};

use crate::os;

/// How urgently the user wants us to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// Not at all.
    #[default]
    No,
    /// Soon: in order, with what is known so far.
    Interrupted,
    /// At once.
    Now,
}

/// Listens from now on until the process ends. Call it once; clone what it returns for every drive.
///
/// Fails when the platform gives us no thread or no signal handler.
pub fn listen() -> io::Result<watch::Receiver<Stop>> {
    let (say, heard) = watch::channel(Stop::No);
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let mut signals = {
        let _within = runtime.enter();
        Signals {
            interrupt: unless_ignored(SignalKind::interrupt())?,
            terminate: unless_ignored(SignalKind::terminate())?,
            hang_up: unless_ignored(SignalKind::hangup())?,
        }
    };
    // A file that may not grow is a full disk: an error that can be told, and no reason to die.
    let _ = runtime.block_on(async { signal(SignalKind::from_raw(os::FILE_TOO_LARGE)).map(drop) });
    thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            for stop in [Stop::Interrupted, Stop::Now] {
                signals.any().await;
                say.send_replace(stop);
            }
        });
    })?;
    Ok(heard)
}

struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hang_up: Option<Signal>,
}

impl Signals {
    async fn any(&mut self) {
        tokio::select! {
            () = next(&mut self.interrupt) => {}
            () = next(&mut self.terminate) => {}
            () = next(&mut self.hang_up) => {}
        }
    }
}

fn unless_ignored(kind: SignalKind) -> io::Result<Option<Signal>> {
    if os::is_ignored(kind.as_raw_value()) { Ok(None) } else { signal(kind).map(Some) }
}

async fn next(signal: &mut Option<Signal>) {
    let came = if let Some(signal) = signal { signal.recv().await.is_some() } else { false };
    if !came {
        // Not listened to, or no more can come.
        std::future::pending::<()>().await;
    }
}
