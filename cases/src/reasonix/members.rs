//! "Transport": members of params and results, which are decoded strictly.

use sidecert_proto::contract::Side::Guest;
use sidecert_proto::reasonix::contract::{self, point};
use sidecert_proto::reasonix::{content, sample, session};
use sidecert_proto::requirement::Check::{After, Always, Unobservable};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, must};
use sidecert_proto::script::{Process, Script, ScriptDef, Setting};

use serde_json::{Value, json};

use super::sights::{
    BAD_PARAMS, IGNORED, SERVED, UNKNOWN, VIOLATION, all_became, all_with_prefix, became, oddities, request,
    sdk, specified,
};
use super::{HANDSHAKE, KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};

const TRANSPORT: Cite = Cite::Seed("传输", "Transport");
const DEFS: Cite = Cite::Schema("/$defs");

/// Refused; a guest without the feature behind a method may not know the method at all.
const STRICT: &[Accepts] = &[specified(BAD_PARAMS), specified(UNKNOWN)];
/// The same, where the SDK takes what the schema refuses.
const STRICT_BUT_SDK: &[Accepts] =
    &[specified(BAD_PARAMS), specified(UNKNOWN), specified(VIOLATION), sdk(SERVED)];
const STRICT_OBSERVED: &[Accepts] = &[sdk(BAD_PARAMS), specified(UNKNOWN)];
const IGNORED_BY_SDK: &[Accepts] = &[sdk(IGNORED)];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/members/members-fit", Guest)
        .says(
            "Params and results have the members of their definition, with values that fit, and no others.",
            &[TRANSPORT, DEFS],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::MEMBERS_FIT.guest, &HANDSHAKE)),
    must("reasonix/members/names-exact", Guest)
        .says("Members are written in the letters of their definition: decision, not Decision.", &[TRANSPORT, DEFS])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::NAMES_EXACT.guest, &HANDSHAKE)),
    must("reasonix/members/integers-written-plainly", Guest)
        .says("An integer is written without fraction and exponent: 1, not 1.0.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::INTEGERS_WRITTEN.guest, &HANDSHAKE)),
    must("reasonix/members/unknown-refused", Guest)
        .says("Params with a member that their definition does not have are refused.", &[TRANSPORT, DEFS])
        .accepts(STRICT)
        .checked(After(&UNKNOWN_MEMBERS, |x| all_with_prefix(x, "x in ", STRICT))),
    must("reasonix/members/unknown-deep-refused", Guest)
        .says("So are params with such a member further down.", &[TRANSPORT, DEFS])
        .accepts(STRICT)
        .checked(After(&UNKNOWN_MEMBERS, |x| became(x, "deep x in externalized"))),
    must("reasonix/members/missing-refused", Guest)
        .says("Params that lack a member which their definition requires are refused.", &[TRANSPORT, DEFS])
        .accepts(STRICT_BUT_SDK)
        .checked(After(&MISSING_MEMBERS, |x| all_with_prefix(x, "without ", STRICT_BUT_SDK))),
    must("reasonix/members/null-refused", Guest)
        .says("A member of a type is not null, not even an optional one.", &[TRANSPORT, DEFS])
        .accepts(STRICT_BUT_SDK)
        .checked(After(&NULL_MEMBERS, |x| all_with_prefix(x, "null ", STRICT_BUT_SDK))),
    must("reasonix/members/null-payload-accepted", Guest)
        .says("A payload may be null, as any other JSON value.", &[Cite::Schema("/$defs/InterceptParams/properties/payload")])
        .accepts(&[specified(SERVED)])
        .checked(After(&NULL_PAYLOAD, |x| became(x, "null-payload"))),
    must("reasonix/members/empty-refused", Guest)
        .says("A text that its definition wants filled is not empty.", &[TRANSPORT, DEFS])
        .accepts(STRICT_BUT_SDK)
        .checked(After(&EMPTY_MEMBERS, |x| all_with_prefix(x, "empty ", STRICT_BUT_SDK))),
    must("reasonix/members/blank-refused", Guest)
        .says("A name of nothing but white space is no name.", &[])
        .accepts(STRICT_OBSERVED)
        .checked(After(&EMPTY_MEMBERS, |x| all_with_prefix(x, "blank ", STRICT_OBSERVED))),
    must("reasonix/members/enums-closed", Guest)
        .says("A value that its definition does not list is refused.", &[TRANSPORT, Cite::Schema("/interceptEvents")])
        .accepts(STRICT)
        .checked(After(&ODD_VALUES, |x| became(x, "unknown event"))),
    must("reasonix/members/minimums-kept", Guest)
        .says("A number below the minimum of its definition is refused.", &[Cite::Schema("/$defs/InterceptParams")])
        .accepts(STRICT)
        .checked(After(&ODD_VALUES, |x| all_became(x, ["seq 0", "negative timeoutMillis"], STRICT))),
    must("reasonix/members/types-kept", Guest)
        .says("An argument of an action that is no text is refused.", &[Cite::Schema("/$defs/UIActionParams/properties/args")])
        .accepts(STRICT)
        .checked(After(&ODD_VALUES, |x| became(x, "number in args"))),
    must("reasonix/members/bad-observations-ignored", Guest)
        .says("An observation whose params are wrong is passed over.", &[Cite::JsonRpc("4.1 Notification")])
        .accepts(&[specified(IGNORED)])
        .checked(After(&BAD_OBSERVATIONS, |x| all_with_prefix(x, "bad ", &[specified(IGNORED)]))),
    must("reasonix/members/changed-resources-listed", Guest)
        .says("A notification of changed resources whose paths are null is passed over, and the next one is taken.", &[])
        .accepts(IGNORED_BY_SDK)
        .checked(After(&BAD_OBSERVATIONS, |x| all_became(x, ["null paths", "good paths"], IGNORED_BY_SDK))),
    must("reasonix/members/additions-tolerated", Guest)
        .says("A member that a later schema of the same major version adds is tolerated.", &[Cite::Seed("稳定性契约", "Stability contract")])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Unobservable(
            "the specification lets members be added and has unknown ones refused: a guest can do only one, so neither is judged here",
        )),
];

