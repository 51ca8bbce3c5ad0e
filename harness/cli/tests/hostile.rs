//! Each promise of `docs/safety.md`, on processes: a hostile target costs bounded time and memory, is reported for what
//! it did, with the documented exit code, and leaves nothing behind.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use support::{mock, program, verdicts, workspace};
use tempfile::TempDir;
use wait4::Wait4 as _;

const SUITE: &str = "reasonix-v1";
/// The variable by which everything that a run has started is found.
const MARK: &str = "SIDECERT_HOSTILE_TEST";
/// What no run may take, in MiB: the harness, its launchers and the target, whichever is largest.
const PEAK_MIB: u64 = 256;
/// What no run may take, where a test does not say less.
const WITHIN: Duration = Duration::from_mins(1);
/// Tests that hold up the machine hold this alone, so that those that measure time are not held up.
static MACHINE: RwLock<()> = RwLock::new(());

/// A run to be made.
struct Run {
    mark: String,
    scratch: TempDir,
    options: Vec<String>,
    variables: Vec<(&'static str, String)>,
    target: Vec<String>,
    /// What stands before the program: a shell that sets a limit.
    before: Vec<String>,
}

/// What came of a run.
struct Told {
    /// The exit code; the signal that ended it, negative, if one did.
    code: i32,
    /// The JSON report; null if there is none, or none that is whole.
    report: Value,
    /// The JSON report as it was written, the one for people, and what was said on standard error.
    texts: [String; 3],
    /// What was waited for in vain, where the run was recorded beside the report: the recording that tells of it, and
    /// how long, in microseconds.
    waits: Vec<(String, u64)>,
}

impl Run {
    fn of(target: Vec<String>) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let scratch = tempfile::tempdir().unwrap();
        Self { mark, scratch, options: Vec::new(), variables: Vec::new(), target, before: Vec::new() }
    }

    fn shell(script: &str) -> Self {
        Self::of(["/bin/sh", "-c", script].map(str::to_owned).to_vec())
    }

    fn guest(words: &[&str]) -> Self {
        let guest = workspace().join("harness/cli/tests/hostile/target.py");
        let mut target = ["python3", "-I", "-S"].map(str::to_owned).to_vec();
        target.push(guest.display().to_string());
        target.extend(words.iter().map(|&word| word.to_owned()));
        Self::of(target)
    }

    fn with(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    fn path(&self, name: &str) -> String {
        self.scratch.path().join(name).display().to_string()
    }

    fn start(&self) -> Child {
        fs::create_dir(self.path("tmp")).unwrap();
        let mut words = self.before.clone();
        words.push(program().display().to_string());
        words.extend(["check", "guest", "--suite", SUITE].map(str::to_owned));
        words.extend(["--report".to_owned(), format!("json={}", self.path("report.json"))]);
        // Where a run is recorded is then no temporary folder, which stays if the run fails.
        if !self.options.iter().any(|option| option == "--record") {
            words.extend(["--record".to_owned(), self.path("run")]);
        }
        words.extend(self.options.iter().cloned());
        words.push("--".to_owned());
        words.extend(self.target.iter().cloned());
        let to = |name: &str| File::create(self.path(name)).unwrap();
        Command::new(&words[0])
            .args(&words[1..])
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("TMPDIR", self.path("tmp"))
            .env(MARK, &self.mark)
            .stdin(Stdio::null())
            .stdout(to("stdout"))
            .stderr(to("stderr"))
            .spawn()
            .unwrap()
    }

    /// Runs to the end, and checks what holds for every run: bounded time and memory, and nothing left behind.
    fn told(self, within: Duration) -> Told {
        let child = self.start();
        assert!(ends_within(&child, within), "{:?} goes on after {within:?}", self.target);
        self.ended(child)
    }

    fn ended(self, child: Child) -> Told {
        let used = child.wait4().unwrap();
        assert!(used.rusage.maxrss < PEAK_MIB << 20, "{:?}: {} bytes", self.target, used.rusage.maxrss);
        assert_eq!(marked(&self.mark), Vec::<String>::new(), "{:?} left these", self.target);
        let left: Vec<_> = fs::read_dir(self.path("tmp")).unwrap().collect();
        assert!(left.is_empty(), "{:?} left {left:?}", self.target);
        let text = |name: &str| fs::read_to_string(self.path(name)).unwrap_or_default();
        let texts = [text("report.json"), text("stdout"), text("stderr")];
        let report = serde_json::from_str(&texts[0]).unwrap_or(Value::Null);
        let code = used.status.code().unwrap_or_else(|| -used.status.signal().unwrap());
        Told { code, report, texts, waits: waits(Path::new(&self.path("run"))) }
    }
}

/// The waits in vain that a recording of a run tells of. Unlike the time on a clock, they do not depend on the machine.
fn waits(run: &Path) -> Vec<(String, u64)> {
    let recordings = fs::read_dir(run).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut waits = Vec::new();
    for path in recordings.filter(|path| path.extension().is_some_and(|its| its == "ndjson")) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let events = fs::read_to_string(&path).unwrap();
        let events = events.lines().filter(|line| line.contains("timed-out"));
        let waited = events
            .filter_map(|line| serde_json::from_str::<Value>(line).unwrap()["timed-out"]["within"].as_u64());
        waits.extend(waited.map(|within| (name.clone(), within)));
    }
    waits
}

