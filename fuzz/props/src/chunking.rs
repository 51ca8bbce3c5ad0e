//! The deframer: lines do not depend on how a stream was cut.

use sidecert_proto::wire::{Deframer, Line, OVERSIZE_HEAD_BYTES};

use crate::draw::Draw;

/// What is seen of a stream that was given chunk by chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// The whole lines.
    pub lines: Vec<Vec<u8>>,
    /// The head of the line that was too long, and how many of its bytes had arrived.
    pub oversize: Option<(Vec<u8>, u64)>,
    /// What stands after the last LF.
    pub tail: Vec<u8>,
}

/// Reads a stream, the limit and chunks of which are drawn from `bytes`, whole and in chunks.
pub fn chunking(bytes: &[u8]) {
    if let Some(difference) = unlike(bytes, lines_of) {
        panic!("{difference}");
    }
}

/// What `deframe` makes of a stream that depends on how it is cut; `None` if nothing does.
pub fn unlike(bytes: &[u8], deframe: impl Fn(usize, &[&[u8]]) -> Cut) -> Option<String> {
    let mut draw = Draw::new(bytes);
    // Small limits find the edges; the large one shows what is kept of a line that is longer than its head.
    let limit = *draw.pick(&[8, 0, 1, 2, 3, 16, 64, OVERSIZE_HEAD_BYTES + 8]);
    let sizes: Vec<usize> = (0..4).map(|_| 1 + draw.below(24)).collect();
    let repeated = if limit > OVERSIZE_HEAD_BYTES { draw.below(2 * OVERSIZE_HEAD_BYTES) } else { 0 };
    let rest = bytes.get(8..).unwrap_or_default();
    let stream = [rest, &vec![b'x'; repeated], rest].concat();

    let whole = deframe(limit, &[&stream]);
    let mut chunks = Vec::new();
    let mut left = stream.as_slice();
    for size in sizes.into_iter().cycle() {
        if left.is_empty() {
            break;
        }
        let (chunk, after) = left.split_at(size.min(left.len()));
        chunks.push(chunk);
        left = after;
    }
    let cut = deframe(limit, &chunks);
    let difference = |what: &str| Some(format!("{what}, limit {limit}\nwhole: {whole:?}\n  cut: {cut:?}"));
    if whole.lines != cut.lines {
        return difference("other lines");
    }
    if whole.tail != cut.tail {
        return difference("another tail");
    }
    if whole.lines.iter().any(|line| line.len() > limit) {
        return difference("a line beyond the limit");
    }
    match (&whole.oversize, &cut.oversize) {
        (None, None) => {
            let joined = [whole.lines.join(&b'\n'), whole.tail.clone()].join(&b'\n');
            let read = if whole.lines.is_empty() { &joined[1..] } else { &joined[..] };
            if read == stream { None } else { difference("bytes lost or made up") }
        }
        // How much had arrived, and so how much of a short head is known, is all that the cut may change.
        (Some((head, seen)), Some((less, fewer))) => {
            let consistent = head.len() as u64 == (*seen).min(OVERSIZE_HEAD_BYTES as u64)
                && less.len() as u64 == (*fewer).min(OVERSIZE_HEAD_BYTES as u64)
                && fewer <= seen
                && *fewer > limit as u64
                && head.starts_with(less);
            if consistent { None } else { difference("another head") }
        }
        _ => difference("too long in one way only"),
    }
}

/// What our deframer makes of these chunks.
pub fn lines_of(limit: usize, chunks: &[&[u8]]) -> Cut {
    let mut deframer = Deframer::new(limit);
    let mut cut = Cut::default();
    for chunk in chunks {
        let mut lines = deframer.push(chunk);
        while let Some(line) = lines.next() {
            assert!(cut.oversize.is_none(), "a line after the one that was too long");
            match line {
                Line::Whole(line) => cut.lines.push(line.to_vec()),
                Line::Oversize { head, seen } => cut.oversize = Some((head.to_vec(), seen)),
            }
        }
    }
    assert_eq!(deframer.is_stopped(), cut.oversize.is_some());
    cut.tail = deframer.tail().to_vec();
    cut
}
