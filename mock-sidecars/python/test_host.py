"""Drives host.py over its shim, and the plugins that it starts: `python3 -I test_host.py`.

Here is how sessions and plugins begin, end and are looked at; what a turn does is in test_host_turns.py, which is run with it.
"""
import json
import os
import re
import select
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # `-I` leaves it out
sys.dont_write_bytecode = True

from host_contract import redacted
from host_stage import HERE, KEY, PATIENCE, READ, REF, HostCase, Stage, place
from test_host_turns import Content, Events, Rulings, Streams  # so that they are run


# ---------------------------------------------------------------------------------------- handshakes


class Handshake(HostCase):
    def test_first_frame_and_process(self):
        for major in (1, 2):
            with Stage(major) as stage:
                self.assertEqual([tool["name"] for tool in stage.hello["tools"]], ["ls", "read_file", "write_file"])
                manifest = {"intercepts": ["tool.before"], "replaces": ["context"], "capabilities": ["interceptors"]}
                env = {"TEST_GIVEN": "a;$b", "REASONIX_PLUGIN_NAME": "another"}
                plugin = stage.plugin("one", **manifest, env=env)
                plugin["manifest"]["runtime"]["args"].append("$HOME; `x`")
                stage.starts(plugin, uiHost="tui")
                guest = stage.guest()
                params = guest.greet()
                self.assertEqual(stage.outcome(), {"done": True})
                version = {"protocolVersion": str(major)}
                session = {"workspaceRoot": stage.folder, "generation": 1, "sessionId": params["session"]["sessionId"]}
                self.assertEqual(params, {
                    "protocolId": f"reasonix.extension.v{major}", **version, "manifest": manifest, "session": session,
                    "capabilities": {"contentRefs": True, "uiHost": "tui", **version}})
                self.assertTrue(guest.who["leads"])
                self.assertEqual(guest.who["argv"], ["$HOME; `x`"])
                root = guest.who["env"].pop("REASONIX_PLUGIN_ROOT")
                self.assertEqual(guest.who["env"], {
                    "TEST_GIVEN": "a;$b", "TEST_INHERITED": "yes", "REASONIX_PLUGIN_NAME": "one", "REASONIX_PLUGIN_VERSION": "0.1"})
                with open(os.path.join(root, "reasonix-plugin.json"), encoding="utf-8") as file:
                    self.assertEqual(json.load(file), plugin["manifest"])

    def test_answers_that_fail(self):
        good = {"name": "n", "version": "1", "protocolVersion": "2", "stateSchemaVersion": 0}
        undeclared = "capability_not_declared"
        provided = [{"kind": "k", "namespace": "n", "id": "i"}]
        full = {"intercepts": ["tool.before"], "provides": provided}
        bare = {"capabilities": ["interceptors"]}
        with Stage() as stage:
            for changes, reason, runtime in (
                    ({"protocolVersion": "1"}, "unsupported_version", full), ({"protocolVersion": "02"}, "unsupported_version", full),
                    ({"protocolVersion": "2.0"}, "protocol_error", full), ({"protocolVersion": " "}, "protocol_error", full),
                    ({"stateSchemaVersion": None}, "protocol_error", full), ({"stateSchemaVersion": 1.0}, "protocol_error", full),
                    ({"x": 1}, "protocol_error", full), ({"name": " "}, "protocol_error", full),
                    ({"subscriptions": ["tool.after"]}, undeclared, full), ({"subscriptions": ["Tool.before"]}, undeclared, full),
                    ({"replaces": ["context"]}, undeclared, full), ({"providers": [{"ref": "plugin/other/a/b"}]}, undeclared, full),
                    ({"provides": [{"kind": "k", "namespace": "n", "id": "j"}]}, undeclared, full),
                    ({"providers": [{"ref": REF}]}, undeclared, bare), ({"uiActions": [{"actionId": "a"}]}, undeclared, bare)):
                with self.subTest(changes):
                    stage.starts(stage.plugin("one", required=True, **runtime))
                    guest = stage.guest()
                    guest.answer(guest.read("extension/initialize"), {**good, **changes})
                    self.fails(stage.outcome(), reason, "plugin one failed to start")
                    self.assertTrue(guest.is_gone())

    def test_an_error_keeps_its_reason_if_it_is_told_right(self):
        with Stage() as stage:
            for retryable, reason in ((False, "unsupported_version"), (True, None)):
                stage.starts(stage.plugin("one", required=True))
                guest = stage.guest()
                data = {"reason": "unsupported_version", "retryable": retryable}
                guest.answer(guest.read(), error={"code": -32000, "message": f"no {KEY}", "data": data})
                self.fails(stage.outcome(), reason, "no ****")
                self.assertTrue(guest.is_gone())

    def test_too_early(self):
        with_answer = lambda guest, frame: json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": guest.declares()})
        read = '{"jsonrpc":"2.0","id":1,"method":"host/content/read","params":{"contentRef":"c","offset":0}}'
        with Stage() as stage:
            for early in (lambda *_: [read], lambda *_: ['{"jsonrpc":"2.0","method":"x"}'], lambda *_: ["Hello!"],
                          lambda *_: ['{"jsonrpc":"2.0","id":9,"result":{}}'], lambda *it: [with_answer(*it), read],
                          lambda *_: ['{"jsonrpc":"2.0","id":1,"result":{},"error":null}']):
                stage.starts(stage.plugin("one", required=True))
                guest = stage.guest()
                guest.write(*early(guest, guest.read()))
                self.fails(stage.outcome(), "protocol_error", "before the handshake was over")
                self.assertTrue(guest.is_gone())

    def test_blank_lines_are_nothing(self):
        with Stage() as stage:
            stage.starts(stage.plugin("one", required=True))
            guest = stage.guest()
            guest.write("", " \t\r")
            guest.greet()
            self.assertEqual(stage.outcome(), {"done": True})

    def test_no_process(self):
        with Stage() as stage:
            for runtime, says in (({"command": "/nowhere/x"}, "cannot be run"), ({"command": "run"}, "not absolute"),
                                  ({"command": "/bin/BASH"}, "a shell"), ({"command": "${REASONIX_PLUGIN_ROOT}/x"}, "cannot be run")):
                plugins = [stage.plugin("one", **runtime, required=True)]
                self.fails(stage.does("start", workspace="/", plugins=plugins), None, says)
                self.assertEqual(stage.does("start", workspace="/", plugins=[stage.plugin("one", **runtime)]), {"done": True})
                self.assertIn(says, stage.shown[-1]["text"])
                self.assertEqual(stage.does("stop"), {"done": True})

    def test_one_required_failure_ends_the_others(self):
        with Stage() as stage:
            stage.starts(stage.plugin("one"), stage.plugin("two", replaces=["context"]))
            guests = {guest.name: guest for guest in (stage.guest(), stage.guest())}
            guests["one"].greet()
            guests["two"].order(stderr="lost\n" * 9000 + f"found token={KEY}\n")
            guests["two"].order(exit=3)
            guests["one"].leaves()
            outcome = stage.outcome()
            self.fails(outcome, "provider_interrupted", "found token=****")
            self.assertLess(len(outcome["failed"]), 17_000)
            self.assertEqual([it["in"] for it in stage.found], ["diagnostics"])

    def test_four_at_a_time(self):
        with Stage() as stage:
            stage.starts(*[stage.plugin(f"p{n}") for n in range(6)])
            four = [stage.guest() for _ in range(4)]
            self.assertEqual(select.select([stage.listener], [], [], 0.3)[0], [])
            for guest in four:
                guest.greet()
            for guest in (stage.guest(), stage.guest()):
                guest.greet()
            self.assertEqual(stage.outcome(), {"done": True})


