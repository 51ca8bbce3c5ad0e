//! What this executable does as a guest: `__guest NAME ARGS…`, one small misbehaviour each.

#![expect(clippy::zombie_processes, reason = "to leave processes behind is what these guests are for")]

use std::{
    env,
    ffi::OsString,
    fs,
    io::{self, Write as _},
    process::{self, Command, ExitCode},
    thread,
};

use rustix::process::Signal;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros};
use sidecert_runner::{Links, Process, Stop, drive_here, stop};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::player::{Player, spawn};

pub(crate) const WORD: &str = "__guest";

pub(crate) fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let args: Vec<String> = args.map(|arg| arg.into_string().unwrap()).collect();
    let (name, args) = args.split_first().unwrap();
    let number = |at: usize| args[at].parse::<usize>().unwrap();
    match name.as_str() {
        "cat" => {
            io::copy(&mut io::stdin(), &mut io::stdout()).unwrap();
        }
        "exit" => return ExitCode::from(u8::try_from(number(0)).unwrap()),
        "surroundings" => surroundings(),
        "reads" => reads(number(0)),
        "flood" => flood(number(0), &mut io::stdout()),
        "flood-stderr" => flood(number(0), &mut io::stderr()),
        "flood-forever" => while io::stdout().write_all(&[b'x'; 4096]).is_ok() {},
        "stays" => stay(),
        "stays-in-a-session" => {
            rustix::process::setsid().unwrap();
            stay();
        }
        "leaves" => leave(args),
        "leaves-orphans" => {
            start("leaves", &["stays-in-a-session"]).wait().unwrap();
            until_end_of_input();
        }
        "leaves-many" => {
            for _ in 0..number(0) {
                start("stays", &[]);
            }
            until_end_of_input();
        }
        "ends-with-its-parent" => {
            // A child that notices the end of its parent by the end of a pipe.
            let mut child = Command::new(env::current_exe().unwrap());
            let _open = child.args([WORD, "ends-slowly"]).stdin(process::Stdio::piped()).spawn().unwrap();
            until_end_of_input();
        }
        "ends-slowly" => {
            until_end_of_input();
            for _ in 0..3 {
                start("exit", &["0"]).wait().unwrap();
            }
        }
        "ignores-term" => ignore_term(),
        "kills-its-launcher" => to_its_launcher(Signal::KILL),
        "stops-its-launcher" => to_its_launcher(Signal::STOP),
        "listens" => listen(),
        "mock" => return mock(),
        "harness" => harness(),
        other => panic!("no guest {other}"),
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "a guest speaks on its standard output")]
fn say(line: &str) {
    println!("{line}");
}

/// Tells its process id and waits to be killed.
fn stay() -> ! {
    say(&process::id().to_string());
    loop {
        thread::park();
    }
}

fn until_end_of_input() {
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
}

/// Its streams are ours.
fn start(name: &str, args: &[&str]) -> process::Child {
    Command::new(env::current_exe().unwrap()).args([WORD, name]).args(args).spawn().unwrap()
}

fn leave(names: &[String]) {
    for name in names {
        start(name, &[]);
    }
    until_end_of_input();
}

fn surroundings() {
    say(&env::current_dir().unwrap().display().to_string());
    for (name, value) in env::vars() {
        say(&format!("{name}={value}"));
    }
    for descriptor in descriptors() {
        say(&descriptor);
    }
    let us = rustix::process::getpid();
    say(&format!("group of its own: {}", rustix::process::getpgrp() == us));
    let launcher = rustix::process::getppid();
    say(&format!("session of its launcher: {}", rustix::process::getsid(None).ok() == launcher));
    say(&format!("terminal: {}", fs::File::open("/dev/tty").is_ok()));
}

/// Leaves one behind that stays, and stays. Its own id is told first: nobody may hear what comes after the signal.
fn to_its_launcher(signal: Signal) {
    // Only then is it certain that the launcher has said that it has started us.
    until_end_of_input();
    say(&process::id().to_string());
    start("stays", &[]);
    rustix::process::kill_process(rustix::process::getppid().unwrap(), signal).unwrap();
    loop {
        thread::park();
    }
}

/// Tells what [`stop::listen`] hears.
fn listen() {
    let mut heard = stop::listen().unwrap();
    Builder::new_current_thread().build().unwrap().block_on(async {
        loop {
            let stop = *heard.borrow_and_update();
            say(&format!("{stop:?}"));
            if stop == Stop::Now {
                return;
            }
            heard.changed().await.unwrap();
        }
    });
}

/// What we hold open, the folder that this is read from left out.
pub(crate) fn descriptors() -> Vec<String> {
    let number = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut numbers: Vec<_> = fs::read_dir("/proc/self/fd").unwrap().map(number).collect();
    numbers.sort_unstable();
    let target = |number| {
        let target = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
        Some(format!("{number} -> {}", target.display()))
    };
    numbers.into_iter().filter_map(target).collect()
}

/// Tells at the end what each read of so many bytes at most brought.
fn reads(at_most: usize) {
    let mut buffer = vec![0; at_most];
    let mut lines = Vec::new();
    loop {
        let n = rustix::io::read(io::stdin(), &mut *buffer).unwrap();
        if n == 0 {
            break;
        }
        lines.push(format!("{n} {}", char::from(buffer[0])));
    }
    say(&lines.join("\n"));
}

fn flood(mut bytes: usize, into: &mut dyn io::Write) {
    let chunk = vec![b'x'; 64 * 1024];
    while bytes > 0 {
        let n = bytes.min(chunk.len());
        into.write_all(&chunk[..n]).unwrap();
        bytes -= n;
    }
}

fn ignore_term() {
    Builder::new_current_thread().enable_io().build().unwrap().block_on(async {
        let mut terminate = signal(SignalKind::terminate()).unwrap();
        say("ready");
        while terminate.recv().await.is_some() {
            say("ignored");
        }
    });
}

/// A machine on our own stdio: sends back what it gets, twice, and ends with code 7.
fn mock() -> ExitCode {
    struct Twice(Vec<Action>);
    impl Machine for Twice {
        fn handle(&mut self, link: LinkId, input: Input<'_>, _now: Micros) {
            match input {
                Input::Bytes(bytes) => {
                    let bytes = [bytes, bytes].concat().into();
                    self.0.insert(0, Action::Write { link, bytes, after_drain: false });
                }
                Input::Eof => self.0.insert(0, Action::Exit(7)),
                _ => {}
            }
        }

        fn poll(&mut self, _now: Micros) -> Option<Action> {
            self.0.pop()
        }

        fn deadline(&self) -> Option<Micros> {
            None
        }
    }
    let (_say, heard) = watch::channel(Stop::No);
    let ended = drive_here(&mut Twice(Vec::new()), Links::stdio().unwrap(), heard, &mut |_| Ok(())).unwrap();
    ExitCode::from(ended.exit().unwrap())
}

/// Drives a guest that leaves others, and tells their ids until it is killed.
fn harness() {
    let process = Process::spawn(&spawn(&["leaves", "stays", "stays-in-a-session"])).unwrap();
    say(&process.pid().to_string());
    say(&process.launcher_pid().to_string());
    let mut player = Player::new(|_, input| {
        if let Input::Bytes(bytes) = input {
            io::stdout().write_all(bytes).unwrap();
        }
        Vec::new()
    });
    let (_say, heard) = watch::channel(Stop::No);
    drive_here(&mut player, Links::guest(process), heard, &mut |_| Ok(())).unwrap();
}
