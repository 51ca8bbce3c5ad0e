//! Records a run: every process of it played, its transcript written, in a folder.
//!
//! The others begin once the first process has opened; if its opening fails, none does. Where tours share a process
//! and anything but green shows, that recording is set aside and each of them is played again alone: sharing costs
//! time, never a verdict. Where an answer never came, the script is played once more beside the others, and only the
//! second time counts; where the same answer is missed in other scripts, that one second time speaks for them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    error::Error,
    fmt,
    fs::File,
    io::{self, Write as _},
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use sidecert_proto::{
    budget::{Budget, RUN_BYTES_MOST},
    contract::Side,
    digest::Digest,
    judge::Judge,
    machine::Micros,
    play::{FENCE, Missed, Play},
    run::Recording,
    script::{Process as Own, ScriptDef, Setting},
    suite::Suite,
    transcript::End,
    verdict::{Profile, Verdict, Why},
};
use tokio::sync::watch;

use crate::{
    budget::{IDLE_AFTER, RECORD_BYTES},
    drive::{DriveFault, drive_here},
    links::{Links, micros},
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
    /// How many more may run while as many say nothing.
    pub idle: usize,
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
    let mut held: VecDeque<Task> = order
        .suite
        .processes(order.scripts, order.isolate)
        .into_iter()
        .enumerate()
        .map(|(place, plan)| Task::first(order.suite, place + 1, plan))
        .collect();
    let state = State { tasks: held.pop_front().into_iter().collect(), held, ..State::default() };
    // There are never more processes to play at once than there are scripts.
    let workers = order.jobs.get().saturating_add(order.idle).min(order.scripts.len().max(1));
    let shared = Shared { state: Mutex::new(state), changed: Condvar::new(), clock: Instant::now(), workers };
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| shared.work(order));
        }
    });
    let State { mut recordings, fault, undecided, .. } =
        shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    recordings.extend(undecided.into_iter().map(|undecided| undecided.recording));
    recordings.sort_by(|first, second| first.name.cmp(&second.name));
    (recordings, fault.map_or(Ok(()), Err))
}

/// One process to be played.
#[derive(Clone, Debug)]
struct Task {
    name: String,
    plan: Vec<&'static ScriptDef>,
    /// The missing answer for which it is played again, if it is.
    again: Option<Missed>,
}

impl Task {
    fn first(suite: &Suite, place: usize, plan: Vec<&'static ScriptDef>) -> Self {
        let name = format!("{place:03}-{}", namesake(suite, &plan));
        Self { name, plan, again: None }
    }

    /// The tours that shared this process, each alone. The one in which an answer was missed is thereby played again.
    fn alone(&self, suite: &Suite, missed: Option<&(String, Missed)>) -> Vec<Self> {
        let number = self.name.split('-').next().unwrap_or_default();
        let tours = self.plan.iter().copied().filter(|script| is_tour(suite, script));
        let alone = |(place, tour): (usize, &'static ScriptDef)| Self {
            name: format!("{number}-{:02}-{}", place + 1, tour.name),
            plan: vec![suite.opening, tour, suite.closing],
            again: missed.filter(|(script, _)| script == tour.name).map(|(_, missed)| missed.clone()),
        };
        tours.enumerate().map(alone).collect()
    }
}

