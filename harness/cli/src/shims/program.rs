//! A program that a shim runs: its lines as they come, and its end. Nothing here waits but the threads of its own.

use std::io::{self, BufRead as _, BufReader, Read, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use sidecert_runner::Stop;
use tokio::sync::watch;

use super::budget::{DRAIN_WITHIN, HEARD_MAX, LAST_BYTES_MAX, LINE_BYTES_MAX};
use super::tail;

/// What is heard of a program.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A line of its standard output.
    Line(String),
    /// A line of its standard error.
    Log(String),
    /// It has ended, and everything that it wrote was told. The last one.
    Ended(Option<ExitStatus>),
}

/// A signal that a user gives a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// With `kill`: the process gets SIGTERM.
    Kill,
    /// With Ctrl-C: everything in its process group gets SIGINT.
    CtrlC,
}

impl Sent {
    /// Reads the name of a signal.
    pub(crate) fn read(name: &str) -> Option<Self> {
        match name {
            "TERM" => Some(Self::Kill),
            "INT" => Some(Self::CtrlC),
            _ => None,
        }
    }
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Program {
    /// Lines for its standard input; closed when absent.
    input: Option<Sender<String>>,
    process: OwnedFd,
    /// It leads a process group of this number.
    group: Pid,
}

impl Program {
    /// Starts it, in a process group of its own, and tells what is heard of it to `told` until that fails.
    pub(crate) fn start<T>(mut command: Command, told: T) -> io::Result<Self>
    where
        T: Fn(Heard) -> bool + Clone + Send + 'static,
    {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        // It is not reaped yet, so the id is its own.
        let group = Pid::from_child(&child);
        let process = pidfd_open(group, PidfdFlags::empty())?;
        let (input, lines) = mpsc::channel();
        let stdin = child.stdin.take();
        spawn("input", move || write(stdin, &lines))?;
        let (drained, drains) = mpsc::channel();
        let (to, done) = (told.clone(), drained.clone());
        let stdout = child.stdout.take();
        spawn("output", move || read(stdout, |line| to(Heard::Line(line)), &done))?;
        let to = told.clone();
        let stderr = child.stderr.take();
        spawn("log", move || read(stderr, |line| to(Heard::Log(line)), &drained))?;
        spawn("end", move || end(child, &drains, told))?;
        Ok(Self { input: Some(input), process, group })
    }

    /// Runs it to its end with this on its standard input, and gives what it printed; within this time, or it is
    /// killed.
    pub(crate) fn run(command: Command, input: Option<String>, within: Duration) -> io::Result<Printed> {
        let (tell, heard) = mpsc::sync_channel(HEARD_MAX);
        let mut program = Self::start(command, move |heard| tell.send(heard).is_ok())?;
        if let Some(input) = input {
            program.write(input);
        }
        program.close();
        let (until, mut printed) = (Instant::now() + within, Printed::default());
        loop {
            match heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Heard::Line(line)) => printed.out.push(&line),
                Ok(Heard::Log(line)) => printed.err.push(&line),
                Ok(Heard::Ended(status)) => {
                    printed.code = status.and_then(|status| status.code());
                    return Ok(printed);
                }
                Err(_) => {
                    program.signal(Signal::KILL);
                    return Err(io::Error::new(
                        io::ErrorKind::TimedOut,
                        format!("it did not end within {within:?}"),
                    ));
                }
            }
        }
    }

    /// Writes to its standard input, as soon as it reads.
    pub(crate) fn write(&self, text: String) {
        // One that has ended reads nothing, which its end tells.
        let _ = self.input.as_ref().is_some_and(|input| input.send(text).is_ok());
    }

    /// Closes its standard input, once everything is written.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Sends it a signal, if it is still there.
    pub(crate) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.process, signal);
    }

    /// The user gives it a signal. To be used while its end was not told yet, as long as the number of its group is its
    /// own.
    pub(crate) fn sent(&self, sent: Sent) {
        match sent {
            Sent::Kill => self.signal(Signal::TERM),
            Sent::CtrlC => drop(kill_process_group(self.group, Signal::INT)),
        }
    }
}

/// What a program printed, the last of it.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    /// Its exit code, unless a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its standard output.
    pub(crate) out: Last,
    /// Its standard error.
    pub(crate) err: Last,
}

/// The last lines of something, up to [`LAST_BYTES_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Last(String);

impl Last {
    pub(crate) fn push(&mut self, line: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(line);
        // Not with every line: cutting the beginning off copies the rest.
        if self.0.len() > 2 * LAST_BYTES_MAX {
            self.0 = tail(&self.0, LAST_BYTES_MAX).to_owned();
        }
    }

    pub(crate) fn text(&self) -> &str {
        tail(&self.0, LAST_BYTES_MAX)
    }
}

/// Starts a thread.
pub(crate) fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(run).map(drop)
}

/// Does this on a thread of its own, once the user wants us to stop.
pub(crate) fn told_to_stop(
    mut stop: watch::Receiver<Stop>,
    then: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    spawn("stop", move || {
        if runtime.block_on(stop.wait_for(|stop| *stop != Stop::No)).is_ok() {
            then();
        }
    })
}

/// Gives each line to `take`, without its end, until that says no, or there is none left.
pub(crate) fn lines(from: impl Read, mut take: impl FnMut(String) -> bool) {
    let mut from = BufReader::new(from);
    loop {
        let mut line = Vec::new();
        match (&mut from).take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if !take(String::from_utf8_lossy(line).into_owned()) {
                    return;
                }
            }
        }
    }
}

fn read(from: Option<impl Read>, take: impl FnMut(String) -> bool, done: &Sender<()>) {
    if let Some(from) = from {
        lines(from, take);
    }
    let _ = done.send(());
}

fn write(to: Option<ChildStdin>, lines: &Receiver<String>) {
    let Some(mut to) = to else { return };
    for line in lines {
        if to.write_all(line.as_bytes()).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

fn end(mut child: Child, drains: &Receiver<()>, told: impl Fn(Heard) -> bool) {
    // Its standard input is another thread's, so this closes nothing. Who was killed with all that we started may have
    // been reaped by then.
    let status = child.wait().ok();
    let until = Instant::now() + DRAIN_WITHIN;
    for _ in 0..2 {
        let _ = drains.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
    told(Heard::Ended(status));
}
