//! Probes on both sides: what they are told and tell, and how they come to be links.
//!
//! In most of these tests the process on link 0 is the probe itself: what goes into one link comes out of the other.

use std::{
    env,
    ffi::OsString,
    fs,
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, TcpListener},
    os::unix::net::{UnixListener, UnixStream},
    process::ExitCode,
    time::{Duration, Instant},
};

use bytes::Bytes;
use rustix::process::{Pid, Signal};
use sidecert_proto::machine::{Action, Exited, Input, LinkId, Order};
use sidecert_runner::{
    Links, Probe, Probes, Process, Spawn,
    budget::{HELLO_WITHIN, PROBE_WINDOW_BYTES},
    probe,
};
use tempfile::TempDir;

use crate::{
    Test,
    player::{CLOSE, Cast, KILL, Player, Told, assert_ends, spawn, write},
};

pub(crate) const WORD: &str = "__probe";

pub(crate) const TESTS: &[Test] = &[
    (
        "a_probe_does_what_it_is_told_and_tells_what_it_sees",
        a_probe_does_what_it_is_told_and_tells_what_it_sees,
    ),
    ("a_pong_comes_after_what_was_written_before", a_pong_comes_after_what_was_written_before),
    ("a_probe_tells_what_it_found", a_probe_tells_what_it_found),
    ("an_end_comes_after_what_was_written_before", an_end_comes_after_what_was_written_before),
    (
        "who_writes_errors_that_nobody_reads_writes_nothing_else",
        who_writes_errors_that_nobody_reads_writes_nothing_else,
    ),
    ("a_probe_that_cannot_write_is_killed_at_once", a_probe_that_cannot_write_is_killed_at_once),
    ("a_closed_input_is_seen_by_who_writes", a_closed_input_is_seen_by_who_writes),
    ("an_output_that_nobody_reads_breaks_the_link", an_output_that_nobody_reads_breaks_the_link),
    ("parts_are_read_apart_through_a_probe", parts_are_read_apart_through_a_probe),
    ("a_flood_both_ways_takes_no_memory", a_flood_both_ways_takes_no_memory),
    ("not_reading_holds_a_host_up", not_reading_holds_a_host_up),
    ("what_a_probe_starts_holds_its_pipes", what_a_probe_starts_holds_its_pipes),
    ("a_host_that_is_killed_takes_its_probes_with_it", a_host_that_is_killed_takes_its_probes_with_it),
    ("one_name_may_come_twice", one_name_may_come_twice),
    ("the_end_of_a_probe_is_told_before_a_tick", the_end_of_a_probe_is_told_before_a_tick),
    ("all_that_a_probe_said_is_told_before_a_tick", all_that_a_probe_said_is_told_before_a_tick),
    ("a_probe_that_says_what_it_may_not_is_cut_off", a_probe_that_says_what_it_may_not_is_cut_off),
    ("who_does_not_know_the_word_stays_outside", who_does_not_know_the_word_stays_outside),
    ("a_probe_without_a_harness_says_so_and_ends", a_probe_without_a_harness_says_so_and_ends),
    ("a_probe_ends_with_its_harness", a_probe_ends_with_its_harness),
    ("a_probe_may_connect_over_tcp", a_probe_may_connect_over_tcp),
];

/// Is a probe.
#[expect(clippy::print_stderr, reason = "a probe says on its standard error why it ends")]
pub(crate) fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let name = args.next().unwrap().into_string().unwrap();
    let shown = Box::new(|name: &str| name == "SHOWN");
    match probe::probe(&Probe { name, at: None, token: None, shown }) {
        Ok(probe::Ended::Exit(code)) => code.into(),
        Ok(probe::Ended::Abort) => std::process::abort(),
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::from(70)
        }
    }
}

/// A folder, and the links of a host that is this command; `$0` of a shell is this executable.
struct Stage {
    probes: Probes,
    spawn: Spawn,
    _folder: TempDir,
}

