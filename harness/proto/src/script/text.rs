//! The text form of a script, format 1: JSON lines, a header, then one step or reaction a line.
//!
//! ```text
//! {"script":"odd-ids","format":1}                    {"script":"all-of-it","format":1,"process":"bare"}
//! {"send":{"json":{"jsonrpc":"2.0","id":{"$id":"probe"},"method":…}},"as":"probe"}
//! {"raw":{"json":{…}},"departs":"a string id","as":"odd"}      {"tail":…} is raw without a line feed      {"cut":[1,17]}
//! {"await":{…},"within":"answer"}   {"fence":{}}   {"fence":{"or":"end"}}   {"quiet":{}}   {"settle":{}}
//! {"hold":{}} {"release":{}} {"close":{}} {"exit":{}} {"kill":{}}
//! {"greet":{}}  {"ask":{"do":"turn",…},"as":"turn"}  {"outcome":"turn","within":20000,"is":{…}}  {"guest":"one","time":2}
//! {"linger":{}} {"gone":{}} {"alive":{}}  {"do":"exit","code":3}  {"do":"stderr","text":"…"}  {"do":"spawn","session":true}
//! {"repeat":3,"steps":[…]}          {"each":"list","as":"element","steps":[…]}
//! {"when":{…},"answer":{…},"twice":true,"after":2,"times":1}   {"when":{…},"never":true}
//! {"when":{…},"guest":"one","answers":[{…},{…}]}    {"when":{…},"answer":{…},"departs":"no such member"}
//! ```

mod orders;

use std::fmt;

use super::{FORMAT, Outgoing, Pattern, Process, Reaction, Reply, Script, Step, Template, Within};
use crate::json::{self, Kind, Node, Tape};
use crate::transcript::{self, Payload};

/// How deep `repeat` and `each` may nest.
const NESTING_MAX: usize = 8;

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFault {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1, where one can be named.
    pub column: Option<usize>,
    /// What is wrong and what was expected.
    pub says: String,
}

impl fmt::Display for ScriptFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", self.says)
    }
}

impl std::error::Error for ScriptFault {}

