//! What a host must mask before anybody is shown it, what it must leave as it is, and how much it keeps.

use std::borrow::Cow;

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::json::quoted;
use sidecert_proto::machine::Order;
use sidecert_proto::reasonix::contract;
use sidecert_proto::reasonix::plugin::{self, Plugin, START};
use sidecert_proto::reasonix::sidecar;
use sidecert_proto::requirement::Check::After;
use sidecert_proto::requirement::{Cite, Requirement, Seen, must};
use sidecert_proto::script::{Pattern, Process, Reaction, Reply, Script, ScriptDef, Setting, Step, Template};
use sidecert_proto::transcript::{Kind, Told};
use sidecert_proto::verdict::{Sight, Why};

use super::lifecycle::{answers, meets_initialize};
use super::{
    BLOCKED, FAILED, ONE, TURN, ask, awaits, came_of, intercept, never_came, observed, outcome, request,
    session as begin, specified, stop, turn, ui,
};

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const PROVIDERS: Cite = Cite::Seed("流式 Provider", "Streaming providers");
const SECURITY: Cite = Cite::Seed("安全模型", "Security model");

const MASKED: Seen = Seen("everything, without what looks like a credential");
const ITS_END: Seen = Seen("the end of it, and not its beginning");
const UNTOUCHED: Seen = Seen("the text as the model said it");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-security/stderr-masked", Host)
        .says("What is shown of standard error has no credentials.", &[TRANSPORT])
        .accepts(&[specified(MASKED)])
        .checked(After(&COMPLAINS, |x| match shown_of_stderr(x) {
            Some(_) => masked(x, START, &[KEY], None),
            None => nothing_shown(x),
        })),
    must("reasonix/host-security/stderr-bounded", Host)
        .says("What is kept of standard error is its end, and no more than is bounded.", &[TRANSPORT])
        .accepts(&[specified(ITS_END)])
        .checked(After(&COMPLAINS, its_end)),
    must("reasonix/host-security/block-reasons-masked", Host)
        .says("The reason of a block is shown without credentials.", &[SECURITY])
        .accepts(&[specified(MASKED)])
        .checked(After(&BLOCKS, |x| masked(x, TURN, &[KEY], Some(BLOCKED)))),
    must("reasonix/host-security/known-shapes-masked", Host)
        .says("Credentials of every shape that is known are masked.", &[])
        .accepts(&[observed(MASKED)])
        .checked(After(&BLOCKS, |x| masked(x, "shapes", &SHAPES.map(|(_, secret)| secret), Some(BLOCKED)))),
    must("reasonix/host-security/surfaces-masked", Host)
        .says("The texts of surfaces are shown without credentials.", &[SECURITY])
        .accepts(&[specified(MASKED)])
        .checked(After(&SURFACES, |x| shown_masked(x, "surface"))),
    must("reasonix/host-security/prompts-masked", Host)
        .says(
            "Prompts are shown without credentials: what they ask, its labels and its options.",
            &[SECURITY],
        )
        .accepts(&[specified(MASKED)])
        .checked(After(&PROMPT, |x| shown_masked(x, "prompt"))),
    must("reasonix/host-security/action-results-masked", Host)
        .says("What a guest says to an action is shown without credentials.", &[SECURITY])
        .accepts(&[specified(MASKED)])
        .checked(After(&ACTION_RESULT, action_result)),
    must("reasonix/host-security/provider-errors-masked", Host)
        .says("What a model says of its failure is shown without credentials.", &[PROVIDERS])
        .accepts(&[specified(MASKED)])
        .checked(After(&MODEL, |x| match masked(x, "chunk-error", &[KEY], Some(FAILED)) {
            Sight::Saw(..) => masked(x, "end-error", &[KEY], Some(FAILED)),
            other => other,
        })),
    must("reasonix/host-security/provider-refusals-masked", Host)
        .says("The error with which a model is not opened is shown without credentials.", &[PROVIDERS])
        .accepts(&[specified(MASKED)])
        .checked(After(&MODEL, |x| masked(x, "refusal", &[KEY], Some(FAILED)))),
    must("reasonix/host-security/errors-masked", Host)
        .says("The error with which a guest answers is shown without credentials.", &[])
        .accepts(&[observed(MASKED)])
        .checked(After(&BLOCKS, |x| masked(x, "error", &[KEY], Some(FAILED)))),
    must("reasonix/host-security/content-untouched", Host)
        .says("What a model says is shown as it is, even where it looks like a credential.", &[SECURITY])
        .accepts(&[specified(UNTOUCHED)])
        .checked(After(&MODEL, untouched)),
    must("reasonix/host-security/log-masked", Host)
        .says("What a host writes to its log has no credentials.", &[SECURITY])
        .accepts(&[specified(MASKED)])
        .checked(After(&LOGS, logs)),
];

