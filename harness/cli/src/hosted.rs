//! A sidecar under the reference host, in a test of somebody's project: the test says what the user does, and looks at
//! what came of it, what the user was shown, and every frame that went between the two.
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! fn greets() {
//!     let mut host = sidecert::host("reasonix-v2", ["./my-sidecar"]).start().unwrap();
//!     let turn = host.turn("Hello").unwrap();
//!     assert_eq!(turn.text(), Some("Hello from my sidecar"));
//!     assert!(host.frames().iter().any(|frame| frame.method() == Some("extension/intercept".to_owned())));
//!     assert!(host.stop().unwrap().is_done());
//! }
//!
//! fn main() -> ExitCode {
//!     sidecert::hosted::tests([("greets", greets as fn())])
//! }
//! ```
//!
//! The sidecar is a real process, started by way of a launcher, which takes all that the sidecar starts with it. In a
//! program that ends with [`tests`] (in `Cargo.toml`: `harness = false`) that is the program itself. Under an ordinary
//! `#[test]` it is the program `sidecert`, which is looked for as the adapters do: on `PATH`, or named by the variable
//! `SIDECERT`, or by [`Hosting::launcher`].

mod witness;

use std::ffi::OsString;
use std::fmt;
use std::io::{self, PipeWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Trial};
use serde_json::{Value, json};
use sidecert_mocks::MockHost;
use sidecert_mocks::reasonix::host::Manners;
use sidecert_proto::budget::Budget;
use sidecert_proto::contract::Contract;
use sidecert_proto::machine::Launch;
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::script::Setting;
use sidecert_proto::suite::Suite;
use sidecert_runner::{Links, Stop, drive_here, launch};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::{contract, output};
use witness::{Heard, Witness};

/// The name of a sidecar without a manifest of its own.
const NAME: &str = "sidecar";
/// The variable that says where the program `sidecert` is.
const PROGRAM: &str = "SIDECERT";

/// Whether this program is a launcher if it is asked to be.
static LAUNCHES: AtomicBool = AtomicBool::new(false);

/// Is a test program whose tests may host sidecars: call it in `main` before anything else, and end with what it returns.
pub fn tests(tests: impl IntoIterator<Item = (&'static str, fn())>) -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == launch::WORD) {
        return launch::main(words);
    }
    LAUNCHES.store(true, Ordering::Relaxed);
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_args(), tests.into_iter().map(trial).collect()).exit_code()
}

/// A sidecar that is to be hosted. `suite` is the edition of the protocol that the host speaks, `command` the sidecar's
/// program and arguments, as they are: no shell reads them.
pub fn host<W: Into<OsString>>(suite: &str, command: impl IntoIterator<Item = W>) -> Hosting {
    Hosting {
        suite: suite.to_owned(),
        command: command.into_iter().map(Into::into).collect(),
        manifest: None,
        contract: None,
        env: Vec::new(),
        launcher: None,
        released: false,
        within: Duration::from_micros(Budget::default().outcome),
    }
}

/// A sidecar that is to be hosted, and how. Paths start where the tests run: at the package's folder.
#[derive(Clone, Debug)]
#[must_use = "it does nothing until `start` is called"]
pub struct Hosting {
    suite: String,
    command: Vec<OsString>,
    manifest: Option<PathBuf>,
    contract: Option<PathBuf>,
    env: Vec<(String, String)>,
    launcher: Option<PathBuf>,
    released: bool,
    within: Duration,
}

impl Hosting {
    /// The sidecar's manifest. Its command is not: that is the one given here. Without a manifest the sidecar is called
    /// `sidecar`, has every capability and steps in at every point.
    pub fn manifest(self, file: impl AsRef<Path>) -> Self {
        Self { manifest: Some(file.as_ref().to_owned()), ..self }
    }

    /// The schema in force, instead of the suite's.
    pub fn contract(self, file: impl AsRef<Path>) -> Self {
        Self { contract: Some(file.as_ref().to_owned()), ..self }
    }

    /// A variable that the sidecar has besides those of the test.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// An executable that starts the sidecar: `sidecert`, or any whose `main` ends with [`tests`].
    pub fn launcher(self, program: impl AsRef<Path>) -> Self {
        Self { launcher: Some(program.as_ref().to_owned()), ..self }
    }