impl Script {
    /// The text form, which [`Script::read`] takes back.
    pub fn write(&self) -> String {
        let mut out = b"{\"script\":".to_vec();
        json::write_str(&mut out, &self.name);
        out.extend_from_slice(format!(",\"format\":{FORMAT}").as_bytes());
        if self.process != Process::Own {
            out.extend_from_slice(format!(",\"process\":\"{}\"", process_name(self.process)).as_bytes());
        }
        out.extend_from_slice(b"}\n");
        for reaction in &self.reactions {
            write_reaction(&mut out, reaction);
            out.push(b'\n');
        }
        for step in &self.steps {
            write_step(&mut out, step);
            out.push(b'\n');
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Reads the text form.
    pub fn read(text: &[u8]) -> Result<Self, ScriptFault> {
        let mut script: Option<Self> = None;
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let fault = |column, says| ScriptFault { line: at + 1, column, says };
            let tape = Tape::scan(line).map_err(|bad| fault(Some(bad.at + 1), bad.to_string()))?;
            let root = tape.root();
            match &mut script {
                None => script = Some(read_header(root).map_err(|says| fault(None, says))?),
                Some(script) if root.get("when").is_some() => {
                    script.reactions.push(read_reaction(root).map_err(|says| fault(None, says))?);
                }
                Some(script) => script.steps.push(read_step(root, 0).map_err(|says| fault(None, says))?),
            }
        }
        let missing =
            || ScriptFault { line: 1, column: None, says: "no {\"script\":NAME,\"format\":1}".to_owned() };
        script.ok_or_else(missing)
    }
}

fn write_step(out: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Send { label, frame } => {
            write_outgoing(out, "send", frame);
            write_label(out, label.as_deref());
        }
        Step::Raw { label, departs, frame } | Step::Tail { label, departs, frame } => {
            write_outgoing(out, if matches!(step, Step::Raw { .. }) { "raw" } else { "tail" }, frame);
            out.extend_from_slice(b",\"departs\":");
            json::write_str(out, departs);
            write_label(out, label.as_deref());
        }
        Step::Cut { at } => {
            let at: Vec<String> = at.iter().map(usize::to_string).collect();
            out.extend_from_slice(format!("{{\"cut\":[{}]", at.join(",")).as_bytes());
        }
        Step::Await { frame, within } => {
            out.extend_from_slice(b"{\"await\":");
            frame.write(out);
            out.extend_from_slice(b",\"within\":");
            match within {
                Within::Start => out.extend_from_slice(b"\"start\""),
                Within::Answer => out.extend_from_slice(b"\"answer\""),
                Within::Silence => out.extend_from_slice(b"\"silence\""),
                Within::Millis(millis) => out.extend_from_slice(millis.to_string().as_bytes()),
            }
        }
        Step::Ask { label, what } => {
            out.extend_from_slice(b"{\"ask\":");
            out.extend_from_slice(what.text().as_bytes());
            write_label(out, Some(label));
        }
        Step::Outcome { of, within, is } => {
            out.extend_from_slice(b"{\"outcome\":");
            json::write_str(out, of);
            if let Some(is) = is {
                out.extend_from_slice(b",\"is\":");
                is.write(out);
            }
            if let Some(within) = within {
                out.extend_from_slice(format!(",\"within\":{within}").as_bytes());
            }
        }
        Step::Guest { name, time } => {
            out.extend_from_slice(b"{\"guest\":");
            json::write_str(out, name);
            if *time != 1 {
                out.extend_from_slice(format!(",\"time\":{time}").as_bytes());
            }
        }
        Step::Do(order) => orders::write(out, order),
        Step::Fence { or_end: true } => out.extend_from_slice(b"{\"fence\":{\"or\":\"end\"}"),
        Step::Repeat { times, steps } => {
            out.extend_from_slice(format!("{{\"repeat\":{times}").as_bytes());
            write_steps(out, steps);
        }
        Step::Each { of, name, steps } => {
            out.extend_from_slice(b"{\"each\":");
            json::write_str(out, of);
            write_label(out, Some(name));
            write_steps(out, steps);
        }
        plain => {
            let name = PLAIN.iter().find(|(_, step)| step == plain).map_or("", |(name, _)| name);
            out.extend_from_slice(format!("{{\"{name}\":{{}}").as_bytes());
        }
    }
    out.push(b'}');
}

/// The steps that are only a name.
const PLAIN: [(&str, Step); 12] = [
    ("fence", Step::Fence { or_end: false }),
    ("quiet", Step::Quiet),
    ("settle", Step::Settle),
    ("hold", Step::Hold),
    ("release", Step::Release),
    ("close", Step::Close),
    ("exit", Step::Exit),
    ("kill", Step::Kill),
    ("greet", Step::Greet),
    ("linger", Step::Linger),
    ("gone", Step::Gone),
    ("alive", Step::Alive),
];

fn write_steps(out: &mut Vec<u8>, steps: &[Step]) {
    out.extend_from_slice(b",\"steps\":[");
    for (at, step) in steps.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_step(out, step);
    }
    out.push(b']');
}

fn write_label(out: &mut Vec<u8>, label: Option<&str>) {
    if let Some(label) = label {
        out.extend_from_slice(b",\"as\":");
        json::write_str(out, label);
    }
}

fn write_outgoing(out: &mut Vec<u8>, name: &str, frame: &Outgoing) {
    let mut form = Vec::new();
    match frame {
        Outgoing::Template(template) => {
            transcript::write_payload(&mut form, &Payload::of(template.text().as_bytes()));
        }
        Outgoing::Payload(payload) => transcript::write_payload(&mut form, payload),
    }
    // The form begins with the comma that it needs behind another member; here it is the first.
    out.extend_from_slice(format!("{{\"{name}\":{{").as_bytes());
    out.extend_from_slice(form.strip_prefix(b",").unwrap_or(&form));
    out.push(b'}');
}

