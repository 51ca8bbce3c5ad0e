//! Records a run: every process of it played, its transcript written, in a folder.
//!
//! The others begin once the first process has opened; if its opening fails, none does. Where tours share a process
//! and anything but green shows, that recording is set aside and each of them is played again alone: sharing costs
//! time, never a verdict.
//!
//! Where an answer never came, the script is played once more beside the others, and only the second time counts.
//! If nothing ever answered that method, nobody else waits long for an answer to it meanwhile, and what is cut short by
//! this is kept until it is known: two scripts in which it was missed twice speak for all others, and otherwise each of
//! them is played again.

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
    machine::{Launch, Micros},
    play::{Cast, Missed, Play, Player},
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
    links::{Links, Probes, micros},
    process::{Process, Spawn, SpawnFault},
    stop::Stop,
};

/// What is to be recorded.
#[derive(Debug)]
pub struct Order<'a> {
    /// The suite.
    pub suite: &'static Suite,
    /// Who is under test.
    pub side: Side,
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
    /// Where a host is under test: the program that each of our guests is, by an absolute path, and a folder for the
    /// sockets and for what shims keep. Both go by the folder's end.
    pub probe: Option<(&'a Path, &'a Path)>,
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
        .processes(order.side, order.scripts, order.isolate)
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
    /// How often it was played again.
    tries: u8,
}

impl Task {
    fn first(suite: &Suite, place: usize, plan: Vec<&'static ScriptDef>) -> Self {
        let name = format!("{place:03}-{}", namesake(suite, &plan));
        Self { name, plan, again: None, tries: 0 }
    }

    /// The tours that shared this process, each alone. The one in which an answer was missed is thereby played again;
    /// where it was in what all of them have in common, the first one is.
    fn alone(&self, suite: &Suite, missed: Option<&Missed>) -> Vec<Self> {
        let (opening, closing) = (self.plan[0], self.plan[self.plan.len() - 1]);
        let number = self.name.split('-').next().unwrap_or_default();
        let tours: Vec<_> = self.plan.iter().copied().filter(|script| is_tour(suite, script)).collect();
        let missed_in = missed.map(|missed| {
            let own = tours.iter().position(|tour| tour.name == missed.script);
            (own.unwrap_or_default(), missed)
        });
        let alone = |(place, tour): (usize, &&'static ScriptDef)| {
            let again = missed_in.filter(|(its, _)| *its == place).map(|(_, missed)| missed.clone());
            Self {
                name: format!("{number}-{:02}-{}", place + 1, tour.name),
                plan: vec![opening, tour, closing],
                tries: again.is_some().into(),
                again,
            }
        };
        tours.iter().enumerate().map(alone).collect()
    }
}

