//! What a machine is told, and what becomes of what it asks for.

use std::{
    ffi::OsString,
    fs, io,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use rustix::process::{Pid, Signal};
use sidecert_proto::machine::{Action, Exited, Input};
use sidecert_runner::{
    DriveFault, Ended, How, Links, Process, Stop,
    budget::{LEFT_NAMED_MAX, WRITE_QUEUE_BYTES},
    drive_here,
};
use tokio::sync::watch;

use crate::{
    Test,
    player::{CLOSE, KILL, Player, Told, assert_ends, assert_gone, spawn, write, write_after_drain},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_round_trip_ends_in_order", a_round_trip_ends_in_order),
    ("two_links_are_told_apart", two_links_are_told_apart),
    ("a_mock_on_its_own_stdio_flushes_before_it_exits", a_mock_on_its_own_stdio_flushes_before_it_exits),
    ("an_exit_that_reads_nothing_breaks_the_link", an_exit_that_reads_nothing_breaks_the_link),
    ("a_flood_of_stderr_stalls_nobody", a_flood_of_stderr_stalls_nobody),
    ("a_flood_takes_no_memory", a_flood_takes_no_memory),
    ("a_flood_does_not_delay_a_tick", a_flood_does_not_delay_a_tick),
    ("what_was_said_before_a_tick_is_told_before_it", what_was_said_before_a_tick_is_told_before_it),
    ("not_reading_holds_a_guest_up", not_reading_holds_a_guest_up),
    ("writes_are_asked_for_as_they_are_taken", writes_are_asked_for_as_they_are_taken),
    ("a_peer_that_reads_nothing_can_be_killed", a_peer_that_reads_nothing_can_be_killed),
    ("parts_are_read_apart", parts_are_read_apart),
    ("parts_after_a_full_pipe_are_read_apart", parts_after_a_full_pipe_are_read_apart),
    ("the_last_part_may_be_large", the_last_part_may_be_large),
    ("what_is_left_is_named_and_killed", what_is_left_is_named_and_killed),
    ("orphans_are_left_too", orphans_are_left_too),
    ("what_is_left_beyond_the_bound_is_counted", what_is_left_beyond_the_bound_is_counted),
    ("what_ends_with_its_parent_is_not_left", what_ends_with_its_parent_is_not_left),
    ("a_kill_leaves_nothing", a_kill_leaves_nothing),
    ("a_kill_is_no_matter_of_consent", a_kill_is_no_matter_of_consent),
    ("a_launcher_that_is_killed_is_stood_in_for", a_launcher_that_is_killed_is_stood_in_for),
    ("a_launcher_that_is_stopped_is_stood_in_for", a_launcher_that_is_stopped_is_stood_in_for),
    ("signals_stop_us_unless_they_were_ignored", signals_stop_us_unless_they_were_ignored),
    ("a_harness_that_is_killed_takes_all_with_it", a_harness_that_is_killed_takes_all_with_it),
    ("a_machine_is_interrupted_once_and_stopped_at_once", a_machine_is_interrupted_once_and_stopped_at_once),
    ("an_error_of_the_sink_ends_all", an_error_of_the_sink_ends_all),
    ("a_panic_of_the_machine_ends_all", a_panic_of_the_machine_ends_all),
    ("a_machine_that_waits_for_nothing_ends", a_machine_that_waits_for_nothing_ends),
];

fn nothing(_: &Told, _: &Input<'_>) -> Vec<Action> {
    Vec::new()
}

/// Lets the guest go on to its end once that many processes have told their ids.
fn close_after(pids: usize) -> impl FnMut(&Told, &Input<'_>) -> Vec<Action> {
    let mut closed = false;
    move |told, _| {
        let now = !closed && told.pids(pids).is_some();
        closed |= now;
        if now { vec![CLOSE] } else { Vec::new() }
    }
}

fn a_round_trip_ends_in_order() {
    let sent: Vec<u8> = (0..1_000_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let parts = sent.chunks(777).map(|part| write(part.to_vec()));
    let told = Player::new(nothing).first(parts.chain([CLOSE])).play(&["cat"]);
    assert!(told.out == sent && told.wrote == sent.len());
    assert_eq!(told.order, ["wrote", "bytes", "eof", "exited"]);
    assert_eq!(told.exited, Some(Exited::Code(0)));
}

fn two_links_are_told_apart() {
    struct Two(Vec<Action>, [Option<Exited>; 2]);
    impl sidecert_proto::machine::Machine for Two {
        fn handle(&mut self, link: usize, input: Input<'_>, _now: u64) {
            if let Input::Exited(exited) = input {
                self.1[link] = Some(exited);
                if self.1.iter().all(Option::is_some) {
                    self.0.push(Action::Done);
                }
            }
        }

        fn poll(&mut self, _now: u64) -> Option<Action> {
            self.0.pop()
        }

        fn deadline(&self) -> Option<u64> {
            None
        }
    }
    let mut machine = Two(vec![Action::Kill { link: 1 }], [None; 2]);
    let guests = [&["exit", "3"][..], &["cat"]].map(|args| Process::spawn(&spawn(args)).unwrap());
    let (_say, heard) = watch::channel(Stop::No);
    drive_here(&mut machine, Links::guests(guests), heard, &mut |_| Ok(())).unwrap();
    assert_eq!(machine.1, [Some(Exited::Code(3)), Some(Exited::Signal(9))]);
}

fn a_mock_on_its_own_stdio_flushes_before_it_exits() {
    let sent = vec![b'm'; 300_000];
    let told = Player::new(nothing).first([write(sent), CLOSE]).play(&["mock"]);
    assert_eq!((told.out_bytes, told.exited), (600_000, Some(Exited::Code(7))));
}

fn an_exit_that_reads_nothing_breaks_the_link() {
    let told = Player::new(nothing).first([write(vec![0; 1 << 20])]).play(&["exit", "0"]);
    assert!(told.order.contains(&"broken") && told.wrote < 1 << 20);
    assert_eq!(told.order.last(), Some(&"exited"));
}

fn a_flood_of_stderr_stalls_nobody() {
    let told = Player::new(nothing).play(&["flood-stderr", "52428800"]);
    assert_eq!((told.error_bytes, told.exited), (50 << 20, Some(Exited::Code(0))));
}

fn a_flood_takes_no_memory() {
    let before = peak_kib();
    let told = Player::new(nothing).play(&["flood", "67108864"]);
    assert_eq!((told.out_bytes, told.exited), (64 << 20, Some(Exited::Code(0))));
    let grown = peak_kib() - before;
    assert!(grown < 32 << 10, "{grown} KiB more than before");
}

fn peak_kib() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn a_flood_does_not_delay_a_tick() {
    let kill_at_the_tick = |_: &Told, input: &Input<'_>| match input {
        Input::Tick => vec![KILL],
        _ => Vec::new(),
    };
    let told = Player::new(kill_at_the_tick).due_in(Duration::from_millis(50)).play(&["flood-forever"]);
    assert_eq!(told.exited, Some(Exited::Signal(9)));
}

fn what_was_said_before_a_tick_is_told_before_it() {
    /// Is held up past its deadline, while the guest says its last word and ends.
    struct HeldUp {
        guest: i32,
        heard: Vec<u8>,
        heard_before_tick: Option<Vec<u8>>,
        deadline: Option<u64>,
    }
    impl sidecert_proto::machine::Machine for HeldUp {
        fn handle(&mut self, _link: usize, input: Input<'_>, now: u64) {
            match input {
                Input::Bytes(bytes) => {
                    if self.heard.is_empty() {
                        send(self.guest, Signal::INT);
                        send(self.guest, Signal::TERM);
                        assert_ends(self.guest);
                        self.deadline = Some(now);
                    }
                    self.heard.extend_from_slice(bytes);
                }
                Input::Tick => {
                    self.deadline = None;
                    self.heard_before_tick = Some(self.heard.clone());
                }
                _ => {}
            }
        }

        fn poll(&mut self, _now: u64) -> Option<Action> {
            self.heard_before_tick.is_some().then_some(Action::Done)
        }

        fn deadline(&self) -> Option<u64> {
            self.deadline
        }
    }
    let process = Process::spawn(&spawn(&["listens"])).unwrap();
    let guest = process.pid();
    let mut machine = HeldUp { guest, heard: Vec::new(), heard_before_tick: None, deadline: None };
    let (_say, heard) = watch::channel(Stop::No);
    drive_here(&mut machine, Links::guest(process), heard, &mut |_| Ok(())).unwrap();
    assert!(machine.heard_before_tick.unwrap().ends_with(b"Now\n"));
}

fn not_reading_holds_a_guest_up() {
    // The guest has more to say than a pipe holds, so without reading only the tick can come.
    let mut said = None;
    let player = Player::new(|told, input| {
        if let Input::Tick = input {
            said = Some(told.out_bytes);
            return vec![Action::Reading { link: 0, on: true }];
        }
        Vec::new()
    });
    let player = player.first([Action::Reading { link: 0, on: false }]).due_in(Duration::from_millis(50));
    let told = player.play(&["flood", "1000000"]);
    assert_eq!((said, told.out_bytes), (Some(0), 1_000_000));
    assert_eq!(told.order, ["tick", "bytes", "eof", "exited"]);
}

fn writes_are_asked_for_as_they_are_taken() {
    /// Has 32 MiB to write, and says how far it was ever ahead.
    struct Ahead {
        offered: usize,
        wrote: usize,
        most: usize,
        end: bool,
    }
    const EACH: usize = 1000;
    const ALL: usize = 32_000 * EACH;
    impl sidecert_proto::machine::Machine for Ahead {
        fn handle(&mut self, _link: usize, input: Input<'_>, _now: u64) {
            match input {
                Input::Wrote(n) => self.wrote += n,
                Input::Exited(_) => self.end = true,
                _ => {}
            }
        }

        fn poll(&mut self, _now: u64) -> Option<Action> {
            if self.end {
                return Some(Action::Done);
            }
            if self.offered > ALL {
                return None;
            }
            self.offered += EACH;
            self.most = self.most.max(self.offered - self.wrote);
            Some(if self.offered > ALL { CLOSE } else { write(vec![b'x'; EACH]) })
        }

        fn deadline(&self) -> Option<u64> {
            None
        }
    }
    let mut machine = Ahead { offered: 0, wrote: 0, most: 0, end: false };
    let process = Process::spawn(&spawn(&["reads", "1000000"])).unwrap();
    let (_say, heard) = watch::channel(Stop::No);
    drive_here(&mut machine, Links::guest(process), heard, &mut |_| Ok(())).unwrap();
    assert_eq!(machine.wrote, ALL);
    assert!(machine.most < WRITE_QUEUE_BYTES + 64 * EACH, "{} ahead", machine.most);
}

fn a_peer_that_reads_nothing_can_be_killed() {
    // Far more than is ever queued, and the kill behind it.
    let writes = (0..2000).map(|_| write(vec![0; 1000]));
    let mut asked = false;
    let player = Player::new(|_, input| match input {
        Input::Bytes(_) if !asked => {
            asked = true;
            (0..2000).map(|_| write(vec![0; 1000])).chain([KILL]).collect()
        }
        _ => Vec::new(),
    });
    let told = player.first(writes).due_in(Duration::from_millis(20)).play(&["stays"]);
    assert_eq!(told.exited, Some(Exited::Signal(9)));
    assert!(told.wrote < 100_000);
}

fn parts_are_read_apart() {
    let parts = [("a", 5), ("b", 1), ("c", 4096), ("d", 17), ("e", 1)];
    let writes = parts.iter().map(|(letter, n)| write_after_drain(letter.repeat(*n)));
    let told = Player::new(nothing).first(writes.chain([CLOSE])).play(&["reads", "65536"]);
    assert_eq!(told.lines(), ["5 a", "1 b", "4096 c", "17 d", "1 e"]);
}

fn parts_after_a_full_pipe_are_read_apart() {
    // Twenty thousand bytes are in the pipe, mostly before the guest is, when we learn that parts follow.
    let mut wrote = 0;
    let player = Player::new(|_, input| {
        let Input::Wrote(n) = input else { return Vec::new() };
        wrote += n;
        if wrote != 20_000 {
            return Vec::new();
        }
        vec![write_after_drain("bb"), write("b"), write_after_drain("c"), CLOSE]
    });
    let told = player.first([write(vec![b'a'; 20_000])]).play(&["reads", "3000"]);
    let lines = told.lines();
    assert_eq!(lines[lines.len() - 2..], ["3 b", "1 c"]);
    assert_eq!(lines[..6], ["3000 a"; 6]);
}

fn the_last_part_may_be_large() {
    let writes = [write("a"), write_after_drain(vec![b'b'; 60_000]), CLOSE];
    let told = Player::new(nothing).first(writes).play(&["reads", "65536"]);
    assert_eq!(told.lines(), ["1 a", "60000 b"]);
}

fn what_is_left_is_named_and_killed() {
    let told = Player::new(close_after(2)).play(&["leaves", "stays", "stays-in-a-session"]);
    let pids = told.pids(2).unwrap();
    let mut left: Vec<i32> = told.left.iter().map(|left| left.pid).collect();
    left.sort_unstable();
    let mut expected = pids.clone();
    expected.sort_unstable();
    assert_eq!(left, expected);
    let mut sessions: Vec<bool> = told.left.iter().map(|left| left.session).collect();
    sessions.sort_unstable();
    assert_eq!(sessions, [false, true]);
    // The kernel keeps 15 bytes of a name, and ours begins so.
    assert!(told.left.iter().all(|left| left.name.starts_with("guests-")), "{:?}", told.left);
    // They held both pipes, and still the ends of those came, and before the exit.
    assert_eq!(told.order, ["bytes", "eof", "left", "exited"]);
    assert_eq!(told.exited, Some(Exited::Code(0)));
    pids.into_iter().for_each(assert_gone);
}

fn orphans_are_left_too() {
    let told = Player::new(close_after(1)).play(&["leaves-orphans"]);
    assert_eq!(told.left.iter().map(|left| left.pid).collect::<Vec<_>>(), told.pids(1).unwrap());
}

fn what_is_left_beyond_the_bound_is_counted() {
    let count = LEFT_NAMED_MAX + 6;
    let mut player = Player::new(close_after(count));
    let process = Process::spawn(&spawn(&["leaves-many", &count.to_string()])).unwrap();
    let (_say, heard) = watch::channel(Stop::No);
    let ended = drive_here(&mut player, Links::guest(process), heard, &mut |_| Ok(())).unwrap();
    assert_eq!(ended, Ended { how: How::Done, left_unnamed: 6 });
    assert_eq!(player.told.left.len(), LEFT_NAMED_MAX);
    player.told.pids(count).unwrap().into_iter().for_each(assert_gone);
}

fn what_ends_with_its_parent_is_not_left() {
    let told = Player::new(nothing).first([CLOSE]).play(&["ends-with-its-parent"]);
    assert_eq!((told.left, told.exited), (Vec::new(), Some(Exited::Code(0))));
}

fn a_kill_leaves_nothing() {
    let mut killed = false;
    let player = Player::new(|told: &Told, _: &Input<'_>| {
        let now = !killed && told.pids(2).is_some();
        killed |= now;
        if now { vec![KILL] } else { Vec::new() }
    });
    let told = player.play(&["leaves", "stays", "stays-in-a-session"]);
    assert_eq!((told.exited, &told.left), (Some(Exited::Signal(9)), &Vec::new()));
    told.pids(2).unwrap().into_iter().for_each(assert_gone);
}

