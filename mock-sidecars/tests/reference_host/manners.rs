//! Every decision that the host can take otherwise makes a difference that somebody can see.

use std::fmt::Write as _;
use std::sync::OnceLock;

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::contract::Contract;
use sidecert_proto::reasonix::contract::Limits;

use crate::stage::{Act, Puppet, Stage, plugin, v1};

macro_rules! flaws {
    ($($group:ident . $member:ident = $value:expr),* $(,)?) => {
        &[$((stringify!($group.$member), |manners: &mut Manners| manners.$group.$member = $value)),*]
    };
}

mod connections;
mod sessions;

type Flaw = fn(&mut Manners);
type Play = fn(&Manners) -> String;
/// What a guest does about a frame.
type Does = fn(&Value) -> Vec<Act>;
type Cast = fn() -> Puppet;

/// All that can be seen of a stage.
fn seen(stage: &Stage<'_>, into: &mut String) {
    let written: Vec<_> =
        stage.written.iter().map(|it| format!("{} {} {}", it.at, it.plugin, it.frame)).collect();
    let lines = stage.lines.iter().zip(&stage.said_at).map(|(line, at)| format!("{at} {line}"));
    let lines: Vec<_> = lines.collect();
    writeln!(into, "{written:#?}\n{lines:#?}\n{:?} {:?}", stage.launched, stage.killed).unwrap();
}

/// A stage whose limits are small, so that little has to be written to break them.
fn stage(manners: &Manners) -> Stage<'static> {
    static SMALL: OnceLock<Contract> = OnceLock::new();
    let small = SMALL.get_or_init(|| {
        let limits = Limits {
            frame_bytes: 40_000,
            externalize_field_bytes: 2_000,
            content_ref_chunk_bytes: 8_000,
            content_ref_object_bytes: 30_000,
        };
        limits.applied_to(v1())
    });
    let mut stage = Stage::new(small, manners.clone());
    stage.checks = false;
    stage
}

/// Asks for something, and lets time pass.
fn does(stage: &mut Stage<'_>, ask: Value) {
    stage.ask(ask);
    stage.wait(400_000);
}

fn starts(stage: &mut Stage<'_>, plugins: &[(&str, Value)]) {
    let entries: Vec<Value> = plugins.iter().map(|(name, block)| plugin(v1(), name, block)).collect();
    does(stage, json!({"do": "start", "workspace": "/", "plugins": entries}));
}

fn turn(stage: &mut Stage<'_>) {
    does(stage, json!({"do": "turn", "text": "hi", "effort": "high"}));
}

/// Each of these changes what can be seen of that play.
fn differ(play: Play, flaws: &[(&str, Flaw)]) {
    let usual = play(&Manners::default());
    assert_eq!(usual, play(&Manners::default()), "the same each time");
    let changes_nothing = |flaw: &Flaw| {
        let mut manners = Manners::default();
        flaw(&mut manners);
        play(&manners) == usual
    };
    let without: Vec<&str> =
        flaws.iter().filter(|(_, flaw)| changes_nothing(flaw)).map(|(name, _)| *name).collect();
    assert_eq!(without, [] as [&str; 0], "decisions that change nothing");
}
