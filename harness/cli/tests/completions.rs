//! Completions for shells, and the list of suites.

mod support;

use std::process::Command;

use support::{program, sidecert};

#[test]
fn each_shell_gets_a_script_that_knows_the_commands_and_options() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = sidecert(["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{shell}");
        for word in ["sidecert", "explain", "provoke", "reference"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let output = sidecert(["completions", "cmd"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn bash_completes_with_the_script() {
    let Ok(found) = Command::new("bash").arg("--version").output() else { return };
    assert!(found.status.success());
    let complete = "source <(\"$0\" completions bash) && COMP_WORDS=(sidecert chec) COMP_CWORD=1 && \
                    _sidecert sidecert chec sidecert && echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", complete]).arg(program()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "check", "{output:?}");
}

#[test]
fn suites_are_listed_with_their_contracts() {
    let table = String::from_utf8(sidecert(["list", "suites"]).stdout).unwrap();
    for part in ["name", "reasonix-v1", "reasonix-v2", "reasonix.extension.v1", "reasonix.extension.v2"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let one = String::from_utf8(sidecert(["list", "suites", "--suite", "reasonix-v1"]).stdout).unwrap();
    assert_eq!(one.lines().count(), 2, "{one}");
    let json = sidecert(["list", "suites", "--format", "json"]);
    let list: Vec<serde_json::Value> = serde_json::from_slice(&json.stdout).unwrap();
    assert!(list.iter().all(|suite| suite["requirements"].as_u64().unwrap() > 0), "{list:?}");
}
