//! What `sidecert redact` promises: what was written is gone, and everything that is judged stays.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sidecert_proto::digest::sha256;
use sidecert_proto::run::Run;
use support::{mock, provocations, sidecert, stderr, verdicts};

/// Every file of a folder, by name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect()
}

/// The report of a judgement, without what names files and quotes frames.
fn judged(run: &Path) -> (Option<i32>, Vec<(String, String)>, Vec<String>) {
    let output = sidecert(["judge", "--report", "json=-", &run.display().to_string()]);
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let places = report["requirements"].as_array().unwrap().iter().map(|row| row["at"].to_string());
    let places = places.chain([report["ours"].to_string(), report["faults"].to_string()]).collect();
    (output.status.code(), verdicts(&report), places)
}

#[test]
fn verdicts_stay_and_texts_do_not() {
    for (suite, flaw) in
        [("reasonix-v1", None), ("reasonix-v2", None), ("reasonix-v2", Some("speaks-too-soon"))]
    {
        let folder = tempfile::tempdir().unwrap();
        let (run, new) = (folder.path().join("run"), folder.path().join("new"));
        let (path, asked) = (run.display().to_string(), provocations().display().to_string());
        let mut words = vec!["check", "guest", "--suite", suite, "--exercise", "all", "--provoke", &asked];
        words.extend(["--record", &path, "-q", "--"]);
        let target = mock(suite, flaw);
        words.extend(target.iter().map(String::as_str));
        assert!(matches!(sidecert(&words).status.code(), Some(0 | 1)));
        let before = files(&run);
        let output = sidecert(["redact", &path, "--output", &new.display().to_string()]);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
        assert_eq!(files(&run), before, "the first was changed");
        assert_eq!(judged(&new), judged(&run), "{suite} {flaw:?}");
        for (name, bytes) in files(&new) {
            if name != "run.json" {
                let lengths =
                    |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::len).collect::<Vec<_>>();
                assert_eq!(lengths(&bytes), lengths(&before[&name]), "{name}");
            }
            let text = String::from_utf8_lossy(&bytes);
            // A provocation, an error's message, what a line of no JSON says, and where all of this was.
            for gone in
                ["sidecert:panic", "says hello", "the content is gone", &folder.path().display().to_string()]
            {
                assert!(!text.contains(gone), "{name} still says {gone:?}");
            }
        }
        let (old, new) =
            (Run::read(&before["run.json"]).unwrap(), Run::read(&files(&new)["run.json"]).unwrap());
        assert_eq!((old.redacted, new.redacted), (false, true));
        assert_eq!(
            (old.selected, old.seed, old.contract_sha256),
            (new.selected, new.seed, new.contract_sha256)
        );
    }
}

#[test]
fn a_verdict_that_depended_on_a_text_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (id, asked, run) =
        ("reasonix/interception/faults-hidden", provocations().display().to_string(), path("run"));
    let mut words =
        vec!["check", "guest", "--suite", "reasonix-v2", "--provoke", &asked, "--record", &run, "-q"];
    words.extend(["--only", id, "--"]);
    let target = mock("reasonix-v2", Some("shows-its-insides"));
    words.extend(target.iter().map(String::as_str));
    assert_eq!(sidecert(&words).status.code(), Some(0), "only the reference implementation asks for it");
    let output = sidecert(["redact", &run, "--output", &path("new")]);
    assert_eq!(output.status.code(), Some(0));
    let expected = format!("{id}: warn before, and pass in what was written");
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
}

const DESCRIBED: &str = "What a user wrote — with \"quotes\"";

/// A log in which a content of two pages is given, read, and given again under a wrong digest.
fn log() -> String {
    let content = json!({"text": DESCRIBED.repeat(9)}).to_string();
    let (digest, total) = (sha256(content.as_bytes()), content.len());
    let (first, second) = content.as_bytes().split_at(101);
    let given = |id: u32, digest: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "extension/intercept", "params": {
            "event": "input.receive", "payload": null, "seq": 1, "timeoutMillis": 5000,
            "externalized": [{"jsonPointer": "/payload", "contentRef": "c1", "totalBytes": total, "sha256": digest}]}})
    };
    let page = |id: u32, offset: usize, bytes: &[u8]| {
        let data = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
        json!({"jsonrpc": "2.0", "id": id, "result": {"contentRef": "c1", "offset": offset, "totalBytes": total,
            "sha256": digest, "encoding": "utf8", "dataBase64": data}})
    };
    let reason = json!({"jsonrpc": "2.0", "id": 1, "result": {"decision": "block", "reason": DESCRIBED}});
    let call = json!({"arguments": json!({"path": "a b", "n": 1}).to_string(), "name": "ls"});
    let call = json!({"jsonrpc": "2.0", "method": "x", "params": call});
    let lines = [
        json!({"dir": "host->guest", "frame": given(1, &digest), "note": "seen by Bob"}),
        json!({"dir": "host->guest", "frame": page(7, 0, first)}),
        json!({"dir": "host->guest", "frame": page(8, 101, second)}),
        json!({"dir": "guest->host", "frame": reason}),
        json!({"dir": "host->guest", "frame": given(2, &"0".repeat(64))}),
        json!({"dir": "guest->host", "raw": "{\"method\":\"x\",\"text\":\"cut off h"}),
        json!({"dir": "guest->host", "frame": call}),
        json!({"dir": "host->guest", "frame": {"jsonrpc": "2.0", "method": "x", "params": {"message": DESCRIBED}}}),
    ];
    lines.iter().fold(String::new(), |text, line| text + &line.to_string() + "\n")
}