fn write_reaction(out: &mut Vec<u8>, reaction: &Reaction) {
    out.extend_from_slice(b"{\"when\":");
    reaction.when.write(out);
    if let Some(guest) = &reaction.guest {
        out.extend_from_slice(b",\"guest\":");
        json::write_str(out, guest);
    }
    if let Reply::Several(templates) = &reaction.reply {
        let texts: Vec<&str> = templates.iter().map(Template::text).collect();
        out.extend_from_slice(format!(",\"answers\":[{}]", texts.join(",")).as_bytes());
    }
    let template = match &reaction.reply {
        Reply::Never | Reply::Several(_) => None,
        Reply::Once(template)
        | Reply::Twice(template)
        | Reply::AfterFences(_, template)
        | Reply::Odd { answer: template, .. } => Some(template),
    };
    if let Some(template) = template {
        out.extend_from_slice(b",\"answer\":");
        out.extend_from_slice(template.text().as_bytes());
    }
    match &reaction.reply {
        Reply::Once(_) | Reply::Several(_) => {}
        Reply::Twice(_) => out.extend_from_slice(b",\"twice\":true"),
        Reply::AfterFences(fences, _) => out.extend_from_slice(format!(",\"after\":{fences}").as_bytes()),
        Reply::Odd { departs, .. } => {
            out.extend_from_slice(b",\"departs\":");
            json::write_str(out, departs);
        }
        Reply::Never => out.extend_from_slice(b",\"never\":true"),
    }
    if let Some(times) = reaction.times {
        out.extend_from_slice(format!(",\"times\":{times}").as_bytes());
    }
    out.push(b'}');
}

const PROCESSES: [(&str, Process); 3] =
    [("tour", Process::Tour), ("own", Process::Own), ("bare", Process::Bare)];

fn process_name(process: Process) -> &'static str {
    PROCESSES.iter().find(|(_, known)| *known == process).map_or("own", |(name, _)| name)
}

fn read_header(root: Node<'_>) -> Result<Script, String> {
    only(root, &["script", "format", "process"])?;
    let name = root.get("script").and_then(|name| name.as_str());
    let name = name.ok_or("the first line is {\"script\":NAME,\"format\":1}")?;
    if name.is_empty() || !name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
        return Err(format!("{name:?} is no name of a script: a to z, 0 to 9 and - are in one"));
    }
    if root.get("format").and_then(|format| format.as_u64()) != Some(FORMAT) {
        return Err(format!("format is not {FORMAT}, the only one that this version reads"));
    }
    let process = match root.get("process").map(|process| process.as_str()) {
        None => Process::Own,
        Some(process) => PROCESSES
            .iter()
            .find(|(known, _)| process.as_deref() == Some(known))
            .map(|(_, process)| *process)
            .ok_or("process is \"own\", \"bare\" or \"tour\"")?,
    };
    Ok(Script { process, ..Script::new(&name) })
}

