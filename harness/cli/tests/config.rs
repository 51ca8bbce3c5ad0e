//! `sidecert.toml`: what it can say, what wins over it, and what is told when it is wrong.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::{mock, program, provocations, verdicts};
use tempfile::TempDir;

/// A folder with this `sidecert.toml`, whose target is the mock.
fn folder(text: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    let target: Vec<String> = mock("reasonix-v1", None).iter().map(|word| format!("{word:?}")).collect();
    let text = text.replace("MOCK", &format!("[{}]", target.join(", ")));
    fs::write(folder.path().join("sidecert.toml"), text).unwrap();
    folder
}

/// Runs `sidecert check guest` in a folder, outside of any CI, with these words and variables.
fn run(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let scratch = TempDir::new().unwrap();
    let mut command = Command::new(program());
    command.args(["check", "guest"]).args(words).current_dir(folder);
    command.env_remove("CI").env("TMPDIR", scratch.path()).envs(variables.iter().copied());
    command.output().unwrap()
}

fn report(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> (Value, i32) {
    let output = run(folder, &[&["--report", "json=-"], words].concat(), variables);
    let report = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code().unwrap())
}

fn complains(folder: &Path, words: &[&str], says: &str) {
    let output = run(folder, words, &[]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
    assert_eq!(told, format!("sidecert: {says}\n"), "{words:?}");
}

/// How many requirements a report decided.
fn decided(report: &Value) -> usize {
    verdicts(report).iter().filter(|(_, verdict)| verdict != "not_selected").count()
}

#[test]
fn a_file_alone_is_enough() {
    let folder = folder("suite = \"reasonix-v1\"\ntarget = MOCK\n");
    let (report, code) = report(folder.path(), &[], &[]);
    assert_eq!((code, report["suite"].as_str()), (0, Some("reasonix-v1")));
    let output = run(folder.path(), &["--no-config"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--suite is reasonix-v1 or reasonix-v2"));
}

#[test]
fn the_command_line_wins() {
    let folder = folder(
        "suite = \"reasonix-v2\"\ntarget = [\"/no/such/guest\"]\nonly = \"*/transport/*\"\nquiet = true\n\
         profile = \"reference\"\nseed = \"2a\"\njobs = 1\nenv = [\"A=1\"]\nstart-timeout = \"20s\"\n",
    );
    let target = mock("reasonix-v1", None);
    let mut words = vec!["--suite", "reasonix-v1", "--only", "*/members-fit", "--verbose", "--"];
    words.extend(target.iter().map(String::as_str));
    let (report, code) = report(folder.path(), &words, &[]);
    assert_eq!((code, report["suite"].as_str()), (0, Some("reasonix-v1")));
    assert_eq!(
        (report["seed"].as_str(), report["profile"].as_str()),
        (Some("000000000000002a"), Some("reference"))
    );
    assert_eq!(decided(&report), 1, "the file's selection is replaced, not added to");
    let told = String::from_utf8(run(folder.path(), &words, &[]).stdout).unwrap();
    assert!(told.contains("WAITS"), "--verbose wins over quiet = true: {told}");
}

#[test]
fn the_table_for_where_we_run_overrides() {
    let text = "suite = \"reasonix-v1\"\ntarget = MOCK\nonly = [\"*/transport/*\"]\nstrict = true\n\
                [use.local]\nonly = \"*/members-fit\"\nstrict = false\n[use.ci]\nonly = [\"*/lifecycle/*\"]\n\
                [use.night]\nonly = [\"*\"]\n";
    let folder = folder(text);
    let count = |words: &[&str], ci: Option<&str>| {
        let variables: Vec<_> = ci.into_iter().map(|ci| ("CI", ci)).collect();
        let (report, _) = report(folder.path(), words, &variables);
        let first = verdicts(&report).into_iter().find(|(_, verdict)| verdict == "pass").unwrap().0;
        (first.split('/').nth(1).unwrap().to_owned(), decided(&report), report["strict"] == true)
    };
    let all = count(&["--use", "night"], Some("true"));
    assert!(all.1 > 5 && all.2, "{all:?}");
    let local = ("members".to_owned(), 1, false);
    for ci in [None, Some(""), Some("false")] {
        assert_eq!(count(&[], ci), local, "{ci:?}");
    }
    assert_eq!(count(&["--use", "local"], Some("true")), local);
    let ci = count(&[], Some("true"));
    assert_eq!((&*ci.0, ci.2), ("lifecycle", true));
    complains(
        folder.path(),
        &["--use", "nigth"],
        "--use nigth: sidecert.toml has no [use.nigth]; did you mean \"night\"?",
    );
    let none = TempDir::new().unwrap();
    complains(none.path(), &["--use", "ci"], "--use ci: no sidecert.toml is read; --config FILE names one");
}

#[test]
fn paths_start_at_the_folder_of_the_file_and_so_does_the_target() {
    let text = "suite = \"reasonix-v1\"\ntarget = [\"./start\", \"here\"]\nmanifest = \"manifest.json\"\n\
                provoke = \"provocations.toml\"\nonly = [\"@ids\"]\nreport = [\"json=out.json\"]\n";
    let folder = folder(text);
    let path = folder.path();
    let script = format!(
        "#!/bin/sh\ntest \"$1\" = here && test -f ids && exec {}\n",
        mock("reasonix-v1", None).join(" ")
    );
    fs::write(path.join("start"), script).unwrap();
    fs::set_permissions(path.join("start"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    fs::copy(provocations(), path.join("provocations.toml")).unwrap();
    fs::write(path.join("ids"), "reasonix/transport/frames-within-limit\n").unwrap();
    fs::write(path.join("manifest.json"), r#"{"runtime":{"intercepts":["input.receive"]}}"#).unwrap();
    let elsewhere = TempDir::new().unwrap();
    let config = path.join("sidecert.toml").display().to_string();
    let output = run(elsewhere.path(), &["--config", &config], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&fs::read(path.join("out.json")).unwrap()).unwrap();
    assert_eq!(decided(&report), 1);
    let missing = "/no/such/sidecert.toml";
    complains(path, &["--config", missing], &format!("{missing}: No such file or directory (os error 2)"));
}

#[test]
fn the_file_may_hold_the_provocations_itself() {
    let held = fs::read_to_string(provocations()).unwrap();
    let folder = folder(&format!("suite = \"reasonix-v1\"\ntarget = MOCK\n{held}"));
    let id = "reasonix/transport/frames-within-limit";
    let (report, code) = report(folder.path(), &["--require", id], &[]);
    assert_eq!(code, 0, "{report:#}");
    let path = folder.path().join("sidecert.toml");
    fs::write(&path, fs::read_to_string(&path).unwrap().replace("large =", "larg =")).unwrap();
    let line =
        fs::read_to_string(&path).unwrap().lines().position(|line| line.starts_with("larg ")).unwrap() + 1;
    let says = format!(
        "sidecert.toml, line {line}: there is no provocation \"larg\", but \"large\"; `sidecert list provocations` shows all"
    );
    complains(folder.path(), &[], &says);
}

#[test]
fn what_is_wrong_is_told_on_one_line_with_its_place() {
    let base = "suite = \"reasonix-v1\"\ntarget = [\"true\"]\n";
    let known = "it is specified or reference";
    for (text, says) in [
        ("sute = 1", "line 3: \"sute\" is unknown; did you mean \"suite\"?".to_owned()),
        ("env_all = true", "line 3: \"env_all\" is unknown; did you mean \"env-all\"?".to_owned()),
        ("config = \"x\"", "line 3: \"config\" is unknown".to_owned()),
        ("zzz = 1", "line 3: \"zzz\" is unknown".to_owned()),
        ("jobs = [", "line 3: ".to_owned()),
        ("jobs = true", "line 3: jobs is a text or a number, and this is of the type boolean".to_owned()),
        ("jobs = 0", "line 3: jobs: \"0\": at least one process must run".to_owned()),
        ("strict = \"yes\"", "line 3: strict is true or false, and this is of the type string".to_owned()),
        ("\nonly = [1]", "line 4: only is a list of texts, and this is of the type array".to_owned()),
        (
            "profile = \"refrence\"",
            format!("line 3: profile: \"refrence\": {known}; did you mean \"reference\"?"),
        ),
        ("exercise = [\"strems\"]", "line 3: exercise strems: the groups are".to_owned()),
        ("exercise = [\"strems\"]", "; did you mean \"streams\"?".to_owned()),
        ("require = [\"nothing\"]", "line 3: require: no requirement matches \"nothing\"".to_owned()),
        ("manifest = \"gone.json\"", "line 3: manifest gone.json: No such file".to_owned()),
        ("contract = \"gone.json\"", "line 3: contract gone.json: No such file".to_owned()),
        ("start-timeout = \"soon\"", "line 3: start-timeout: \"soon\": a time is".to_owned()),
        ("use = 1", "line 3: use is no table".to_owned()),
        ("[use]\nci = 1", "line 4: use.ci is no table".to_owned()),
        ("[use.ci]\nstict = true", "line 4: \"stict\" is unknown; did you mean \"strict\"?".to_owned()),
        ("[use.ci.use]\nx = 1", "line 3: use stands within use".to_owned()),
        ("[use.ci]\ntarget = \"x\"", "line 4: target is a list of texts".to_owned()),
        ("quiet = true\nverbose = true", "line 4: the argument".to_owned()),
    ] {
        let folder = folder(&format!("{base}{text}\n"));
        let output = run(folder.path(), &[], &[]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}: {told}");
        assert!(told.starts_with("sidecert: sidecert.toml, line ") && told.contains(&says), "{text}: {told}");
        assert_eq!(told.lines().count(), 1, "{text}: {told}");
    }
    let folder = folder("suite = \"reasonix-v3\"\n");
    complains(
        folder.path(),
        &[],
        "sidecert.toml, line 1: suite: \"reasonix-v3\": the suites are reasonix-v1, reasonix-v2, webcodex-v1; did you mean \"reasonix-v1\"?",
    );
}