fn a_kill_is_no_matter_of_consent() {
    let process = Process::spawn(&spawn(&["ignores-term"])).unwrap();
    let pid = process.pid();
    let player = Player::new(|told: &Told, input: &Input<'_>| {
        match (input, told.lines().last()) {
            (Input::Bytes(_), Some(&"ready")) => send(pid, Signal::TERM),
            (Input::Bytes(_), Some(&"ignored")) => return vec![KILL],
            _ => {}
        }
        Vec::new()
    });
    assert_eq!(player.play_on(process).exited, Some(Exited::Signal(9)));
}

fn signals_stop_us_unless_they_were_ignored() {
    let mut spawn = spawn(&["listens"]);
    let shell = ["/bin/sh", "-c", "trap '' INT; exec \"$0\" \"$@\""].map(OsString::from);
    spawn.argv.splice(0..0, shell);
    let process = Process::spawn(&spawn).unwrap();
    let pid = process.pid();
    let player = Player::new(|told: &Told, input: &Input<'_>| {
        match (input, told.lines().last()) {
            (Input::Bytes(_), Some(&"No")) => {
                send(pid, Signal::INT);
                send(pid, Signal::TERM);
            }
            (Input::Bytes(_), Some(&"Interrupted")) => send(pid, Signal::HUP),
            _ => {}
        }
        Vec::new()
    });
    let told = player.play_on(process);
    assert_eq!(told.lines(), ["No", "Interrupted", "Now"]);
    assert_eq!(told.exited, Some(Exited::Code(0)));
}

