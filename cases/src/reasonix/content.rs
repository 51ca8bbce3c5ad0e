//! "Content ref": what travels outside of frames, page by page.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::exchange::{Exchange, short};
use sidecert_proto::json::{Tape, quoted};
use sidecert_proto::reasonix::content::{self, Object};
use sidecert_proto::reasonix::contract::{self, Limits, point};
use sidecert_proto::reasonix::host::INTERCEPT_MILLIS;
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always, Unobservable};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::script::{
    Need, Outgoing, Pattern, Process, Reaction, Reply, Script, ScriptDef, Setting, Step, Template, Within,
};
use sidecert_proto::transcript::Kind;
use sidecert_proto::verdict::{Sight, Why};

use super::sights::{
    self, BAD_PARAMS, EXPIRED, INTERNAL, INVALID_BY_ID, REFUSED, TOO_LARGE, VIOLATION, asked_for, result_of,
    sdk, specified,
};
use super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};

const CONTENT: Cite = Cite::Seed("Content ref", "Content references");

const EQUAL: Seen = Seen("the replacement is the payload, whole and unchanged");

/// Any refusal will do: the specification says that the guest checks, not what it says then.
const ANY_REFUSAL: &[Accepts] = &[
    specified(VIOLATION),
    specified(INVALID_BY_ID),
    specified(BAD_PARAMS),
    specified(TOO_LARGE),
    specified(EXPIRED),
    specified(INTERNAL),
    specified(REFUSED),
];
const TOO_LARGE_REFUSED: &[Accepts] = &[
    specified(TOO_LARGE),
    specified(VIOLATION),
    specified(INVALID_BY_ID),
    specified(BAD_PARAMS),
    specified(INTERNAL),
    specified(REFUSED),
];
const VIOLATION_OBSERVED: &[Accepts] = &[sdk(VIOLATION)];
const EXPIRED_OBSERVED: &[Accepts] = &[sdk(EXPIRED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/content/read-as-given", Guest)
        .says(
            "A guest that reads a content names a reference that the host gave on this connection, and an offset within it.",
            &[CONTENT, Cite::Schema("/$defs/ContentReadParams")],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::CONTENT_READ_AS_GIVEN, &EXTERNALIZED_INTERCEPT)),
    must("reasonix/content/read-when-open", Guest)
        .says("No content is read before the host says initialized.", &[Cite::Seed("生命周期", "Lifecycle")])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::CONTENT_READ_WHEN_OPEN, &EXTERNALIZED_INTERCEPT)),
    must("reasonix/content/resolved-before-ruling", Guest)
        .says("A ruling on a payload that is kept outside of the frame is made on the whole of it.", &[CONTENT])
        .accepts(&[specified(EQUAL)])
        .checked(After(&ECHOED_CONTENT, |x| echoed(x, "content"))),
    must("reasonix/content/tampered-content-refused", Guest)
        .says(
            "A content whose bytes or whose length are not what its descriptor says is refused, and not ruled on.",
            &[CONTENT],
        )
        .accepts(ANY_REFUSAL)
        .checked(After(&TAMPERED_CONTENT, |x| all_became(x, &["wrong-bytes", "wrong-total"], ANY_REFUSAL))),
    must("reasonix/content/oversized-content-refused", Guest)
        .says("A content that is longer than the limit is refused.", &[CONTENT, Cite::Schema("/limits/contentRefObjectBytes")])
        .accepts(TOO_LARGE_REFUSED)
        .checked(After(&TAMPERED_CONTENT, |x| {
            if asked_for(x, &reference("honest")) { sights::became(x, "too-large") } else { unread() }
        })),
    must("reasonix/content/odd-descriptors-refused", Guest)
        .says(
            "A descriptor beside a payload, two descriptors, and one of another place in the params are refused.",
            &[],
        )
        .accepts(VIOLATION_OBSERVED)
        .checked(After(&TAMPERED_CONTENT, |x| {
            if asked_for(x, &reference("honest")) {
                sights::all_became(x, ["beside-value", "wrong-pointer", "two-descriptors"], VIOLATION_OBSERVED)
            } else {
                unread()
            }
        })),
    must("reasonix/content/odd-pages-refused", Guest)
        .says(
            "A page of another offset, in another encoding, beyond the limit of a page, or that leads nowhere is refused.",
            &[],
        )
        .accepts(VIOLATION_OBSERVED)
        .checked(After(&TAMPERED_CONTENT, |x| {
            all_became(x, &["wrong-offset", "wrong-encoding", "large-page", "stuck"], VIOLATION_OBSERVED)
        })),
    must("reasonix/content/expired-passed-on", Guest)
        .says("Where the host says that a content is gone, the intercept fails for the same reason.", &[])
        .accepts(EXPIRED_OBSERVED)
        .checked(After(&TAMPERED_CONTENT, |x| became(x, "expired"))),
    must("reasonix/content/digests-plain", Guest)
        .says("A digest is written as 64 lower-case hexadecimal digits.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Unobservable(
            "a guest writes a digest only where it refers to a content in a ruling, and nothing can make it do that",
        )),
];

