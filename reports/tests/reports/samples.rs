//! Reports as a run would make them, in the situations that a reader meets.

use sidecert_reports::{
    Basis, Cause, Cite, CiteKind, Compared, Contract, Counts, Difference, Environment, Fault, Format, Frame,
    LateFrame, LeftOut, Level, Location, Origin, Outcome, OwnFrame, Process, Profile, Report, Requirement,
    Role, Seen, Target, Tool, Verdict, Wait, WaitFor, Why,
};

/// A run over a conforming guest.
pub(crate) fn green() -> Report {
    finished(vec![
        passed(
            "reasonix/transport/one-frame-per-line",
            "Every line is exactly one JSON object.",
            seed("传输", "Transport"),
        ),
        passed(
            "reasonix/lifecycle/initialize-answered",
            "The request initialize is answered with the protocol id and the version.",
            seed("生命周期", "Lifecycle"),
        ),
        Requirement {
            says: Some("like reasonix 1.38.11; the specification asks for a refusal".to_owned()),
            ..passed(
                "reasonix/envelope/string-id-refused",
                "A request whose id is a string is an invalid frame.",
                seed("传输", "Transport"),
            )
        },
        Requirement {
            verdict: Verdict::NotApplicable,
            says: Some("the manifest declares no providers".to_owned()),
            ..passed(
                "reasonix/streaming/sequence-from-one",
                "The chunks of a stream are numbered from 1.",
                seed("流式 Provider", "Streaming providers"),
            )
        },
    ])
}

/// One broken requirement, in a guest that otherwise conforms.
pub(crate) fn one_failure() -> Report {
    let mut report = green();
    report.requirements[2] = string_id_served();
    report.requirements.push(undecided(
        "reasonix/transport/frame-never-too-long",
        "No frame is longer than 8388608 bytes.",
        Why::NotProvoked,
        "the provocation `large` would make the target send one",
    ));
    report.requirements.push(undecided(
        "reasonix/content/refs-are-unguessable",
        "A content reference cannot be guessed.",
        Why::Unobservable,
        "randomness cannot be told from a sample of it",
    ));
    report.outcome = Outcome {
        exit_code: 1,
        says: "a requirement that the specification states did not hold".to_owned(),
        cause: None,
        interrupted: false,
    };
    report.processes.push(Process {
        name: "002-odd-ids".to_owned(),
        scripts: vec!["odd-ids".to_owned(), "odd-params".to_owned()],
        ended: "in order: it closed its output after shutdown".to_owned(),
        exit: Some("code 0".to_owned()),
        left: vec![],
        stderr_tail: "guest 0.3.1 ready\nTraceback (most recent call last):\n  File \"guest.py\", line 40, in dispatch\n    key = int(frame[\"id\"])\nValueError: invalid literal for int() with base 10: 'a'\n".to_owned(),
    });
    report.environment.withheld = vec!["GITHUB_TOKEN".to_owned(), "OPENAI_API_KEY".to_owned()];
    recounted(report)
}

