//! `mock`: a conforming program on our own standard input and output, or a flawed one.

use std::path::Path;

use sidecert_mocks::reasonix::host::Manners;
use sidecert_mocks::{Flaw, Mock, MockHost, flaws};
use sidecert_proto::contract::Side;
use sidecert_proto::machine::Machine;
use sidecert_proto::reasonix::guest::Features;
use sidecert_proto::suite::Suite;
use sidecert_runner::{Links, drive_here, stop};

use crate::contract;
use crate::exit::{self, Fault};
use crate::select::closest;

/// Is a guest until its input ends; gives the code that the mock exits with.
pub(crate) fn guest(suite: &'static Suite, contract: Option<&Path>, flaw: Option<&str>) -> Result<u8, Fault> {
    let flaw = flaw.map(|name| named(suite, Side::Guest, name)).transpose()?;
    let contract = contract::of(suite, contract)?;
    // The variable that a host sets is the name under which the mock's providers must lie.
    let named = std::env::var(sidecert_proto::reasonix::contract::variable::NAME);
    let mut features = Features::default();
    if let Ok(name) = named {
        features.name = name;
    }
    be(&mut Mock::guest(suite, &contract, features, flaw))
}

/// Is a host, behind its shim, until its input ends; gives the code that the mock exits with.
pub(crate) fn host(
    suite: &'static Suite,
    contract: Option<&Path>,
    flaw: Option<&str>,
    released: bool,
) -> Result<u8, Fault> {
    if suite.casting.is_none() {
        return Err(Fault::usage(format!("{} has no reference host yet", suite.name)));
    }
    let flaw = flaw.map(|name| named(suite, Side::Host, name)).transpose()?;
    let contract = contract::of(suite, contract)?;
    let manners = if released { Manners::released() } else { Manners::default() };
    be(&mut MockHost::new(&contract, manners, flaw))
}

fn named(suite: &'static Suite, side: Side, name: &str) -> Result<&'static Flaw, Fault> {
    flaws(suite, side).find(|flaw| flaw.name == name).ok_or_else(|| {
        let hint = closest(name, flaws(suite, side).map(|flaw| flaw.name))
            .map(|it| format!(", but {it}"))
            .unwrap_or_default();
        let list = format!("`sidecert list flaws --suite {}` shows all", suite.name);
        Fault::usage(format!("{} has no flaw {name:?} of a {side}{hint}; {list}", suite.name))
    })
}

fn be(mock: &mut dyn Machine) -> Result<u8, Fault> {
    let ours = |says: String| Fault { code: exit::OURS, says };
    let stop = stop::listen().map_err(|error| ours(format!("no signals can be heard: {error}")))?;
    let links =
        Links::stdio().map_err(|error| ours(format!("standard input and output are not usable: {error}")))?;
    let ended = drive_here(mock, links, stop, &mut |_| Ok(())).map_err(|fault| ours(fault.to_string()))?;
    Ok(ended.exit().unwrap_or(exit::INTERRUPTED))
}