/// Sends an intercept whose payload is kept outside of the frame.
pub(super) static EXTERNALIZED_INTERCEPT: ScriptDef = ScriptDef {
    name: "externalized-intercept",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let descriptor = content::sample(setting.contract, setting.seed).descriptor("/payload");
        Script::new("externalized-intercept")
            .request("externalized", contract::INTERCEPT, &params(&descriptor, INTERCEPT_MILLIS))
            .answer("externalized")
            .fence()
            .settle()
    },
};

/// The reference of the content that a frame of ours offers.
fn reference(label: &str) -> String {
    format!("content_{label}")
}

/// A content of one page.
fn object(label: &str) -> Object {
    Object {
        reference: reference(label),
        bytes: format!(r#"{{"text":"the content of {label}"}}"#).into_bytes(),
    }
}

/// The params of an intercept whose payload is what `descriptors` say.
fn params(descriptors: &str, millis: u64) -> String {
    let event = point::INPUT_RECEIVE;
    format!(
        r#"{{"event":"{event}","payload":null,"externalized":[{descriptors}],"seq":1,"timeoutMillis":{millis}}}"#
    )
}

/// Takes every read of the content of `label` as said, and keeps its id under that name.
fn taken(label: &str) -> Reaction {
    let when = format!(
        r#"{{"id":{{"$capture":"{label}"}},"method":"{}","params":{{"contentRef":{}}}}}"#,
        contract::CONTENT_READ,
        quoted(&reference(label))
    );
    // Whoever asks again, or for more, is told that there is no such content: a request is never left open.
    Reaction {
        when: Pattern::of(&when).unwrap_or(Pattern::Absent),
        reply: Reply::Never,
        times: Some(1),
        guest: None,
    }
}

/// Waits until the guest asks for the content of `label`, or answers its intercept without.
fn asked_or_ruled(label: &str) -> Step {
    let asked = taken(label).when;
    let frame = Pattern::Either(vec![asked, Pattern::answer_to(label)]);
    Step::Await { frame, within: Within::Silence }
}

/// The whole content of `label` as one page.
fn page(setting: &Setting<'_>, label: &str) -> String {
    let bytes = Limits::of(setting.contract).content_ref_chunk_bytes;
    object(label).page(0, bytes).unwrap_or_default()
}

/// A script that offers contents one after the other, each when the one before was asked for: a guest may well serve
/// one request at a time.
struct Pages(Script);

impl Pages {
    /// Offers the content of `label` in a conforming intercept, and waits until the guest asks for it.
    fn offer(self, label: &str, millis: u64) -> Self {
        self.offer_as(label, &object(label).descriptor("/payload"), millis)
    }

    fn offer_as(mut self, label: &str, descriptor: &str, millis: u64) -> Self {
        self.0.reactions.push(taken(label));
        let script = self.0.request(label, contract::INTERCEPT, &params(descriptor, millis));
        Self(script.step(asked_or_ruled(label)))
    }

    /// Answers the read of `label` as it should be.
    fn serve(self, label: &str, result: &str) -> Self {
        self.say(label, answer(&captured(label), "result", result))
    }

    /// Answers the read of `label` with a conforming frame.
    fn say(self, label: &str, frame: String) -> Self {
        Self(self.0.step(Step::Send {
            label: Some(format!("page of {label}")),
            frame: Outgoing::Template(Template::new(frame)),
        }))
    }

    /// Answers the read of `label` as it should not be.
    fn botch(self, label: &str, departs: &str, frame: String) -> Self {
        Self(self.0.raw(&format!("page of {label}"), departs, frame))
    }

    fn fence(self) -> Self {
        Self(self.0.fence())
    }
}

fn answer(id: &str, member: &str, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{text}}}"#)
}

