//! `script from`: a recording in, the text of a script out.

use std::path::Path;

use sidecert_proto::log::Guest;
use sidecert_proto::script::{Recorded, Script};

use crate::args::ScriptFromArgs;
use crate::exit::{self, Fault};
use crate::output;
use crate::recording::Opened;

/// The longest name that is made of one of a file.
const NAME_BYTES_MAX: usize = 60;

/// Writes a script that does what the host's side did in a recording.
pub(crate) fn from(args: &ScriptFromArgs) -> Result<u8, Fault> {
    let opened = Opened::of(&args.from)?;
    let names: Vec<&str> = opened.recordings()?.iter().map(|recorded| recorded.name).collect();
    let [only] = names.as_slice() else {
        let says = format!("it has {} processes; --process names one: {}", names.len(), names.join(", "));
        return Err(Fault::usage(format!("{}: {says}", args.from.recording.display())));
    };
    let name = args.name.clone().unwrap_or_else(|| name(only));
    let mut scripts = opened.scripts()?;
    let Some(script) = scripts.pop() else { return Ok(exit::OK) };
    let text = Script { name, ..script }.write();
    // What the reader refuses must not be written.
    Script::read(text.as_bytes()).map_err(|wrong| Fault::usage(format!("--name: {}", wrong.says)))?;
    match &args.output {
        Some(path) => output::write_file(path, &text)?,
        None => output::print(&text)?,
    }
    Ok(exit::OK)
}

/// A name of a script that is like that of a file.
pub(crate) fn name(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain = stem.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' });
    let name: String = plain.take(NAME_BYTES_MAX).collect();
    if name.is_empty() { "recorded".to_owned() } else { name }
}

impl Opened {
    /// A script for each process, called as [`name`] says.
    pub(crate) fn scripts(&self) -> Result<Vec<Script>, Fault> {
        let recordings = self.recordings()?;
        recordings
            .iter()
            .map(|recorded| {
                let mut script = Recorded::new(&name(recorded.name));
                recorded.events(self.suite, &self.contract, Guest::Late, &mut |event| script.event(event))?;
                let script = script.finish();
                if script.steps.is_empty() {
                    let says = "nothing was sent in it, so there is nothing to send again";
                    return Err(Fault::usage(format!("{}: {says}", recorded.path.display())));
                }
                Ok(script)
            })
            .collect()
    }
}