    /// The host does as the released one where that and the specification part.
    pub fn released(self) -> Self {
        Self { released: true, ..self }
    }

    /// How long anything that is asked for may take; 20 seconds unless this is called.
    pub fn within(self, time: Duration) -> Self {
        Self { within: time, ..self }
    }

    /// Starts the host, and a session with the sidecar in it.
    pub fn start(self) -> Result<Host, NotHosted> {
        let suite = sidecert_cases::suite(&self.suite)
            .ok_or_else(|| NotHosted::Wrong(format!("there is no suite {:?}", self.suite)))?;
        let wrong = |fault: crate::exit::Fault| NotHosted::Wrong(fault.to_string());
        let contract = contract::of(suite, self.contract.as_deref()).map_err(wrong)?;
        let plugin = self.plugin(&contract)?;
        let mut host = self.running(suite, contract)?;
        let workspace = host.folder.path().join("workspace");
        std::fs::create_dir(&workspace).map_err(NotHosted::ours)?;
        let started =
            host.ask("start", json!({ "workspace": workspace.to_string_lossy(), "plugins": [plugin] }))?;
        if started.is_done() { Ok(host) } else { Err(NotHosted::NotStarted(started, host.frames().to_vec())) }
    }

    /// What the host is asked to install.
    fn plugin(&self, contract: &Contract) -> Result<Value, NotHosted> {
        let wrong = |says: String| NotHosted::Wrong(says);
        let words: Vec<String> =
            self.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let [program, args @ ..] = words.as_slice() else {
            return Err(wrong("there is no command".to_owned()));
        };
        // The host takes absolute paths only, as a manifest must have them.
        let program = if program.contains('/') { Some(absolute(program.into())) } else { on_path(program) };
        let program = program.ok_or_else(|| wrong(format!("there is no program {:?} on PATH", words[0])))?;
        let program = program.to_string_lossy();
        let mut manifest = if let Some(path) = &self.manifest {
            let text =
                output::read_file(path).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
            serde_json::from_slice(&text).map_err(|error| wrong(format!("{}: {error}", path.display())))?
        } else {
            let probe = Launch::default();
            let points: Vec<&str> = contract.events.iter().map(String::as_str).collect();
            let plugin = Plugin::new(&Setting { probe: &probe, ..Setting::plain(contract) }, NAME);
            let plugin: Value = serde_json::from_str(&plugin.intercepts(&points).json()).unwrap_or_default();
            plugin["manifest"].clone()
        };
        if !manifest.is_object() {
            return Err(wrong("the manifest is no JSON object".to_owned()));
        }
        let runtime = &mut manifest["runtime"];
        (runtime["command"], runtime["args"]) = (json!(program), json!(args));
        for (name, value) in &self.env {
            runtime["env"][name] = json!(value);
        }
        let name = manifest["name"].as_str().unwrap_or(NAME).to_owned();
        Ok(json!({ "name": name, "enabled": true, "manifest": manifest }))
    }

    /// The host, before it is asked for anything.
    fn running(self, suite: &'static Suite, contract: Contract) -> Result<Host, NotHosted> {
        let launcher = self.launcher.clone().map_or_else(found_launcher, |path| Ok(absolute(path)))?;
        let folder = tempfile::Builder::new().prefix("sidecert-").tempdir().map_err(NotHosted::ours)?;
        let (theirs, asks) = io::pipe().map_err(NotHosted::ours)?;
        // Nothing is written here: what the host says on its own link is heard before it would be.
        let (kept, nowhere) = io::pipe().map_err(NotHosted::ours)?;
        let (tell, heard) = mpsc::channel();
        let (stop, listening) = watch::channel(Stop::No);
        let manners = if self.released { Manners::released() } else { Manners::default() };
        let driving = thread::spawn(move || {
            let host = MockHost::new(&contract, manners, None);
            let mut witness = Witness::new(host, (suite.line_bytes_max)(&contract), tell);
            let links = Links::pipes(theirs.into(), nowhere.into()).map_err(|error| error.to_string())?;
            let ended = drive_here(&mut witness, links.launcher(launcher), listening, &mut |_| Ok(()));
            drop(kept);
            ended.map(drop).map_err(|fault| fault.to_string())
        });
        let greeting = json!({ "shim": 1, "suite": suite.name, "folder": folder.path().to_string_lossy() });
        let mut host = Host {
            asks,
            heard,
            driving: Some(driving),
            stop,
            within: self.within,
            asked: 0,
            over: Vec::new(),
            shown: Vec::new(),
            found: Vec::new(),
            frames: Vec::new(),
            folder,
        };
        host.write(&greeting)?;
        Ok(host)
    }
}