impl Stage {
    fn of(argv: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        let probes = Probes::listen(folder.path()).unwrap();
        let mut spawn = spawn(&[]);
        let us = env::current_exe().unwrap().into_os_string();
        let words = argv.iter().map(|word| if *word == "$0" { us.clone() } else { word.into() });
        spawn.argv = words.collect();
        spawn.env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("SHOWN".into(), "yes".into())];
        spawn.env.extend(probes.environment().into_iter().map(|(name, value)| (name.into(), value.into())));
        Self { probes, spawn, _folder: folder }
    }

    fn probe() -> Self {
        Self::of(&["$0", WORD, "one"])
    }

    fn shell(command: &str) -> Self {
        Self::of(&["/bin/sh", "-c", command, "$0"])
    }

    fn play(self, cast: Cast<impl FnMut(&[Told], LinkId, &Input<'_>) -> Vec<Action>>) -> Vec<Told> {
        let process = Process::spawn(&self.spawn).unwrap();
        cast.play(Links::host(process, self.probes))
    }
}

fn write_to(link: LinkId, bytes: impl Into<Bytes>) -> Action {
    Action::Write { link, bytes: bytes.into(), after_drain: false }
}

fn tell(order: Order) -> Action {
    Action::Tell { link: 1, order }
}

fn send(pid: i32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn a_probe_does_what_it_is_told_and_tells_what_it_sees() {
    let mut steps = Vec::new();
    let cast = Cast::new(|told, link, input| {
        steps.push((link, format!("{input:?}")));
        match (link, input) {
            (1, Input::Launched(_)) => vec![write("in")],
            (1, Input::Bytes(b"in")) => vec![write_to(1, "out")],
            (0, Input::Bytes(b"out")) => vec![tell(Order::Stderr("err".into()))],
            (0, Input::Stderr(b"err")) => vec![tell(Order::IgnoreTerm), tell(Order::Ping)],
            (1, Input::Pong) => {
                send(told[1].launched.as_ref().unwrap().pid, Signal::TERM);
                Vec::new()
            }
            (1, Input::Signal(15)) => vec![CLOSE],
            (1, Input::Eof) => vec![Action::Close { link: 1 }],
            (0, Input::Eof) => vec![tell(Order::Exit(3))],
            _ => Vec::new(),
        }
    });
    let told = Stage::probe().play(cast);
    assert_eq!(told[0].order, ["wrote", "bytes", "stderr", "eof", "exited"], "{steps:?}");
    assert_eq!(told[1].order, ["launched", "bytes", "wrote", "pong", "signal", "eof", "exited"], "{steps:?}");
    assert_eq!((told[0].exited, told[1].exited), (Some(Exited::Code(3)), Some(Exited::Unknown)));
    assert_eq!((told[1].wrote, told[1].pongs, told[1].signals.as_slice()), (3, 1, &[15][..]));
}

fn a_pong_comes_after_what_was_written_before() {
    const ROUNDS: usize = 300;
    let mut rounds = 0;
    let mut sent = 0;
    let cast = Cast::new(|told, link, input| {
        let next = match (link, input) {
            (1, Input::Launched(_)) => true,
            // All of it is in the pipe, or beyond.
            (0, Input::Wrote(_)) if told[0].wrote == sent => return vec![tell(Order::Ping)],
            (1, Input::Pong) => {
                assert_eq!(told[1].out_bytes, sent, "round {rounds}");
                true
            }
            _ => false,
        };
        if !next {
            return Vec::new();
        }
        rounds += 1;
        match rounds {
            1..ROUNDS => {
                let bytes = 1 + rounds * 97 % 20_000;
                sent += bytes;
                vec![write(vec![b'x'; bytes])]
            }
            ROUNDS => vec![CLOSE, tell(Order::CloseInput), tell(Order::Ping)],
            _ => vec![tell(Order::Exit(0))],
        }
    });
    let told = Stage::probe().play(cast);
    assert_eq!((told[1].pongs, told[0].exited), (ROUNDS, Some(Exited::Code(0))));
}

fn a_probe_tells_what_it_found() {
    let stage = Stage::probe();
    let cast = Cast::new(|_, _, input| match input {
        Input::Launched(_) => vec![tell(Order::Abort)],
        _ => Vec::new(),
    });
    let (argv, token) = (stage.spawn.argv.clone(), stage.probes.environment()[1].1.clone());
    let told = stage.play(cast);
    assert_eq!(told[0].exited, Some(Exited::Signal(6)));
    let found = told[1].launched.as_ref().unwrap();
    assert_eq!((found.name.as_str(), found.spawned), ("one", false));
    assert_eq!(found.argv.iter().map(OsString::from).collect::<Vec<_>>(), argv);
    assert_eq!(found.cwd, env::current_dir().unwrap().to_str().unwrap());
    assert!(found.parent == found.session && found.pid != found.parent, "{found:?}");
    assert!(found.descriptors.starts_with(&[0, 1, 2]));
    let names: Vec<&str> = found.env.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["PATH", "SHOWN", "SIDECERT_PROBE", "SIDECERT_PROBE_TOKEN"]);
    let shown: Vec<_> = found.env.iter().filter_map(|(_, value)| value.as_deref()).collect();
    assert_eq!((shown, token.len()), (vec!["yes"], 32));
}