/// A host that conforms, and does some things otherwise than the reference host.
pub(crate) fn compared() -> Report {
    let mut report = green();
    let seen = |script: &str, guest: Option<&str>, event: Option<u64>| Seen {
        script: script.to_owned(),
        guest: guest.map(str::to_owned),
        at: event.map(|event| Location { process: "001-plain-turn".to_owned(), event }),
    };
    report.role = Role::Host;
    report.late = vec![LateFrame {
        process: "001-plain-turn".to_owned(),
        event: 44,
        method: "extension/event".to_owned(),
    }];
    report.compared = Some(Compared {
        with: "the reference host of sidecert 0.1.0".to_owned(),
        scripts: 12,
        alike: 7,
        left_out: vec![LeftOut {
            script: "crash-in-stream".to_owned(),
            why: "the host was not played to its end: it hung".to_owned(),
        }],
        differences: vec![
            Difference {
                what: "extension/intercept".to_owned(),
                point: Some("input.receive".to_owned()),
                place: "/params/timeoutMillis".to_owned(),
                target: Some("10000".to_owned()),
                reference: Some("5000".to_owned()),
                times: 5,
                seen: vec![
                    seen("plain-turn", Some("one"), Some(20)),
                    seen("chain-of-guests", Some("one"), Some(8)),
                    seen("chain-of-guests", Some("two"), Some(9)),
                    seen("reload", Some("one, launch 2"), Some(40)),
                    seen("surfaces", Some("one"), Some(12)),
                ],
            },
            Difference {
                what: "outcome of turn".to_owned(),
                point: None,
                place: String::new(),
                target: None,
                reference: Some(r#"{"came":"failed"}"#.to_owned()),
                times: 1,
                seen: vec![seen("odd-turn", None, None)],
            },
        ],
        more: 0,
    });
    report
}

/// A guest that is gone before anything could be asked of it.
pub(crate) fn cut_short() -> Report {
    let mut report = green();
    let cause = "the target exited with code 1 before it answered initialize";
    for requirement in &mut report.requirements[..3] {
        requirement.verdict = Verdict::Undecided;
        requirement.why = Some(Why::CutShort);
        requirement.says = Some(cause.to_owned());
    }
    report.outcome = Outcome {
        exit_code: 3,
        says: "nothing failed, but something that must hold could not be judged".to_owned(),
        cause: Some(cause.to_owned()),
        interrupted: false,
    };
    report.causes = vec![Cause {
        script: Some("handshake".to_owned()),
        expected: Some("an answer to extension/initialize".to_owned()),
        actual: cause.to_owned(),
        cites: seed("生命周期", "Lifecycle"),
        at: Some(Location { process: "001-handshake".to_owned(), event: 2 }),
        frames: vec![
            frame(1, 310, Origin::Host, Some("request 1, extension/initialize"), r#"{"jsonrpc":"2.0","id":1,"method":"extension/initialize","params":{}}"#, false),
            frame(2, 48_004, Origin::Event, None, "the process exited with code 1", true),
        ],
        fault: Some(Fault::Target),
        hint: Some("the end of its standard error, below".to_owned()),
        again: Some("sidecert check guest --suite reasonix-v1 --seed 7f3a9c --only reasonix/transport/one-frame-per-line -- python3 guest.py --stdio".to_owned()),
        cuts: report.requirements[..3].iter().map(|row| row.id.clone()).collect(),
    }];
    report.processes = vec![Process {
        name: "001-handshake".to_owned(),
        scripts: vec!["handshake".to_owned()],
        ended: "cut short: the target closed its output while an answer was awaited".to_owned(),
        exit: Some("code 1".to_owned()),
        left: vec!["4242 (node), in a session of its own".to_owned()],
        stderr_tail: "Traceback (most recent call last):\n  File \"guest.py\", line 3, in <module>\n    import reasonix\nModuleNotFoundError: No module named 'reasonix'\n".to_owned(),
    }];
    report.environment.withheld = vec!["OPENAI_API_KEY".to_owned()];
    recounted(report)
}

/// Nothing failed, but much is left open.
pub(crate) fn warnings_and_undecided() -> Report {
    let mut report = green();
    report.requirements[0] = Requirement {
        level: Level::Should,
        basis: Basis::Observed,
        verdict: Verdict::Warn,
        says: Some("released hosts ignore the blank line, so nobody may ever notice".to_owned()),
        cites: vec![],
        expected: Some("nothing between two frames".to_owned()),
        actual: Some("a line that holds nothing but a carriage return".to_owned()),
        at: Some(Location { process: "001-handshake".to_owned(), event: 9 }),
        frames: vec![frame(9, 5_120, Origin::Guest, None, "\r", true)],
        ..passed("reasonix/transport/no-blank-lines", "A guest writes no blank lines between frames.", vec![])
    };
    let open = [
        ("reasonix/lifecycle/shutdown-answered", Why::CutShort, "the target exited during stream-cancelled"),
        (
            "reasonix/lifecycle/exits-after-shutdown",
            Why::CutShort,
            "the target exited during stream-cancelled",
        ),
        ("reasonix/errors/panic-is-internal-error", Why::NotProvoked, "the provocation `panic`"),
        ("reasonix/transport/frame-never-too-long", Why::NotProvoked, "the provocation `large`"),
        ("reasonix/ui/prompt-answered-once", Why::NotExercised, "it asks the user something"),
        ("reasonix/security/no-open-files-inherited", Why::NotMeasured, "needs /proc"),
        ("reasonix/interception/order-of-plugins", Why::OutOfReach, "the driver `none:` sends no prompts"),
        ("reasonix/stability/reserved-names", Why::NotSelected, "not in `--only 'reasonix/lifecycle/*'`"),
        (
            "reasonix/content/refs-are-unguessable",
            Why::Unobservable,
            "randomness cannot be told from a sample of it",
        ),
    ];
    for (id, why, says) in open {
        report.requirements.push(undecided(id, "Something that is of no matter here.", why, says));
    }
    for row in report.requirements.iter_mut().filter(|row| row.why == Some(Why::NotExercised)) {
        row.option = Some("--exercise prompts".to_owned());
    }
    report.causes = vec![Cause {
        script: None,
        expected: None,
        actual: "the target exited during stream-cancelled".to_owned(),
        cites: vec![],
        at: None,
        frames: vec![],
        fault: None,
        hint: None,
        again: None,
        cuts: vec!["reasonix/lifecycle/shutdown-answered".to_owned()],
    }];
    report.profile = Profile::Reference;
    report.strict = true;
    report.ours = vec![OwnFrame {
        process: "001-handshake".to_owned(),
        event: 3,
        says: "the member generation is missing in params of initialize".to_owned(),
    }];
    report.outcome = Outcome {
        exit_code: 130,
        says: "interrupted".to_owned(),
        cause: Some("the target exited during stream-cancelled".to_owned()),
        interrupted: true,
    };
    recounted(report)
}

/// A failure with `text` wherever a target has a say.
pub(crate) fn said_by_a_target(text: &str) -> Report {
    let mut report = one_failure();
    let failed = &mut report.requirements[2];
    failed.says = Some(text.to_owned());
    failed.actual = Some(text.to_owned());
    for frame in &mut failed.frames {
        frame.label = Some(text.to_owned());
        text.clone_into(&mut frame.text);
    }
    failed.again = Some(text.to_owned());
    let warned = Requirement { verdict: Verdict::Warn, ..failed.clone() };
    report.requirements.push(warned);
    for requirement in &mut report.requirements {
        requirement.says = Some(text.to_owned());
    }
    report.target.argv.push(text.to_owned());
    report.outcome.cause = Some(text.to_owned());
    text.clone_into(&mut report.outcome.says);
    report.causes = vec![Cause {
        script: Some(text.to_owned()),
        expected: Some(text.to_owned()),
        actual: text.to_owned(),
        cites: vec![],
        at: Some(Location { process: text.to_owned(), event: 1 }),
        frames: vec![frame(1, 0, Origin::Event, Some(text), text, true)],
        fault: None,
        hint: Some(text.to_owned()),
        again: Some(text.to_owned()),
        cuts: vec![],
    }];
    report.ours = vec![OwnFrame { process: text.to_owned(), event: 1, says: text.to_owned() }];
    report.late = vec![LateFrame { process: text.to_owned(), event: 1, method: text.to_owned() }];
    report.waits[0].label = Some(text.to_owned());
    for process in &mut report.processes {
        text.clone_into(&mut process.ended);
        process.exit = Some(text.to_owned());
        process.left = vec![text.to_owned()];
        process.stderr_tail = format!("{text}\n{text}");
    }
    report.environment.withheld = vec![text.to_owned()];
    recounted(report)
}

fn string_id_served() -> Requirement {
    Requirement {
        verdict: Verdict::Fail,
        says: None,
        expected: Some("an error with the code -32600 and the id null".to_owned()),
        actual: Some("a result for the id \"a\"".to_owned()),
        at: Some(Location { process: "002-odd-ids".to_owned(), event: 17 }),
        frames: vec![
            frame(15, 20_004, Origin::Host, Some("request content/list"), r#"{"jsonrpc":"2.0","id":"a","method":"content/list","params":{}}"#, false),
            frame(16, 20_310, Origin::Event, None, "all of it was written", false),
            frame(17, 21_411, Origin::Guest, Some("answer to no request"), r#"{"jsonrpc":"2.0","id":"a","result":{"items":[],"note":"a longer answer, so that it has to be broken"}}"#, true),
            frame(18, 21_502, Origin::Host, Some("request stream/cancel"), r#"{"jsonrpc":"2.0","id":8,"method":"stream/cancel","params":{"streamId":"never-was"}}"#, false),
        ],
        fault: Some(Fault::Target),
        again: Some("sidecert check --suite reasonix-v1 --seed 7f3a9c --only reasonix/envelope/string-id-refused -- python3 guest.py --stdio".to_owned()),
        cites: vec![
            Cite { kind: CiteKind::Seed, section: "传输".to_owned(), english: Some("Transport".to_owned()) },
            Cite { kind: CiteKind::Schema, section: "/$defs/Request/properties/id".to_owned(), english: None },
            Cite { kind: CiteKind::JsonRpc, section: "4 Request object".to_owned(), english: None },
        ],
        ..passed("reasonix/envelope/string-id-refused", "A request whose id is a string is an invalid frame.", vec![])
    }
}

fn frame(event: u64, micros: u64, from: Origin, label: Option<&str>, text: &str, marked: bool) -> Frame {
    Frame {
        event,
        micros,
        from,
        target: from == Origin::Guest,
        label: label.map(str::to_owned),
        text: text.to_owned(),
        bytes: text.len() as u64,
        marked,
    }
}

fn seed(section: &str, english: &str) -> Vec<Cite> {
    vec![Cite { kind: CiteKind::Seed, section: section.to_owned(), english: Some(english.to_owned()) }]
}

fn passed(id: &str, text: &str, cites: Vec<Cite>) -> Requirement {
    Requirement {
        id: id.to_owned(),
        level: Level::Must,
        basis: Basis::Specified,
        verdict: Verdict::Pass,
        why: None,
        says: None,
        option: None,
        text: text.to_owned(),
        cites,
        expected: None,
        actual: None,
        at: None,
        frames: vec![],
        fault: None,
        again: None,
    }
}

fn undecided(id: &str, text: &str, why: Why, says: &str) -> Requirement {
    Requirement {
        verdict: Verdict::Undecided,
        why: Some(why),
        says: Some(says.to_owned()),
        ..passed(id, text, seed("传输", "Transport"))
    }
}

fn recounted(mut report: Report) -> Report {
    report.counts = Counts::of(&report.requirements);
    report
}

fn finished(requirements: Vec<Requirement>) -> Report {
    Report {
        format: Format::SidecertReport,
        version: Report::VERSION,
        tool: Tool { name: "sidecert".to_owned(), version: "0.1.0".to_owned() },
        suite: "reasonix-v1".to_owned(),
        edition: "reasonix.extension.v1".to_owned(),
        contract: Contract {
            id: "reasonix.extension.v1".to_owned(),
            sha256: "22338e662c66a0cb0f6055263afc18e122640e71f552b601251a1c7899593be3".to_owned(),
            built_in: true,
        },
        role: Role::Guest,
        target: Target {
            argv: ["python3", "guest.py", "--stdio"].map(str::to_owned).to_vec(),
            sha256: Some("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned()),
        },
        seed: "7f3a9c".to_owned(),
        profile: Profile::Specified,
        strict: false,
        started: Some("2026-01-15T10:00:00Z".to_owned()),
        platform: "linux-x86_64".to_owned(),
        outcome: Outcome {
            exit_code: 0,
            says: "everything that must hold and could be judged did hold".to_owned(),
            cause: None,
            interrupted: false,
        },
        counts: Counts::of(&requirements),
        requirements,
        causes: vec![],
        ours: vec![],
        late: vec![],
        waits: vec![
            Wait {
                process: "001-handshake".to_owned(),
                script: "handshake".to_owned(),
                awaited: WaitFor::Answer,
                label: Some("initialize".to_owned()),
                micros: 48_211,
                within_micros: 5_000_000,
            },
            Wait {
                process: "001-handshake".to_owned(),
                script: "handshake".to_owned(),
                awaited: WaitFor::Drain,
                label: None,
                micros: 1_902,
                within_micros: 5_000_000,
            },
        ],
        longest_wait_micros: 48_211,
        processes: vec![Process {
            name: "001-handshake".to_owned(),
            scripts: vec!["handshake".to_owned()],
            ended: "in order: it closed its output after shutdown".to_owned(),
            exit: Some("code 0".to_owned()),
            left: vec![],
            stderr_tail: "guest 0.3.1 ready\n".to_owned(),
        }],
        compared: None,
        environment: Environment { withheld: vec![] },
    }
}
