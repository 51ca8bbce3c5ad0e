//! Judging recordings that may have been: rehearsed ones, cut up, joined anew and mixed with what never belonged there.

use std::borrow::Cow;
use std::sync::LazyLock;

use sidecert_mocks::Mock;
use sidecert_proto::contract::Side;
use sidecert_proto::judge::Judged;
use sidecert_proto::log::Log;
use sidecert_proto::machine::Exited;
use sidecert_proto::reasonix::guest::Features;
use sidecert_proto::transcript::{self, End, Event, Frame, Kind, Payload, Record, Wait, Writer};
use sidecert_proto::verdict::{Profile, Verdict};

use crate::draw::Draw;
use crate::encoding;
use crate::stage::{STAGES, Stage};

/// Longer lines of rehearsals are left out: they say nothing that a shorter one does not, and cost time.
const LINE_BYTES_MAX: usize = 2048;
/// A little more than a frame may hold on the stage.
const FILL_BYTES_MAX: u64 = 17_000;
/// How many events a drawn recording has at most.
const EVENTS_MAX: usize = 128;

/// Judges `bytes` as a recording, and one that is drawn from them, under every suite; logs as well.
pub fn judging(bytes: &[u8]) {
    for stage in STAGES.iter() {
        if bytes.starts_with(b"{\"transcript\"") {
            judged_alike(stage, Profile::default(), bytes);
        }
        if bytes.starts_with(b"{\"dir\"") {
            read_alike(stage, bytes);
        }
    }
    let mut draw = Draw::new(bytes);
    let profile = if draw.flag() { Profile::Specified } else { Profile::Reference };
    let recording = Recording::draw(&mut draw);
    for stage in STAGES.iter() {
        let text = recording.text();
        let before = judged_alike(stage, profile, &text);
        read_alike(stage, &recording.log());
        if draw.flag() {
            let end = draw.below(text.len().min(1 << 16));
            judged_alike(stage, profile, &text[..end]);
        }
        let mut longer = recording.clone();
        longer.lines.push(what_may_follow(&mut draw, &recording));
        let after = judged_alike(stage, profile, &longer.text());
        for ((row, was), (_, is)) in before.verdicts.iter().zip(&after.verdicts) {
            let healed = matches!(was, Verdict::Fail(_)) && !matches!(is, Verdict::Fail(_));
            let last = longer.lines.last().map(|line| String::from_utf8_lossy(line)).unwrap_or_default();
            assert!(!healed, "{} {}: {was:?}\nis healed by {last}\nto {is:?}", stage.suite.name, row.id);
        }
    }
}

/// Judges `text` twice, at once and in pieces.
fn judged_alike(stage: &Stage, profile: Profile, text: &[u8]) -> Judged {
    let setting = stage.setting(true, 7);
    let judged = stage.judge(setting, profile, &[text], usize::MAX);
    let again = stage.judge(setting, profile, &[text], 100);
    let lines = text.split(|byte| *byte == b'\n').count() as u64;
    for ((row, verdict), (_, same)) in judged.verdicts.iter().zip(&again.verdicts) {
        assert_eq!(verdict, same, "{} {} is judged in two ways", stage.suite.name, row.id);
        if let Verdict::Fail(broken) | Verdict::Warn(broken) = verdict {
            // The first line is the header.
            assert!(
                broken.at.process == 0 && broken.at.event + 1 < lines,
                "{}: {broken:?} of {lines}",
                row.id
            );
        }
    }
    let rest = |judged: &Judged| {
        format!("{:?} {:?} {:?} {:?}", judged.ours, judged.cause, judged.faults, judged.processes)
    };
    assert_eq!(rest(&judged), rest(&again));
    judged
}

/// Reads `log` at once and in pieces, and judges what it is made of.
fn read_alike(stage: &Stage, log: &[u8]) {
    let read = |piece: usize| {
        let mut reader = Log::new("000", stage.suite, &stage.contract);
        let read = log.chunks(piece).try_for_each(|chunk| reader.read(chunk));
        let read = read.and_then(|()| reader.finish());
        (std::mem::take(reader.transcript()), read)
    };
    let made = read(log.len().max(1));
    assert_eq!(made, read(100));
    judged_alike(stage, Profile::default(), &made.0);
}

/// The same line, at a time that is not before `latest`: out of order, nothing more is read.
fn in_order(line: &[u8], latest: &mut u64) -> Vec<u8> {
    let Some(rest) = line.strip_prefix(b"{\"t\":") else { return line.to_vec() };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let time: Option<u64> = std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse().ok());
    let Some(time) = time else { return line.to_vec() };
    *latest = time.max(*latest);
    [format!("{{\"t\":{latest}").as_bytes(), &rest[digits..]].concat()
}