fn an_end_comes_after_what_was_written_before() {
    let cast = Cast::new(|_, _, input| match input {
        Input::Launched(_) => {
            let writes = (0..300).map(|_| write_to(1, vec![b'x'; 1000]));
            let errors = Order::Stderr(vec![b'e'; 100_000].into());
            writes.chain([tell(errors), tell(Order::Exit(0)), write_to(1, "too late")]).collect()
        }
        _ => Vec::new(),
    });
    let told = Stage::probe().play(cast);
    assert_eq!((told[0].out_bytes, told[0].error_bytes), (300_000, 100_000));
    assert_eq!((told[0].exited, told[1].wrote), (Some(Exited::Code(0)), 300_000));
}

fn who_writes_errors_that_nobody_reads_writes_nothing_else() {
    for left in [false, true] {
        let mut written = false;
        let mut at_the_tick = None;
        let cast = Cast::new(|told, link, input| match (link, input) {
            (1, Input::Launched(_)) => {
                let leaves = left.then_some(Action::LeaveErrors { link: 0 });
                let errors = Order::Stderr(vec![b'e'; 1 << 20].into());
                leaves.into_iter().chain([tell(errors), write_to(1, "later")]).collect()
            }
            (1, Input::Wrote(_)) if !std::mem::replace(&mut written, true) => {
                vec![tell(Order::Exit(0))]
            }
            (0, Input::Tick) => {
                at_the_tick = Some((told[0].out_bytes, told[0].error_bytes));
                if left { vec![Action::Kill { link: 1 }] } else { Vec::new() }
            }
            _ => Vec::new(),
        });
        let due = Duration::from_millis(if left { 300 } else { 60_000 });
        let told = Stage::probe().play(cast.due_after_launch(due));
        if left {
            assert_eq!((at_the_tick, written), (Some((0, 0)), false));
        } else {
            assert_eq!((told[0].out_bytes, told[0].error_bytes), (5, 1 << 20));
        }
    }
}

fn a_probe_that_cannot_write_is_killed_at_once() {
    let mut killed = false;
    let cast = Cast::new(|told, link, input| match input {
        Input::Launched(_) => {
            vec![Action::Reading { link: 0, on: false }, write_to(1, vec![0; 200_000]), tell(Order::Ping)]
        }
        // It is heard although its output is stuck: the pipe takes all of 64 KiB before it is full.
        Input::Wrote(_) | Input::Pong
            if link == 1 && told[1].wrote >= 64 << 10 && told[1].pongs == 1 && !killed =>
        {
            killed = true;
            vec![Action::Kill { link: 1 }]
        }
        _ => Vec::new(),
    });
    let told = Stage::probe().play(cast);
    assert_eq!((told[0].exited, told[1].exited), (Some(Exited::Code(137)), Some(Exited::Unknown)));
    assert!(told[1].wrote < 200_000 && told[1].pongs == 1);
}