fn read_step(node: Node<'_>, depth: usize) -> Result<Step, String> {
    if depth > NESTING_MAX {
        return Err(format!("steps nest deeper than {NESTING_MAX}"));
    }
    let first = node.members().next();
    let Some((name, value)) = first else {
        return Err("a step is an object with one of its names first".to_owned());
    };
    if let Some(kind) = PLAIN.iter().find(|(plain, _)| *plain == name) {
        only(node, &[&*name])?;
        only(value, if name == "fence" { &["or"] } else { &[] })?;
        return Ok(match (&kind.1, value.get("or")) {
            (Step::Fence { .. }, Some(_)) => Step::Fence { or_end: true },
            (step, _) => step.clone(),
        });
    }
    if let Some((_, more)) = MEMBERS.iter().find(|(step, _)| *step == name) {
        let known: Vec<&str> = [&*name].into_iter().chain(more.iter().copied()).collect();
        only(node, &known)?;
    }
    let label = text(node, "as")?;
    let number =
        |node: Node<'_>| node.as_u64().ok_or_else(|| format!("{} is not a whole number", node.raw()));
    Ok(match &*name {
        "send" => Step::Send { label, frame: read_outgoing(value)? },
        "raw" | "tail" => {
            let departs = text(node, "departs")?
                .ok_or_else(|| format!("{name} says in \"departs\" what makes the frame wrong"))?;
            let frame = read_outgoing(value)?;
            match &*name {
                "raw" => Step::Raw { label, departs, frame },
                _ => Step::Tail { label, departs, frame },
            }
        }
        "cut" => {
            let at =
                value.elements().map(|at| number(at).map(|at| usize::try_from(at).unwrap_or(usize::MAX)));
            Step::Cut { at: at.collect::<Result<_, _>>()? }
        }
        "await" => Step::Await { frame: Pattern::read(value)?, within: read_within(node.get("within"))? },
        "ask" => Step::Ask {
            label: label.ok_or("ask says in \"as\" what it is called")?,
            what: Template::new(value.raw()),
        },
        "outcome" => Step::Outcome {
            of: value.as_str().ok_or("outcome names an ask")?.into_owned(),
            within: node.get("within").map(number).transpose()?,
            is: node.get("is").map(Pattern::read).transpose()?,
        },
        "guest" => {
            let time = node.get("time").map_or(Ok(1), number)?;
            Step::Guest {
                name: value.as_str().ok_or("guest is a name")?.into_owned(),
                time: u32::try_from(time).map_err(|_| "time is more than 2^32")?,
            }
        }
        "do" => Step::Do(orders::read(node)?),
        "repeat" => {
            let times = u32::try_from(number(value)?).map_err(|_| "repeat is more than 2^32")?;
            Step::Repeat { times, steps: read_steps(node, depth)? }
        }
        "each" => Step::Each {
            of: value.as_str().ok_or("each names a capture")?.into_owned(),
            name: label.ok_or("each says in \"as\" what an element is called")?,
            steps: read_steps(node, depth)?,
        },
        other => return Err(format!("{other:?} is no step")),
    })
}

/// What may stand in a step beside its name.
const MEMBERS: [(&str, &[&str]); 11] = [
    ("send", &["as"]),
    ("raw", &["as", "departs"]),
    ("tail", &["as", "departs"]),
    ("cut", &[]),
    ("await", &["within"]),
    ("ask", &["as"]),
    ("outcome", &["within", "is"]),
    ("guest", &["time"]),
    ("do", &["text", "code", "session"]),
    ("repeat", &["steps"]),
    ("each", &["as", "steps"]),
];

/// Refuses a member that nothing reads: it is likely to be a slip of the pen.
fn only(node: Node<'_>, known: &[&str]) -> Result<(), String> {
    let mut seen: Vec<String> = Vec::new();
    for (name, _) in node.members() {
        if !known.contains(&&*name) {
            let known = known.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "nothing".to_owned() } else { known };
            return Err(format!("{name:?} is not known here; there can be {known}"));
        }
        if seen.iter().any(|other| *other == name) {
            return Err(format!("{name:?} stands twice"));
        }
        seen.push(name.into_owned());
    }
    Ok(())
}

fn read_steps(node: Node<'_>, depth: usize) -> Result<Vec<Step>, String> {
    let steps = node.get("steps").filter(|steps| steps.kind() == Kind::Array);
    steps.ok_or("steps is an array")?.elements().map(|step| read_step(step, depth + 1)).collect()
}

fn read_within(node: Option<Node<'_>>) -> Result<Within, String> {
    let Some(node) = node else { return Ok(Within::Answer) };
    match (node.as_str().as_deref(), node.as_u64()) {
        (Some("answer"), _) => Ok(Within::Answer),
        (Some("start"), _) => Ok(Within::Start),
        (Some("silence"), _) => Ok(Within::Silence),
        (_, Some(millis)) => Ok(Within::Millis(millis)),
        _ => Err("within is \"answer\", \"start\", \"silence\" or a number of milliseconds".to_owned()),
    }
}

