//! "Lifecycle", as a host must keep it once a guest runs: how its process is started, ended, lost and started again.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::{Exchange, short};
use sidecert_proto::json::{Node, quoted};
use sidecert_proto::machine::{LinkId, Micros, Order};
use sidecert_proto::reasonix::contract::{self, Limits, variable};
use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::reasonix::{session, sidecar};
use sidecert_proto::requirement::Check::{After, Always, Unobservable};
use sidecert_proto::requirement::{Cite, Requirement, Seen, must};
use sidecert_proto::script::{
    Need, Outgoing, Pattern, Process, Reaction, Reply, SLOW, Script, ScriptDef, Setting, Step, Template,
    Within,
};
use sidecert_proto::transcript::{Kind, Told, Wait};
use sidecert_proto::verdict::{Sight, Why};

use super::super::sights::{self, INVALID_BY_ID, VIOLATION, became};
use super::super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};
use super::lifecycle::{a_model, answers, declaration, gone, meets_initialize, start_as, stop_of};
use super::{
    DONE, FAILED, ONE, PLAIN_TURN, REFUSED, STOP, TURN, ask, awaits, came_of, guest, intercept, never_came,
    observed, outcome, reacts, request, say, session as begin, specified, stop, turn,
};

const LIFECYCLE: Cite = Cite::Seed("生命周期", "Lifecycle");
const SECURITY: Cite = Cite::Seed("安全模型", "Security model");

const ASKED: Seen = Seen("a request to shut down, with a time, while its input was open");
const CLOSED: Seen = Seen("the end of its input");
const ENDED: Seen = Seen("its end, and that of what it had started");
const WITHOUT_CHILD: Seen =
    Seen("its end, while what it had started in a session of its own, and holds its pipes, went on");