fn a_closed_input_is_seen_by_who_writes() {
    let cast = Cast::new(|_, link, input| match (link, input) {
        (1, Input::Launched(_)) => vec![tell(Order::CloseInput), write(vec![0; 1 << 20])],
        (0, Input::Broken) => vec![tell(Order::Exit(0))],
        _ => Vec::new(),
    });
    let told = Stage::probe().play(cast);
    assert!(told[0].order.contains(&"broken") && told[0].wrote < 1 << 20);
    assert!(!told[1].order.contains(&"eof"));
}

fn an_output_that_nobody_reads_breaks_the_link() {
    let cast = Cast::new(|_, link, input| match (link, input) {
        (1, Input::Launched(_)) => vec![write_to(1, vec![0; 1 << 20])],
        (1, Input::Broken) => vec![write_to(1, "nowhere to go"), tell(Order::Exit(0))],
        _ => Vec::new(),
    });
    let told = Stage::shell("\"$0\" __probe one | true").play(cast);
    assert!(told[1].order.contains(&"broken") && told[1].wrote < 1 << 20);
    assert_eq!(told[1].exited, Some(Exited::Unknown));
}

fn parts_are_read_apart_through_a_probe() {
    let parts = [("a", 5), ("b", 1), ("c", 4096), ("d", 17), ("e", 1)];
    let cast = Cast::new(|_, _, input| match input {
        Input::Launched(_) => {
            let part = |(letter, n): (&str, usize)| letter.repeat(n).into();
            let parts = parts.map(|it| Action::Write { link: 1, bytes: part(it), after_drain: true });
            parts.into_iter().chain([Action::Close { link: 1 }, tell(Order::Exit(0))]).collect()
        }
        _ => Vec::new(),
    });
    let told = Stage::shell("\"$0\" __probe one | \"$0\" __guest reads 65536").play(cast);
    assert_eq!(told[0].lines(), ["5 a", "1 b", "4096 c", "17 d", "1 e"]);
}

fn a_flood_both_ways_takes_no_memory() {
    const EACH: usize = 1000;
    const ALL: usize = 64_000 * EACH;
    /// Keeps both floods going.
    #[derive(Default)]
    struct Floods {
        told: [Told; 2],
        offered: [usize; 2],
        read: [usize; 2],
        peak_kib: usize,
    }
    impl sidecert_proto::machine::Machine for Floods {
        fn handle(&mut self, link: LinkId, input: Input<'_>, _now: u64) {
            match input {
                // So that none of it is kept.
                Input::Bytes(bytes) => self.read[link] += bytes.len(),
                input => self.told[link].note(&input),
            }
        }

        fn poll(&mut self, _now: u64) -> Option<Action> {
            let pid = self.told[1].launched.as_ref()?.pid;
            if self.told.iter().all(|told| told.exited.is_some()) {
                return Some(Action::Done);
            }
            let ahead = |link: usize| self.offered[link] - self.told[link].wrote;
            if let Some(link) = (0..2).find(|&link| self.offered[link] < ALL && ahead(link) < 200 * EACH) {
                self.offered[link] += EACH;
                return Some(write_to(link, Bytes::from_static(&[b'x'; EACH])));
            }
            if self.read == [ALL; 2] && self.peak_kib == 0 {
                self.peak_kib = peak_kib(&pid.to_string());
                return Some(tell(Order::Exit(0)));
            }
            None
        }

        fn deadline(&self) -> Option<u64> {
            None
        }
    }
    let stage = Stage::probe();
    let process = Process::spawn(&stage.spawn).unwrap();
    let mut floods = Floods::default();
    let before = peak_kib("self");
    let (_say, heard) = tokio::sync::watch::channel(sidecert_runner::Stop::No);
    let links = Links::host(process, stage.probes);
    sidecert_runner::drive_here(&mut floods, links, heard, &mut |_| Ok(())).unwrap();
    assert_eq!((floods.read, floods.told[1].wrote), ([ALL; 2], ALL));
    assert!(floods.peak_kib < 16 << 10, "the probe took {} KiB", floods.peak_kib);
    let grown = peak_kib("self") - before;
    assert!(grown < 32 << 10, "{grown} KiB more than before");
}

