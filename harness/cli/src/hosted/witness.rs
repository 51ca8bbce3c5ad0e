//! A host that tells what passes on each of its links, and keeps its own link to itself.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;

use serde_json::Value;
use sidecert_mocks::MockHost;
use sidecert_proto::machine::{Action, Input, LinkId, Machine, Micros};
use sidecert_proto::wire::{Deframer, Line};

use super::Frame;

/// How much of what passes is told, in bytes: a sidecar that floods its host does not fill the memory of a test.
const TOLD_BYTES_MAX: usize = 64 << 20;
/// The longest line of the host on its own link, in bytes.
const OWN_LINE_BYTES_MAX: usize = 64 << 20;

/// Something that was heard of the host.
#[derive(Debug)]
pub(super) enum Heard {
    /// What it says on its own link.
    Line(Value),
    /// What passed between it and the sidecar.
    Frame(Frame),
}

/// The host, and who is told.
pub(super) struct Witness<'c> {
    host: MockHost<'c>,
    line_bytes_max: usize,
    tell: Sender<Heard>,
    own: Deframer,
    /// What the host writes and reads on each link.
    lines: BTreeMap<LinkId, (Deframer, Deframer)>,
    told_bytes: usize,
}

impl<'c> Witness<'c> {
    pub(super) fn new(host: MockHost<'c>, line_bytes_max: usize, tell: Sender<Heard>) -> Self {
        let own = Deframer::new(OWN_LINE_BYTES_MAX);
        Self { host, line_bytes_max, tell, own, lines: BTreeMap::new(), told_bytes: 0 }
    }

    /// Tells what passes on the link of the sidecar.
    fn passes(&mut self, link: LinkId, of_sidecar: bool, bytes: &[u8]) {
        let most = self.line_bytes_max;
        let (written, read) =
            self.lines.entry(link).or_insert_with(|| (Deframer::new(most), Deframer::new(most)));
        let mut lines = if of_sidecar { read } else { written }.push(bytes);
        while let Some(line) = lines.next() {
            let Line::Whole(line) = line else { continue };
            self.told_bytes += line.len();
            if self.told_bytes <= TOLD_BYTES_MAX {
                let text = String::from_utf8_lossy(line).into_owned();
                // If nobody listens any more, the host is about to end.
                let _ = self.tell.send(Heard::Frame(Frame { of_sidecar, launch: link, text }));
            }
        }
    }

    /// Tells what the host says on its own link.
    fn says(&mut self, bytes: &[u8]) {
        let mut lines = self.own.push(bytes);
        while let Some(line) = lines.next() {
            if let Line::Whole(line) = line
                && let Ok(line) = serde_json::from_slice(line)
            {
                let _ = self.tell.send(Heard::Line(line));
            }
        }
    }
}

impl Machine for Witness<'_> {
    fn handle(&mut self, link: LinkId, input: Input<'_>, now: Micros) {
        if let (Input::Bytes(bytes), true) = (&input, link != 0) {
            self.passes(link, true, bytes);
        }
        self.host.handle(link, input, now);
    }

    fn poll(&mut self, now: Micros) -> Option<Action> {
        loop {
            match self.host.poll(now)? {
                Action::Write { link: 0, bytes, .. } => self.says(&bytes),
                action => {
                    if let Action::Write { link, bytes, .. } = &action {
                        self.passes(*link, false, bytes);
                    }
                    return Some(action);
                }
            }
        }
    }

    fn deadline(&self) -> Option<Micros> {
        self.host.deadline()
    }
}