class Frames(HostCase):
    def test_invalid_frames(self):
        with Stage() as stage:
            guest = stage.begin(stage.plugin("one"))
            request = '"jsonrpc":"2.0","method":"host/content/read"'
            deep = lambda levels: '{"jsonrpc":"2.0","id":3,"method":"m","params":{},"x":%s%s}' % ("[" * levels, "]" * levels)
            for line, ident, code in (
                    ("hello", None, -32700), ('{"a":1} {}', None, -32700), ("\ufeff{}", None, -32700), ('{"a":NaN}', None, -32700),
                    ("[]", None, -32600), ("7", None, -32600), ("null", None, -32600), ("{}", None, -32600),
                    ('{"id":3,"method":"m"}', 3, -32600), ('{"jsonrpc":2.0,"id":3,"method":"m"}', 3, -32600),
                    ('{%s,"id":"3","params":{}}' % request, None, -32600), ('{%s,"id":null,"params":{}}' % request, None, -32600),
                    ('{%s,"id":3.0,"params":{}}' % request, None, -32600), ('{%s,"id":true}' % request, None, -32600),
                    ('{%s,"id":3,"params":[]}' % request, 3, -32600), ('{%s,"id":3,"params":null}' % request, 3, -32600),
                    ('{%s,"id":3,"result":{}}' % request, 3, -32600), ('{"jsonrpc":"2.0","id":3,"method":""}', 3, -32600),
                    ('{"jsonrpc":"2.0","id":3}', None, -32600), ('{"jsonrpc":"2.0","id":3,"result":1,"error":null}', None, -32600),
                    ('{"jsonrpc":"2.0","result":1}', None, -32600), ('{"jsonrpc":"2.0","id":3,"error":{"code":1}}', None, -32600),
                    (deep(9999), 3, -32601), (deep(10_000), None, -32700)):
                with self.subTest(line[:60]):
                    guest.write(line)
                    self.refuses(guest.read(), code, "unknown_method" if code == -32601 else None, ident)
            # None of these is answered, so the next answer is that of the last.
            guest.write("", '{"jsonrpc":"2.0","method":"x","params":[]}', '{"jsonrpc":"2.0","id":99,"result":{}}',
                        '{"jsonrpc":"2.0","method":"host/content/read"}', '{"jsonrpc":"2.0","id":"1","result":{}}',
                        '{"jsonrpc":"2.0","method":"extension/provider/stream/chunk","params":{"seq":0}}')
            for method, params, reason in (
                    ("host/zzz", {}, "unknown_method"), ("extension/intercept", {}, "unknown_method"),
                    ("extension/provider/stream/end", {"streamId": "s", "lastSeq": 0}, "unknown_method"),
                    (READ, {}, "invalid_params"), (READ, {"contentRef": "c", "offset": -1}, "invalid_params"),
                    (READ, {"contentRef": " ", "offset": 0}, "invalid_params"),
                    (READ, {"contentRef": "c", "offset": 0.0}, "invalid_params"),
                    (READ, {"contentRef": "c", "offset": 0, "x": 1}, "invalid_params"),
                    (READ, {"contentRef": "c", "offset": 0}, "content_ref_expired")):
                code = {"unknown_method": -32601, "invalid_params": -32602, "content_ref_expired": -32000}[reason]
                self.refuses(guest.ask(method, params), code, reason)
            for ident in ("-0", "123456789012345678901234567890"):
                guest.write('{"jsonrpc":"2.0","id":%s,"method":"m","id":%s}' % (1, ident))
                self.assertIn(f'"id":{ident},', guest.news()["line"])
            guest.write('{"x":1,"jsonrpc":"2.0","id":4,"method":"m"} \r')
            self.refuses(guest.read(), -32601, "unknown_method", 4)

    def test_size(self):
        with Stage() as stage:
            guest = stage.begin(stage.plugin("one"))
            padded = lambda size: '{"jsonrpc":"2.0","id":7,"method":"m","x":"%s"}' % ("a" * (size - 45))
            guest.write(padded(8 * 1024 * 1024))
            self.refuses(guest.read(), -32601, "unknown_method")
            guest.order(fill=[1, "a", 9 * 1024 * 1024])
            self.assertTrue(guest.is_gone())
            self.fails(stage.does("action", plugin="one", action="demo"), "provider_interrupted")

    def test_busy(self):
        with Stage() as stage:
            guest = stage.begin(stage.plugin("one"))
            where = place(stage, guest)
            ask = {"kind": "confirm", "surfaceId": "s", "payload": {"fields": []}, **where}
            guest.write(*[{"jsonrpc": "2.0", "id": n, "method": "host/ui/request", "params": ask} for n in range(65)])
            self.refuses(guest.read(), -32099, ident=64)
            stage.ask("stop")
            self.assertEqual([guest.read()["result"] for _ in range(64)], [{"cancelled": True}] * 64)
            guest.leaves()
            self.assertEqual(stage.outcome(), {"done": True})


