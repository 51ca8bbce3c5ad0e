//! The link of a process that we hold by its pipes, or of our own standard input and output; and what becomes of the
//! process, as its launcher tells it.

use std::{collections::BTreeSet, env, ffi::OsString, io, os::fd::OwnedFd, path::PathBuf};

use bytes::Bytes;
use sidecert_proto::machine::{Exited, Launch, Launched, Left, Micros};

use super::{
    Link, News, Wrote,
    end::{Ask, End, read_until_end},
    micros,
    output::Output,
};
use crate::{
    budget::{CONTROL_LINE_BYTES_MAX, EXITED_GRACE, LAUNCHER_WITHIN},
    launch::{Lines, Report},
    process::{Process, Spawn, Tree},
};

/// The descriptors of a link that is not at work yet.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) input: OwnedFd,
    pub(super) output: OwnedFd,
    /// Its standard error, and what watches over it.
    pub(super) process: Option<(OwnedFd, Tree)>,
}

impl From<Process> for Ends {
    fn from(Process { stdin, stdout, stderr, tree }: Process) -> Self {
        Self { input: stdout, output: stdin, process: Some((stderr, tree)) }
    }
}

pub(super) struct Pipes {
    launched: Option<Box<Launched>>,
    reading: bool,
    output: Output,
    guest: Option<Guest>,
    input: Option<End>,
    errors: Option<End>,
    /// Standard error that is not read: it is kept, so that the pipe does not break.
    left: Option<End>,
}

impl Pipes {
    /// Needs a runtime.
    pub(super) fn new(ends: Ends) -> io::Result<Self> {
        let (errors, guest) = match ends.process {
            Some((stderr, tree)) => (Some(End::reading(stderr)?), Some(Guest::new(tree)?)),
            None => (None, None),
        };
        Ok(Self {
            launched: None,
            reading: true,
            output: Output::new(ends.output)?,
            guest,
            input: Some(End::reading(ends.input)?),
            errors,
            left: None,
        })
    }

    /// Starts a process in our environment and folder. The error is a sentence. Needs a runtime.
    pub(super) fn launch(launch: Launch, launcher: PathBuf) -> Result<Self, String> {
        let argv: Vec<String> = [launch.command].into_iter().chain(launch.args).collect();
        let added = launch.env.into_iter().map(|(name, value)| (name.into(), value.into()));
        let spawn = Spawn {
            argv: argv.iter().map(OsString::from).collect(),
            env: env::vars_os().chain(added).collect(),
            cwd: None,
            launcher,
        };
        let process = Process::spawn(&spawn).map_err(|fault| fault.to_string())?;
        let names: BTreeSet<_> = spawn.env.iter().map(|(name, _)| name.to_string_lossy()).collect();
        let launched = Launched {
            name: String::new(),
            spawned: false,
            pid: process.pid(),
            parent: process.launcher_pid(),
            session: process.launcher_pid(),
            argv,
            cwd: env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
            env: names.into_iter().map(|name| (name.into_owned(), None)).collect(),
            descriptors: vec![0, 1, 2],
        };
        let pipes = Self::new(process.into()).map_err(|error| error.to_string())?;
        Ok(Self { launched: Some(Box::new(launched)), ..pipes })
    }
}

impl Link for Pipes {
    fn listen(&mut self, ask: &mut Ask<'_, '_>, now: Micros, _buffer: &mut [u8]) -> bool {
        self.guest.as_mut().is_some_and(|guest| guest.listen(ask, now))
    }

    fn news(&mut self) -> Option<News> {
        self.launched.take().map(News::Launched)
    }

    fn holds(&self) -> bool {
        self.launched.is_some()
    }

