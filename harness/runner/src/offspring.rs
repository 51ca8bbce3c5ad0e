//! What this process has started, and what that has started in turn: adopted when its parent ends, killed on demand.
//!
//! For a program that runs others without a launcher, and must leave nothing behind.

use std::{io, time::Instant};

use crate::{
    budget::KILL_WITHIN,
    os::{self, Reaped},
};

/// Makes every process that descends from this one a child of it when its own parent ends, so that none gets out of
/// sight.
pub fn adopt() -> io::Result<()> {
    os::adopt_orphans()
}

/// Kills everything that descends from this process, within [`KILL_WITHIN`], and takes it off the kernel's list. Says
/// whether there was anything.
///
/// A thread that waits for a child meanwhile learns no more than that it ended.
pub fn kill() -> bool {
    let until = Instant::now() + KILL_WITHIN;
    let (mut any, mut empty) = (false, 0);
    // Twice, since a scan races with forks.
    while empty < 2 && Instant::now() < until {
        let found = os::descendants(os::ourselves());
        empty = if found.is_empty() { empty + 1 } else { 0 };
        any |= !found.is_empty();
        os::kill_all(&found, until);
        while let Reaped::One(..) = os::reap() {}
    }
    any
}
