//! What a recorded run is, format 1: the facts that its judgement needs beside the transcripts, as `run.json`.
//!
//! A run is a folder: `run.json`, and a transcript for each process. Everything that a verdict depends on is in it, so
//! that it can be judged again anywhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::contract::Side;
use crate::json::{self, Node, Tape, quoted};
use crate::transcript::Fault;

/// The version of the format.
pub const FORMAT: u64 = 1;
/// The name of the file in the folder.
pub const FILE: &str = "run.json";

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// The version of sidecert that recorded it.
    pub tool: String,
    /// The suite, by name.
    pub suite: String,
    /// Who was under test.
    pub target: Target,
    /// What made a host under test act, by name; empty where a guest was under test.
    pub driver: String,
    /// The SHA-256 of the contract in canonical form, as lowercase hexadecimal.
    pub contract_sha256: String,
    /// The whole contract, one JSON text, where it is not the one that is built in.
    pub contract: Option<String>,
    /// The target's manifest, one JSON text.
    pub manifest: Option<String>,
    /// The provocations that the user gave, each one JSON text.
    pub provocations: BTreeMap<String, String>,
    /// The groups that the user let us exercise.
    pub exercised: BTreeSet<String>,
    /// The requirements that were selected, by id.
    pub selected: BTreeSet<String>,
    /// The scripts of the user's that were played, by name.
    pub given: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// The folder that the target was told is its workspace.
    pub workspace: String,
    /// The command, as far as it is text.
    pub argv: Vec<String>,
    /// What else must stand on the command line to record the same again: words that no other member tells.
    pub options: Vec<String>,
    /// The SHA-256 of the target's executable.
    pub executable_sha256: Option<String>,
    /// The variables of our environment that the target did not get, because they look like secrets.
    pub withheld: Vec<String>,
    /// The operating system and the processor.
    pub platform: String,
    /// When it began, in RFC 3339.
    pub started: String,
    /// Whether every script was played in a process of its own.
    pub isolate: bool,
    /// Whether texts in it were replaced since, so that it is no longer what was said.
    pub redacted: bool,
    /// The processes, in order.
    pub processes: Vec<Recording>,
}

/// Who was under test: a guest, unless the run says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target(pub Side);

impl Default for Target {
    fn default() -> Self {
        Self(Side::Guest)
    }
}

/// The transcript of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Its name: that of the file without `.ndjson`.
    pub name: String,
    /// The SHA-256 of the file.
    pub sha256: String,
    /// The scripts that were to be played in it.
    pub scripts: Vec<String>,
    /// Why it does not count, if it does not: it is kept as evidence, and others stand in its place.
    pub set_aside: Option<String>,
}

impl Recording {
    /// The name of its file.
    pub fn file(&self) -> String {
        format!("{}.ndjson", self.name)
    }
}

impl Run {
    /// The text of `run.json`.
    pub fn write(&self) -> String {
        let mut out = Out(format!("{{\n  \"run\": {FORMAT}"));
        out.text("tool", &self.tool);
        out.text("suite", &self.suite);
        if self.target.0 == Side::Host {
            out.text("target", "host");
            out.text("driver", &self.driver);
        }
        out.text("contractSha256", &self.contract_sha256);
        out.json("contract", self.contract.as_deref());
        out.json("manifest", self.manifest.as_deref());
        let provocations = self.provocations.iter().map(|(name, frame)| format!("{}: {frame}", quoted(name)));
        out.member("provocations", &format!("{{{}}}", provocations.collect::<Vec<_>>().join(", ")));
        out.list("exercised", self.exercised.iter());
        out.list("selected", self.selected.iter());
        out.list("given", self.given.iter());
        out.text("seed", &format!("{:016x}", self.seed));
        out.text("workspace", &self.workspace);
        out.list("argv", self.argv.iter());
        out.list("options", self.options.iter());
        out.json("executableSha256", self.executable_sha256.as_deref().map(quoted).as_deref());
        out.list("withheld", self.withheld.iter());
        out.text("platform", &self.platform);
        out.text("started", &self.started);
        out.member("isolate", if self.isolate { "true" } else { "false" });
        if self.redacted {
            out.member("redacted", "true");
        }
        let processes = self.processes.iter().map(|recording| {
            let scripts =
                recording.scripts.iter().map(|script| quoted(script)).collect::<Vec<_>>().join(", ");
            let set_aside = recording
                .set_aside
                .as_deref()
                .map(|why| format!(", \"setAside\": {}", quoted(why)))
                .unwrap_or_default();
            let (name, sha256) = (quoted(&recording.name), quoted(&recording.sha256));
            format!("    {{\"name\": {name}, \"sha256\": {sha256}, \"scripts\": [{scripts}]{set_aside}}}")
        });
        out.member("processes", &format!("[\n{}\n  ]", processes.collect::<Vec<_>>().join(",\n")));
        out.0.push_str("\n}\n");
        out.0
    }

