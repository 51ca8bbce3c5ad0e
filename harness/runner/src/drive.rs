//! The one loop: drives any machine on real links, its own process's or those of guests.
//!
//! What happened comes before what did not: before a tick every source is taken from once more, straight from the
//! kernel, and one read takes all that a pipe holds. So a tick means that the deadline passed and that everything the
//! other ends had said by then has been handled; and a flood delays it by a few reads of each source at most.
//!
//! For each guest: [`Input::Launched`], if it was not there from the start; bytes and standard error as they come,
//! [`Input::Eof`], then any [`Input::Left`], then [`Input::Exited`] as the last input of its link. Only when something
//! that is not ours to kill still holds its output after [`EXITED_GRACE`](crate::budget::EXITED_GRACE), or while the
//! machine does not read, may bytes follow.

use std::{
    error::Error,
    fmt,
    future::poll_fn,
    io,
    path::PathBuf,
    pin::pin,
    task::Poll,
    time::{Duration, Instant},
};

use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros, Order};
use tokio::{runtime::Builder, sync::watch, time::sleep_until};

use crate::{
    budget::{FLUSH_WITHIN, READ_BYTES, WRITE_EARLY_BYTES, WRITE_QUEUE_BYTES, WRITES_OVER_QUEUE},
    links::{self, Ask, Begun, Door, Link, Links, News, Wrote, micros},
    stop::Stop,
};

/// How a drive came to its end. By then nothing that a guest started runs any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub how: How,
    /// How many survivors were killed beyond the [`LEFT_NAMED_MAX`](crate::budget::LEFT_NAMED_MAX) that were named.
    pub left_unnamed: usize,
}

/// Why a drive came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The machine had nothing more to do.
    Done,
    /// The machine ends with this code; what it had written before was flushed.
    Exit(u8),
    /// [`Stop::Now`].
    Stopped,
    /// Nothing could happen any more: every link was at its end, and the machine named no deadline.
    Idle,
}

/// What stopped us; never what a guest did.
#[derive(Debug)]
pub enum DriveFault {
    /// The platform gave us no runtime, or could not watch a link.
    Links(io::Error),
    /// The sink failed: the disk is full, say.
    Sink(io::Error),
}

/// Drives the machine until it is done. Its clock starts now.
///
/// `sink` is called after every turn, so a record never grows by more than what one turn brings; an error of it ends
/// the drive. Whatever way this ends (an error, a panic of the machine, a future that is dropped), every guest and all
/// that it started is gone before it does.
pub async fn drive<M: Machine + ?Sized>(
    machine: &mut M,
    links: Links,
    mut stop: watch::Receiver<Stop>,
    sink: &mut dyn FnMut(&mut M) -> io::Result<()>,
) -> Result<Ended, DriveFault> {
    let mut turns = Turns::new(links).map_err(DriveFault::Links)?;
    let mut sleep = pin!(sleep_until(turns.clock.into()));
    let mut asked = Stop::No;
    let mut watched = true;
    turns.obey(machine, Spare::Some);
    loop {
        sink(machine).map_err(DriveFault::Sink)?;
        match turns.how {
            Some(How::Exit(_)) => {
                turns.flush(&mut stop).await;
                break;
            }
            Some(_) => break,
            None => {}
        }
        let now_asked = *stop.borrow_and_update();
        match now_asked {
            Stop::Now => turns.how = Some(How::Stopped),
            Stop::Interrupted if asked == Stop::No => turns.tell(machine, 0, Input::Interrupted, Spare::All),
            _ => {}
        }
        if now_asked != asked {
            asked = now_asked;
            continue;
        }
        let due = turns.due(machine);
        if due.is_some_and(|due| due <= turns.now()) {
            turns.tick(machine);
            continue;
        }
        if due.is_none() && turns.links.iter().all(|link| link.is_silent()) {
            turns.how = Some(How::Idle);
            continue;
        }
        if let Some(due) = due.and_then(|due| turns.clock.checked_add(Duration::from_micros(due)))
            && sleep.deadline() != due.into()
        {
            sleep.as_mut().reset(due.into());
        }
        tokio::select! {
            biased;
            changed = stop.changed(), if watched => watched = changed.is_ok(),
            () = poll_fn(|cx| if turns.sweep(machine, &mut Ask::Runtime(cx)) { Poll::Ready(()) } else { Poll::Pending }) => {}
            () = &mut sleep, if due.is_some() => {}
        }
    }
    let left_unnamed = turns.links.iter().map(|link| link.left_unnamed()).sum();
    Ok(Ended { how: turns.how.unwrap_or(How::Done), left_unnamed })
}

