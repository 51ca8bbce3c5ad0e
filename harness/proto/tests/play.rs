//! Plays against a target that the test is: every step and reaction, every way a script can end, and the late tick.
#![expect(clippy::unwrap_used, reason = "a test may")]

use std::collections::{BTreeMap, BTreeSet};

use sidecert_proto::budget::Budget;
use sidecert_proto::machine::{Action, Exited, Input, Machine, Micros};
use sidecert_proto::play::{Missed, Peer, Play};
use sidecert_proto::reasonix::contract;
use sidecert_proto::rpc::Envelope;
use sidecert_proto::script::{
    Need, Outgoing, Pattern, Process, Reaction, Reply, Script, ScriptDef, Setting, Step, Template, Within,
};
use sidecert_proto::transcript::{Event, Kind, Payload, Record, Wait, read};

/// A peer that answers nothing and fences with `fence`.
#[derive(Default)]
struct Silent(BTreeSet<String>);

impl Peer for Silent {
    fn fence(&mut self, id: i64) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"fence","params":{{}}}}"#).into_bytes()
    }

    fn meet(&mut self, _: &Envelope<'_>, _: bool, _: &mut Vec<Vec<u8>>) {}

    fn declared(&self) -> &BTreeSet<String> {
        &self.0
    }
}

/// A play of one script, and the target's side of it by hand.
struct Stage {
    play: Play<'static>,
    now: Micros,
    record: Vec<u8>,
    actions: Vec<Action>,
}

const BUDGET: Budget = Budget {
    first_byte: 5_000_000,
    start: 30_000_000,
    answer_least: 1_000_000,
    answer_most: 5_000_000,
    wait_most: u64::MAX,
    exit_after_close: 5_000_000,
    exit_after_end: 500_000,
    exit_after_kill: 5_000_000,
    quiet_least: 20_000,
    silence_least: 250_000,
    silence_most: 1_000_000,
    settled_most: 60_000_000,
    quiet_most: 250_000,
    quiet_total: 2_000_000,
    outcome: 20_000_000,
    launch: 10_000_000,
    record_bytes: 1 << 20,
    deadlines: true,
};

impl Stage {
    fn new(build: fn(&Setting<'_>) -> Script) -> Self {
        Self::planned(vec![def("test", &[], build)], BUDGET)
    }

    fn planned(plan: Vec<&'static ScriptDef>, budget: Budget) -> Self {
        let setting = Setting {
            declared: Box::leak(Box::default()),
            provocations: Box::leak(Box::<BTreeMap<String, String>>::default()),
            exercised: Box::leak(Box::default()),
            seed: 1,
            workspace: "/",
            ..Setting::plain(contract::v1())
        };
        let play = Play::new("test", plan, Box::new(Silent::default()), setting, budget, 1 << 20);
        let mut stage = Self { play, now: 0, record: Vec::new(), actions: Vec::new() };
        stage.settle();
        stage
    }

    fn settle(&mut self) {
        while let Some(action) = self.play.poll(self.now) {
            self.actions.push(action);
        }
        self.record.append(self.play.record());
    }

    fn handle(&mut self, after: Micros, input: Input<'_>) -> &mut Self {
        self.now += after;
        self.play.handle(0, input, self.now);
        self.settle();
        self
    }

    /// The target reads what it was sent.
    fn reads(&mut self) -> &mut Self {
        let written = self.written().len();
        self.handle(0, Input::Wrote(written))
    }

    fn says(&mut self, line: &str) -> &mut Self {
        self.handle(100, Input::Bytes(format!("{line}\n").as_bytes()))
    }

    /// Lets the deadline come, `late` after its time.
    fn deadline(&mut self, late: Micros) -> &mut Self {
        let due = self.play.deadline().expect("nothing is waited for");
        self.handle(due + late - self.now, Input::Tick)
    }

    /// The frames of ours, so far.
    fn written(&self) -> String {
        let bytes: Vec<u8> = self
            .actions
            .iter()
            .filter_map(|action| match action {
                Action::Write { bytes, .. } => Some(bytes.to_vec()),
                _ => None,
            })
            .flatten()
            .collect();
        String::from_utf8(bytes).unwrap()
    }

    fn events(&self) -> Vec<Event<'_>> {
        let lines = self.record.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines
            .filter_map(|line| match read(line).unwrap() {
                Record::Event(event) => Some(event),
                _ => None,
            })
            .collect()
    }