/// Redacts the log; gives its lines.
fn redacted(options: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("log"), log()).unwrap();
    let words = ["redact", "--suite", "reasonix-v2", &path("log"), "--output", &path("new")];
    let output = sidecert([&words, options].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = fs::read_to_string(path("new")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn content_outside_of_frames_fits_its_digest_where_it_did() {
    let lines = redacted(&[]);
    let data = |line: &Value| {
        let data = line["frame"]["result"]["dataBase64"].as_str().unwrap().to_owned();
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap()
    };
    let content = [data(&lines[1]), data(&lines[2])].concat();
    let described = |line: &Value| line["frame"]["params"]["externalized"][0].clone();
    assert_eq!(described(&lines[0])["sha256"], sha256(&content));
    assert_eq!(described(&lines[0])["totalBytes"], content.len());
    assert_eq!(lines[1]["frame"]["result"]["sha256"], sha256(&content));
    assert_ne!(described(&lines[4])["sha256"], sha256(&content));
    assert_eq!(described(&lines[0])["contentRef"], "c1");
    let payload: Value = serde_json::from_slice(&content).unwrap();
    assert!(payload["text"].as_str().unwrap().starts_with("0..."), "{payload}");
}

#[test]
fn a_log_stays_one_and_says_nothing() {
    let lines = redacted(&[]);
    assert_eq!(lines.len(), log().lines().count());
    let text = Value::from(lines.clone()).to_string();
    for gone in ["Bob", "What a user", "quotes", "cut off", "a b"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    assert_eq!(lines[0]["frame"]["params"]["event"], "input.receive");
    assert_eq!(lines[3]["frame"]["result"]["decision"], "block");
    assert_eq!(lines[5]["raw"], "{\"method\":\"x\",\"text\":\"xxx xxx x");
    let arguments = lines[6]["frame"]["params"]["arguments"].as_str().unwrap();
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!((&arguments["n"], arguments["path"].as_str().unwrap().len()), (&json!(1), 3));
}

#[test]
fn what_is_asked_to_stay_stays() {
    let kept = redacted(&["--keep", "/result/reason"]);
    assert_eq!(kept[3]["frame"]["result"]["reason"], DESCRIBED);
    let host = redacted(&["--side", "host"]);
    assert_eq!(host[3]["frame"]["result"]["reason"], DESCRIBED);
    assert_eq!(host[7]["frame"]["params"]["message"], DESCRIBED, "the guest said it first");
    assert_ne!(host[1], serde_json::from_str::<Value>(log().lines().nth(1).unwrap()).unwrap());
    let guest = redacted(&["--side", "guest"]);
    assert_eq!(guest[1], serde_json::from_str::<Value>(log().lines().nth(1).unwrap()).unwrap());
    assert_ne!(guest[3]["frame"]["result"]["reason"], DESCRIBED);
    assert_ne!(guest[7]["frame"]["params"]["message"], DESCRIBED, "the guest said it first");
}

#[test]
fn what_cannot_be_done_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("log"), log()).unwrap();
    fs::write(path("bad"), format!("{}{{\"dir\":", log())).unwrap();
    let new = path("new");
    for (words, code, expected) in [
        (vec!["--suite", "reasonix-v2", &path("log"), "--output", &path("log")], 5, "could not be written"),
        (vec!["--suite", "reasonix-v2", &path("none"), "--output", &new], 2, "no such recording"),
        (vec!["--suite", "reasonix-v2", &path("bad"), "--output", &new], 2, "line 9: "),
        (vec!["--suite", "reasonix-v2", &path("log"), "--output", &new, "--keep", "x"], 2, "begins with"),
        (vec![&path("log"), "--output", &new], 2, "--suite is"),
    ] {
        let output = sidecert([vec!["redact"], words].concat());
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
        assert!(!Path::new(&new).exists(), "half a recording is left");
    }
    assert_eq!(fs::read_to_string(path("log")).unwrap(), log());
}

#[test]
fn a_run_that_was_changed_gets_no_new_digest() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (path, new) = (run.display().to_string(), folder.path().join("new"));
    let mut words = vec!["check", "guest", "--suite", "reasonix-v2", "--record", &path, "-q"];
    words.extend(["--only", "reasonix/members/members-fit", "--"]);
    let target = mock("reasonix-v2", None);
    words.extend(target.iter().map(String::as_str));
    assert_eq!(sidecert(&words).status.code(), Some(0));
    let (name, bytes) = files(&run).into_iter().find(|(name, _)| name != "run.json").unwrap();
    let text = String::from_utf8(bytes).unwrap().replacen("{\"t\":", "{\"t\":1", 1);
    fs::write(run.join(&name), text).unwrap();
    let output = sidecert(["redact", &path, "--output", &new.display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("its SHA-256 is another"), "{}", stderr(&output));
    assert!(!new.exists());
}
