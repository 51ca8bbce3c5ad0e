//! A host in memory, and the guests of ours that it launches.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::{ACTIONS_MOST, LATENCY, Stuck, TIME_MOST};
use crate::machine::{Action, Exited, Input, Launch, Launched, Left, LinkId, Machine, Micros, Order};

/// What a pipe holds that nobody reads from, in bytes.
const PIPE_BYTES: usize = 64 << 10;

/// What goes from one machine to the other.
enum Parcel {
    Bytes(Bytes),
    Eof,
    Broken,
    Stderr(Bytes),
    Launched(Launched),
    NotLaunched(&'static str),
    Pong,
    Exited(Exited),
    Left(Left),
}

impl Parcel {
    fn input(&self) -> Input<'_> {
        match self {
            Self::Bytes(bytes) => Input::Bytes(bytes),
            Self::Eof => Input::Eof,
            Self::Broken => Input::Broken,
            Self::Stderr(bytes) => Input::Stderr(bytes),
            Self::Launched(launched) => Input::Launched(launched),
            Self::NotLaunched(why) => Input::NotLaunched(why),
            Self::Pong => Input::Pong,
            Self::Exited(exited) => Input::Exited(*exited),
            Self::Left(left) => Input::Left(left.clone()),
        }
    }
}

/// A process of a guest.
struct Guest {
    /// Its link at the host; none where a guest of ours started it.
    at_host: Option<LinkId>,
    /// Who started it, of our guests.
    parent: Option<LinkId>,
    alive: bool,
    /// Whether the machine that plays it reads.
    reading: bool,
    /// How much more its standard error takes; no bound where the host reads it.
    errors_room: Option<usize>,
    /// What it was started with, for those that it starts itself.
    launched: Launched,
}

impl Guest {
    /// Whether it can do nothing but be killed, since it writes to standard error and nobody reads.
    fn is_stuck(&self) -> bool {
        self.errors_room == Some(0)
    }
}

/// The state between the two machines. A link is named as the machine that plays the guests names it.
struct Stage<'s> {
    probe: &'s Launch,
    to_host: VecDeque<(LinkId, Parcel)>,
    to_cast: VecDeque<(LinkId, Parcel)>,
    guests: BTreeMap<LinkId, Guest>,
    host_alive: bool,
    /// Whether the host reads, by its own links.
    host_deaf: BTreeMap<LinkId, bool>,
}

/// Lets `cast`, which plays guests and the shim's other end, meet `host` until it is done. The host launches `probe`,
/// and no other program.
pub fn stage(cast: &mut dyn Machine, host: &mut dyn Machine, probe: &Launch) -> Result<(), Stuck> {
    let mut stage = Stage {
        probe,
        to_host: VecDeque::new(),
        to_cast: VecDeque::new(),
        guests: BTreeMap::new(),
        host_alive: true,
        host_deaf: BTreeMap::new(),
    };
    let (mut now, mut actions): (Micros, u64) = (0, 0);
    loop {
        actions += 1;
        if actions > ACTIONS_MOST || now > TIME_MOST {
            return Err(Stuck::TooLong);
        }
        match cast.poll(now) {
            Some(Action::Done | Action::Exit(_)) => return Ok(()),
            Some(action) => stage.cast_does(action),
            None => {
                if stage.host_alive
                    && let Some(action) = host.poll(now)
                {
                    stage.host_does(action);
                } else if stage.deliver(cast, host, &mut now) {
                } else {
                    let theirs = host.deadline().filter(|_| stage.host_alive);
                    let next = cast.deadline().into_iter().chain(theirs).min().ok_or(Stuck::Deadlock)?;
                    now = now.max(next);
                    if theirs.is_some_and(|deadline| deadline <= now) {
                        host.handle(0, Input::Tick, now);
                    }
                    if cast.deadline().is_some_and(|deadline| deadline <= now) {
                        cast.handle(0, Input::Tick, now);
                    }
                }
            }
        }
    }
}

