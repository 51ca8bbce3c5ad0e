//! The drivers that need no shim: a person on a terminal, and nobody at all.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use serde_json::{Value, json};
use sidecert_proto::budget::Budget;
use sidecert_proto::contract::Side;
use sidecert_proto::machine::{Input, Machine as _};
use sidecert_proto::play::{Cast, Player as _};
use sidecert_proto::script::Setting;
use support::{mock_host, program, python_host, sidecert, stderr, stdout, workspace};
use tempfile::TempDir;

const SUITE: &str = "reasonix-v2";
const FRAMES: &str = "reasonix/host-transport/only-frames";
/// The longest that anything here may take.
const WITHIN: Duration = Duration::from_mins(1);

fn check(driver: &str, options: &[&str], command: &[String]) -> Output {
    let words =
        ["check", "host", "--suite", SUITE, "--driver", driver].into_iter().chain(options.iter().copied());
    let command = command.iter().map(String::as_str);
    sidecert(words.chain(["--"]).chain(command))
}

/// The end-to-end run of a host, as a command.
fn end_to_end(host: &[String]) -> Vec<String> {
    let run = workspace().join("harness/cli/tests/drivers/end_to_end.py").display().to_string();
    ["python3", "-B", &run, "{plugins}"].map(str::to_owned).into_iter().chain(host.iter().cloned()).collect()
}

// ---- a person ----

enum Event {
    Screen(String),
    /// A line of the host that the person has.
    Host(Value),
    /// The check is over, with what it wrote to its standard output.
    Over(String),
}

/// A check with a terminal, and whoever sits there.
struct Person {
    check: Child,
    terminal: File,
    /// What was shown and not read yet.
    screen: String,
    tell: Sender<Event>,
    events: Receiver<Event>,
    /// Kept until the end: it goes with all that the check wrote.
    _scratch: TempDir,
}

impl Person {
    fn sits_down(driver: &str, options: &[&str], command: &[&str]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
        let mut modes = tcgetattr(&slave).unwrap();
        // What is typed is not to be read as what is shown.
        modes.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&slave, OptionalActions::Now, &modes).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let mut words = Command::new(program());
        words.args(["check", "host", "--suite", SUITE, "--driver", driver]).args(options);
        words.args((!command.is_empty()).then_some("--")).args(command);
        words.env("TMPDIR", scratch.path()).stdin(slave).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut check = words.spawn().unwrap();
        drop(words);
        let (tell, events) = channel();
        let to = tell.clone();
        let mut seen = File::from(master.try_clone().unwrap());
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(read @ 1..) = seen.read(&mut chunk) {
                let text = String::from_utf8_lossy(&chunk[..read]).replace('\r', "");
                if to.send(Event::Screen(text)).is_err() {
                    return;
                }
            }
        });
        let (to, mut report) = (tell.clone(), check.stdout.take().unwrap());
        thread::spawn(move || {
            let mut text = String::new();
            report.read_to_string(&mut text).unwrap();
            let _ = to.send(Event::Over(text));
        });
        let terminal = File::from(master);
        Self { check, terminal, screen: String::new(), tell, events, _scratch: scratch }
    }

    fn types(&mut self, line: &str) {
        self.terminal.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn next(&mut self) -> Event {
        self.events.recv_timeout(WITHIN).unwrap_or_else(|_| panic!("nothing more came: {}", self.screen))
    }

    /// Waits until this is shown, and gives what was shown up to it.
    fn sees(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.screen.find(text) {
                return self.screen.drain(..at + text.len()).collect();
            }
            match self.next() {
                Event::Screen(more) => self.screen.push_str(&more),
                Event::Host(line) => panic!("the host says {line}"),
                Event::Over(report) => panic!("{text:?} is not shown: {}{report}", self.screen),
            }
        }
    }

    /// Waits for the end; gives the exit code, and the report.
    fn leaves(mut self) -> (Option<i32>, String) {
        let report = loop {
            if let Event::Over(report) = self.next() {
                break report;
            }
        };
        let until = Instant::now() + WITHIN;
        let status = loop {
            if let Some(status) = self.check.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it does not end: {report}");
            thread::yield_now();
        };
        (status.code(), report)
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        let _ = self.check.kill();
        let _ = self.check.wait();
    }
}