const LEFT_ALONE: Seen = Seen("that it was left to end by itself");
const UNREPORTED: Seen = Seen("the end of the session at once, and no report of a crash");
const AT_ONCE: Seen = Seen("it failed at once");
const KILLED: Seen = Seen("it failed, and the process was killed");
const ONCE: Seen = Seen("one report of it");
const NOT_AGAIN: Seen = Seen("no other process of it");
const NOBODY_ELSE: Seen = Seen("it failed, and no other model was asked");
const ASKED_AGAIN: Seen = Seen("the next call on the same connection");
const LITERAL: Seen = Seen("the arguments as the manifest has them");
const NOT_LAUNCHED: Seen = Seen("no process, and the start failed or was refused");
const ITS_OWN: Seen = Seen("its own name and version, and a folder");
const INHERITED: Seen = Seen("the environment of the host");
const AGAIN: Seen = Seen("a new process that was initialized");
const NEXT: Seen = Seen("the generation behind the one before");
const AFTER_THE_TURN: Seen = Seen("no new process before the turn was over");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-processes/asked-to-end", Host)
        .says("Before its input ends, a guest is asked to shut down, and told how long it has.", &[LIFECYCLE])
        .accepts(&[specified(ASKED)])
        .checked(After(&PLAIN_TURN, asked_to_end)),
    must("reasonix/host-processes/input-closed", Host)
        .says("Behind the shutdown the host closes the input of the guest.", &[LIFECYCLE])
        .accepts(&[specified(CLOSED)])
        .checked(After(&PLAIN_TURN, input_closed)),
    must("reasonix/host-processes/nothing-after-shutdown", Host)
        .says("Behind its request to shut down the host asks and tells nothing more.", &[LIFECYCLE])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::QUIET_AFTER_SHUTDOWN, &PLAIN_TURN)),
    must("reasonix/host-processes/lingering-killed", Host)
        .says("A guest that does not end is killed, with the processes that it started.", &[LIFECYCLE])
        .accepts(&[specified(ENDED)])
        .checked(After(&LINGERS, |x| ended(x, STOP, &[(ONE, 1), (ONE, 2)], ENDED))),
    must("reasonix/host-processes/escaped-child-holds-up-nothing", Host)
        .says(
            "A process in a session of its own that a guest started is ended with it, or at least holds up nothing.",
            &[LIFECYCLE],
        )
        .accepts(&[specified(ENDED), observed(WITHOUT_CHILD)])
        .checked(After(&ESCAPES, escaped)),
    must("reasonix/host-processes/leaving-not-killed", Host)
        .says("A guest that has answered is not killed as long as it may be ending by itself.", &[LIFECYCLE])
        .accepts(&[specified(LEFT_ALONE)])
        .checked(After(&LEAVES, left_alone)),
    must("reasonix/host-processes/declined-shutdown-goes-on", Host)
        .says("A guest that does not accept the shutdown is ended all the same.", &[])
        .accepts(&[observed(ENDED)])
        .checked(After(&DECLINES, |x| ended(x, STOP, &[(ONE, 1)], ENDED))),
    must("reasonix/host-processes/unanswered-shutdown-goes-on", Host)
        .says("A guest that does not answer the shutdown is ended when its time is over.", &[])
        .accepts(&[observed(ENDED)])
        .checked(After(&UNANSWERED, |x| ended(x, STOP, &[(ONE, 1)], ENDED))),
    must("reasonix/host-processes/exit-on-shutdown-fine", Host)
        .says("A guest may answer the shutdown by ending: nobody waits for it, and it is no crash.", &[])
        .accepts(&[observed(UNREPORTED)])
        .checked(After(&EXITS, unreported)),
    must("reasonix/host-processes/late-requests-refused", Host)
        .says("A request of a guest that was asked to shut down is refused as a breach of the protocol.", &[])
        .accepts(&[observed(VIOLATION), observed(INVALID_BY_ID)])
        .checked(After(&LATE_REQUEST, |x| became(x, "late"))),
    must("reasonix/host-processes/death-fails-its-call", Host)
        .says("When a guest dies, the call that waits for it fails at once.", &[LIFECYCLE])
        .accepts(&[specified(AT_ONCE)])
        .checked(After(&CRASH, |x| at_once(x, TURN, died(x)))),
    must("reasonix/host-processes/death-fails-every-call", Host)
        .says(
            "When a guest dies, each call that waits for it fails, and none waits for its own time.",
            &[LIFECYCLE],
        )
        .accepts(&[specified(AT_ONCE)])
        .checked(After(&TWO_CALLS, every_call)),
    must("reasonix/host-processes/calls-to-the-dead-fail", Host)
        .says("A call to a guest that has crashed fails at once.", &[])
        .accepts(&[observed(AT_ONCE)])
        .checked(After(&CRASH, call_to_the_dead)),
    must("reasonix/host-processes/closed-output-is-a-crash", Host)
        .says("A guest that closes its output has crashed, and its process is killed.", &[])
        .accepts(&[observed(KILLED)])
        .checked(After(&CLOSES, |x| match came_of(x, TURN) {
            Sight::Saw(FAILED, _) => renamed(gone(x, &[(ONE, 1)], None), KILLED),
            other => unlike(other),
        })),
    must("reasonix/host-processes/crash-told-once", Host)
        .says("A crash is reported once.", &[])
        .accepts(&[observed(ONCE)])
        .checked(After(&CRASH, told_once)),
    must("reasonix/host-processes/no-restart-by-itself", Host)
        .says("A guest that crashed is not started again by itself.", &[LIFECYCLE])
        .accepts(&[specified(NOT_AGAIN)])
        .checked(After(&CRASH, not_again)),
    must("reasonix/host-processes/no-fallback-model", Host)
        .says(
            "When the guest of the chosen model crashes, the turn fails, and no other model answers.",
            &[LIFECYCLE],
        )
        .accepts(&[specified(NOBODY_ELSE)])
        .checked(After(&MODEL_DIES, nobody_else)),
    must("reasonix/host-processes/deaf-guest-cut-off", Host)
        .says("A guest that takes no more bytes is cut off: what waits for it fails, and it is ended.", &[])
        .accepts(&[observed(FAILED)])
        .checked(After(&DEAF, |x| match timely(x, TURN) {
            Sight::Saw(FAILED, _) => renamed(gone(x, &[(ONE, 1)], Some(STOP)), FAILED),
            other => other,
        })),
    must("reasonix/host-processes/timeout-keeps-connection", Host)
        .says("A call that nobody answered in time does not end the connection: the next one works.", &[])
        .accepts(&[observed(ASKED_AGAIN)])
        .checked(After(&LATE_RULING, asked_again)),
    must("reasonix/host-processes/started-without-a-shell", Host)
        .says("A guest is started as its manifest says, and no shell reads its arguments.", &[LIFECYCLE])
        .accepts(&[specified(LITERAL)])
        .checked(After(&LAUNCH, literal)),
    must("reasonix/host-processes/shell-or-relative-refused", Host)
        .says("A command that is a shell, or has no absolute path, is not started.", &[])
        .accepts(&[observed(NOT_LAUNCHED)])
        .checked(After(&COMMANDS, not_launched)),
    must("reasonix/host-processes/identity-prevails", Host)
        .says("The variables that tell a guest who it is prevail over those of its manifest.", &[])
        .accepts(&[observed(ITS_OWN)])
        .checked(After(&LAUNCH, its_own)),
    must("reasonix/host-processes/environment-inherited", Host)
        .says("A guest has the environment of the host.", &[SECURITY])
        .accepts(&[specified(INHERITED)])
        .checked(After(&LAUNCH, inherited)),
    must("reasonix/host-processes/reload-starts-again", Host)
        .says(
            "A reload while nothing runs starts a guest again that had crashed, and the next turn asks it.",
            &[LIFECYCLE],
        )
        .accepts(&[specified(AGAIN)])
        .checked(After(&RELOADED, started_again)),
    must("reasonix/host-processes/reload-begins-a-generation", Host)
        .says("What a reload starts is of the next generation.", &[])
        .accepts(&[observed(NEXT)])
        .checked(After(&RELOADED, next_generation)),
    must("reasonix/host-processes/no-restart-while-busy", Host)
        .says(
            "A reload during a turn is refused or put off, and starts no process before the turn is over.",
            &[LIFECYCLE],
        )
        .accepts(&[specified(AFTER_THE_TURN)])
        .checked(After(&BUSY_RELOAD, after_the_turn)),
    must("reasonix/host-processes/outside-the-sandbox", Host)
        .says("A guest runs outside of the sandbox of the host.", &[SECURITY])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Unobservable("our guests do nothing that a sandbox would keep them from")),
    must("reasonix/host-processes/shutdown-timeout-told", Host)
        .says("The reason shutdown_timeout is what a host may keep of a shutdown that was not answered.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Unobservable("no frame carries it, and the released host never tells it")),
];

