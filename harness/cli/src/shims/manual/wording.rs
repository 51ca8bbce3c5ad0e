//! What a person is asked for, in words, and the files that go with it.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;
use sidecert_reports::safe;

use crate::shims::Ask;
use crate::shims::folder::{self, Folder, Placed};

/// The longest text that stands in a line, in bytes; a longer one has a file.
const TEXT_BYTES_MAX: usize = 200;
/// The file with what is to be said.
const SAY: &str = "say.txt";

/// What there is to say, and what it is about.
#[derive(Debug)]
pub(super) struct Wording {
    folder: Folder,
    /// The host, as it is started.
    command: Vec<String>,
    /// The plugins of the session.
    plugins: Vec<Placed>,
}

impl Wording {
    pub(super) fn of(folder: Folder, command: Vec<String>) -> Self {
        Self { folder, command, plugins: Vec::new() }
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The plugin that a text of the host is about: the only one whose name stands in it as a word.
    pub(super) fn named_in(&self, text: &str) -> Option<&str> {
        let is_part = |character: char| character.is_alphanumeric() || "-_".contains(character);
        let words: Vec<&str> = text.split(|character| !is_part(character)).collect();
        let mut named =
            self.plugins.iter().map(|plugin| plugin.name.as_str()).filter(|it| words.contains(it));
        named.next().filter(|_| named.next().is_none())
    }

    /// The lines for an ask.
    pub(super) fn lines(&mut self, ask: &Ask) -> io::Result<Vec<String>> {
        Ok(match ask.what.as_str() {
            "start" => self.start(ask)?,
            "stop" => vec!["Stop your host in order, and wait until it is gone.".to_owned()],
            "turn" => self.turn(ask)?,
            "cancel" => vec!["Stop the turn that is running, as a user does.".to_owned()],
            "reload" => vec!["Reload the plugins.".to_owned()],
            "action" => {
                let (action, plugin) = (ask.words("action"), ask.words("plugin"));
                let mut lines = vec![format!("Invoke the action {action:?} of the plugin {plugin:?}.")];
                lines.extend(values(ask.member("args")));
                lines
            }
            "submit" => {
                let (surface, plugin) = (ask.words("surface"), ask.words("plugin"));
                let mut lines =
                    vec![format!("Submit the form {surface:?} of the plugin {plugin:?} with this:")];
                lines.extend(values(ask.member("values")));
                lines
            }
            "answer" => answer(ask),
            "compact" => vec!["Let your host compact the conversation.".to_owned()],
            "new-session" => vec!["Begin another conversation, and leave your host running.".to_owned()],
            "models" => {
                vec!["Which models can be chosen? Say each with `s NAME`, then press Enter.".to_owned()]
            }
            "admit" => {
                let placed = self.folder.place_one(ask.member("plugin"))?;
                vec![
                    "See whether your host would install this plugin; `r TEXT` where it does not:".to_owned(),
                    line_of(&placed),
                ]
            }
            "describe" => self.describe(ask)?,
            "signal" => match ask.words("signal") {
                "INT" => vec![
                    "Press Ctrl-C where your host runs, and wait until it is gone.".to_owned(),
                    "    where no terminal is to be had: kill -INT PID".to_owned(),
                ],
                signal => vec![
                    format!("Send your host the signal {signal}, and wait until it is gone:"),
                    format!("    kill -{signal} PID"),
                ],
            },
            other => {
                vec![format!("Do {other:?}, which this version of sidecert has no words for: {}", ask.raw())]
            }
        })
    }

    fn start(&mut self, ask: &Ask) -> io::Result<Vec<String>> {
        self.plugins = self.folder.place(ask)?;
        let mut lines = vec![match self.plugins.len() {
            0 => "Start your host without any plugin.".to_owned(),
            _ => "Start your host with these plugins and no others:".to_owned(),
        }];
        lines.extend(self.plugins.iter().map(line_of));
        if !self.command.is_empty() {
            lines.push(format!("    it is started as: {}", self.command.join(" ")));
        }
        if let Some(workspace) = ask.text("workspace") {
            lines.push(format!("    its workspace: {workspace}"));
        }
        if let Some(host) = ask.text("uiHost") {
            lines.push(format!("    so that it is, for its plugins: {host}"));
        }
        if let Some(ruling) = ask.text("permission") {
            let says = if ruling == "deny" { "it denies" } else { "it allows" };
            lines.push(format!("    set up so that of itself {says} every tool that does not only read"));
        }
        for (name, value) in folder::variables() {
            lines.push(format!("    in the environment of every plugin: {name}={value}"));
        }
        lines.push(format!("    (a shell reads them from {})", self.folder.variables().display()));
        lines.push(
            "Nothing may be left in it of an earlier session. It is done when it would take a turn.".into(),
        );
        Ok(lines)
    }

    fn turn(&self, ask: &Ask) -> io::Result<Vec<String>> {
        let mut lines = match self.in_a_line(ask.words("text"), SAY)? {
            Ok(text) => vec!["Say this to it:".to_owned(), format!("    {text}")],
            Err(file) => vec![format!("Say to it what stands in {file}")],
        };
        if let Some(model) = ask.text("model") {
            lines.push(format!("    to the model {model}"));
        }
        if let Some(effort) = ask.text("effort") {
            lines.push(format!("    with the effort {effort}"));
        }
        lines.push("Then say what was shown of the answer with `s TEXT`, and press Enter.".to_owned());
        Ok(lines)
    }

    fn describe(&self, ask: &Ask) -> io::Result<Vec<String>> {
        let plugin = ask.member("plugin");
        let placed = if plugin.is_object() { Some(self.folder.place_one(plugin)?) } else { None };
        let what = match ask.words("view") {
            "preview" => "before it installs this plugin",
            "doctor" => "when it looks for what is wrong with this plugin",
            _ => "of this plugin",
        };
        let name = plugin.as_str().unwrap_or_default();
        Ok(vec![
            format!("What does your host say {what}? Say it with `s TEXT`, then press Enter."),
            placed.as_ref().map_or_else(|| format!("    {name}"), line_of),
        ])
    }

    /// A text as it can stand in a line, or else the file that holds it.
    fn in_a_line(&self, text: &str, file: &str) -> io::Result<Result<String, String>> {
        if text.len() <= TEXT_BYTES_MAX && safe::escape(text) == text {
            return Ok(Ok(text.to_owned()));
        }
        let path = self.folder.file(file);
        fs::write(&path, text)?;
        Ok(Err(shown_of(&path, text.len())))
    }
}

fn shown_of(path: &Path, bytes: usize) -> String {
    format!("{} ({bytes} bytes)", path.display())
}

fn line_of(plugin: &Placed) -> String {
    let how = match (plugin.is_declared, plugin.is_enabled) {
        (true, _) => ", not installed, and only named in the configuration of the project",
        (false, false) => ", installed, and not enabled",
        (false, true) => "",
    };
    format!("    {}: {}{how}", plugin.name, plugin.folder.display())
}

fn answer(ask: &Ask) -> Vec<String> {
    if ask.text("prompt").is_some() {
        // A prompt is known by what a shim calls it, and a person calls none.
        return vec![
            "If your host shows a prompt of a plugin, leave it open. Press Enter when it had the time to."
                .into(),
        ];
    }
    if ask.member("cancelled") == true {
        return vec!["Dismiss the prompt that is shown; `c TEXT` where none is.".to_owned()];
    }
    let mut lines = vec!["Answer the prompt that is shown with this; `c TEXT` where none is.".to_owned()];
    lines.extend(values(ask.member("values")));
    lines
}

/// A line for each value by its name.
fn values(of: &Value) -> Vec<String> {
    let members = of.as_object().into_iter().flatten();
    members.map(|(name, value)| format!("    {name}: {value}")).collect()
}
