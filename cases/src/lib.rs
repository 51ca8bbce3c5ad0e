//! What each protocol requires, as tables, and how each requirement is checked.
//!
//! A family has a folder, a section of its specification a file; in it stand the rows, the scripts that bring them up
//! and the judges that read what happened. Whoever adds a row adds a flaw that breaks it (CONTRIBUTING).

pub mod reasonix;
pub mod webcodex;

use sidecert_proto::requirement::Requirement;
use sidecert_proto::suite::Suite;

/// Every suite, in the order in which they are listed.
pub static SUITES: &[&Suite] = &[&reasonix::V1, &reasonix::V2, &webcodex::V1];

/// The suite of this name.
pub fn suite(name: &str) -> Option<&'static Suite> {
    SUITES.iter().copied().find(|suite| suite.name == name)
}

/// How many rows the sections of all these parts have.
const fn count(parts: &[&[&[Requirement]]]) -> usize {
    let (mut part, mut rows) = (0, 0);
    while part < parts.len() {
        let mut section = 0;
        while section < parts[part].len() {
            rows += parts[part][section].len();
            section += 1;
        }
        part += 1;
    }
    rows
}

/// The rows of all sections in one table.
const fn joined<const N: usize>(parts: &[&[&[Requirement]]]) -> [Requirement; N] {
    let mut table = [parts[0][0][0]; N];
    let (mut part, mut place) = (0, 0);
    while part < parts.len() {
        let mut section = 0;
        while section < parts[part].len() {
            let mut row = 0;
            while row < parts[part][section].len() {
                table[place] = parts[part][section][row];
                place += 1;
                row += 1;
            }
            section += 1;
        }
        part += 1;
    }
    table
}
