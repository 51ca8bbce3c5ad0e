//! How fast a recording, and a log of others, is judged, with every rule of the suite on, and whether memory grows with it.
//!
//! `cargo bench -p sidecert-cases`. The mix: 40 % stream chunks, 30 % intercepts and answers, 15 % events, 10 %
//! publishes and answers, 5 % content pages; 450 bytes a frame in the mean. Beside it, in the same run, what reading the
//! bytes costs at the least: a search for line feeds, and one scan of every frame.
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark is told the time, and tells it"
)]

use std::time::Instant;

use sidecert_cases::reasonix::V1;
use sidecert_proto::contract::Side;
use sidecert_proto::json::{Slots, Tape};
use sidecert_proto::judge::Judge;
use sidecert_proto::log::Log;
use sidecert_proto::script::Setting;
use sidecert_proto::transcript::{Event, Frame, Kind, Payload, Writer, read_plain};
use sidecert_proto::verdict::Profile;

/// How many rounds of the mix (20 frames each) a recording has.
const ROUNDS: u64 = 20_000;
/// How much is read at once, in bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// Of several tries the best one counts: the machine may be busy with something else.
const TRIES: usize = 5;

fn main() {
    let (recording, frames, bytes) = recording();
    println!("{frames} frames, {} MB, {} bytes a frame", bytes / 1_000_000, bytes / frames);
    let lines = best(|| memchr_lines(&recording));
    told("line feeds", lines, frames, bytes, lines);
    let scanned = best(|| scan(&recording));
    told("scan", scanned, frames, bytes, scanned);
    let judged = best(|| judge(&recording, 1));
    told("judge", judged, frames, bytes, scanned);
    let log = log(&recording);
    let foreign = best(|| judge_log(&log, 1));
    told("of a log", foreign, frames, bytes, scanned);
    let before = resident_kib();
    judge(&recording, 10);
    println!("ten times as long a recording takes {} KiB more memory", resident_kib().saturating_sub(before));
    let before = resident_kib();
    judge_log(&log, 10);
    println!("ten times as long a log takes {} KiB more memory", resident_kib().saturating_sub(before));
}

fn best(run: impl Fn()) -> f64 {
    let time = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..TRIES).map(time).fold(f64::INFINITY, f64::min)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn told(what: &str, seconds: f64, frames: u64, bytes: u64, floor: f64) {
    let (rate, volume) = (frames as f64 / seconds / 1e6, bytes as f64 / seconds / 1e6);
    println!("{what:>10}: {rate:6.2} M frames/s, {volume:7.0} MB/s, {:5.2} × scan", seconds / floor);
}

fn memchr_lines(recording: &[u8]) {
    let mut deframer = sidecert_proto::wire::Deframer::new(1 << 20);
    let mut count = 0;
    for chunk in recording.chunks(CHUNK_BYTES) {
        let mut lines = deframer.push(chunk);
        while lines.next().is_some() {
            count += 1;
        }
    }
    assert!(count > 0);
}

fn scan(recording: &[u8]) {
    let mut spare = Slots::default();
    for line in recording.split(|byte| *byte == b'\n') {
        if let Some(plain) = read_plain(line) {
            spare = match Tape::scan_in(plain.text, spare) {
                Ok(tape) => tape.into_spare(),
                Err((_, spare)) => spare,
            };
        }
    }
}