fn peak_kib(pid: &str) -> usize {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn not_reading_holds_a_host_up() {
    let mut at_the_tick = None;
    let mut off = false;
    let cast = Cast::new(|told, link, input| match (link, input) {
        (1, Input::Launched(_)) => vec![write(vec![b'x'; 1 << 20])],
        (1, Input::Bytes(_)) if !off => {
            off = true;
            vec![Action::Reading { link: 1, on: false }]
        }
        (0, Input::Tick) => {
            at_the_tick = Some((told[0].wrote, told[1].out_bytes));
            vec![Action::Reading { link: 1, on: true }, CLOSE]
        }
        (1, Input::Eof) => vec![tell(Order::Exit(0))],
        _ => Vec::new(),
    });
    let told = Stage::probe().play(cast.due_after_launch(Duration::from_millis(300)));
    let (wrote, read) = at_the_tick.unwrap();
    // What a pipe holds, what the probe has read ahead, and what it may be busy with.
    assert!(read > 0 && wrote <= read + PROBE_WINDOW_BYTES + (64 << 10), "{wrote} against {read}");
    assert_eq!(told[1].out_bytes, 1 << 20);
}

fn what_a_probe_starts_holds_its_pipes() {
    let cast = Cast::new(|told, link, input| match (link, input) {
        (1, Input::Launched(_)) => vec![tell(Order::Spawn { session: false })],
        (2, Input::Launched(_)) => vec![tell(Order::Spawn { session: true })],
        (3, Input::Launched(_)) => vec![tell(Order::Exit(0))],
        (1, Input::Exited(_)) => vec![write_to(2, "2"), write_to(3, "3")],
        (0, Input::Bytes(_)) if told[0].out_bytes == 2 => {
            [2, 3].map(|link| Action::Tell { link, order: Order::Exit(0) }).into()
        }
        _ => Vec::new(),
    });
    // The shell is there to the end, so that nothing is taken for left behind.
    let told = Stage::shell("(\"$0\" __probe one); cat").play(cast.first([CLOSE]));
    assert_eq!(told.len(), 4);
    let launched: Vec<_> = told[1..].iter().map(|told| told.launched.clone().unwrap()).collect();
    assert_eq!(launched.iter().map(|it| it.spawned).collect::<Vec<_>>(), [false, true, true]);
    assert!(launched.iter().all(|it| it.name == "one" && it.argv == launched[0].argv));
    assert_eq!([launched[1].parent, launched[2].parent], [launched[0].pid; 2]);
    assert_eq!(launched[1].session, launched[0].session);
    assert_eq!(launched[2].session, launched[2].pid);
    assert!(told.iter().all(|told| told.exited.is_some()));
}

fn a_host_that_is_killed_takes_its_probes_with_it() {
    let cast = Cast::new(|told, _, input| match input {
        Input::Launched(_) if told.len() == 3 => vec![KILL],
        _ => Vec::new(),
    });
    let told = Stage::shell("\"$0\" __probe one & \"$0\" __probe two & wait").play(cast);
    assert_eq!(told[0].exited, Some(Exited::Signal(9)));
    assert_eq!([told[1].exited, told[2].exited], [Some(Exited::Unknown); 2]);
}

fn one_name_may_come_twice() {
    let cast = Cast::new(|told, _, input| match input {
        Input::Launched(_) if told.len() == 3 => {
            [1, 2].map(|link| Action::Tell { link, order: Order::Exit(0) }).into()
        }
        _ => Vec::new(),
    });
    let told = Stage::shell("\"$0\" __probe one & \"$0\" __probe one & wait").play(cast);
    let launched = |link: usize| told[link].launched.as_ref().unwrap();
    assert_eq!((launched(1).name.as_str(), launched(2).name.as_str()), ("one", "one"));
    assert_ne!(launched(1).pid, launched(2).pid);
    assert_eq!(told[0].exited, Some(Exited::Code(0)));
}

fn the_end_of_a_probe_is_told_before_a_tick() {
    /// Is held up past its deadline while a probe says its last word and ends.
    #[derive(Default)]
    struct HeldUp {
        heard: Vec<&'static str>,
        deadline: Option<u64>,
    }
    impl sidecert_proto::machine::Machine for HeldUp {
        fn handle(&mut self, link: LinkId, input: Input<'_>, now: u64) {
            match (link, input) {
                (1, Input::Launched(launched)) => {
                    send(launched.pid, Signal::KILL);
                    assert_ends(launched.pid);
                    self.deadline = Some(now);
                }
                (1, Input::Exited(_)) => self.heard.push("exited"),
                (0, Input::Tick) => {
                    self.deadline = None;
                    self.heard.push("tick");
                }
                _ => {}
            }
        }

        fn poll(&mut self, _now: u64) -> Option<Action> {
            self.heard.contains(&"tick").then_some(Action::Done)
        }

        fn deadline(&self) -> Option<u64> {
            self.deadline
        }
    }
    let stage = Stage::probe();
    let process = Process::spawn(&stage.spawn).unwrap();
    let mut machine = HeldUp::default();
    let (_say, heard) = tokio::sync::watch::channel(sidecert_runner::Stop::No);
    let links = Links::host(process, stage.probes);
    sidecert_runner::drive_here(&mut machine, links, heard, &mut |_| Ok(())).unwrap();
    assert_eq!(machine.heard, ["exited", "tick"]);
}

/// The test itself in the place of a probe, which has said hello.
fn pretend(probes: &Probes) -> UnixStream {
    let environment = probes.environment();
    let mut stream = UnixStream::connect(environment[0].1.strip_prefix("unix:").unwrap()).unwrap();
    let hello = format!(
        r#"{{"probe":1,"token":"{}","name":"x","spawned":false,"pid":1,"parent":1,"session":1,"argv":[],"cwd":"","env":{{}},"descriptors":[]}}"#,
        environment[1].1
    );
    stream.write_all(&frame(128, hello.as_bytes())).unwrap();
    stream
}

fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap().to_le_bytes();
    [&[kind][..], &length, bytes].concat()
}