/// The methods that are safe to ask for with params that are wrong: where a guest takes them, nothing happens.
fn harmless<'s>(setting: &Setting<'s>) -> impl Iterator<Item = &'s str> {
    // A stream that a guest opens all the same may cost money; those are asked for where streams are exercised.
    sample::methods(setting.contract).filter(|method| *method != contract::STREAM_OPEN)
}

/// A script that sends each of these params, and says what makes them wrong.
pub(super) fn sent(name: &str, frames: impl IntoIterator<Item = (String, String, String, Value)>) -> Script {
    let frames: Vec<(String, String, String)> = frames
        .into_iter()
        .map(|(label, departs, method, params)| {
            let frame = request(&label, &method, &params.to_string());
            (label, departs, frame)
        })
        .collect();
    oddities(name, frames.iter().map(|(label, departs, frame)| (&**label, &**departs, frame.clone())))
}

/// Sends params with a member too many, to every method.
static UNKNOWN_MEMBERS: ScriptDef = ScriptDef {
    name: "unknown-members",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let shallow = harmless(setting).map(|method| {
            let mut params = sample::params(setting, method);
            params["x"] = json!(1);
            (format!("x in {method}"), "it has a member x".to_owned(), method.to_owned(), params)
        });
        let object = content::sample(setting.contract, setting.seed);
        let mut descriptor: Value = serde_json::from_str(&object.descriptor("/payload")).unwrap_or_default();
        descriptor["x"] = json!(1);
        let mut params = sample::params(setting, contract::INTERCEPT);
        params["payload"] = Value::Null;
        params["externalized"] = json!([descriptor]);
        let deep = (
            "deep x in externalized".to_owned(),
            "its descriptor has a member x".to_owned(),
            contract::INTERCEPT.to_owned(),
            params,
        );
        sent("unknown-members", shallow.chain([deep]))
    },
};

/// Sends params with a member too few, one for each that is required.
static MISSING_MEMBERS: ScriptDef = ScriptDef {
    name: "missing-members",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let frames = harmless(setting).flat_map(|method| {
            let whole = sample::params(setting, method);
            let names: Vec<String> =
                whole.as_object().into_iter().flat_map(|it| it.keys().cloned()).collect();
            names.into_iter().map(move |name| {
                let mut params = whole.clone();
                params.as_object_mut().map(|members| members.remove(&name));
                (format!("without {name} in {method}"), format!("it lacks {name}"), method.to_owned(), params)
            })
        });
        sent("missing-members", frames.collect::<Vec<_>>())
    },
};

