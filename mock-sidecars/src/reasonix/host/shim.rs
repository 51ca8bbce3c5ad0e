//! Link 0: what the host is asked to do, and what came of it.

use std::rc::Rc;

use serde_json::{Value, json};
use sidecert_proto::machine::Action;
use sidecert_proto::reasonix::contract::point;
use sidecert_proto::script::WORDS;

use super::core::{Core, Failure, Shared, text};
use super::hooks::Stop;
use super::manifest::{self, Plugin};
use super::session::Session;
use super::ui::NotDone;
use super::{providers, start, turn, ui};

/// The version of what is spoken here.
const SHIM: u64 = 1;
/// What is said of a plugin whose code runs.
const FULL_TRUST: &str =
    "FULL TRUST: this plugin runs code of its own outside of the sandbox, with your environment.";

/// What came of something that was asked.
enum Outcome {
    /// It was done, and this came of it.
    Done(Value),
    Blocked(String),
    Failed(Failure),
    Refused(String),
}

impl From<Stop> for Outcome {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Blocked(says) => Self::Blocked(says),
            Stop::Failed(failure) => Self::Failed(failure),
        }
    }
}

impl<T: Into<Value>> From<Result<T, Stop>> for Outcome {
    fn from(outcome: Result<T, Stop>) -> Self {
        outcome.map_or_else(Self::from, |found| Self::Done(found.into()))
    }
}

fn done() -> Outcome {
    Outcome::Done(json!({}))
}

/// Takes in a line. One that is none is passed over: nobody could be told.
pub(super) fn heard(core: &Shared<'_>, line: &[u8]) {
    let Ok(said) = serde_json::from_slice::<Value>(line) else { return };
    if said["shim"].as_u64() == Some(SHIM) {
        core.with(|state| {
            text(&said, "folder").clone_into(&mut state.folder);
            state.greeted = true;
        });
        let name = "sidecert-reference-host";
        let version = env!("CARGO_PKG_VERSION");
        return core.say(
            &json!({"shim": SHIM, "name": name, "version": version, "does": WORDS, "tools": turn::tools()}),
        );
    }
    let (Some(number), true) = (said["ask"].as_u64(), core.with(|state| state.greeted)) else { return };
    let core = Rc::clone(core);
    core.clone().spawn(async move {
        let outcome = asked(&core, &said).await;
        // What was begun on the way is written, and shown, before anybody is told that it is over.
        core.breath().await;
        let pieces = core.with(|state| state.pieces);
        drop(ui::settled(&core, pieces).await);
        core.say(&line_of(number, outcome));
    });
}

fn line_of(number: u64, outcome: Outcome) -> Value {
    let mut line = json!({ "outcome": number });
    match outcome {
        Outcome::Done(more) => {
            line["done"] = true.into();
            for (name, value) in more.as_object().into_iter().flatten() {
                line[name] = value.clone();
            }
        }
        Outcome::Blocked(says) => line["blocked"] = says.into(),
        Outcome::Refused(says) => line["refused"] = says.into(),
        Outcome::Failed(failure) => {
            line["failed"] = failure.text.into();
            if let Some(reason) = failure.reason {
                line["reason"] = reason.into();
            }
        }
    }
    line
}