fn captured(label: &str) -> String {
    format!(r#"{{"$capture":"{label}"}}"#)
}

/// Answers reads twice, and with members that JSON-RPC does not have.
pub(super) static STRAY_PAGES: ScriptDef = ScriptDef {
    name: "stray-pages",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let extra = answer(&captured("extra"), "x\":1,\"result", &page(setting, "extra"));
        let again = answer(&captured("twice"), "result", &page(setting, "twice"));
        Pages(Script::new("stray-pages"))
            .offer("extra", INTERCEPT_MILLIS)
            .say("extra", extra)
            .offer("twice", INTERCEPT_MILLIS)
            .serve("twice", &page(setting, "twice"))
            .botch("twice", "it is the second response to its request", again)
            .fence()
            .0
            .settle()
    },
};

/// How long the guest has for an intercept whose content never comes, in milliseconds.
const PATIENCE_MILLIS: u64 = 200;
/// How long we wait for it to give up, in milliseconds: long enough for a machine that is busy.
const GIVES_UP_MILLIS: u64 = 1_500;

/// Answers a read when its intercept was given up.
pub(super) static LATE_PAGE: ScriptDef = ScriptDef {
    name: "late-page",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let pages = Pages(Script::new("late-page")).offer("late", PATIENCE_MILLIS);
        let script = pages
            .0
            .step(Step::Await { frame: Pattern::answer_to("late"), within: Within::Millis(GIVES_UP_MILLIS) });
        let late = answer(&captured("late"), "result", &page(setting, "late"));
        Pages(script).botch("late", "its request was given up", late).0.fence().settle()
    },
};

/// What became of an intercept that was to be given up.
pub(super) fn gave_up(exchange: &Exchange<'_>) -> Sight {
    if exchange.not_within("late", GIVES_UP_MILLIS).is_some() {
        let why = "it waits longer for a content than the intercept allows";
        return Sight::Undecided(Why::NotProvoked(why.into()));
    }
    match exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest })) {
        Some(end) if exchange.sent("page of late").is_some() => {
            Sight::SawOther { at: end.at, actual: "the connection ended at the late response".to_owned() }
        }
        _ => became(exchange, "late"),
    }
}

/// Where ids begin that no guest counts up to.
const FAR: u64 = 710_001;

/// Answers reads under ids that are almost theirs, and with responses that are none, before it answers them well.
pub(super) static MISMATCHED_PAGES: ScriptDef = ScriptDef {
    name: "mismatched-pages",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let id = |label: &str, how: &str| format!(r#"{{"$capture":"{label}","as":"{how}"}}"#);
        // The reference implementation refuses a malformed response under the id of its own request: ours are others.
        let offer = |Pages(mut script): Pages, id: u64, label: &str| {
            let params = params(&object(label).descriptor("/payload"), INTERCEPT_MILLIS);
            let frame = sidecert_proto::script::request(&id.to_string(), contract::INTERCEPT, &params);
            script.reactions.push(taken(label));
            let script = script.step(Step::Send {
                label: Some(label.to_owned()),
                frame: Outgoing::Template(Template::new(frame)),
            });
            Pages(script.step(Step::Await { frame: taken(label).when, within: Within::Silence }))
        };
        let text = answer(&id("text-id", "text"), "result", &page(setting, "text-id"));
        let fraction =
            answer(&id("written-fraction", "fraction"), "result", &page(setting, "written-fraction"));
        let both = answer(
            &captured("both"),
            r#"error":{"code":-32603,"message":"x"},"result"#,
            &page(setting, "both"),
        );
        let mut pages = Pages(Script::new("mismatched-pages"));
        for (id, label, departs, frame) in [
            (FAR, "text-id", "its id is a text", text),
            (FAR + 1, "written-fraction", "its id is written as a fraction", fraction),
            (FAR + 2, "both", "it has a result and an error", both),
        ] {
            // Nothing stands between the two: a guest that serves one request at a time would not answer it.
            pages = offer(pages, id, label).botch(label, departs, frame);
            pages = pages.serve(label, &page(setting, label)).fence();
        }
        pages.0.settle()
    },
};

/// Offers contents that are not what they say, and answers the reads of them badly.
pub(super) static TAMPERED_CONTENT: ScriptDef =
    ScriptDef { name: "tampered-content", process: Process::Tour, needs: &[], build: tampered_content };

