//! `mock`: a conforming program on our own standard input and output, or a flawed one.

use std::path::Path;

use sidecert_mocks::{Mock, flaws};
use sidecert_proto::contract::Side;
use sidecert_proto::reasonix::guest::Features;
use sidecert_proto::suite::Suite;
use sidecert_runner::{Links, drive_here, stop};

use crate::contract;
use crate::exit::{self, Fault};
use crate::select::closest;

/// Is a guest until its input ends; gives the code that the mock exits with.
pub(crate) fn run(suite: &'static Suite, contract: Option<&Path>, flaw: Option<&str>) -> Result<u8, Fault> {
    let flaw = flaw.map(|name| {
        flaws(suite, Side::Guest).find(|flaw| flaw.name == name).ok_or_else(|| {
            let hint = closest(name, flaws(suite, Side::Guest).map(|flaw| flaw.name))
                .map(|it| format!(", but {it}"))
                .unwrap_or_default();
            let list = format!("`sidecert list flaws --suite {}` shows all", suite.name);
            Fault::usage(format!("{} has no flaw {name:?}{hint}; {list}", suite.name))
        })
    });
    let contract = contract::of(suite, contract)?;
    // The variable that a host sets is the name under which the mock's providers must lie.
    let named = std::env::var(sidecert_proto::reasonix::contract::variable::NAME);
    let mut features = Features::default();
    if let Ok(name) = named {
        features.name = name;
    }
    let mut mock = Mock::guest(suite, &contract, features, flaw.transpose()?);
    let ours = |says: String| Fault { code: exit::OURS, says };
    let stop = stop::listen().map_err(|error| ours(format!("no signals can be heard: {error}")))?;
    let links =
        Links::stdio().map_err(|error| ours(format!("standard input and output are not usable: {error}")))?;
    let ended =
        drive_here(&mut mock, links, stop, &mut |_| Ok(())).map_err(|fault| ours(fault.to_string()))?;
    Ok(ended.exit().unwrap_or(exit::INTERRUPTED))
}