/// What starts processes where nobody said what does.
fn found_launcher() -> Result<PathBuf, NotHosted> {
    if LAUNCHES.load(Ordering::Relaxed) {
        return Ok("/proc/self/exe".into());
    }
    if let Some(named) = std::env::var_os(PROGRAM).filter(|named| !named.is_empty()) {
        return Ok(absolute(named.into()));
    }
    on_path("sidecert").ok_or_else(|| {
        let says = "nothing can start the sidecar: the program sidecert is neither on PATH nor named by the variable \
                    SIDECERT or by `launcher`, and `main` does not end with `sidecert::hosted::tests`";
        NotHosted::Wrong(says.to_owned())
    })
}

/// The file that the name of a program stands for.
fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .map(absolute)
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

/// A session of the reference host with a sidecar in it. When it is dropped, the sidecar and all that it started end
/// before the drop returns.
#[derive(Debug)]
pub struct Host {
    asks: PipeWriter,
    heard: Receiver<Heard>,
    driving: Option<JoinHandle<Result<(), String>>>,
    stop: watch::Sender<Stop>,
    within: Duration,
    asked: u64,
    /// What is over and was not looked at, by number.
    over: Vec<(u64, Value)>,
    shown: Vec<Value>,
    found: Vec<Value>,
    frames: Vec<Frame>,
    folder: TempDir,
}

impl Host {
    /// The user says this.
    pub fn turn(&mut self, text: &str) -> Result<Outcome, NotHosted> {
        self.ask("turn", json!({ "text": text }))
    }

    /// The user invokes an action of the sidecar, which is called `plugin`.
    pub fn action(
        &mut self,
        plugin: &str,
        action: &str,
        args: &[(&str, &str)],
    ) -> Result<Outcome, NotHosted> {
        let args: Value = args.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        self.ask("action", json!({ "plugin": plugin, "action": action, "args": args }))
    }

    /// The sidecar is started again, in the next generation.
    pub fn reload(&mut self) -> Result<Outcome, NotHosted> {
        self.ask("reload", json!({}))
    }

    /// The session ends in order.
    pub fn stop(&mut self) -> Result<Outcome, NotHosted> {
        self.ask("stop", json!({}))
    }

    /// Asks for any word of `docs/host-shim.md`, with the members that go with it, and waits for what comes of it.
    pub fn ask(&mut self, word: &str, members: Value) -> Result<Outcome, NotHosted> {
        let asked = self.begin(word, members)?;
        self.outcome(asked)
    }

    /// Asks, and does not wait: to cancel a turn, or to answer a prompt that it shows.
    pub fn begin(&mut self, word: &str, mut members: Value) -> Result<Asked, NotHosted> {
        self.asked += 1;
        members["ask"] = self.asked.into();
        members["do"] = word.into();
        self.write(&members)?;
        Ok(Asked { number: self.asked, word: word.to_owned() })
    }

    /// Waits for what comes of something.
    pub fn outcome(&mut self, asked: Asked) -> Result<Outcome, NotHosted> {
        let until = Instant::now() + self.within;
        loop {
            if let Some(at) = self.over.iter().position(|(number, _)| *number == asked.number) {
                return Ok(Outcome(self.over.swap_remove(at).1));
            }
            let heard = self.heard.recv_timeout(until.saturating_duration_since(Instant::now()));
            match heard {
                Ok(heard) => self.hear(heard),
                Err(RecvTimeoutError::Timeout) => {
                    return Err(NotHosted::Overdue { word: asked.word, within: self.within });
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone()),
            }
        }
    }

    /// What the user was shown so far, in order: the objects that `docs/host-shim.md` calls `shown`.
    pub fn shown(&mut self) -> &[Value] {
        self.hear_all();
        &self.shown
    }

    /// What the host keeps for itself so far: the objects that `docs/host-shim.md` calls `found`.
    pub fn found(&mut self) -> &[Value] {
        self.hear_all();
        &self.found
    }