impl Told {
    fn cause(&self) -> &str {
        self.report["outcome"]["cause"].as_str().unwrap_or_default()
    }

    fn all_have(&self, verdict: &str) -> Vec<String> {
        let of = verdicts(&self.report).into_iter().filter(|(_, its)| its == verdict);
        of.map(|(id, _)| id).collect()
    }
}

/// Whether the process has ended by then.
fn ends_within(child: &Child, within: Duration) -> bool {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).unwrap();
    let mut polled = [PollFd::new(&ended, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::try_from(within).unwrap())).unwrap() > 0
}

/// The processes that have the mark in their environment.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let has_it = |folder: &Path| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    let running = entries.map(|entry| entry.path()).filter(|folder| has_it(folder));
    running.map(|folder| fs::read_to_string(folder.join("stat")).unwrap_or_default()).collect()
}

fn measured<T>(run: impl FnOnce() -> T) -> T {
    let _with_others = MACHINE.read().unwrap_or_else(PoisonError::into_inner);
    run()
}

fn alone<T>(run: impl FnOnce() -> T) -> T {
    let _alone = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    run()
}

/// A target that answers nothing: one process, one root cause, and nothing passes.
fn answers_nothing(script: &str, within: Duration, code: i32, cause: &str) -> Told {
    let told = Run::shell(script).told(within);
    assert!(told.cause().contains(cause), "{script}: {}", told.cause());
    assert!(told.texts[1].contains("CUT SHORT"), "{script}: {}", told.texts[1]);
    assert_eq!(told.code, code, "{script}: {}", told.cause());
    assert_eq!(told.report["processes"].as_array().unwrap().len(), 1, "{script}");
    assert_eq!(told.all_have("pass"), Vec::<String>::new(), "{script}");
    told
}

#[test]
fn silence_costs_one_wait_and_has_one_root_cause() {
    let silent = "no answer to initialize in 5 s";
    for (script, cause) in [
        ("sleep 600", silent),
        ("cat >/dev/null", silent),
        ("trap '' TERM INT HUP QUIT; while :; do sleep 1; done", silent),
        // What it writes past a full pipe keeps it, and us, from nothing.
        ("head -c 1000000 /dev/zero >&2; cat >/dev/null", silent),
    ] {
        let told = measured(|| answers_nothing(script, WITHIN, 3, cause));
        assert_eq!(told.waits.iter().map(|(_, within)| *within).collect::<Vec<_>>(), [5_000_000], "{script}");
    }
}

#[test]
fn an_end_before_the_answer_is_told_at_once() {
    let before = "before it answered \"initialize\"";
    let half =
        "it wrote \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\" to standard output, which is no frame";
    for (script, code, cause) in [
        ("exit 0", 3, format!("the guest exited with code 0 {before}")),
        ("kill -9 $$", 3, format!("the guest was ended by signal 9 {before}")),
        ("exec >&-; sleep 600", 3, format!("the guest closed its output and had to be killed {before}")),
        (
            "read line; printf '{\"jsonrpc\":\"2.0\",\"id\":1,'; exit 4",
            3,
            format!("the guest exited with code 4 {before}; {half}"),
        ),
        // It sent a request where only its answer may come, so this one fails as well.
        ("exec cat", 1, "the guest sent initialize back as it had come: it echoes its input".to_owned()),
    ] {
        let told = measured(|| answers_nothing(script, WITHIN, code, &cause));
        assert_eq!(told.waits, [], "{script}");
    }
}