/// The host of the person: the reference host.
struct Host {
    process: Child,
    input: Option<ChildStdin>,
    /// Which number each ask has on the screen.
    asked: BTreeMap<u64, String>,
}

impl Host {
    fn start(environment: &[(String, String)], tell: &Sender<Event>) -> Self {
        let command = mock_host(SUITE, &[]);
        let mut process = Command::new(&command[0])
            .args(&command[1..])
            .envs(environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (output, to) = (BufReader::new(process.stdout.take().unwrap()), tell.clone());
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = to.send(Event::Host(serde_json::from_str(&line).unwrap()));
            }
        });
        let input = process.stdin.take();
        let mut host = Self { process, input, asked: BTreeMap::new() };
        host.tell(&json!({ "shim": 1, "suite": SUITE, "folder": "/tmp" }));
        host
    }

    fn tell(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn ask(&mut self, number: &str, mut what: Value) {
        let ask = self.asked.len() as u64 + 1;
        what["ask"] = ask.into();
        self.asked.insert(ask, number.to_owned());
        self.tell(&what);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What stands behind this on one of the lines.
fn behind<'t>(lines: &[&'t str], start: &str) -> Option<&'t str> {
    lines.iter().find_map(|line| line.trim_start().strip_prefix(start))
}

fn environment(lines: &[&str]) -> Vec<(String, String)> {
    let told = lines.iter().filter_map(|line| line.split_once("in the environment of every plugin: "));
    let variables = told.filter_map(|(_, variable)| variable.split_once('='));
    let variables: Vec<_> = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(variables.len(), 2, "{lines:?}");
    variables
}

fn manifest(folder: &str) -> Value {
    serde_json::from_slice(&fs::read(Path::new(folder).join("reasonix-plugin.json")).unwrap()).unwrap()
}

/// Does what the screen says until the check is over; gives the numbers and first lines of all that was asked.
fn obeys(mut person: Person) -> (Vec<String>, Option<i32>, String) {
    let (mut host, mut asked): (Option<Host>, Vec<String>) = (None, Vec::new());
    loop {
        // A whole ask ends where something can be typed.
        if let Some((_, begun)) = person.screen.split_once("---- ")
            && let Some((ask, rest)) = begun.split_once("> ")
        {
            let (ask, rest) = (ask.to_owned(), rest.to_owned());
            person.screen = rest;
            let lines: Vec<&str> = ask.lines().collect();
            asked.push(format!("{}: {}", lines[0].trim_end_matches(" ----"), lines[1]));
            does(&lines, &mut host, &person.tell);
            continue;
        }
        match person.next() {
            Event::Screen(more) => person.screen.push_str(&more),
            Event::Host(line) => {
                let number =
                    line["outcome"].as_u64().and_then(|ask| host.as_ref().unwrap().asked.get(&ask).cloned());
                let Some(number) = number else { continue };
                if let Some(text) = line["text"].as_str().filter(|text| !text.is_empty()) {
                    person.types(&format!("{number} s {text}"));
                }
                match line["failed"].as_str() {
                    Some(says) => person.types(&format!("{number} f {says}")),
                    None => person.types(&number),
                }
                if line["text"] == "" {
                    person.types(&number);
                }
            }
            Event::Over(report) => {
                person.tell.send(Event::Over(report)).unwrap();
                let (code, report) = person.leaves();
                return (asked, code, report);
            }
        }
    }
}

