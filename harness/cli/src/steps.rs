//! A script in words, for people: one line for each step and reaction, with the frame below it where there is one.

use sidecert_proto::machine::Order;
use sidecert_proto::script::{Outgoing, Pattern, Reaction, Reply, Script, Step, Template, Within};
use sidecert_reports::safe;
use sidecert_reports::terminal::Sheet;

/// How much of a frame is shown, in bytes.
const FRAME_BYTES: usize = 300;

/// Writes what `script` does, numbered.
pub(crate) fn write(sheet: &mut Sheet, script: &Script) {
    let mut labels = Vec::new();
    gather(&script.steps, &mut labels);
    for (at, step) in script.steps.iter().enumerate() {
        write_step(sheet, &format!("step {}", at + 1), 0, step, &labels);
    }
    for reaction in &script.reactions {
        sheet.step("meanwhile", 0, &reacts(reaction));
        if let Some(template) = answer(reaction) {
            sheet.text(1, &shortened(template));
        }
    }
}

/// The labels of all frames that a script sends.
fn gather<'s>(steps: &'s [Step], labels: &mut Vec<&'s str>) {
    for step in steps {
        match step {
            Step::Send { label: Some(label), .. }
            | Step::Raw { label: Some(label), .. }
            | Step::Tail { label: Some(label), .. } => {
                labels.push(label);
            }
            Step::Repeat { steps, .. } | Step::Each { steps, .. } => gather(steps, labels),
            _ => {}
        }
    }
}

fn write_step(sheet: &mut Sheet, number: &str, depth: usize, step: &Step, labels: &[&str]) {
    let (says, frame, inner) = match step {
        Step::Send { label, frame } => (format!("we send {}", named(label.as_deref())), Some(frame), None),
        Step::Raw { label, departs, frame } => {
            let says = format!("we send {}, wrong on purpose: {departs}", named(label.as_deref()));
            (says, Some(frame), None)
        }
        Step::Tail { label, departs, frame } => {
            let named = named(label.as_deref());
            let says = format!("we send {named} without a line feed, wrong on purpose: {departs}");
            (says, Some(frame), None)
        }
        Step::Repeat { times, steps } => (format!("{times} times:"), None, Some(steps)),
        Step::Each { of, name, steps } => {
            (format!("for each element of {of:?}, which is then {name:?}:"), None, Some(steps))
        }
        Step::Ask { label, what } => {
            sheet.step(number, depth, &format!("we ask the driver for {label:?}"));
            return sheet.text(depth + 1, &shortened(what.text()));
        }
        plain => (waits(plain, labels), None, None),
    };
    sheet.step(number, depth, &says);
    match frame {
        Some(Outgoing::Template(template)) => sheet.text(depth + 1, &shortened(template.text())),
        Some(Outgoing::Payload(payload)) => {
            let bytes = format!("{} bytes: {}", payload.len(), safe::preview(&payload.bytes(), FRAME_BYTES));
            sheet.text(depth + 1, &bytes);
        }
        None => {}
    }
    for step in inner.into_iter().flatten() {
        write_step(sheet, "", depth + 1, step, labels);
    }
}