fn judge(recording: &[u8], times: usize) {
    let selected = V1.rows(Side::Guest).map(|row| row.id.to_owned()).collect();
    let setting = Setting::plain((V1.contract)());
    let mut judge = Judge::new(&V1, Side::Guest, Profile::Reference, setting, &selected);
    judge.begin("bench");
    // A longer recording is the same one again and again, between one header and one footer.
    let (head, rest) =
        recording.split_at(recording.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    judge.read(head);
    for _ in 0..times {
        for chunk in rest.chunks(CHUNK_BYTES) {
            judge.read(chunk);
        }
    }
    let judged = judge.finish();
    assert!(judged.ours.is_empty(), "{:?}", judged.ours);
    assert!(judged.faults.iter().all(|fault| fault.says.contains("footer")), "{:?}", judged.faults);
    assert!(
        !judged
            .verdicts
            .iter()
            .any(|(_, verdict)| matches!(verdict, sidecert_proto::verdict::Verdict::Fail(_)))
    );
}

/// The same conversation as somebody else would have kept it: the handshake, and what follows.
fn log(recording: &[u8]) -> [Vec<u8>; 2] {
    let mut parts = [Vec::new(), Vec::new()];
    let plain = recording.split(|byte| *byte == b'\n').filter_map(read_plain);
    for (place, plain) in plain.enumerate() {
        let dir = if plain.from == Side::Host { "host->guest" } else { "guest->host" };
        let part = &mut parts[usize::from(place >= HANDSHAKE.len())];
        part.extend(format!("{{\"dir\":\"{dir}\",\"frame\":").into_bytes());
        part.extend(plain.text);
        part.extend(b"}\n");
    }
    parts
}

/// Judges a log in which what follows the handshake stands several times.
fn judge_log(log: &[Vec<u8>; 2], times: usize) {
    let selected = V1.rows(Side::Guest).map(|row| row.id.to_owned()).collect();
    let setting = Setting::plain((V1.contract)());
    let mut judge = Judge::new(&V1, Side::Guest, Profile::Reference, setting, &selected).foreign();
    judge.begin("bench");
    let mut reader = Log::new("bench", &V1, (V1.contract)());
    let [handshake, rest] = log;
    let all = rest.chunks(CHUNK_BYTES).cycle().take(rest.len().div_ceil(CHUNK_BYTES) * times);
    for chunk in [handshake.as_slice()].into_iter().chain(all) {
        if let Err(fault) = reader.read(chunk) {
            panic!("{fault}");
        }
        judge.read(reader.transcript());
        reader.transcript().clear();
    }
    if let Err(fault) = reader.finish() {
        panic!("{fault}");
    }
    judge.read(reader.transcript());
    let judged = judge.finish();
    assert!(judged.faults.is_empty(), "{:?}", judged.faults);
    assert!(judged.ours.is_empty(), "{:?}", judged.ours);
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

/// A recording of the mix; how many frames it has, and how many bytes they are.
fn recording() -> (Vec<u8>, u64, u64) {
    let mut writer = Writer::new("bench");
    let (mut frames, mut bytes) = (0, 0);
    let mut frame = |from: Side, text: &str, writer: &mut Writer| {
        frames += 1;
        bytes += text.len() as u64;
        let payload = Payload::Json(text.into());
        writer.event(&Event {
            // Always the same: a recording is read several times here, and its time never goes back.
            t: 1_000_000,
            link: 0,
            kind: Kind::Frame(Frame { from, label: None, departs: None, open: false, payload }),
        });
    };
    for text in HANDSHAKE {
        frame(text.0, text.1, &mut writer);
    }
    for round in 0..ROUNDS {
        for text in mix(round) {
            frame(text.0, &text.1, &mut writer);
        }
    }
    (writer.text, frames, bytes)
}

/// What a connection begins with; a guest that spoke before it would be found out.
const HANDSHAKE: [(Side, &str); 3] = [
    (
        Side::Host,
        r#"{"jsonrpc":"2.0","id":900000000000,"method":"extension/initialize","params":{"protocolId":"reasonix.extension.v1","protocolVersion":"1","manifest":{},"session":{"sessionId":"boot-1","workspaceRoot":"/","generation":1},"capabilities":{"contentRefs":true,"uiHost":"headless","protocolVersion":"1"}}}"#,
    ),
    (
        Side::Guest,
        r#"{"jsonrpc":"2.0","id":900000000000,"result":{"protocolVersion":"1","name":"bench","version":"1","stateSchemaVersion":1}}"#,
    ),
    (Side::Host, r#"{"jsonrpc":"2.0","method":"extension/initialized","params":{}}"#),
];

/// Twenty frames.
fn mix(round: u64) -> Vec<(Side, String)> {
    use Side::{Guest, Host};
    let mut frames = Vec::new();
    let id = |place: u64| round * 8 + place + 1;
    for place in 0..8 {
        let seq = round * 8 + place + 1;
        let text = "The quick brown fox jumps over the lazy dog. ".repeat(3);
        frames.push((Guest, format!(r#"{{"jsonrpc":"2.0","method":"extension/provider/stream/chunk","params":{{"streamId":"es_0123456789abcdef01234567","seq":{seq},"chunk":{{"type":"text","text":"{text}"}}}}}}"#)));
    }
    for place in 0..3 {
        let id = id(place);
        let arguments = r#"{\"path\":\"src/main.rs\",\"offset\":1,\"limit\":400}"#.repeat(4);
        frames.push((Host, format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"extension/intercept","params":{{"event":"tool.before","payload":{{"name":"read_file","arguments":"{arguments}"}},"seq":{id},"timeoutMillis":5000}}}}"#)));
        let reason = "nothing here that would have to be stopped ".repeat(8);
        frames.push((
            Guest,
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"decision":"continue","reason":"{reason}"}}}}"#
            ),
        ));
    }
    for _ in 0..3 {
        let text = "a line of what the tool printed\\n".repeat(10);
        frames.push((Host, format!(r#"{{"jsonrpc":"2.0","method":"extension/event","params":{{"event":"tool.after","payload":{{"name":"bash","arguments":"{{}}","result":"{text}","isError":false}}}}}}"#)));
    }
    let surface = "**Progress** of what is going on, in some words. ".repeat(6);
    frames.push((Guest, format!(r#"{{"jsonrpc":"2.0","id":{round},"method":"host/ui/publish","params":{{"surfaceId":"progress","kind":"card","payload":{{"title":"Progress","markdown":"{surface}","progress":0.5}},"sessionId":"boot-1","generation":1}}}}"#)));
    frames.push((Host, format!(r#"{{"jsonrpc":"2.0","id":{round},"result":{{"accepted":true}}}}"#)));
    let page = "QUJD".repeat(380);
    frames.push((Host, format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{"contentRef":"content_0123456789abcdef01234567","dataBase64":"{page}","encoding":"utf8","offset":0,"sha256":"{}","totalBytes":1140}}}}"#, 1_000_000_000_000 + round, "0".repeat(64))));
    frames
}