/// The recording of one process.
#[derive(Clone, Debug, Default)]
struct Recording {
    /// The events, a line each, without LF.
    lines: Vec<Vec<u8>>,
    footer: Option<End>,
}

impl Recording {
    fn text(&self) -> Vec<u8> {
        let mut writer = Writer::new("000");
        let mut latest = 0;
        for line in &self.lines {
            writer.text.extend(in_order(line, &mut latest));
            writer.text.push(b'\n');
        }
        if let Some(end) = self.footer {
            writer.record(&Record::Footer { end, events: self.lines.len() as u64 });
        }
        writer.text
    }

    /// The frames of it as a log of somebody else's, and what is no frame as it stands.
    fn log(&self) -> Vec<u8> {
        let mut log = Vec::new();
        for line in &self.lines {
            match transcript::read(line) {
                Ok(Record::Event(Event {
                    kind: Kind::Frame(Frame { from, payload: Payload::Json(text), .. }),
                    ..
                })) => {
                    let dir = if from == Side::Host { "host->guest" } else { "guest->host" };
                    log.extend(format!("{{\"dir\":\"{dir}\",\"frame\":{text}}}").into_bytes());
                }
                Ok(Record::Event(_)) => continue,
                _ => log.extend_from_slice(line),
            }
            log.push(b'\n');
        }
        log
    }

    /// Parts of rehearsals, with things between them.
    fn draw(draw: &mut Draw<'_>) -> Self {
        let footer = draw.optional(|draw| *draw.pick(&[End::Done, End::Cut, End::Interrupted]));
        let mut source = draw.pick(&REHEARSED);
        let mut from = 0;
        let mut lines = Vec::new();
        while !draw.is_spent() && lines.len() < EVENTS_MAX {
            match draw.below(10) {
                0..4 => {
                    let to = (from + 1 + draw.below(32)).min(source.len());
                    lines.extend_from_slice(&source[from..to]);
                    from = to;
                }
                4 => from = (from + 1 + draw.below(8)).min(source.len()),
                5 => {
                    source = draw.pick(&REHEARSED);
                    from = draw.below(source.len());
                }
                6 => lines.push(line(&encoding::event(draw, FILL_BYTES_MAX))),
                7 => lines.push(line(&Event { t: 0, link: 0, kind: marker(draw) })),
                8 => lines.push(line(&Event { t: 0, link: 0, kind: frame(draw, Side::Guest, None) })),
                _ => {
                    if let Some(line) = source.get(from) {
                        lines.push(bent(draw, line));
                        from += 1;
                    }
                }
            }
        }
        Self { lines, footer }
    }

