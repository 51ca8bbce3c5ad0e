//! The smallest conforming host: what it opens and closes a connection with, and what it learns of a plugin.
//!
//! A play stands on it. A plugin asks nothing, so there is nothing to answer; a fence is one more `tools/list`, and since a
//! plugin answers one request after the other, its answer is behind everything.

use std::collections::BTreeSet;

use super::admission::admit_schema;
use super::contract::{self, Bounds, member, wire_member};
use super::refusal::Field;
use super::tools::is_plain_name;
use crate::contract::Contract;
use crate::json::{Node, quoted};
use crate::play::Peer;
use crate::rpc::{Envelope, Outcome};
use crate::script::{Pattern, Script, Setting, Step, Within, request};

/// The label of the request that opens a connection.
pub const INITIALIZE: &str = "initialize";
/// The label of the first request for the tools.
pub const LIST: &str = "tools";

/// Before the name of a tool, among what is declared: it is listed.
pub(super) const TOOL: &str = "tool/";
/// Before its name, a space and its input schema: that is admitted.
pub(super) const INPUT: &str = "input/";
/// Before its name: it only reads, it says.
pub(super) const READ_ONLY: &str = "read-only/";

/// The params of the first request.
pub fn initialize_params(contract: &Contract) -> String {
    format!(r#"{{"{}":{}}}"#, wire_member::PROTOCOL_VERSION, quoted(&contract.id))
}

/// The handshake, and which tools there are.
pub fn opening(setting: &Setting<'_>) -> Script {
    let result_of = |label: &str, within| Step::Await {
        frame: Pattern::Members(vec![
            ("id".to_owned(), Pattern::Id(label.to_owned())),
            ("result".to_owned(), Pattern::Any),
        ]),
        within,
    };
    Script::new("handshake")
        .request(INITIALIZE, contract::INITIALIZE, &initialize_params(setting.contract))
        .step(result_of(INITIALIZE, Within::Start))
        .request(LIST, contract::TOOLS_LIST, "{}")
        .step(result_of(LIST, Within::Answer))
}

/// The end of its input, behind which a plugin ends.
pub fn closing(_: &Setting<'_>) -> Script {
    Script::new("end-of-input").step(Step::Close).step(Step::Exit)
}

/// What a list of tools declares: each tool that has a name, its input schema if it is admitted, and that it only reads.
pub fn declared(result: Node<'_>) -> BTreeSet<String> {
    let bounds = Bounds::of(contract::wire());
    let mut declared = BTreeSet::new();
    for tool in result.get(member::TOOLS).into_iter().flat_map(Node::elements) {
        let Some(name) = tool.get(member::NAME).and_then(|name| name.as_str()) else { continue };
        if !is_plain_name(&name, &bounds) {
            continue;
        }
        declared.insert(format!("{TOOL}{name}"));
        let input = tool.get(member::INPUT_SCHEMA);
        if let Some(input) = input.filter(|input| admit_schema(*input, Field::Input, &bounds).is_ok()) {
            declared.insert(format!("{INPUT}{name} {}", input.raw()));
        }
        let hints = tool.get(member::ANNOTATIONS);
        let says = |hint: &str| hints.and_then(|hints| hints.get(hint)?.as_bool()) == Some(true);
        // One that says that it may destroy something as well is taken at that word.
        if says(wire_member::READ_ONLY) && !says(wire_member::DESTRUCTIVE) {
            declared.insert(format!("{READ_ONLY}{name}"));
        }
    }
    declared
}

/// The smallest conforming host.
#[derive(Debug, Default)]
pub struct Host {
    declared: Option<BTreeSet<String>>,
    none: BTreeSet<String>,
}

impl Peer for Host {
    fn fence(&mut self, id: i64) -> Vec<u8> {
        request(&id.to_string(), contract::TOOLS_LIST, "{}").into_bytes()
    }

    fn meet(&mut self, frame: &Envelope<'_>, _: bool, _: &mut Vec<Vec<u8>>) {
        // Nothing else that is answered has such a member.
        if let Envelope::Response { outcome: Outcome::Result(result), .. } = frame
            && result.get(member::TOOLS).is_some()
        {
            self.declared.get_or_insert_with(|| declared(*result));
        }
    }

    fn declared(&self) -> &BTreeSet<String> {
        self.declared.as_ref().unwrap_or(&self.none)
    }
}