fn read_outgoing(node: Node<'_>) -> Result<Outgoing, String> {
    Ok(match transcript::read_payload(node).map_err(|fault| fault.to_string())? {
        Payload::Json(text) | Payload::Text(text) => Outgoing::Template(Template::new(text)),
        payload => Outgoing::Payload(payload),
    })
}

fn read_reaction(node: Node<'_>) -> Result<Reaction, String> {
    only(node, &["when", "guest", "answer", "answers", "never", "twice", "after", "departs", "times"])?;
    let when = Pattern::read(node.get("when").ok_or("a reaction begins with when")?)?;
    let number = |name: &str| {
        let node = node.get(name);
        node.map(|node| {
            node.as_u64().and_then(|value| u32::try_from(value).ok()).ok_or(format!("{name} is no number"))
        })
        .transpose()
    };
    let answer = node.get("answer").map(|answer| Template::new(answer.raw()));
    let several = node.get("answers").filter(|answers| answers.kind() == Kind::Array);
    let departs = text(node, "departs")?;
    let plain = answer.is_some() && ["twice", "after"].iter().all(|name| node.get(name).is_none());
    if departs.is_some() && !plain {
        return Err("departs goes with answer alone".to_owned());
    }
    let reply = match (answer, number("after")?) {
        (None, _) if several.is_some() => {
            let frames = several.into_iter().flat_map(Node::elements);
            Reply::Several(frames.map(|frame| Template::new(frame.raw())).collect())
        }
        (None, _) if node.get("never").is_some() => Reply::Never,
        (None, _) => return Err("a reaction has answer, answers or never".to_owned()),
        (Some(answer), Some(fences)) => Reply::AfterFences(fences, answer),
        (Some(answer), None) if node.get("twice").is_some() => Reply::Twice(answer),
        (Some(answer), None) => match departs {
            Some(departs) => Reply::Odd { departs, answer },
            None => Reply::Once(answer),
        },
    };
    Ok(Reaction { when, reply, times: number("times")?, guest: text(node, "guest")? })
}