/// Sends params with null where a type is asked for.
static NULL_MEMBERS: ScriptDef = ScriptDef {
    name: "null-members",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let frames = harmless(setting).flat_map(|method| {
            let whole = sample::params(setting, method);
            let names: Vec<String> = whole
                .as_object()
                .into_iter()
                .flatten()
                // Whatever has no type of its own may be null.
                .filter(|(name, value)| !matches!(name.as_str(), "payload" | "arguments") && !value.is_null())
                .map(|(name, _)| name.clone())
                .collect();
            names.into_iter().map(move |name| {
                let mut params = whole.clone();
                params[&name] = Value::Null;
                (format!("null {name} in {method}"), format!("{name} is null"), method.to_owned(), params)
            })
        });
        sent("null-members", frames.collect::<Vec<_>>())
    },
};

/// Sends an intercept whose payload is null.
static NULL_PAYLOAD: ScriptDef = ScriptDef {
    name: "null-payload",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let mut params = sample::params(setting, contract::INTERCEPT);
        params["payload"] = Value::Null;
        Script::new("null-payload")
            .request("null-payload", contract::INTERCEPT, &params.to_string())
            .fence()
            .settle()
    },
};

/// Sends params with a name that is empty, or blank.
static EMPTY_MEMBERS: ScriptDef = ScriptDef {
    name: "empty-members",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let mut frames = Vec::new();
        for method in harmless(setting) {
            let whole = sample::params(setting, method);
            // What is a sample's own name stands where the definition wants a filled text.
            for (name, _) in
                whole.as_object().into_iter().flatten().filter(|(_, value)| *value == sample::NOTHING)
            {
                for (how, text) in [("empty", ""), ("blank", "  ")] {
                    let mut params = whole.clone();
                    params[name] = text.into();
                    let label = format!("{how} {name} in {method}");
                    frames.push((label, format!("{name} is {how}"), method.to_owned(), params));
                }
            }
        }
        sent("empty-members", frames)
    },
};

/// Sends values that their definitions do not allow.
static ODD_VALUES: ScriptDef = ScriptDef {
    name: "odd-values",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let edited = |label: &str, departs: &str, method: &str, name: &str, value: Value| {
            let mut params = sample::params(setting, method);
            params[name] = value;
            (label.to_owned(), departs.to_owned(), method.to_owned(), params)
        };
        let intercept = contract::INTERCEPT;
        sent(
            "odd-values",
            [
                edited(
                    "unknown event",
                    "there is no such event",
                    intercept,
                    "event",
                    "session.started".into(),
                ),
                edited("seq 0", "seq begins at 1", intercept, "seq", 0.into()),
                edited(
                    "negative timeoutMillis",
                    "timeoutMillis is negative",
                    intercept,
                    "timeoutMillis",
                    (-1).into(),
                ),
                edited(
                    "number in args",
                    "an argument is no text",
                    contract::UI_ACTION,
                    "args",
                    json!({"a": 1}),
                ),
            ],
        )
    },
};

/// Tells the guest things that it must pass over.
static BAD_OBSERVATIONS: ScriptDef = ScriptDef {
    name: "bad-observations",
    process: Process::Tour,
    needs: &[],
    build: |_| {
        let tell = |method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
        };
        let event = point::SESSION_START;
        oddities(
            "bad-observations",
            [
                (
                    "bad event",
                    "there is no such event",
                    tell(contract::EVENT, r#"{"event":"x","payload":{}}"#),
                ),
                (
                    "bad payload",
                    "it has no payload",
                    tell(contract::EVENT, &format!(r#"{{"event":"{event}"}}"#)),
                ),
                (
                    "bad member",
                    "it has a member x",
                    tell(contract::EVENT, &format!(r#"{{"event":"{event}","payload":{{}},"x":1}}"#)),
                ),
                ("null paths", "its paths are null", tell(contract::RESOURCES_CHANGED, r#"{"paths":null}"#)),
                (
                    "good paths",
                    "it follows a wrong one",
                    tell(contract::RESOURCES_CHANGED, r#"{"paths":["a"]}"#),
                ),
            ],
        )
        .quiet()
    },
};
