//! What must hold whatever the bytes: properties that proptest, libFuzzer and the stored corpus check alike.
//!
//! A property takes any byte string and panics where it is false; only where the bytes come from differs. A crash of
//! libFuzzer is stored in `fuzz/regressions/<property>/`, and from then on every `cargo test` checks it.

mod chunking;
mod contracts;
mod draw;
mod encoding;
mod flaws;
mod json;
mod judging;
mod scripts;
mod stage;

pub use chunking::{Cut, chunking, lines_of, unlike};
pub use contracts::contracts;
pub use encoding::encoding;
pub use flaws::flaws;
pub use json::json;
pub use judging::judging;
pub use scripts::scripts;

/// Something that must hold of every byte string.
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// Also the name of its fuzz target and of its folders in `fuzz/corpus` and `fuzz/regressions`.
    pub name: &'static str,
    /// What holds, in one sentence.
    pub says: &'static str,
    /// Panics where it does not.
    pub check: fn(&[u8]),
}

/// Every property.
pub static ALL: &[Property] = &[
    Property {
        name: "chunking",
        says: "How a stream is cut into chunks does not change its lines, its tail, or where it stops.",
        check: chunking,
    },
    Property {
        name: "contracts",
        says: "A contract is read or refused with a reason, and two of them differ exactly where there is a change.",
        check: contracts,
    },
    Property {
        name: "encoding",
        says: "What is written to a recording is read back equal, and what is read is written back the same.",
        check: encoding,
    },
    Property {
        name: "flaws",
        says: "However bytes are cut on their way, a mock fails what its flaw names, and nothing else.",
        check: flaws,
    },
    Property {
        name: "json",
        says: "The tape accepts what serde_json accepts, with the same value, and beyond it only what is listed.",
        check: json,
    },
    Property {
        name: "judging",
        says: "A recording is judged twice alike, a failure points into it, and nothing that follows heals one.",
        check: judging,
    },
    Property {
        name: "scripts",
        says: "A script comes back from its text form as it was, and no text makes the reader panic.",
        check: scripts,
    },
];