fn does(lines: &[&str], host: &mut Option<Host>, tell: &Sender<Event>) {
    let number = lines[0].split_once(' ').unwrap().0;
    if lines[1].starts_with("Start your host") {
        let plugin = manifest(behind(lines, "one: ").unwrap());
        let workspace = behind(lines, "its workspace: ").unwrap();
        let host = host.insert(Host::start(&environment(lines), tell));
        let plugins = json!([{ "name": "one", "enabled": true, "manifest": plugin }]);
        return host.ask(number, json!({ "do": "start", "workspace": workspace, "plugins": plugins }));
    }
    let host = host.as_mut().unwrap();
    match lines[1] {
        "Say this to it:" => {
            let mut turn = json!({ "do": "turn", "text": lines[2].trim() });
            if let Some(model) = behind(lines, "to the model ") {
                turn["model"] = model.into();
            }
            host.ask(number, turn);
        }
        "Stop the turn that is running, as a user does." => host.ask(number, json!({ "do": "cancel" })),
        "Stop your host in order, and wait until it is gone." => host.ask(number, json!({ "do": "stop" })),
        other => panic!("{other:?} is asked for"),
    }
}

#[test]
fn a_person_does_what_is_asked_for() {
    let (asked, code, report) = obeys(Person::sits_down("manual", &["--only", FRAMES], &[]));
    assert_eq!(
        asked,
        [
            "1 of 3: Start your host with these plugins and no others:",
            "2 of 3: Say this to it:",
            "3 of 3: Stop your host in order, and wait until it is gone.",
        ]
    );
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains("1 pass, 0 fail, 0 warn") && report.contains("manual"), "{report}");
}

#[test]
fn what_is_asked_meanwhile_is_shown() {
    let cancelled = [
        "--only",
        "reasonix/host-streams/cancel-told",
        "--only",
        "reasonix/host-streams/late-chunks-ignored",
    ];
    let (asked, code, report) = obeys(Person::sits_down("manual", &cancelled, &[]));
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains("2 pass, 0 fail, 0 warn"), "{report}");
    assert_eq!(asked[2], "3 of 5, meanwhile: Stop the turn that is running, as a user does.", "{asked:?}");
}

#[test]
fn a_person_is_helped_and_nothing_that_is_shown_is_obeyed() {
    let mut person = Person::sits_down("manual", &["--only", FRAMES], &["my-host", "\u{1b}]0;title\u{7}"]);
    let start = person.sees("\n1> ");
    assert!(start.contains("it is started as: my-host \\u{1b}]0;title\\u{7}\n"), "{start}");
    assert!(!start.contains('\u{1b}'), "{start:?}");
    person.types("what?");
    person.sees("? shows it.\n1> ");
    person.types("7 s Hello");
    person.sees("Nothing of that number is open.\n1> ");
    person.types("?");
    person.sees("it failed, and this is what is told of it");
    person.sees("\n1> ");
    person.types("f/internal no plugin started");
    let (code, report) = person.leaves();
    assert_eq!(code, Some(3), "{report}");
    let cause = "what was asked is over, and guest \"one\" was not launched";
    assert!(report.contains(cause) && report.contains("\"reason\":\"internal\""), "{report}");
}

#[test]
fn a_person_may_want_no_more() {
    for last in ["q", "\u{4}"] {
        let mut person = Person::sits_down("manual", &["--only", FRAMES], &[]);
        person.sees("\n1> ");
        person.types(last);
        let (code, report) = person.leaves();
        assert_eq!(code, Some(130), "{report}");
        assert!(report.contains("the run was stopped before its end"), "{report}");
    }
}

#[test]
fn what_a_host_cannot_be_made_to_do_is_out_of_reach() {
    let mut person = Person::sits_down("manual", &["--only", FRAMES], &[]);
    person.sees("\n1> ");
    person.types("c it has no plugins");
    person.sees("Stop your host in order, and wait until it is gone.\n2> ");
    person.types("");
    let (code, report) = person.leaves();
    assert_eq!(code, Some(3), "{report}");
    assert!(report.contains("all of it is out of reach") && report.contains("it has no plugins"), "{report}");
}

#[test]
fn an_interrupted_person_leaves_partial_verdicts() {
    let person = &mut Person::sits_down("manual", &["--only", FRAMES], &[]);
    person.sees("\n1> ");
    kill_process(Pid::from_child(&person.check), Signal::INT).unwrap();
    let report = loop {
        if let Event::Over(report) = person.next() {
            break report;
        }
    };
    assert!(report.contains("the run was stopped before its end"), "{report}");
    assert_eq!(person.check.wait().unwrap().code(), Some(130));
}