# ------------------------------------------------------------------------------- the user's interface


class Interface(HostCase):
    def test_surfaces(self):
        field = {"key": "k", "kind": "input"}
        good = [("status", {"label": "Ready", "progress": 7}), ("card", {}), ("card", {"fields": [{"key": "a", "value": "b"}]}),
                ("form", {"fields": [field]}), ("notification", {"title": "T", "severity": "warn"})]
        bad = [("status", {}), ("status", {"label": " "}), ("status", {"label": "x", "severity": "bad"}), ("card", {"html": "x"}),
               ("card", None), ("card", "x"), ("card", {"actions": [{"actionId": "a"}]}), ("form", {}), ("panel", {}),
               ("form", {"fields": [{**field, "kind": "x"}]}), ("notification", {"title": "T", "url": "x"}), ("confirm", {"fields": []})]
        with Stage() as stage:
            one, two = stage.begin(stage.plugin("one"), stage.plugin("two", capabilities=["providers"]))
            where = place(stage, one)
            surface = {"surfaceId": "s", **where}
            for kind, payload in good:
                answer = one.ask("host/ui/publish", {"kind": kind, "payload": payload, **surface})
                self.assertEqual(answer["result"], {"accepted": True})
                shown = stage.show("surface")
                self.assertEqual((shown["plugin"], shown["surface"], shown["kind"]), ("one", "s", kind))
            for kind, payload in bad:
                with self.subTest(kind=kind, payload=payload):
                    answer = one.ask("host/ui/publish", {"kind": kind, "payload": payload, **surface})
                    self.refuses(answer, -32602, "invalid_params")
            self.refuses(one.ask("host/ui/publish", {"kind": "card", "payload": {}, **surface, "pluginId": "one"}), -32602, "invalid_params")
            self.refuses(one.ask("host/ui/request", {"kind": "prompt", "payload": {"fields": []}, **surface}), -32602, "invalid_params")
            self.refuses(two.ask("host/ui/publish", {"kind": "card", "payload": {}, **surface}), -32000, "capability_not_declared")
            self.refuses(two.ask("host/ui/request", {"kind": "input", "payload": {"fields": []}, **surface}), -32000, "capability_not_declared")
            for stale in ({"generation": 0}, {"generation": 2**64 - 1}, {"sessionId": "x"}):
                for payload in ({}, {"html": 1}):
                    answer = one.ask("host/ui/publish", {"kind": "card", "payload": payload, **surface, **stale})
                    self.assertEqual(answer["result"], {"accepted": False})
                answer = one.ask("host/ui/request", {"kind": "confirm", "payload": {}, **surface, **stale})
                self.assertEqual(answer["result"], {"cancelled": True})
            for wrong in (2**64, -1, 1.0):
                answer = one.ask("host/ui/publish", {"kind": "card", "payload": {}, **surface, "generation": wrong})
                self.refuses(answer, -32602, "invalid_params")
            secret = {"title": f"token: {KEY}", "fields": [{"key": f"k {KEY}", "value": f"https://me:pw@host/{KEY}"}]}
            one.ask("host/ui/publish", {"kind": "card", "payload": secret, **surface})
            text = stage.show("surface")["text"]
            self.assertNotIn("sk-", text)
            self.assertNotIn("pw", text)
            self.assertEqual(stage.shown, [])

    def test_prompts(self):
        fields = [{"key": kind, "kind": kind, "label": f"password={KEY}"} for kind in ("confirm", "input", "select", "multiselect")]
        values = {"confirm": True, "input": "x", "select": "y", "multiselect": ["z"]}
        with Stage() as stage:
            one = stage.begin(stage.plugin("one"))
            surface = {"surfaceId": "s", **place(stage, one)}
            for payload, given, result in (
                    ({"fields": fields, "title": f"secret={KEY}"}, {"values": values}, {"cancelled": False, "values": values}),
                    ({"fields": fields}, {"values": {"input": "x"}}, {"cancelled": False, "values": {"input": "x"}}),
                    ({"fields": []}, {"values": {"value": False}}, {"cancelled": False, "values": {"value": False}}),
                    ({"fields": []}, {"cancelled": True}, {"cancelled": True}), ({"fields": []}, {"values": {}}, {"cancelled": True})):
                one.write({"jsonrpc": "2.0", "id": 3, "method": "host/ui/request", "params": {"kind": "confirm", "payload": payload, **surface}})
                shown = stage.show("prompt")
                self.assertNotIn("sk-", json.dumps(shown))
                self.assertEqual([it["kind"] for it in shown["fields"]], [it["kind"] for it in payload["fields"]] or ["confirm"])
                self.assertIn("refused", stage.does("answer", prompt="zzz", values={}))
                self.assertIn("refused", stage.does("answer", prompt=shown["prompt"], values={"zzz": 1}))
                self.assertEqual(stage.does("answer", prompt=shown["prompt"], **given), {"done": True})
                self.assertEqual(one.read(), {"jsonrpc": "2.0", "id": 3, "result": result})

    def test_actions_and_forms(self):
        with Stage() as stage:
            stage.starts(stage.plugin("one"), stage.plugin("two"))
            for _ in range(2):
                stage.guest().greet(uiActions=[{"actionId": "demo"}, {"actionId": "BAD ID"}])
            self.assertEqual(stage.outcome(), {"done": True})
            one, two = stage.guests["one"], stage.guests["two"]
            for plugin, action in (("one", "zzz"), ("one", "BAD ID"), ("three", "demo")):
                self.assertIn("refused", stage.does("action", plugin=plugin, action=action))
            stage.ask("action", plugin="one", action="demo", args={"a": "1", "arg1": "b"})
            frame = one.read("extension/ui/action")
            self.assertEqual((frame["params"]["actionId"], frame["params"]["args"]), ("demo", {"a": "1", "arg1": "b"}))
            one.answer(frame, {"accepted": True, "message": f"used {KEY}"})
            self.assertEqual(stage.outcome(), {"done": True})
            self.assertEqual(stage.shown[-1], {"as": "notice", "text": "used ****", "plugin": "one"})
            surface = {name: frame["params"][name] for name in ("sessionId", "generation")}
            stage.ask("action", plugin="one", action="demo")
            one.answer(one.read(), {"accepted": False, "message": "no"})
            self.fails(stage.outcome(), None, "no")
            for guest, ident in ((one, "f1"), (two, "f2")):
                guest.ask("host/ui/publish", {"kind": "form", "payload": {"fields": []}, "surfaceId": ident, **surface})
            self.assertIn("refused", stage.does("submit", plugin="one", surface="f2", values={}))
            stage.ask("submit", plugin="two", surface="f2", values={"k": [1]})
            frame = two.read("extension/ui/submit")
            self.assertEqual(frame["params"], {"surfaceId": "f2", "values": {"k": [1]}, **surface})
            two.answer(frame, {"accepted": True})
            self.assertEqual(stage.outcome(), {"done": True})


