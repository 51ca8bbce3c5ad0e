//! Linux (5.4 or later): pipes and their sizes, descriptors over sockets, sessions, and trees of processes.
//!
//! A process is killed through a pidfd that is checked against what was seen, so that a process id that the kernel
//! gave to somebody else in between is never hit.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, IoSlice, IoSliceMut, PipeReader, PipeWriter, Read as _},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::process::ExitStatusExt as _,
    },
    path::Path,
    process::Child,
    time::{Duration, Instant},
};

pub(crate) use rustix::process::Pid;
use rustix::{
    cmsg_space,
    event::{EventfdFlags, PollFd, PollFlags, Timespec, poll},
    fs::{Access, FileType, Mode, OFlags},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, sockopt::Timeout,
    },
    process::{DumpableBehavior, PidfdFlags, Signal, WaitOptions},
    rand::GetRandomFlags,
};
use sidecert_proto::machine::Exited;

// Pipes and descriptors.

/// A pipe to a process: its end, which blocks as anyone's does, and ours, which does not.
pub(crate) fn pipe_to() -> io::Result<(PipeReader, OwnedFd)> {
    let (theirs, ours): (PipeReader, PipeWriter) = io::pipe()?;
    Ok((theirs, without_blocking(ours.into())?))
}

/// A pipe from a process: our end, which does not block, and its own.
pub(crate) fn pipe_from() -> io::Result<(OwnedFd, PipeWriter)> {
    let (ours, theirs): (PipeReader, PipeWriter) = io::pipe()?;
    Ok((without_blocking(ours.into())?, theirs))
}

/// How many bytes the pipe may hold, or `None` for what is no pipe.
pub(crate) fn pipe_bytes(pipe: impl AsFd) -> Option<usize> {
    rustix::pipe::fcntl_getpipe_size(pipe).ok()
}

/// Makes the pipe hold so many bytes, rounded up to a page; `false` when more than that is unread in it, or when the
/// user has too many large pipes.
pub(crate) fn resize_pipe(pipe: impl AsFd, bytes: usize) -> bool {
    rustix::pipe::fcntl_setpipe_size(pipe, bytes).is_ok()
}

/// How many bytes are unread in the pipe.
pub(crate) fn unread(pipe: impl AsFd) -> u64 {
    rustix::io::ioctl_fionread(pipe).unwrap_or(0)
}

/// Takes over our standard input, as a descriptor that does not block; descriptor 0 is `/dev/null` from then on.
pub(crate) fn take_stdin() -> io::Result<OwnedFd> {
    let taken = own(io::stdin().as_fd(), 0, OFlags::RDONLY)?;
    rustix::stdio::dup2_stdin(null()?)?;
    Ok(taken)
}

/// Reads and writes of it return at once from here on.
pub(crate) fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}

/// Takes over our standard output likewise, so that closing what it returns is what the other end sees.
pub(crate) fn take_stdout() -> io::Result<OwnedFd> {
    let taken = own(io::stdout().as_fd(), 1, OFlags::WRONLY)?;
    rustix::stdio::dup2_stdout(null()?)?;
    Ok(taken)
}

/// Takes over our standard input as it is, for blocking reads; descriptor 0 is `/dev/null` from then on.
pub(crate) fn keep_stdin() -> io::Result<OwnedFd> {
    let kept = io::stdin().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(null()?)?;
    Ok(kept)
}

/// Takes over our standard output likewise.
pub(crate) fn keep_stdout() -> io::Result<OwnedFd> {
    let kept = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(null()?)?;
    Ok(kept)
}

/// Sends descriptors and returns: a socket holds them until they are received, or drops them with itself.
pub(crate) fn send_descriptors(socket: impl AsFd, sent: &[BorrowedFd<'_>; 3]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(sent));
    rustix::net::sendmsg(socket, &[IoSlice::new(b"\n")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives what [`send_descriptors`] sent.
pub(crate) fn receive_descriptors(socket: impl AsFd) -> io::Result<[OwnedFd; 3]> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut received = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            received.extend(descriptors);
        }
    }
    received.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

/// Reads once.
pub(crate) fn read(from: impl AsFd, into: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(from, into)?)
}

/// Writes once. A closed other end is an error and no signal: the standard library ignores SIGPIPE for us.
pub(crate) fn write(to: impl AsFd, bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(to, bytes)?)
}