#[test]
fn where_nobody_can_be_asked_is_one_line() {
    for driver in ["manual", "none"] {
        let output = Command::new(program())
            .args(["check", "host", "--suite", SUITE, "--driver", driver])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4), "{driver}: {}", stderr(&output));
        let says = format!(
            "sidecert: --driver {driver}: there is no terminal to ask a person on: none of standard input, output and error is one\n"
        );
        assert_eq!(stderr(&output), says);
    }
}

// ---- nobody ----

#[test]
fn a_run_of_the_hosts_own_is_judged() {
    for host in [mock_host(SUITE, &[]), python_host(SUITE)] {
        let output = check("none", &[], &end_to_end(&host));
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{text}{}", stderr(&output));
        let last = text.lines().rev().find(|line| line.contains(" pass, ")).unwrap();
        let passed: u32 = last.split(" host: ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(passed >= 10 && last.contains(" 0 fail, 0 warn"), "{text}");
        assert!(!last.contains("cut short") && last.contains("not provoked"), "{text}");
        for why in [
            "the host was asked for nothing, and what it did does not bring this up",
            "the driver in use does not tell at once when it is over",
        ] {
            assert!(text.contains(why), "{text}");
        }
    }
}

#[test]
fn a_flaw_shows_in_a_run_of_the_hosts_own() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run").display().to_string();
    let flawed = end_to_end(&mock_host(SUITE, &["--flaw", "host-writes-text"]));
    let output = check("none", &["--record", &run], &flawed);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains(&format!("FAIL  {FRAMES}")), "{}", stdout(&output));
    assert_eq!(sidecert(["judge", &run]).status.code(), Some(1));
}

#[test]
fn a_run_that_starts_the_host_twice_is_as_good() {
    let once = shlex::try_join(end_to_end(&mock_host(SUITE, &[])).iter().map(String::as_str)).unwrap();
    let twice = ["sh".to_owned(), "-c".to_owned(), format!("{once} && {once}")];
    let output = check("none", &[], &twice);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains(" 0 fail, 0 warn"), "{}", stdout(&output));
}

#[test]
fn a_run_that_is_none_is_told_apart() {
    let whole = shlex::try_join(end_to_end(&mock_host(SUITE, &[])).iter().map(String::as_str)).unwrap();
    for (script, cause) in [
        ("true", "what was asked is over, and guest \"one\" was not launched"),
        ("exit 3", "what was asked is over, and guest \"one\" was not launched"),
        (&format!("{whole}; exit 7"), "the host exited with code 7 before it told what came of \"stop\""),
    ] {
        let output = check("none", &[], &["sh", "-c", script].map(str::to_owned));
        assert_eq!(output.status.code(), Some(3), "{script}: {}", stdout(&output));
        assert!(stdout(&output).contains(cause), "{script}: {}", stdout(&output));
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "").unwrap();
    let (folder, script) = (folder.path().display().to_string(), script.display().to_string());
    for (command, says) in [
        ("./no-such-run", "\"./no-such-run\" does not exist"),
        ("no-such-run", "\"no-such-run\" is not in PATH"),
        (folder.as_str(), "is a folder"),
        (script.as_str(), "may not be executed"),
    ] {
        for driver in ["none", "reasonix-cli"] {
            let output = check(driver, &[], &[command.to_owned()]);
            assert_eq!(output.status.code(), Some(4), "{driver} {command}: {}", stderr(&output));
            assert!(stderr(&output).contains(says), "{driver} {command}: {}", stderr(&output));
            assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
        }
    }
    let output = check("none", &["--script", &script], &["true".to_owned()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("plays no script"), "{}", stderr(&output));
}

#[test]
fn without_a_command_the_user_runs_the_host() {
    let mut person = Person::sits_down("none", &[], &[]);
    let shown = person.sees("Press Enter when your host is gone; Ctrl-C ends the run.\n> ");
    let lines: Vec<&str> = shown.lines().collect();
    let one = Path::new(behind(&lines, "one: ").unwrap());
    let command: Vec<String> = end_to_end(&mock_host(SUITE, &[]));
    let plugins = one.parent().unwrap().display().to_string();
    let words = command.iter().map(|word| word.replace("{plugins}", &plugins)).collect::<Vec<_>>();
    let mut run = Command::new(&words[0]);
    assert!(run.args(&words[1..]).envs(environment(&lines)).status().unwrap().success());
    person.types("");
    let (code, report) = person.leaves();
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains(" 0 fail, 0 warn"), "{report}");
}