    fn has(&self, test: impl Fn(&Kind<'_>) -> bool) -> bool {
        self.lines.iter().any(|line| match transcript::read(line) {
            Ok(Record::Event(event)) => test(&event.kind),
            _ => false,
        })
    }
}

/// The events of rehearsals, process by process, against a mock without flaws.
static REHEARSED: LazyLock<Vec<Vec<Vec<u8>>>> = LazyLock::new(|| {
    let rehearsals = STAGES.iter().flat_map(|stage| {
        let mut target = || -> Box<dyn sidecert_proto::machine::Machine> {
            Box::new(Mock::guest(stage.suite, &stage.contract, Features::default(), None))
        };
        stage.rehearse(stage.setting(true, 7), false, &mut target)
    });
    let events = |recording: Vec<u8>| {
        let lines = recording.split(|byte| *byte == b'\n');
        let events = lines.filter(|line| matches!(transcript::read(line), Ok(Record::Event(_))));
        events.filter(|line| line.len() <= LINE_BYTES_MAX).map(<[u8]>::to_vec).collect()
    };
    rehearsals.map(events).collect()
});

/// What a recorder could write next: what it never writes is listed here, and does heal failures.
///
/// - A label is used once in a script. Judges look at the last frame of a label: a second one would be another
///   question, not yet answered.
/// - Nothing comes from a guest whose output has ended.
fn what_may_follow(draw: &mut Draw<'_>, recording: &Recording) -> Vec<u8> {
    let gone = recording.has(|kind| matches!(kind, Kind::Closed { from: Side::Guest } | Kind::Exited(_)));
    let kind = match draw.below(4) {
        0 if !gone => frame(draw, Side::Guest, None),
        1 => frame(draw, Side::Host, Some(Cow::Borrowed("never used before"))),
        2 => marker(draw),
        _ => encoding::event(draw, FILL_BYTES_MAX).kind,
    };
    let kind = match kind {
        Kind::Frame(Frame { from: Side::Guest, .. }) if gone => Kind::Killed,
        Kind::Frame(Frame { from: Side::Guest, payload, .. }) => {
            Kind::Frame(Frame { from: Side::Guest, label: None, departs: None, open: false, payload })
        }
        Kind::Frame(Frame { from, departs, payload, .. }) => {
            Kind::Frame(Frame { from, label: None, departs, open: false, payload })
        }
        Kind::Wrote { parts, .. } => Kind::Wrote { label: None, parts },
        Kind::Unknown(_) => Kind::Broken,
        other => other,
    };
    line(&Event { t: u64::from(u32::MAX), link: 0, kind })
}

fn line(event: &Event<'_>) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.event(event);
    writer.text.pop();
    writer.text
}

/// The beginning or end of a script, of a link or of the process.
fn marker(draw: &mut Draw<'_>) -> Kind<'static> {
    let stage = &STAGES[0];
    let mut names = vec![stage.suite.opening.name, stage.suite.closing.name];
    names.extend(stage.suite.scripts(stage.suite.rows(Side::Guest)).iter().map(|script| script.name));
    let script = Cow::Borrowed(*draw.pick(&names));
    match draw.below(7) {
        0 => Kind::Begin { script },
        1 => Kind::Ended { script, cut: None },
        2 => Kind::Ended { script, cut: Some(Cow::Borrowed("it could not go on")) },
        3 => Kind::Closed { from: *draw.pick(&[Side::Guest, Side::Host]) },
        4 => {
            Kind::Exited(*draw.pick(&[Exited::Code(0), Exited::Code(1), Exited::Signal(9), Exited::Unknown]))
        }
        5 => {
            let wait = *draw.pick(&[Wait::Start, Wait::Answer, Wait::Fence, Wait::Quiet, Wait::Exit]);
            Kind::Waited { wait, label: None, took: draw.number(), within: draw.number() }
        }
        _ => {
            let label = draw.optional(|draw| Cow::Borrowed(*draw.pick(&["shutdown", "initialize", "fence"])));
            Kind::TimedOut { wait: *draw.pick(&[Wait::Exit, Wait::Answer]), label, within: draw.number() }
        }
    }
}

/// A frame that one of the sides might write, fit or unfit.
fn frame(draw: &mut Draw<'_>, from: Side, label: Option<Cow<'static, str>>) -> Kind<'static> {
    let id = *draw.pick(&["1", "2", "3", "4", "null", "\"sidecert\"", "1.0", "9000001", "9000002", "77"]);
    let methods: Vec<&str> = STAGES[0].contract.methods.keys().map(String::as_str).collect();
    let method = *draw.pick(&methods);
    let json = match draw.below(6) {
        0 => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, draw.json()),
        1 => {
            let code = *draw.pick(&["-32600", "-32601", "-32602", "-32603", "-32700", "-32000", "1.0"]);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no"}}}}"#)
        }
        2 => format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{}}}"#, draw.json()),
        3 => format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{}}}"#, draw.json()),
        4 => {
            let offset = draw.number();
            let params = format!(r#"{{"contentRef":"sidecert","offset":{offset}}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"host/content/read","params":{params}}}"#)
        }
        _ => {
            return Kind::Frame(Frame {
                from,
                label,
                departs: None,
                open: false,
                payload: encoding::payload(draw, FILL_BYTES_MAX),
            });
        }
    };
    Kind::Frame(Frame { from, label, departs: None, open: false, payload: Payload::Json(Cow::Owned(json)) })
}

/// A line of a rehearsal with one thing in it changed.
fn bent(draw: &mut Draw<'_>, line: &[u8]) -> Vec<u8> {
    const CHANGES: &[(&str, &str)] = &[
        ("\"from\":\"guest\"", "\"from\":\"host\""),
        ("\"from\":\"host\"", "\"from\":\"guest\""),
        ("\"result\":", "\"error\":"),
        ("\"jsonrpc\":\"2.0\",", ""),
        ("\"id\":1", "\"id\":2"),
        ("\"id\":", "\"id\":9"),
        ("\"id\":", "\"params\":"),
        ("\"method\":", "\"id\":3,\"method\":"),
        ("{\"t\":", "{\"t\":9999999"),
        (":1,", ":1.0,"),
        ("\"as\":", "\"departs\":"),
        ("continue", "Continue"),
        ("true", "1"),
    ];
    let (find, replace) = draw.pick(CHANGES);
    String::from_utf8_lossy(line).replacen(find, replace, 1 + draw.below(2)).into_bytes()
}