// ---- scripts ----

/// How long a guest may take for a ruling in scripts where it dies instead, in milliseconds.
const RULING_MILLIS: &str = "20000";
/// What is at once takes less than this, in microseconds: far less than any time limit that is in force there.
const AT_ONCE_MICROS: Micros = 5_000_000;
/// How long an outcome is waited for that comes late where something is wrong, in milliseconds.
pub(super) const LATE_MILLIS: u64 = 40_000;
/// How long a host must leave a guest that it closed the input of, in microseconds, to let it end at all.
const LEFT_ALONE_MICROS: Micros = 100_000;
/// An argument that no shell would leave as it is.
const ARGUMENT: &str = "; echo $HOME `id` *";
/// The label of a ruling that was held back.
const RULING: &str = "ruling";
/// The name that a manifest wants its guest to have.
const OTHER_NAME: &str = "somebody";
const INPUT: &str = "input.receive";

const fn tour(name: &'static str, build: fn(&Setting<'_>) -> Script) -> ScriptDef {
    ScriptDef { name, process: Process::Tour, needs: &[], build }
}

const fn slow(name: &'static str, build: fn(&Setting<'_>) -> Script) -> ScriptDef {
    ScriptDef { name, process: Process::Tour, needs: &[Need::Exercise(SLOW)], build }
}

pub(super) fn within(label: &str, millis: u64) -> Step {
    Step::Outcome { of: label.to_owned(), within: Some(millis), is: None }
}

fn spawned(name: &str) -> Step {
    Step::Guest { name: name.to_owned(), time: 2 }
}

/// What our guest does not answer: frames that match this, so many times.
fn unanswered(mut script: Script, when: &str, times: Option<u32>) -> Script {
    let when = Pattern::of(when).unwrap_or(Pattern::Absent);
    script.reactions.push(Reaction { when, reply: Reply::Never, times, guest: Some(ONE.to_owned()) });
    script
}