// ---- scripts ----

/// What looks like a credential, and is none.
const KEY: &str = "sk-sidecert0not0a0key0123456789";
/// What stands at the beginning of a long complaint, and at its end. Both are too plain to be masked.
const HEAD: &str = "firstword";
const TAIL: &str = "lastword";
/// How long that complaint is, in bytes: more than anybody would keep.
const COMPLAINT_BYTES: usize = 512 << 10;
/// Credentials of all known shapes, and what of each must not be shown.
const SHAPES: [(&str, &str); 9] = [
    ("see https://me:hunter2pass@example.org/x", "hunter2pass"),
    ("Authorization: Bearer abcdefghijklmnop123456", "abcdefghijklmnop123456"),
    ("SERVICE_API_KEY=opensesame42", "opensesame42"),
    ("sk-sidecert9not9a9key9876543210", "sk-sidecert9not9a9key9876543210"),
    ("AKIASIDECERTNOTAKEY0", "AKIASIDECERTNOTAKEY0"),
    ("ghp_sidecert0not0a0token0123456789ab", "ghp_sidecert0not0a0token0123456789ab"),
    ("xoxb-1234567890-sidecertnotatoken", "xoxb-1234567890-sidecertnotatoken"),
    ("eyJzaWRlY2VydA.eyJub3RoaW5n.c2lnbmVk", "eyJzaWRlY2VydA.eyJub3RoaW5n.c2lnbmVk"),
    ("Cookie: sid=crumbs4all", "crumbs4all"),
];
const INPUT: &str = "input.receive";

const fn tour(name: &'static str, build: fn(&Setting<'_>) -> Script) -> ScriptDef {
    ScriptDef { name, process: Process::Tour, needs: &[], build }
}

/// Answers one frame that matches `when` with these, and no other.
fn once(mut script: Script, when: &str, frames: &[&str]) -> Script {
    let when = Pattern::of(when).unwrap_or(Pattern::Absent);
    let reply = Reply::Several(frames.iter().map(|it| Template::new(*it)).collect());
    script.reactions.push(Reaction { when, reply, times: Some(1), guest: None });
    script
}

fn result(of: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"result":{of}}}"#)
}

/// An error whose message has the key in it.
fn error() -> String {
    let says = quoted(&format!("the key {KEY} was not taken"));
    format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"id"}},"error":{{"code":-32603,"message":{says}}}}}"#)
}

