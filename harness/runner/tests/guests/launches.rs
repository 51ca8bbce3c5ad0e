//! Processes that a machine starts on its way, as the reference host does.

use sidecert_proto::machine::{Action, Exited, Input, Launch};
use sidecert_runner::{Links, Process};

use crate::{
    Test,
    player::{Cast, spawn},
};

pub(crate) const TESTS: &[Test] = &[
    ("a_machine_starts_what_it_names", a_machine_starts_what_it_names),
    ("what_cannot_be_started_is_told", what_cannot_be_started_is_told),
];

/// The machine's process is one that ends when its input does, so the test ends when that is closed.
fn links() -> Links {
    let spawn = spawn(&["cat"]);
    let launcher = spawn.launcher.clone();
    Links::guest(Process::spawn(&spawn).unwrap()).launcher(launcher)
}

fn launch(link: usize, args: &[&str]) -> Action {
    let argv = spawn(args).argv.into_iter().map(|word| word.into_string().unwrap());
    let mut argv: Vec<String> = argv.collect();
    let command = argv.remove(0);
    let env = [("LAUNCHED", "no"), ("LAUNCHED", "yes")].map(|(name, value)| (name.into(), value.into()));
    Action::Launch { link, launch: Launch { command, args: argv, env: env.into() } }
}

fn a_machine_starts_what_it_names() {
    let cast = Cast::new(|told, link, input| match (link, input) {
        (1, Input::Launched(_)) => vec![launch(2, &["cat"])],
        (2, Input::Launched(_)) => {
            let bytes = "hello".into();
            vec![Action::Write { link: 2, bytes, after_drain: false }, Action::Close { link: 2 }]
        }
        (_, Input::Exited(_)) if told.iter().skip(1).all(|told| told.exited.is_some()) => {
            vec![Action::Close { link: 0 }]
        }
        _ => Vec::new(),
    });
    let told = cast.first([launch(1, &["surroundings"])]).play(links());
    assert_eq!(told.len(), 3);
    assert!(told[1].lines().contains(&"LAUNCHED=yes") && told[1].lines().contains(&"group of its own: true"));
    let launched = told[1].launched.as_ref().unwrap();
    assert!(launched.argv.ends_with(&["surroundings".to_owned()]) && launched.pid > 0, "{launched:?}");
    assert_eq!(launched.env.iter().filter(|(name, _)| name == "LAUNCHED").count(), 1);
    assert_eq!(told[1].order, ["launched", "bytes", "eof", "exited"]);
    assert_eq!(told[2].order, ["launched", "wrote", "bytes", "eof", "exited"]);
    assert_eq!((told[2].lines(), told[2].exited), (vec!["hello"], Some(Exited::Code(0))));
}

fn what_cannot_be_started_is_told() {
    let nothing = Launch { command: "./no-such-file".into(), ..Launch::default() };
    let cast = Cast::new(|_, _, input| match input {
        Input::NotLaunched(_) => vec![Action::Kill { link: 1 }, Action::Close { link: 0 }],
        _ => Vec::new(),
    });
    let told = cast.first([Action::Launch { link: 1, launch: nothing }]).play(links());
    let why = "\"./no-such-file\" does not exist; build it, or correct the path";
    assert_eq!(told[1].not_launched.as_deref(), Some(why));
    assert_eq!(told[1].order, ["not-launched"]);
}