fn tampered_content(setting: &Setting<'_>) -> Script {
    let limits = Limits::of(setting.contract);
    let of = |label: &str| object(label).descriptor("/payload");
    let longer = |label: &str, bytes: usize| {
        of(label).replacen(
            &format!(r#""totalBytes":{}"#, object(label).bytes.len()),
            &format!(r#""totalBytes":{bytes}"#),
            1,
        )
    };
    let plain = |label: &str| page(setting, label);
    let result = |label: &str, text: &str| answer(&captured(label), "result", text);
    let beyond = longer("too-large", limits.content_ref_object_bytes + 1);
    let total = object("wrong-total").bytes.len() + 1;
    let large = Object {
        reference: reference("large-page"),
        bytes: format!(r#"{{"text":"{}"}}"#, "x".repeat(limits.content_ref_chunk_bytes)).into_bytes(),
    };
    let large_page = large.page(0, usize::MAX).unwrap_or_default();
    let raw = |pages: Pages, label: &str, departs: &str, params: &str| {
        Pages(pages.0.raw(label, departs, sights::request(label, contract::INTERCEPT, params)))
    };
    let error = |label: &str, data: &str| {
        let text = format!(r#"{{"code":-32000,"message":"the content is gone","data":{data}}}"#);
        answer(&captured(label), "error", &text)
    };
    let data = r#""reason":"content_ref_expired","retryable""#;
    let short = format!(r#""totalBytes":{}"#, total - 1);
    let botched = [
        ("wrong-bytes", "its bytes are not those of the digest", {
            result("wrong-bytes", &tampered(&plain("wrong-bytes")))
        }),
        ("wrong-total", "its content is shorter than it says", {
            let long = format!(r#""totalBytes":{total}"#);
            result("wrong-total", &plain("wrong-total").replacen(&short, &long, 1))
        }),
        ("wrong-offset", "it is the page of another offset", {
            result("wrong-offset", &plain("wrong-offset").replacen(r#""offset":0"#, r#""offset":1"#, 1))
        }),
        ("wrong-encoding", "its encoding is unknown", {
            result("wrong-encoding", &plain("wrong-encoding").replacen(r#""utf8""#, r#""utf-16""#, 1))
        }),
        ("large-page", "it is longer than a page may be", result("large-page", &large_page)),
        ("stuck", "it leads to itself", {
            result("stuck", &plain("stuck").replacen(r#""offset":0"#, r#""offset":0,"nextOffset":0"#, 1))
        }),
        ("expired", "the content was given, and is gone", error("expired", &format!("{{{data}:true}}"))),
        ("action", "the content was given, and is gone", {
            error("action", &format!(r#"{{{data}:true,"action":"ask again"}}"#))
        }),
        ("misdescribed", "its reason is retryable", error("misdescribed", &format!("{{{data}:false}}"))),
    ];
    let mut pages = Pages(Script::new("tampered-content"))
        .offer("honest", INTERCEPT_MILLIS)
        .serve("honest", &plain("honest"));
    for (label, departs, frame) in botched {
        let descriptor = match label {
            "wrong-total" => longer(label, total),
            "large-page" => large.descriptor("/payload"),
            _ => of(label),
        };
        pages = pages.offer_as(label, &descriptor, INTERCEPT_MILLIS).botch(label, departs, frame);
    }
    pages =
        raw(pages, "too-large", "its content is longer than the limit", &params(&beyond, INTERCEPT_MILLIS))
            .fence();
    let beside = params(&of("beside-value"), INTERCEPT_MILLIS).replacen(
        r#""payload":null"#,
        r#""payload":{"text":"x"}"#,
        1,
    );
    pages = raw(pages, "beside-value", "it has a payload and a descriptor of one", &beside).fence();
    let elsewhere = object("wrong-pointer").descriptor("/event");
    pages = raw(
        pages,
        "wrong-pointer",
        "its descriptor is of another member",
        &params(&elsewhere, INTERCEPT_MILLIS),
    )
    .fence();
    let two = format!("{},{}", of("two-descriptors"), of("two-descriptors"));
    raw(pages, "two-descriptors", "it has two descriptors", &params(&two, INTERCEPT_MILLIS))
        .fence()
        .0
        .settle()
}

/// A page with one letter of its data changed: the last one before the end of the text that it holds.
fn tampered(page: &str) -> String {
    let tape = Tape::scan(page.as_bytes());
    let data =
        tape.as_ref().ok().and_then(|tape| tape.root().get("dataBase64")?.as_str()).unwrap_or_default();
    // Four letters of Base64 are three bytes; these are in the middle of a text, and stay plain letters.
    let at = data.len() / 2 / 4 * 4;
    page.replacen(&*data, &format!("{}eHh4{}", &data[..at], &data[at + 4..]), 1)
}

/// What became of the intercept of a content that was read.
pub(super) fn became(exchange: &Exchange<'_>, label: &str) -> Sight {
    all_became(exchange, &[label], &[])
}

/// What became of intercepts whose contents were read; without `accepts`, whatever the only one is.
pub(super) fn all_became(exchange: &Exchange<'_>, labels: &[&str], accepts: &[Accepts]) -> Sight {
    let read = labels.iter().all(|label| asked_for(exchange, &reference(label)));
    let end = exchange.find(|kind| matches!(kind, Kind::Closed { from: Guest }));
    if let Some(end) = end.filter(|_| read && exchange.cut.is_some()) {
        return Sight::SawOther { at: end.at, actual: "the connection ended".to_owned() };
    }
    match (read, exchange.cut, labels, accepts) {
        (false, Some(cut), ..) => Sight::Undecided(Why::CutShort(cut.to_owned())),
        (false, None, ..) => unread(),
        (true, _, [label], []) => sights::became(exchange, label),
        (true, ..) => sights::all_became(exchange, labels.iter().copied(), accepts),
    }
}

fn unread() -> Sight {
    Sight::Undecided(Why::NotProvoked("the guest does not read the contents that it is offered".into()))
}

/// The params of an intercept whose content comes when there was a silence.
pub(super) fn held_intercept(_: &Setting<'_>) -> String {
    params(&object("held").descriptor("/payload"), INTERCEPT_MILLIS)
}

/// Waits until the guest asks for that content.
pub(super) fn held_is_asked() -> Step {
    Step::Await { frame: taken("held").when, within: Within::Silence }
}

/// What makes the content of [`held_intercept`] come then.
pub(super) fn held_pages(setting: &Setting<'_>) -> Reaction {
    let reply = Template::new(answer(&captured("held"), "result", &page(setting, "held")));
    Reaction { reply: Reply::AfterFences(1, reply), times: None, ..taken("held") }
}

/// Makes the guest answer with the payload that it was given.
static ECHOED_CONTENT: ScriptDef = ScriptDef {
    name: "echoed-content",
    process: Process::Tour,
    needs: &[Need::Provocation("echo-payload")],
    build: |setting| {
        let limits = Limits::of(setting.contract);
        let most = limits.content_ref_object_bytes.min(limits.frame_bytes / 4);
        let bytes = (limits.content_ref_chunk_bytes * 2 + 1).min(most);
        let (event, payload) = super::provoked_payload(setting, "echo-payload", &" é€😀".repeat(bytes / 10));
        let object = Object { reference: reference("content"), bytes: payload.into_bytes() };
        let mut script = Script::new("echoed-content");
        let mut offset = 0;
        while let Some(page) = object.page(offset, limits.content_ref_chunk_bytes) {
            let when = format!(
                r#"{{"id":{{"$capture":"id"}},"method":"{}","params":{{"contentRef":{},"offset":{offset}}}}}"#,
                contract::CONTENT_READ,
                quoted(&object.reference)
            );
            script.reactions.push(Reaction {
                when: Pattern::of(&when).unwrap_or(Pattern::Absent),
                reply: Reply::Once(Template::new(answer(&captured("id"), "result", &page))),
                times: None,
                guest: None,
            });
            offset += limits.content_ref_chunk_bytes;
        }
        let params = params(&object.descriptor("/payload"), INTERCEPT_MILLIS).replacen(
            &format!(r#""{}""#, point::INPUT_RECEIVE),
            &event,
            1,
        );
        script.request("content", contract::INTERCEPT, &params).answer("content").fence()
    },
};

/// Whether the replacement that `label` was answered with is the payload that it gave.
pub(super) fn echoed(exchange: &Exchange<'_>, label: &str) -> Sight {
    let (result, at) = match result_of(exchange, label) {
        Ok(found) => found,
        Err(sight) => return sight,
    };
    let inline = exchange.sent(label).and_then(|entry| entry.frame.as_ref()?.root.pointer("/params/payload"));
    let payload = match inline.filter(|payload| !payload.is_null()) {
        Some(payload) => payload.raw().as_bytes().to_vec(),
        None => content::served(exchange, &reference(label)),
    };
    let Ok(payload) = Tape::scan(&payload) else {
        return Sight::SawOther { at, actual: "it ruled before it had read the whole payload".to_owned() };
    };
    match result.get("replacement") {
        Some(replacement) if replacement.equals(payload.root()) => Sight::Saw(EQUAL, at),
        Some(replacement) => Sight::SawOther {
            at,
            actual: format!("the replacement is another: {}", short(replacement.raw())),
        },
        None => Sight::SawOther { at, actual: format!("the ruling {}", short(result.raw())) },
    }
}
