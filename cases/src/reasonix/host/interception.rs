//! "Interception", as a host must do it: whom it asks, in which order, for how long, and what it makes of a ruling.
//!
//! Turns are told apart by what the user says in them. Where a guest must not answer yet, the script holds the intercept
//! and answers it itself, behind a fence: whatever the host did meanwhile is in the record before that answer.

use sidecert_proto::contract::Side::Host;
use sidecert_proto::exchange::{Entry, Exchange, short};
use sidecert_proto::json::Node;
use sidecert_proto::reasonix::contract::{self, Limits, point};
use sidecert_proto::reasonix::plugin::Plugin;
use sidecert_proto::reasonix::session;
use sidecert_proto::requirement::Check::{After, Always};
use sidecert_proto::requirement::{Accepts, Cite, Requirement, Seen, must};
use sidecert_proto::script::{Need, Process, Reply, ScriptDef};
use sidecert_proto::transcript::{Told, Wait};
use sidecert_proto::verdict::{Sight, Why};

use super::super::{KEPT_AS_OBSERVED, KEPT_AS_SPECIFIED};
use super::rulings::{
    BLOCK, BLOCK_REASON, CONTINUE, HURRY, all_came, answer, asked_behind, asks_at, came, context_of,
    denied_by_host, does, errs_on, holds, input, is_to, judged, model_heard, not_provoked, odd_ruling,
    opened, ran_as, replace, rules_on, span, stopped, tour, wants_tool,
};
use super::{
    BLOCKED, DONE, FAILED, ONE, TURN, ask, awaits, intercept, observed, outcome, request, say, says,
    session as begin, session_with, specified, stop, streams, turn,
};

pub(super) const INTERCEPTION: Cite = Cite::Seed("拦截", "Interception");

const LOWER_FIRST: Seen = Seen("the lower priority was asked first");
const BY_NAME: Seen = Seen("of equal priorities, the first by name was asked first");
const SERIAL: Seen = Seen("the next one was asked when the one before had answered");
const PASSED_ON: Seen = Seen("the next one was given what the one before had made of it");
const UNCHANGED: Seen = Seen("the payload went on unchanged");
const NOBODY_ELSE: Seen = Seen("nobody else was asked");
const REASON_TOLD: Seen = Seen("the user was told the reason");
const WARNED_ONCE: Seen = Seen("the user was warned once");
const WARNED_BY_KIND: Seen =
    Seen("warned once of calls that fail, and once of rulings that break the contract");
pub(super) const RAN: Seen = Seen("the tool ran");
pub(super) const DID_NOT_RUN: Seen = Seen("the tool did not run");
const TOLD: Seen = Seen("it was told");
const ASKED: Seen = Seen("the guest was asked at each of these points");
const NOT_ASKED: Seen = Seen("the guest was asked at none of these points");
const SHORT_TIME: Seen = Seen("5,000 ms");
pub(super) const LONG_TIME: Seen = Seen("30,000 ms");
const MANIFEST_TIME: Seen = Seen("the time that the manifest says, at every point");
const WAITED: Seen = Seen("nothing of it was done before the answer");
const ONLY_ONCE: Seen = Seen("it was in this request and nowhere else");
const KEPT: Seen = Seen("the conversation goes on with it");
const MEMBER: Seen = Seen("it was asked at a point of its manifest to which it had not subscribed");

/// It does not go on: whether a driver can tell the two apart is up to what its host tells.
const NO_GO: &[Accepts] = &[specified(BLOCKED), specified(FAILED)];
const NO_GO_OBSERVED: &[Accepts] = &[observed(BLOCKED), observed(FAILED)];
pub(super) const FAILS: &[Accepts] = &[specified(FAILED)];
pub(super) const FAILS_OBSERVED: &[Accepts] = &[observed(FAILED)];
const GOES_ON: &[Accepts] = &[specified(DONE)];
const GOES_ON_OBSERVED: &[Accepts] = &[observed(DONE)];
/// The released host checks fewer of its own definitions than it has.
const FAILS_OR_PASSES: &[Accepts] = &[specified(FAILED), observed(DONE)];

/// Points that every host was seen to ask its guests at.
pub(super) const WIRED: [&str; 8] = [
    point::INPUT_RECEIVE,
    point::AGENT_BEFORE_START,
    point::CONTEXT_PREPARE,
    point::PROVIDER_REQUEST,
    point::PROVIDER_RESPONSE,
    point::TOOL_BEFORE,
    point::PERMISSION_DECISION,
    point::TOOL_AFTER,
];
/// Points at which the released host asks owners of slots only.
pub(super) const OWNERS_ONLY: [&str; 5] = [
    point::SYSTEM_PROMPT_BUILD,
    point::FRONTEND_EVENT,
    point::SESSION_START,
    point::SESSION_SAVE,
    point::SESSION_END,
];
/// The same without the one that a host that saves nothing never comes to.
const ASKED_ALWAYS: [&str; 4] =
    [point::SYSTEM_PROMPT_BUILD, point::FRONTEND_EVENT, point::SESSION_START, point::SESSION_END];
const SHORT_POINTS: [&str; 4] =
    [point::INPUT_RECEIVE, point::TOOL_BEFORE, point::TOOL_AFTER, point::PERMISSION_DECISION];
const LONG_POINTS: [&str; 5] = [
    point::CONTEXT_PREPARE,
    point::SYSTEM_PROMPT_BUILD,
    point::SESSION_START,
    point::SESSION_SAVE,
    point::SESSION_END,
];
const OTHER_POINTS: [&str; 4] =
    [point::PROVIDER_REQUEST, point::PROVIDER_RESPONSE, point::AGENT_BEFORE_START, point::FRONTEND_EVENT];

