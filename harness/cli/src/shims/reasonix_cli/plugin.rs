//! What the CLI does with a plugin without running it: whether it would install it, and what it says of it.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::home::{Home, Plugin};
use crate::shims::budget::RUN_WITHIN;
use crate::shims::program::{Printed, Program};
use crate::shims::{Ask, Outcome};

/// Answers `admit` and `describe`, in an empty folder. A plugin that is only named is one of the session's home.
pub(crate) fn ask(program: &Path, folder: &Path, ask: &Ask, home: Option<Home>) -> io::Result<Outcome> {
    let given = Plugin::read(ask.member("plugin"));
    let name = given.as_ref().map(|plugin| plugin.name.clone()).or(ask.text("plugin").map(str::to_owned));
    let Some(name) = name else { return Ok(Outcome::Refused("it names no plugin".into())) };
    let is_installed = ask.what == "describe" && ask.words("view") != "preview";
    let home = match (&given, home) {
        (None, Some(home)) => home,
        (None, None) => return Ok(Outcome::Refused("there is no session that has it".into())),
        (Some(plugin), _) => {
            let plugins = if is_installed { vec![plugin.clone()] } else { Vec::new() };
            Home::make(program, folder, plugins, ask)?
        }
    };
    let source = match &given {
        Some(plugin) => {
            // A link may only lead to what is below the home or the workspace.
            let source = home.folder.join("plugin");
            plugin.write(&source)?;
            source.display().to_string()
        }
        None => match home.root_of(&name) {
            Some(root) => root.display().to_string(),
            None => return Ok(Outcome::Refused(format!("the session has no plugin {name:?}"))),
        },
    };
    let words: &[&str] = match (ask.what.as_str(), ask.words("view")) {
        ("admit", _) => &["plugin", "install", &source, "--link", "--yes"],
        (_, "preview") => &["plugin", "install", &source, "--link", "--dry-run"],
        (_, "show") => &["plugin", "show", &name],
        (_, "doctor") => &["plugin", "doctor", &name],
        (_, view) => return Ok(Outcome::Cannot(format!("there is no view {view:?} of a plugin"))),
    };
    let printed = Program::run(home.command(words), None, RUN_WITHIN)?;
    Ok(match (ask.what.as_str(), printed.code) {
        ("admit", Some(0)) => Outcome::done(),
        // A doctor that finds something is not wrong.
        ("describe", Some(0)) => Outcome::Done(json!({ "text": said(&printed) })),
        ("describe", _) if ask.words("view") == "doctor" => Outcome::Done(json!({ "text": said(&printed) })),
        _ => Outcome::Refused(why(&printed)),
    })
}

fn said(printed: &Printed) -> String {
    let (out, err) = (printed.out.text(), printed.err.text());
    [out, err].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Why something was refused: its error if it tells one in JSON, or all that it says.
fn why(printed: &Printed) -> String {
    let told: Value = serde_json::from_str(printed.out.text()).unwrap_or_default();
    let actions = told["actions"].as_array().into_iter().flatten();
    let errors: Vec<&str> = actions.filter_map(|action| action["error"].as_str()).collect();
    if errors.is_empty() { said(printed).trim().to_owned() } else { errors.join("\n") }
}
