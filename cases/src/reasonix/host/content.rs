//! "Content ref", as a host must keep it: what moves out of frames, how it is read, and what may refer to it.
//!
//! What the user says is as long as a script needs it to be: the payload of an input is that text in an object.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::digest;
use sidecert_proto::exchange::{Answer, Exchange, short};
use sidecert_proto::json::{Node, Tape, quoted};
use sidecert_proto::machine::LinkId;
use sidecert_proto::reasonix::content;
use sidecert_proto::reasonix::contract::{self, Limits, point};
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::rpc::Outcome;
use sidecert_proto::script::{
    Outgoing, Pattern, Process, Reply, Script, ScriptDef, Setting, Step, Template, Within,
};
use sidecert_proto::verdict::{Sight, Why};

use super::super::KEPT_AS_SPECIFIED;
use super::super::sights::{self, BAD_PARAMS, EXPIRED, SERVED, became, result_of};
use super::rulings::{BLOCK, CONTINUE, rules_on};
use super::streams::came;
use super::{
    DONE, FAILED, ONE, REFUSED, awaits, guest, intercept, never_came, observed, outcome, reacts, say,
    session as begin, specified, stop, turn,
};

const CONTENT: Cite = Cite::Seed("Content ref", "Content references");
const READ: Cite = Cite::Schema("/$defs/ContentReadParams");
const OBJECT_LIMIT: Cite = Cite::Schema("/limits/contentRefObjectBytes");

const MOVED_OUT: Seen = Seen("the payload moved out of the event");
const FROM_THERE: Seen = Seen("its bytes from there on");
const EMPTY: Seen = Seen("an empty page, and no next one");
const EQUAL: Seen = Seen("the pages join to a JSON text of that length and digest");
const NOT_SENT: Seen = Seen("nothing of it was sent, the user was told, and the host went on");
const ALL_KEPT: Seen = Seen("the 64 newest could be read");
const READABLE: Seen = Seen("the message was there, whole or to be read");