    /// Why the script was cut; `None` if it was not.
    fn cut(&self) -> Option<String> {
        self.events().into_iter().find_map(|event| match event.kind {
            Kind::Ended { cut, .. } => cut.map(std::borrow::Cow::into_owned),
            _ => None,
        })
    }

    fn has(&self, test: impl Fn(&Kind<'_>) -> bool) -> bool {
        self.events().iter().any(|event| test(&event.kind))
    }
}

fn def(name: &'static str, needs: &'static [Need], build: fn(&Setting<'_>) -> Script) -> &'static ScriptDef {
    Box::leak(Box::new(ScriptDef { name, process: Process::Bare, needs, build }))
}

fn ask(_: &Setting<'_>) -> Script {
    Script::new("ask").request("one", "m", "{}").answer("one")
}

#[test]
fn an_answer_that_came_before_it_was_awaited_counts() {
    let mut stage = Stage::new(|_| {
        Script::new("two").request("one", "m", "{}").request("two", "m", "{}").answer("one").answer("two")
    });
    assert_eq!(
        stage.written(),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"m\",\"params\":{}}\n"
    );
    stage.says(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#).says(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert!(stage.has(|kind| matches!(kind, Kind::Ended { cut: None, .. })));
}

#[test]
fn a_late_tick_is_no_timeout_and_a_prompt_one_is() {
    let mut stage = Stage::new(ask);
    stage.reads();
    for _ in 0..3 {
        stage.deadline(21_000);
        assert_eq!(stage.cut(), None);
    }
    stage.deadline(21_000);
    assert_eq!(stage.cut().as_deref(), Some("no answer to one in 5 s"));
    assert_eq!(stage.events().iter().filter(|event| matches!(event.kind, Kind::Starved { .. })).count(), 3);

    let mut stage = Stage::new(ask);
    stage.reads();
    stage.deadline(20_000);
    assert!(stage.cut().is_some());
    assert!(stage.play.missed().is_some());
}

#[test]
fn what_came_while_we_were_not_running_counts() {
    let mut stage = Stage::new(ask);
    // The loop hands over what is in the pipe before it tells the time.
    stage.handle(9_000_000, Input::Bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"));
    assert_eq!(stage.cut(), None);
    assert!(stage.has(|kind| matches!(kind, Kind::Ended { .. })));
}

#[test]
fn the_first_answer_has_five_seconds_without_a_byte_and_what_the_protocol_allows_with_one() {
    let build: fn(&Setting<'_>) -> Script = |_| {
        Script::new("start")
            .request("initialize", "m", "{}")
            .step(Step::Await { frame: Pattern::answer_to("initialize"), within: Within::Start })
    };
    let mut stage = Stage::new(build);
    stage.reads().deadline(0);
    let says = "no answer to initialize in 5 s; the protocol allows 30 s: `--start-timeout 30s` waits";
    assert_eq!(stage.cut().as_deref(), Some(says));

    let mut stage = Stage::new(build);
    stage.reads().says("loading…").deadline(0);
    let says = "no answer to initialize in 30 s; it wrote \"loading…\" to standard output, which is no frame";
    assert_eq!((stage.cut().as_deref(), stage.now), (Some(says), 30_000_000));
}

#[test]
fn the_end_of_the_target_says_how_and_before_what() {
    for (exited, expected) in [
        (Exited::Code(1), "the guest exited with code 1 before it answered \"one\""),
        (Exited::Signal(11), "the guest was ended by signal 11 before it answered \"one\""),
    ] {
        let mut stage = Stage::new(ask);
        stage.handle(10, Input::Eof).handle(10, Input::Exited(exited));
        assert_eq!(stage.cut().as_deref(), Some(expected));
        assert_eq!(stage.actions.last(), Some(&Action::Done));
    }
    // One that closes its output and goes on is killed, and that is told.
    let mut stage = Stage::new(ask);
    stage.handle(10, Input::Eof).deadline(0);
    assert_eq!(stage.actions.last(), Some(&Action::Kill { link: 0 }));
    stage.handle(10, Input::Exited(Exited::Signal(9)));
    assert_eq!(
        stage.cut().as_deref(),
        Some("the guest closed its output and had to be killed before it answered \"one\"")
    );
}

#[test]
fn the_only_answer_that_there_will_be_ends_a_wait_for_another() {
    let mut stage = Stage::new(|_| {
        let frame = Pattern::of(r#"{"id":{"$id":"one"},"result":{"$any":true}}"#).unwrap();
        Script::new("x").request("one", "m", "{}").step(Step::Await { frame, within: Within::Answer })
    });
    stage.says(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":{"reason":"unsupported_version"}}}"#);
    assert_eq!(
        stage.cut().as_deref(),
        Some("the guest answered one with the error -32000 (unsupported_version)")
    );
}

#[test]
fn a_fence_takes_any_answer_and_the_end_of_the_link_only_where_it_is_told() {
    let mut stage = Stage::new(|_| Script::new("x").fence());
    stage.says(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"?"}}"#);
    assert!(stage.has(|kind| matches!(kind, Kind::Waited { wait: Wait::Fence, .. })));

    let mut stage = Stage::new(|_| Script::new("x").step(Step::Fence { or_end: true }));
    stage.handle(10, Input::Eof).handle(10, Input::Exited(Exited::Code(1)));
    assert!(stage.has(|kind| matches!(kind, Kind::Ended { cut: None, .. })));

    let mut stage = Stage::new(|_| Script::new("x").fence());
    stage.handle(10, Input::Eof).handle(10, Input::Exited(Exited::Code(1)));
    assert_eq!(stage.cut().as_deref(), Some("the guest exited with code 1 before it answered a fence"));
}

#[test]
fn silence_begins_again_with_every_frame_and_is_bounded() {
    let mut stage = Stage::new(|_| Script::new("x").quiet());
    let mut spoken = 0;
    while stage.play.deadline().is_some_and(|due| due < 2_000_000) && spoken < 1_000 {
        stage.handle(10_000, Input::Bytes(b"{}\n"));
        spoken += 1;
    }
    stage.deadline(0);
    assert!(stage.has(|kind| matches!(kind, Kind::Waited { wait: Wait::Quiet, took: 2_000_000, .. })));
}

#[test]
fn a_cut_write_goes_part_by_part_and_says_when_it_was_accepted() {
    let mut stage = Stage::new(|_| {
        Script::new("x").step(Step::Cut { at: vec![1, 5, 9_999] }).request("one", "m", "{}").answer("one")
    });
    let parts: Vec<(usize, bool)> = stage
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Write { bytes, after_drain, .. } => Some((bytes.len(), *after_drain)),
            _ => None,
        })
        .collect();
    let whole: usize = parts.iter().map(|(length, _)| length).sum();
    assert_eq!(parts, [(1, true), (4, true), (whole - 5, true)]);
    stage.handle(10, Input::Wrote(5)).handle(10, Input::Wrote(whole - 5));
    let lengths = vec![1, 4, whole as u64 - 5];
    assert!(stage.has(|kind| matches!(kind, Kind::Wrote { parts, .. } if *parts == lengths)));
}

#[test]
fn a_bound_in_our_own_frame_counts_from_when_the_frame_was_accepted() {
    let mut stage = Stage::new(|_| {
        let awaited = Step::Await { frame: Pattern::answer_to("one"), within: Within::Millis(100) };
        Script::new("x").request("one", "m", "{}").step(awaited)
    });
    stage.handle(90_000, Input::Wrote(1_000));
    assert_eq!(stage.play.deadline(), Some(190_000));
}

#[test]
fn reactions_answer_what_they_match_once_twice_later_oddly_or_never() {
    let mut stage = Stage::new(|_| {
        let reaction = |method: &str, reply: fn(Template) -> Reply, times| Reaction {
            when: Pattern::request(method),
            reply: reply(Template::new(format!(r#"{{"id":{{"$capture":"id"}},"{method}":1}}"#))),
            times,
            guest: None,
        };
        let mut script = Script::new("x").fence().fence();
        script.reactions = vec![
            reaction("once", Reply::Once, Some(1)),
            reaction("twice", Reply::Twice, None),
            reaction("later", |template| Reply::AfterFences(2, template), None),
            reaction("odd", |answer| Reply::Odd { departs: "it has no version".to_owned(), answer }, None),
            reaction("never", |_| Reply::Never, None),
        ];
        script
    });
    for (id, method) in [(10, "once"), (11, "once"), (12, "twice"), (13, "later"), (14, "never")] {
        stage.says(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#));
    }
    let answers = |stage: &Stage| {
        let written = stage.written();
        written.lines().filter(|line| line.starts_with("{\"id\"")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        answers(&stage),
        [r#"{"id":10,"once":1}"#, r#"{"id":12,"twice":1}"#, r#"{"id":12,"twice":1}"#]
    );
    stage.says(r#"{"jsonrpc":"2.0","id":15,"method":"odd"}"#);
    assert_eq!(answers(&stage).last().unwrap(), r#"{"id":15,"odd":1}"#);
    let departs = |kind: &Kind<'_>| match kind {
        Kind::Frame(frame) => frame.departs.as_deref() == Some("it has no version"),
        _ => false,
    };
    assert!(stage.has(departs));
    stage.says(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(answers(&stage).len(), 4);
    stage.says(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    assert_eq!(answers(&stage).last().unwrap(), r#"{"id":13,"later":1}"#);
}

#[test]
fn captures_repeats_and_loops_fill_templates() {
    let mut stage = Stage::new(|_| {
        let frame = Pattern::of(r#"{"list":{"$capture":"list"}}"#).unwrap();
        let send = |text: &str| Step::Send { label: None, frame: Outgoing::Template(Template::new(text)) };
        Script::new("x")
            .step(Step::Await { frame, within: Within::Answer })
            .step(Step::Each {
                of: "list".into(),
                name: "e".into(),
                steps: vec![send(r#"{"e":{"$capture":"e"}}"#)],
            })
            .step(Step::Repeat { times: 2, steps: vec![send(r#"{"id":{"$id":"r"}}"#)] })
    });
    // A frame is awaited as what it is; this one is no envelope, so the play passes it by.
    stage.says(r#"{"jsonrpc":"2.0","method":"x","list":[1,{"a":2}]}"#);
    assert_eq!(stage.written(), "{\"e\":1}\n{\"e\":{\"a\":2}}\n{\"id\":1}\n{\"id\":1}\n");
}

#[test]
fn hold_release_close_kill_and_exit_are_what_they_say() {
    let mut stage = Stage::new(|_| {
        Script::new("x")
            .step(Step::Hold)
            .step(Step::Release)
            .step(Step::Close)
            .step(Step::Close)
            .step(Step::Exit)
    });
    let expected = [
        Action::Reading { link: 0, on: false },
        Action::Reading { link: 0, on: true },
        Action::Close { link: 0 },
    ];
    assert_eq!(stage.actions, expected);
    stage.deadline(0);
    assert!(stage.has(|kind| matches!(kind, Kind::TimedOut { wait: Wait::Exit, .. })));
    assert_eq!(stage.actions.last(), Some(&Action::Kill { link: 0 }));
    stage.handle(10, Input::Exited(Exited::Signal(9)));
    assert_eq!(stage.actions.last(), Some(&Action::Done));
    assert!(stage.play.missed().is_none(), "a process that does not exit is no missing answer");
}

#[test]
fn an_oversize_line_ends_the_process() {
    let mut stage = Stage::new(ask);
    stage.handle(10, Input::Bytes(&vec![b'x'; (1 << 20) + 1]));
    assert_eq!(stage.actions.last(), Some(&Action::Kill { link: 0 }));
    assert!(stage.has(|kind| matches!(kind, Kind::Oversize { seen: 1_048_577, .. })));
}

#[test]
fn standard_error_is_bounded_and_what_is_dropped_is_counted() {
    let mut stage = Stage::new(ask);
    for _ in 0..3 {
        stage.handle(10, Input::Stderr(&vec![b'e'; 40 << 10]));
    }
    stage.handle(10, Input::Eof).handle(10, Input::Exited(Exited::Code(0)));
    let kept: usize = stage
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::Stderr { text, .. } => Some(text.len()),
            _ => None,
        })
        .sum();
    assert_eq!(kept, 64 << 10);
    assert!(stage.has(|kind| matches!(kind, Kind::Stderr { dropped: 57_344, .. })));
}

#[test]
fn scripts_whose_needs_are_not_met_are_not_played() {
    let plan = vec![
        def("provoked", &[Need::Provocation("large")], ask),
        def("exercised", &[Need::Exercise("streams")], ask),
        def("declared", &[Need::Declared("providers")], ask),
        def("free", &[], |_| Script::new("free")),
    ];
    let stage = Stage::planned(plan, BUDGET);
    let begun: Vec<String> = stage
        .events()
        .iter()
        .filter_map(|event| match &event.kind {
            Kind::Begin { script } => Some(script.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(begun, ["free"]);
}

#[test]
fn an_interruption_ends_the_recording_as_one() {
    let mut stage = Stage::new(ask);
    stage.handle(10, Input::Interrupted).handle(10, Input::Exited(Exited::Signal(9)));
    assert_eq!(stage.cut().as_deref(), Some("the user interrupted the run"));
    assert!(String::from_utf8(stage.record).unwrap().ends_with("{\"end\":\"interrupted\",\"events\":5}\n"));
}

#[test]
fn without_deadlines_answers_take_as_long_as_they_take() {
    let stage = Stage::planned(vec![def("ask", &[], ask)], Budget { deadlines: false, ..BUDGET });
    assert_eq!(stage.play.deadline(), None);
}

#[test]
fn a_fill_is_written_whole_and_recorded_small() {
    let mut stage = Stage::new(|_| {
        let fill = Payload::Fill { head: "{\"x\":\"".into(), byte: b'x', count: 100_000, tail: "\"}".into() };
        Script::new("x").step(Step::Send { label: None, frame: Outgoing::Payload(fill) })
    });
    stage.handle(10, Input::Wrote(1));
    assert_eq!(stage.written().len(), 100_009);
    assert!(stage.record.len() < 1_000);
}

/// The cause with which a wait for the answer to request 1 ends when the target says `line`; `None` if it goes on.
fn cut_by(build: fn(&Setting<'_>) -> Script, line: &str) -> Option<String> {
    let mut stage = Stage::new(build);
    stage.reads().says(line);
    assert!(stage.play.missed().is_none(), "what is hopeless is not tried again: {line}");
    stage.cut()
}

#[test]
fn an_answer_in_a_form_that_answers_nothing_ends_the_wait_for_it() {
    for (line, says) in [
        (r#"{"id":1,"result":{}}"#, "with what is no frame: jsonrpc is not \"2.0\""),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":1,"error":null}"#,
            "with what is no frame: both result and error",
        ),
        (
            r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
            "under the id \"1\", a string, and not under the number 1",
        ),
        (r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#, "under the id 1.0, and not under 1 as it was asked"),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":""}}"#,
            "under no id, and not under 1",
        ),
        (r#"{"jsonrpc":"2.0","result":{}}"#, "under no id, and not under 1"),
    ] {
        assert_eq!(cut_by(ask, line), Some(format!("the guest answered one {says}")), "{line}");
        assert_eq!(
            cut_by(|_| Script::new("x").fence(), line),
            Some(format!("the guest answered a fence {says}"))
        );
    }
}

#[test]
fn what_may_be_about_something_else_ends_no_wait() {
    for line in [
        r#"{"jsonrpc":"2.0","id":"2","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"1","method":"m"}"#,
        "[1]",
        "loading…",
    ] {
        assert_eq!(cut_by(ask, line), None, "{line}");
    }
    // A refusal under no id may be of what was told, or was sent wrong on purpose, until there was a silence.
    let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":""}}"#;
    assert_eq!(cut_by(|_| Script::new("x").notify("told", "n", "{}").fence(), refusal), None);
    let mut stage = Stage::new(|_| Script::new("x").notify("told", "n", "{}").quiet().fence());
    stage.reads().deadline(0).reads().says(refusal);
    assert_eq!(stage.cut().as_deref(), Some("the guest answered a fence under no id, and not under 1"));
    // That a bound in our own frame passed is what a verdict rests on, so it is waited for.
    let bounded: fn(&Setting<'_>) -> Script = |_| {
        let awaited = Step::Await { frame: Pattern::answer_to("one"), within: Within::Millis(100) };
        Script::new("x").request("one", "m", "{}").step(awaited)
    };
    assert_eq!(cut_by(bounded, r#"{"id":1,"result":{}}"#), None);
}

#[test]
fn an_echo_is_told_as_one() {
    let mut stage = Stage::new(ask);
    let sent = stage.written();
    stage.says(sent.trim_end());
    stage.says(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"our own, come back"}}"#);
    stage.deadline(0);
    assert_eq!(stage.cut(), None, "an answer that comes after an echo is an answer");

    let mut stage = Stage::new(ask);
    stage.says(sent.trim_end()).deadline(0);
    assert_eq!(stage.cut().as_deref(), Some("the guest sent one back as it had come: it echoes its input"));
}

#[test]
fn a_flood_and_a_recording_without_end_are_cut_off() {
    for (flood, record_bytes, says) in [
        (
            b"y\n".repeat(1 << 17),
            64 << 20,
            "the guest wrote 65536 lines and more, and not what was awaited; it wrote \"y\"",
        ),
        (b"[1]\n".repeat(1 << 15), 1 << 20, "the recording of this process reached its bound of 1024 KiB"),
    ] {
        let plan = vec![def("ask", &[], ask)];
        let mut stage = Stage::planned(plan, Budget { record_bytes, ..BUDGET });
        for chunk in flood.chunks(1 << 16) {
            stage.handle(10, Input::Bytes(chunk));
        }
        let cut = stage.cut().unwrap();
        assert!(cut.starts_with(says), "{cut}");
        assert!(stage.actions.ends_with(&[Action::Reading { link: 0, on: false }, Action::Kill { link: 0 }]));
        assert!(stage.record.len() < 3 << 20, "{}", stage.record.len());
        stage.handle(10, Input::Bytes(&flood)).handle(10, Input::Exited(Exited::Signal(9)));
        assert!(stage.record.len() < 3 << 20, "{}", stage.record.len());
        assert_eq!(stage.actions.last(), Some(&Action::Done));
    }
}

#[test]
fn a_target_that_does_not_read_is_told_as_one() {
    let mut stage = Stage::new(ask);
    stage.handle(10, Input::Wrote(20)).deadline(0);
    let says = "no answer to one in 5 s; it did not read the last 30 bytes that were written to it";
    assert_eq!(stage.cut().as_deref(), Some(says));
    assert!(stage.has(|kind| matches!(kind, Kind::Blocked { bytes: 30 })));
    let missed = Missed { what: "m".to_owned(), script: "test".to_owned(), within: 5_000_000 };
    assert_eq!(stage.play.missed(), Some(&missed));
}

#[test]
fn a_target_that_reads_slowly_has_its_time_from_the_last_byte_that_it_took() {
    let mut stage = Stage::new(ask);
    for _ in 0..10 {
        stage.handle(4_000_000, Input::Wrote(1)).handle(0, Input::Tick);
        assert_eq!(stage.cut(), None);
    }
    stage.deadline(0);
    assert!(stage.cut().unwrap().starts_with("no answer to one in 5 s; it did not read the last "));
    // There is an end to it, though.
    let mut stage = Stage::new(ask);
    for _ in 0..20 {
        stage.handle(4_000_000, Input::Wrote(1)).handle(0, Input::Tick);
    }
    assert!(stage.now > BUDGET.settled_most && stage.cut().is_some());
}

#[test]
fn a_target_that_needs_eight_seconds_to_start_passes_where_thirty_are_allowed() {
    let opening: fn(&Setting<'_>) -> Script = |_| {
        Script::new("start")
            .request("initialize", "m", "{}")
            .step(Step::Await { frame: Pattern::answer_to("initialize"), within: Within::Start })
    };
    for (first_byte, expected) in [(5_000_000, false), (30_000_000, true)] {
        let mut stage = Stage::planned(vec![def("start", &[], opening)], Budget { first_byte, ..BUDGET });
        stage.reads();
        if stage.play.deadline().unwrap() > 8_000_000 {
            stage.handle(8_000_000, Input::Bytes(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"));
        } else {
            stage.deadline(0);
        }
        assert_eq!(stage.play.is_open(), expected);
        assert_eq!(stage.cut().is_none(), expected);
    }
}

#[test]
fn a_fence_behind_a_large_frame_counts_from_when_it_was_accepted() {
    let mut stage = Stage::new(|_| Script::new("x").fence());
    stage.handle(4_000_000, Input::Wrote(1_000));
    assert_eq!(stage.play.deadline(), Some(9_000_000));
}