/// The steps that neither write a frame nor hold others.
fn waits(step: &Step, labels: &[&str]) -> String {
    match step {
        Step::Cut { at } => {
            let at: Vec<String> = at.iter().map(usize::to_string).collect();
            format!("the next frame goes in parts, cut after byte {}", at.join(", "))
        }
        Step::Await { frame, within } => {
            let within = match within {
                Within::Start => "as long as a start may take".to_owned(),
                Within::Answer => "as long as an answer may take".to_owned(),
                Within::Silence => "until nothing has come for a while".to_owned(),
                Within::Millis(millis) => format!("{millis} ms, which a frame of ours says"),
            };
            format!("we wait for {}, {within}", awaited(frame, labels))
        }
        Step::Fence { or_end: false } => "we ask something harmless and wait for the answer".to_owned(),
        Step::Fence { or_end: true } => {
            "we ask something harmless and wait for the answer, or for the end of the connection".to_owned()
        }
        Step::Quiet => "we wait until nothing comes".to_owned(),
        Step::Settle => "we wait until nothing comes, unless all of this has been answered".to_owned(),
        Step::Hold => "we stop reading".to_owned(),
        Step::Release => "we read again".to_owned(),
        Step::Close => "we close its standard input".to_owned(),
        Step::Exit => "we wait for the end of the process".to_owned(),
        Step::Kill => "we kill the process".to_owned(),
        Step::Greet => "we greet the driver and wait until it says what it does".to_owned(),
        Step::Outcome { of, is, .. } => {
            let is = is.as_ref().map(|_| ", which is to be what the script says").unwrap_or_default();
            format!(
                "we wait for what comes of {of:?}{is}, and then for an answer to something harmless on every link"
            )
        }
        Step::Guest { name, time: 1 } => {
            format!("what follows is about guest {name:?}, once the host has launched it")
        }
        Step::Guest { name, time } => {
            format!("what follows is about launch {time} of guest {name:?}, once the host has launched it")
        }
        Step::Do(order) => orders(order),
        Step::Linger => "the guest does not end when its input does".to_owned(),
        Step::Gone => "we wait for the end of the guest's process".to_owned(),
        Step::Alive => "we see whether the guest's process is there".to_owned(),
        Step::Send { .. }
        | Step::Raw { .. }
        | Step::Tail { .. }
        | Step::Ask { .. }
        | Step::Repeat { .. }
        | Step::Each { .. } => String::new(),
    }
}

fn orders(order: &Order) -> String {
    match order {
        Order::Stderr(bytes) => format!("the guest writes {} bytes to standard error", bytes.len()),
        Order::CloseInput => "the guest closes its standard input".to_owned(),
        Order::Exit(code) => format!("the guest ends with code {code}"),
        Order::Abort => "the guest aborts".to_owned(),
        Order::IgnoreTerm => "the guest ignores SIGTERM from here on".to_owned(),
        Order::Spawn { session: true } => "the guest starts a process in a session of its own".to_owned(),
        Order::Spawn { session: false } => "the guest starts a process in its own group".to_owned(),
        Order::Ping => "we see whether the guest's process is there".to_owned(),
    }
}

fn awaited(frame: &Pattern, labels: &[&str]) -> String {
    match labels.iter().find(|label| Pattern::answer_to(label) == *frame) {
        Some(label) => format!("the answer to {label:?}"),
        None => format!("a frame like {}", pattern(frame)),
    }
}

fn reacts(reaction: &Reaction) -> String {
    let guest = reaction.guest.as_deref().map(|name| format!(" to guest {name:?}")).unwrap_or_default();
    let when = format!("{}{guest}", pattern(&reaction.when));
    let times = reaction.times.map(|times| format!(" (at most {times} times)")).unwrap_or_default();
    match &reaction.reply {
        Reply::Once(_) => format!("a frame like {when} is answered{times} with"),
        Reply::Twice(_) => format!("a frame like {when} is answered twice{times} with"),
        Reply::AfterFences(fences, _) => {
            format!("a frame like {when} is answered{times}, but only after {fences} fences, with")
        }
        Reply::Several(_) => format!("a frame like {when} is answered{times} with several frames, first"),
        Reply::Odd { departs, .. } => {
            format!("a frame like {when} is answered{times} with what is wrong on purpose ({departs})")
        }
        Reply::Never => format!("a frame like {when} is never answered{times}"),
    }
}

fn answer(reaction: &Reaction) -> Option<&str> {
    match &reaction.reply {
        Reply::Once(template)
        | Reply::Twice(template)
        | Reply::AfterFences(_, template)
        | Reply::Odd { answer: template, .. } => Some(template.text()),
        Reply::Several(templates) => templates.first().map(Template::text),
        Reply::Never => None,
    }
}

fn named(label: Option<&str>) -> String {
    label.map_or_else(|| "a frame".to_owned(), |label| format!("{label:?}"))
}

fn pattern(pattern: &Pattern) -> String {
    let mut json = Vec::new();
    pattern.write(&mut json);
    safe::preview(&json, FRAME_BYTES)
}

fn shortened(text: &str) -> String {
    safe::preview(text.as_bytes(), FRAME_BYTES)
}