fn text(node: Node<'_>, name: &str) -> Result<Option<String>, String> {
    let member = node.get(name);
    member.map(|it| it.as_str().map(Into::into).ok_or_else(|| format!("{name} is not a string"))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Order;

    #[test]
    fn every_step_and_reaction_comes_back_as_it_was() {
        let fill = Payload::Fill { head: "{\"a\":\"".into(), byte: b'x', count: 9, tail: "\"}".into() };
        let mut script = Script::new("all")
            .request("one", "m", r#"{"x":{"$capture":"c"}}"#)
            .raw("two", "no JSON", "{nope")
            .step(Step::Raw {
                label: None,
                departs: "bytes".into(),
                frame: Outgoing::Payload(Payload::Bytes(vec![255].into())),
            })
            .step(Step::Send { label: None, frame: Outgoing::Payload(fill) })
            .step(Step::Tail {
                label: Some("tail".into()),
                departs: "no line feed".into(),
                frame: Outgoing::Template(Template::new("{}")),
            })
            .step(Step::Cut { at: vec![1, 17] })
            .answer("one")
            .step(Step::Await {
                frame: Pattern::of(r#"{"a":[1,{"$type":"null"}]}"#).unwrap(),
                within: Within::Millis(5),
            })
            .step(Step::Await { frame: Pattern::Any, within: Within::Start })
            .step(Step::Await {
                frame: Pattern::of(r#"{"$either":[1,"x"]}"#).unwrap(),
                within: Within::Silence,
            })
            .fence()
            .step(Step::Fence { or_end: true })
            .quiet();
        for step in [Step::Settle, Step::Hold, Step::Release, Step::Close, Step::Exit, Step::Kill] {
            script = script.step(step);
        }
        for step in [
            Step::Greet,
            Step::Ask {
                label: "turn".into(),
                what: Template::new(r#"{"do":"turn","text":{"$capture":"c"}}"#),
            },
            Step::Outcome { of: "turn".into(), within: None, is: None },
            Step::Outcome {
                of: "turn".into(),
                within: Some(20_000),
                is: Some(Pattern::of(r#"{"blocked":{"$type":"string"}}"#).unwrap()),
            },
            Step::Guest { name: "one".into(), time: 1 },
            Step::Guest { name: "one".into(), time: 2 },
            Step::Linger,
            Step::Gone,
            Step::Alive,
        ] {
            script = script.step(step);
        }
        for order in [
            Order::Stderr("text".into()),
            Order::CloseInput,
            Order::Exit(3),
            Order::Abort,
            Order::IgnoreTerm,
            Order::Spawn { session: true },
            Order::Spawn { session: false },
            Order::Ping,
        ] {
            script = script.step(Step::Do(order));
        }
        let inner = vec![Step::Each { of: "list".into(), name: "e".into(), steps: vec![Step::Quiet] }];
        script = script.step(Step::Repeat { times: 3, steps: inner });
        let answer = Template::new(r#"{"id":{"$capture":"id"},"result":{}}"#);
        for (reply, times) in [
            (Reply::Once(answer.clone()), None),
            (Reply::Twice(answer.clone()), Some(1)),
            (Reply::AfterFences(2, answer.clone()), None),
            (Reply::Odd { departs: "a member too many".into(), answer }, None),
            (Reply::Never, Some(4)),
        ] {
            script.reactions.push(Reaction { when: Pattern::request("m"), reply, times, guest: None });
        }
        script.reactions.push(Reaction {
            when: Pattern::Any,
            reply: Reply::Several(vec![Template::new("{}"), Template::new("[1]")]),
            times: None,
            guest: Some("one".into()),
        });
        for process in [Process::Own, Process::Bare, Process::Tour] {
            script.process = process;
            assert_eq!(Script::read(script.write().as_bytes()).unwrap(), script);
        }
    }

    #[test]
    fn a_malformed_script_names_the_place_and_what_was_expected() {
        let head = "{\"script\":\"x\",\"format\":1}\n";
        for (text, expected) in [
            ("", "line 1: no {\"script\":NAME,\"format\":1}"),
            (
                "{\"script\":\"x\",\"format\":2}",
                "line 1: format is not 1, the only one that this version reads",
            ),
            (&format!("{head}\n{{\"sned\":{{}}}}"), "line 3: \"sned\" is no step"),
            (
                &format!("{head}{{\"raw\":{{\"json\":1}}}}"),
                "line 2: raw says in \"departs\" what makes the frame wrong",
            ),
            (
                &format!("{head}{{\"await\":{{}},\"witihn\":1}}"),
                "line 2: \"witihn\" is not known here; there can be \"await\", \"within\"",
            ),
            (&format!("{head}{{\"fence\":{{}},\"fence\":{{}}}}"), "line 2: \"fence\" stands twice"),
            (&format!("{head}{{\"when\":{{}}}}"), "line 2: a reaction has answer, answers or never"),
            (
                "{\"script\":\"../x\",\"format\":1}",
                "line 1: \"../x\" is no name of a script: a to z, 0 to 9 and - are in one",
            ),
            (
                "{\"script\":\"x\",\"format\":1,\"process\":\"two\"}",
                "line 1: process is \"own\", \"bare\" or \"tour\"",
            ),
        ] {
            assert_eq!(Script::read(text.as_bytes()).unwrap_err().to_string(), expected);
        }
        let fault = Script::read(format!("{head}{{\"quiet\":}}").as_bytes()).unwrap_err();
        assert_eq!((fault.line, fault.column), (2, Some(10)));
    }
}
