//! A guest as the harness holds it: three pipes of our own, and the launcher through which the rest goes.
//!
//! A [`Process`] that is dropped takes everything that it started with it, before the drop returns.

use std::{
    env,
    error::Error,
    ffi::{OsStr, OsString},
    fmt, fs,
    io::{self, Read as _, Write as _},
    net::Shutdown,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{ffi::OsStrExt as _, net::UnixStream},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Instant,
};

use crate::{
    budget::{KILL_WITHIN, LAUNCHER_WITHIN, SPAWN_WITHIN},
    launch::{Lines, Report, VERSION, WORD},
    os,
};

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Spawn {
    /// The program and its arguments, as they are: no shell reads them. A program without a slash is looked for in the
    /// `PATH` of `env`; a relative one starts at `cwd`.
    pub argv: Vec<OsString>,
    /// The whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs; ours when absent.
    pub cwd: Option<PathBuf>,
    /// An executable, by an absolute path, whose `main` calls [`launch::main`](crate::launch::main).
    /// `/proc/self/exe` is ours, also when the file has been replaced meanwhile.
    pub launcher: PathBuf,
}

impl Spawn {
    /// Why this cannot be started, as far as that shows without trying: for what somebody else will start.
    pub fn foreseen(&self) -> Option<SpawnFault> {
        let Some(program) = self.argv.first().filter(|program| !program.is_empty()) else {
            return Some(SpawnFault::NoProgram);
        };
        let runs = |path: &Path| !path.is_dir() && os::may_execute(path);
        let error = match find(program, self.cwd.as_deref().unwrap_or(Path::new(".")), &self.env) {
            None => io::ErrorKind::NotFound,
            Some(path) if !runs(&path) => io::ErrorKind::PermissionDenied,
            Some(path) => match interpreter(&path).map(PathBuf::from)? {
                named if !named.exists() => io::ErrorKind::NotFound,
                named if !runs(&named) => io::ErrorKind::PermissionDenied,
                _ => return None,
            },
        };
        Some(SpawnFault::of(program, self.cwd.as_deref(), &self.env, error.into()))
    }
}

/// A running guest.
#[derive(Debug)]
pub struct Process {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) tree: Tree,
}

impl Process {
    /// Starts a guest, and returns when it runs, or with what kept it from it within [`SPAWN_WITHIN`].
    ///
    /// It blocks, for some milliseconds, and needs no async runtime.
    pub fn spawn(spawn: &Spawn) -> Result<Self, SpawnFault> {
        let program =
            spawn.argv.first().filter(|program| !program.is_empty()).ok_or(SpawnFault::NoProgram)?;
        if let Some(cwd) = &spawn.cwd
            && !(cwd.is_dir() && os::may_execute(cwd))
        {
            return Err(SpawnFault::NoFolder { path: cwd.clone() });
        }
        let ours = |error| SpawnFault::Ours { error };
        let (their_stdin, stdin) = os::pipe_to().map_err(ours)?;
        let (stdout, their_stdout) = os::pipe_from().map_err(ours)?;
        let (stderr, their_stderr) = os::pipe_from().map_err(ours)?;
        let (control, their_control) = UnixStream::pair().map_err(ours)?;
        // Before the launcher runs: it finds them waiting, and if it never does, they go away with the socket.
        let theirs = [their_stdin.as_fd(), their_stdout.as_fd(), their_stderr.as_fd()];
        os::send_descriptors(&control, &theirs).map_err(ours)?;
        let mut command = Command::new(&spawn.launcher);
        command.arg(WORD).arg(VERSION).arg("--").args(&spawn.argv);
        command.env_clear().envs(spawn.env.iter().map(|(name, value)| (name, value)));
        if let Some(cwd) = &spawn.cwd {
            command.current_dir(cwd);
        }
        command.stdin(OwnedFd::from(their_control)).stdout(Stdio::null()).stderr(Stdio::null());
        let launcher = command.spawn().map_err(|error| match error.kind() {
            // A NUL byte, or too much of it: the launcher gets the guest's arguments and environment.
            io::ErrorKind::InvalidInput | io::ErrorKind::ArgumentListTooLong => {
                SpawnFault::Refused { program: program.clone(), error }
            }
            _ => ours(error),
        })?;
        drop(command);
        let mut tree = Tree { launcher, control, guest: 0 };
        match tree.first_report().map_err(ours)? {
            Report::Spawned(pid) => {
                tree.guest = pid;
                tree.control.set_nonblocking(true).map_err(ours)?;
                Ok(Self { stdin, stdout, stderr, tree })
            }
            Report::Failed(errno) => {
                let error = io::Error::from_raw_os_error(errno);
                Err(SpawnFault::of(program, spawn.cwd.as_deref(), &spawn.env, error))
            }
            _ => Err(ours(io::ErrorKind::InvalidData.into())),
        }
    }