impl Stage<'_> {
    /// Hands over the next parcel of either direction; `false` when there is none.
    fn deliver(&mut self, cast: &mut dyn Machine, host: &mut dyn Machine, now: &mut Micros) -> bool {
        let deaf = &self.host_deaf;
        let heard = |link: &LinkId, guests: &BTreeMap<LinkId, Guest>| {
            let at_host = if *link == 0 { Some(0) } else { guests.get(link).and_then(|guest| guest.at_host) };
            at_host.is_some_and(|id| !deaf.get(&id).copied().unwrap_or_default())
        };
        if let Some(at) = self.to_host.iter().position(|(link, _)| heard(link, &self.guests)) {
            let Some((link, parcel)) = self.to_host.remove(at) else { return false };
            *now += LATENCY;
            let id = if link == 0 { Some(0) } else { self.guests.get(&link).and_then(|guest| guest.at_host) };
            if let Some(id) = id.filter(|_| self.host_alive) {
                host.handle(id, parcel.input(), *now);
                if let Parcel::Bytes(bytes) = &parcel {
                    cast.handle(link, Input::Wrote(bytes.len()), *now);
                }
            }
            return true;
        }
        let reads = |link: &LinkId| *link == 0 || self.guests.get(link).is_some_and(|guest| guest.reading);
        // What is no byte is told by the platform, read or not.
        let next = self
            .to_cast
            .iter()
            .position(|(link, parcel)| reads(link) || !matches!(parcel, Parcel::Bytes(_) | Parcel::Eof));
        let Some((link, parcel)) = next.and_then(|at| self.to_cast.remove(at)) else { return false };
        *now += LATENCY;
        cast.handle(link, parcel.input(), *now);
        let at_host =
            if link == 0 { Some(0) } else { self.guests.get(&link).and_then(|guest| guest.at_host) };
        if let (Parcel::Bytes(bytes), Some(id), true) = (&parcel, at_host, self.host_alive) {
            host.handle(id, Input::Wrote(bytes.len()), *now);
        }
        true
    }

    fn cast_does(&mut self, action: Action) {
        match action {
            // What it says behind what nobody reads is never said.
            Action::Write { link, .. } if self.guests.get(&link).is_some_and(Guest::is_stuck) => {}
            Action::Write { link, bytes, .. } => {
                let alive = if link == 0 { self.host_alive } else { self.is_alive(link) && self.host_alive };
                if alive {
                    self.to_host.push_back((link, Parcel::Bytes(bytes)));
                } else {
                    self.to_cast.push_back((link, Parcel::Broken));
                }
            }
            Action::Close { link } => self.to_host.push_back((link, Parcel::Eof)),
            Action::Reading { link, on } => {
                if let Some(guest) = self.guests.get_mut(&link) {
                    guest.reading = on;
                }
            }
            Action::Kill { link: 0 } => self.host_ends(Exited::Signal(9)),
            Action::Kill { link } => self.guest_ends(link, Exited::Signal(9)),
            Action::Tell { link, order } if self.is_alive(link) => self.obey(link, order),
            Action::Tell { .. }
            | Action::LeaveErrors { .. }
            | Action::Launch { .. }
            | Action::Exit(_)
            | Action::Done => {}
        }
    }

    fn obey(&mut self, link: LinkId, order: Order) {
        match order {
            Order::Exit(_) | Order::Abort if self.guests.get(&link).is_some_and(Guest::is_stuck) => {}
            Order::Stderr(bytes) => match self.guests.get_mut(&link).map(|guest| &mut guest.errors_room) {
                Some(Some(room)) => *room = room.saturating_sub(bytes.len()),
                _ => self.to_host.push_back((link, Parcel::Stderr(bytes))),
            },
            Order::CloseInput => self.to_host.push_back((link, Parcel::Broken)),
            Order::Exit(code) => self.guest_ends(link, Exited::Code(code.into())),
            Order::Abort => self.guest_ends(link, Exited::Signal(6)),
            Order::IgnoreTerm => {}
            Order::Ping => self.to_cast.push_back((link, Parcel::Pong)),
            Order::Spawn { session } => {
                let Some(parent) = self.guests.get(&link) else { return };
                let pid = 1_000 + i32::try_from(self.guests.len()).unwrap_or_default();
                let session = if session { pid } else { parent.launched.session };
                let parent = parent.launched.clone();
                let launched = Launched { spawned: true, pid, parent: parent.pid, session, ..parent };
                self.enter(None, Some(link), launched);
            }
        }
    }

    fn host_does(&mut self, action: Action) {
        match action {
            Action::Write { link, bytes, .. } => match self.of_host(link) {
                Some(id) if id == 0 || self.is_alive(id) => {
                    self.to_cast.push_back((id, Parcel::Bytes(bytes)));
                }
                Some(id) => self.to_host.push_back((id, Parcel::Broken)),
                None => {}
            },
            Action::Close { link } => {
                if let Some(id) = self.of_host(link) {
                    self.to_cast.push_back((id, Parcel::Eof));
                }
            }
            Action::Reading { link, on } => drop(self.host_deaf.insert(link, !on)),
            Action::LeaveErrors { link } => {
                if let Some(guest) = self.of_host(link).and_then(|id| self.guests.get_mut(&id)) {
                    guest.errors_room.get_or_insert(PIPE_BYTES);
                }
            }
            Action::Kill { link } => {
                if let Some(id) = self.of_host(link).filter(|id| *id != 0) {
                    self.guest_ends(id, Exited::Signal(9));
                }
            }
            Action::Launch { link, launch } => self.launch(link, &launch),
            Action::Exit(code) => self.host_ends(Exited::Code(code.into())),
            Action::Done => self.host_ends(Exited::Code(0)),
            Action::Tell { .. } => {}
        }
    }

    fn launch(&mut self, at_host: LinkId, launch: &Launch) {
        let pid = 1_000 + i32::try_from(self.guests.len()).unwrap_or_default();
        // As `env -i` has it: nothing but what it is given.
        let is_bare = launch.args.first().is_some_and(|word| word == "-i");
        let inherited = (!is_bare).then(|| ("PATH".to_owned(), "/bin".to_owned()));
        let mut env: BTreeMap<String, String> = inherited.into_iter().collect();
        env.extend(launch.env.iter().cloned());
        let told = |name: &str| name.starts_with("REASONIX_PLUGIN_");
        let name = launch.args.iter().skip_while(|word| *word != "--as").nth(1).cloned().unwrap_or_default();
        let launched = Launched {
            name,
            spawned: false,
            pid,
            parent: 1,
            session: pid,
            argv: [&launch.command].into_iter().chain(&launch.args).cloned().collect(),
            cwd: "/".to_owned(),
            env: env.into_iter().map(|(name, value)| (name.clone(), told(&name).then_some(value))).collect(),
            descriptors: vec![0, 1, 2],
        };
        // A shell and the like start what they are told to.
        let found = launch.command == self.probe.command || launch.args.contains(&self.probe.command);
        let id = self.enter(Some(at_host), None, launched.clone());
        if found {
            self.to_host.push_back((id, Parcel::Launched(launched)));
        } else {
            self.to_cast.pop_back();
            self.to_host.push_back((id, Parcel::NotLaunched("there is no such program")));
            if let Some(guest) = self.guests.get_mut(&id) {
                guest.alive = false;
            }
        }
    }

    /// A guest's process begins; its link.
    fn enter(&mut self, at_host: Option<LinkId>, parent: Option<LinkId>, launched: Launched) -> LinkId {
        let id = self.guests.len() + 1;
        self.to_cast.push_back((id, Parcel::Launched(launched.clone())));
        self.guests
            .insert(id, Guest { at_host, parent, alive: true, reading: true, errors_room: None, launched });
        id
    }

    /// A guest's process ends. When it is killed, what it started in its own group goes with it, and what made a
    /// session of its own is found and killed as well, as a host must.
    fn guest_ends(&mut self, link: LinkId, how: Exited) {
        let Some(guest) = self.guests.get_mut(&link).filter(|guest| guest.alive) else { return };
        guest.alive = false;
        self.to_cast.push_back((link, Parcel::Exited(Exited::Unknown)));
        let children: Vec<LinkId> = self
            .guests
            .iter()
            .filter(|(_, it)| it.parent == Some(link) && it.alive)
            .map(|(id, _)| *id)
            .collect();
        if how == Exited::Signal(9) {
            for child in children {
                self.guest_ends(child, how);
            }
        } else if !children.is_empty() {
            // They hold the pipes, so these do not end.
            return self.to_host.push_back((link, Parcel::Exited(how)));
        }
        self.to_host.extend([(link, Parcel::Eof), (link, Parcel::Exited(how))]);
    }

    /// The host's process ends, and with it all that it left, which its launcher finds.
    fn host_ends(&mut self, how: Exited) {
        if !std::mem::replace(&mut self.host_alive, false) {
            return;
        }
        let left: Vec<LinkId> =
            self.guests.iter().filter(|(_, guest)| guest.alive).map(|(id, _)| *id).collect();
        for id in left {
            let Some(guest) = self.guests.get_mut(&id) else { continue };
            guest.alive = false;
            let (pid, session) = (guest.launched.pid, guest.launched.session == guest.launched.pid);
            let left = Left { pid, name: "sidecert".to_owned(), session };
            self.to_cast.extend([(id, Parcel::Exited(Exited::Unknown)), (0, Parcel::Left(left))]);
        }
        self.to_cast.extend([(0, Parcel::Eof), (0, Parcel::Exited(how))]);
    }

    fn is_alive(&self, link: LinkId) -> bool {
        self.guests.get(&link).is_some_and(|guest| guest.alive)
    }

    /// The link that the host calls so.
    fn of_host(&self, link: LinkId) -> Option<LinkId> {
        if link == 0 {
            return Some(0);
        }
        self.guests.iter().find(|(_, guest)| guest.at_host == Some(link)).map(|(id, _)| *id)
    }
}