    /// Reads `run.json`.
    pub fn read(text: &[u8]) -> Result<Self, Fault> {
        let tape = Tape::scan(text).map_err(|fault| Fault(format!("not JSON: {fault}")))?;
        let root = tape.root();
        match root.get("run").map(|format| (format.as_u64(), format.raw())) {
            Some((Some(FORMAT), _)) => {}
            Some((_, format)) => {
                return Err(Fault(format!("format {format} of a run; this version reads format {FORMAT}")));
            }
            None => {
                return Err(Fault("it does not begin with \"run\", the version of its format".to_owned()));
            }
        }
        let json = |name: &str| root.get(name).map(|node| node.raw().to_owned());
        let provocations = root.get("provocations").into_iter().flat_map(Node::members);
        let seed = u64::from_str_radix(&text_of(root, "seed")?, 16);
        Ok(Self {
            tool: text_of(root, "tool")?,
            suite: text_of(root, "suite")?,
            target: Target(match root.get("target").map(|target| target.as_str()) {
                None => Side::Guest,
                Some(target) if target.as_deref() == Some("guest") => Side::Guest,
                Some(target) if target.as_deref() == Some("host") => Side::Host,
                Some(_) => return Err(Fault("target is neither guest nor host".to_owned())),
            }),
            driver: root.get("driver").map(|_| text_of(root, "driver")).transpose()?.unwrap_or_default(),
            contract_sha256: text_of(root, "contractSha256")?,
            contract: json("contract"),
            manifest: json("manifest"),
            provocations: provocations
                .map(|(name, frame)| (name.into_owned(), frame.raw().to_owned()))
                .collect(),
            exercised: list_of(root, "exercised")?.into_iter().collect(),
            selected: list_of(root, "selected")?.into_iter().collect(),
            given: list_of(root, "given")?,
            seed: seed.map_err(|_| Fault("seed is no hexadecimal number of 64 bits".to_owned()))?,
            workspace: text_of(root, "workspace")?,
            argv: list_of(root, "argv")?,
            options: list_of(root, "options")?,
            executable_sha256: root
                .get("executableSha256")
                .map(|_| text_of(root, "executableSha256"))
                .transpose()?,
            withheld: list_of(root, "withheld")?,
            platform: text_of(root, "platform")?,
            started: text_of(root, "started")?,
            isolate: root.get("isolate").and_then(|isolate| isolate.as_bool()).unwrap_or_default(),
            redacted: root.get("redacted").and_then(|redacted| redacted.as_bool()).unwrap_or_default(),
            processes: recordings(root)?,
        })
    }
}

fn recordings(root: Node<'_>) -> Result<Vec<Recording>, Fault> {
    let processes = root.get("processes").ok_or_else(|| Fault("processes is missing".to_owned()))?;
    processes
        .elements()
        .map(|process| {
            let name = text_of(process, "name")?;
            // The name becomes that of a file, so it must not lead out of the folder.
            if !name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
                return Err(Fault(format!("{name:?} is no name of a process")));
            }
            Ok(Recording {
                name,
                sha256: text_of(process, "sha256")?,
                scripts: list_of(process, "scripts")?,
                set_aside: process.get("setAside").map(|_| text_of(process, "setAside")).transpose()?,
            })
        })
        .collect()
}