fn send(pid: i32, signal: Signal) {
    rustix::process::kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

fn a_launcher_that_is_killed_is_stood_in_for() {
    let told = Player::new(nothing).first([CLOSE]).play(&["kills-its-launcher"]);
    assert_eq!(told.exited, Some(Exited::Unknown));
    told.pids(0).unwrap().into_iter().for_each(assert_gone);
}

fn a_launcher_that_is_stopped_is_stood_in_for() {
    let mut asked = false;
    let player = Player::new(|told: &Told, _: &Input<'_>| {
        let now = !asked && told.pids(2).is_some();
        asked |= now;
        if now { vec![KILL] } else { Vec::new() }
    });
    let told = player.first([CLOSE]).play(&["stops-its-launcher"]);
    assert_eq!(told.exited, Some(Exited::Unknown));
    told.pids(2).unwrap().into_iter().for_each(assert_gone);
}

fn a_harness_that_is_killed_takes_all_with_it() {
    // The harness under test is itself a guest here; its ids: its guest, its launcher, and two that the guest started.
    let process = Process::spawn(&spawn(&["harness"])).unwrap();
    let pid = process.pid();
    let mut killed = false;
    let mut watched = Vec::new();
    let mut player = Player::new(|told: &Told, _: &Input<'_>| {
        if let Some(pids) = told.pids(4).filter(|_| !killed) {
            killed = true;
            watched = pids;
            send(pid, Signal::KILL);
            // While our own launcher does not yet know, so that it is not the one who cleans up.
            watched.iter().copied().for_each(assert_ends);
        }
        Vec::new()
    });
    let (_say, heard) = watch::channel(Stop::No);
    drive_here(&mut player, Links::guest(process), heard, &mut |_| Ok(())).unwrap();
    assert_eq!(player.told.exited, Some(Exited::Signal(9)));
    assert_eq!(watched.len(), 4);
}