const FAILS: &[Accepts] = &[specified(FAILED)];
const FAILS_OBSERVED: &[Accepts] = &[observed(FAILED)];
const EXPIRED_OBSERVED: &[Accepts] = &[observed(EXPIRED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-content/large-moved-out", Host)
        .says(
            "A payload moves out of its frame exactly when it is longer than what may stand inline.",
            &[CONTENT, Cite::Schema("/limits/externalizeFieldBytes")],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::LARGE_MOVED_OUT, &SIZES)),
    must("reasonix/host-content/events-move-out", Host)
        .says("The payload of an event moves out as that of an intercept does.", &[
            CONTENT,
            Cite::Schema("/$defs/EventParams/properties/payload"),
        ])
        .accepts(&[specified(MOVED_OUT)])
        .checked(After(&SIZES, events_move_out)),
    must("reasonix/host-content/descriptors-true", Host)
        .says(
            "Where a payload moved out, null stands in its place, and one descriptor of it beside it.",
            &[CONTENT, Cite::Schema("/$defs/ExternalizedField")],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::DESCRIPTORS_TRUE, &SIZES)),
    must("reasonix/host-content/pages-true", Host)
        .says(
            "A page is the one that was asked for, within the limit, and says what its content is and what follows.",
            &[CONTENT, Cite::Schema("/$defs/ContentReadResult"), Cite::Schema("/limits/contentRefChunkBytes")],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::PAGES_TRUE, &PAGES)),
    must("reasonix/host-content/whole", Host)
        .says("The pages of a content join to the payload that its descriptor is of.", &[CONTENT])
        .accepts(&[specified(EQUAL)])
        .checked(After(&PAGES, whole)),
    must("reasonix/host-content/offsets-exact", Host)
        .says("A page begins at the very byte that was asked for.", &[])
        .accepts(&[observed(FROM_THERE)])
        .checked(After(&SIZES, offsets_exact)),
    must("reasonix/host-content/end-is-empty", Host)
        .says("A read at the end of a content gives an empty page.", &[])
        .accepts(&[observed(EMPTY)])
        .checked(After(&SIZES, end_is_empty)),
    must("reasonix/host-content/beyond-end-refused", Host)
        .says("A read beyond the end of a content is refused as expired.", &[])
        .accepts(EXPIRED_OBSERVED)
        .checked(After(&SIZES, |x| became(x, "beyond"))),
    must("reasonix/host-content/unknown-refused", Host)
        .says("A read of what the host never gave out is refused as expired.", &[CONTENT])
        .accepts(&[specified(EXPIRED)])
        .checked(After(&SIZES, |x| became(x, "unknown"))),
    must("reasonix/host-content/negative-offset-refused", Host)
        .says("An offset below zero is refused as wrong params.", &[READ])
        .accepts(&[specified(BAD_PARAMS)])
        .checked(After(&SIZES, |x| became(x, "negative"))),
    must("reasonix/host-content/others-not-served", Host)
        .says("A guest cannot read what was given to another.", &[])
        .accepts(EXPIRED_OBSERVED)
        .checked(After(&SIZES, |x| became(x, "other"))),
    must("reasonix/host-content/messages-whole", Host)
        .says(
            "A long message reaches the model, in the frame or by a reference.",
            &[CONTENT, Cite::Schema("/$defs/ProviderMessage/properties/content")],
        )
        .accepts(&[specified(READABLE)])
        .checked(After(&SIZES, messages_whole)),
    must("reasonix/host-content/read-while-asked", Host)
        .says("A guest can read the payload of an intercept before it rules.", &[CONTENT])
        .accepts(&[specified(SERVED)])
        .checked(After(&BEFORE_RULING, read_while_asked)),
    must("reasonix/host-content/too-large-not-sent", Host)
        .says(
            "A payload that is longer than a content may be is never sent: what it is of fails.",
            &[CONTENT, OBJECT_LIMIT],
        )
        .accepts(&[specified(NOT_SENT)])
        .checked(After(&TOO_LARGE, too_large_not_sent)),
    must("reasonix/host-content/newest-kept", Host)
        .says("At least the 64 newest contents of a connection can be read.", &[])
        .accepts(&[observed(ALL_KEPT)])
        .checked(After(&MANY, newest_kept)),
    must("reasonix/host-content/expired-refused", Host)
        .says("A read of what the host has dropped is refused as expired.", &[CONTENT])
        .accepts(&[specified(EXPIRED), specified(SERVED)])
        .checked(After(&MANY, oldest)),
    must("reasonix/host-content/own-reference-taken", Host)
        .says("A replacement may be a reference to what the host gave out on the same connection.", &[])
        .accepts(&[observed(DONE)])
        .checked(After(&REPLACED, |x| came(x, "own"))),
    must("reasonix/host-content/odd-references-refused", Host)
        .says(
            "A replacement whose descriptor is of another place, double, beside a value, or not true is not used.",
            &[],
        )
        .accepts(FAILS_OBSERVED)
        .checked(After(&REPLACED, |x| {
            let sights = ["pointer", "two", "inline", "digest", "size"].map(|label| came(x, label));
            let other = sights.iter().find(|sight| !matches!(sight, Sight::Saw(FAILED, _)));
            other.unwrap_or(&sights[0]).clone()
        })),
    must("reasonix/host-content/unknown-reference-refused", Host)
        .says("A replacement that refers to what the host never gave out is not used.", &[CONTENT])
        .accepts(FAILS)
        .checked(After(&REPLACED, |x| came(x, "unknown"))),
    must("reasonix/host-content/digests-written-exactly", Host)
        .says("A digest is 64 digits in lower case and nothing else; another one refers to nothing.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&REPLACED, digests_exact)),
    must("reasonix/host-content/large-reference-refused", Host)
        .says(
            "A replacement by a descriptor that is longer than a content may be is not used.",
            &[CONTENT, OBJECT_LIMIT],
        )
        .accepts(FAILS)
        .checked(After(&REPLACED, |x| came(x, "large"))),
];

// ---- scripts ----

/// What a text has around it in the payload of an input.
const AROUND: usize = r#"{"text":""}"#.len();

/// A text with this beginning that makes the payload of an input as long as this.
fn saying(begins: &str, payload_bytes: usize) -> String {
    let room = payload_bytes.saturating_sub(AROUND + begins.len());
    format!("{begins}{}", "x".repeat(room))
}

/// What the user says that is just too long for a frame.
fn long(contract: &sidecert_proto::contract::Contract, begins: &str) -> String {
    saying(begins, Limits::of(contract).externalize_field_bytes + 1)
}

/// An intercept whose payload moved out, as a pattern that captures the reference under this name.
fn moved(reference: &str) -> String {
    let (method, at) = (contract::INTERCEPT, point::INPUT_RECEIVE);
    format!(
        r#"{{"id":{{"$capture":"held"}},"method":"{method}","params":{{"event":"{at}","payload":null,"externalized":[{{"contentRef":{{"$capture":"{reference}"}},"totalBytes":{{"$capture":"total"}},"sha256":{{"$capture":"digest"}}}}]}}}}"#
    )
}