/// [`drive`] on a runtime of this thread's own. Not to be called within another one.
pub fn drive_here<M: Machine + ?Sized>(
    machine: &mut M,
    links: Links,
    stop: watch::Receiver<Stop>,
    sink: &mut dyn FnMut(&mut M) -> io::Result<()>,
) -> Result<Ended, DriveFault> {
    let runtime =
        Builder::new_current_thread().enable_io().enable_time().build().map_err(DriveFault::Links)?;
    runtime.block_on(drive(machine, links, stop, sink))
}

impl Ended {
    /// The code that the machine ended with, if it did.
    pub fn exit(&self) -> Option<u8> {
        if let How::Exit(code) = self.how { Some(code) } else { None }
    }
}

impl fmt::Display for DriveFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Links(error) => write!(f, "the links could not be watched: {error}"),
            Self::Sink(error) => write!(f, "the record could not be written: {error}"),
        }
    }
}

impl Error for DriveFault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Links(error) | Self::Sink(error) => Some(error),
        }
    }
}

/// How many more writes to take from a machine while too much is queued.
#[derive(Clone, Copy)]
enum Spare {
    /// The input changes the course of things: hear the machine out.
    All,
    /// The input may be one of a flood.
    Some,
    /// The input is that the other end took something, which was too little.
    None,
}

/// How many sweeps it takes to tell what a link holds: its bytes, their end, what came behind that, its own end.
const HELD_MOST: usize = 4;

struct Turns {
    links: Vec<Box<dyn Link>>,
    door: Option<Door>,
    launcher: PathBuf,
    buffer: Box<[u8]>,
    clock: Instant,
    how: Option<How>,
}

impl Turns {
    fn new(links: Links) -> io::Result<Self> {
        let Begun { links, door, launcher } = links.begin()?;
        Ok(Self {
            links,
            door,
            launcher,
            buffer: vec![0; READ_BYTES].into(),
            clock: Instant::now(),
            how: None,
        })
    }

    fn now(&self) -> Micros {
        micros(self.clock.elapsed())
    }

    fn due<M: Machine + ?Sized>(&self, machine: &M) -> Option<Micros> {
        let door = self.door.as_ref().and_then(Door::due);
        self.links.iter().filter_map(|link| link.due()).chain(door).chain(machine.deadline()).min()
    }

    /// A deadline has come, of the machine or of a link: first what happened, then that it has come.
    fn tick<M: Machine + ?Sized>(&mut self, machine: &mut M) {
        self.sweep(machine, &mut Ask::Kernel);
        for id in 0..self.links.len() {
            let mut more = HELD_MOST;
            while self.how.is_none() && self.links[id].holds() && more > 0 {
                self.sweep_link(machine, id, &mut Ask::Kernel);
                more -= 1;
            }
        }
        if self.how.is_none() && machine.deadline().is_some_and(|due| due <= self.now()) {
            self.tell(machine, 0, Input::Tick, Spare::All);
        }
    }

    /// Takes from every source once; `true` when there was anything.
    fn sweep<M: Machine + ?Sized>(&mut self, machine: &mut M, ask: &mut Ask<'_, '_>) -> bool {
        let now = self.now();
        let door = self.door.as_mut();
        let mut any = door.is_some_and(|door| door.admit(ask, now, &mut self.buffer, &mut self.links));
        for id in 0..self.links.len() {
            if self.how.is_none() {
                any |= self.sweep_link(machine, id, ask);
            }
        }
        any
    }

    fn sweep_link<M: Machine + ?Sized>(
        &mut self,
        machine: &mut M,
        id: LinkId,
        ask: &mut Ask<'_, '_>,
    ) -> bool {
        let now = self.now();
        let mut heard = self.links[id].listen(ask, now, &mut self.buffer);
        while let Some(news) = self.links[id].news() {
            heard = true;
            let (input, spare) = match &news {
                News::Launched(launched) => (Input::Launched(launched), Spare::Some),
                News::NotLaunched(why) => (Input::NotLaunched(why), Spare::All),
                News::Signal(signal) => (Input::Signal(*signal), Spare::Some),
                News::Pong => (Input::Pong, Spare::Some),
            };
            self.tell(machine, id, input, spare);
        }
        let mut read = false;
        if let Some(n) = self.links[id].read_errors(ask, &mut self.buffer) {
            read = true;
            if n > 0 {
                machine.handle(id, Input::Stderr(&self.buffer[..n]), micros(self.clock.elapsed()));
                self.obey(machine, Spare::Some);
            }
        }
        if self.how.is_none()
            && let Some(n) = self.links[id].read(ask, &mut self.buffer)
        {
            read = true;
            let (input, spare) = match n {
                0 => (Input::Eof, Spare::All),
                n => (Input::Bytes(&self.buffer[..n]), Spare::Some),
            };
            machine.handle(id, input, micros(self.clock.elapsed()));
            self.obey(machine, spare);
        }
        let now = self.now();
        let wrote = self.links[id].write(ask, now);
        match wrote {
            Some(Wrote::Took(n)) => self.tell(machine, id, Input::Wrote(n), Spare::None),
            Some(Wrote::Broken) => self.tell(machine, id, Input::Broken, Spare::All),
            Some(Wrote::Nothing) | None => {}
        }
        let ended = self.links[id].ended(now, !read);
        let any = read || wrote.is_some() || heard || ended.is_some();
        if let Some((left, exited)) = ended {
            for left in left {
                self.tell(machine, id, Input::Left(left), Spare::All);
            }
            self.tell(machine, id, Input::Exited(exited), Spare::All);
        }
        any
    }