    /// The process id of the guest.
    pub fn pid(&self) -> i32 {
        self.tree.guest
    }

    /// The process id of its launcher, which is also the id of its session.
    pub fn launcher_pid(&self) -> i32 {
        os::id_of(&self.tree.launcher).as_raw_nonzero().get()
    }

    /// Sends a signal to the guest alone, by its number.
    pub fn signal(&self, number: i32) {
        self.tree.order(&format!("signal {number}\n"));
    }
}

/// Why a guest could not be started.
#[derive(Debug)]
pub enum SpawnFault {
    /// The command, or the name of the program, is empty.
    NoProgram,
    /// The folder to run in is none.
    NoFolder {
        /// As it was asked for.
        path: PathBuf,
    },
    /// There is no such program.
    NotFound {
        /// As it was asked for.
        program: OsString,
        /// A file of that name is in the folder, but the name has no slash.
        here: bool,
    },
    /// The file may not be executed.
    NotExecutable {
        /// Which.
        path: PathBuf,
    },
    /// It is a folder.
    IsDirectory {
        /// Which.
        path: PathBuf,
    },
    /// The file is there, but what it says must run it is not: the program on its `#!` line, or the loader of another
    /// C library.
    NoInterpreter {
        /// The file.
        path: PathBuf,
        /// What its `#!` line names, if it has one.
        interpreter: Option<OsString>,
    },
    /// The file is neither a program for this machine nor a script with a `#!` line.
    NoFormat {
        /// Which.
        path: PathBuf,
    },
    /// The platform refused it for another reason.
    Refused {
        /// As it was asked for.
        program: OsString,
        /// What the platform says.
        error: io::Error,
    },
    /// We failed, not the guest: no pipes, no launcher, or one that does not answer.
    Ours {
        /// What the platform says.
        error: io::Error,
    },
}

impl SpawnFault {
    /// The kernel gives a number; what a person can do about it depends on what is there.
    pub(crate) fn of(
        program: &OsStr,
        cwd: Option<&Path>,
        env: &[(OsString, OsString)],
        error: io::Error,
    ) -> Self {
        let folder = cwd.unwrap_or(Path::new("."));
        let Some(path) = find(program, folder, env) else {
            let here = folder.join(program);
            return match error.kind() {
                _ if here.is_dir() => Self::IsDirectory { path: program.into() },
                io::ErrorKind::NotFound => {
                    Self::NotFound { program: program.into(), here: !is_path(program) && here.is_file() }
                }
                _ => Self::Refused { program: program.into(), error },
            };
        };
        let shown = if is_path(program) { program.into() } else { path.clone() };
        match error.kind() {
            io::ErrorKind::PermissionDenied if path.is_dir() => Self::IsDirectory { path: shown },
            io::ErrorKind::PermissionDenied if !os::may_execute(&path) => Self::NotExecutable { path: shown },
            io::ErrorKind::PermissionDenied => match interpreter(&path) {
                Some(named) if Path::new(&named).is_dir() => Self::IsDirectory { path: named.into() },
                Some(named) if !os::may_execute(Path::new(&named)) => {
                    Self::NotExecutable { path: named.into() }
                }
                _ => Self::Refused { program: program.into(), error },
            },
            io::ErrorKind::NotFound => {
                let interpreter = interpreter(&path);
                Self::NoInterpreter { path: shown, interpreter }
            }
            _ if error.raw_os_error() == Some(os::NO_FORMAT) => Self::NoFormat { path: shown },
            _ => Self::Refused { program: program.into(), error },
        }
    }
}