/// Reads the content that was captured under this name.
fn read(script: Script, label: &str, reference: &str, offset: &str) -> Script {
    let params = format!(r#"{{"contentRef":{{"$capture":"{reference}"}},"offset":{offset}}}"#);
    script.request(label, contract::CONTENT_READ, &params).answer(label)
}

fn intercepting(setting: &Setting<'_>, name: &str, points: &[&str]) -> Plugin {
    Plugin::new(setting, name).intercepts(points)
}

static SIZES: ScriptDef = ScriptDef {
    name: "contents-of-each-size",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let limit = Limits::of(setting.contract).externalize_field_bytes;
        let one = intercepting(setting, ONE, &[point::INPUT_RECEIVE, point::PROVIDER_REQUEST]);
        let two = intercepting(setting, "two", &[]);
        let it = begin("contents-of-each-size", setting, &[one, two]);
        let it = turn(it, "fits", &saying("sidecert-fits-", limit));
        let it = say(it, "moved", &long(setting.contract, "sidecert-moved-"));
        let it = it.step(awaits(&moved("reference"))).step(outcome("moved"));
        let it = read(read(it, "start", "reference", "0"), "middle", "reference", &MIDDLE.to_string());
        let it = read(it, "end", "reference", r#"{"$capture":"total"}"#);
        let it = read(it, "beyond", "reference", "9000000000");
        let nothing = r#"{"contentRef":"sidecert-none","offset":0}"#;
        let it = it.request("unknown", contract::CONTENT_READ, nothing).answer("unknown");
        let negative = r#"{"contentRef":{"$capture":"reference"},"offset":-1}"#;
        let negative = sights::request("negative", contract::CONTENT_READ, negative);
        let it = it.raw("negative", "its offset is below zero", negative).fence();
        stop(read(it.step(guest("two")), "other", "reference", "0"))
    },
};

static PAGES: ScriptDef = ScriptDef {
    name: "content-of-two-pages",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let limits = Limits::of(setting.contract);
        let bytes = limits.content_ref_chunk_bytes.max(limits.externalize_field_bytes) + 1;
        let it =
            begin("content-of-two-pages", setting, &[intercepting(setting, ONE, &[point::INPUT_RECEIVE])]);
        let it = say(it, "pages", &saying("sidecert-pages-", bytes.min(limits.content_ref_object_bytes)));
        let it = it.step(awaits(&moved("reference"))).step(outcome("pages"));
        let first = r#"{"contentRef":{"$capture":"reference"},"offset":0}"#;
        let page =
            r#"{"id":{"$id":"first"},"method":{"$absent":true},"result":{"nextOffset":{"$capture":"next"}}}"#;
        let it = it.request("first", contract::CONTENT_READ, first).step(awaits(page));
        stop(read(it, "second", "reference", r#"{"$capture":"next"}"#))
    },
};

/// Where the content of an intercept is read that has no ruling yet: an offset that nothing else reads from.
const EARLY_OFFSET: u64 = 7;

static BEFORE_RULING: ScriptDef = ScriptDef {
    name: "content-before-its-ruling",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = intercepting(setting, ONE, &[point::INPUT_RECEIVE]);
        let it = begin("content-before-its-ruling", setting, &[one]);
        let it = reacts(it, &moved("reference"), Reply::Never);
        let it =
            say(it, "asked", &long(setting.contract, "sidecert-asked-")).step(awaits(&moved("reference")));
        let params = format!(r#"{{"contentRef":{{"$capture":"reference"}},"offset":{EARLY_OFFSET}}}"#);
        let answered = Step::Await { frame: Pattern::answer_to("early"), within: Within::Silence };
        let it = it.request("early", contract::CONTENT_READ, &params).step(answered);
        stop(it.step(super::rulings::answer("asked-ruling", CONTINUE)).step(outcome("asked")))
    },
};

static TOO_LARGE: ScriptDef = ScriptDef {
    name: "content-too-large",
    process: Process::Own,
    needs: &[],
    build: |setting| {
        let it = begin("content-too-large", setting, &[intercepting(setting, ONE, &[point::INPUT_RECEIVE])]);
        let most = Limits::of(setting.contract).content_ref_object_bytes;
        stop(turn(turn(it, "large", &saying("sidecert-large-", most + 1)), "after", "And now?"))
    },
};

/// How many contents a host is seen to keep.
const KEPT: usize = 64;
/// How many it is given.
const GIVEN: usize = KEPT + 2;
/// Which of them are read: whether a host gives one a turn or two, some on either side of what it keeps.
const READS: [usize; 7] = [0, 2, 20, 34, 36, 50, GIVEN - 1];

static MANY: ScriptDef = ScriptDef {
    name: "many-contents",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let it = begin("many-contents", setting, &[intercepting(setting, ONE, &[point::INPUT_RECEIVE])]);
        // What is blocked is not in the conversation, which stays short.
        let mut it = rules_on(it, ONE, None, &intercept(point::INPUT_RECEIVE), BLOCK);
        for at in 0..GIVEN {
            let label = format!("turn-{at}");
            it = say(it, &label, &long(setting.contract, &format!("sidecert-{at}-")));
            it = it.step(awaits(&moved(&format!("reference-{at}")))).step(outcome(&label));
        }
        let offset = Limits::of(setting.contract).externalize_field_bytes.to_string();
        stop(
            READS
                .into_iter()
                .fold(it, |it, at| read(it, &format!("read-{at}"), &format!("reference-{at}"), &offset)),
        )
    },
};

static REPLACED: ScriptDef = ScriptDef {
    name: "replacements-by-reference",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = intercepting(setting, ONE, &[point::INPUT_RECEIVE]);
        let it = begin("replacements-by-reference", setting, &[one]);
        let mut it = reacts(it, &moved("reference"), Reply::Never);
        let descriptor = |pointer: &str, reference: &str, total: &str, digest: &str| {
            format!(
                r#"{{"jsonPointer":"{pointer}","contentRef":{reference},"totalBytes":{total},"sha256":{digest}}}"#
            )
        };
        let (given, total, digest) =
            (r#"{"$capture":"reference"}"#, r#"{"$capture":"total"}"#, r#"{"$capture":"digest"}"#);
        let own = descriptor("/replacement", given, total, digest);
        let none = quoted_digest();
        let more = (Limits::of(setting.contract).content_ref_object_bytes + 1).to_string();
        let odd = [
            ("pointer", "it names another place", "null", descriptor("/payload", given, total, digest)),
            ("two", "there are two descriptors", "null", format!("{own},{own}")),
            ("inline", "the value stands beside its descriptor", r#"{"text":"sidecert"}"#, own.clone()),
            ("digest", "the digest is another", "null", descriptor("/replacement", given, total, &none)),
            ("size", "the size is another", "null", descriptor("/replacement", given, "1", digest)),
            (
                "unknown",
                "nobody gave it out",
                "null",
                descriptor("/replacement", r#""sidecert-none""#, total, digest),
            ),
            ("large", "no content is that long", "null", descriptor("/replacement", given, &more, digest)),
        ];
        let answer = |value: &str, descriptors: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{{"$capture":"held"}},"result":{{"decision":"replace","replacement":{value},"externalized":[{descriptors}]}}}}"#
            )
        };
        let held = |it: Script, label: &str| {
            let text = long(setting.contract, &format!("sidecert-{label}-"));
            say(it, label, &text).step(awaits(&moved("reference")))
        };
        let frame = Outgoing::Template(Template::new(answer("null", &own)));
        it = held(it, "own").step(Step::Send { label: None, frame }).step(outcome("own"));
        // The digest of the payload as it is known here, so that it can be written otherwise.
        for (label, departs, written) in DIGESTS {
            let said = long(setting.contract, &format!("sidecert-{label}-"));
            let digest = quoted(&written(digest::sha256(format!(r#"{{"text":"{said}"}}"#).as_bytes())));
            let ruling = answer("null", &descriptor("/replacement", given, total, &digest));
            it = held(it, label);
            it = if let Some(departs) = departs {
                it.raw(&format!("{label}-ruling"), departs, ruling)
            } else {
                let frame = Outgoing::Template(Template::new(ruling));
                it.step(Step::Send { label: None, frame })
            };
            it = it.step(outcome(label));
        }
        for (label, departs, value, descriptors) in &odd {
            let ruling = format!("{label}-ruling");
            it = held(it, label).raw(&ruling, departs, answer(value, descriptors)).step(outcome(label));
        }
        stop(it)
    },
};

/// How a digest is written.
type Written = fn(String) -> String;

/// Digests of a payload: the turn, what makes them wrong, if anything does, and how they are written.
const DIGESTS: [(&str, Option<&str>, Written); 4] = [
    ("computed", None, |digest| digest),
    ("upper", Some("its digest is in upper case"), |digest| digest.to_ascii_uppercase()),
    ("prefixed", Some("its digest has a prefix"), |digest| format!("sha256:{digest}")),
    ("short", Some("its digest has 63 digits"), |digest| digest.chars().skip(1).collect()),
];

/// The digest of nothing, as a JSON text.
fn quoted_digest() -> String {
    format!(r#""{}""#, digest::sha256(b""))
}

// ---- sights ----

fn member<'x>(node: Node<'x>, name: &str) -> std::borrow::Cow<'x, str> {
    node.get(name).and_then(|it| it.as_str()).unwrap_or_default()
}

/// The descriptors that the host gave out, in order: where, on which link, and the descriptor.
fn given<'x>(x: &'x Exchange<'_>) -> impl Iterator<Item = (u64, LinkId, Node<'x>)> {
    x.from_target().flat_map(|(entry, said)| {
        let list = said.root.pointer("/params/externalized");
        list.into_iter().flat_map(Node::elements).map(|it| (entry.at, entry.event.link, it))
    })
}

fn digests_exact(x: &Exchange<'_>) -> Sight {
    match came(x, "computed") {
        Sight::Saw(DONE, _) => {
            let sights = ["upper", "prefixed", "short"].map(|label| came(x, label));
            let other = sights.iter().find(|sight| !matches!(sight, Sight::Saw(FAILED, _)));
            other.unwrap_or(&sights[0]).clone()
        }
        Sight::Saw(..) => Sight::Undecided(Why::NotProvoked(
            "the host has the payload in another form than we think".into(),
        )),
        other => other,
    }
}

fn read_while_asked(x: &Exchange<'_>) -> Sight {
    let Some(ruled) = x.sent("asked-ruling").map(|entry| entry.at) else {
        return x.nothing_came("asked-ruling", "");
    };
    match became(x, "early") {
        Sight::Saw(seen, at) if at < ruled => Sight::Saw(seen, at),
        Sight::Saw(_, at) => Sight::SawOther { at, actual: "nothing came before the ruling".to_owned() },
        other => other,
    }
}

fn events_move_out(x: &Exchange<'_>) -> Sight {
    let limit = Limits::of(x.contract).externalize_field_bytes;
    let events = x.asked(contract::EVENT).filter_map(|(entry, params)| Some((entry, params?)));
    let mut large = events.filter_map(|(entry, params)| {
        let inline = params.get("payload").map_or(0, |it| it.raw().len());
        let out = params.get("externalized").is_some();
        (out || inline > limit).then_some((entry, out, inline))
    });
    match large.next() {
        Some((entry, true, _)) => Sight::Saw(MOVED_OUT, entry.at),
        Some((entry, false, bytes)) => {
            Sight::SawOther { at: entry.at, actual: format!("a payload of {bytes} bytes inline") }
        }
        None => match x.cut {
            Some(_) => never_came(x, "moved"),
            None => Sight::Undecided(Why::NotProvoked("no event with a long payload was told".into())),
        },
    }
}

fn whole(x: &Exchange<'_>) -> Sight {
    let Some((_, _, descriptor)) = given(x).next() else { return x.nothing_came("first", "") };
    let reference = member(descriptor, "contentRef");
    let second = match result_of(x, "second") {
        Ok((result, at)) if result.get("nextOffset").is_none() => at,
        Ok(_) => return Sight::Undecided(Why::NotProvoked("it has more pages than were read".into())),
        Err(sight) => return sight,
    };
    let bytes = content::served(x, &reference);
    let total = descriptor.get("totalBytes").and_then(|it| it.as_u64());
    let actual = if total != Some(bytes.len() as u64) {
        format!("{} bytes", bytes.len())
    } else if digest::sha256(&bytes) != member(descriptor, "sha256") {
        "another digest".to_owned()
    } else if Tape::scan(&bytes).is_err() {
        "no JSON text".to_owned()
    } else {
        return Sight::Saw(EQUAL, second);
    };
    Sight::SawOther { at: second, actual }
}

/// Where the page in the middle begins: what is left out is a whole number of groups of base64.
const MIDDLE: usize = 6;

fn offsets_exact(x: &Exchange<'_>) -> Sight {
    match (result_of(x, "start"), result_of(x, "middle")) {
        (Ok((all, _)), Ok((rest, at))) => {
            let (all, rest) = (member(all, "dataBase64"), member(rest, "dataBase64"));
            let tail = all.get(MIDDLE / 3 * 4..).unwrap_or_default();
            // Pages may be of any length: what both have is alike, but for where either is cut.
            let both = tail.len().min(rest.len()).saturating_sub(4);
            if both > 0 && tail.get(..both) == rest.get(..both) {
                Sight::Saw(FROM_THERE, at)
            } else {
                Sight::SawOther {
                    at,
                    actual: format!("a page that begins with {:?} as base64", short(&rest)),
                }
            }
        }
        (Err(sight), _) | (_, Err(sight)) => sight,
    }
}

fn end_is_empty(x: &Exchange<'_>) -> Sight {
    match result_of(x, "end") {
        Ok((page, at)) if member(page, "dataBase64").is_empty() && page.get("nextOffset").is_none() => {
            Sight::Saw(EMPTY, at)
        }
        Ok((page, at)) => Sight::SawOther { at, actual: format!("the page {}", short(page.raw())) },
        Err(sight) => sight,
    }
}

fn messages_whole(x: &Exchange<'_>) -> Sight {
    let text = long(x.contract, "sidecert-moved-");
    let opens = x.asked(contract::STREAM_OPEN).filter_map(|(entry, params)| Some((entry, params?)));
    let Some((entry, params)) = opens.last() else { return never_came(x, "moved") };
    let messages = params.pointer("/request/messages").into_iter().flat_map(Node::elements);
    let inline =
        messages.filter(|it| member(*it, "role") == "user").any(|it| member(it, "content").contains(&*text));
    let by_reference =
        params.get("externalized").or_else(|| params.pointer("/request/externalized")).is_some();
    if inline || by_reference {
        Sight::Saw(READABLE, entry.at)
    } else {
        Sight::SawOther { at: entry.at, actual: "what the user said is not in it".to_owned() }
    }
}

fn too_large_not_sent(x: &Exchange<'_>) -> Sight {
    let most = Limits::of(x.contract).content_ref_object_bytes as u64;
    let total =
        |descriptor: Node<'_>| descriptor.get("totalBytes").and_then(|it| it.as_u64()).unwrap_or_default();
    if let Some((at, _, descriptor)) = given(x).find(|(_, _, it)| total(*it) > most) {
        return Sight::SawOther { at, actual: format!("a content of {} bytes", total(descriptor)) };
    }
    match (came(x, "large"), came(x, "after")) {
        (Sight::Saw(FAILED | REFUSED, _), Sight::Saw(DONE, at)) => Sight::Saw(NOT_SENT, at),
        (Sight::Saw(FAILED | REFUSED, _), Sight::Saw(seen, at)) => {
            Sight::SawOther { at, actual: format!("afterwards: {}", seen.0) }
        }
        (Sight::Saw(FAILED | REFUSED, _), other) | (other, _) => other,
    }
}

/// How many contents the host gave out on the same connection between the one that is read here and the read.
fn newer(x: &Exchange<'_>, label: &str) -> Option<usize> {
    let sent = x.sent(label)?;
    let reference = member(sent.frame.as_ref()?.root.get("params")?, "contentRef").into_owned();
    let before = given(x).filter(|(at, link, _)| *at < sent.at && *link == sent.event.link);
    let references: Vec<_> = before.map(|(_, _, it)| member(it, "contentRef").into_owned()).collect();
    let place = references.iter().position(|it| *it == reference)?;
    Some(references.len() - 1 - place)
}

fn newest_kept(x: &Exchange<'_>) -> Sight {
    let mut last = x.nothing_came("read-0", "none of the contents was among the newest");
    for at in READS {
        let label = format!("read-{at}");
        if newer(x, &label).is_none_or(|newer| newer >= KEPT) {
            continue;
        }
        match x.answer_to(&label) {
            Some(Answer { outcome: Outcome::Result(_), at, .. }) => last = Sight::Saw(ALL_KEPT, at),
            Some(answer) => return Sight::SawOther { at: answer.at, actual: answer.summary() },
            None => return x.nothing_came(&label, "no answer"),
        }
    }
    last
}

fn oldest(x: &Exchange<'_>) -> Sight {
    match newer(x, "read-0") {
        Some(newer) if newer >= KEPT => became(x, "read-0"),
        _ if x.cut.is_some() => never_came(x, "read-0"),
        _ => Sight::Undecided(Why::NotProvoked("too few contents were given out on one connection".into())),
    }
}
