//! Decisions in a session: rulings, owners, content, models and surfaces.

use serde_json::{Value, json};
use sidecert_mocks::reasonix::host::{Check, Manners};
use sidecert_proto::reasonix::contract as names;

use super::{Does, differ, does, seen, stage, starts, turn};
use crate::stage::{
    Act, Puppet, Stage, after, answer, chunk, end, error, intercepting, plugin, say, v1, v2, words,
};

/// Guests that do each of these at `input.receive`, with a model that runs a tool.
fn rulings(manners: &Manners) -> String {
    let mut all = String::new();
    let rules: [Does; 9] = [
        |it| answer(it, &json!({"decision": "replace", "replacement": {"text": "new"}})),
        |it| answer(it, &json!({"decision": "continue", "replacement": {"text": "never"}})),
        |it| answer(it, &json!({"decision": "block", "reason": "sk-abcdefghijkl1234"})),
        |it| answer(it, &json!({"decision": "allow"})),
        |it| answer(it, &json!({"decision": "replace", "replacement": {"text": ""}})),
        |it| answer(it, &json!({"decision": "continue", "extra": 1})),
        |it| {
            error(
                it,
                &json!({"code": -32000, "message": "no", "data": {"reason": "internal", "retryable": false}}),
            )
        },
        |it| answer(it, &json!({"decision": "continue"})).into_iter().map(|act| after(7_000, act)).collect(),
        |it| {
            let ruled = |id: String, decision: &str| {
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"decision\":\"{decision}\"}}}}\n")
            };
            let id = &it["id"];
            let odd = [ruled(format!("\"{id}\""), "block"), ruled("77".to_owned(), "block")]
                .map(|line| Act::Bytes(line.into_bytes()));
            let both = ruled(id.to_string(), "continue") + &ruled(id.to_string(), "block");
            [odd.to_vec(), vec![Act::Bytes(both.into_bytes())]].concat()
        },
    ];
    for rule in rules {
        for (required, slot) in [(false, None), (true, None), (false, Some("compaction"))] {
            let mut stage = stage(manners);
            for name in ["a", "b", "c"] {
                let mut ruled = 0;
                stage.casts(name, move || {
                    Puppet::new().on(names::INTERCEPT, move |frame| {
                        ruled += 1;
                        (name != "c" && frame["params"]["event"] == "input.receive" && ruled < 3)
                            .then(|| rule(frame))
                    })
                });
            }
            let mut block = intercepting(&["input.receive"]);
            block["required"] = required.into();
            if let Some(slot) = slot {
                block["replaces"] = json!([slot]);
            }
            let mut first = intercepting(&["input.receive", "session.save", "frontend.event"]);
            (first["priority"], first["timeoutMillis"]) = (5.into(), 70_000.into());
            stage.casts("model", || {
                Puppet::new()
                    .with_models(&["plugin/model/p/m"])
                    .streaming(|it| vec![words(it, 1, "x"), end(it, 1)])
            });
            starts(
                &mut stage,
                &[
                    ("a", block),
                    ("b", first),
                    ("c", intercepting(&["input.receive", "session.save", "frontend.event"])),
                    ("model", json!({"capabilities": ["providers"]})),
                ],
            );
            turn(&mut stage);
            turn(&mut stage);
            seen(&stage, &mut all);
        }
    }
    all
}

#[test]
fn rulings_differ() {
    differ(
        rulings,
        flaws![
            frames.id_step = 0,
            frames.unknown_ids_resolve = true,
            frames.last_answer_counts = true,
            frames.text_ids_match = true,
            hooks.chain_everywhere = false,
            hooks.session_points = false,
            hooks.input_event = false,
            hooks.lower_first = false,
            hooks.names_ascend = false,
            hooks.serial = false,
            hooks.waits = false,
            hooks.passes_replacements = false,
            hooks.continue_keeps = false,
            hooks.block_ends_chain = false,
            hooks.blocks = false,
            hooks.tells_block_reasons = false,
            hooks.rulings_anywhere = true,
            hooks.replacements = Check::Nothing,
            hooks.seq_step = 2,
            hooks.short_millis = 6_000,
            hooks.long_millis = 20_000,
            hooks.most_millis = 90_000,
            hooks.manifest_millis = false,
            hooks.keeps_time = false,
            hooks.required_fails = false,
            hooks.optional_fails = true,
            hooks.warns_once = false,
            hooks.events = false,
            hooks.events_of_blocked = false,
            hooks.events_are_final = false,
            hooks.by_manifest = false,
            hooks.owners_are_required = false,
            hooks.errors_fail = false,
            hooks.failure_ends = true,
            redacts.reasons = false,
        ],
    );
}