#[test]
fn a_host_for_one_turn_at_a_time_is_green_and_starts_as_others_do() {
    let host = workspace().join("harness/cli/tests/drivers/per_turn.py").display().to_string();
    let of_host = workspace().join("mock-sidecars/python").display().to_string();
    let command: Vec<String> =
        ["python3", "-B", &host, &of_host, "--suite", SUITE].map(str::to_owned).to_vec();
    let output = check("shim", &["--report", "json=-"], &command);
    assert_eq!(output.status.code(), Some(0), "{}{}", stdout(&output), stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["requirements"].as_array().unwrap();
    let of = |verdict: &str, why: &str| {
        let of = rows.iter().filter(|row| row["verdict"] == verdict && (why.is_empty() || row["why"] == why));
        of.map(|row| row["id"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((of("fail", ""), of("warn", ""), of("undecided", "cut_short")), (vec![], vec![], vec![]));
    let passed = of("pass", "");
    // What becomes of a start, what is asked before a turn, in it, and at the end of it.
    for id in [
        "host-lifecycle/other-major-fails",
        "host-lifecycle/optional-may-fail",
        "host-transport/text-refused",
        "host-envelope/batches-refused",
        "host-events/every-point-told",
        "host-processes/lingering-killed",
    ] {
        assert!(passed.contains(&&*format!("reasonix/{id}")), "{id}: {passed:?}");
    }
    let beyond = of("undecided", "out_of_reach");
    assert!(
        beyond.contains(&"reasonix/host-processes/calls-to-the-dead-fail"),
        "it needs two turns: {beyond:?}"
    );
}

/// What is recorded of a visit whose driver says this first, and nothing for an hour.
fn an_hour_of(hello: &str) -> String {
    let suite = &sidecert_cases::reasonix::V2;
    let casting = suite.casting.unwrap();
    let contract = (suite.contract)();
    let plan = [casting.opening, suite.visit.unwrap()];
    let mut cast = Cast::new("visit", suite, casting, plan, Setting::plain(contract), Budget::default());
    while cast.poll(0).is_some() {}
    cast.handle(0, Input::Bytes(format!("{hello}\n").as_bytes()), 0);
    let mut now = 0;
    while now < 3_600_000_000 && cast.cut_in().is_none() {
        while cast.poll(now).is_some() {}
        now = cast.deadline().unwrap();
        cast.handle(0, Input::Tick, now);
    }
    String::from_utf8(cast.record().clone()).unwrap()
}

#[test]
fn no_time_limit_runs_where_a_person_is_asked() {
    let hello = r#"{"shim":1,"name":"x","version":"1","does":["start","stop"]}"#;
    let late = an_hour_of(hello);
    assert!(late.contains("the shim did not tell what came of \\\"start\\\" in 20 s"), "{late}");
    let unhurried = an_hour_of(&hello.replace('}', r#","unhurried":true}"#));
    assert!(unhurried.contains(r#""do":"start""#), "{unhurried}");
    assert!(!unhurried.contains("timed_out") && !unhurried.contains("cut"), "{unhurried}");
}

#[test]
fn what_looks_at_the_time_of_an_outcome_is_a_row_for_hosts() {
    for suite in sidecert_cases::SUITES {
        for id in suite.timed {
            assert!(suite.rows(Side::Host).any(|row| row.id == *id), "{id}");
        }
    }
}
