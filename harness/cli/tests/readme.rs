//! What both READMEs, and the page about scripts, say is what the program does.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeSet;
use std::fs;

use support::{mock, mock_host, sidecert, workspace};

const READMES: [&str; 2] = ["README.md", "README.zh-CN.md"];

fn text(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap()
}

/// The code blocks of a page, each with its language.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, block))) => *block += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    blocks
}

fn out(words: &[&str]) -> String {
    String::from_utf8(sidecert(words).stdout).unwrap()
}

/// The names of the commands, from the top of the help.
fn commands() -> Vec<String> {
    let help = out(&["--help"]);
    let from = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = from.take_while(|line| !line.is_empty());
    names.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn both_say_the_same_commands() {
    let [english, chinese] = READMES.map(|name| {
        let blocks = blocks(&text(name));
        blocks.into_iter().filter(|(language, _)| language != "text").collect::<Vec<_>>()
    });
    assert_eq!(english, chinese);
}

#[test]
fn the_scripts_of_their_page_play() {
    let scripts = blocks(&text("docs/scripts.md")).into_iter().map(|(_, block)| block);
    let scripts: Vec<String> =
        scripts.filter(|block| block.contains("{\"script\":") && block.lines().count() > 1).collect();
    assert_eq!(scripts.len(), 3);
    let folder = tempfile::tempdir().unwrap();
    for script in scripts {
        let path = folder.path().join("one.script");
        fs::write(&path, &script).unwrap();
        let path = path.display().to_string();
        let (mut words, target) = if script.contains("{\"ask\":") {
            let words =
                vec!["check", "host", "--driver", "shim", "--only", "reasonix/host-envelope/answered-once"];
            (words, mock_host("reasonix-v2", &[]))
        } else {
            (vec!["check", "guest", "--only", "reasonix/envelope/answered-once"], mock("reasonix-v2", None))
        };
        words.extend(["--suite", "reasonix-v2", "--script", &path, "--"]);
        words.extend(target.iter().map(String::as_str));
        let output = sidecert(words);
        assert_eq!(output.status.code(), Some(0), "{script}{output:?}");
    }
}

#[test]
fn the_first_check_ends_as_they_say() {
    let words = mock("reasonix-v1", None);
    let mut check = vec!["check", "guest", "--suite", "reasonix-v1", "--"];
    check.extend(words.iter().map(String::as_str));
    let told = out(&check);
    let last = told.lines().last().unwrap();
    for name in READMES {
        assert!(text(name).contains(&format!("```text\n{last}\n```")), "{name} has no {last}");
    }
}

#[test]
fn the_failing_example_is_what_the_program_prints() {
    let words = mock("reasonix-v1", Some("speaks-too-soon"));
    let mut check = vec!["check", "guest", "--suite", "reasonix-v1", "--seed", "1", "--"];
    check.extend(words.iter().map(String::as_str));
    let told = out(&check);
    let printed: BTreeSet<String> = told.lines().map(without_times).collect();
    for name in READMES {
        let blocks = blocks(&text(name));
        let (_, example) = blocks.iter().find(|(_, block)| block.starts_with("FAIL")).unwrap();
        for line in example.lines().filter(|line| !line.contains('…') && !line.contains("repeat with")) {
            assert!(printed.contains(&without_times(line)), "{name}: {line}\n{told}");
        }
    }
}

/// A line of an excerpt without its time and what depends on the length of a path.
fn without_times(line: &str) -> String {
    let Some((before, after)) = line.split_once(" ms ") else { return line.to_owned() };
    let label = before.split('+').next().unwrap_or_default().trim_end();
    let after = after.split(", ").filter(|part| !part.ends_with(" bytes")).collect::<Vec<_>>().join(", ");
    format!("{label} {after}")
}

#[test]
fn every_option_and_command_that_they_name_is_there() {
    let mut known = out(&["--help"]);
    for command in commands() {
        known += &out(&[&command, "--help"]);
    }
    for side in ["check", "mock", "init"] {
        known += &out(&[side, "guest", "--help"]);
    }
    for side in ["check", "mock"] {
        known += &out(&[side, "host", "--help"]);
    }
    known += &out(&["check", "document", "--help"]);
    for what in ["show", "hash", "check", "diff"] {
        known += &out(&["contract", what, "--help"]);
    }
    let known: BTreeSet<&str> = known.split(|c: char| !(c.is_alphanumeric() || c == '-')).collect();
    for name in READMES {
        let text = text(name);
        let code = text.split('`').skip(1).step_by(2).chain(text.split("```").skip(1).step_by(2));
        for word in code.flat_map(str::split_whitespace) {
            let option = word.split(['=', ',', '\'']).next().unwrap_or_default();
            // What follows is cargo's.
            if option.starts_with("--") && option.len() > 2 && !["--path", "--flag"].contains(&option) {
                assert!(known.contains(option), "{name} names {option}");
            }
        }
        for command in text.split("`sidecert ").skip(1) {
            let command = command.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            assert!(commands().iter().any(|it| it == command), "{name} names the command {command}");
        }
    }
}

#[test]
fn every_exit_code_stands_in_them_and_in_the_help() {
    let help = out(&["check", "guest", "--help"]);
    for code in ["0", "1", "2", "3", "4", "5", "70", "130"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(&format!("{code} "))), "{code}");
        for name in READMES {
            assert!(text(name).contains(&format!("| {code} |")), "{name}: {code}");
        }
    }
}

#[test]
fn the_configuration_that_they_show_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    for name in READMES {
        let blocks = blocks(&text(name));
        let (_, config) = blocks.iter().find(|(_, block)| block.starts_with("suite")).unwrap();
        fs::write(folder.path().join("sidecert.toml"), config).unwrap();
        let path = folder.path().join("sidecert.toml").display().to_string();
        let output = sidecert(["check", "guest", "--config", &path]);
        // The manifest that it names is not there; that is the only thing wrong with it.
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("reasonix-plugin.json") && output.status.code() == Some(2), "{name}: {told}");
    }
}
