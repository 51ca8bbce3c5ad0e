//! "Transport", as a host must keep it: which answers of a guest count, and what may not wait for what.
//!
//! The rows stand among those of the envelope. An odd answer to an intercept is followed by the true one, on the next
//! line: what comes of the turn says which of the two counted.

use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::requirement::{Accepts, Seen};
use sidecert_proto::script::{Pattern, Process, Reply, Script, ScriptDef, Setting, Step, Within};
use sidecert_proto::transcript::{Kind, Told};
use sidecert_proto::verdict::{Sight, Why};

use super::rulings::{BLOCK, CONTINUE, answer, came, does, input, not_provoked};
use super::{
    BLOCKED, DONE, FAILED, ONE, STOP, ask, awaits, observed, outcome, say, session as begin, specified, stop,
    ui,
};

/// The true answer counted, or the odd one had failed the call.
pub(super) const NO_ANSWER: &[Accepts] = &[observed(DONE), specified(FAILED)];
/// A later request was answered meanwhile.
pub(super) const MEANWHILE: Seen = Seen("a later request was answered while the prompt waited");
/// The prompt had an answer.
pub(super) const PROMPT_ANSWERED: Seen = Seen("the prompt was answered");
/// The prompt waited for the user until the end of the session.
pub(super) const PROMPT_WAITED: Seen = Seen("the user was asked, and the session ended before an answer");

/// Answers that are none: the turn, what makes it none, and the frame.
const ODD: [(&str, &str, &str); 4] = [
    (
        "both-outcomes",
        "it has a result and an error",
        r#"{"jsonrpc":"2.0","id":{"$capture":"held"},"result":{"decision":"block","reason":"not on a sunday"},"error":{"code":-32603,"message":"x"}}"#,
    ),
    ("no-outcome", "it has neither a result nor an error", r#"{"jsonrpc":"2.0","id":{"$capture":"held"}}"#),
    (
        "null-error",
        "an error that is null stands beside its result",
        r#"{"jsonrpc":"2.0","id":{"$capture":"held"},"result":{"decision":"block","reason":"not on a sunday"},"error":null}"#,
    ),
    (
        "text-id",
        "its id is a string",
        r#"{"jsonrpc":"2.0","id":{"$capture":"held","as":"text"},"result":{"decision":"block","reason":"not on a sunday"}}"#,
    ),
];

/// How long a guest has that does not answer at first, in milliseconds: long enough for what comes behind it.
const LATE_MILLIS: &str = "2000";

pub(super) static ODD_ANSWERS: ScriptDef = ScriptDef {
    name: "odd-answers",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
        let mut it = begin("odd-answers", setting, &[one]);
        for (label, departs, frame) in ODD {
            let text = format!("sidecert-{label}-answer");
            it = held(does(it, ONE, None, &input(&text), Reply::Never), label, &text, "held");
            it = it.raw(&format!("{label}-odd"), departs, frame);
            it = it.step(answer(&format!("{label}-ruling"), CONTINUE)).step(outcome(label));
        }
        stop(it)
    },
};

/// Lets the user say this, and waits for the intercept, whose id is captured so.
fn held(script: Script, label: &str, text: &str, capture: &str) -> Script {
    let when = input(text).replace(r#""$capture":"id""#, &format!(r#""$capture":"{capture}""#));
    say(script, label, text).step(awaits(&when))
}

/// A ruling that comes when its time is over and the next intercept waits.
pub(super) static LATE_ANSWER: ScriptDef = ScriptDef {
    name: "late-answer-to-an-intercept",
    process: Process::Tour,
    needs: &[],
    build: |setting: &Setting<'_>| {
        let one =
            Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]).with("timeoutMillis", LATE_MILLIS);
        let it = begin("late-answer-to-an-intercept", setting, &[one]);
        let it = does(it, ONE, None, &input("sidecert-"), Reply::Never);
        let it = held(it, "late", "sidecert-late", "late").step(outcome("late"));
        let it = held(it, "next", "sidecert-next", "held");
        let late = format!(r#"{{"jsonrpc":"2.0","id":{{"$capture":"late"}},"result":{BLOCK}}}"#);
        let it = it.raw("late-ruling", "its time is over", late);
        stop(it.step(answer("next-ruling", CONTINUE)).step(outcome("next")))
    },
};

