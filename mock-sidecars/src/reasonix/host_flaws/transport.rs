//! What a host can do wrong with lines and frames.

use sidecert_proto::reasonix::contract;

use super::{frame, manner};
use crate::{Flaw, Misdeed, Trigger};

pub(super) const FLAWS: &[Flaw] = &[
    frame(
        "host-writes-text",
        &["reasonix/host-transport/only-frames"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Also("ready"),
    ),
    frame(
        "host-forgets-the-version",
        &["reasonix/host-transport/frames-well-formed"],
        Trigger::Asks(contract::PROVIDER_CATALOG),
        Misdeed::Edit(r#""jsonrpc":"2.0""#, r#""jsonrpc":"2""#),
    ),
    manner("host-asks-under-text", &["reasonix/host-transport/own-ids-integers"], |it| {
        it.frames.ids_as_text = true;
    }),
    frame(
        "host-sends-params-in-a-list",
        &["reasonix/host-transport/params-objects"],
        Trigger::Asks(contract::INITIALIZED),
        Misdeed::Edit(r#""params":{}"#, r#""params":[]"#),
    ),
    manner("host-passes-over-text", &["reasonix/host-transport/text-refused"], |it| {
        it.frames.answers_malformed = false;
    }),
    manner("host-serves-unknown-methods", &["reasonix/host-transport/unknown-method-refused"], |it| {
        it.frames.serves_unknown = true;
    }),
];