fn a_machine_is_interrupted_once_and_stopped_at_once() {
    let (say, heard) = watch::channel(Stop::No);
    let process = Process::spawn(&spawn(&["leaves", "stays"])).unwrap();
    let pid = process.pid();
    let mut player = Player::new(|told: &Told, input: &Input<'_>| {
        match input {
            Input::Bytes(_) if told.pids(1).is_some() => say.send(Stop::Interrupted).unwrap(),
            Input::Interrupted => say.send(Stop::Now).unwrap(),
            _ => {}
        }
        Vec::new()
    });
    let ended = drive_here(&mut player, Links::guest(process), heard, &mut |_| Ok(())).unwrap();
    assert_eq!(ended.how, How::Stopped);
    assert_eq!(player.told.interrupted, 1);
    assert_gone(pid);
    player.told.pids(1).unwrap().into_iter().for_each(assert_gone);
}

fn an_error_of_the_sink_ends_all() {
    let process = Process::spawn(&spawn(&["flood-forever"])).unwrap();
    let pid = process.pid();
    let (_say, heard) = watch::channel(Stop::No);
    let mut full = |player: &mut Player<_>| {
        if player.told.out_bytes > 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    };
    let fault = drive_here(&mut Player::new(nothing), Links::guest(process), heard, &mut full).unwrap_err();
    assert!(matches!(fault, DriveFault::Sink(error) if error.kind() == io::ErrorKind::StorageFull));
    assert_gone(pid);
}

