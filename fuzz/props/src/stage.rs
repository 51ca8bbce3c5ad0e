//! The suites as they are rehearsed here: in memory, under contracts with small limits, against mocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use sidecert_cases::SUITES;
use sidecert_mocks::webcodex;
use sidecert_proto::contract::{Contract, Side};
use sidecert_proto::judge::{Judge, Judged};
use sidecert_proto::machine::Machine;
use sidecert_proto::reasonix::contract::Limits;
use sidecert_proto::script::Setting;
use sidecert_proto::sim;
use sidecert_proto::suite::Suite;
use sidecert_proto::verdict::Profile;
use sidecert_proto::webcodex::calls;

/// A suite with all that its scripts and judges are built from.
pub(crate) struct Stage {
    pub(crate) suite: &'static Suite,
    pub(crate) contract: Contract,
    selected: BTreeSet<String>,
    provocations: BTreeMap<String, String>,
    exercised: BTreeSet<String>,
}

/// Every suite.
pub(crate) static STAGES: LazyLock<Vec<Stage>> =
    LazyLock::new(|| SUITES.iter().map(|suite| Stage::new(suite)).collect());

static NOTHING: BTreeSet<String> = BTreeSet::new();
static NO_PROVOCATIONS: BTreeMap<String, String> = BTreeMap::new();

impl Stage {
    fn new(suite: &'static Suite) -> Self {
        let limits = Limits {
            frame_bytes: 64 << 10,
            externalize_field_bytes: 512,
            content_ref_chunk_bytes: 1 << 10,
            content_ref_object_bytes: 8 << 10,
        };
        let provocation = |name: &str| {
            let mark = format!("sidecert:{name}");
            if name.ends_with("-stream") {
                format!(r#"{{"message":"{mark}"}}"#)
            } else {
                format!(r#"{{"event":"input.receive","payload":{{"text":"{mark}"}}}}"#)
            }
        };
        Self {
            suite,
            contract: limits.applied_to((suite.contract)()),
            selected: suite.rows(Side::Guest).map(|row| row.id.to_owned()).collect(),
            provocations: suite
                .provocations
                .iter()
                .map(|it| (it.name.to_owned(), provocation(it.name)))
                .chain(suite.calls.map(|_| (calls::GIVEN.to_owned(), webcodex::CALLS.to_owned())))
                .collect(),
            exercised: BTreeSet::from(["all".to_owned()]),
        }
    }

    pub(crate) fn setting(&self, provoked: bool, seed: u64) -> Setting<'_> {
        Setting {
            provocations: if provoked { &self.provocations } else { &NO_PROVOCATIONS },
            exercised: if provoked { &self.exercised } else { &NOTHING },
            seed,
            workspace: "/workspace",
            ..Setting::plain(&self.contract)
        }
    }

    /// The recordings of a whole run against `target`.
    pub(crate) fn rehearse<'s>(
        &'s self,
        setting: Setting<'s>,
        isolate: bool,
        target: &mut dyn FnMut() -> Box<dyn Machine + 's>,
    ) -> Vec<Vec<u8>> {
        let scripts = self.suite.scripts(self.suite.rows(Side::Guest));
        match sim::rehearse(self.suite, Side::Guest, setting, &scripts, isolate, target) {
            Ok(recordings) => recordings,
            Err(stuck) => panic!("{}: {stuck:?}", self.suite.name),
        }
    }

    /// Judges `recordings`, given `piece` bytes at a time.
    pub(crate) fn judge<'s>(
        &'s self,
        setting: Setting<'s>,
        profile: Profile,
        recordings: &[impl AsRef<[u8]>],
        piece: usize,
    ) -> Judged {
        let mut judge = Judge::new(self.suite, Side::Guest, profile, setting, &self.selected);
        for (place, recording) in recordings.iter().enumerate() {
            judge.begin(&format!("{place:03}"));
            for chunk in recording.as_ref().chunks(piece) {
                judge.read(chunk);
            }
        }
        judge.finish()
    }
}
