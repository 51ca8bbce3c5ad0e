//! `replay`: what the host's side sent in a recording is sent again, and what the target says to it is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use sidecert_proto::contract::Side;
use sidecert_proto::log::Guest;
use sidecert_proto::replay::{Gather, Half};
use sidecert_proto::run::Run;
use sidecert_proto::script::Setting;
use sidecert_proto::transcript::Kind;
use sidecert_reports::safe;
use sidecert_runner::budget::IDLE_MOST;
use sidecert_runner::record::{Order, record};
use sidecert_runner::{Spawn, Stop};
use similar::{ChangeTag, TextDiff};
use tokio::sync::watch;

use crate::args::ReplayArgs;
use crate::commands::check::{self, Folder};
use crate::exit::{self, Fault};
use crate::output::cut_around;
use crate::recording::{Opened, Source};
use crate::{environment, output, scripts};

/// How much of a line is shown, in bytes: from a little before where it differs from its neighbour.
const LINE_BYTES_MAX: usize = 300;

/// Replays a recording; `listening` hears the user's wish to stop.
pub(crate) fn run(args: &ReplayArgs, listening: &watch::Receiver<Stop>) -> Result<u8, Fault> {
    let opened = Opened::of(&args.from)?;
    let command = args.target.command(|| format!("replay {}", args.from.recording.display()))?;
    let given = opened.scripts()?;
    let scratch = check::scratch()?;
    let folder = Folder::of(args.target.record.as_deref())?;
    let (none, nothing, no_exercise) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
    // A log of others names none, and a guest may refuse a handshake without.
    let workspace = match opened.run.workspace.as_str() {
        "" => scratch.path().display().to_string(),
        recorded => recorded.to_owned(),
    };
    let setting = Setting {
        manifest: opened.run.manifest.as_deref(),
        declared: &none,
        provocations: &nothing,
        exercised: &no_exercise,
        seed: opened.run.seed,
        workspace: &workspace,
        given: &given,
        ..Setting::plain(&opened.contract)
    };
    let environment = environment::of(&args.target, (opened.suite.environment)(&setting), scratch.path())?;
    let spawn = Spawn {
        argv: args.target.wrapped(&command)?,
        env: environment.variables,
        cwd: args.target.cwd.clone(),
        launcher: PathBuf::from("/proc/self/exe"),
    };
    let planned = scripts::planned(&given);
    let order = Order {
        side: Side::Guest,
        probe: None,
        suite: opened.suite,
        setting,
        scripts: &planned,
        selected: &none,
        isolate: true,
        jobs: args.target.jobs(),
        idle: if args.target.jobs.is_some() { 0 } else { IDLE_MOST },
        budget: args.target.budget(),
        spawn: &spawn,
        folder: folder.path(),
        stop: listening.clone(),
        watch: None,
    };
    let (recordings, recorded) = record(&order);
    let run = Run {
        argv: command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        given: given.iter().map(|script| script.name.clone()).collect(),
        selected: BTreeSet::new(),
        processes: recordings,
        ..opened.run.clone()
    };
    folder.write(&run)?;
    if let Some(fault) = check::forced(recorded, listening)? {
        return Err(fault);
    }
    let source = Source::Run(folder.path().to_owned());
    let again = Opened { source, run, only: Vec::new(), ..opened.clone() };
    let code = compare(&opened, &again, args.context)?;
    folder.keep_if(code != exit::OK);
    Ok(code)
}

/// Shows where the target's halves differ; gives the exit code.
fn compare(opened: &Opened, again: &Opened, context: usize) -> Result<u8, Fault> {
    let mut second: BTreeMap<String, (Half, Option<String>)> = BTreeMap::new();
    let mut cause = None;
    let played = again.run.processes.iter().filter(|recording| recording.set_aside.is_none());
    for (recorded, recording) in again.recordings()?.iter().zip(played) {
        let name = recording.scripts.first().cloned().unwrap_or_default();
        let (half, cut) = half(again, recorded)?;
        cause = cause.or_else(|| cut.clone());
        second.insert(name, (half, cut));
    }
    let mut told = String::new();
    let (mut same, mut differ, mut missing) = (0, 0, 0);
    for recorded in opened.recordings()? {
        let (first, _) = half(opened, &recorded)?;
        let name = super::script::name(recorded.name);
        let shown = safe::escape(recorded.name);
        let Some((mut second, cut)) = second.remove(&name) else {
            missing += 1;
            told.push_str(&format!("{shown} was not replayed\n"));
            continue;
        };
        second.no_more_than(&first);
        if first == second {
            same += 1;
            continue;
        }
        differ += 1;
        told.push_str(&difference(recorded.name, &first, &second, context));
        if let Some(cut) = cut {
            told.push_str(&format!("{shown} was not replayed to its end: {}\n", safe::escape(&cut)));
        }
    }
    let processes =
        |count: usize| if count == 1 { "1 process".to_owned() } else { format!("{count} processes") };
    told.push_str(&match (differ, same) {
        (0, 0) => String::new(),
        (0, _) => format!("{} replayed: the target says the same\n", processes(same)),
        _ => format!("{} replayed: the target says something else in {differ}\n", processes(same + differ)),
    });
    if missing > 0 {
        let cause = cause.unwrap_or_else(|| "the run ended before".to_owned());
        told.push_str(&format!("{} not replayed: {}\n", processes(missing), safe::escape(&cause)));
    }
    output::print(&told)?;
    Ok(match (differ, missing) {
        (0, 0) => exit::OK,
        (0, _) => exit::UNDECIDED,
        _ => exit::FAILED,
    })
}

/// What the target said in a recording, and why a script in it came to no end.
fn half(opened: &Opened, recorded: &crate::recording::Recorded<'_>) -> Result<(Half, Option<String>), Fault> {
    let mut gather = Gather::new(&opened.contract, (opened.suite.contract)());
    let mut cut = None;
    recorded.events(opened.suite, &opened.contract, Guest::Late, &mut |event| {
        if let Kind::Ended { cut: Some(cause), .. } = &event.kind {
            cut.get_or_insert_with(|| cause.clone().into_owned());
        }
        gather.event(event);
    })?;
    Ok((gather.finish(), cut))
}

/// The lines that differ, and some around them.
fn difference(name: &str, first: &Half, second: &Half, context: usize) -> String {
    let lines = |half: &Half| half.lines.iter().map(|line| format!("{line}\n")).collect::<Vec<_>>();
    let (old, new) = (lines(first), lines(second));
    let (old, new): (Vec<&str>, Vec<&str>) =
        (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
    let diff = TextDiff::from_slices(&old, &new);
    let name = safe::escape(name);
    let mut out = format!("--- {name}, as recorded\n+++ {name}, replayed\n");
    for group in diff.grouped_ops(context) {
        out.push_str("@@\n");
        for op in &group {
            // Where one line stands for another, both are shown from where they part.
            let from = match (op.old_range().len(), op.new_range().len(), op.tag()) {
                (1, 1, similar::DiffTag::Replace) => {
                    let (one, other) = (old[op.old_range().start], new[op.new_range().start]);
                    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
                }
                _ => 0,
            };
            for change in diff.iter_changes(op) {
                let sign = match change.tag() {
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                    ChangeTag::Equal => ' ',
                };
                out.push(sign);
                let line = cut_around(change.value().trim_end_matches('\n'), LINE_BYTES_MAX, from);
                out.push_str(&safe::escape(&line));
                out.push('\n');
            }
        }
    }
    out
}