#[test]
fn a_flood_is_cut_off() {
    let lines = "the guest wrote 65536 lines and more, and not what was awaited; it wrote \"y\"";
    let endless = "the guest wrote a line that is longer than the limit, and was killed for it";
    for (script, code, cause) in [
        ("exec cat /dev/zero", 3, endless),
        ("exec yes", 1, lines),
        ("yes >&2 & exec yes", 1, lines),
        ("yes >&2; :", 3, "no answer to initialize in 5 s"),
    ] {
        let told = alone(|| answers_nothing(script, Duration::from_secs(20), code, cause));
        let stderr = told.report["processes"][0]["stderr_tail"].as_str().unwrap();
        assert_eq!(stderr.contains("y\ny\n"), script.contains(">&2"), "{script}: {stderr}");
    }
}

#[test]
fn a_full_pipe_holds_up_nobody() {
    let told = alone(|| Run::guest(&["talks-past-the-pipe"]).told(WITHIN));
    assert_eq!((told.code, told.all_have("fail")), (0, Vec::new()));
    assert!(told.report["processes"][0]["stderr_tail"].as_str().unwrap().contains("xxxx"));
}

#[test]
fn what_it_starts_is_ended_and_named() {
    let mock = mock(SUITE, None).join(" ");
    for start in [
        "sleep 600 >/dev/null 2>&1 &",
        "setsid sleep 600 >/dev/null 2>&1 &",
        "sleep 600 &",
        "setsid sleep 600 &",
    ] {
        let run = Run::shell(&format!("{start} exec {mock}")).with(&["--only", "*/members-fit"]);
        let told = measured(|| run.told(Duration::from_secs(15)));
        let left = told.report["processes"][0]["left"][0].as_str().unwrap();
        assert!(left.starts_with("sleep (process "), "{start}: {left}");
        assert_eq!(told.code, 0, "{start}");
        assert!(told.texts[1].contains("sleep (process "), "{start}: {}", told.texts[1]);
    }
    // Nor does one outlive a target that is killed.
    measured(|| {
        answers_nothing("setsid sleep 600 & sleep 600 & exec cat >/dev/null", WITHIN, 3, "no answer")
    });
}

#[test]
fn json_a_million_levels_deep_and_ids_of_any_width_are_judged() {
    let run = Run::guest(&["nests"]).with(&["--only", "*/members-fit"]);
    let told = alone(|| run.told(WITHIN));
    assert_eq!((told.code, told.all_have("fail")), (1, vec!["reasonix/members/members-fit".to_owned()]));
    let told = alone(|| Run::guest(&["wide-ids"]).told(WITHIN));
    assert_eq!(told.code, 1);
    assert!(told.texts[1].contains("123456789012345678901234567890"), "{}", told.texts[1]);
}

#[test]
fn no_text_of_a_target_commands_a_terminal_or_a_ci_runner() {
    let told = alone(|| Run::guest(&["shouts"]).with(&["--verbose"]).told(WITHIN));
    assert_eq!(told.code, 1);
    for text in &told.texts {
        for line in text.lines() {
            let acts = |character: char| {
                character.is_control()
                    || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
            };
            assert!(!line.contains(acts), "{line:?}");
            assert!(!["::error", "##[", "##vso["].iter().any(|command| line.contains(command)), "{line:?}");
        }
    }
    // What it said is there all the same, as the same string or spelled out.
    let said = verdicts_text(&told.report);
    assert!(said.contains("\u{1b}[31m") && said.contains("\u{202e}evil") && said.contains("::error::gone"));
    assert!(told.texts[1].contains("\\u{1b}[31m") && told.texts[1].contains("\\u{202e}evil"));
}

/// What the report says that each requirement came to.
fn verdicts_text(report: &Value) -> String {
    let rows = report["requirements"].as_array().unwrap();
    rows.iter().filter_map(|row| row["actual"].as_str()).collect()
}