/// Writes all, however the descriptor was left by who gave it to us: it may be one that does not block.
pub(crate) fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                // Whatever comes of it, the next write tells.
                let _ = poll(&mut [PollFd::from_borrowed_fd(to, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What [`await_bytes`] saw.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is what the kernel says of one end, and any of them may hold"
)]
pub(crate) struct Awaited {
    /// There is something to read.
    pub(crate) bytes: bool,
    /// Nobody will write any more.
    pub(crate) closed: bool,
    /// Nobody will read any more.
    pub(crate) broken: bool,
    /// The process has ended.
    pub(crate) ended: bool,
}

/// Waits until there is something to read, or nobody to write to, or the process has ended.
pub(crate) fn await_bytes(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    ended: Option<BorrowedFd<'_>>,
) -> Awaited {
    let gone = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    let mut polled = [
        PollFd::from_borrowed_fd(from, PollFlags::IN),
        PollFd::from_borrowed_fd(to, PollFlags::empty()),
        // Without a process, a second look at the same.
        PollFd::from_borrowed_fd(
            ended.unwrap_or(to),
            if ended.is_some() { PollFlags::IN } else { PollFlags::empty() },
        ),
    ];
    let watched = if ended.is_some() { 3 } else { 2 };
    while let Err(Errno::INTR) = poll(&mut polled[..watched], None) {}
    let [from, to, process] = polled.map(|fd| fd.revents());
    Awaited {
        bytes: from.contains(PollFlags::IN),
        closed: from.intersects(gone),
        broken: to.intersects(gone),
        ended: watched == 3 && !process.is_empty(),
    }
}

/// Whether a write of [`WRITE_ATOMIC_BYTES`] goes through without waiting.
pub(crate) fn is_writable(to: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

/// The most that goes into a pipe all at once or not at all, in bytes.
pub(crate) const WRITE_ATOMIC_BYTES: usize = 4096;

/// Waits until all is read that was written to the pipe, or nobody reads it any more. What is no pipe does not tell.
pub(crate) fn await_reader(pipe: BorrowedFd<'_>, look_again: Duration) {
    let every = Timespec::try_from(look_again).ok();
    while pipe_bytes(pipe).is_some() && unread(pipe) > 0 {
        let mut polled = [PollFd::from_borrowed_fd(pipe, PollFlags::empty())];
        if poll(&mut polled, every.as_ref()).is_ok_and(|ready| ready > 0) {
            return;
        }
    }
}

/// Closes our standard input as far as others can see; descriptor 0 is `/dev/null` from then on.
pub(crate) fn close_stdin() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdin(null()?)?)
}

/// Closes our standard output likewise.
pub(crate) fn close_stdout() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdout(null()?)?)
}

/// A descriptor that is readable from [`ring`] until [`hush`].
pub(crate) fn bell() -> io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Makes a [`bell`] readable.
pub(crate) fn ring(bell: &OwnedFd) {
    // What cannot be counted any more is readable already.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}

/// Makes a [`bell`] unreadable.
pub(crate) fn hush(bell: &OwnedFd) {
    let _ = rustix::io::read(bell, &mut [0; 8]);
}

/// Whether the bell rings, and whether there is something to read; `wait`: once one of them is so.
pub(crate) fn await_bell(bell: &OwnedFd, from: Option<BorrowedFd<'_>>, wait: bool) -> (bool, bool) {
    let mut polled = [
        PollFd::new(bell, PollFlags::IN),
        from.map_or(PollFd::new(bell, PollFlags::empty()), |from| {
            PollFd::from_borrowed_fd(from, PollFlags::IN)
        }),
    ];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    while let Err(Errno::INTR) = poll(&mut polled, if wait { None } else { Some(&now) }) {}
    let [rang, ready] = polled.map(|fd| !fd.revents().is_empty());
    (rang, ready)
}

/// Connects to a socket in the file system, within the bound also where its queue is full.
pub(crate) fn connect(path: &Path, within: Duration) -> io::Result<OwnedFd> {
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::sockopt::set_socket_timeout(&socket, Timeout::Send, Some(within))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::sockopt::set_socket_timeout(&socket, Timeout::Send, None)?;
    Ok(socket)
}

/// Takes the next connection, as a descriptor that does not block.
pub(crate) fn accept(listener: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    loop {
        match rustix::net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            // Whoever that was has gone away again.
            Err(Errno::CONNABORTED) => {}
            accepted => return Ok(accepted?),
        }
    }
}

/// Bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match rustix::rand::getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Lets the other end see that no more comes, also where our reading end is the same socket.
pub(crate) fn end_writing(fd: impl AsFd) {
    // For a pipe, closing it is all; this fails.
    let _ = rustix::net::shutdown(fd, Shutdown::Write);
}

fn null() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Whether a descriptor blocks belongs to everyone who shares it, such as the shell that started us. So a pipe and a
/// terminal are opened anew, which gives a description of our own; only what cannot be is changed in place.
fn own(shared: BorrowedFd<'_>, number: u8, access: OFlags) -> io::Result<OwnedFd> {
    match FileType::from_raw_mode(rustix::fs::fstat(shared)?.st_mode) {
        FileType::Fifo | FileType::CharacterDevice => {
            let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
            rustix::fs::open(format!("/proc/self/fd/{number}"), flags, Mode::empty())
                .map_err(io::Error::from)
                .or_else(|_| without_blocking(shared.try_clone_to_owned()?))
        }
        FileType::Socket => without_blocking(shared.try_clone_to_owned()?),
        _ => shared.try_clone_to_owned(),
    }
}

fn without_blocking(fd: OwnedFd) -> io::Result<OwnedFd> {
    rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
    Ok(fd)
}

// Ourselves.

/// Makes us the leader of a session of our own, without a terminal.
pub(crate) fn lead_session() -> io::Result<()> {
    rustix::process::setsid()?;
    Ok(())
}

/// Makes every process whose parent ends a child of ours, if we started it or an ancestor of it.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Our process id.
pub(crate) fn ourselves() -> Pid {
    rustix::process::getpid()
}

/// What lists of processes call us, 15 bytes at most. Nothing depends on it.
pub(crate) fn call_process(name: &str) {
    let _ = fs::write("/proc/self/comm", name);
}

/// The process id of our parent, 0 where it is out of sight.
pub(crate) fn parent() -> i32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get())
}

/// The id of our session, 0 where its leader is out of sight.
pub(crate) fn session() -> i32 {
    // Not `getsid`: the library takes the 0 that the kernel gives inside a container for a fault.
    look(ourselves()).map_or(0, |seen| seen.session)
}

/// The descriptors that are open, ascending.
pub(crate) fn open_descriptors() -> Vec<i32> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    // The one that this was read through is among them, and closed by now.
    let is_open = |number: &i32| fs::read_link(format!("/proc/self/fd/{number}")).is_ok();
    let mut open: Vec<i32> = numbers.into_iter().filter(is_open).collect();
    open.sort_unstable();
    open
}

/// Whether we ignore the signal. What the platform does not tell counts as no.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    u32::try_from(signal - 1).ok().and_then(|bit| mask.checked_shr(bit)).is_some_and(|mask| mask & 1 == 1)
}

/// The signal that comes when a file would grow beyond what the user allows.
pub(crate) const FILE_TOO_LARGE: i32 = Signal::XFSZ.as_raw();

/// The error of executing what the platform cannot read as a program.
pub(crate) const NO_FORMAT: i32 = Errno::NOEXEC.raw_os_error();