/// Asks for the end of the session, and waits until the guest is asked to shut down.
fn asked_to_stop(script: Script) -> Script {
    script.step(ask(STOP, r#"{"do":"stop"}"#)).step(awaits(&request(contract::SHUTDOWN)))
}

/// A guest that intercepts what the user says.
fn listener(setting: &Setting<'_>) -> Plugin {
    Plugin::new(setting, ONE).intercepts(&[INPUT]).with("timeoutMillis", RULING_MILLIS)
}

static LINGERS: ScriptDef = tour("guest-that-stays", |setting| lingers("guest-that-stays", setting, false));

static ESCAPES: ScriptDef =
    tour("child-in-its-own-session", |setting| lingers("child-in-its-own-session", setting, true));

/// A guest that does not end, and a child of it, in a session of its own if so.
fn lingers(name: &str, setting: &Setting<'_>, session: bool) -> Script {
    let script = Script::new(name).step(plugin::start(setting, &[Plugin::new(setting, ONE)], ""));
    // While the start is going on there is time for another process to begin.
    let script = meets_initialize(script, ONE).step(Step::Linger).step(Step::Do(Order::IgnoreTerm));
    let script = script.step(Step::Do(Order::Spawn { session })).step(spawned(ONE)).step(guest(ONE));
    let frame =
        Outgoing::Template(Template::new(answers(&declaration(setting, &[("providers", &a_model(ONE))]))));
    let script =
        script.step(Step::Send { label: Some("declaration".to_owned()), frame }).step(outcome(START));
    stop(script).step(Step::Gone).step(spawned(ONE)).step(Step::Gone)
}

static LEAVES: ScriptDef = tour("guest-that-leaves", |setting| {
    let script = begin("guest-that-leaves", setting, &[Plugin::new(setting, ONE)]).step(Step::Linger);
    let script =
        script.step(ask(STOP, r#"{"do":"stop"}"#)).step(awaits(&request(contract::SHUTDOWN))).quiet();
    script.step(Step::Alive).step(Step::Do(Order::Exit(0))).step(outcome(STOP))
});

static DECLINES: ScriptDef = tour("shutdown-declined", |setting| {
    let script = begin("shutdown-declined", setting, &[Plugin::new(setting, ONE)]);
    let answer = Template::new(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":false}}"#);
    stop(reacts(script, &request(contract::SHUTDOWN), Reply::Once(answer))).step(Step::Gone)
});

static UNANSWERED: ScriptDef = slow("shutdown-unanswered", |setting| {
    let script = begin("shutdown-unanswered", setting, &[Plugin::new(setting, ONE)]);
    let script = unanswered(script, &request(contract::SHUTDOWN), None);
    script.step(ask(STOP, r#"{"do":"stop"}"#)).step(within(STOP, LATE_MILLIS)).step(Step::Gone)
});

static EXITS: ScriptDef = tour("exit-on-shutdown", |setting| {
    let script = begin("exit-on-shutdown", setting, &[Plugin::new(setting, ONE)]);
    let script = unanswered(script, &request(contract::SHUTDOWN), None);
    asked_to_stop(script).step(Step::Do(Order::Exit(0))).step(outcome(STOP))
});

static LATE_REQUEST: ScriptDef = tour("request-behind-shutdown", |setting| {
    let script = begin("request-behind-shutdown", setting, &[Plugin::new(setting, ONE)]);
    let script = asked_to_stop(unanswered(script, &request(contract::SHUTDOWN), None));
    let read =
        sights::request("late", contract::CONTENT_READ, r#"{"contentRef":"sidecert-none","offset":0}"#);
    let script = script.raw("late", "it comes behind the shutdown", read);
    let script = script.step(Step::Await { frame: Pattern::answer_to("late"), within: Within::Silence });
    let answer = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":true}}"#;
    let frame = Outgoing::Template(Template::new(answer));
    script.step(Step::Send { label: Some("accepted".to_owned()), frame }).step(outcome(STOP))
});

static CRASH: ScriptDef = tour("crash-in-a-turn", |setting| {
    let script = begin("crash-in-a-turn", setting, &[listener(setting)]);
    let script =
        say(unanswered(script, &intercept(INPUT), Some(1)), TURN, "Hello").step(awaits(&intercept(INPUT)));
    let script =
        script.step(Step::Do(Order::Exit(1))).step(Step::Gone).step(within(TURN, LATE_MILLIS)).quiet();
    stop(say(script, "again", "Hello again").step(within("again", LATE_MILLIS)))
});

static TWO_CALLS: ScriptDef = tour("crash-between-two-calls", |setting| {
    let script = begin("crash-between-two-calls", setting, &[listener(setting)]);
    let action = format!(r#"{{"method":"{}"}}"#, contract::UI_ACTION);
    let script = unanswered(unanswered(script, &intercept(INPUT), None), &action, None);
    let script = say(script, TURN, "Hello").step(awaits(&intercept(INPUT)));
    let invoke = format!(r#"{{"do":"action","plugin":"{ONE}","action":"{}","args":{{}}}}"#, sidecar::ACTION);
    let frame = Pattern::of(&action).unwrap_or(Pattern::Absent);
    let script = script.step(ask("action", &invoke)).step(Step::Await { frame, within: Within::Silence });
    let script = script.step(Step::Do(Order::Exit(1))).step(Step::Gone);
    stop(script.step(within(TURN, LATE_MILLIS)).step(within("action", LATE_MILLIS)))
});

static CLOSES: ScriptDef = tour("guest-closes-its-output", |setting| {
    let script = begin("guest-closes-its-output", setting, &[listener(setting)]).step(Step::Linger);
    let script =
        say(unanswered(script, &intercept(INPUT), None), TURN, "Hello").step(awaits(&intercept(INPUT)));
    stop(script.step(Step::Close).step(within(TURN, LATE_MILLIS)).step(Step::Gone))
});

static MODEL_DIES: ScriptDef = tour("crash-of-a-model", |setting| {
    let pair = [Plugin::new(setting, ONE), Plugin::new(setting, "two")];
    let opens = request(contract::STREAM_OPEN);
    let script = unanswered(begin("crash-of-a-model", setting, &pair), &opens, None);
    let said = format!(r#"{{"do":"turn","text":"Hello","model":{}}}"#, quoted(&sidecar::model(ONE)));
    let script = script.step(ask(TURN, &said)).step(awaits(&opens)).step(Step::Do(Order::Exit(1)));
    stop(script.step(within(TURN, 60_000)))
});

static DEAF: ScriptDef = slow("guest-that-does-not-read", |setting| {
    let point = "provider.request";
    let plugin = Plugin::new(setting, ONE).intercepts(&[point]);
    let script =
        unanswered(begin("guest-that-does-not-read", setting, &[plugin]), &intercept(point), Some(1));
    // More than any pipe holds, and less than a frame may. A host may think about that much for long.
    let text = "sidecert ".repeat((Limits::of(setting.contract).content_ref_object_bytes / 60).max(400));
    let asked = Pattern::of(&intercept(point)).unwrap_or(Pattern::Absent);
    let comes = Step::Await { frame: asked, within: Within::Millis(LATE_MILLIS) };
    let script = say(script, TURN, &text).step(comes).step(Step::Hold);
    let answer = r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"decision":"continue"}}"#;
    let frame = Outgoing::Template(Template::new(answer));
    let script = script.step(Step::Send { label: Some("continue".to_owned()), frame });
    stop(script.step(within(TURN, LATE_MILLIS)).step(Step::Gone))
});

static LATE_RULING: ScriptDef = tour("ruling-that-never-comes", |setting| {
    let plugin = listener(setting).with("timeoutMillis", "300");
    let script = unanswered(begin("ruling-that-never-comes", setting, &[plugin]), &intercept(INPUT), Some(1));
    stop(turn(turn(script, "late", "Hello"), "next", "Hello again"))
});

static LAUNCH: ScriptDef = tour("launch", |setting| {
    let probe = setting.probe;
    let args = probe.args.iter().map(String::as_str).chain(["--as", ONE, "--show", ARGUMENT]);
    let args = args.map(quoted).collect::<Vec<_>>().join(",");
    let env = probe.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let env = env.chain([(variable::NAME, OTHER_NAME), (variable::VERSION, OTHER_NAME)]);
    let env =
        env.map(|(name, value)| format!("{}:{}", quoted(name), quoted(value))).collect::<Vec<_>>().join(",");
    let plugin =
        Plugin::new(setting, ONE).with("args", &format!("[{args}]")).with("env", &format!("{{{env}}}"));
    stop(begin("launch", setting, &[plugin]))
});

static COMMANDS: ScriptDef = tour("odd-commands", |setting| {
    // Each would start the guest, if it was started.
    let through = |name: &str, command: &str, before: &[&str]| {
        let probe = setting.probe;
        let args =
            before.iter().copied().chain([&*probe.command]).chain(probe.args.iter().map(String::as_str));
        let args = args.chain(["--as", name]).map(quoted).collect::<Vec<_>>().join(",");
        Plugin::new(setting, name).with("command", &quoted(command)).with("args", &format!("[{args}]"))
    };
    let plugins = [("shell", "/bin/sh", &["-c", r#"exec "$0" "$@""#][..]), ("relative", "env", &[][..])];
    plugins.iter().fold(Script::new("odd-commands"), |script, (name, command, before)| {
        let start = start_as(setting, name, &[through(name, command, before)]);
        stop_of(script.step(start).step(outcome(name)), name)
    })
});

static RELOADED: ScriptDef = tour("reload-after-a-crash", |setting| {
    let script = begin("reload-after-a-crash", setting, &[Plugin::new(setting, ONE)]);
    let script = script.step(Step::Do(Order::Exit(1))).step(Step::Gone);
    stop(turn(script.step(ask("reload", r#"{"do":"reload"}"#)).step(outcome("reload")), TURN, "Hello"))
});

static BUSY_RELOAD: ScriptDef = tour("reload-in-a-turn", |setting| {
    let point = "provider.request";
    let plugins = [
        Plugin::new(setting, ONE).capabilities(&["interceptors"]).optional(),
        Plugin::new(setting, "two").intercepts(&[point]),
    ];
    let held = intercept(point).replace(r#""$capture":"id""#, r#""$capture":"held""#);
    let mut script = begin("reload-in-a-turn", setting, &plugins);
    let when = Pattern::of(&held).unwrap_or(Pattern::Absent);
    script.reactions.push(Reaction {
        when,
        reply: Reply::Never,
        times: Some(1),
        guest: Some("two".to_owned()),
    });
    // Whoever has not the capability offers no model; a host that asks it all the same is told of one.
    let said = format!(r#"{{"do":"turn","text":"Hello","model":{}}}"#, quoted(&sidecar::model("two")));
    let script = script.step(guest("two")).step(ask(TURN, &said)).step(awaits(&held));
    let script = script.step(guest(ONE)).step(Step::Do(Order::Exit(1))).step(Step::Gone);
    let script = script.step(ask("reload", r#"{"do":"reload"}"#)).quiet().step(guest("two")).fence();
    let answer = r#"{"jsonrpc":"2.0","id":{"$capture":"held"},"result":{"decision":"continue"}}"#;
    let frame = Outgoing::Template(Template::new(answer));
    let script = script.step(Step::Send { label: Some(RULING.to_owned()), frame });
    stop(script.step(outcome(TURN)).step(outcome("reload")))
});

// ---- sights ----

fn not_provoked(says: &str) -> Sight {
    Sight::Undecided(Why::NotProvoked(says.to_owned().into()))
}

/// What is seen under another name, which says more.
fn renamed(sight: Sight, seen: Seen) -> Sight {
    match sight {
        Sight::Saw(_, at) => Sight::Saw(seen, at),
        other => other,
    }
}

/// What was seen is not what is asked for.
fn unlike(sight: Sight) -> Sight {
    match sight {
        Sight::Saw(seen, at) => Sight::SawOther { at, actual: seen.0.to_owned() },
        other => other,
    }
}

fn first_link(x: &Exchange<'_>, name: &str) -> Option<LinkId> {
    x.launches(name).first().copied()
}

fn time_of(x: &Exchange<'_>, at: u64) -> Micros {
    x.entries().iter().find(|entry| entry.at == at).map_or(0, |entry| entry.event.t)
}

/// The link of the first guest, where a session began.
fn in_session(x: &Exchange<'_>) -> Option<LinkId> {
    first_link(x, ONE).filter(|_| matches!(came_of(x, START), Sight::Saw(DONE, _)))
}

/// When the host closed the input of the guest on this link.
fn closed(x: &Exchange<'_>, link: LinkId) -> Option<(u64, Micros)> {
    let of_link = x.entries().iter().filter(|entry| entry.event.link == link);
    let mut ends =
        of_link.filter(|entry| matches!(entry.event.kind, Kind::Closed { from } if from == x.target));
    ends.next().map(|entry| (entry.at, entry.event.t))
}

fn shutdown<'x>(x: &'x Exchange<'_>, link: LinkId) -> Option<(u64, Option<Node<'x>>)> {
    x.asked(contract::SHUTDOWN)
        .find(|(entry, _)| entry.event.link == link)
        .map(|(entry, params)| (entry.at, params))
}

fn asked_to_end(x: &Exchange<'_>) -> Sight {
    let (Some(link), Some((stopped, _))) = (in_session(x), x.outcome(STOP)) else {
        return never_came(x, STOP);
    };
    let Some((at, params)) = shutdown(x, link) else {
        return Sight::SawOther { at: stopped, actual: "no request to shut down".to_owned() };
    };
    let millis = params.and_then(|params| params.get("timeoutMillis")?.as_u64());
    match (millis, closed(x, link)) {
        (None, _) => Sight::SawOther { at, actual: "a request to shut down without a time".to_owned() },
        (_, Some((end, _))) if end < at => {
            Sight::SawOther { at: end, actual: "its input ended before it was asked".to_owned() }
        }
        _ => Sight::Saw(ASKED, at),
    }
}

fn input_closed(x: &Exchange<'_>) -> Sight {
    let (Some(link), Some((stopped, _))) = (in_session(x), x.outcome(STOP)) else {
        return never_came(x, STOP);
    };
    match closed(x, link) {
        Some((at, _)) => Sight::Saw(CLOSED, at),
        None => Sight::SawOther { at: stopped, actual: "its input never ended".to_owned() },
    }
}

/// What came of an ask that may take long where something is wrong.
pub(super) fn timely(x: &Exchange<'_>, label: &str) -> Sight {
    match x.timed_out(Wait::Outcome, Some(label)) {
        Some((at, micros)) => {
            Sight::SawOther { at, actual: format!("nothing came of it in {} s", micros / 1_000_000) }
        }
        None => came_of(x, label),
    }
}

/// Whether these were gone in the end, where the ask of this label ended the session; what is seen then. A host may say
/// that a guest did not do its part.
pub(super) fn ended(x: &Exchange<'_>, label: &str, launches: &[(&str, usize)], seen: Seen) -> Sight {
    match timely(x, label) {
        Sight::Saw(..) if in_session(x).is_none() => never_came(x, "a session"),
        Sight::Saw(DONE | FAILED, _) => renamed(gone(x, launches, None), seen),
        other => unlike(other),
    }
}

fn escaped(x: &Exchange<'_>) -> Sight {
    let guest = ended(x, STOP, &[(ONE, 1)], WITHOUT_CHILD);
    match (&guest, ended(x, STOP, &[(ONE, 1), (ONE, 2)], ENDED)) {
        (Sight::Saw(..), both @ Sight::Saw(..)) => both,
        _ => guest,
    }
}

fn left_alone(x: &Exchange<'_>) -> Sight {
    let Some((link, (end, since))) = first_link(x, ONE).and_then(|link| Some((link, closed(x, link)?)))
    else {
        return never_came(x, STOP);
    };
    let of_link =
        |what: Told| x.told(what).map(|(entry, _)| entry).filter(|it| it.event.link == link && it.at > end);
    if let Some(alive) = of_link(Told::Alive).next() {
        return Sight::Saw(LEFT_ALONE, alive.at);
    }
    match of_link(Told::Gone).next() {
        Some(gone) if gone.event.t.saturating_sub(since) >= LEFT_ALONE_MICROS => {
            Sight::Saw(LEFT_ALONE, gone.at)
        }
        Some(gone) => {
            Sight::SawOther { at: gone.at, actual: "its end as soon as its input was closed".to_owned() }
        }
        None => never_came(x, STOP),
    }
}

/// What the user was shown of this guest behind the event `after`, where it is a warning or an error.
fn reports<'x>(x: &'x Exchange<'_>, name: &'x str, after: u64) -> impl Iterator<Item = (u64, String)> + 'x {
    let is = |shown: Node<'_>, member: &str, text: &str| {
        shown.get(member).and_then(|it| it.as_str()).is_some_and(|it| it == text)
    };
    x.told(Told::Shown).filter(move |(entry, _)| entry.at > after).filter_map(move |(entry, root)| {
        let odd = is(root, "as", "warning") || is(root, "as", "error");
        let text = root.get("text")?.as_str()?.into_owned();
        (odd && is(root, "plugin", name)).then_some((entry.at, text))
    })
}

fn unreported(x: &Exchange<'_>) -> Sight {
    let sight = timely(x, STOP);
    let (Sight::Saw(DONE, at), Some(link)) = (&sight, first_link(x, ONE)) else { return unlike(sight) };
    let Some((asked, params)) = shutdown(x, link) else { return never_came(x, STOP) };
    if let Some((at, text)) = reports(x, ONE, asked).next() {
        return Sight::SawOther { at, actual: format!("the report {:?}", short(&text)) };
    }
    let millis = params.and_then(|params| params.get("timeoutMillis")?.as_u64()).unwrap_or_default();
    let gone = x.told(Told::Gone).find(|(entry, _)| entry.event.link == link);
    let took = gone.map_or(0, |(entry, _)| time_of(x, *at).saturating_sub(entry.event.t));
    // A host that gives its guests less than this does not wait long enough to tell.
    if took >= 2_000_000 && took >= millis.saturating_mul(900) {
        return Sight::SawOther { at: *at, actual: "its whole time was waited for".to_owned() };
    }
    Sight::Saw(UNREPORTED, *at)
}

/// When the first guest died.
fn died(x: &Exchange<'_>) -> Option<Micros> {
    let link = first_link(x, ONE)?;
    x.told(Told::Gone).find(|(entry, _)| entry.event.link == link).map(|(entry, _)| entry.event.t)
}

/// Whether an ask failed soon after that.
fn at_once(x: &Exchange<'_>, label: &str, since: Option<Micros>) -> Sight {
    let sight = timely(x, label);
    let (Sight::Saw(FAILED, at), Some(since)) = (&sight, since) else { return unlike(sight) };
    let took = time_of(x, *at).saturating_sub(since);
    if took < AT_ONCE_MICROS {
        return Sight::Saw(AT_ONCE, *at);
    }
    Sight::SawOther { at: *at, actual: format!("it failed {} s later", took / 1_000_000) }
}

fn every_call(x: &Exchange<'_>) -> Sight {
    if x.asked(contract::UI_ACTION).next().is_none() && x.cut.is_none() {
        return not_provoked("the host invokes no action while a turn runs");
    }
    match (at_once(x, TURN, died(x)), came_of(x, "action")) {
        // Whoever says why it cannot be done has failed it as well.
        (Sight::Saw(AT_ONCE, _), Sight::Saw(REFUSED, at))
            if died(x).is_some_and(|died| time_of(x, at) < died + AT_ONCE_MICROS) =>
        {
            Sight::Saw(AT_ONCE, at)
        }
        (Sight::Saw(AT_ONCE, _), _) => at_once(x, "action", died(x)),
        (other, _) => other,
    }
}

fn asked_at(x: &Exchange<'_>, label: &str) -> Option<(u64, Micros)> {
    let is_it =
        |kind: &Kind<'_>| matches!(kind, Kind::Told { what: Told::Ask, label: Some(it), .. } if it == label);
    x.find(is_it).map(|entry| (entry.at, entry.event.t))
}

/// The launches of a guest, by their places.
fn launched(x: &Exchange<'_>, name: &str) -> Vec<u64> {
    let links = x.launches(name);
    let all = x.told(Told::Launched).map(|(entry, _)| entry);
    all.filter(|entry| links.contains(&entry.event.link)).map(|entry| entry.at).collect()
}

fn call_to_the_dead(x: &Exchange<'_>) -> Sight {
    if launched(x, ONE).len() > 1 {
        return not_provoked("the guest was there again");
    }
    at_once(x, "again", asked_at(x, "again").map(|(_, t)| t))
}

fn told_once(x: &Exchange<'_>) -> Sight {
    let link = first_link(x, ONE);
    let gone = x.told(Told::Gone).any(|(entry, _)| Some(entry.event.link) == link);
    let (true, Some((asked, _)), Some((next, _))) = (gone, asked_at(x, TURN), asked_at(x, "again")) else {
        return never_came(x, "again");
    };
    // The host may know of its end before we do. What it did not live to say may be told apart, so only the same text
    // counts.
    let told: Vec<_> = reports(x, ONE, asked).filter(|(at, _)| *at < next).collect();
    let twice =
        told.iter().enumerate().find(|(place, (_, text))| told[..*place].iter().any(|(_, it)| it == text));
    match (twice, told.first()) {
        (Some((_, (at, text))), _) => {
            Sight::SawOther { at: *at, actual: format!("{:?} once more", short(text)) }
        }
        (None, Some((at, _))) => Sight::Saw(ONCE, *at),
        (None, None) => not_provoked("the driver tells nothing of crashes"),
    }
}

fn not_again(x: &Exchange<'_>) -> Sight {
    let Some((next, _)) = asked_at(x, "again") else { return never_came(x, "again") };
    match launched(x, ONE).get(1).filter(|at| **at < next) {
        Some(at) => Sight::SawOther { at: *at, actual: "another process of it".to_owned() },
        None => Sight::Saw(NOT_AGAIN, next),
    }
}

fn nobody_else(x: &Exchange<'_>) -> Sight {
    let opened =
        x.asked(contract::STREAM_OPEN).find(|(entry, _)| Some(entry.event.link) == first_link(x, "two"));
    match (opened, came_of(x, TURN)) {
        (Some((entry, _)), _) => {
            Sight::SawOther { at: entry.at, actual: "another model was asked".to_owned() }
        }
        (None, Sight::Saw(FAILED, at)) => Sight::Saw(NOBODY_ELSE, at),
        (None, other) => unlike(other),
    }
}

/// What the first guest tells of how it was started.
fn told_of<'x>(x: &'x Exchange<'_>) -> Option<(u64, Node<'x>)> {
    let link = first_link(x, ONE)?;
    x.told(Told::Launched).find(|(entry, _)| entry.event.link == link).map(|(entry, told)| (entry.at, told))
}

fn literal(x: &Exchange<'_>) -> Sight {
    let Some((at, told)) = told_of(x) else { return never_came(x, START) };
    let words = told.get("argv").into_iter().flat_map(Node::elements);
    if words.clone().any(|word| word.as_str().is_some_and(|word| word == ARGUMENT)) {
        return Sight::Saw(LITERAL, at);
    }
    let raw = told.get("argv").map_or("nothing", |argv| argv.raw());
    Sight::SawOther { at, actual: short(raw) }
}

fn its_own(x: &Exchange<'_>) -> Sight {
    let Some((at, told)) = told_of(x) else { return never_came(x, START) };
    let value =
        |name: &str| told.get("values").and_then(|values| values.get(name)).and_then(|it| it.as_str());
    let (name, version, root) = (value(variable::NAME), value(variable::VERSION), value(variable::ROOT));
    if name.as_deref() == Some(ONE)
        && version.as_deref() == Some("1.0.0")
        && root.is_some_and(|it| !it.is_empty())
    {
        return Sight::Saw(ITS_OWN, at);
    }
    Sight::SawOther { at, actual: short(told.get("values").map_or("none", |it| it.raw())) }
}

fn inherited(x: &Exchange<'_>) -> Sight {
    let Some((at, told)) = told_of(x) else { return never_came(x, START) };
    let mut names = told.get("env").into_iter().flat_map(Node::elements);
    // It is in the environment of everything that was started from somewhere.
    if names.any(|name| name.as_str().is_some_and(|name| name.eq_ignore_ascii_case("PATH"))) {
        return Sight::Saw(INHERITED, at);
    }
    Sight::SawOther { at, actual: "an environment without PATH".to_owned() }
}

fn not_launched(x: &Exchange<'_>) -> Sight {
    let mut last = 0;
    for name in ["shell", "relative"] {
        if let Some(at) = launched(x, name).first() {
            return Sight::SawOther { at: *at, actual: format!("the command that is {name} was started") };
        }
        match came_of(x, name) {
            Sight::Saw(FAILED | REFUSED, at) => last = at,
            other => return unlike(other),
        }
    }
    Sight::Saw(NOT_LAUNCHED, last)
}

fn started_again(x: &Exchange<'_>) -> Sight {
    let sight = came_of(x, "reload");
    if in_session(x).is_none() {
        return never_came(x, "a session");
    }
    let Sight::Saw(DONE, reloaded) = sight else { return unlike(sight) };
    let again = x.launches(ONE).get(1).copied();
    let mut told = x.asked(contract::INITIALIZED).filter(|(entry, _)| Some(entry.event.link) == again);
    match told.next() {
        Some(_) => match came_of(x, TURN) {
            Sight::Saw(DONE, at) => Sight::Saw(AGAIN, at),
            Sight::Saw(seen, at) => Sight::SawOther { at, actual: format!("the next turn: {}", seen.0) },
            other => other,
        },
        None => Sight::SawOther { at: reloaded, actual: "no other process was initialized".to_owned() },
    }
}

fn next_generation(x: &Exchange<'_>) -> Sight {
    let told = x
        .asked(contract::INITIALIZE)
        .filter_map(|(entry, params)| Some((entry.at, params?.pointer("/session/generation")?.as_u64()?)));
    match told.collect::<Vec<_>>()[..] {
        [(_, first), .., (at, next)] if next == first + 1 => Sight::Saw(NEXT, at),
        [(_, first), .., (at, next)] => {
            Sight::SawOther { at, actual: format!("generation {next} behind {first}") }
        }
        _ => never_came(x, "reload"),
    }
}

fn asked_again(x: &Exchange<'_>) -> Sight {
    let sight = came_of(x, "late");
    let Sight::Saw(FAILED, _) = sight else {
        return match sight {
            Sight::Saw(seen, _) => not_provoked(&format!("the intercept that was not answered: {}", seen.0)),
            other => other,
        };
    };
    let Some((next, _)) = asked_at(x, "next") else { return never_came(x, "next") };
    let link = first_link(x, ONE);
    let again =
        x.asked(contract::INTERCEPT).find(|(entry, _)| entry.at > next && Some(entry.event.link) == link);
    match again {
        Some((entry, _)) => Sight::Saw(ASKED_AGAIN, entry.at),
        None if launched(x, ONE).len() > 1 => not_provoked("the guest was started for each turn"),
        None => unlike(came_of(x, "next")),
    }
}

fn after_the_turn(x: &Exchange<'_>) -> Sight {
    // The turn runs as long as a ruling is awaited; what a driver tells of its end may come late. Whoever ends the
    // guest gets no ruling.
    let ruled = x.sent(RULING).map(|entry| entry.at).or(x.cut.map(|_| x.last() + 1));
    let ruled = ruled.map(|at| x.outcome(TURN).map_or(at, |(over, _)| at.min(over)));
    let (Some(ruled), Some(_)) = (ruled, asked_at(x, "reload")) else { return never_came(x, TURN) };
    let actual = |what: &str| format!("{what}, while the turn was running");
    if let Some((entry, _)) = x.asked(contract::SHUTDOWN).find(|(entry, _)| entry.at < ruled) {
        return Sight::SawOther { at: entry.at, actual: actual("a shutdown") };
    }
    let more = [ONE, "two"].into_iter().filter_map(|name| launched(x, name).get(1).copied()).min();
    match (more.filter(|at| *at < ruled), came_of(x, "reload")) {
        (Some(at), _) => Sight::SawOther { at, actual: actual("another process") },
        (None, Sight::Saw(REFUSED, at)) => Sight::Saw(AFTER_THE_TURN, at),
        (None, Sight::Saw(_, at)) if at > ruled => Sight::Saw(AFTER_THE_TURN, at),
        (None, other) => unlike(other),
    }
}
