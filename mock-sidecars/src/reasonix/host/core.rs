//! What all parts of the host share: its state, what it wants done, and how its tasks wait.
//!
//! What the host does one after the other is written as tasks (`async`), and polled whenever something happened. There
//! is no runtime and no waker: all waiting goes through [`Core::until`], which looks at the state, and is looked at
//! again until a whole round changed nothing.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use serde_json::{Value, json};
use sidecert_proto::contract::Contract;
use sidecert_proto::machine::{Action, LinkId, Micros};
use sidecert_proto::reasonix::contract::Limits;
use sidecert_proto::reasonix::documents::Documents;

use super::connection::Connection;
use super::manners::Manners;
use super::redact::masked;
use super::session::Session;
use super::ui::Prompt;

/// Something that the host does, to be polled until it is done.
pub(super) type Task<'c> = Pin<Box<dyn Future<Output = ()> + 'c>>;

/// Why something did not go well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failure {
    /// What the user is told.
    pub(super) text: String,
    /// The reason of the protocol, where there is one.
    pub(super) reason: Option<String>,
    /// Whether nothing came in time.
    pub(super) elapsed: bool,
}

impl Failure {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(super) fn of(reason: &str, text: impl Into<String>) -> Self {
        Self { text: text.into(), reason: Some(reason.to_owned()), elapsed: false }
    }
}

/// The time is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elapsed;

/// What the host knows.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The folder that is the host's own.
    pub(super) folder: String,
    /// Whether the shim has said who it is.
    pub(super) greeted: bool,
    pub(super) links: BTreeMap<LinkId, Connection>,
    pub(super) last_link: LinkId,
    pub(super) session: Option<Session>,
    pub(super) sessions: u64,
    pub(super) streams: u64,
    pub(super) prompts: BTreeMap<String, Prompt>,
    pub(super) last_prompt: u64,
    /// How many pieces are to be shown, how many were, and which could not be.
    pub(super) pieces: u64,
    pub(super) shown: u64,
    pub(super) unshown: BTreeMap<u64, Failure>,
    /// What the host keeps for itself.
    pub(super) log: Vec<String>,
    /// Whether link 0 has ended.
    pub(super) ending: bool,
}

/// What all parts share.
pub(super) struct Core<'c> {
    pub(super) contract: &'c Contract,
    pub(super) limits: Limits,
    pub(super) manners: Manners,
    pub(super) documents: Documents<'c>,
    pub(super) now: Cell<Micros>,
    wake: Cell<Option<Micros>>,
    stirred: Cell<bool>,
    actions: RefCell<VecDeque<Action>>,
    spawned: RefCell<Vec<Task<'c>>>,
    state: RefCell<State>,
}

impl<'c> Core<'c> {
    pub(super) fn new(contract: &'c Contract, manners: Manners) -> Self {
        Self {
            contract,
            limits: Limits::of(contract),
            manners,
            documents: Documents::new(contract),
            now: Cell::new(0),
            wake: Cell::new(None),
            stirred: Cell::new(false),
            actions: RefCell::default(),
            spawned: RefCell::default(),
            state: RefCell::default(),
        }
    }

