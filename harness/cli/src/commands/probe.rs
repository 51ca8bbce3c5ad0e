//! `probe`: the guest of a host that is checked, and in our hand. The host starts it, as it starts any guest.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use sidecert_runner::{Probe, probe, tap};

use crate::args::ProbeArgs;
use crate::exit::{self, Fault};
use crate::output;

/// Variables that begin so are what the protocol gives a guest: no secrets, and to be judged.
const GIVEN: &str = "REASONIX_PLUGIN_";
/// How long the line waits for a standard error that nobody reads.
const COMPLAIN_WITHIN: Duration = Duration::from_millis(500);
const SIGABRT: i32 = 6;
/// As shells have it, where we cannot die of a signal.
const BY_SIGABRT: u8 = 134;

/// Is a probe until it is told to end; gives the code that it is told.
pub(crate) fn run(args: ProbeArgs) -> u8 {
    let ProbeArgs { name, at, token, show } = args;
    let says = format!("probe {name}");
    let shown = Box::new(move |name: &str| name.starts_with(GIVEN) || show.iter().any(|it| it == name));
    match probe::probe(&Probe { name, at, token, shown }) {
        Ok(probe::Ended::Exit(code)) => code,
        Ok(probe::Ended::Abort) => {
            tap::die_of(SIGABRT);
            BY_SIGABRT
        }
        Err(fault) => {
            let fault = Fault { code: exit::OURS, says: format!("{says}: {fault}") };
            let (said, heard) = mpsc::channel();
            thread::spawn(move || {
                output::complain(&fault.to_string());
                let _ = said.send(());
            });
            // The host may have left it full, and we end all the same.
            let _ = heard.recv_timeout(COMPLAIN_WITHIN);
            exit::OURS
        }
    }
}