    fn read(&mut self, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize> {
        if self.reading { read_until_end(&mut self.input, ask, into) } else { None }
    }

    fn read_errors(&mut self, ask: &mut Ask<'_, '_>, into: &mut [u8]) -> Option<usize> {
        read_until_end(&mut self.errors, ask, into)
    }

    fn write(&mut self, ask: &mut Ask<'_, '_>, now: Micros) -> Option<Wrote> {
        self.output.write(ask, now)
    }

    /// Once what it wrote has been read to the end and the launcher has finished; or when that took too long and there
    /// is nothing to read.
    fn ended(&mut self, now: Micros, quiet: bool) -> Option<(Vec<Left>, Exited)> {
        let read = self.errors.is_none() && (self.input.is_none() || !self.reading);
        let guest = self.guest.as_mut()?;
        let (exited, _) = guest.exited?;
        let late = quiet && guest.exited_due().is_some_and(|due| due <= now);
        if guest.told || !(late || read && guest.finished) {
            return None;
        }
        guest.told = true;
        Some((std::mem::take(&mut guest.left), exited))
    }

    fn push(&mut self, bytes: &Bytes, after_drain: bool) {
        self.output.push(bytes, after_drain);
    }

    fn write_early(&mut self, now: Micros) {
        self.output.write_early(now);
    }

    fn close(&mut self) {
        self.output.close();
    }

    fn set_reading(&mut self, on: bool) {
        self.reading = on;
    }

    fn leave_errors(&mut self) {
        self.left = self.errors.take();
    }

    fn kill(&mut self, now: Micros) {
        if let Some(guest) = &mut self.guest {
            guest.kill(now);
        }
    }

    fn queued(&self) -> usize {
        self.output.queued()
    }

    fn write_due(&self) -> Option<Micros> {
        self.output.due()
    }

    fn due(&self) -> Option<Micros> {
        let guest = self.guest.as_ref();
        let of_guest = guest.and_then(Guest::exited_due).into_iter().chain(guest.and_then(|it| it.kill_due));
        of_guest.chain(self.output.due()).min()
    }

    fn is_silent(&self) -> bool {
        self.launched.is_none()
            && (self.input.is_none() || !self.reading)
            && self.errors.is_none()
            && self.output.is_silent()
            && self.guest.as_ref().is_none_or(|guest| guest.told && guest.finished)
    }

    fn left_unnamed(&self) -> usize {
        self.guest.as_ref().map_or(0, |guest| guest.more)
    }
}

/// A guest as far as its launcher tells of it.
struct Guest {
    tree: Tree,
    control: Option<End>,
    heard: Lines,
    exited: Option<(Exited, Micros)>,
    left: Vec<Left>,
    /// How many survivors were killed without a name.
    more: usize,
    /// The launcher has nothing more to say.
    finished: bool,
    /// The machine knows.
    told: bool,
    /// When a kill should have had its effect.
    kill_due: Option<Micros>,
}

impl Guest {
    fn new(tree: Tree) -> io::Result<Self> {
        let control = Some(End::reading(tree.reports()?)?);
        Ok(Self {
            tree,
            control,
            heard: Lines::default(),
            exited: None,
            left: Vec::new(),
            more: 0,
            finished: false,
            told: false,
            kill_due: None,
        })
    }

    /// Ends it, with all that it started.
    fn kill(&mut self, now: Micros) {
        if !self.finished && self.kill_due.is_none() {
            self.tree.kill();
            self.kill_due = Some(now + micros(LAUNCHER_WITHIN));
        }
    }

    /// Takes in what the launcher says, and does its work when it does not; `true` when anything happened.
    fn listen(&mut self, ask: &mut Ask<'_, '_>, now: Micros) -> bool {
        let mut bytes = [0; CONTROL_LINE_BYTES_MAX];
        let heard = read_until_end(&mut self.control, ask, &mut bytes);
        self.heard.push(&bytes[..heard.unwrap_or(0)]);
        while let Some(line) = self.heard.next() {
            match line.parse() {
                Ok(Report::Exited(exited)) => self.exited = Some((exited, now)),
                Ok(Report::Left(left)) => self.left.push(left),
                Ok(Report::More(count)) => self.more = count,
                Ok(Report::Gone) => self.finish(now),
                // What another version may add does not concern this one.
                _ => {}
            }
        }
        let lost = heard == Some(0) && !self.finished;
        let stuck = self.kill_due.is_some_and(|due| due <= now);
        if lost || stuck {
            self.tree.kill_without_launcher();
            self.finish(now);
        }
        heard.is_some() || stuck
    }

    fn finish(&mut self, now: Micros) {
        self.finished = true;
        self.kill_due = None;
        self.exited.get_or_insert((Exited::Unknown, now));
    }

    fn exited_due(&self) -> Option<Micros> {
        self.exited.filter(|_| !self.told).map(|(_, at)| at + micros(EXITED_GRACE))
    }
}