/// Whether this user may execute the file.
pub(crate) fn may_execute(path: &Path) -> bool {
    rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

/// Makes us end without a core file, whatever ends us.
pub(crate) fn forbid_core_file() {
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

// Other processes.

/// The id of a process that was started here.
pub(crate) fn id_of(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// A descriptor that becomes readable when the process ends.
pub(crate) fn watch(pid: Pid) -> io::Result<OwnedFd> {
    Ok(rustix::process::pidfd_open(pid, PidfdFlags::empty())?)
}

/// Ends a process group.
pub(crate) fn kill_group(leader: Pid) {
    // Already gone is as good.
    let _ = rustix::process::kill_process_group(leader, Signal::KILL);
}

/// Sends a signal to a process; one that the platform does not have is not sent.
pub(crate) fn send_signal(to: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = rustix::process::kill_process(to, signal);
    }
}

/// Sends a signal to the process that [`watch`] gave this for, and never to one that has its id by now.
pub(crate) fn send_signal_through(to: &OwnedFd, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        let _ = rustix::process::pidfd_send_signal(to, signal);
    }
}

/// Waits for the end of a process that was started here.
pub(crate) fn wait(child: &mut Child) -> Exited {
    match child.wait() {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exited::Code(code),
            (_, Some(signal)) => Exited::Signal(signal),
            _ => Exited::Unknown,
        },
        Err(_) => Exited::Unknown,
    }
}

/// What became of our children.
pub(crate) enum Reaped {
    /// This one ended.
    One(Pid, Exited),
    /// There are some, and all run.
    AllRun,
    /// There is none. For one that adopts orphans: nothing that it ever started runs any more.
    NoneLeft,
}

/// Takes the next child that ended off the kernel's list, without waiting.
pub(crate) fn reap() -> Reaped {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                let exited = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Exited::Code(code),
                    (_, Some(signal)) => Exited::Signal(signal),
                    _ => Exited::Unknown,
                };
                return Reaped::One(pid, exited);
            }
            Ok(None) => return Reaped::AllRun,
            Err(Errno::INTR) => {}
            Err(_) => return Reaped::NoneLeft,
        }
    }
}

/// A process as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) pid: Pid,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    /// As the kernel has it, without control characters.
    pub(crate) name: String,
    /// In clock ticks since the machine started; with the id it says which process it is.
    started: u64,
    /// It only waits to be reaped.
    dead: bool,
}

/// The running descendants of a process. A process that is forked meanwhile may be missing.
pub(crate) fn descendants(of: Pid) -> Vec<Seen> {
    tree(of, |_| false)
}

/// Kills every descendant of a process, and every member of its session but itself, within the bound.
pub(crate) fn kill_tree(root: Pid, within: Duration) {
    let until = Instant::now() + within;
    let mut empty = 0;
    // Twice, since a scan races with forks.
    while empty < 2 && Instant::now() < until {
        let found = tree(root, |seen| seen.session == root.as_raw_nonzero().get());
        empty = if found.is_empty() { empty + 1 } else { 0 };
        kill_all(&found, until);
    }
}

/// Kills these processes and waits until they have ended or the moment has come.
pub(crate) fn kill_all(found: &[Seen], until: Instant) {
    let mut killed: Vec<OwnedFd> = found.iter().filter_map(kill).collect();
    while !killed.is_empty() && Instant::now() < until {
        let ready = readable(&killed.iter().map(AsFd::as_fd).collect::<Vec<_>>(), until);
        let mut ready = ready.into_iter();
        killed.retain(|_| !ready.next().unwrap_or(false));
    }
}

/// Waits until one of the descriptors is readable or the moment has come, and says which are.
pub(crate) fn readable(of: &[BorrowedFd<'_>], until: Instant) -> Vec<bool> {
    let mut polled: Vec<_> = of.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match poll(&mut polled, Timespec::try_from(left).ok().as_ref()) {
            Err(Errno::INTR) => {}
            Err(_) => return vec![false; of.len()],
            Ok(_) => return polled.iter().map(|fd| !fd.revents().is_empty()).collect(),
        }
    }
}