fn all_that_a_probe_said_is_told_before_a_tick() {
    /// Is held up past its deadline while a probe says everything at once and ends.
    struct HeldUp {
        probe: Option<UnixStream>,
        heard: Vec<String>,
        deadline: Option<u64>,
        todo: Option<Action>,
    }
    impl sidecert_proto::machine::Machine for HeldUp {
        fn handle(&mut self, link: LinkId, input: Input<'_>, now: u64) {
            match (link, &input) {
                (1, Input::Launched(_)) => self.todo = Some(write("x")),
                // By then it has been given credit.
                (0, Input::Bytes(_)) => {
                    let said =
                        [(129, &b"last"[..]), (136, &[]), (135, &[15, 0, 0, 0]), (130, &[]), (136, &[])];
                    let said = said.map(|(kind, bytes)| frame(kind, bytes)).concat();
                    let mut probe = self.probe.take().unwrap();
                    probe.write_all(&said).unwrap();
                    // Closing it would not do: a process that another test starts right now may still have it.
                    probe.shutdown(Shutdown::Both).unwrap();
                    self.deadline = Some(now);
                }
                (1, _) => self.heard.push(format!("{input:?}")),
                (0, Input::Tick) => {
                    self.deadline = None;
                    self.heard.push("Tick".into());
                    self.todo = Some(Action::Done);
                }
                _ => {}
            }
        }

        fn poll(&mut self, _now: u64) -> Option<Action> {
            self.todo.take()
        }

        fn deadline(&self) -> Option<u64> {
            self.deadline
        }
    }
    let stage = Stage::of(&["/bin/cat"]);
    let probe = Some(pretend(&stage.probes));
    let mut machine = HeldUp { probe, heard: Vec::new(), deadline: None, todo: None };
    let process = Process::spawn(&stage.spawn).unwrap();
    let (_say, heard) = tokio::sync::watch::channel(sidecert_runner::Stop::No);
    let links = Links::host(process, stage.probes);
    sidecert_runner::drive_here(&mut machine, links, heard, &mut |_| Ok(())).unwrap();
    let bytes = format!("Bytes({:?})", b"last");
    assert_eq!(machine.heard, [&*bytes, "Pong", "Signal(15)", "Eof", "Pong", "Exited(Unknown)", "Tick"]);
}