#[test]
fn no_report_shows_a_secret_in_any_disguise() {
    let secret = "hunter2+hunter2/?\"é";
    let mut run = Run::guest(&["discloses"]).with(&["--verbose", "--env", "API_TOKEN"]);
    run.variables.push(("API_TOKEN", secret.to_owned()));
    let told = alone(|| run.told(WITHIN));
    assert_eq!(told.code, 1);
    let disguises = [
        secret,
        "hunter2",
        "\\u0068\\u0075\\u006e",
        "%68%75%6E%74",
        "hunter2%2B",
        "aHVudGVyMitodW50ZXIy",
        "eGh1bnRlcjIraHVudGVyMi",
        "h1bnRlcjIraHVudGVyMi",
        "h5aHVudGVyMitodW50ZXIy",
    ];
    for text in &told.texts {
        for disguise in disguises {
            assert!(!text.contains(disguise), "{disguise} in {text}");
        }
    }
    assert!(told.texts[0].contains("****") && told.texts[1].contains("****"));
}

#[test]
fn a_full_disk_is_told() {
    // Files may hold 2 KiB: the transcripts do not fit, and neither does the report. The unit is 512 bytes.
    let limited = "ulimit -f 4; exec \"$@\"".to_owned();
    let mut run = Run::of(mock(SUITE, None));
    run.before = vec!["/bin/sh".to_owned(), "-c".to_owned(), limited, "sh".to_owned()];
    let told = measured(|| run.told(WITHIN));
    assert_eq!(told.code, 5, "{:?}", told.texts);
    assert!(told.texts[2].contains("could not be written"), "{:?}", told.texts);
}

#[test]
fn a_full_file_system_is_told() {
    // A user may mount one in a name space of its own where the machine lets them; elsewhere the limit above must do.
    let may = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        return;
    }
    let mut run = Run::of(mock(SUITE, None));
    let full = run.path("full");
    fs::create_dir(&full).unwrap();
    let mounted = format!("mount -t tmpfs -o size=12k none {full} && exec \"$@\"");
    run.before = ["unshare", "-rm", "/bin/sh", "-c", &mounted, "sh"].map(str::to_owned).to_vec();
    let record = format!("{full}/run");
    let told = measured(|| run.with(&["--record", &record]).told(WITHIN));
    assert_eq!(told.code, 5, "{:?}", told.texts);
    let says = told.report["outcome"]["says"].as_str().unwrap();
    assert!(says.contains("No space left on device"), "{says}");
    assert!(told.texts[1].contains("No space left on device"), "{}", told.texts[1]);
}

#[test]
fn an_interruption_at_any_moment_is_in_order() {
    let mut state = 7_u32;
    for number in 0..20 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let moment = Duration::from_millis(u64::from(state >> 8) % 1_500);
        let run = Run::of(mock(SUITE, None));
        measured(|| {
            let child = run.start();
            if !ends_within(&child, moment) {
                kill_process(Pid::from_child(&child), Signal::INT).unwrap();
                // The second one leaves nobody time to be in order.
                if number % 4 == 3 && !ends_within(&child, Duration::ZERO) {
                    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
                }
                assert!(ends_within(&child, Duration::from_secs(5)), "after {moment:?} it goes on");
            }
            let told = run.ended(child);
            let partial = told.report["outcome"]["interrupted"] == true;
            match told.code {
                // Before it listened there was nothing to put in order.
                code if code == -Signal::INT.as_raw() => assert_eq!(told.report, Value::Null),
                130 => assert!(partial, "{moment:?}"),
                code => assert_eq!((code, partial), (0, false), "{moment:?}: {}", told.texts[2]),
            }
        });
    }
}

#[test]
fn a_guest_that_starts_late_passes_if_it_is_given_the_time() {
    let script = format!("sleep 8; exec {}", mock(SUITE, None).join(" "));
    let told = measured(|| {
        Run::shell(&script).with(&["--start-timeout", "30s", "--only", "*/members-fit"]).told(WITHIN)
    });
    assert_eq!((told.code, told.all_have("fail")), (0, Vec::new()), "{}", told.cause());
    assert_eq!(told.all_have("pass"), ["reasonix/members/members-fit"]);
}