# --------------------------------------------------------------------------------------- life and death


class Life(HostCase):
    def test_reload(self):
        with Stage() as stage:
            one, two = stage.begin(stage.plugin("one"), stage.plugin("two"))
            before = place(stage, one)
            two.order(exit=0)
            self.assertTrue(two.is_gone())
            action = stage.ask("action", plugin="one", action="demo")
            late = one.read("extension/ui/action")
            stage.ask("reload")
            frame = one.read("extension/shutdown")
            one.answer(frame, {"accepted": False})
            self.assertEqual(one.news(), {"eof": True})
            one.answer(late, {"accepted": True, "message": "too late"})
            one.order(exit=0)
            again = {guest.name: guest for guest in (stage.guest(), stage.guest())}
            for guest in again.values():
                self.assertEqual(guest.greet(uiActions=[{"actionId": "demo"}])["session"]["generation"], 2)
            self.assertIn("outcome", self.both(stage, action))
            self.assertNotIn("too late", json.dumps(stage.shown))
            answer = again["one"].ask("host/ui/publish", {"kind": "card", "surfaceId": "s", "payload": {}, **before})
            self.assertEqual(answer["result"], {"accepted": False})
            self.assertNotEqual(again["one"].who["pid"], one.who["pid"])
            after = place(stage, again["two"])
            self.assertEqual(after["generation"], 2)

    def test_a_signal_ends_the_session(self):
        with Stage() as stage:
            self.assertIn("refused", stage.does("signal", signal="TERM"))
            for signal in ("TERM", "INT"):
                one = stage.begin(stage.plugin("one"))
                stage.ask("signal", signal=signal)
                one.answer(one.read("extension/shutdown"), {"accepted": True})
                self.assertEqual(one.news(), {"eof": True})
                self.assertEqual(stage.outcome(), {"done": True})
                self.assertTrue(one.is_gone())

    def both(self, stage, action):
        """The outcomes of the action and of the reload, in either order."""
        outcomes = {}
        while len(outcomes) < 2:
            line = stage.hear()
            if "shown" in line:
                stage.shown.append(line["shown"])
            elif "outcome" in line:
                outcomes[line["outcome"]] = line
        self.assertTrue(outcomes[stage.asked]["done"])
        return outcomes[action]

    def test_a_reload_that_fails(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", required=True))
            stage.ask("reload")
            one.leaves()
            stage.guest().order(exit=1)
            self.fails(stage.outcome(), "provider_interrupted")
            self.fails(stage.does("turn", text="hi"), None, "did not start again")
            stage.ask("reload")
            stage.guest().greet()
            self.assertEqual(stage.outcome(), {"done": True})

    def test_crash(self):
        for how in ({"exit": 0}, {"close": 1}, {"fill": [1, "a", 9 * 1024 * 1024]}):
            with self.subTest(how), Stage() as stage:
                one = stage.begin(stage.plugin("one", intercepts=["input.receive"], required=True))
                one.order(spawn=["cat", "/dev/zero"] if "exit" in how else ["true"])  # it holds the pipes, and is in the group
                one.news()
                one.order(stderr=f"Bearer {KEY}\nthe last words\n")
                models, turn = stage.ask("models"), stage.ask("turn", text="hi")
                frames = {frame["method"] for frame in (one.read(), one.read())}
                self.assertEqual(frames, {"extension/provider/catalog", "extension/intercept"})
                one.order(**how)
                outcomes = {}
                while len(outcomes) < 2 or not any("the last words" in it["text"] for it in stage.found):
                    line = stage.hear()
                    if "outcome" in line:
                        outcomes[line["outcome"]] = line
                    elif "found" in line:
                        stage.found.append(line["found"])
                self.assertEqual(outcomes[models]["models"], [])
                self.fails(outcomes[turn], "frame_too_large" if "fill" in how else "provider_interrupted", "crashed")
                found = [it["text"] for it in stage.found if it["in"] == "diagnostics"]
                self.assertEqual(len(found), 1)
                self.assertNotIn("sk-", found[0])
                self.assertTrue(one.is_gone())
                self.fails(stage.does("turn", text="hi"), "provider_interrupted", "has crashed")
                self.assertEqual(stage.does("stop"), {"done": True})

    def test_the_last_line_counts(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", intercepts=["input.receive"], required=True))
            stage.ask("turn", text="hi")
            frame = one.read("extension/intercept")
            one.order(write=json.dumps({"jsonrpc": "2.0", "id": frame["id"], "result": {"decision": "block", "reason": "bye"}}))
            one.order(exit=0)
            self.assertEqual(stage.outcome(), {"blocked": "plugin one blocked input.receive: bye"})

    def test_shutdown(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one"))
            stage.ask("stop")
            frame = one.read("extension/shutdown")
            self.refuses(one.ask(READ, {"contentRef": "c", "offset": 0}), -32600, "protocol_error")
            one.answer(frame, error={"code": -32603, "message": "no"})
            self.assertEqual(one.news(), {"eof": True})
            self.assertIsNone(one.news())  # it does not go, so it is killed
            self.assertEqual(stage.outcome(), {"done": True})
            again = stage.begin(stage.plugin("one"))  # another session in the same program
            stage.ask("stop")
            again.leaves()
            self.assertEqual(stage.outcome(), {"done": True})

    def test_the_end_of_stdin(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one"))
            stage.ask("turn", text="hi")
            one.catalog()
            one.opens()
            stage.host.stdin.close()
            one.answer(one.read("extension/provider/stream/cancel"), {"cancelled": True})
            one.leaves()
            self.fails(stage.outcome(), "stream_cancelled")
            self.assertEqual(stage.host.wait(PATIENCE), 0)

    def test_stderr_is_no_protocol_and_is_read(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one"))
            one.order(stderr='{"jsonrpc":"2.0","id":1,"method":"host/content/read","params":{}}\n')
            one.order(fill=[2, "x", 4 * 1024 * 1024])
            self.refuses(one.ask("host/zzz", {}), -32601, "unknown_method")


# ---------------------------------------------------------------------------------- manifests and the shim


class Manifests(HostCase):
    def test_admission(self):
        with Stage() as stage:
            for runtime in ({"priority": -1000}, {"priority": 1000}, {"timeoutMillis": 90_000}, {"timeoutMillis": 0}, {"required": False},
                            *({"replaces": [slot]} for slot in ("system_prompt", "tool:ls", "provider:a/b", "provider:plugin/p/a/b",
                                                                "frontend_events", "session_policy"))):
                self.assertEqual(stage.does("admit", plugin=stage.plugin("one", **runtime)), {"done": True}, runtime)
            for runtime in ({"priority": -1001}, {"priority": 1001}, {"priority": 1.0}, {"timeoutMillis": -1}, {"required": 1},
                            {"intercepts": ["input.recieve"]}, {"capabilities": ["filesystem"]}, {"intrcepts": []}, {"args": [""]},
                            {"env": {"": "x"}}, {"env": {"a": 1}}, {"command": " "}, {"command": None},
                            *({"replaces": [slot]} for slot in ("systemprompt", "tool:", "tool:a b", "provider:x", "provider:plugin/p/a"
                                                                "/b/c", "provider:a/b/c"))):
                with self.subTest(runtime):
                    self.assertIn("runtime", stage.does("admit", plugin=stage.plugin("one", **runtime))["refused"])
            for manifest in ({"x": 1}, {"name": "-a"}, {"name": "a" * 65}, {"apiVersion": "reasonix.io/plugin/v1"}, {"apiVersion": "junk"},
                             {"apiVersion": "reasonix.io/plugin/v2.1"}, {"apiVersion": None}, {"runtime": None}):
                with self.subTest(manifest):
                    self.assertIn("refused", stage.does("admit", plugin=stage.plugin("one", manifest)))
            self.assertIn("refused", stage.does("admit", plugin={"name": "one", "manifest": [1]}))
            self.assertIn("refused", stage.does("start", workspace="/", plugins=[stage.plugin("one", priority=2000)]))
        with Stage(1) as stage:
            for version, admitted in (("v1", True), ("v1.3", True), ("v2", False), ("v0", False), ("v11", False)):
                outcome = stage.does("admit", plugin=stage.plugin("one", {"apiVersion": f"reasonix.io/plugin/{version}"}))
                self.assertEqual("done" in outcome, admitted, version)

    def test_only_what_is_installed_and_enabled_starts(self):
        with Stage() as stage:
            off, project = {**stage.plugin("off"), "enabled": False}, {**stage.plugin("project"), "declared": "project"}
            bare = {"name": "bare", "manifest": {"apiVersion": "reasonix.io/plugin/v2", "name": "bare", "version": "1"}}
            self.assertEqual(stage.does("start", workspace="/", plugins=[off, project, bare]), {"done": True})
            self.assertEqual(select.select([stage.listener], [], [], 0.2)[0], [])
            self.assertEqual(stage.does("models"), {"done": True, "models": []})
            self.fails(stage.does("turn", text="hi"), None, "no plugin offers a model")

    def test_full_trust_is_told(self):
        with Stage() as stage:
            for view in ("preview", "show", "doctor"):
                self.assertIn("FULL TRUST", stage.does("describe", plugin=stage.plugin("one"), view=view)["text"])


class TheShim(HostCase):
    def test_words_out_of_place(self):
        with Stage() as stage:
            for do in ("stop", "reload", "compact", "new-session", "models", "cancel"):
                self.assertIn("refused", stage.does(do), do)
            self.assertIn("refused", stage.does("turn", text="hi"))
            stage.host.stdin.write(b'hello\n[]\n\n{"tell":1}\n{"ask":41,"do":"dance"}\n{"ask":42,"do":"turn"}\n')
            stage.host.stdin.flush()
            self.assertIn("cannot", stage.outcome(41))
            self.assertIn("refused", stage.outcome(42))
            one = stage.begin(stage.plugin("one"))
            self.assertIn("refused", stage.does("start", workspace="/", plugins=[]))
            self.assertTrue(one.who["leads"])

    def test_first_lines_that_are_wrong(self):
        for first in ({"shim": 2, "suite": "reasonix-v2", "folder": "f"}, {"shim": 1, "suite": "reasonix-v9", "folder": "f"}):
            done = subprocess.run([sys.executable, "-I", "-S", os.path.join(HERE, "host.py")], input=json.dumps(first).encode(),
                                  capture_output=True, timeout=PATIENCE)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_credentials(self):
        for secret in ("https://me:hunter2x@example.org", "Cookie: a=hunter2x; b=hunter2x", 'api_key="hunter2x"', "password = hunter2x",
                       "Authorization: Basic hunter2x", "MY_SECRET_TOKEN=hunter2x", "db_pwd: hunter2x", f"Bearer hunter2x{'a' * 16}",
                       "the api key: hunter2xhunter2x", "sk-hunter2xhunter2x", "ghp_hunter2xhunter2xhunter2", "xoxb-1-hunter2xhunter2x",
                       "AKIAHUNTER2XHUNTER2X", "eyJhunter2x.hunter2x.hunter2x", f"github_pat_hunter2x{'a' * 20}"):
            self.assertIsNone(re.search("(?i)hunter2x", redacted(f"before {secret}\nafter")), secret)
        for plain in ("a plain text: with words, and 17 numbers", "https://example.org/a?b=c", "the secret of it", "task-forces"):
            self.assertEqual(redacted(plain), plain)


if __name__ == "__main__":
    unittest.main()