/// The members of `run.json`, a line each.
struct Out(String);

impl Out {
    fn member(&mut self, name: &str, json: &str) {
        self.0.push_str(",\n  ");
        self.0.push_str(&quoted(name));
        self.0.push_str(": ");
        self.0.push_str(json);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.member(name, &quoted(text));
    }

    fn json(&mut self, name: &str, json: Option<&str>) {
        if let Some(json) = json {
            self.member(name, json);
        }
    }

    fn list<'s>(&mut self, name: &str, of: impl Iterator<Item = &'s String>) {
        let list = of.map(|text| quoted(text)).collect::<Vec<_>>().join(", ");
        self.member(name, &format!("[{list}]"));
    }
}

fn text_of(of: Node<'_>, name: &str) -> Result<String, Fault> {
    let text = of.get(name).and_then(|node| node.as_str());
    text.map(Into::into).ok_or_else(|| Fault(format!("{name} is not a string")))
}

fn list_of(of: Node<'_>, name: &str) -> Result<Vec<String>, Fault> {
    let fault = || Fault(format!("{name} is not a list of strings"));
    let list = of.get(name).filter(|list| list.kind() == json::Kind::Array).ok_or_else(fault)?;
    list.elements().map(|element| element.as_str().map(Into::into).ok_or_else(fault)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Run {
        let texts = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        Run {
            tool: "0.1.0".into(),
            suite: "x-v1".into(),
            target: Target(Side::Host),
            driver: "shim".into(),
            contract_sha256: "ab".into(),
            contract: Some("{\"a\": 1}".into()),
            manifest: Some("{}".into()),
            provocations: BTreeMap::from([("large".into(), "{\"event\":\"x\"}".into())]),
            exercised: texts(&["all"]).into_iter().collect(),
            selected: texts(&["x/y/z"]).into_iter().collect(),
            given: texts(&["mine"]),
            seed: 255,
            workspace: "/w \"q\"".into(),
            argv: texts(&["./guest", "--flag"]),
            options: texts(&["--manifest", "m.json"]),
            executable_sha256: Some("cd".into()),
            withheld: texts(&["API_KEY"]),
            platform: "linux x86_64".into(),
            started: "2026-01-01T00:00:00Z".into(),
            isolate: true,
            redacted: true,
            processes: vec![
                Recording {
                    name: "001-a".into(),
                    sha256: "ef".into(),
                    scripts: texts(&["a"]),
                    set_aside: None,
                },
                Recording { name: "002-b".into(), set_aside: Some("because".into()), ..Recording::default() },
            ],
        }
    }

    fn guest() -> Run {
        Run { target: Target::default(), driver: String::new(), ..full() }
    }

    #[test]
    fn what_is_written_is_read() {
        for run in
            [full(), Run { executable_sha256: None, contract: None, redacted: false, ..full() }, guest()]
        {
            assert_eq!(Run::read(run.write().as_bytes()).unwrap(), run);
        }
    }

    #[test]
    fn what_is_no_run_says_why() {
        let text = full().write();
        for (from, to, says) in [
            ("\"run\": 1", "\"run\": 2", "format 2 of a run; this version reads format 1"),
            ("\"suite\": \"x-v1\"", "\"suite\": 1", "suite is not a string"),
            ("\"target\": \"host\"", "\"target\": \"both\"", "target is neither guest nor host"),
            ("001-a", "../a", "\"../a\" is no name of a process"),
            ("\"argv\": [", "\"argv\": [1, ", "argv is not a list of strings"),
            ("00000000000000ff", "xyz", "seed is no hexadecimal number of 64 bits"),
        ] {
            assert_eq!(Run::read(text.replacen(from, to, 1).as_bytes()).unwrap_err().to_string(), says);
        }
        assert!(Run::read(b"{").unwrap_err().to_string().starts_with("not JSON"));
    }
}