/// Owners of slots, permissions, and what guests make of requests and answers.
fn owners(manners: &Manners) -> String {
    let mut all = String::new();
    let message = json!({"role": "user", "content": "other"});
    let write = |decision: &str| json!({"decision": "replace", "replacement": {"name": "write_file", "hostDecision": decision}});
    let cases: Vec<(&'static str, &str, Value)> = vec![
        (
            "context",
            "context.prepare",
            json!({"decision": "replace", "replacement": {"messages": [message]}}),
        ),
        ("context", "context.prepare", json!({"decision": "block"})),
        ("context", "context.prepare", json!({"decision": "allow"})),
        (
            "provider_response",
            "provider.response",
            json!({"decision": "replace", "replacement": {"text": "other"}}),
        ),
        ("frontend_events", "frontend.event", json!({"decision": "allow"})),
        ("permission", "permission.decision", json!({"decision": "allow"})),
        ("permission", "permission.decision", json!({"decision": "deny"})),
        ("permission", "permission.decision", write("allow")),
        ("tool:write_file", "tool.before", json!({"decision": "block"})),
    ];
    for (slot, point, ruling) in cases {
        for chain in ["continue", "block", "allow", "deny", "continue too"] {
            let mut stage = stage(manners);
            let point: &'static str = Box::leak(point.to_owned().into_boxed_str());
            let ruling = ruling.clone();
            stage.casts("owner", move || Puppet::new().at(point, ruling.clone()));
            for name in ["chain", "next"] {
                let decision = chain.split(' ').next();
                stage.casts(name, move || Puppet::new().at(point, json!({ "decision": decision })));
            }
            stage.casts("model", || {
                let mut opened = 0;
                Puppet::new().with_models(&["plugin/model/p/m"]).streaming(move |it| {
                    opened += 1;
                    let call = json!({"id": "c", "name": "write_file", "arguments": "{}"});
                    let first = chunk(it, 1, &json!({"type": "tool_call", "toolCall": call}));
                    vec![
                        if opened == 1 { first } else { words(it, 1, "Done sk-abcdefghijkl1234") },
                        end(it, 1),
                    ]
                })
            });
            // Every other owner steps in at its point as well.
            let mut owner = if chain == "continue" { json!({}) } else { intercepting(&[point]) };
            owner["replaces"] = json!([slot]);
            let entries: Vec<Value> = [
                ("owner", owner),
                ("chain", intercepting(&[point])),
                ("next", intercepting(&[point])),
                ("model", json!({"capabilities": ["providers"]})),
            ]
            .iter()
            .map(|(name, block)| plugin(v1(), name, block))
            .collect();
            does(
                &mut stage,
                json!({"do": "start", "workspace": "/", "permission": "deny", "plugins": entries}),
            );
            turn(&mut stage);
            does(&mut stage, json!({"do": "stop"}));
            seen(&stage, &mut all);
        }
    }
    all
}

#[test]
fn owners_differ() {
    differ(
        owners,
        flaws![
            hooks.ruling_ends_chain = false,
            hooks.allow_prevails = false,
            hooks.deny_prevails = false,
            hooks.asks_owners = false,
            hooks.owner_last = false,
            hooks.owner_after_block = true,
            hooks.owner_fails = false,
            hooks.spares_frontend_and_load = true,
            hooks.tool_owners_rule = false,
            hooks.permission_owner_rules = false,
            hooks.permission_replaces = false,
            hooks.events_once = false,
            hooks.context_is_ephemeral = false,
            hooks.response_is_kept = false,
            redacts.content = true,
        ],
    );
}

fn contents(manners: &Manners) -> String {
    let mut all = String::new();
    for wrong in [false, true] {
        let mut stage = stage(manners);
        stage.casts("one", move || {
            Puppet::new().on(names::INTERCEPT, move |frame| {
                let mut descriptor = frame["params"]["externalized"][0].clone();
                if descriptor.is_null() {
                    return None;
                }
                descriptor["jsonPointer"] = if wrong { "/payload" } else { "/replacement" }.into();
                let reads = [0, 5, 8_000].map(|offset| {
                    let params = json!({"contentRef": descriptor["contentRef"], "offset": offset});
                    say(&json!({"id": offset, "method": names::CONTENT_READ, "params": params}))
                });
                let ruling = json!({"decision": "replace", "externalized": [descriptor]});
                Some([reads.to_vec(), answer(frame, &ruling)].concat())
            })
        });
        stage.casts("model", || Puppet::new().with_models(&["plugin/model/p/m"]).answering("Hello"));
        starts(
            &mut stage,
            &[("one", intercepting(&["input.receive"])), ("model", json!({"capabilities": ["providers"]}))],
        );
        for bytes in [2_500, 20_000, 1_900, 60_000] {
            does(&mut stage, json!({"do": "turn", "text": "a".repeat(bytes)}));
            does(&mut stage, json!({"do": "new-session"}));
        }
        let reference =
            stage.intercepts("input.receive")[0].frame["params"]["externalized"][0]["contentRef"].clone();
        for (name, id) in [("one", 1), ("model", 2)] {
            let link = stage.link(name);
            let params = json!({"contentRef": reference, "offset": 0});
            stage.act(link, say(&json!({"id": id, "method": names::CONTENT_READ, "params": params})));
        }
        stage.wait(10);
        seen(&stage, &mut all);
    }
    all
}