/// A prompt that nobody answers, and a request behind it.
pub(super) static WAITING: ScriptDef = ScriptDef {
    name: "prompt-that-waits",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let it = ui::with(begin("prompt-that-waits", setting, &[Plugin::new(setting, ONE)]), ONE);
        let asked = ui::params("prompt", "confirm", ui::QUESTION, (ui::SESSION, ui::GENERATION));
        let it = it.request("prompt", contract::UI_REQUEST, &asked);
        let it =
            it.request("behind", contract::CONTENT_READ, r#"{"contentRef":"sidecert-behind","offset":0}"#);
        // Who answers one after the other cannot answer this before somebody answers the prompt.
        let answered = Pattern::answer_to("behind");
        stop(it.step(Step::Await { frame: answered, within: Within::Silence }))
    },
};

/// A prompt that nobody answers, of a host whose driver could.
pub(super) static LEFT_OPEN: ScriptDef = ScriptDef {
    name: "prompt-left-open",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let it = ui::with(begin("prompt-left-open", setting, &[Plugin::new(setting, ONE)]), ONE);
        let asked = ui::params("left-open", "confirm", ui::QUESTION, (ui::SESSION, ui::GENERATION));
        let it = it.request("prompt", contract::UI_REQUEST, &asked).fence();
        // Whoever can answer prompts is told of them; this one there never was.
        let nobody = r#"{"do":"answer","prompt":"sidecert-none","cancelled":true}"#;
        stop(it.step(ask("nobody", nobody)).step(outcome("nobody")))
    },
};

// ---- sights ----

/// Whether a late ruling left the next turn alone.
pub(super) fn late_ignored(x: &Exchange<'_>) -> Sight {
    match came(x, "late") {
        Sight::Saw(FAILED, _) if x.sent("late-ruling").is_some() => match came(x, "next") {
            Sight::Saw(BLOCKED, at) => {
                Sight::SawOther { at, actual: "the next turn was blocked by it".to_owned() }
            }
            other => other,
        },
        Sight::Saw(..) => not_provoked("failed a turn whose ruling did not come"),
        other => other,
    }
}

/// When the session was asked to end.
pub(super) fn asked_to_stop(x: &Exchange<'_>) -> Option<u64> {
    let is_it =
        |kind: &Kind<'_>| matches!(kind, Kind::Told { what: Told::Ask, label: Some(it), .. } if it == STOP);
    x.find(is_it).map(|entry| entry.at)
}

/// Whether a request was answered while a prompt waited.
pub(super) fn answered_meanwhile(x: &Exchange<'_>) -> Sight {
    let (Some(end), Some(_)) = (asked_to_stop(x), x.sent("behind")) else {
        return super::never_came(x, "behind");
    };
    let behind = x.answer_to("behind").filter(|answer| answer.at < end);
    match (x.answer_to("prompt").filter(|answer| answer.at < end), behind) {
        (None, Some(answer)) => Sight::Saw(MEANWHILE, answer.at),
        (Some(_), _) => Sight::Undecided(Why::NotProvoked("this host lets no prompt wait".into())),
        (None, None) => {
            Sight::SawOther { at: end, actual: "it had no answer while the prompt waited".to_owned() }
        }
    }
}

/// Whether a prompt was answered, or was at least shown to whoever could have answered it.
pub(super) fn prompt_answered(x: &Exchange<'_>) -> Sight {
    if let Some(answer) = x.answer_to("prompt") {
        return Sight::Saw(PROMPT_ANSWERED, answer.at);
    }
    let shown = x
        .told(Told::Shown)
        .find(|(_, node)| node.get("as").and_then(|it| it.as_str()).as_deref() == Some("prompt"));
    match shown {
        Some((entry, _)) => Sight::Saw(PROMPT_WAITED, entry.at),
        None => x.nothing_came("prompt", "no answer until the session had ended, and nobody was asked"),
    }
}