fn blocks(reason: &str) -> String {
    result(&format!(r#"{{"decision":"block","reason":{}}}"#, quoted(reason)))
}

fn complains(text: String) -> Step {
    Step::Do(Order::Stderr(text.into_bytes().into()))
}

static COMPLAINS: ScriptDef = tour("long-complaint", |setting| {
    let script = Script::new("long-complaint").step(plugin::start(setting, &[Plugin::new(setting, ONE)], ""));
    let filler = "it goes on and on\n".repeat(COMPLAINT_BYTES / 18);
    let complaint = format!("{HEAD}\n{filler}the key is {KEY}\n{TAIL}\n");
    // All of it was written when there is a sign of life; reading it takes the host some time more.
    let script = meets_initialize(script, ONE).step(complains(complaint)).step(Step::Alive).quiet();
    let unfit = answers(r#"{"protocolVersion":"0","name":"x","version":"1.0.0","stateSchemaVersion":1}"#);
    stop(script.raw("unfit", "its version is another", unfit).step(outcome(START)))
});

static BLOCKS: ScriptDef = tour("credentials-in-rulings", |setting| {
    let script = begin("credentials-in-rulings", setting, &[Plugin::new(setting, ONE).intercepts(&[INPUT])]);
    let shapes = SHAPES.map(|(text, _)| text).join("\n");
    let script = once(script, &intercept(INPUT), &[&blocks(&format!("the key {KEY} is in it"))]);
    let script = once(once(script, &intercept(INPUT), &[&blocks(&shapes)]), &intercept(INPUT), &[&error()]);
    stop(
        ["shapes", "error"]
            .iter()
            .fold(turn(script, TURN, "Hello"), |script, label| turn(script, label, "Hello")),
    )
});

static MODEL: ScriptDef = tour("credentials-of-models", |setting| {
    let method = contract::STREAM_OPEN;
    let opens = format!(
        r#"{{"id":{{"$capture":"id"}},"method":"{method}","params":{{"streamId":{{"$capture":"stream"}}}}}}"#
    );
    let (stream, says) = (r#"{"$capture":"stream"}"#, quoted(&format!("the key {KEY} was not taken")));
    let (accepted, end) = (result(r#"{"accepted":true}"#), contract::STREAM_END);
    let streams = |frames: Vec<String>| [vec![accepted.clone()], frames].concat();
    let ended = format!(
        r#"{{"jsonrpc":"2.0","method":"{end}","params":{{"streamId":{stream},"lastSeq":0,"error":{says}}}}}"#
    );
    let chunk = format!(r#"{{"type":"error","error":{{"code":"provider_failed","message":{says}}}}}"#);
    let all = [
        ("content", streams(sidecar::stream(stream, &[sidecar::text_chunk(&content())]))),
        ("chunk-error", streams(sidecar::stream(stream, &[chunk]))),
        ("end-error", streams(vec![ended])),
        ("refusal", vec![error()]),
    ];
    let script = begin("credentials-of-models", setting, &[Plugin::new(setting, ONE)]);
    let script = all.iter().fold(script, |script, (_, frames)| {
        once(script, &opens, &frames.iter().map(String::as_str).collect::<Vec<_>>())
    });
    stop(all.iter().fold(script, |script, (label, _)| turn(script, label, "Hello")))
});

static SURFACES: ScriptDef = tour("credentials-on-surfaces", |setting| {
    let plugins = [Plugin::new(setting, ONE)];
    let script = begin("credentials-on-surfaces", setting, &plugins);
    let method = contract::INITIALIZE;
    let script = script.step(awaits(&format!(
        r#"{{"method":"{method}","params":{{"session":{{"sessionId":{{"$capture":"session"}},"generation":{{"$capture":"generation"}}}}}}}}"#
    )));
    let text = quoted(&format!("with {KEY} in it"));
    let surfaces = [
        ("status", format!(r#"{{"label":{text},"detail":{text}}}"#)),
        (
            "card",
            format!(
                r#"{{"title":{text},"markdown":{text},"text":{text},"fields":[{{"key":{text},"value":{text}}}],"actions":[{{"actionId":"demo","label":{text}}}]}}"#
            ),
        ),
        (
            "form",
            format!(
                r#"{{"title":{text},"message":{text},"fields":[{{"key":"field","label":{text},"kind":"select","options":[{text}],"default":{text}}}]}}"#
            ),
        ),
        ("notification", format!(r#"{{"title":{text},"body":{text}}}"#)),
    ];
    let script = surfaces.iter().fold(script, |script, (kind, payload)| {
        let carried = r#""sessionId":{"$capture":"session"},"generation":{"$capture":"generation"}"#;
        let params = format!(r#"{{"surfaceId":"{kind}","kind":"{kind}",{carried},"payload":{payload}}}"#);
        script.request(kind, contract::UI_PUBLISH, &params).answer(kind)
    });
    stop(script.fence())
});

static PROMPT: ScriptDef = tour("credentials-in-prompts", |setting| {
    let script = begin("credentials-in-prompts", setting, &[Plugin::new(setting, ONE)]);
    let text = quoted(&format!("with {KEY} in it"));
    let payload = format!(
        r#"{{"title":{text},"message":{text},"fields":[{{"key":"answer","label":{text},"kind":"select","options":[{text},"b"]}}]}}"#
    );
    stop(ui::prompted(ui::with(script, ONE), "select", "select", &payload, r#""values":{"answer":"b"}"#))
});

static ACTION_RESULT: ScriptDef = tour("credentials-of-actions", |setting| {
    let script = begin("credentials-of-actions", setting, &[Plugin::new(setting, ONE)]);
    let says = result(&format!(r#"{{"accepted":true,"message":{}}}"#, quoted(&format!("{SAYS} {KEY}"))));
    let invoke = format!(r#"{{"do":"action","plugin":"{ONE}","action":"{}"}}"#, sidecar::ACTION);
    let script = once(script, &request(contract::UI_ACTION), &[&says]);
    stop(script.step(ask("action", &invoke)).step(outcome("action")))
});

/// What a guest says to an action besides the key.
const SAYS: &str = "sidecert-did-it-with";

static LOGS: ScriptDef = tour("credentials-in-logs", |setting| {
    let script = begin("credentials-in-logs", setting, &[Plugin::new(setting, ONE).intercepts(&[INPUT])]);
    let script = once(script, &intercept(INPUT), &[&blocks(&format!("the key {KEY} is in it"))]);
    let status = format!(r#"{{"label":{}}}"#, quoted(&format!("with {KEY} in it")));
    let status = ui::params("status", "status", &status, (ui::SESSION, ui::GENERATION));
    let script = ui::with(script, ONE).request("status", contract::UI_PUBLISH, &status).answer("status");
    let script =
        turn(script, TURN, "Hello").step(complains(format!("the key is {KEY}\n"))).step(Step::Alive).quiet();
    // A host that is asked for something more has taken in the end of its guest when that has failed.
    stop(turn(script.step(Step::Do(Order::Exit(1))).step(Step::Gone), "behind", "Hello again"))
});

/// What the model says that must be shown as it is.
fn content() -> String {
    format!("the key {KEY} is no secret")
}

// ---- sights ----

/// What the driver told between this ask and the next, outcomes included: the events, and their texts.
fn told_after<'x>(x: &'x Exchange<'_>, label: &str) -> Vec<(u64, Cow<'x, str>)> {
    let mut inside = false;
    let mut texts = Vec::new();
    for entry in x.entries() {
        match &entry.event.kind {
            Kind::Told { what: Told::Ask, label: Some(it), .. } => inside = it == label,
            Kind::Told { what: Told::Outcome, label: Some(it), json } if it == label => {
                texts.push((entry.at, Cow::Borrowed(&**json)));
            }
            Kind::Told { what: Told::Shown | Told::Found, json, .. } if inside => {
                texts.push((entry.at, Cow::Borrowed(&**json)));
            }
            Kind::Stderr { text, .. } if inside => texts.push((entry.at, Cow::Borrowed(&**text))),
            _ => {}
        }
    }
    texts
}

/// Whether nothing that was told because of this ask has any of `secrets` in it; `came`, if given, is what must have
/// come of the ask.
fn masked(x: &Exchange<'_>, label: &str, secrets: &[&str], came: Option<Seen>) -> Sight {
    let at = match (came_of(x, label), came) {
        (Sight::Saw(seen, at), Some(came)) if seen == came => at,
        (Sight::Saw(_, at), None) => at,
        (Sight::Saw(seen, _), Some(_)) => return Sight::Undecided(Why::NotProvoked(seen.0.into())),
        (other, _) => return other,
    };
    for (at, text) in told_after(x, label) {
        if let Some(secret) = secrets.iter().find(|secret| text.contains(**secret)) {
            return Sight::SawOther { at, actual: format!("{secret} in what was shown") };
        }
    }
    Sight::Saw(MASKED, at)
}

/// Where the end of a long complaint was shown.
fn shown_of_stderr(x: &Exchange<'_>) -> Option<u64> {
    let told = told_after(x, START);
    told.iter().find(|(_, text)| text.contains(TAIL) || text.contains(HEAD)).map(|(at, _)| *at)
}

fn nothing_shown(x: &Exchange<'_>) -> Sight {
    match came_of(x, START) {
        Sight::Saw(..) => Sight::Undecided(Why::NotProvoked("nothing was shown of standard error".into())),
        other => other,
    }
}

fn its_end(x: &Exchange<'_>) -> Sight {
    let told = told_after(x, START);
    let has = |word: &str| told.iter().find(|(_, text)| text.contains(word)).map(|(at, _)| *at);
    match (has(HEAD), has(TAIL)) {
        (Some(at), _) => {
            Sight::SawOther { at, actual: "its beginning, half a MiB before its end".to_owned() }
        }
        (None, Some(at)) => Sight::Saw(ITS_END, at),
        (None, None) => nothing_shown(x),
    }
}

/// Whether nothing that was shown in this way has the key in it.
fn shown_masked(x: &Exchange<'_>, way: &str) -> Sight {
    let shown = x
        .told(Told::Shown)
        .filter(|(_, root)| root.pointer("/as").and_then(|it| it.as_str()).is_some_and(|it| it == way));
    let mut last = None;
    for (entry, root) in shown {
        if root.raw().contains(KEY) {
            let kind = root.pointer("/kind").and_then(|it| it.as_str()).unwrap_or_default();
            return Sight::SawOther { at: entry.at, actual: format!("{KEY} on a {way} ({kind:?})") };
        }
        last = Some(entry.at);
    }
    match last {
        Some(at) => Sight::Saw(MASKED, at),
        None if x.cut.is_some() => never_came(x, START),
        None => Sight::Undecided(Why::NotProvoked(format!("no {way} was shown").into())),
    }
}

fn action_result(x: &Exchange<'_>) -> Sight {
    match masked(x, "action", &[KEY], None) {
        Sight::Saw(..) if !told_after(x, "action").iter().any(|(_, text)| text.contains(SAYS)) => {
            Sight::Undecided(Why::NotProvoked("what the guest said was not shown".into()))
        }
        sight => sight,
    }
}

fn untouched(x: &Exchange<'_>) -> Sight {
    let Some((at, outcome)) = x.outcome("content") else { return never_came(x, "content") };
    let pieces = x.told(Told::Shown).filter(|(entry, root)| {
        let kind = root.pointer("/as").and_then(|it| it.as_str());
        entry.at < at && kind.as_deref() == Some("text")
    });
    let pieces: String = pieces.filter_map(|(_, root)| root.pointer("/text")?.as_str()).collect();
    let text = outcome.get("text").and_then(|text| text.as_str()).unwrap_or_default();
    if text.contains(&content()) || pieces.contains(&content()) {
        return Sight::Saw(UNTOUCHED, at);
    }
    match came_of(x, "content") {
        Sight::Saw(super::DONE, at) => Sight::SawOther { at, actual: "another text".to_owned() },
        Sight::Saw(seen, _) => Sight::Undecided(Why::NotProvoked(seen.0.into())),
        other => other,
    }
}

fn logs(x: &Exchange<'_>) -> Sight {
    let texts = x.entries().iter().filter_map(|entry| match &entry.event.kind {
        Kind::Told { what: Told::Found, json, .. } if json.contains(r#""log""#) => Some((entry.at, &**json)),
        Kind::Stderr { text, .. } => Some((entry.at, &**text)),
        _ => None,
    });
    let mut last = None;
    for (at, text) in texts {
        if text.contains(KEY) {
            return Sight::SawOther { at, actual: format!("{KEY} in the log") };
        }
        last = Some(at);
    }
    match last {
        Some(at) => Sight::Saw(MASKED, at),
        None if x.cut.is_some() => never_came(x, TURN),
        None => Sight::Undecided(Why::NotProvoked("the driver finds no log".into())),
    }
}