#[test]
fn contents_differ() {
    differ(
        contents,
        flaws![
            content.externalize_above = Some(1_000),
            content.externalizes_events = false,
            content.page_bytes = Some(1_000),
            content.object_bytes = Some(10_000),
            content.objects_kept = 2,
            content.own_objects = false,
            content.true_digests = false,
            content.exact_offsets = false,
            content.names_expired = false,
            content.checks_replacements = false,
            content.takes_references = false,
            frames.writes_too_large = true,
        ],
    );
}

fn models(manners: &Manners) -> String {
    let mut all = String::new();
    let ways: [Does; 15] = [
        |it| vec![words(it, 2, "b"), words(it, 1, "a"), end(it, 2)],
        |it| vec![words(it, 1, "a"), words(it, 1, "X"), end(it, 1)],
        |it| vec![words(it, 1, "a"), words(it, 3, "c"), words(it, 3, "X"), words(it, 2, "b"), end(it, 3)],
        |it| vec![words(it, 1, "a"), words(it, 3, "c"), end(it, 3)],
        |it| {
            vec![
                words(it, 1, "a"),
                words(it, 3, "c"),
                after(3_000, words(it, 2, "b")),
                after(3_001, end(it, 3)),
            ]
        },
        |it| vec![words(it, 1, "a"), words(it, 258, "c")],
        |it| vec![words(it, 3, "c"), end(it, 1), words(it, 1, "a")],
        |it| vec![words(it, 1, "a"), words(it, 2, "b"), end(it, 1)],
        |it| vec![end(it, 1), end(it, 2), words(it, 1, "a")],
        |it| vec![chunk(it, 1, &json!({"type": "done"})), words(it, 2, "a"), end(it, 2)],
        |it| vec![chunk(it, 1, &json!({"type": "text", "text": "a", "x": 1})), end(it, 1)],
        |it| {
            vec![
                words(it, 1, "a"),
                say(
                    &json!({"method": names::STREAM_END, "params": {"streamId": it["params"]["streamId"], "lastSeq": 1, "error": "sk-abcdefghijkl1234"}}),
                ),
            ]
        },
        |it| vec![words(it, 1, "a"), Act::Exit(1)],
        |_| Vec::new(),
        |it| vec![after(100_000, words(it, 1, "late")), after(100_001, end(it, 1))],
    ];
    for (place, way) in ways.into_iter().enumerate() {
        let mut stage = stage(manners);
        stage.casts("one", move || {
            let list = json!({"providers": [{"ref": "plugin/one/p/m"}, {"ref": "plugin/other/p/m"}, {"ref": "plugin/one/p/u"}]});
            Puppet::new().with_models(&["plugin/one/p/m"]).streaming(way).on(names::PROVIDER_CATALOG, move |frame| Some(answer(frame, &list)))
        });
        stage.casts("two", || {
            Puppet::new().with_models(&["plugin/two/p/m"]).on(names::PROVIDER_CATALOG, |_| Some(Vec::new()))
        });
        let block = json!({"capabilities": ["providers"]});
        starts(&mut stage, &[("one", block.clone()), ("two", block), ("none", json!({}))]);
        does(&mut stage, json!({"do": "models"}));
        if place == 14 {
            stage.ask(json!({"do": "turn", "text": "hi"}));
            stage.wait(15_000);
            stage.ask(json!({"do": "cancel"}));
            stage.wait(200_000);
        }
        turn(&mut stage);
        does(&mut stage, json!({"do": "turn", "text": "hi", "model": "plugin/one/p/u"}));
        seen(&stage, &mut all);
    }
    for accepted in [true, false] {
        let mut stage = stage(manners);
        stage.casts("one", move || {
            Puppet::new().with_models(&["plugin/one/p/m"]).on(names::STREAM_OPEN, move |it| {
                Some(
                    [
                        vec![words(it, 1, "early"), end(it, 1)],
                        vec![after(10, answer(it, &json!({ "accepted": accepted })).remove(0))],
                    ]
                    .concat(),
                )
            })
        });
        starts(&mut stage, &[("one", json!({"capabilities": ["providers"]}))]);
        turn(&mut stage);
        seen(&stage, &mut all);
    }
    let mut stage = Stage::new(v2(), manners.clone());
    stage.checks = false;
    stage.casts("one", || {
        Puppet::new().with_models(&["plugin/one/p/m"]).streaming(|open| {
            let chunk = json!({"type": "text", "text": "a"});
            let params =
                json!({"streamId": open["params"]["streamId"], "seq": 1, "generation": 99, "chunk": chunk});
            vec![say(&json!({"method": names::STREAM_CHUNK, "params": params})), end(open, 1)]
        })
    });
    let entry = plugin(v2(), "one", &json!({"capabilities": ["providers"]}));
    does(&mut stage, json!({"do": "start", "workspace": "/", "plugins": [entry]}));
    turn(&mut stage);
    seen(&stage, &mut all);
    all
}

