//! What a host can do wrong with lines.

use sidecert_proto::reasonix::contract;

use super::{frame, manner};
use crate::{Flaw, Misdeed, Trigger};

/// What is said of a content that is gone, to who asked under the id that stands here.
const EXPIRED_TWO: &str = r#"{"jsonrpc":"2.0","id":700001,"error":{"code":-32000,"message":"gone","data":{"reason":"content_ref_expired","retryable":true}}}"#;
const EXPIRED_INDENTED: &str = r#"{"jsonrpc":"2.0","id":700003,"error":{"code":-32000,"message":"gone","data":{"reason":"content_ref_expired","retryable":true}}}"#;

pub(super) const FLAWS: &[Flaw] = &[
    frame(
        "host-writes-text",
        &["reasonix/host-transport/only-frames"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Also("ready"),
    ),
    manner("host-writes-too-much", &["reasonix/host-transport/frames-within-limit"], |it| {
        it.frames.writes_too_large = true;
    }),
    frame(
        "host-takes-each-read-for-a-frame",
        &["reasonix/host-transport/frames-end-at-line-feed"],
        Trigger::Always,
        Misdeed::ByReads,
    ),
    frame(
        "host-ends-lines-at-separators",
        &["reasonix/host-transport/line-separators-no-line-ends"],
        Trigger::Always,
        Misdeed::EndsLinesAt("\u{2028}"),
    ),
    manner("host-minds-white-space", &["reasonix/host-transport/white-space-around-ignored"], |it| {
        it.frames.trims = false;
    }),
    manner("host-refuses-blank-lines", &["reasonix/host-transport/blank-lines-ignored"], |it| {
        it.frames.answers_blank = true;
    }),
    frame(
        "host-passes-over-text",
        &["reasonix/host-transport/text-refused"],
        Trigger::Reads("hello"),
        Misdeed::Silence,
    ),
    frame(
        "host-passes-over-control-characters",
        &["reasonix/host-transport/control-characters-refused"],
        Trigger::Reads("\u{1}"),
        Misdeed::Silence,
    ),
    frame(
        "host-reads-the-first-of-two-documents",
        &["reasonix/host-transport/two-documents-refused"],
        Trigger::Reads("700001"),
        Misdeed::Instead(EXPIRED_TWO),
    ),
    frame(
        "host-joins-lines",
        &["reasonix/host-transport/indented-refused"],
        Trigger::Reads("700003"),
        Misdeed::Also(EXPIRED_INDENTED),
    ),
    frame(
        "host-skips-byte-order-marks",
        &["reasonix/host-transport/byte-order-mark-refused"],
        Trigger::Reads("\u{feff}"),
        Misdeed::Silence,
    ),
    frame(
        "host-drops-half-a-character",
        &["reasonix/host-transport/odd-text-survived"],
        Trigger::Reads("\\ud800"),
        Misdeed::Silence,
    ),
    manner("host-nests-shallow", &["reasonix/host-transport/deep-nesting-survived"], |it| {
        it.frames.depth_max = 1_000;
    }),
    frame(
        "host-is-deaf-after-noise",
        &["reasonix/host-transport/noise-loses-no-answer"],
        Trigger::Reads("a log line"),
        Misdeed::Deaf,
    ),
    manner(
        "host-reads-standard-error",
        &[
            "reasonix/host-transport/standard-error-no-protocol",
            "reasonix/host-transport/standard-error-before-handshake",
            "reasonix/host-envelope/answers-what-was-asked",
        ],
        |it| it.frames.reads_stderr = true,
    ),
    manner("host-drops-the-last-line", &["reasonix/host-transport/unended-answer-counts"], |it| {
        it.frames.takes_unended = false;
    }),
    manner("host-leaves-standard-error", &["reasonix/host-transport/standard-error-drained"], |it| {
        it.frames.drains_stderr = false;
    }),
    manner("host-has-a-smaller-limit", &["reasonix/host-transport/largest-frame-read"], |it| {
        it.frames.limit_hundredths = 99;
    }),
    manner(
        "host-has-a-larger-limit",
        &[
            "reasonix/host-transport/oversized-frame-ends-connection",
            "reasonix/host-transport/oversized-frame-unanswered",
            "reasonix/host-transport/oversized-answer-fails-its-call",
            "reasonix/host-transport/line-feed-counts",
            "reasonix/host-transport/limit-needs-no-line-feed",
        ],
        |it| it.frames.limit_hundredths = 200,
    ),
    manner("host-answers-what-is-too-long", &["reasonix/host-transport/oversized-frame-unanswered"], |it| {
        it.frames.refuses_oversize = true;
    }),
    frame(
        "host-waits-for-the-line-feed",
        &["reasonix/host-transport/limit-needs-no-line-feed"],
        Trigger::Always,
        Misdeed::Patient,
    ),
];