/// The parts of a session that exclude each other.
fn busy(core: &Core<'_>) -> Option<&'static str> {
    core.session(|session| match (session.moving, session.turning) {
        (true, _) => Some("plugins are being started or ended"),
        (_, true) => Some("a turn is running"),
        _ => None,
    })
    .unwrap_or(Some("no session runs"))
}

async fn asked(core: &Shared<'_>, ask: &Value) -> Outcome {
    let running = core.session(|_| ()).is_some();
    match text(ask, "do") {
        "start" if running => Outcome::Refused("a session runs already".to_owned()),
        "start" => begin(core, ask).await,
        "admit" => match manifest::admit(core.contract, &core.manners.plugins, &ask["plugin"]) {
            Ok(_) => done(),
            Err(says) => Outcome::Refused(core.masked(core.manners.redacts.errors, &says)),
        },
        "describe" => describe(core, ask),
        _ if !running => Outcome::Refused("no session runs".to_owned()),
        "stop" => stop(core).await,
        "signal" => signalled(core, text(ask, "signal")).await,
        "turn" => match busy(core) {
            Some(says) => Outcome::Refused(says.to_owned()),
            None => take_turn(core, ask).await,
        },
        "cancel" => match core.session(|session| session.cancelled = session.turning) {
            Some(()) if core.session(|session| session.turning) == Some(true) => done(),
            _ => Outcome::Refused("no turn is running".to_owned()),
        },
        "reload" => match busy(core).filter(|_| core.manners.ends.reload_needs_idle) {
            Some(says) => Outcome::Refused(says.to_owned()),
            None => match start::reload(core).await {
                Ok(()) => turn::session_point(core, point::SESSION_LOAD)
                    .await
                    .map_or_else(Outcome::from, |()| done()),
                Err(failure) => Outcome::Failed(failure),
            },
        },
        "action" => by_user(ui::invoke(core, ask).await),
        "submit" => by_user(ui::submit(core, ask).await),
        "answer" => {
            let cancelled = ask["cancelled"].as_bool() == Some(true);
            let values = Some(&ask["values"]).filter(|_| !cancelled);
            if ui::answered(core, text(ask, "prompt"), values) {
                done()
            } else {
                Outcome::Refused("there is no such prompt".to_owned())
            }
        }
        "models" => {
            let models = providers::models(core).await;
            let whole = core.manners.streams.lists_whole_names;
            let name = |it: providers::Model| if whole { it.reference } else { it.name.unwrap_or_default() };
            let names = models.into_iter().map(name).collect::<Vec<_>>();
            Outcome::Done(json!({ "models": names }))
        }
        other @ ("compact" | "new-session") => match busy(core) {
            Some(says) => Outcome::Refused(says.to_owned()),
            None if other == "compact" => {
                turn::compact(core, text(ask, "guidance")).await.map_or_else(Outcome::from, |()| done())
            }
            None => turn::rotate(core).await.map_or_else(Outcome::from, |()| done()),
        },
        _ => Outcome::Refused("this host does not know what that is".to_owned()),
    }
}

fn by_user(outcome: Result<String, NotDone>) -> Outcome {
    match outcome {
        Ok(says) if says.is_empty() => done(),
        Ok(says) => Outcome::Done(json!({ "text": says })),
        Err(NotDone::Refused(says)) => Outcome::Refused(says),
        Err(NotDone::Failed(failure)) => Outcome::Failed(failure),
    }
}

async fn take_turn(core: &Shared<'_>, ask: &Value) -> Outcome {
    core.session(|session| (session.turning, session.cancelled) = (true, false));
    let unwanted = |core: &Core<'_>| core.session(|session| session.cancelled).unwrap_or(true);
    let outcome = core.unless(unwanted, turn::turn(core, ask)).await;
    let outcome = outcome.unwrap_or_else(|| Err(Stop::Failed(turn::cancelled(core))));
    core.session(|session| session.turning = false);
    if let Err(stop) = &outcome {
        core.note(match stop {
            Stop::Blocked(says) => says,
            Stop::Failed(failure) => &failure.text,
        });
    }
    outcome.map(|text| json!({ "text": text })).into()
}

async fn begin(core: &Shared<'_>, ask: &Value) -> Outcome {
    let mut plugins: Vec<Rc<Plugin>> = Vec::new();
    for entry in ask["plugins"].as_array().into_iter().flatten() {
        match manifest::admit(core.contract, &core.manners.plugins, entry) {
            Ok(plugin) => plugins.push(Rc::new(plugin)),
            Err(says) => return Outcome::Refused(core.masked(core.manners.redacts.errors, &says)),
        }
    }
    if core.manners.plugins.starts_bare {
        manifest::clothe(&mut plugins);
    }
    let active = plugins.iter().map(Rc::as_ref).filter(|it| it.enabled && !it.project);
    if let Some(says) = manifest::conflict(active).filter(|_| core.manners.plugins.one_owner) {
        return Outcome::Failed(Failure::new(says));
    }
    let ui_host = Some(text(ask, "uiHost")).filter(|it| !it.is_empty()).unwrap_or("headless");
    core.with(|state| {
        state.sessions += 1;
        state.log.clear();
        state.session = Some(Session {
            id: format!("session-{}", state.sessions),
            generation: 1,
            workspace: text(ask, "workspace").to_owned(),
            ui_host: ui_host.to_owned(),
            allows_writes: text(ask, "permission") != "deny",
            plugins,
            conversations: 1,
            moving: true,
            ..Session::default()
        });
    });
    let started = start::start(core).await.map_err(Stop::Failed);
    let started = match started {
        Ok(()) => turn::begun(core).await,
        Err(stop) => Err(stop),
    };
    core.session(|session| session.moving = false);
    match started {
        Ok(()) => done(),
        Err(stop) => {
            if core.manners.starts.ends_others {
                start::shut_all_down(core).await;
            }
            core.with(|state| state.session = None);
            stop.into()
        }
    }
}

/// Ends the session, whatever is going on in it.
async fn stop(core: &Shared<'_>) -> Outcome {
    core.session(|session| session.cancelled = session.turning);
    core.until_so(None, |core| core.session(|it| it.moving || it.turning) != Some(true)).await;
    core.breath().await;
    core.session(|session| session.moving = true);
    let ended = turn::session_point(core, point::SESSION_END).await;
    start::shut_all_down(core).await;
    let stored = core.session(|session| session.history.iter().map(Value::to_string).collect::<Vec<_>>());
    core.found("session", &stored.unwrap_or_default().join("\n"));
    let log = core.with(|state| std::mem::take(&mut state.log));
    if !log.is_empty() {
        core.found("log", &log.join("\n"));
    }
    core.with(|state| {
        state.session = None;
        state.links.clear();
    });
    ended.map_or_else(Outcome::from, |()| done())
}

/// The program gets a signal: it ends in order. This one is told so, and stays for another session.
async fn signalled(core: &Shared<'_>, signal: &str) -> Outcome {
    let ends = &core.manners.ends;
    let in_order = match signal {
        "TERM" => ends.in_order_when_terminated,
        "INT" => ends.in_order_when_interrupted,
        _ => return Outcome::Refused("this host knows no such signal".to_owned()),
    };
    if in_order {
        drop(stop(core).await);
    } else {
        leave(core).await;
    }
    done()
}

/// The session is over at once, and nobody thinks of its guests.
async fn leave(core: &Shared<'_>) {
    core.session(|session| session.cancelled = session.turning);
    core.until_so(None, |core| core.session(|it| it.moving || it.turning) != Some(true)).await;
    core.with(|state| state.session = None);
}

/// Ends everything: nobody asks for anything any more.
pub(super) fn over(core: &Shared<'_>) {
    if core.with(|state| std::mem::replace(&mut state.ending, true)) {
        return;
    }
    let core = Rc::clone(core);
    core.clone().spawn(async move {
        if core.session(|_| ()).is_some() {
            stop(&core).await;
        }
        core.act(Action::Exit(0));
    });
}

fn describe(core: &Shared<'_>, ask: &Value) -> Outcome {
    let plugin = text(ask, "plugin");
    let known =
        core.session(|session| session.plugins.iter().find(|it| it.name == plugin).cloned()).flatten();
    let admitted = || manifest::admit(core.contract, &core.manners.plugins, &ask["plugin"]).ok().map(Rc::new);
    let Some(plugin) = known.or_else(admitted) else {
        return Outcome::Refused("there is no such plugin".to_owned());
    };
    let mut says = format!("{} {} ({})", plugin.name, plugin.version, text(ask, "view"));
    if let Some(runtime) = plugin.runtime.as_ref().filter(|_| core.manners.plugins.shows_trust) {
        says.push_str(&format!("\n{FULL_TRUST}\nIt runs {}", runtime.command));
    }
    Outcome::Done(json!({ "text": core.masked(core.manners.redacts.ui, &says) }))
}
