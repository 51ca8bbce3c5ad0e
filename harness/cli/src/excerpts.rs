//! What a reader must see of a recording: the few frames around each place that a verdict names, and around each place
//! where a script was cut short.
//!
//! The request that a guilty answer belongs to, and a frame of ours that is wrong on purpose, are shown however far
//! back they are; what only says that bytes went through is left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, Read};

use sidecert_proto::contract::Side;
use sidecert_proto::transcript::{self, Event, Kind, LINE_BYTES_MAX, Record};
use sidecert_proto::verdict::At;
use sidecert_proto::wire::{Deframer, Line};
use sidecert_reports::{Frame, Origin};

use crate::words::{Labelled, Reading, Told};

/// How much of a recording is read at once, in bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// How many events before and after a place an excerpt shows.
const BEFORE: usize = 4;
const AFTER: usize = 2;
/// How much of a frame is shown, in bytes. The one that matters is shown whole if it is not too long.
const FRAME_BYTES: usize = 400;
const WHOLE_BYTES: usize = 1_200;

/// What was found in the recordings of a run.
pub(crate) struct Excerpts {
    /// Who was under test.
    target: Side,
    around: BTreeMap<At, Excerpt>,
    /// Where scripts were cut short, process by process.
    pub(crate) cuts: Vec<Cut>,
    killed: BTreeSet<usize>,
}

/// What stands around a place.
#[derive(Default)]
pub(crate) struct Excerpt {
    /// The script that was being played.
    pub(crate) script: String,
    pub(crate) frames: Vec<Frame>,
}

/// A script that could not be played to its end.
pub(crate) struct Cut {
    pub(crate) at: At,
    pub(crate) script: String,
    /// Why, as it is recorded.
    pub(crate) recorded: String,
    /// Why, in the words of reports.
    pub(crate) actual: String,
    /// The frame of ours that was not answered, or not as it should be.
    pub(crate) awaited: Option<Labelled>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) how: How,
    /// What the target had written in this process.
    pub(crate) heard: Heard,
}

/// What cut a script short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// A time limit.
    TimedOut,
    /// The end of the target, or of its output.
    Ended,
    /// What the target said.
    Said,
    /// Anything else, the user above all.
    Other,
}

/// What a target has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Heard {
    /// Nothing at all.
    Nothing,
    /// Frames only.
    Frames,
    /// Something that is no JSON.
    Noise,
    /// A frame of ours.
    Echo,
}

impl Excerpts {
    /// What will be found where `target` is under test.
    pub(crate) fn of(target: Side) -> Self {
        Self { target, around: BTreeMap::new(), cuts: Vec::new(), killed: BTreeSet::new() }
    }

    /// What stands around a place.
    pub(crate) fn around(&self, at: &At) -> Option<&Excerpt> {
        self.around.get(at)
    }

    /// Whether sidecert ended a process.
    pub(crate) fn was_killed(&self, process: usize) -> bool {
        self.killed.contains(&process)
    }

    /// Reads the recording of a process, and keeps what stands around these places.
    pub(crate) fn read(
        &mut self,
        process: usize,
        places: BTreeSet<u64>,
        file: &mut impl Read,
    ) -> io::Result<()> {
        let mut around = Around {
            process,
            places,
            reading: Reading::new(self.target),
            target: self.target,
            event: 0,
            before: VecDeque::new(),
            on_purpose: None,
            last: None,
            sent: VecDeque::new(),
            how: How::Other,
            heard: Heard::Nothing,
            open: Vec::new(),
            found: self,
        };
        let mut deframer = Deframer::new(LINE_BYTES_MAX);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                return Ok(());
            }
            let mut lines = deframer.push(&chunk[..read]);
            while let Some(line) = lines.next() {
                if let Line::Whole(line) = line
                    && let Ok(Record::Event(event)) = transcript::read(line)
                {
                    around.event(&event);
                }
            }
        }
    }
}

/// Gathers what stands around places of one recording.
struct Around<'a> {
    target: Side,
    process: usize,
    places: BTreeSet<u64>,
    reading: Reading,
    event: u64,
    before: VecDeque<Frame>,
    /// The last frame of ours in this script that is wrong on purpose.
    on_purpose: Option<Frame>,
    /// What last happened that can have cut a script short.
    last: Option<Told>,
    /// The last frames of ours.
    sent: VecDeque<(String, u64)>,
    how: How,
    heard: Heard,
    /// The excerpts that still take what comes after, and how much of it.
    open: Vec<(At, usize)>,
    found: &'a mut Excerpts,
}