pub(super) const COMPACTION_POINTS: [&str; 2] = [point::COMPACTION_PREPARE, point::COMPACTION_COMPLETE];

pub(super) const ROWS: &[Requirement] = &[
    must("reasonix/host-interception/sequence-counted", Host)
        .says("The numbers of intercepts rise, on each connection by itself.", &[])
        .accepts(KEPT_AS_OBSERVED)
        .checked(Always(&session::SEQUENCE_COUNTED, &CHAIN)),
    must("reasonix/host-interception/lower-priority-first", Host)
        .says("Of two guests at a point, the one with the lower priority is asked first.", &[INTERCEPTION])
        .accepts(&[specified(LOWER_FIRST)])
        .checked(After(&CHAIN, |x| asked_in_order(x, "plain", "two", ONE, LOWER_FIRST))),
    must("reasonix/host-interception/equal-priorities-by-name", Host)
        .says("Guests with the same priority are asked in the order of their names.", &[INTERCEPTION])
        .accepts(&[specified(BY_NAME)])
        .checked(After(&CHAIN, |x| asked_in_order(x, "plain", "three", "two", BY_NAME))),
    must("reasonix/host-interception/one-after-the-other", Host)
        .says("A guest is asked only when the one before it has answered.", &[INTERCEPTION])
        .accepts(&[specified(SERIAL)])
        .checked(After(&CHAIN, one_after_the_other)),
    must("reasonix/host-interception/replacement-passed-on", Host)
        .says("A guest is given the payload as those before it have replaced it.", &[INTERCEPTION])
        .accepts(&[specified(PASSED_ON)])
        .checked(After(&CHAIN, replacement_passed_on)),
    must("reasonix/host-interception/continue-keeps-payload", Host)
        .says("A guest that continues changes nothing, whatever else its ruling has in it.", &[INTERCEPTION])
        .accepts(&[specified(UNCHANGED)])
        .checked(After(&CHAIN, |x| model_heard(x, "kept", "sidecert-keep", UNCHANGED))),
    must("reasonix/host-interception/block-stops", Host)
        .says("What a guest blocks does not go on.", &[INTERCEPTION])
        .accepts(NO_GO)
        .checked(After(&CHAIN, |x| stopped(x, "blocked"))),
    must("reasonix/host-interception/block-ends-chain", Host)
        .says("Once a guest has blocked, no other is asked.", &[])
        .accepts(&[observed(NOBODY_ELSE)])
        .checked(After(&CHAIN, |x| nobody_else(x, "blocked", "three", point::INPUT_RECEIVE))),
    must("reasonix/host-interception/block-needs-no-reason", Host)
        .says("A guest may block without a reason.", &[])
        .accepts(NO_GO_OBSERVED)
        .checked(After(&CHAIN, |x| stopped(x, "mute"))),
    must("reasonix/host-interception/block-reason-told", Host)
        .says("The user is told the reason for which a guest has blocked something.", &[INTERCEPTION])
        .accepts(&[specified(REASON_TOLD)])
        .checked(After(&CONTEXT, reason_told)),
    must("reasonix/host-interception/time-kept", Host)
        .says("A guest that does not answer in its time holds nothing up any longer.", &[INTERCEPTION])
        .accepts(FAILS)
        .checked(After(&LATE, time_kept)),
    must("reasonix/host-interception/required-failure-fails", Host)
        .says("Where a required guest fails at a point, so does what passes it.", &[INTERCEPTION])
        .accepts(FAILS)
        .checked(After(&REQUIRED, |x| came(x, "error"))),
    must("reasonix/host-interception/allow-only-for-permissions", Host)
        .says("To allow something where no permission is asked for is a fault of the guest.", &[INTERCEPTION])
        .accepts(FAILS)
        .checked(After(&REQUIRED, |x| came(x, "allow"))),
    must("reasonix/host-interception/deny-only-for-permissions", Host)
        .says("To deny something where no permission is asked for denies nothing.", &[INTERCEPTION])
        .accepts(GOES_ON)
        .checked(After(&OPTIONAL, |x| came(x, "deny"))),
    must("reasonix/host-interception/replacements-checked", Host)
        .says("What a guest puts in the place of a payload is checked before it is used.", &[INTERCEPTION])
        .accepts(FAILS)
        .checked(After(&REQUIRED, |x| all_came(x, &["more", "type", "empty"], FAILS))),
    must("reasonix/host-interception/bad-replacement-not-used", Host)
        .says("A replacement that does not fit leaves the payload as it was.", &[INTERCEPTION])
        .accepts(&[specified(UNCHANGED)])
        .checked(After(&OPTIONAL, |x| model_heard(x, "misfit", "sidecert-misfit", UNCHANGED))),
    must("reasonix/host-interception/replacement-demanded", Host)
        .says("A guest that replaces must say with what.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&REQUIRED, |x| all_came(x, &["without", "null"], FAILS_OBSERVED))),
    must("reasonix/host-interception/schema-binds-replacements", Host)
        .says(
            "A replacement that breaks the published definitions of its members is not used.",
            &[INTERCEPTION, Cite::Schema("/$defs/ProviderRequest"), Cite::Schema("/$defs/ProviderUsage")],
        )
        .accepts(FAILS_OR_PASSES)
        .checked(After(&CONTEXT, schema_binds)),
    must("reasonix/host-interception/odd-rulings-contained", Host)
        .says("A ruling that is none is a fault at its point, and the connection goes on.", &[])
        .accepts(GOES_ON_OBSERVED)
        .checked(After(&OPTIONAL, |x| all_came(x, &["decision", "member", "after"], GOES_ON_OBSERVED))),
    must("reasonix/host-interception/odd-rulings-fail", Host)
        .says("A ruling of a required guest that is none lets nothing pass.", &[])
        .accepts(FAILS_OBSERVED)
        .checked(After(&REQUIRED, |x| all_came(x, &["decision", "member"], FAILS_OBSERVED))),
    must("reasonix/host-interception/optional-failure-skipped", Host)
        .says("Where an optional guest fails at a point, things go on without it.", &[INTERCEPTION])
        .accepts(GOES_ON)
        .checked(After(&OPTIONAL, |x| all_came(x, &["late", "later", "error"], GOES_ON))),
    must("reasonix/host-interception/optional-warned-once", Host)
        .says("The user is warned of an optional guest that fails, once.", &[INTERCEPTION])
        .accepts(&[specified(WARNED_ONCE), observed(WARNED_BY_KIND)])
        .checked(After(&OPTIONAL, warned_once)),
    must("reasonix/host-interception/allow-prevails", Host)
        .says("A guest can allow a tool that the host itself denies.", &[INTERCEPTION])
        .accepts(&[specified(RAN)])
        .checked(After(&HOST_DENIES, |x| ran_as(x, "allowed", "denied", false, RAN))),
    must("reasonix/host-interception/allow-told", Host)
        .says("That a guest allowed what the host denies is shown, or kept in the log.", &[INTERCEPTION])
        .accepts(&[specified(TOLD)])
        .checked(After(&HOST_DENIES, allow_told)),
    must("reasonix/host-interception/deny-prevails", Host)
        .says("A guest can deny a tool that the host itself allows.", &[INTERCEPTION])
        .accepts(&[specified(DID_NOT_RUN)])
        .checked(After(&TOOLS, |x| ran_as(x, "denied", "plain", false, DID_NOT_RUN))),
    must("reasonix/host-interception/permission-ends-chain", Host)
        .says("Once a guest has allowed or denied a tool, no other is asked.", &[])
        .accepts(&[observed(NOBODY_ELSE)])
        .checked(After(&TOOLS, |x| match nobody_else(x, "denied", ONE, point::PERMISSION_DECISION) {
            Sight::Saw(..) => nobody_else(x, "allowed", ONE, point::PERMISSION_DECISION),
            sight => sight,
        })),
    must("reasonix/host-interception/tool-replacement-checked", Host)
        .says("A guest can make no tool run that there is not, and none with arguments that are none.", &[])
        .accepts(&[observed(DID_NOT_RUN)])
        .checked(After(&TOOLS, tool_replacement_checked)),
    must("reasonix/host-interception/operation-waits", Host)
        .says("What a guest is asked about is not done before it has answered.", &[INTERCEPTION])
        .accepts(&[specified(WAITED)])
        .checked(After(&TOOLS, |x| {
            waited(x, "held-tool", 1, &[point::PERMISSION_DECISION, point::TOOL_AFTER])
        })),
    must("reasonix/host-interception/permission-waits", Host)
        .says("A tool does not run before a guest has answered whether it may.", &[INTERCEPTION])
        .accepts(&[specified(WAITED)])
        .checked(After(&TOOLS, |x| waited(x, "held-permission", 1, &[point::TOOL_AFTER]))),
    must("reasonix/host-interception/request-waits", Host)
        .says("The model is not asked before the guests have ruled on what it is asked.", &[INTERCEPTION])
        .accepts(&[specified(WAITED)])
        .checked(After(&CONTEXT, |x| waited(x, "held-request", 0, &[]))),
    must("reasonix/host-interception/asked-at-points", Host)
        .says("A guest is asked at each point that it intercepts.", &[INTERCEPTION])
        .accepts(&[specified(ASKED)])
        .checked(After(&EVERY_POINT, |x| asked_at(x, &WIRED))),
    must("reasonix/host-interception/asked-without-slot", Host)
        .says(
            "A guest is asked at the points of sessions, prompts and surfaces too when it owns no slot.",
            &[INTERCEPTION],
        )
        .accepts(&[specified(ASKED), observed(NOT_ASKED)])
        .checked(After(&EVERY_POINT, |x| asked_at(x, &ASKED_ALWAYS))),
    must("reasonix/host-interception/compaction-asked", Host)
        .says("A guest is asked about what is compacted, and about what comes of it.", &[INTERCEPTION])
        .accepts(&[specified(ASKED)])
        .checked(After(&COMPACTION, compaction_asked)),
    must("reasonix/host-interception/compaction-time", Host)
        .says("A guest has 30 s when a conversation is compacted.", &[INTERCEPTION])
        .accepts(&[specified(LONG_TIME)])
        .checked(After(&COMPACTION, |x| times_are(x, ONE, &COMPACTION_POINTS, 30_000, LONG_TIME))),
    must("reasonix/host-interception/asked-by-manifest", Host)
        .says("A guest is asked where its manifest says, whatever it subscribes to.", &[])
        .accepts(&[observed(MEMBER)])
        .checked(After(&TIMES, asked_by_manifest)),
    must("reasonix/host-interception/asked-where-installed", Host)
        .says(
            "A guest is asked nowhere but where its manifest has it step in or own a slot.",
            &[INTERCEPTION],
        )
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::ASKED_AS_INSTALLED, &CHAIN)),
    must("reasonix/host-interception/short-time", Host)
        .says(
            "A guest has 5 s for inputs, tools and permissions, unless its manifest says more.",
            &[INTERCEPTION],
        )
        .accepts(&[specified(SHORT_TIME)])
        .checked(After(&EVERY_POINT, |x| times_are(x, ONE, &SHORT_POINTS, 5_000, SHORT_TIME))),
    must("reasonix/host-interception/long-time", Host)
        .says("A guest has 30 s for contexts, system prompts and sessions.", &[INTERCEPTION])
        .accepts(&[specified(LONG_TIME)])
        .checked(After(&EVERY_POINT, |x| times_are(x, ONE, &LONG_POINTS, 30_000, LONG_TIME))),
    must("reasonix/host-interception/other-time", Host)
        .says("A guest has 30 s at the points for which the specification names no time.", &[])
        .accepts(&[observed(LONG_TIME)])
        .checked(After(&EVERY_POINT, |x| times_are(x, ONE, &OTHER_POINTS, 30_000, LONG_TIME))),
    must("reasonix/host-interception/manifest-time", Host)
        .says("A guest has the time that its manifest says, up to 60 s, at every point.", &[INTERCEPTION])
        .accepts(&[specified(MANIFEST_TIME)])
        .checked(After(&TIMES, manifest_time)),
    must("reasonix/host-interception/times-within-ceiling", Host)
        .says("No guest has more than 60 s.", &[INTERCEPTION])
        .accepts(KEPT_AS_SPECIFIED)
        .checked(Always(&session::TIMES_WITHIN_CEILING, &TIMES)),
    must("reasonix/host-interception/context-replaced-once", Host)
        .says("A replaced context is for one request: the conversation does not have it.", &[])
        .accepts(&[observed(ONLY_ONCE)])
        .checked(After(&CONTEXT, |x| only_once(x, "replaced", "sidecert-for-once", "afterwards"))),
    must("reasonix/host-interception/request-replaced-once", Host)
        .says("A replaced request is for the model alone: the conversation does not have it.", &[])
        .accepts(&[observed(ONLY_ONCE)])
        .checked(After(&CONTEXT, |x| only_once(x, "requested", "sidecert-requested", "behind"))),
    must("reasonix/host-interception/response-kept", Host)
        .says("A replaced answer of the model is what the conversation goes on with.", &[])
        .accepts(&[observed(KEPT)])
        .checked(After(&CONTEXT, |x| model_heard(x, "afterwards", "sidecert-reworded", KEPT))),
];

