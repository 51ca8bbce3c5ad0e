//! Records a run: every process of it played, its transcript written, in a folder.
//!
//! The first process is played alone; if its opening fails, nothing else is started. Where tours share a process and
//! anything but green shows, that recording is set aside and each of them is played again alone: sharing costs time,
//! never a verdict. Where an answer never came, the script is played once more, and only the second time counts.

use std::{
    collections::{BTreeSet, VecDeque},
    error::Error,
    fmt,
    fs::File,
    io::{self, Write as _},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use sidecert_proto::{
    budget::Budget,
    contract::Side,
    digest::Digest,
    judge::Judge,
    play::Play,
    run::Recording,
    script::{Process as Own, ScriptDef, Setting},
    suite::Suite,
    transcript::End,
    verdict::{Profile, Verdict, Why},
};
use tokio::sync::watch;

use crate::{
    budget::RECORD_BYTES,
    drive::{DriveFault, drive_here},
    links::Links,
    process::{Process, Spawn, SpawnFault},
    stop::Stop,
};

/// What is to be recorded.
#[derive(Debug)]
pub struct Order<'a> {
    /// The suite.
    pub suite: &'static Suite,
    /// The facts of the run.
    pub setting: Setting<'a>,
    /// The scripts to play, the opening and the closing aside.
    pub scripts: &'a [&'static ScriptDef],
    /// The requirements that decide whether tours that shared a process are played again alone.
    pub selected: &'a BTreeSet<String>,
    /// Every script in a process of its own.
    pub isolate: bool,
    /// How many processes run at once.
    pub jobs: NonZeroUsize,
    /// How long to wait, and for what.
    pub budget: Budget,
    /// What to start.
    pub spawn: &'a Spawn,
    /// Where the transcripts go. It exists.
    pub folder: &'a Path,
    /// The user's wish to stop.
    pub stop: watch::Receiver<Stop>,
    /// Who is shown what is recorded, while it is.
    pub watch: Option<&'a dyn Watch>,
}

/// Follows a run. Called from the thread that plays a process, so it had better be quick.
pub trait Watch: fmt::Debug + Sync {
    /// These whole lines were added to the recording of a process.
    fn recorded(&self, process: &str, text: &[u8]);
}

/// What stopped us.
#[derive(Debug)]
pub enum RecordFault {
    /// The target could not be started.
    Spawn(SpawnFault),
    /// A transcript could not be written, or read back.
    Disk {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The platform gave us no way to watch the target.
    Links(io::Error),
}

impl fmt::Display for RecordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn(fault) => fault.fmt(f),
            Self::Disk { path, error } => {
                write!(f, "the recording {} could not be written: {error}", path.display())
            }
            Self::Links(error) => write!(f, "the target could not be watched: {error}"),
        }
    }
}

impl Error for RecordFault {}

/// Records a run. The recordings are in the order of their names, whatever the order in which they were made.
///
/// What was recorded before a fault is returned with it.
pub fn record(order: &Order<'_>) -> (Vec<Recording>, Result<(), RecordFault>) {
    let mut tasks: VecDeque<Task> = order
        .suite
        .processes(order.scripts, order.isolate)
        .into_iter()
        .enumerate()
        .map(|(place, plan)| Task::first(order.suite, place + 1, plan))
        .collect();
    let mut state = State { tasks: VecDeque::new(), running: 0, recordings: Vec::new(), fault: None };
    if let Some(task) = tasks.pop_front() {
        let opened = state.take_in(order, &task, play(order, &task));
        if opened && state.fault.is_none() {
            state.tasks.extend(tasks);
        }
    }
    let shared = Shared { state: Mutex::new(state), changed: Condvar::new() };
    // There are never more processes to play at once than there are scripts.
    let workers = order.jobs.get().min(order.scripts.len().max(1));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| shared.work(order));
        }
    });
    let State { mut recordings, fault, .. } =
        shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    recordings.sort_by(|first, second| first.name.cmp(&second.name));
    (recordings, fault.map_or(Ok(()), Err))
}

/// One process to be played.
#[derive(Clone, Debug)]
struct Task {
    name: String,
    plan: Vec<&'static ScriptDef>,
    /// Whether it is played because another recording was set aside.
    again: bool,
}

impl Task {
    fn first(suite: &Suite, place: usize, plan: Vec<&'static ScriptDef>) -> Self {
        let name = format!("{place:03}-{}", namesake(suite, &plan));
        Self { name, plan, again: false }
    }
}