fn a_probe_that_says_what_it_may_not_is_cut_off() {
    let table: [(&str, Vec<u8>); 5] = [
        ("more than was to be written", frame(131, &[1, 0, 0, 0])),
        ("more than there is credit for", frame(129, &vec![b'x'; PROBE_WINDOW_BYTES + 1])),
        ("hello once more", frame(128, b"{}")),
        ("an end after the end", [frame(130, &[]), frame(130, &[])].concat()),
        ("no frame", b"hello, world".to_vec()),
    ];
    for (what, said) in table {
        let stage = Stage::of(&["/bin/cat"]);
        let mut probe = pretend(&stage.probes);
        let cast = Cast::new(|_, link, input| match (link, input) {
            (1, Input::Launched(_)) => {
                probe.write_all(&said).unwrap();
                Vec::new()
            }
            (1, Input::Exited(_)) => vec![write_to(1, "nobody hears it"), tell(Order::Ping), CLOSE],
            _ => Vec::new(),
        });
        let told = stage.play(cast);
        assert_eq!(told[1].exited, Some(Exited::Unknown), "{what}");
        assert_eq!(told[1].out_bytes, 0, "{what}");
    }
}

fn who_does_not_know_the_word_stays_outside() {
    let stage = Stage::of(&["/bin/cat"]);
    let path = stage.probes.environment()[0].1.strip_prefix("unix:").unwrap().to_owned();
    let hello = br#"{"probe":1,"token":"","name":"x"}"#;
    let framed = frame(128, hello);
    let said: [&[u8]; 4] = [&framed, b"GET / HTTP/1.1\r\n", &[131, 4, 0, 0, 0, 1, 0, 0, 0], b""];
    // More than may wait at once, all silent but for the first of them.
    let connect = |said: &&[u8]| {
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(said).unwrap();
        stream.set_nonblocking(true).unwrap();
        stream
    };
    let mut outside: Vec<UnixStream> = said.iter().chain([&said[3]; 20]).map(connect).collect();
    let began = Instant::now();
    let (mut sent_away, mut is_late) = (0, false);
    let cast = Cast::new(|_, _, input| {
        if !matches!(input, Input::Tick) {
            return Vec::new();
        }
        is_late = began.elapsed() > 2 * HELLO_WITHIN;
        for stream in &mut outside {
            match stream.read(&mut [0]) {
                Ok(0) => sent_away += 1,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => sent_away += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                other => panic!("{other:?}"),
            }
        }
        vec![CLOSE]
    });
    let told = stage.play(cast.due_in(HELLO_WITHIN + Duration::from_millis(500)));
    assert_eq!((told.len(), told[0].exited), (1, Some(Exited::Code(0))));
    // Those that had to wait until a place was free have time left.
    assert!(sent_away >= 4 && (is_late || sent_away < outside.len()), "{sent_away}");
    assert!(fs::metadata(path).is_err());
}