impl fmt::Display for SpawnFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoProgram => write!(f, "there is no command to run"),
            Self::NoFolder { path } => {
                write!(f, "{} is no folder to run in; create it or name another", quoted(path))
            }
            Self::NotFound { program, here: true } => {
                write!(f, "{} is not in PATH, but here: write \"./\" before it", quoted(program))
            }
            Self::NotFound { program, here: false } if is_path(program) => {
                write!(f, "{} does not exist; build it, or correct the path", quoted(program))
            }
            Self::NotFound { program, here: false } => {
                write!(f, "{} is not in PATH; install it, or give its path", quoted(program))
            }
            Self::NotExecutable { path } => write!(
                f,
                "{} may not be executed; `chmod +x` it, or write its interpreter before it",
                quoted(path)
            ),
            Self::IsDirectory { path } => write!(f, "{} is a folder; name the program in it", quoted(path)),
            Self::NoInterpreter { path, interpreter: Some(named) } if named.as_bytes().ends_with(b"\r") => {
                write!(
                    f,
                    "{} has Windows line ends, so it asks for {}; save it with LF",
                    quoted(path),
                    quoted(named)
                )
            }
            Self::NoInterpreter { path, interpreter: Some(named) } => write!(
                f,
                "{} exists, but its interpreter {} does not; install it, or correct the `#!` line",
                quoted(path),
                quoted(named)
            ),
            Self::NoInterpreter { path, interpreter: None } => write!(
                f,
                "{} exists, but what loads it does not; it was built for another C library",
                quoted(path)
            ),
            Self::NoFormat { path } => write!(
                f,
                "{} is neither a program for this machine nor a script with a `#!` line",
                quoted(path)
            ),
            Self::Refused { program, error } => {
                write!(f, "{} could not be started: {error}", quoted(program))
            }
            Self::Ours { error } => write!(f, "the launcher could not do its work: {error}"),
        }
    }
}

impl Error for SpawnFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused { error, .. } | Self::Ours { error } => Some(error),
            _ => None,
        }
    }
}

/// The launcher and, through it, all that it watches over. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Tree {
    launcher: Child,
    control: UnixStream,
    guest: i32,
}

impl Tree {
    /// The socket of the launcher once more, to read what it says.
    pub(crate) fn reports(&self) -> io::Result<OwnedFd> {
        Ok(self.control.try_clone()?.into())
    }

    /// Asks for the end of everything; what comes of it is reported.
    pub(crate) fn kill(&self) {
        self.order("kill\n");
    }

    /// Ends everything without the launcher, which did not do so within its bound or is gone.
    pub(crate) fn kill_without_launcher(&mut self) {
        os::kill_tree(os::id_of(&self.launcher), KILL_WITHIN);
        // Last: as long as it is there, what is orphaned stays in its tree.
        let _ = self.launcher.kill();
    }

    /// One order is short, and a launcher that is gone obeys none.
    fn order(&self, line: &str) {
        let _ = (&self.control).write_all(line.as_bytes());
    }

    fn first_report(&mut self) -> io::Result<Report> {
        self.control.set_read_timeout(Some(SPAWN_WITHIN))?;
        let mut lines = Lines::default();
        loop {
            // One byte at a time, since what follows the line is not for us.
            let mut byte = [0];
            match self.control.read(&mut byte) {
                Ok(1..) => lines.push(&byte),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let text = format!("it did not answer within {SPAWN_WITHIN:?}");
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                Ok(0) | Err(_) => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without an answer"));
                }
            }
            if let Some(line) = lines.next() {
                return line.parse().map_err(|()| io::ErrorKind::InvalidData.into());
            }
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // For the launcher this is the end of the harness.
        let _ = self.control.shutdown(Shutdown::Both);
        let until = Instant::now() + LAUNCHER_WITHIN;
        let ended = os::watch(os::id_of(&self.launcher))
            .is_ok_and(|ended| os::readable(&[ended.as_fd()], until).contains(&true));
        if !ended {
            self.kill_without_launcher();
        }
        let finished = self.launcher.wait().is_ok_and(|status| status.success());
        if ended && !finished {
            // Somebody killed the launcher. Its id is not given away as long as a member of its session lives.
            os::kill_tree(os::id_of(&self.launcher), KILL_WITHIN);
        }
    }
}

#[expect(clippy::unnecessary_debug_formatting, reason = "a name may hold anything, and a terminal obeys it")]
fn quoted(name: impl AsRef<OsStr>) -> String {
    format!("{:?}", name.as_ref())
}

fn is_path(program: &OsStr) -> bool {
    program.as_bytes().contains(&b'/')
}

/// The file that the platform tried: the first that exists.
fn find(program: &OsStr, folder: &Path, env: &[(OsString, OsString)]) -> Option<PathBuf> {
    if is_path(program) {
        return Some(folder.join(program)).filter(|path| path.exists());
    }
    // The last one of a name counts, as with `Command::envs`.
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value);
    env::split_paths(path?).map(|entry| folder.join(entry).join(program)).find(|path| path.is_file())
}

/// What the `#!` line of a script names.
fn interpreter(path: &Path) -> Option<OsString> {
    // The kernel looks at no more either.
    let mut head = Vec::new();
    fs::File::open(path).ok()?.take(256).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let word = line.split(|byte| matches!(byte, b' ' | b'\t')).find(|word| !word.is_empty())?;
    Some(OsStr::from_bytes(word).into())
}
