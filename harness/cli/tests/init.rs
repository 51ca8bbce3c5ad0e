//! `init` writes a guest that passes its own check, and never touches what is there.
#![expect(clippy::unwrap_used, reason = "a test may")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::program;
use tempfile::TempDir;

const LANGUAGES: [(&str, &str, &str); 2] = [("python", "python3", "py"), ("node", "node", "mjs")];

/// Runs `sidecert` in a folder, outside of any CI.
fn run(folder: &Path, words: &[&str]) -> Output {
    let scratch = TempDir::new().unwrap();
    let mut command = Command::new(program());
    command.args(words).current_dir(folder).env_remove("CI").env("TMPDIR", scratch.path()).output().unwrap()
}

fn init(folder: &Path, language: &str, words: &[&str]) -> Output {
    run(folder, &[&["init", "guest", "--language", language], words].concat())
}

/// Every file in a folder and below.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            files.insert(path);
        }
    }
    files
}

#[test]
fn what_is_written_passes_its_own_check() {
    for (language, interpreter, extension) in LANGUAGES {
        let folder = TempDir::new().unwrap();
        let output = init(folder.path(), language, &["a guest"]);
        let told = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{language}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(told.contains("cd 'a guest'") && told.contains("sidecert check guest"), "{told}");
        let folder = folder.path().join("a guest");
        let (guest, protocol) = (format!("guest.{extension}"), format!("reasonix.{extension}"));
        let expected =
            [&guest, &protocol, "reasonix-plugin.json", "sidecert.toml", ".github/workflows/sidecert.yml"];
        assert_eq!(files(&folder), expected.iter().map(|name| folder.join(name)).collect(), "{language}");
        for name in expected {
            assert!(told.contains(&format!("wrote a guest/{name}\n")), "{language}: {name}: {told}");
        }
        if Command::new(interpreter).arg("--version").output().is_ok_and(|output| output.status.success()) {
            for words in [&["check", "guest"][..], &["check", "guest", "--suite", "reasonix-v2"]] {
                let output = run(&folder, words);
                let told = String::from_utf8_lossy(&output.stdout).into_owned();
                assert_eq!(output.status.code(), Some(0), "{language} {words:?}: {told}");
            }
        }
    }
}

#[test]
fn here_is_the_default_and_needs_no_way_there() {
    let folder = TempDir::new().unwrap();
    let output = init(folder.path(), "python", &[]);
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(!told.contains("cd ") && folder.path().join("guest.py").is_file(), "{told}");
}

#[test]
fn what_is_there_stays_and_then_nothing_is_written() {
    for name in
        ["guest.py", "reasonix.py", "reasonix-plugin.json", "sidecert.toml", ".github/workflows/sidecert.yml"]
    {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        let output = init(folder.path(), "python", &["."]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{name}: {told}");
        assert_eq!(told, format!("sidecert: ./{name} is there already; nothing was written\n"));
        assert_eq!(files(folder.path()), BTreeSet::from([path.clone()]));
        assert_eq!(fs::read_to_string(path).unwrap(), "mine");
    }
    // A link to nowhere is something that is there, too.
    let folder = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/no/such/file", folder.path().join("guest.py")).unwrap();
    assert_eq!(init(folder.path(), "python", &[]).status.code(), Some(2));
}

#[test]
fn what_cannot_be_written_leaves_nothing_behind() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(".github"), "a file").unwrap();
    let output = init(folder.path(), "node", &[]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), told.lines().count()), (Some(5), 1), "{told}");
    assert!(told.contains(".github/workflows/sidecert.yml could not be written"), "{told}");
    assert_eq!(files(folder.path()), BTreeSet::from([folder.path().join(".github")]));
}