/// What a probe with these variables says on standard error, and its exit code.
fn alone(env: &[(&str, &str)], before: impl FnOnce()) -> (String, Option<Exited>) {
    let mut spawn = Stage::probe().spawn;
    spawn.env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let process = Process::spawn(&spawn).unwrap();
    before();
    let told = Player::new(|_, _| Vec::new()).play_on(process);
    (String::from_utf8(told.errors).unwrap(), told.exited)
}

fn a_probe_without_a_harness_says_so_and_ends() {
    let folder = TempDir::new().unwrap();
    let nowhere = format!("unix:{}", folder.path().join("nowhere").display());
    let table: [(&[(&str, &str)], &str); 6] = [
        (&[], "SIDECERT_PROBE is not set"),
        (&[("SIDECERT_PROBE", &nowhere)], "SIDECERT_PROBE_TOKEN is not set"),
        (&[("SIDECERT_PROBE", &nowhere), ("SIDECERT_PROBE_TOKEN", "t")], "nobody listens at "),
        (&[("SIDECERT_PROBE", "tcp:127.0.0.1:1"), ("SIDECERT_PROBE_TOKEN", "t")], "nobody listens at "),
        (
            &[("SIDECERT_PROBE", "tcp:192.0.2.1:1"), ("SIDECERT_PROBE_TOKEN", "t")],
            "\"tcp:192.0.2.1:1\" is no",
        ),
        (&[("SIDECERT_PROBE", "x\ny"), ("SIDECERT_PROBE_TOKEN", "t")], "\"x\\ny\" is no address"),
    ];
    for (env, begins) in table {
        let (said, exited) = alone(env, || {});
        assert!(said.starts_with(begins) && said.lines().count() == 1, "{said:?}");
        assert_eq!(exited, Some(Exited::Code(70)), "{said}");
    }
}

fn a_probe_ends_with_its_harness() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let at = format!("unix:{}", path.display());
    let ends: [(&[u8], &str); 3] = [
        (b"", "the harness has closed the connection\n"),
        (b"hello, world\n", "the harness says what this version of sidecert does not know\n"),
        // Nothing may be said of it before the first credit, and not more than the window.
        (&[6, 4, 0, 0, 0, 1, 0, 1, 0], "the harness says what this version of sidecert does not know\n"),
    ];
    for (says, expected) in ends {
        let (said, exited) = alone(&[("SIDECERT_PROBE", &at), ("SIDECERT_PROBE_TOKEN", "t")], || {
            let (mut stream, _) = listener.accept().unwrap();
            read_hello(&mut stream);
            stream.write_all(says).unwrap();
            if !says.is_empty() {
                // Not before it has been heard.
                stream.read_exact(&mut [0]).unwrap_err();
            }
        });
        assert_eq!((said.as_str(), exited), (expected, Some(Exited::Code(70))));
    }
}

fn a_probe_may_connect_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("tcp:{}", listener.local_addr().unwrap());
    let (said, exited) = alone(&[("SIDECERT_PROBE", &at), ("SIDECERT_PROBE_TOKEN", "t")], || {
        let (mut stream, _) = listener.accept().unwrap();
        let hello = read_hello(&mut stream);
        assert!(hello.contains(r#""probe":1"#) && hello.contains(r#""token":"t""#), "{hello}");
        stream.write_all(&[11, 0, 0, 0, 0]).unwrap();
        let mut pong = [0; 5];
        stream.read_exact(&mut pong).unwrap();
        assert_eq!(pong, [136, 0, 0, 0, 0]);
        stream.write_all(&[7, 1, 0, 0, 0, 5]).unwrap();
        stream.read_exact(&mut [0]).unwrap_err();
    });
    assert_eq!((said.as_str(), exited), ("", Some(Exited::Code(5))));
}

fn read_hello(stream: &mut impl std::io::Read) -> String {
    let mut header = [0; 5];
    stream.read_exact(&mut header).unwrap();
    let [kind, length @ ..] = header;
    assert_eq!(kind, 128);
    let mut hello = vec![0; u32::from_le_bytes(length) as usize];
    stream.read_exact(&mut hello).unwrap();
    String::from_utf8(hello).unwrap()
}
