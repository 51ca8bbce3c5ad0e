//! What a host can do wrong with members: those that it writes, and those that it should not take.

use sidecert_proto::reasonix::contract;

use super::envelope::serves;
use super::{frame, misreads, silent};
use crate::{Flaw, Misdeed, Trigger};

pub(super) const FLAWS: &[Flaw] = &[
    frame(
        "host-writes-more-than-it-may",
        &["reasonix/host-members/members-fit"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Edit(r#""params":{}"#, r#""params":{"hello":true}"#),
    ),
    frame(
        "host-misspells-a-member",
        &["reasonix/host-members/members-fit", "reasonix/host-members/names-exact"],
        Trigger::Asks(contract::INITIALIZE),
        Misdeed::Edit(r#""uiHost""#, r#""UIHost""#),
    ),
    frame(
        "host-writes-fractions",
        &["reasonix/host-members/integers-written-plainly"],
        Trigger::Asks(contract::STREAM_OPEN),
        Misdeed::Edit(r#""maxTokens":4096"#, r#""maxTokens":4096.0"#),
    ),
    // ---- params ----
    serves(
        "host-serves-more-than-params",
        &["reasonix/host-members/unknown-refused"],
        r#"{"params":{"extra":1}}"#,
    ),
    serves(
        "host-needs-no-offset",
        &["reasonix/host-members/missing-refused"],
        r#"{"method":"host/content/read","params":{"contentRef":"sidecert-none","offset":{"$absent":true}}}"#,
    ),
    serves(
        "host-takes-null-for-nothing",
        &["reasonix/host-members/null-refused"],
        r#"{"method":"host/content/read","params":{"offset":null}}"#,
    ),
    serves(
        "host-shows-nothing",
        &["reasonix/host-members/null-payload-refused"],
        r#"{"method":"host/ui/publish","params":{"payload":null}}"#,
    ),
    serves(
        "host-reads-numbers-in-texts",
        &["reasonix/host-members/types-kept"],
        r#"{"method":"host/content/read","params":{"offset":"0"}}"#,
    ),
    serves(
        "host-looks-for-no-name",
        &["reasonix/host-members/empty-refused"],
        r#"{"method":"host/content/read","params":{"contentRef":""}}"#,
    ),
    serves(
        "host-looks-for-white-space",
        &["reasonix/host-members/blank-refused"],
        r#"{"method":"host/content/read","params":{"contentRef":"  "}}"#,
    ),
    silent("host-drops-exponents", &["reasonix/host-members/written-integers-only"], r#""offset":0e0"#),
    frame(
        "host-counts-generations-in-doubles",
        &["reasonix/host-members/generation-in-range"],
        Trigger::Reads("18446744073709551616"),
        Misdeed::Instead(r#"{"jsonrpc":"2.0","id":{"$capture":"id"},"result":{"accepted":false}}"#),
    ),
    silent("host-drops-other-letters", &["reasonix/host-members/letters-exact"], r#""OFFSET""#),
    // ---- what guests declare ----
    misreads(
        "host-opens-who-says-more",
        &["reasonix/host-members/declared-unknown-refused"],
        r#""stateSchemaVersion":1,"surplus":1"#,
        (r#","surplus":1"#, ""),
    ),
    misreads(
        "host-opens-who-has-no-state",
        &["reasonix/host-members/declared-missing-refused"],
        r#""version":"1.0.0"}"#,
        (r#""1.0.0"}"#, r#""1.0.0","stateSchemaVersion":1}"#),
    ),
    misreads(
        "host-opens-who-is-null",
        &["reasonix/host-members/declared-null-refused"],
        r#""name":null"#,
        (r#""name":null"#, r#""name":"x""#),
    ),
    misreads(
        "host-opens-who-has-no-name",
        &["reasonix/host-members/declared-empty-refused"],
        r#""name":""}"#,
        (r#""name":"""#, r#""name":"x""#),
    ),
    misreads(
        "host-opens-who-is-blank",
        &["reasonix/host-members/declared-blank-refused"],
        r#""name":"  ""#,
        ("  ", "x"),
    ),
    misreads(
        "host-offers-negative-windows",
        &["reasonix/host-members/declared-types-kept"],
        r#""model":"echo","contextWindow":-1"#,
        (r#""contextWindow":-1"#, r#""contextWindow":1"#),
    ),
    // ---- results ----
    misreads(
        "host-takes-more-than-results",
        &["reasonix/host-members/results-unknown-refused"],
        r#""decision":"continue","surplus":1"#,
        (r#","surplus":1"#, ""),
    ),
    misreads(
        "host-needs-no-decision",
        &["reasonix/host-members/results-missing-refused"],
        r#","result":{}}"#,
        (r#""result":{}"#, r#""result":{"decision":"continue"}"#),
    ),
    misreads(
        "host-needs-no-type-of-a-reason",
        &["reasonix/host-members/results-null-refused"],
        r#""reason":null"#,
        (r#""reason":null"#, r#""reason":"x""#),
    ),
    misreads(
        "host-takes-numbers-for-reasons",
        &["reasonix/host-members/results-types-kept"],
        r#""reason":7"#,
        (r#""reason":7"#, r#""reason":"7""#),
    ),
    misreads(
        "host-passes-over-other-letters",
        &["reasonix/host-members/results-letters-exact"],
        r#""Reason""#,
        (r#""block","Reason":"not on a sunday""#, r#""continue""#),
    ),
    misreads(
        "host-minds-no-replacement",
        &["reasonix/host-members/null-replacement-taken"],
        r#""decision":"continue","replacement":null"#,
        (r#""replacement":null"#, r#""replaced":null"#),
    ),
    misreads(
        "host-needs-no-parameters",
        &["reasonix/host-members/null-parameters-refused"],
        r#""parameters":null"#,
        (r#""parameters":null"#, r#""parameters":{}"#),
    ),
    misreads(
        "host-bears-grudges",
        &["reasonix/host-members/odd-results-contained"],
        r#""reason":"sidecert-after""#,
        (r#""continue""#, r#""perhaps""#),
    ),
    misreads(
        "host-takes-more-than-actions",
        &["reasonix/host-members/action-results-strict"],
        r#""message":null"#,
        (r#""message":null"#, r#""message":"x""#),
    ),
    // ---- chunks ----
    misreads(
        "host-shows-chunks-with-more",
        &["reasonix/host-members/chunks-unknown-dropped"],
        r#""text":"odd-","besides":1"#,
        (r#","besides":1"#, ""),
    ),
    misreads(
        "host-shows-chunks-of-no-type",
        &["reasonix/host-members/chunks-missing-dropped"],
        r#""chunk":{"text":"odd-"}"#,
        (r#"{"text""#, r#"{"type":"text","text""#),
    ),
    misreads(
        "host-shows-chunks-without-error",
        &["reasonix/host-members/chunks-null-dropped"],
        r#""text":"odd-","error":null"#,
        (r#","error":null"#, ""),
    ),
    misreads(
        "host-counts-chunks-from-zero",
        &["reasonix/host-members/chunks-minimums-kept"],
        r#""seq":0,"#,
        (r#""seq":0"#, r#""seq":2"#),
    ),
    misreads(
        "host-reads-fractions-badly",
        &["reasonix/host-members/chunks-integers-written"],
        r#""seq":2.0"#,
        (
            r#""seq":2.0,"chunk":{"type":"text","text":"odd-""#,
            r#""seq":2,"chunk":{"type":"text","text":"four-""#,
        ),
    ),
];
