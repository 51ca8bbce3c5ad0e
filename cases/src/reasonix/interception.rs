//! "Interception": rulings on what the host is about to do.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::Exchange;
use sidecert_proto::reasonix::host::INTERCEPT_MILLIS;
use sidecert_proto::reasonix::{contract, sample, session};
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Cite, Requirement, Seen, must};
use sidecert_proto::script::{Need, Pattern, Process, Script, ScriptDef, Step, Within};
use sidecert_proto::verdict::{Sight, Why};

use super::content;
use super::sights::{INTERNAL, SERVED, became, result_of, sdk, specified};
use super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED, provoked_intercept};

const INTERCEPTION: Cite = Cite::Seed("拦截", "Interception");

const RULED_ONCE: Seen = Seen("each point is ruled on");
const CONTINUES: Seen = Seen("it continues where it does not step in");
const IN_TIME: Seen = Seen("answered within the time that the request names");
const ANSWERED_FIRST: Seen = Seen("the second is ruled on while the first still waits");
const EQUAL: Seen = Seen("the replacement is the payload, whole and unchanged");
const HIDDEN: Seen = Seen("the message says nothing of its insides");
const REPLACED: Seen = Seen("it replaces the payload");

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/interception/every-point-ruled", Guest)
        .says(
            "An intercept at any point of the protocol is answered with a ruling.",
            &[INTERCEPTION, Cite::Schema("/$defs/InterceptResult")],
        )
        .accepts(&[specified(RULED_ONCE)])
        .checked(After(&EVERY_POINT, every_point_ruled)),
    must("reasonix/interception/unwatched-points-continue", Guest)
        .says("At a point that it did not subscribe to, the guest continues.", &[])
        .accepts(&[sdk(CONTINUES)])
        .checked(After(&EVERY_POINT, unwatched_points_continue)),
    must("reasonix/interception/permissions-in-place", Guest)
        .says("The guest allows and denies only where the host asks for a permission.", &[INTERCEPTION])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::RULINGS_IN_PLACE, &EVERY_POINT)),
    must("reasonix/interception/replacements-fit", Guest)
        .says("What stands in the place of a payload has the form that the point has.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::REPLACEMENTS_FIT, &REPLACEMENT)),
    must("reasonix/interception/replaces-when-it-should", Guest)
        .says("A guest that means to replace a payload says so, and with what.", &[INTERCEPTION])
        .accepts(&[specified(REPLACED)])
        .checked(After(&REPLACEMENT, replaces)),
    must("reasonix/interception/payload-unchanged", Guest)
        .says(
            "A payload that comes back is the payload that was sent, to the last character.",
            &[Cite::Seed("传输", "Transport")],
        )
        .accepts(&[specified(EQUAL)])
        .checked(After(&ECHOED_PAYLOAD, |x| content::echoed(x, "payload"))),
    must("reasonix/interception/intercepts-overlap", Guest)
        .says("An intercept that waits holds up no other.", &[])
        .accepts(&[sdk(ANSWERED_FIRST)])
        .checked(After(&OVERLAPPING, overlap)),
    must("reasonix/interception/ruled-in-time", Guest)
        .says("An intercept that takes too long is given up within the time that it names.", &[])
        .accepts(&[sdk(IN_TIME)])
        .checked(After(&SLOW_RULING, ruled_in_time)),
    must("reasonix/interception/faults-contained", Guest)
        .says("A fault while it rules is an internal error of that intercept, and no more.", &[])
        .accepts(&[sdk(INTERNAL)])
        .checked(After(&FAULT, |x| became(x, "panic"))),
    must("reasonix/interception/faults-hidden", Guest)
        .says("What it says of such a fault has no stack, no path and no exception in it.", &[])
        .accepts(&[sdk(HIDDEN)])
        .checked(After(&FAULT, faults_hidden)),
    must("reasonix/interception/serves-after-fault", Guest)
        .says("After a fault the next intercept is ruled on.", &[])
        .accepts(&[sdk(SERVED)])
        .checked(After(&FAULT, |x| became(x, "after-panic"))),
];