/// The descriptor becomes readable when it has ended. `None`: it has already, or it is not ours to kill.
fn kill(seen: &Seen) -> Option<OwnedFd> {
    let held = match rustix::process::pidfd_open(seen.pid, PidfdFlags::empty()) {
        Ok(held) => held,
        Err(Errno::MFILE | Errno::NFILE) => {
            // Out of descriptors: killing matters more than the one process in four million with its id.
            let _ = rustix::process::kill_process(seen.pid, Signal::KILL);
            return None;
        }
        Err(_) => return None,
    };
    let now = look(seen.pid)?;
    if now.started != seen.started || now.dead {
        return None;
    }
    rustix::process::pidfd_send_signal(&held, Signal::KILL).ok()?;
    Some(held)
}

fn tree(root: Pid, also: impl Fn(&Seen) -> bool) -> Vec<Seen> {
    let all: Vec<Seen> = numbers_in_proc().filter_map(look).collect();
    let mut inside = BTreeSet::from([root.as_raw_nonzero().get()]);
    // Ids are no order of birth, so this goes on until a pass adds none.
    loop {
        let before = inside.len();
        for seen in &all {
            if inside.contains(&seen.parent) || also(seen) {
                inside.insert(seen.pid.as_raw_nonzero().get());
            }
        }
        if inside.len() == before {
            break;
        }
    }
    let of_it = |seen: &Seen| seen.pid != root && inside.contains(&seen.pid.as_raw_nonzero().get());
    all.into_iter().filter(|seen| !seen.dead && of_it(seen)).collect()
}

fn numbers_in_proc() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

fn look(pid: Pid) -> Option<Seen> {
    let mut line = Vec::with_capacity(512);
    let path = format!("/proc/{}/stat", pid.as_raw_nonzero());
    fs::File::open(path).ok()?.read_to_end(&mut line).ok()?;
    parse_stat(pid, &line)
}

/// `PID (NAME) STATE PARENT GROUP SESSION …`, where the name may hold anything, also `) `.
fn parse_stat(pid: Pid, line: &[u8]) -> Option<Seen> {
    let open = line.iter().position(|&byte| byte == b'(')?;
    let close = line.iter().rposition(|&byte| byte == b')')?;
    let name = String::from_utf8_lossy(line.get(open + 1..close)?);
    let name = name.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect();
    let fields: Vec<&str> = str::from_utf8(line.get(close + 1..)?).ok()?.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let small = |at: usize| i32::try_from(number(at)?).ok();
    Some(Seen {
        pid,
        name,
        parent: small(1)?,
        session: small(3)?,
        started: number(19)?,
        // One whose first thread ended looks the same but for its other threads.
        dead: matches!(fields.first(), Some(&"Z" | &"X")) && number(17)? <= 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_the_fields_after_it() {
        let pid = ourselves();
        let line = b"7 (a) Z 1 (\n) S 3 4 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 2 0 991 1 2\n";
        let seen = parse_stat(pid, line).unwrap();
        assert_eq!((seen.name.as_str(), seen.parent, seen.session), ("a) Z 1 (\u{fffd}", 3, 5));
        assert_eq!((seen.started, seen.dead), (991, false));
        assert_eq!(parse_stat(pid, b"7 (cut"), None);
        assert_eq!(parse_stat(pid, b"7 )x( S 3"), None);
    }

    #[test]
    fn a_process_sees_itself() {
        let seen = look(ourselves()).unwrap();
        assert!(!seen.dead && seen.started > 0);
        assert!(!is_ignored(Signal::TERM.as_raw()));
    }

    #[test]
    fn a_pipe_shrinks_to_what_is_unread_in_it() {
        let (theirs, ours) = pipe_to().unwrap();
        let whole = pipe_bytes(&ours).unwrap();
        write(&ours, &vec![0; 3 * 4096]).unwrap();
        assert!(!resize_pipe(&ours, 1));
        assert_eq!(unread(&ours), 3 * 4096);
        (&theirs).read_exact(&mut [0; 3 * 4096]).unwrap();
        assert!(resize_pipe(&ours, 1));
        assert_eq!(pipe_bytes(&ours), Some(4096));
        assert!(resize_pipe(&ours, whole));
        assert_eq!(pipe_bytes(theirs), Some(whole));
    }
}