/// The script that a process is named after: the first one that is not only the opening.
fn namesake(suite: &Suite, plan: &[&'static ScriptDef]) -> &'static str {
    let own = plan.iter().find(|script| ***script != *suite.opening && ***script != *suite.closing);
    own.or(plan.first()).map_or("nothing", |script| script.name)
}

fn is_tour(suite: &Suite, script: &ScriptDef) -> bool {
    script.process == Own::Tour && *script != *suite.opening && *script != *suite.closing
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    clock: Instant,
    workers: usize,
}

#[derive(Default)]
struct State {
    tasks: VecDeque<Task>,
    /// What is to be played once the first process has opened.
    held: VecDeque<Task>,
    /// When something last happened in each process that runs, in microseconds; the most there can be until it has
    /// opened: one that starts is at work.
    running: Vec<Arc<AtomicU64>>,
    recordings: Vec<Recording>,
    /// How much was recorded, in bytes.
    recorded: u64,
    /// Missing answers for which a script is being played again, and how long each was waited for the first time.
    trying: BTreeMap<String, Micros>,
    /// Missing answers that were missing again.
    confirmed: BTreeSet<String>,
    /// Recordings that miss an answer for which another script is being played again.
    undecided: Vec<Undecided>,
    fault: Option<RecordFault>,
}

struct Undecided {
    missed: Missed,
    task: Task,
    recording: Recording,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Micros {
        micros(self.clock.elapsed())
    }

    /// Plays tasks until there are none and none can come any more.
    fn work(&self, order: &Order<'_>) {
        let mut state = self.lock();
        loop {
            if state.fault.is_some() || *order.stop.borrow() != Stop::No {
                state.tasks.clear();
                state.held.clear();
            }
            if state.busy(self.now()) < order.jobs.get()
                && let Some(task) = state.tasks.pop_front()
            {
                let seen = Arc::new(AtomicU64::new(Micros::MAX));
                state.running.push(Arc::clone(&seen));
                let mut budget = order.budget;
                // No wait is paid in full again and again for the same silence. A script that this cuts short is played
                // again, too, unless the silence is confirmed.
                if state.confirmed.contains(FENCE) {
                    budget.fence_most = budget.answer_least;
                } else if let Some(within) = state.trying.get(FENCE) {
                    budget.fence_most = second_time(&budget, *within);
                }
                let share = RUN_BYTES_MOST.saturating_sub(state.recorded) / self.workers as u64;
                budget.record_bytes = budget.record_bytes.min(share);
                drop(state);
                let played = self.play(order, &task, budget, &seen);
                state = self.lock();
                state.running.retain(|other| !Arc::ptr_eq(other, &seen));
                state.take_in(order.suite, task, played);
                self.changed.notify_all();
            } else if state.running.is_empty() && state.tasks.is_empty() {
                return self.changed.notify_all();
            } else if state.tasks.is_empty() {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else {
                // Nobody tells that a process has nothing to do.
                let waited = self.changed.wait_timeout(state, IDLE_AFTER / 4);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn play(
        &self,
        order: &Order<'_>,
        task: &Task,
        budget: Budget,
        seen: &AtomicU64,
    ) -> Result<Played, RecordFault> {
        let mut opened = false;
        play(order, task, budget, &mut |play| {
            if play.is_open() {
                seen.store(self.now(), Ordering::Relaxed);
                if !std::mem::replace(&mut opened, true) && self.lock().open() {
                    self.changed.notify_all();
                }
            }
        })
    }
}

impl State {
    /// How many processes want a processor. One that has said nothing for a while waits for time to pass, as we do.
    fn busy(&self, now: Micros) -> usize {
        let idle_after = micros(IDLE_AFTER);
        let busy = |seen: &&Arc<AtomicU64>| now < seen.load(Ordering::Relaxed).saturating_add(idle_after);
        self.running.iter().filter(busy).count()
    }

    /// The target can be opened, so the rest can be played; `true` if there is one.
    fn open(&mut self) -> bool {
        let held = std::mem::take(&mut self.held);
        let any = !held.is_empty();
        self.tasks.extend(held);
        any
    }

    /// Takes in what a task came to.
    fn take_in(&mut self, suite: &Suite, task: Task, played: Result<Played, RecordFault>) {
        let Played { mut recording, bytes, opened, not_green, missed } = match played {
            Ok(played) => played,
            Err(fault) => {
                self.fault.get_or_insert(fault);
                return;
            }
        };
        self.recorded += bytes;
        if opened {
            self.open();
        } else {
            self.held.clear();
        }
        if let Some(row) = not_green {
            let why = format!("{row} was not green in a shared process, so every tour was played alone");
            recording.set_aside = Some(why);
            self.recordings.push(recording);
            let alone = task.alone(suite, missed.as_ref());
            let again = alone.iter().filter_map(|task| task.again.clone());
            self.trying.extend(again.map(|missed| (missed.what, missed.within)));
            // Before the others, so that what takes its time does so beside them.
            for task in alone.into_iter().rev() {
                self.tasks.push_front(task);
            }
        } else if let Some(tried) = &task.again {
            self.trying.remove(&tried.what);
            if missed.is_some_and(|(_, missed)| missed.what == tried.what) {
                self.confirmed.insert(tried.what.clone());
            }
            self.recordings.push(recording);
            let (settled, rest) = std::mem::take(&mut self.undecided)
                .into_iter()
                .partition(|undecided: &Undecided| undecided.missed.what == tried.what);
            self.undecided = rest;
            for undecided in settled {
                self.decide(undecided);
            }
        } else if let Some((_, missed)) = missed {
            self.decide(Undecided { missed, task, recording });
        } else {
            self.recordings.push(recording);
        }
    }

    /// What becomes of a recording that misses an answer: the same one is tried once in a run, not once a script.
    fn decide(&mut self, mut undecided: Undecided) {
        if self.confirmed.contains(&undecided.missed.what) {
            self.recordings.push(undecided.recording);
        } else if !self.trying.contains_key(&undecided.missed.what) {
            self.trying.insert(undecided.missed.what.clone(), undecided.missed.within);
            undecided.recording.set_aside = Some("an answer never came, so it was played again".to_owned());
            self.recordings.push(undecided.recording);
            let name = format!("{}-again", undecided.task.name);
            self.tasks.push_front(Task { name, again: Some(undecided.missed), ..undecided.task });
        } else {
            self.undecided.push(undecided);
        }
    }
}

/// What a process came to.
struct Played {
    recording: Recording,
    bytes: u64,
    /// Whether its opening succeeded.
    opened: bool,
    /// The requirement that is not green, where tours shared the process.
    not_green: Option<&'static str>,
    /// In which script which answer was missed.
    missed: Option<(String, Missed)>,
}

fn play(
    order: &Order<'_>,
    task: &Task,
    mut budget: Budget,
    turned: &mut dyn FnMut(&Play<'_>),
) -> Result<Played, RecordFault> {
    let path = order.folder.join(format!("{}.ndjson", task.name));
    let disk = |error| RecordFault::Disk { path: path.clone(), error };
    let tours = task.plan.iter().filter(|script| is_tour(order.suite, script)).count();
    let mut sink = Sink {
        file: create(&path).map_err(disk)?,
        bytes: 0,
        digest: Digest::default(),
        judge: (tours > 1).then(|| judge(order, task)),
        watch: order.watch.map(|watch| (watch, task.name.as_str())),
    };
    let drained_at = if order.watch.is_some() { 1 } else { RECORD_BYTES };
    let process = Process::spawn(order.spawn).map_err(RecordFault::Spawn)?;
    if let Some(missed) = &task.again {
        budget.answer_most = second_time(&budget, missed.within);
    }
    let mut play = Play::new(
        &task.name,
        task.plan.iter().copied(),
        (order.suite.host)(&order.setting),
        order.setting,
        budget,
        (order.suite.line_bytes_max)(order.setting.contract),
    );
    let driven =
        drive_here(&mut play, Links::guest(process), order.stop.clone(), &mut |play: &mut Play<'_>| {
            turned(play);
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
    let missed = play.missed().zip(play.cut_in()).filter(|_| once_more);
    let recording =
        Recording { name: task.name.clone(), sha256: sink.digest.finish(), scripts, set_aside: None };
    Ok(Played {
        recording,
        bytes: sink.bytes,
        opened,
        not_green: sink.judge.filter(|_| once_more).and_then(|judge| not_green(judge, task)),
        missed: missed.map(|(missed, script)| (script.to_owned(), missed.clone())),
    })
}

/// How long an answer may take that was waited for `within` already: both times together take no longer than the most
/// and the least that an answer may take.
fn second_time(budget: &Budget, within: Micros) -> Micros {
    let both = budget.answer_most.saturating_add(budget.answer_least);
    both.saturating_sub(within).clamp(budget.answer_least, budget.answer_most)
}

/// Evidence is the user's own: nobody else reads what a target said.
fn create(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Where a transcript goes: a file, its digest, and, where tours share a process, a judge that reads along.
struct Sink<'o> {
    file: File,
    bytes: u64,
    digest: Digest,
    judge: Option<Judge<'o>>,
    watch: Option<(&'o dyn Watch, &'o str)>,
}

impl Sink<'_> {
    fn drain(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        self.file.write_all(text)?;
        self.bytes += text.len() as u64;
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