#[test]
fn models_differ() {
    differ(
        models,
        flaws![
            streams.catalog_needs_capability = false,
            streams.caches_catalog = false,
            streams.catalog_within = 20_000_000,
            streams.checks_namespace = false,
            streams.declared_only = false,
            streams.falls_back = true,
            streams.seq_base = 0,
            streams.hands_on_effort = false,
            streams.reorders = false,
            streams.drops_duplicates = false,
            streams.first_copy_wins = false,
            streams.window = 300,
            streams.gap = 5_000_000,
            streams.gap_needs_end = true,
            streams.gap_fails = false,
            streams.names_gap = false,
            streams.end_freezes = false,
            streams.end_below_delivered_fails = false,
            streams.ends_must_agree = false,
            streams.checks_generation = false,
            streams.checks_chunks = false,
            streams.cancels = false,
            streams.interruption_fails = false,
            streams.stall = 10_000_000,
            streams.early_chunks_count = false,
            streams.needs_acceptance = false,
            streams.done_ends = true,
            streams.end_errors_count = false,
            redacts.provider_errors = false,
        ],
    );
}

fn surfaces(manners: &Manners) -> String {
    let mut all = String::new();
    let mut stage = stage(manners);
    for name in ["a", "one"] {
        stage.casts(name, || {
            Puppet::new()
                .with_actions(&["demo"])
                .on(names::UI_ACTION, |it| {
                    let result = json!({"accepted": true, "message": "sk-abcdefghijkl1234"});
                    Some(vec![after(100, answer(it, &result).remove(0))])
                })
                .on(names::SHUTDOWN, |it| {
                    Some(vec![after(1_000, answer(it, &json!({"accepted": true})).remove(0))])
                })
        });
    }
    stage.casts("bare", Puppet::new);
    let block = json!({"capabilities": ["ui"]});
    starts(&mut stage, &[("a", block.clone()), ("one", block), ("bare", json!({}))]);
    let params = |more: Value| {
        let mut params = json!({"sessionId": "session-1", "generation": 1, "surfaceId": "s", "kind": "form", "payload": {"title": "<b>", "fields": [{"key": "k", "kind": "confirm"}]}});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let publishes = [
        params(json!({})),
        params(json!({"generation": 9})),
        params(json!({"sessionId": "x"})),
        params(json!({"payload": {"html": 1}})),
    ];
    for plugin in ["one", "bare"] {
        let link = stage.link(plugin);
        for (id, params) in publishes.iter().enumerate() {
            stage.act(link, say(&json!({"id": id, "method": names::UI_PUBLISH, "params": params})));
        }
    }
    let link = stage.link("one");
    for id in 10..12 {
        stage.act(
            link,
            say(
                &json!({"id": id, "method": names::UI_REQUEST, "params": params(json!({"kind": "confirm"}))}),
            ),
        );
    }
    stage.wait(10);
    does(&mut stage, json!({"do": "answer", "prompt": "p1", "values": {"k": true}}));
    does(&mut stage, json!({"do": "answer", "prompt": "p2", "cancelled": true}));
    does(&mut stage, json!({"do": "action", "plugin": "one", "action": "demo"}));
    does(&mut stage, json!({"do": "action", "plugin": "one", "action": "other"}));
    does(&mut stage, json!({"do": "submit", "plugin": "one", "surface": "s", "values": {"k": true}}));
    stage.ask(json!({"do": "action", "plugin": "one", "action": "demo"}));
    stage.wait(10);
    does(&mut stage, json!({"do": "reload"}));
    does(&mut stage, json!({"do": "stop"}));
    seen(&stage, &mut all);
    all
}

#[test]
fn surfaces_differ() {
    differ(
        surfaces,
        flaws![
            ui.available = false,
            ui.needs_capability = false,
            ui.gates_generation = false,
            ui.gates_session = false,
            ui.checks_surfaces = false,
            ui.inert_markup = false,
            ui.declared_actions_only = false,
            ui.forms_to_owner = false,
            ui.current_session = false,
            ui.late_results_count = true,
            ui.typed_answers = false,
            ui.tells_cancelled = false,
            redacts.ui = false,
        ],
    );
}