/// The script that a process is named after: the first one that is not only the opening.
fn namesake(suite: &Suite, plan: &[&'static ScriptDef]) -> &'static str {
    let own = plan.iter().find(|script| ***script != *suite.opening && ***script != *suite.closing);
    own.or(plan.first()).map_or("nothing", |script| script.name)
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    tasks: VecDeque<Task>,
    running: usize,
    recordings: Vec<Recording>,
    fault: Option<RecordFault>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Plays tasks until there are none and none can come any more.
    fn work(&self, order: &Order<'_>) {
        let mut state = self.lock();
        loop {
            if state.fault.is_some() || *order.stop.borrow() != Stop::No {
                state.tasks.clear();
            }
            let Some(task) = state.tasks.pop_front() else {
                if state.running == 0 {
                    return self.changed.notify_all();
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.running += 1;
            drop(state);
            let played = play(order, &task);
            state = self.lock();
            state.running -= 1;
            state.take_in(order, &task, played);
            self.changed.notify_all();
        }
    }
}

impl State {
    /// Takes in what a task came to; `false` if its opening failed.
    fn take_in(&mut self, order: &Order<'_>, task: &Task, played: Result<Played, RecordFault>) -> bool {
        let mut played = match played {
            Ok(played) => played,
            Err(fault) => {
                self.fault.get_or_insert(fault);
                return false;
            }
        };
        if let Some(why) = played.again.take() {
            self.tasks.extend(again(order.suite, task));
            played.recording.set_aside = Some(why);
        }
        self.recordings.push(played.recording);
        played.opened
    }
}

/// What is played in the place of a task whose recording is set aside.
fn again(suite: &Suite, task: &Task) -> Vec<Task> {
    let tours: Vec<_> = task.plan.iter().copied().filter(|script| is_tour(suite, script)).collect();
    if tours.len() < 2 {
        return vec![Task { name: format!("{}-again", task.name), again: true, ..task.clone() }];
    }
    let number = task.name.split('-').next().unwrap_or_default();
    let alone = |(place, tour): (usize, &'static ScriptDef)| Task {
        name: format!("{number}-{:02}-{}", place + 1, tour.name),
        plan: vec![suite.opening, tour, suite.closing],
        again: false,
    };
    tours.into_iter().enumerate().map(alone).collect()
}

fn is_tour(suite: &Suite, script: &ScriptDef) -> bool {
    script.process == Own::Tour && *script != *suite.opening && *script != *suite.closing
}

/// What a process came to.
struct Played {
    recording: Recording,
    /// Whether its opening succeeded.
    opened: bool,
    /// Why it is to be played again, if it is.
    again: Option<String>,
}

fn play(order: &Order<'_>, task: &Task) -> Result<Played, RecordFault> {
    let path = order.folder.join(format!("{}.ndjson", task.name));
    let disk = |error| RecordFault::Disk { path: path.clone(), error };
    let tours = task.plan.iter().filter(|script| is_tour(order.suite, script)).count();
    let mut sink = Sink {
        file: create(&path).map_err(disk)?,
        digest: Digest::default(),
        judge: (tours > 1).then(|| judge(order, task)),
        watch: order.watch.map(|watch| (watch, task.name.as_str())),
    };
    let drained_at = if order.watch.is_some() { 1 } else { RECORD_BYTES };
    let process = Process::spawn(order.spawn).map_err(RecordFault::Spawn)?;
    let mut play = Play::new(
        &task.name,
        task.plan.iter().copied(),
        (order.suite.host)(&order.setting),
        order.setting,
        order.budget,
        (order.suite.line_bytes_max)(order.setting.contract),
    );
    let driven =
        drive_here(&mut play, Links::guest(process), order.stop.clone(), &mut |play: &mut Play<'_>| {
            if play.record().len() >= drained_at { sink.drain(play.record()) } else { Ok(()) }
        });
    match driven {
        Ok(_) => {}
        Err(DriveFault::Sink(error)) => return Err(disk(error)),
        Err(DriveFault::Links(error)) => return Err(RecordFault::Links(error)),
    }
    sink.drain(play.record()).map_err(disk)?;
    let scripts = task.plan.iter().map(|script| script.name.to_owned()).collect();
    let opened = play.cut_in() != Some(order.suite.opening.name);
    // A handshake that failed is not tried twice, and nothing is when the user wants to stop.
    let once_more = opened && play.end() != Some(End::Interrupted) && *order.stop.borrow() == Stop::No;
    let again = match sink.judge {
        _ if !once_more => None,
        Some(judge) => not_green(judge, task)
            .map(|id| format!("{id} was not green in a shared process, so every tour was played alone")),
        None if play.missed_an_answer() && !task.again => {
            Some("an answer never came, so it was played again".to_owned())
        }
        None => None,
    };
    let recording =
        Recording { name: task.name.clone(), sha256: sink.digest.finish(), scripts, set_aside: None };
    Ok(Played { recording, opened, again })
}

/// Evidence is the user's own: nobody else reads what a target said.
fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Where a transcript goes: a file, its digest, and, where tours share a process, a judge that reads along.
struct Sink<'o> {
    file: File,
    digest: Digest,
    judge: Option<Judge<'o>>,
    watch: Option<(&'o dyn Watch, &'o str)>,
}

impl Sink<'_> {
    fn drain(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        self.file.write_all(text)?;
        self.digest.update(text);
        if let Some(judge) = &mut self.judge {
            judge.read(text);
        }
        if let Some((watch, process)) = self.watch {
            watch.recorded(process, text);
        }
        text.clear();
        Ok(())
    }
}

fn judge<'o>(order: &Order<'o>, task: &Task) -> Judge<'o> {
    let mut judge = Judge::new(order.suite, Side::Guest, Profile::Specified, order.setting, order.selected);
    judge.begin(&task.name);
    judge
}

/// The first requirement that is neither green nor undecided for a reason that has nothing to do with this process.
fn not_green(judge: Judge<'_>, task: &Task) -> Option<&'static str> {
    let found = judge.finish().verdicts.into_iter().find(|(row, verdict)| match verdict {
        Verdict::Fail(_) | Verdict::Warn(_) => true,
        Verdict::Undecided(Why::CutShort(_)) => {
            row.script().is_some_and(|script| task.plan.contains(&script))
        }
        _ => false,
    });
    found.map(|(row, _)| row.id)
}