fn a_panic_of_the_machine_ends_all() {
    let process = Process::spawn(&spawn(&["leaves", "stays"])).unwrap();
    let pid = process.pid();
    let (_say, heard) = watch::channel(Stop::No);
    let mut child = None;
    let mut player = Player::new(|told: &Told, _: &Input<'_>| {
        if let Some(pids) = told.pids(1) {
            child = Some(pids[0]);
            // Without the message that `panic!` would print among the results.
            std::panic::resume_unwind(Box::new("a bug"));
        }
        Vec::new()
    });
    let drive = || drive_here(&mut player, Links::guest(process), heard, &mut |_| Ok(()));
    catch_unwind(AssertUnwindSafe(drive)).unwrap_err();
    assert_gone(pid);
    assert_gone(child.unwrap());
}

fn a_machine_that_waits_for_nothing_ends() {
    struct Inert;
    impl sidecert_proto::machine::Machine for Inert {
        fn handle(&mut self, _link: usize, _input: Input<'_>, _now: u64) {}

        fn poll(&mut self, _now: u64) -> Option<Action> {
            None
        }

        fn deadline(&self) -> Option<u64> {
            None
        }
    }
    let process = Process::spawn(&spawn(&["exit", "0"])).unwrap();
    let (_say, heard) = watch::channel(Stop::No);
    let ended = drive_here(&mut Inert, Links::guest(process), heard, &mut |_| Ok(())).unwrap();
    assert_eq!(ended.how, How::Idle);
}