// ---- scripts ----

pub(super) static CHAIN: ScriptDef = ScriptDef {
    name: "chain-of-guests",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let of = |name: &str, priority: &str| {
            Plugin::new(setting, name).intercepts(&[point::INPUT_RECEIVE]).with("priority", priority)
        };
        let mut it = begin("chain-of-guests", setting, &[of(ONE, "10"), of("two", "-5"), of("three", "-5")]);
        it = does(it, "three", None, &input("sidecert-serial"), Reply::Never);
        let passed = replace(r#"{"text":"sidecert-passed-on"}"#);
        it = rules_on(it, "three", None, &input("sidecert-hand-on"), &passed);
        let beside = r#"{"decision":"continue","replacement":{"text":"sidecert-beside"}}"#;
        it = rules_on(it, "three", None, &input("sidecert-keep"), beside);
        it = rules_on(it, "three", None, &input("sidecert-block"), BLOCK);
        it = rules_on(it, "three", None, &input("sidecert-mute"), r#"{"decision":"block"}"#);
        it = turn(it, "plain", "sidecert-plain");
        it = holds(say(it, "serial", "sidecert-serial"), "three", &input("sidecert-serial"), "held");
        it = it.step(outcome("serial"));
        it = turn(turn(it, "passed", "sidecert-hand-on"), "kept", "sidecert-keep");
        stop(turn(turn(it, "blocked", "sidecert-block"), "mute", "sidecert-mute"))
    },
};

static REQUIRED: ScriptDef = ScriptDef {
    name: "required-guests-fail",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]);
        let mut it = begin("required-guests-fail", setting, &[one]);
        it = errs_on(it, ONE, None, &input("sidecert-error"));
        let rulings = [
            ("allow", "sidecert-allow", r#"{"decision":"allow"}"#.to_owned()),
            ("more", "sidecert-more", replace(r#"{"text":"x","sidecert":1}"#)),
            ("type", "sidecert-type", replace(r#"{"text":1}"#)),
            ("empty", "sidecert-empty", replace(r#"{"text":""}"#)),
            ("without", "sidecert-without", r#"{"decision":"replace"}"#.to_owned()),
            ("null", "sidecert-null", replace("null")),
        ];
        for (_, text, result) in &rulings {
            it = rules_on(it, ONE, None, &input(text), result);
        }
        it = turn(it, "error", "sidecert-error");
        for (label, text, _) in &rulings {
            it = turn(it, label, text);
        }
        it = odd_ruling(it, ONE, ("decision", "sidecert-decision"), r#"{"decision":"perhaps"}"#);
        stop(odd_ruling(it, ONE, ("member", "sidecert-member"), r#"{"decision":"continue","sidecert":1}"#))
    },
};

static LATE: ScriptDef = ScriptDef {
    name: "required-guest-is-late",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&[point::INPUT_RECEIVE]).with("timeoutMillis", HURRY);
        let it = begin("required-guest-is-late", setting, &[one]);
        let it = does(it, ONE, None, &input("sidecert-late"), Reply::Never);
        stop(turn(it, "late", "sidecert-late"))
    },
};

static OPTIONAL: ScriptDef = ScriptDef {
    name: "optional-guests-fail",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE);
        let two = Plugin::new(setting, "unwilling").optional().intercepts(&[point::INPUT_RECEIVE]);
        let mut it = begin("optional-guests-fail", setting, &[one, two.with("timeoutMillis", HURRY)]);
        it = does(it, "unwilling", None, &input("sidecert-late"), Reply::Never);
        it = errs_on(it, "unwilling", None, &input("sidecert-error"));
        it = rules_on(it, "unwilling", None, &input("sidecert-deny"), r#"{"decision":"deny"}"#);
        let misfit = replace(r#"{"text":"sidecert-instead","sidecert":1}"#);
        it = rules_on(it, "unwilling", None, &input("sidecert-misfit"), &misfit);
        it = turn(turn(it, "error", "sidecert-error"), "deny", "sidecert-deny");
        it = turn(it, "misfit", "sidecert-misfit");
        it = odd_ruling(it, "unwilling", ("decision", "sidecert-decision"), r#"{"decision":"perhaps"}"#);
        let more = r#"{"decision":"block","sidecert":1}"#;
        it = odd_ruling(it, "unwilling", ("member", "sidecert-member"), more);
        it = turn(it, "after", "sidecert-after");
        stop(turn(turn(it, "late", "sidecert-late"), "later", "sidecert-late"))
    },
};

static CONTEXT: ScriptDef = ScriptDef {
    name: "context-and-request-replaced",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let points = [point::CONTEXT_PREPARE, point::PROVIDER_REQUEST, point::PROVIDER_RESPONSE];
        let mut it =
            begin("context-and-request-replaced", setting, &[Plugin::new(setting, ONE).intercepts(&points)]);
        let context = intercept(point::CONTEXT_PREPARE);
        let request = intercept(point::PROVIDER_REQUEST);
        let response = intercept(point::PROVIDER_RESPONSE);
        it = rules_on(it, ONE, Some(1), &context, CONTINUE);
        it = rules_on(it, ONE, Some(1), &context, &replace(&context_of("sidecert-for-once")));
        it = rules_on(it, ONE, Some(5), &context, CONTINUE);
        it = rules_on(it, ONE, None, &context, BLOCK);
        it = rules_on(it, ONE, Some(1), &response, CONTINUE);
        it = rules_on(it, ONE, Some(1), &response, &replace(r#"{"text":"sidecert-reworded"}"#));
        it = rules_on(it, ONE, Some(3), &response, CONTINUE);
        let usage = "\"cacheHitTokens\":0,\"cacheMissTokens\":0,\"completionTokens\":-1,\"promptTokens\":0,\
            \"reasoningTokens\":0,\"totalTokens\":0";
        it = rules_on(
            it,
            ONE,
            Some(1),
            &response,
            &replace(&format!(r#"{{"text":"x","usage":{{{usage}}}}}"#)),
        );
        it = does(it, ONE, Some(1), &request, Reply::Never);
        it = rules_on(it, ONE, Some(2), &request, CONTINUE);
        let another = r#"{"request":{"messages":[{"role":"user","content":"sidecert-requested"}],"tools":[],"maxTokens":512}}"#;
        it = rules_on(it, ONE, Some(1), &request, &replace(another));
        it = rules_on(it, ONE, Some(2), &request, CONTINUE);
        // What a host that uses it sends on conforms all the same: it is judged on what it takes, and on nothing else.
        let unlimited = r#"{"request":{"messages":[{"role":"user","content":"x"}],"tools":[]}}"#;
        it = rules_on(it, ONE, Some(1), &request, &replace(unlimited));
        it = holds(say(it, "held", "sidecert-held"), ONE, &request, "held-request").step(outcome("held"));
        it = turn(turn(it, "replaced", "sidecert-first"), "afterwards", "sidecert-second");
        it = turn(turn(it, "requested", "sidecert-third"), "behind", "sidecert-fourth");
        it = turn(turn(it, "usage", "sidecert-misfit"), "limit", "sidecert-misfit");
        stop(turn(it, "blocked", "sidecert-fifth"))
    },
};

/// How tools are called in these scripts: both are safe to run in the workspace.
pub(super) const LS: (&str, &str) = ("ls", r#"{"path":"."}"#);
const WRITE: (&str, &str) = ("write_file", r#"{"path":"note.txt","content":"a note"}"#);

pub(super) static TOOLS: ScriptDef = ScriptDef {
    name: "tools-ruled-on",
    process: Process::Tour,
    needs: &[Need::Declared("tool/ls")],
    build: |setting| {
        let points = [point::TOOL_BEFORE, point::PERMISSION_DECISION, point::TOOL_AFTER];
        let one = Plugin::new(setting, ONE).intercepts(&points);
        let two = Plugin::new(setting, "two").intercepts(&[point::PERMISSION_DECISION]);
        let mut it = begin("tools-ruled-on", setting, &[one, two]);
        let before = intercept(point::TOOL_BEFORE);
        it = does(it, ONE, Some(1), &before, Reply::Never);
        it = rules_on(it, ONE, Some(3), &before, CONTINUE);
        it = rules_on(it, ONE, Some(1), &before, &replace(r#"{"name":"ls","arguments":"[]"}"#));
        it = rules_on(it, ONE, Some(1), &before, &replace(r#"{"name":"sidecert_none","arguments":"{}"}"#));
        let permission = intercept(point::PERMISSION_DECISION);
        it = does(it, ONE, Some(1), &permission, Reply::Never);
        it = rules_on(it, ONE, Some(1), &permission, CONTINUE);
        it = rules_on(it, ONE, Some(1), &permission, r#"{"decision":"deny"}"#);
        it = rules_on(it, ONE, Some(1), &permission, r#"{"decision":"allow"}"#);
        for _ in 0..6 {
            it = wants_tool(it, LS.0, LS.1);
        }
        it = holds(say(it, "held", "sidecert-held"), ONE, &before, "held-tool");
        // What an event says is over: nobody can rule on it any more.
        let verdict = r#"{"jsonrpc":"2.0","id":987654,"result":{"decision":"block"}}"#;
        it = it.step(awaits(&permission.replace(r#"{"$capture":"id"}"#, r#"{"$capture":"held"}"#)));
        it = it.raw("verdict", "nobody asked for it", verdict).fence();
        it = it.step(answer("held-permission", CONTINUE)).step(outcome("held"));
        for label in ["plain", "denied", "allowed", "arguments", "name"] {
            it = turn(it, label, "sidecert-tool");
        }
        stop(it)
    },
};

static HOST_DENIES: ScriptDef = ScriptDef {
    name: "host-denies-tool",
    process: Process::Tour,
    needs: &[Need::Declared("tool/write_file")],
    build: |setting| {
        let warden = Plugin::new(setting, "warden").intercepts(&[point::PERMISSION_DECISION]);
        let plugins = [Plugin::new(setting, ONE), warden];
        let mut it = session_with("host-denies-tool", setting, &plugins, r#","permission":"deny""#);
        let permission = intercept(point::PERMISSION_DECISION);
        it = rules_on(it, "warden", Some(1), &permission, CONTINUE);
        it = rules_on(it, "warden", Some(1), &permission, r#"{"decision":"allow"}"#);
        it = wants_tool(wants_tool(it, WRITE.0, WRITE.1), WRITE.0, WRITE.1);
        stop(turn(turn(it, "denied", "sidecert-tool"), "allowed", "sidecert-tool"))
    },
};

pub(super) static EVERY_POINT: ScriptDef = ScriptDef {
    name: "guest-at-every-point",
    process: Process::Tour,
    needs: &[Need::Declared("tool/ls")],
    build: |setting| {
        let points: Vec<&str> = setting.contract.events.iter().map(String::as_str).collect();
        let one = Plugin::new(setting, ONE).intercepts(&points);
        let it = wants_tool(begin("guest-at-every-point", setting, &[one]), LS.0, LS.1);
        stop(turn(it, TURN, "sidecert-points"))
    },
};

/// How many turns there are to compact.
const FOLDED_TURNS: usize = 8;

pub(super) static COMPACTION: ScriptDef = ScriptDef {
    name: "conversation-compacted",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let one = Plugin::new(setting, ONE).intercepts(&COMPACTION_POINTS);
        let mut it = begin("conversation-compacted", setting, &[one]);
        // A host may take no summary that is not said to be done.
        let done = streams::chunk(2, r#"{"type":"done"}"#);
        let says = streams::accepted([streams::text(1, "Folded"), done, streams::end(2)]);
        it = streams::streams(it, "echo", None, says);
        // A host may not find less than this worth it: 20 KiB each where the limits are those of the protocol.
        let times = Limits::of(setting.contract).content_ref_object_bytes / (32 << 10) * 6;
        for number in 1..=FOLDED_TURNS {
            it = turn(it, TURN, &format!("sidecert-{number}{}", " much to fold".repeat(times)));
        }
        stop(it.step(ask("compact", r#"{"do":"compact"}"#)).step(outcome("compact")))
    },
};

static TIMES: ScriptDef = ScriptDef {
    name: "times-of-manifests",
    process: Process::Tour,
    needs: &[],
    build: |setting| {
        let of = |name: &str| {
            Plugin::new(setting, name).intercepts(&[point::INPUT_RECEIVE, point::CONTEXT_PREPARE])
        };
        let timed = MANIFEST_TIMES.map(|(name, millis)| of(name).with("timeoutMillis", &millis.to_string()));
        let more = [of("above").with("timeoutMillis", "90000"), of("silent")];
        let plugins: Vec<Plugin> = [Plugin::new(setting, ONE)].into_iter().chain(timed).chain(more).collect();
        let it = begin("times-of-manifests", setting, &plugins);
        let major = setting.contract.major;
        let declaration = format!(
            r#"{{"protocolVersion":"{major}","name":"silent","version":"1.0.0","stateSchemaVersion":1,"subscriptions":[]}}"#
        );
        let it = rules_on(it, "silent", None, &request(contract::INITIALIZE), &declaration);
        stop(turn(it, TURN, "sidecert-times"))
    },
};

const MANIFEST_TIMES: [(&str, u64); 3] = [("quick", 1_500), ("slow", 8_000), ("slowest", 60_000)];

// ---- judges ----

fn asked_in_order(x: &Exchange<'_>, label: &str, first: &str, second: &str, seen: Seen) -> Sight {
    judged(span(x, label).map(|within| {
        let of = |name: &str| {
            let mut all = asks_at(x, point::INPUT_RECEIVE).filter(|(entry, _)| within.contains(&entry.at));
            all.find(|(entry, _)| is_to(x, entry, name)).map(|(entry, _)| entry.at)
        };
        match (of(first), of(second)) {
            (Some(first), Some(second)) if first < second => Sight::Saw(seen, second),
            (Some(_), Some(at)) => {
                Sight::SawOther { at, actual: format!("{second:?} was asked before {first:?}") }
            }
            _ => not_provoked("asked both"),
        }
    }))
}

fn one_after_the_other(x: &Exchange<'_>) -> Sight {
    judged(span(x, "serial").map(|within| {
        let Some(answered) = x.sent("held").map(|entry| entry.at) else { return not_provoked("asked it") };
        let mut others = asked_behind(x, &within, "three", point::INPUT_RECEIVE);
        match others.find(|(entry, _)| entry.at < answered) {
            Some((entry, _)) => {
                let actual = "another guest was asked while the first had not answered".to_owned();
                Sight::SawOther { at: entry.at, actual }
            }
            None => Sight::Saw(SERIAL, answered),
        }
    }))
}

fn replacement_passed_on(x: &Exchange<'_>) -> Sight {
    judged(span(x, "passed").map(|within| {
        let mut second = asked_behind(x, &within, "three", point::INPUT_RECEIVE);
        let Some((entry, params)) = second.next() else { return not_provoked("asked the next guest") };
        if params.raw().contains("sidecert-passed-on") {
            return Sight::Saw(PASSED_ON, entry.at);
        }
        let payload = params.get("payload").map_or("none", Node::raw);
        Sight::SawOther { at: entry.at, actual: format!("the payload {}", short(payload)) }
    }))
}

/// Nobody else was asked at a point in a turn once this guest had ruled.
pub(super) fn nobody_else(x: &Exchange<'_>, label: &str, name: &str, at: &str) -> Sight {
    judged(span(x, label).map(|within| {
        let mut asked = asks_at(x, at).filter(|(entry, _)| within.contains(&entry.at));
        if !asked.any(|(entry, _)| is_to(x, entry, name)) {
            return not_provoked(&format!("asked at {at}"));
        }
        match asked_behind(x, &within, name, at).next() {
            Some((entry, _)) => {
                Sight::SawOther { at: entry.at, actual: "another guest was asked as well".to_owned() }
            }
            None => Sight::Saw(NOBODY_ELSE, *within.end()),
        }
    }))
}

fn schema_binds(x: &Exchange<'_>) -> Sight {
    let heard = model_heard(x, "limit", "sidecert-misfit", DONE);
    if let (Sight::Saw(DONE, _), Sight::Saw(_, at)) = (came(x, "limit"), heard) {
        let actual = "the replacement was passed over, though its guest is required".to_owned();
        return Sight::SawOther { at, actual };
    }
    all_came(x, &["usage", "limit"], FAILS_OR_PASSES)
}

fn reason_told(x: &Exchange<'_>) -> Sight {
    judged(span(x, "blocked").map(|within| {
        let at = *within.end();
        let told = x
            .outcome("blocked")
            .and_then(|(_, outcome)| says(outcome))
            .is_some_and(|it| it.contains(BLOCK_REASON));
        let shown = x
            .told(Told::Shown)
            .any(|(entry, shown)| within.contains(&entry.at) && shown.raw().contains(BLOCK_REASON));
        if told || shown {
            Sight::Saw(REASON_TOLD, at)
        } else {
            Sight::SawOther { at, actual: "the user was not told the reason".to_owned() }
        }
    }))
}

fn time_kept(x: &Exchange<'_>) -> Sight {
    match x.timed_out(Wait::Outcome, Some("late")) {
        Some((at, _)) => Sight::SawOther { at, actual: "it still waited for the guest".to_owned() },
        None => came(x, "late"),
    }
}

/// What the host showed or kept since an ask that has this guest's name in it.
fn mentions<'x>(x: &'x Exchange<'_>, name: &'x str, since: u64) -> impl Iterator<Item = &'x Entry<'x>> {
    let named = move |node: Node<'_>| node.raw().contains(name);
    let shown = x.told(Told::Shown).filter(move |(entry, node)| entry.at > since && named(*node));
    shown.map(|(entry, _)| entry)
}

fn warned_once(x: &Exchange<'_>) -> Sight {
    judged(span(x, "later").map(|within| {
        // A host that starts its guests for one turn at a time warns once in each.
        let most = x.launches("unwilling").len();
        let warned: Vec<u64> = mentions(x, "unwilling", 0).map(|entry| entry.at).collect();
        match (warned.last(), warned.len()) {
            (Some(last), many) if many <= most => Sight::Saw(WARNED_ONCE, *last),
            // Here calls fail and rulings break the contract; the released host warns once of either.
            (Some(last), many) if many <= 2 * most => Sight::Saw(WARNED_BY_KIND, *last),
            (Some(last), many) => Sight::SawOther { at: *last, actual: format!("{many} warnings") },
            (None, _) => Sight::SawOther { at: *within.end(), actual: "no warning".to_owned() },
        }
    }))
}

fn allow_told(x: &Exchange<'_>) -> Sight {
    judged(span(x, "allowed").map(|within| {
        if !denied_by_host(x, "allowed") {
            return Sight::Undecided(Why::NotProvoked("the host denies nothing of itself here".into()));
        }
        let is = |node: Node<'_>, name: &str, words: &[&str]| {
            node.get(name).and_then(|it| it.as_str()).is_some_and(|it| words.contains(&&*it))
        };
        let told = |what, name: &str, words: &[&str]| {
            let mut all = x.told(what).filter(|(entry, _)| entry.at > *within.start());
            let its = |at: u64, node: Node<'_>| {
                let named = node.raw().contains("warden");
                is(node, name, words) && (named || within.contains(&at)) || (named && what == Told::Shown)
            };
            all.find(|(entry, node)| its(entry.at, *node)).map(|(entry, _)| entry.at)
        };
        let shown = told(Told::Shown, "as", &["notice", "warning"]);
        match shown.or_else(|| told(Told::Found, "in", &["log"])) {
            Some(at) => Sight::Saw(TOLD, at),
            None => Sight::SawOther { at: *within.end(), actual: "nobody was told".to_owned() },
        }
    }))
}

fn tool_replacement_checked(x: &Exchange<'_>) -> Sight {
    match ran_as(x, "arguments", "plain", false, DID_NOT_RUN) {
        Sight::Saw(..) => ran_as(x, "name", "plain", false, DID_NOT_RUN),
        other => other,
    }
}

/// Whether nothing was done before the intercept that was held was answered, called `label`: the model was asked at
/// most so often in this turn, and nobody at these points.
fn waited(x: &Exchange<'_>, label: &str, opens: usize, points: &[&str]) -> Sight {
    judged(span(x, "held").map(|within| {
        let Some(answered) = x.sent(label).map(|entry| entry.at) else { return x.nothing_came(label, "") };
        let before = |entry: &Entry<'_>| within.contains(&entry.at) && entry.at < answered;
        let mut opened = x.asked(contract::STREAM_OPEN).filter(|(entry, _)| before(entry));
        let opened = opened.nth(opens).map(|(entry, _)| entry.at);
        let passed = || points.iter().flat_map(|at| asks_at(x, at)).find(|(entry, _)| before(entry));
        match opened.or_else(|| passed().map(|(entry, _)| entry.at)) {
            Some(at) => Sight::SawOther { at, actual: "it went on before the answer".to_owned() },
            None => Sight::Saw(WAITED, answered),
        }
    }))
}

fn asked_at(x: &Exchange<'_>, points: &[&str]) -> Sight {
    judged(tour(x).map(|within| {
        let missing: Vec<&str> =
            points.iter().copied().filter(|at| asks_at(x, at).next().is_none()).collect();
        let at = *within.end();
        match missing.len() {
            0 => Sight::Saw(ASKED, at),
            all if all == points.len() => Sight::Saw(NOT_ASKED, at),
            _ => Sight::SawOther { at, actual: format!("nobody was asked at {}", missing.join(", ")) },
        }
    }))
}

/// A host that finds nothing worth compacting asks nobody.
fn compaction_asked(x: &Exchange<'_>) -> Sight {
    match came(x, "compact") {
        Sight::Saw(DONE, _) => {}
        Sight::Saw(..) => return not_provoked("compacted the conversation"),
        other => return other,
    }
    match asked_at(x, &COMPACTION_POINTS) {
        Sight::Saw(NOT_ASKED, _) => not_provoked("asked about anything compacted"),
        sight => sight,
    }
}

/// Whether this guest had so much time at those of the points at which it was asked.
pub(super) fn times_are(x: &Exchange<'_>, name: &str, points: &[&str], millis: u64, seen: Seen) -> Sight {
    let mut last = not_provoked("asked the guest there");
    for at in points {
        for (entry, params) in asks_at(x, at).filter(|(entry, _)| is_to(x, entry, name)) {
            let given = params.get("timeoutMillis").and_then(|it| it.as_u64()).unwrap_or_default();
            if given != millis {
                return Sight::SawOther { at: entry.at, actual: format!("{given} ms at {at}") };
            }
            last = Sight::Saw(seen, entry.at);
        }
    }
    match (last, x.cut) {
        (Sight::Undecided(_), Some(cut)) => Sight::Undecided(Why::CutShort(cut.to_owned())),
        (sight, _) => sight,
    }
}

fn manifest_time(x: &Exchange<'_>) -> Sight {
    let mut last = not_provoked("asked the guests");
    for (name, millis) in MANIFEST_TIMES {
        for at in [point::INPUT_RECEIVE, point::CONTEXT_PREPARE] {
            last = times_are(x, name, &[at], millis, MANIFEST_TIME);
            if !matches!(last, Sight::Saw(..)) {
                return last;
            }
        }
    }
    last
}

fn asked_by_manifest(x: &Exchange<'_>) -> Sight {
    judged(span(x, TURN).map(|within| {
        match asks_at(x, point::INPUT_RECEIVE).find(|(entry, _)| is_to(x, entry, "silent")) {
            Some((entry, _)) => Sight::Saw(MEMBER, entry.at),
            None => Sight::SawOther { at: *within.end(), actual: "it was not asked".to_owned() },
        }
    }))
}

/// Whether the model heard this text in one turn, and neither the next one nor what is stored has it.
fn only_once(x: &Exchange<'_>, label: &str, text: &str, next: &str) -> Sight {
    let first = model_heard(x, label, text, ONLY_ONCE);
    if !matches!(first, Sight::Saw(..)) {
        return first;
    }
    judged(span(x, next).map(|within| {
        let at = *within.end();
        let again = opened(x, &within).iter().any(|params| params.raw().contains(text));
        let mut stored = x.told(Told::Found).filter(|(_, node)| {
            let place = node.get("in").and_then(|it| it.as_str());
            place.as_deref() == Some("session") && node.raw().contains(text)
        });
        match (again, stored.next()) {
            (true, _) => Sight::SawOther { at, actual: "the next request has it as well".to_owned() },
            (_, Some((entry, _))) => {
                Sight::SawOther { at: entry.at, actual: "the conversation was stored with it".to_owned() }
            }
            _ => Sight::Saw(ONLY_ONCE, at),
        }
    }))
}