/// The rows that nobody can decide, or that are broken, where the guest answers no intercept.
const NEED_AN_INTERCEPT: &[&str] = &[
    "reasonix/transport/many-answers-whole",
    "reasonix/envelope/own-ids-integers",
    "reasonix/envelope/own-params-objects",
    "reasonix/envelope/unknown-members-in-answers-ignored",
    "reasonix/envelope/second-responses-ignored",
    "reasonix/envelope/late-responses-ignored",
    "reasonix/envelope/responses-matched-by-integer",
    "reasonix/envelope/malformed-responses-leave-it-open",
    "reasonix/envelope/overload-answered",
    "reasonix/members/unknown-refused",
    "reasonix/members/unknown-deep-refused",
    "reasonix/members/missing-refused",
    "reasonix/members/null-refused",
    "reasonix/members/null-payload-accepted",
    "reasonix/members/enums-closed",
    "reasonix/members/minimums-kept",
    "reasonix/lifecycle/requests-before-initialized-refused",
    "reasonix/lifecycle/opens-with-initialized",
    "reasonix/content/read-as-given",
    "reasonix/content/read-when-open",
    "reasonix/content/tampered-content-refused",
    "reasonix/content/oversized-content-refused",
    "reasonix/content/odd-descriptors-refused",
    "reasonix/content/odd-pages-refused",
    "reasonix/content/expired-passed-on",
    "reasonix/interception/every-point-ruled",
    "reasonix/interception/unwatched-points-continue",
    "reasonix/interception/permissions-in-place",
    "reasonix/interception/intercepts-overlap",
    "reasonix/errors/more-data-tolerated",
    "reasonix/errors/misdescribed-reason-distrusted",
];

/// Those where it answers no shutdown.
const NEED_A_SHUTDOWN: &[&str] = &[
    "reasonix/lifecycle/shutdown-answered-in-time",
    "reasonix/lifecycle/shutdown-accepted",
    "reasonix/lifecycle/negative-timeout-refused",
    "reasonix/lifecycle/early-shutdown-served",
    "reasonix/lifecycle/exits-after-shutdown",
];

#[test]
fn one_request_that_hangs_costs_six_seconds_and_the_rows_that_need_it() {
    let healthy = alone(|| Run::guest(&["conforms"]).told(WITHIN));
    assert_eq!(healthy.code, 0, "{}", healthy.cause());
    assert_eq!(healthy.waits, []);
    let passed = healthy.all_have("pass");
    for (method, suffer) in [
        // Where fences hang that may be nearly all.
        ("extension/provider/stream/cancel", None),
        ("extension/intercept", Some(NEED_AN_INTERCEPT)),
        ("extension/shutdown", Some(NEED_A_SHUTDOWN)),
    ] {
        let hanging = alone(|| Run::guest(&["hangs", method]).told(WITHIN));
        waited_once(method, &hanging.waits);
        let still = hanging.all_have("pass");
        let lost: Vec<_> = passed.iter().filter(|id| !still.contains(id)).map(String::as_str).collect();
        if let Some(suffer) = suffer {
            assert!(lost.iter().all(|id| suffer.contains(id)), "{method}: {lost:?}");
        }
        assert!(!lost.is_empty(), "{method}");
    }
}

/// What waits a hanging request may cost. No process waits twice, and a script that is tried `…-again` six seconds with
/// both tries. The processes of the first round wait side by side; of those that are started for one script of a round
/// alone, `001-07-…`, one waits as long as these, and the others know by then what they are in for.
fn waited_once(method: &str, waits: &[(String, u64)]) {
    const BOTH_TRIES: u64 = 6_000_000;
    const KNOWN: u64 = 1_000_000;
    assert!(!waits.is_empty(), "{method}: nothing was waited for");
    let names: BTreeSet<_> = waits.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), waits.len(), "{method}: {waits:?}");
    let mut tries = BTreeMap::new();
    for (name, within) in waits {
        *tries.entry(name.strip_suffix("-again").unwrap_or(name)).or_insert(0) += within;
    }
    assert!(tries.values().all(|within| *within <= BOTH_TRIES), "{method}: {waits:?}");
    let alone = |name: &str| name.split('-').nth(1).is_some_and(|part| part.parse::<u32>().is_ok());
    let whole = waits.iter().filter(|(name, within)| alone(name) && *within > KNOWN);
    assert!(whole.count() <= 1, "{method}: {waits:?}");
}

#[test]
fn an_answer_in_a_hopeless_form_is_waited_for_no_longer() {
    for (misdeed, cause) in [
        (
            "under-text-ids",
            "the guest answered initialize under the id \"1\", a string, and not under the number 1",
        ),
        ("without-version", "the guest answered initialize with what is no frame: jsonrpc is not \"2.0\""),
    ] {
        let told = measured(|| Run::guest(&[misdeed]).told(WITHIN));
        assert_eq!((told.cause(), told.code), (cause, 1));
        assert_eq!(told.waits, []);
        assert_eq!(told.all_have("pass"), Vec::<String>::new());
    }
}