    /// Looks at the state, or changes it.
    pub(super) fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        what(&mut self.state.borrow_mut())
    }

    /// Looks at a connection, or changes it; `None` when there is none any more.
    pub(super) fn on<T>(&self, link: LinkId, what: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        self.state.borrow_mut().links.get_mut(&link).map(what)
    }

    /// Looks at the session, or changes it; `None` when there is none.
    pub(super) fn session<T>(&self, what: impl FnOnce(&mut Session) -> T) -> Option<T> {
        self.state.borrow_mut().session.as_mut().map(what)
    }

    /// Begins a task, and goes on with it beside whoever began it. What it writes first is written here and now: an
    /// outcome must not come before what the asking caused.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'c) {
        self.stirred.set(true);
        let mut task: Task<'c> = Box::pin(task);
        if task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            self.spawned.borrow_mut().push(task);
        }
    }

    pub(super) fn act(&self, action: Action) {
        self.stirred.set(true);
        self.actions.borrow_mut().push_back(action);
    }

    pub(super) fn next_action(&self) -> Option<Action> {
        self.actions.borrow_mut().pop_front()
    }

    /// When somebody waits for nothing but the time, the earliest such moment.
    pub(super) fn wakes_at(&self) -> Option<Micros> {
        self.wake.get()
    }

    /// Asks to be looked at then.
    pub(super) fn wake_at(&self, when: Micros) {
        self.wake.set(Some(self.wake.get().map_or(when, |wake| wake.min(when))));
    }

    /// Waits until `ready` gives something, at most until `deadline`. `ready` is asked whenever something happened.
    pub(super) async fn until<T>(
        &self,
        deadline: Option<Micros>,
        mut ready: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T, Elapsed> {
        poll_fn(|_| {
            let outcome = match ready(self) {
                Some(found) => Ok(found),
                None if deadline.is_some_and(|deadline| deadline <= self.now.get()) => Err(Elapsed),
                None => {
                    if let Some(deadline) = deadline {
                        self.wake_at(deadline);
                    }
                    return Poll::Pending;
                }
            };
            self.stirred.set(true);
            Poll::Ready(outcome)
        })
        .await
    }

    /// Waits until `so` holds, at most until `deadline`. Whether it does then.
    pub(super) async fn until_so(&self, deadline: Option<Micros>, mut so: impl FnMut(&Self) -> bool) -> bool {
        self.until(deadline, |core| so(core).then_some(())).await.is_ok()
    }

    /// Waits for `task`, or until `stop` says that nobody wants it any more: then it is dropped where it stands.
    pub(super) async fn unless<T>(
        &self,
        mut stop: impl FnMut(&Self) -> bool,
        task: impl Future<Output = T>,
    ) -> Option<T> {
        let mut task = std::pin::pin!(task);
        poll_fn(|context| {
            if stop(self) {
                self.stirred.set(true);
                return Poll::Ready(None);
            }
            task.as_mut().poll(context).map(Some)
        })
        .await
    }

    /// Lets whatever else can go on do so first, and what that begins as well.
    pub(super) async fn breath(&self) {
        let mut rounds = 0..2;
        poll_fn(|_| {
            self.stirred.set(true);
            if rounds.next().is_some() { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    /// Polls every task until none gets any further.
    pub(super) fn settle(&self, tasks: &mut Vec<Task<'c>>) {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            self.wake.set(None);
            let begun = std::mem::take(&mut *self.spawned.borrow_mut());
            self.stirred.set(!begun.is_empty());
            tasks.extend(begun);
            let before = tasks.len();
            tasks.retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
            if tasks.len() < before {
                self.stirred.set(true);
            }
            if !self.stirred.get() {
                return;
            }
        }
    }

    /// Writes a line on link 0.
    pub(super) fn say(&self, line: &Value) {
        let bytes = Bytes::from(format!("{line}\n"));
        self.act(Action::Write { link: 0, bytes, after_drain: false });
    }

    /// Shows the user something that is no surface.
    pub(super) fn tell(&self, kind: &str, text: &str, plugin: Option<&str>) {
        let mut shown = json!({"as": kind, "text": text});
        if let Some(plugin) = plugin {
            shown["plugin"] = plugin.into();
        }
        self.say(&json!({ "shown": shown }));
        self.note(text);
    }

    /// Keeps something in the log.
    pub(super) fn note(&self, text: &str) {
        let text = self.masked(self.manners.redacts.log, text);
        self.with(|state| state.log.push(text));
    }

    /// What is found where the host keeps things.
    pub(super) fn found(&self, place: &str, text: &str) {
        self.say(&json!({"found": {"in": place, "text": text}}));
    }

    /// The text without what looks like a credential, if that is to be masked here.
    pub(super) fn masked(&self, mask: bool, text: &str) -> String {
        if mask { masked(text, self.manners.redacts.rules) } else { text.to_owned() }
    }
}

/// One of several things that are waited for together.
pub(super) type Part<'f, T> = Pin<Box<dyn Future<Output = T> + 'f>>;

/// Waits for all of these, of which at most so many run at once. What they give is in their order.
pub(super) async fn together<'f, T>(most: usize, tasks: Vec<Part<'f, T>>) -> Vec<T> {
    let mut waiting: VecDeque<_> = tasks.into_iter().enumerate().collect();
    let mut running = Vec::new();
    let mut done: BTreeMap<usize, T> = BTreeMap::new();
    poll_fn(move |context| {
        loop {
            let before = done.len();
            running.extend((running.len()..most.max(1)).map_while(|_| waiting.pop_front()));
            running.retain_mut(|(place, task): &mut (usize, Part<'f, T>)| {
                match task.as_mut().poll(context) {
                    Poll::Pending => true,
                    Poll::Ready(outcome) => {
                        done.insert(*place, outcome);
                        false
                    }
                }
            });
            if running.is_empty() && waiting.is_empty() {
                return Poll::Ready(std::mem::take(&mut done).into_values().collect());
            }
            if done.len() == before {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// A member that is a text; empty where it is none.
pub(super) fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// What all tasks hold.
pub(super) type Shared<'c> = Rc<Core<'c>>;