impl Around<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let place = self.event;
        self.event += 1;
        let marked = self.places.contains(&place);
        let told = self.reading.read(event, WHOLE_BYTES);
        let shown = if marked { as_marked(&told.frame) } else { shortened(&told.frame) };
        match &event.kind {
            // What another script did explains nothing here.
            Kind::Begin { .. } => {
                self.on_purpose = None;
                self.before.clear();
            }
            Kind::Frame(frame) if frame.departs.is_some() => self.on_purpose = Some(shown.clone()),
            Kind::Killed => drop(self.found.killed.insert(self.process)),
            Kind::Ended { script, cut: Some(cut) } => self.cut(place, script, cut),
            Kind::Ended { cut: None, .. } => self.open.clear(),
            _ => {}
        }
        self.hear(&event.kind, &told);
        let at = At { process: self.process, event: place };
        if marked {
            let frames = self.excerpt(told.concerns.as_ref(), &shown);
            self.found.around.insert(at.clone(), Excerpt { script: told.script.clone(), frames });
            self.open.push((at, AFTER));
        } else if is_telling(&event.kind) {
            for (at, _) in &self.open {
                if let Some(excerpt) = self.found.around.get_mut(at) {
                    excerpt.frames.push(shown.clone());
                }
            }
            self.open.iter_mut().for_each(|(_, more)| *more -= 1);
            self.open.retain(|(_, more)| *more > 0);
        }
        if marked || is_telling(&event.kind) {
            if self.before.len() == BEFORE {
                self.before.pop_front();
            }
            self.before.push_back(Frame { marked: false, ..shown });
        }
        let how = how(self.target, &event.kind);
        if how != How::Other {
            (self.how, self.last) = (how, Some(told));
        }
    }

    /// What came before, what it concerns, and the frame itself, in order.
    fn excerpt(&self, concerns: Option<&Frame>, marked: &Frame) -> Vec<Frame> {
        let far = concerns.into_iter().chain(&self.on_purpose);
        let mut frames: BTreeMap<u64, Frame> =
            far.chain(&self.before).map(|frame| (frame.event, shortened(frame))).collect();
        frames.insert(marked.event, marked.clone());
        frames.into_values().collect()
    }

    fn cut(&mut self, place: u64, script: &str, cut: &str) {
        let (actual, awaited) = self.reading.cause(cut);
        let awaited = awaited.cloned();
        let frames = match &self.last {
            Some(last) => {
                let asked = last.concerns.as_ref().or(awaited.as_ref().map(|awaited| &awaited.frame));
                self.excerpt(asked, &as_marked(&last.frame))
            }
            None => self.before.iter().cloned().collect(),
        };
        // Where nothing of what can cut a script short came before, it was something outside.
        let how = if awaited.is_none() && self.how != How::Ended { How::Other } else { self.how };
        self.found.cuts.push(Cut {
            at: At {
                process: self.process,
                event: self.last.as_ref().map_or(place, |last| last.frame.event),
            },
            script: script.to_owned(),
            recorded: cut.to_owned(),
            actual,
            awaited,
            frames,
            how,
            heard: self.heard,
        });
    }

    fn hear(&mut self, kind: &Kind<'_>, told: &Told) {
        if !matches!(kind, Kind::Frame(_) | Kind::Oversize { .. } | Kind::Tail { .. }) {
            return;
        }
        let frame = (told.frame.text.clone(), told.frame.bytes);
        if told.frame.target {
            let heard = match kind {
                Kind::Frame(_) if self.sent.contains(&frame) => Heard::Echo,
                Kind::Frame(_) if !told.noise => Heard::Frames,
                _ => Heard::Noise,
            };
            self.heard = self.heard.max(heard);
        } else if told.frame.from != Origin::Event {
            if self.sent.len() == BEFORE {
                self.sent.pop_front();
            }
            self.sent.push_back(frame);
        }
    }
}

/// What an excerpt shows: not that bytes went through, nor what stands elsewhere in a report.
fn is_telling(kind: &Kind<'_>) -> bool {
    !matches!(kind, Kind::Wrote { .. } | Kind::Waited { .. } | Kind::Stderr { .. } | Kind::Ended { .. })
}

fn how(target: Side, kind: &Kind<'_>) -> How {
    match kind {
        Kind::TimedOut { .. } => How::TimedOut,
        Kind::Exited(_) | Kind::Broken => How::Ended,
        Kind::Closed { from } if *from == target => How::Ended,
        Kind::Frame(frame) if frame.from == target => How::Said,
        Kind::Oversize { .. } | Kind::Tail { .. } => How::Said,
        _ => How::Other,
    }
}

fn as_marked(frame: &Frame) -> Frame {
    let whole = frame.bytes <= WHOLE_BYTES as u64;
    Frame { marked: true, ..if whole { frame.clone() } else { shortened(frame) } }
}

fn shortened(frame: &Frame) -> Frame {
    if frame.text.len() <= FRAME_BYTES {
        return frame.clone();
    }
    let end = (0..=FRAME_BYTES).rev().find(|at| frame.text.is_char_boundary(*at)).unwrap_or_default();
    Frame { text: format!("{}{}", &frame.text[..end], sidecert_reports::safe::CUT), ..frame.clone() }
}