    /// What went between the host and the sidecar so far, in the order in which the host wrote and read it.
    pub fn frames(&mut self) -> &[Frame] {
        self.hear_all();
        &self.frames
    }

    fn hear_all(&mut self) {
        while let Ok(heard) = self.heard.try_recv() {
            self.hear(heard);
        }
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Frame(frame) => self.frames.push(frame),
            Heard::Line(mut line) => {
                if let Some(number) = line["outcome"].as_u64() {
                    self.over.push((number, line));
                } else if line["shown"].is_object() {
                    self.shown.push(line["shown"].take());
                } else if line["found"].is_object() {
                    self.found.push(line["found"].take());
                }
            }
        }
    }

    fn write(&mut self, line: &Value) -> Result<(), NotHosted> {
        let written = self.asks.write_all(format!("{line}\n").as_bytes());
        written.map_err(|_| self.gone())
    }

    fn gone(&mut self) -> NotHosted {
        let ended = self.driving.take().map(JoinHandle::join);
        NotHosted::Ours(match ended {
            Some(Ok(Err(says))) => says,
            Some(Err(_)) => "the reference host panicked".to_owned(),
            _ => "the reference host has ended".to_owned(),
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // If nobody listens, it has ended already.
        let _ = self.stop.send(Stop::Now);
        drop(self.driving.take().map(JoinHandle::join));
    }
}

/// Something that was asked for, and is not over.
#[derive(Debug)]
pub struct Asked {
    number: u64,
    word: String,
}

/// What came of something that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome(Value);

impl Outcome {
    /// Whether it was done.
    pub fn is_done(&self) -> bool {
        self.0["done"] == true
    }

    /// What the user is told where the sidecar blocked it.
    pub fn blocked(&self) -> Option<&str> {
        self.0["blocked"].as_str()
    }

    /// What the user is told where it failed.
    pub fn failed(&self) -> Option<&str> {
        self.0["failed"].as_str()
    }

    /// Why the host does not do it now, or does not take it.
    pub fn refused(&self) -> Option<&str> {
        self.0["refused"].as_str()
    }

    /// The reason of the protocol where it failed, if it has one.
    pub fn reason(&self) -> Option<&str> {
        self.0["reason"].as_str()
    }

    /// What was shown of an answer, or what an action said.
    pub fn text(&self) -> Option<&str> {
        self.0["text"].as_str()
    }

    /// All of it, as `docs/host-shim.md` has it.
    pub fn json(&self) -> &Value {
        &self.0
    }
}

/// A line between the host and the sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Whether the sidecar wrote it.
    pub of_sidecar: bool,
    /// Which launch of the sidecar it belongs to, from 1.
    pub launch: usize,
    /// Its text, without the line feed.
    pub text: String,
}

impl Frame {
    /// It as JSON; `null` where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// The method that it asks for or tells; none in an answer.
    pub fn method(&self) -> Option<String> {
        self.json()["method"].as_str().map(str::to_owned)
    }
}

/// Why a sidecar is not hosted, or no more.
#[derive(Clone, Debug, PartialEq)]
pub enum NotHosted {
    /// Something that the test says is wrong.
    Wrong(String),
    /// The session did not begin: what the user is told, and what went between host and sidecar by then.
    NotStarted(Outcome, Vec<Frame>),
    /// Something was not over in time.
    Overdue {
        /// What was asked for.
        word: String,
        /// How long was waited.
        within: Duration,
    },
    /// What stopped us, and is no fault of the sidecar's.
    Ours(String),
}

impl NotHosted {
    #[expect(clippy::needless_pass_by_value, reason = "it is given to map_err")]
    fn ours(error: io::Error) -> Self {
        Self::Ours(error.to_string())
    }
}

impl fmt::Display for NotHosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(says) | Self::Ours(says) => f.write_str(says),
            Self::NotStarted(outcome, _) => {
                let told = outcome.failed().or(outcome.refused()).or(outcome.blocked()).unwrap_or_default();
                write!(f, "the session did not begin: {told}")
            }
            Self::Overdue { word, within } => {
                write!(f, "{word:?} was not over in {} ms", within.as_millis())
            }
        }
    }
}

impl std::error::Error for NotHosted {}