/// The script that a process is named after: the first one that is not only the opening.
fn namesake(suite: &Suite, plan: &[&'static ScriptDef]) -> &'static str {
    let own = plan.iter().find(|script| !suite.is_frame(script));
    own.or(plan.first()).map_or("nothing", |script| script.name)
}

fn is_tour(suite: &Suite, script: &ScriptDef) -> bool {
    script.process == Own::Tour && !suite.is_frame(script)
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
    /// said something: one that starts is at work.
    running: Vec<Arc<AtomicU64>>,
    recordings: Vec<Recording>,
    /// How much was recorded, in bytes.
    recorded: u64,
    /// How long the first answer of a process took at most, once one is known.
    start: Option<Micros>,
    /// What was answered in some process: whoever misses that speaks for no other.
    heard: BTreeSet<String>,
    /// What is missed, by what it is.
    doubts: BTreeMap<String, Doubt>,
    /// Recordings that miss an answer for which others are being played again.
    undecided: Vec<Undecided>,
    fault: Option<RecordFault>,
}

/// What is known of an answer that is missed.
#[derive(Default)]
struct Doubt {
    /// In how many scripts that are being played again.
    trying: usize,
    /// In how many the second time, too.
    confirmed: usize,
}

/// In how many scripts an answer must be missed twice before it counts as missing in all others, too.
const SPEAK_FOR_ALL: usize = 2;

/// How often one script is played again, whatever it misses.
const TRIES_MOST: u8 = 2;

impl Doubt {
    fn holds(&self) -> bool {
        self.trying > 0 || self.confirmed >= SPEAK_FOR_ALL
    }
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
                let known = state.start.is_some();
                if let Some(start) = state.start {
                    budget.first_byte = budget.another_start(start);
                }
                // No wait is paid in full again and again for the same silence.
                let mut doubted = state.doubted();
                if let Some(missed) = &task.again {
                    budget = second_time(&budget, missed.within);
                    doubted.remove(&missed.what);
                }
                let share = RUN_BYTES_MOST.saturating_sub(state.recorded) / self.workers as u64;
                budget.record_bytes = budget.record_bytes.min(share);
                drop(state);
                let played = self.play(order, &task, budget, known, doubted, &seen);
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
        known: bool,
        doubted: BTreeSet<String>,
        seen: &AtomicU64,
    ) -> Result<Played, RecordFault> {
        let (mut opened, mut recorded) = (false, 0);
        play(order, task, budget, known, doubted, &mut |play| {
            // A look at a pipe in which nothing moves is no work.
            let happened = std::mem::replace(&mut recorded, play.recorded()) != play.recorded();
            if play.has_spoken() && happened {
                seen.store(if play.is_in_doubt() { 0 } else { self.now() }, Ordering::Relaxed);
            }
            if play.is_open() && !std::mem::replace(&mut opened, true) && self.lock().open(play.start()) {
                self.changed.notify_all();
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

    /// To what no answer is waited for in full.
    fn doubted(&self) -> BTreeSet<String> {
        let doubted = self.doubts.iter().filter(|(what, doubt)| doubt.holds() && !self.heard.contains(*what));
        doubted.map(|(what, _)| what.clone()).collect()
    }

    /// The target can be opened, so the rest can be played; `true` if there is one.
    fn open(&mut self, start: Option<Micros>) -> bool {
        self.start = self.start.max(start);
        let held = std::mem::take(&mut self.held);
        let any = !held.is_empty();
        self.tasks.extend(held);
        any
    }

    /// Takes in what a task came to.
    fn take_in(&mut self, suite: &Suite, task: Task, played: Result<Played, RecordFault>) {
        let Played { mut recording, bytes, opened, not_green, missed, heard } = match played {
            Ok(played) => played,
            Err(fault) => {
                self.fault.get_or_insert(fault);
                return;
            }
        };
        self.recorded += bytes;
        self.heard.extend(heard);
        if opened {
            self.open(None);
        } else {
            self.held.clear();
        }
        if let Some(row) = not_green {
            let why = format!("{row} was not green in a shared process, so every tour was played alone");
            recording.set_aside = Some(why);
            self.recordings.push(recording);
            let alone = task.alone(suite, missed.as_ref());
            for missed in alone.iter().filter_map(|task| task.again.as_ref()) {
                self.doubts.entry(missed.what.clone()).or_default().trying += 1;
            }
            // The one on which much depends begins at once.
            let (again, others): (Vec<_>, Vec<_>) = alone.into_iter().partition(|task| task.again.is_some());
            for task in again {
                self.tasks.push_front(task);
            }
            self.tasks.extend(others);
            return;
        }
        let tried = task.again.as_ref().map(|tried| tried.what.clone());
        let again = missed.as_ref().is_some_and(|missed| tried.as_ref() == Some(&missed.what));
        if let Some(doubt) = tried.as_ref().and_then(|tried| self.doubts.get_mut(tried)) {
            doubt.trying -= 1;
            doubt.confirmed += usize::from(again);
        }
        match missed {
            Some(missed) if !again => self.decide(Undecided { missed, task, recording }),
            _ => self.recordings.push(recording),
        }
        if let Some(tried) = tried {
            let all = std::mem::take(&mut self.undecided).into_iter();
            let (settled, rest) = all.partition(|undecided: &Undecided| undecided.missed.what == tried);
            self.undecided = rest;
            for undecided in settled {
                self.decide(undecided);
            }
        }
    }

    /// What becomes of a recording that misses an answer: the same one is not tried again in every script.
    fn decide(&mut self, mut undecided: Undecided) {
        let by_itself = self.heard.contains(&undecided.missed.what);
        let doubt = self.doubts.entry(undecided.missed.what.clone()).or_default();
        let known = doubt.confirmed >= SPEAK_FOR_ALL && !by_itself;
        if known || undecided.task.tries >= TRIES_MOST {
            self.recordings.push(undecided.recording);
        } else if by_itself || doubt.trying + doubt.confirmed < SPEAK_FOR_ALL {
            doubt.trying += 1;
            undecided.recording.set_aside = Some("an answer never came, so it was played again".to_owned());
            self.recordings.push(undecided.recording);
            let tries = undecided.task.tries + 1;
            let name = match tries {
                1 => format!("{}-again", undecided.task.name),
                _ => format!("{}-{tries}", undecided.task.name),
            };
            self.tasks.push_front(Task { name, again: Some(undecided.missed), tries, ..undecided.task });
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
    /// The answer that was missed.
    missed: Option<Missed>,
    /// What was answered.
    heard: BTreeSet<String>,
}

fn play(
    order: &Order<'_>,
    task: &Task,
    budget: Budget,
    known: bool,
    doubted: BTreeSet<String>,
    turned: &mut dyn FnMut(&dyn Player),
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
    let mut stage = Stage::new(order, task).map_err(RecordFault::Links)?;
    let (mut player, links) = stage.player(order, task, budget, doubted)?;
    let play = &mut *player;
    let driven = drive_here(play, links, order.stop.clone(), &mut |play: &mut (dyn Player + '_)| {
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
    let opened = play.cut_in() != Some(order.suite.frame(order.side).0.name);
    // A handshake that failed is not tried twice unless another one did not fail, and nothing is when the user wants to
    // stop.
    let once_more =
        (opened || known) && play.end() != Some(End::Interrupted) && *order.stop.borrow() == Stop::No;
    let missed = play.missed().filter(|_| once_more).cloned();
    let recording =
        Recording { name: task.name.clone(), sha256: sink.digest.finish(), scripts, set_aside: None };
    Ok(Played {
        recording,
        bytes: sink.bytes,
        opened,
        not_green: sink.judge.filter(|_| once_more).and_then(|judge| not_green(judge, task)),
        missed,
        heard: play.heard(),
    })
}

/// What a process needs around it: for a guest nothing, for a host the door of our own guests.
struct Stage {
    door: Option<Door>,
}

struct Door {
    probes: Option<Probes>,
    launch: Launch,
    folder: String,
}

impl Stage {
    fn new(order: &Order<'_>, task: &Task) -> io::Result<Self> {
        let Some((probe, scratch)) = order.probe else { return Ok(Self { door: None }) };
        let folder = scratch.join(&task.name);
        std::fs::create_dir(&folder)?;
        let probes = Probes::listen(scratch)?;
        let launch = Launch {
            command: probe.to_string_lossy().into_owned(),
            args: vec!["probe".to_owned()],
            env: probes.environment(),
        };
        let folder = folder.to_string_lossy().into_owned();
        Ok(Self { door: Some(Door { probes: Some(probes), launch, folder }) })
    }

    /// Starts the process, and makes what plays against it.
    fn player<'s>(
        &'s mut self,
        order: &Order<'s>,
        task: &Task,
        budget: Budget,
        doubted: BTreeSet<String>,
    ) -> Result<(Box<dyn Player + 's>, Links), RecordFault> {
        let plan = task.plan.iter().copied();
        let Some((door, casting)) = self.door.as_mut().zip(order.suite.casting) else {
            let process = Process::spawn(order.spawn).map_err(RecordFault::Spawn)?;
            let peer = (order.suite.host)(&order.setting);
            let line_bytes_max = (order.suite.line_bytes_max)(order.setting.contract);
            let play = Play::new(&task.name, plan, peer, order.setting, budget, line_bytes_max);
            return Ok((Box::new(play.doubt(doubted)), Links::guest(process)));
        };
        let Door { probes, launch, folder } = door;
        let mut spawn = order.spawn.clone();
        spawn.env.extend(launch.env.iter().map(|(name, value)| (name.into(), value.into())));
        let process = Process::spawn(&spawn).map_err(RecordFault::Spawn)?;
        let setting = Setting { probe: launch, folder, ..order.setting };
        let cast = Cast::new(&task.name, order.suite, casting, plan, setting, budget);
        let links = match probes.take() {
            Some(probes) => Links::host(process, probes),
            None => Links::guest(process),
        };
        Ok((Box::new(cast), links))
    }
}

/// How long to wait where an answer was waited for `within` already: for a slow target longer than the first time, but
/// for one that never answers both times together take little more than the most that an answer may take.
fn second_time(budget: &Budget, within: Micros) -> Budget {
    let rest = |of: Micros| of.saturating_sub(within).clamp(budget.answer_least, budget.answer_most);
    Budget {
        answer_least: rest(budget.answer_most),
        wait_most: rest(budget.answer_most.saturating_add(budget.answer_least)),
        ..*budget
    }
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
    let mut judge = Judge::new(order.suite, order.side, Profile::Specified, order.setting, order.selected);
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
