//! The text form of scripts: reading and writing undo each other.

use std::borrow::Cow;

use sidecert_proto::json::{Kind, write_str};
use sidecert_proto::machine::Order;
use sidecert_proto::script::{Outgoing, Pattern, Reaction, Reply, Script, Step, Template, Within};
use sidecert_proto::transcript::{FILL_BYTES_MAX, Payload};

use crate::draw::Draw;

/// How deep drawn steps and patterns nest.
const DEPTH_MOST: usize = 4;

/// Reads `bytes` as a script, and writes and reads one that is drawn from them.
pub fn scripts(bytes: &[u8]) {
    if let Ok(script) = Script::read(bytes) {
        comes_back(&script);
    }
    comes_back(&script(&mut Draw::new(bytes)));
}

fn comes_back(script: &Script) {
    let text = script.write();
    match Script::read(text.as_bytes()) {
        Ok(again) => assert_eq!(again, *script, "\n{text}"),
        Err(fault) => panic!("{fault}\n{text}"),
    }
}

fn script(draw: &mut Draw<'_>) -> Script {
    let mut script = Script::new(&name(draw));
    while !draw.is_spent() {
        if draw.below(4) == 3 {
            script.reactions.push(reaction(draw));
        } else {
            script.steps.push(step(draw, 0));
        }
    }
    script
}

/// A name that a script may have.
fn name(draw: &mut Draw<'_>) -> String {
    let letters: String =
        draw.text().chars().filter(|letter| matches!(letter, 'a'..='z' | '0'..='9' | '-')).collect();
    if letters.is_empty() { "x".to_owned() } else { letters }
}

fn step(draw: &mut Draw<'_>, depth: usize) -> Step {
    let kinds = if depth < DEPTH_MOST { 25 } else { 23 };
    match draw.below(kinds) {
        0 | 1 => Step::Send { label: draw.optional(Draw::text), frame: outgoing(draw) },
        2 => Step::Raw { label: draw.optional(Draw::text), departs: draw.text(), frame: outgoing(draw) },
        13 => Step::Tail { label: draw.optional(Draw::text), departs: draw.text(), frame: outgoing(draw) },
        3 => Step::Cut { at: draw.several(3, |draw| draw.below(1 << 16)) },
        4 | 5 => {
            let frame = pattern(draw, 0);
            let within = match draw.below(4) {
                0 => Within::Answer,
                3 => Within::Silence,
                1 => Within::Start,
                _ => Within::Millis(draw.number()),
            };
            Step::Await { frame, within }
        }
        6 => Step::Fence { or_end: draw.flag() },
        7 if draw.flag() => Step::Settle,
        7 => Step::Quiet,
        8 => Step::Hold,
        9 => Step::Release,
        10 => Step::Close,
        11 => Step::Exit,
        12 => Step::Kill,
        14 => Step::Greet,
        15 => Step::Ask { label: draw.text(), what: Template::new(draw.json()) },
        16 => {
            let within = draw.flag().then(|| draw.number());
            let is = draw.flag().then(|| pattern(draw, 0));
            Step::Outcome { of: draw.text(), within, is }
        }
        17 => Step::Guest { name: draw.text(), time: u32::try_from(draw.number()).unwrap_or(1) },
        18 => Step::Do(order(draw)),
        19 => Step::Linger,
        20 => Step::Gone,
        21 | 22 => Step::Alive,
        23 => {
            let times = u32::try_from(draw.number()).unwrap_or(u32::MAX);
            Step::Repeat { times, steps: draw.several(3, |draw| step(draw, depth + 1)) }
        }
        _ => {
            let (of, name) = (draw.text(), draw.text());
            Step::Each { of, name, steps: draw.several(3, |draw| step(draw, depth + 1)) }
        }
    }
}

fn order(draw: &mut Draw<'_>) -> Order {
    match draw.below(7) {
        0 => Order::Stderr(draw.text().into_bytes().into()),
        1 => Order::CloseInput,
        2 => Order::Exit(draw.byte()),
        3 => Order::Abort,
        4 => Order::IgnoreTerm,
        5 => Order::Spawn { session: draw.flag() },
        _ => Order::Ping,
    }
}

/// Text that is JSON or no JSON is a template; as a payload stand only the forms that a template has not.
fn outgoing(draw: &mut Draw<'_>) -> Outgoing {
    match draw.below(4) {
        0 => Outgoing::Template(Template::new(draw.json())),
        1 => Outgoing::Template(Template::new(draw.text())),
        2 => Outgoing::Payload(Payload::Bytes(Cow::Owned(draw.bytes(32).to_vec()))),
        _ => Outgoing::Payload(Payload::Fill {
            head: Cow::Owned(draw.text()),
            byte: draw.byte() & 0x7f,
            count: draw.number().min(FILL_BYTES_MAX),
            tail: Cow::Owned(draw.text()),
        }),
    }
}

fn reaction(draw: &mut Draw<'_>) -> Reaction {
    let when = pattern(draw, 0);
    let answer = Template::new(draw.json());
    let reply = match draw.below(6) {
        0 => Reply::Once(answer),
        1 => Reply::Twice(answer),
        2 => Reply::AfterFences(u32::from(draw.byte()), answer),
        3 => Reply::Several(vec![answer.clone(), answer]),
        4 => Reply::Odd { departs: draw.text(), answer },
        _ => Reply::Never,
    };
    let guest = draw.optional(Draw::text);
    Reaction { when, reply, times: draw.optional(|draw| u32::from(draw.byte())), guest }
}

fn pattern(draw: &mut Draw<'_>, depth: usize) -> Pattern {
    let kinds = if depth < DEPTH_MOST { 12 } else { 9 };
    match draw.below(kinds) {
        0 => Pattern::Any,
        1 => Pattern::Absent,
        2 => {
            let kinds = [Kind::Null, Kind::Bool, Kind::Number, Kind::String, Kind::Array, Kind::Object];
            Pattern::Type(*draw.pick(&kinds))
        }
        3 => Pattern::Like(draw.text()),
        4 => Pattern::Exact(draw.json()),
        5 => Pattern::Value((*draw.pick(&["null", "true", "1.0", "-0", "1e2"])).to_owned()),
        6 => {
            let mut written = Vec::new();
            write_str(&mut written, &draw.text());
            Pattern::Value(String::from_utf8_lossy(&written).into_owned())
        }
        7 => Pattern::Id(draw.text()),
        8 => Pattern::Same(draw.text()),
        9 => Pattern::Elements(draw.several(3, |draw| pattern(draw, depth + 1))),
        10 => {
            // A first member that begins with `$` would be a matcher: patterns cannot say that, and nothing needs it.
            let name = |draw: &mut Draw<'_>| draw.text().trim_start_matches('$').to_owned();
            Pattern::Members(draw.several(3, |draw| (name(draw), pattern(draw, depth + 1))))
        }
        _ => Pattern::Capture(draw.text(), Box::new(pattern(draw, depth + 1))),
    }
}