/// Sends an intercept at every point of the contract.
static EVERY_POINT: ScriptDef = ScriptDef {
    name: "every-point",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let ask = |script: Script, (seq, event): (usize, &String)| {
            let params = format!(
                r#"{{"event":"{event}","payload":{},"seq":{seq},"timeoutMillis":{INTERCEPT_MILLIS}}}"#,
                sample::payload(event)
            );
            script.request(event, contract::INTERCEPT, &params)
        };
        (1..).zip(&setting.contract.events).fold(Script::new("every-point"), ask).fence().settle()
    },
};

fn every_point_ruled(exchange: &Exchange<'_>) -> Sight {
    let mut last = exchange.last();
    for event in &exchange.contract.events {
        match result_of(exchange, event) {
            Ok((result, at)) if result.get("decision").is_some() => last = at,
            Ok((_, at)) => {
                return Sight::SawOther { at, actual: format!("{event}: a result without a decision") };
            }
            Err(Sight::SawOther { at, actual }) => {
                return Sight::SawOther { at, actual: format!("{event}: {actual}") };
            }
            Err(other) => return other,
        }
    }
    Sight::Saw(RULED_ONCE, last)
}

fn unwatched_points_continue(exchange: &Exchange<'_>) -> Sight {
    let watched = |event: &str| exchange.declared.contains(&format!("interceptors/{event}"));
    let mut found = None;
    for event in exchange.contract.events.iter().filter(|event| !watched(event)) {
        let (result, at) = match result_of(exchange, event) {
            Ok(found) => found,
            Err(sight) => return sight,
        };
        let decision = result.get("decision").and_then(|it| it.as_str()).unwrap_or_default();
        if decision != "continue" {
            return Sight::SawOther { at, actual: format!("{event}: {decision}") };
        }
        found = Some(at);
    }
    match found {
        Some(at) => Sight::Saw(CONTINUES, at),
        None => Sight::Undecided(Why::NotProvoked("the guest subscribes to every point".into())),
    }
}

/// Makes the guest replace a payload.
static REPLACEMENT: ScriptDef = ScriptDef {
    name: "replacement",
    process: Process::Tour,
    needs: &[Need::Provocation("replace")],
    build: |setting| {
        let params = provoked_intercept(setting, "replace", 5_000);
        Script::new("replacement").request("replace", contract::INTERCEPT, &params).answer("replace").fence()
    },
};

fn replaces(exchange: &Exchange<'_>) -> Sight {
    match result_of(exchange, "replace") {
        Ok((result, at)) => {
            let decision = result.get("decision").and_then(|it| it.as_str()).unwrap_or_default();
            let with = result.get("replacement").or_else(|| result.get("externalized"));
            match (&*decision, with) {
                ("replace", Some(_)) => Sight::Saw(REPLACED, at),
                ("replace", None) => Sight::SawOther { at, actual: "replace, and no replacement".to_owned() },
                _ => Sight::SawOther { at, actual: format!("the decision {decision}") },
            }
        }
        Err(sight) => sight,
    }
}

/// Makes the guest answer with the payload that it was given, which has characters that few expect.
static ECHOED_PAYLOAD: ScriptDef = ScriptDef {
    name: "echoed-payload",
    process: Process::Tour,
    needs: &[Need::Provocation("echo-payload")],
    build: |setting| {
        let more = " \u{2028}\u{2029}\u{85}\u{fffd} é€😀 \" \\ / \u{7f} \t end";
        let (event, payload) = super::provoked_payload(setting, "echo-payload", more);
        let params =
            format!(r#"{{"event":{event},"payload":{payload},"seq":1,"timeoutMillis":{INTERCEPT_MILLIS}}}"#);
        Script::new("echoed-payload")
            .request("payload", contract::INTERCEPT, &params)
            .answer("payload")
            .fence()
    },
};

/// Sends an intercept behind one that waits for its content.
static OVERLAPPING: ScriptDef = ScriptDef {
    name: "overlapping",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let plain = sample::params(setting, contract::INTERCEPT).to_string();
        let mut script = Script::new("overlapping")
            .request("first", contract::INTERCEPT, &content::held_intercept(setting))
            .request("second", contract::INTERCEPT, &plain)
            .step(content::held_is_asked())
            .step(Step::Await { frame: Pattern::answer_to("second"), within: Within::Silence })
            .quiet()
            .settle();
        script.reactions.push(content::held_pages(setting));
        script
    },
};

