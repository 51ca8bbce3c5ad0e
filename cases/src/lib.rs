//! What each protocol requires, as tables, and how each requirement is checked.
//!
//! A family has a folder, a section of its specification a file; in it stand the rows, the scripts that bring them up
//! and the judges that read what happened. Whoever adds a row adds a flaw that breaks it (CONTRIBUTING).

pub mod reasonix;

use sidecert_proto::suite::Suite;

/// Every suite, in the order in which they are listed.
pub static SUITES: &[&Suite] = &[&reasonix::V1, &reasonix::V2];

/// The suite of this name.
pub fn suite(name: &str) -> Option<&'static Suite> {
    SUITES.iter().copied().find(|suite| suite.name == name)
}