    /// What comes after the machine's end is not for it.
    fn tell<M: Machine + ?Sized>(&mut self, machine: &mut M, id: LinkId, input: Input<'_>, spare: Spare) {
        if self.how.is_none() {
            machine.handle(id, input, self.now());
            self.obey(machine, spare);
        }
    }

    /// Does what the machine wants, until it wants nothing more or too much is queued.
    fn obey<M: Machine + ?Sized>(&mut self, machine: &mut M, spare: Spare) {
        let now = self.now();
        let mut queued: usize = self.links.iter().map(|link| link.queued()).sum();
        let mut fresh = 0;
        let mut spare = match spare {
            Spare::All => usize::MAX,
            Spare::Some => WRITES_OVER_QUEUE,
            Spare::None => 0,
        };
        while self.how.is_none() {
            if queued > WRITE_QUEUE_BYTES && spare == 0 {
                break;
            }
            let Some(action) = machine.poll(now) else { break };
            match action {
                Action::Write { link, bytes, after_drain } => {
                    if queued > WRITE_QUEUE_BYTES {
                        spare -= 1;
                    }
                    queued += bytes.len();
                    fresh += bytes.len();
                    self.links[link].push(&bytes, after_drain);
                    if fresh > WRITE_EARLY_BYTES {
                        fresh = 0;
                        // It still counts as queued: a machine that is never told what was taken would never rest.
                        self.links[link].write_early(now);
                    }
                }
                Action::Close { link } => self.links[link].close(),
                Action::Reading { link, on } => self.links[link].set_reading(on),
                Action::LeaveErrors { link } => self.links[link].leave_errors(),
                Action::Kill { link } => self.links[link].kill(now),
                Action::Launch { link, launch } => {
                    assert_eq!(link, self.links.len(), "the next link has another id");
                    self.links.push(links::launch(launch, self.launcher.clone()));
                }
                Action::Tell { link, order } => {
                    if let Order::Stderr(bytes) = &order {
                        spare = spare.saturating_sub(usize::from(queued > WRITE_QUEUE_BYTES));
                        queued += bytes.len();
                    }
                    self.links[link].tell(order);
                }
                Action::Exit(code) => self.how = Some(How::Exit(code)),
                Action::Done => self.how = Some(How::Done),
            }
        }
    }

    /// Writes what is queued, within [`FLUSH_WITHIN`] and unless the user insists.
    async fn flush(&mut self, stop: &mut watch::Receiver<Stop>) {
        let until = self.now() + micros(FLUSH_WITHIN);
        let mut watched = true;
        while self.links.iter().any(|link| link.queued() > 0) && self.now() < until {
            if *stop.borrow_and_update() == Stop::Now {
                return;
            }
            let due = self.links.iter().filter_map(|link| link.write_due()).fold(until, Micros::min);
            let due = self.clock + Duration::from_micros(due);
            tokio::select! {
                biased;
                changed = stop.changed(), if watched => watched = changed.is_ok(),
                () = poll_fn(|cx| self.write_all(&mut Ask::Runtime(cx))) => {}
                () = sleep_until(due.into()) => {
                    let _ = self.write_all(&mut Ask::Kernel);
                }
            }
        }
    }

    /// Writes once to every link; ready when that changed anything.
    fn write_all(&mut self, ask: &mut Ask<'_, '_>) -> Poll<()> {
        let now = micros(self.clock.elapsed());
        let mut any = Poll::Pending;
        for link in &mut self.links {
            // What was taken elsewhere is told on the way.
            if link.listen(ask, now, &mut self.buffer) | link.write(ask, now).is_some() {
                any = Poll::Ready(());
            }
        }
        any
    }
}