fn overlap(exchange: &Exchange<'_>) -> Sight {
    let (Some(first), Some(second)) = (exchange.answer_to("first"), exchange.answer_to("second")) else {
        return exchange.nothing_came("second", "not both were ruled on");
    };
    if !super::sights::asked_for(exchange, "content_held") {
        let why = "the guest does not read the contents that it is offered";
        return Sight::Undecided(Why::NotProvoked(why.into()));
    }
    if second.at < first.at {
        Sight::Saw(ANSWERED_FIRST, second.at)
    } else {
        Sight::SawOther { at: second.at, actual: "the second was ruled on only after the first".to_owned() }
    }
}

/// How long the guest has for an intercept that takes it longer, in milliseconds.
const SLOW_MILLIS: u64 = 300;
/// How much later its answer may come on a machine that has other things to do, in milliseconds.
const LATE_MILLIS: u64 = 1_200;

/// Makes the guest take longer than it may.
static SLOW_RULING: ScriptDef = ScriptDef {
    name: "slow-ruling",
    process: Process::Own,
    needs: &[Need::Provocation("slow")],
    build: |setting| {
        Script::new("slow-ruling")
            .request("slow", contract::INTERCEPT, &provoked_intercept(setting, "slow", SLOW_MILLIS))
            .step(Step::Await {
                frame: Pattern::answer_to("slow"),
                within: Within::Millis(SLOW_MILLIS + LATE_MILLIS),
            })
            .fence()
    },
};

fn ruled_in_time(exchange: &Exchange<'_>) -> Sight {
    let bound = SLOW_MILLIS + LATE_MILLIS;
    if let Some(at) = exchange.not_within("slow", bound) {
        let actual = format!("no answer in {bound} ms; the intercept allows {SLOW_MILLIS} ms");
        return Sight::SawOther { at, actual };
    }
    match exchange.answer_to("slow") {
        Some(answer) => Sight::Saw(IN_TIME, answer.at),
        None => exchange.nothing_came("slow", "no answer"),
    }
}

/// Makes the guest fail while it rules, and goes on.
static FAULT: ScriptDef = ScriptDef {
    name: "fault",
    process: Process::Tour,
    needs: &[Need::Provocation("panic")],
    build: |setting| {
        let plain = sample::params(setting, contract::INTERCEPT).to_string();
        Script::new("fault")
            .request("panic", contract::INTERCEPT, &provoked_intercept(setting, "panic", 5_000))
            .step(Step::Fence { or_end: true })
            .request("after-panic", contract::INTERCEPT, &plain)
            .fence()
            .settle()
    },
};

fn faults_hidden(exchange: &Exchange<'_>) -> Sight {
    const INSIDES: [&str; 8] =
        ["Traceback", "panicked at", "Error:", "Exception", "at line", ".py", ".js", ".go:"];
    let Some(answer) = exchange.answer_to("panic") else {
        return exchange.nothing_came("panic", "no answer");
    };
    let message = match answer.outcome {
        sidecert_proto::rpc::Outcome::Error { body, .. } => body.raw(),
        sidecert_proto::rpc::Outcome::Result(_) => "",
    };
    match INSIDES.into_iter().find(|inside| message.contains(inside)) {
        None => Sight::Saw(HIDDEN, answer.at),
        Some(inside) => {
            Sight::SawOther { at: answer.at, actual: format!("the message has {inside:?} in it") }
        }
    }
}
