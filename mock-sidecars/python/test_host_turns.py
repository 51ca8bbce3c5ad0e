"""What a turn of host.py does: rulings, content, events, streams. Run by test_host.py."""
import base64
import hashlib
import json

from host_stage import CONTRACTS, KEY, READ, REF, HostCase, Stage


class Rulings(HostCase):
    def test_the_order_of_a_turn(self):
        points = CONTRACTS[2]["interceptEvents"]
        with Stage() as stage:
            stage.starts(stage.plugin("one", intercepts=points))
            one, seen = stage.guest(), []
            one.greet(provides=True)

            def passes(point, **more):
                params = one.rule(point, **more)
                final = more.get("replacement", params["payload"])
                self.assertEqual(one.event(point), final)
                seen.append(params["seq"])
                self.assertEqual(params["timeoutMillis"], 5000 if point in (
                    "input.receive", "tool.before", "tool.after", "permission.decision") else 30_000)
                return params["payload"]

            passes("system_prompt.build", decision="replace", replacement={"prompt": "Be brief.", "workspaceRoot": "/"})
            self.assertEqual(passes("session.start")["phase"], "start")
            self.assertEqual(stage.outcome(), {"done": True})
            self.assertEqual(stage.ask("turn", text="hi", effort="high"), 2)
            self.assertEqual(passes("input.receive", decision="replace", replacement={"text": "ho"}), {"text": "hi"})
            one.catalog(model="m")
            self.assertEqual(passes("agent.before_start")["model"], REF)
            system, user = passes("context.prepare")["messages"]
            self.assertEqual((system, user), ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "ho"}))
            request = passes("provider.request")["request"]
            self.assertEqual(request["messages"], [system, user])
            opened = one.opens()
            self.assertEqual({**opened, "streamId": 0}, {
                "streamId": 0, "providerRef": REF, "request": request, "seqBase": 1, "effort": "high", "model": "m"})
            call = {"id": "c1", "name": "ls", "arguments": '{"path":"."}'}
            usage = {"promptTokens": 1, "completionTokens": 1, "totalTokens": 2, "reasoningTokens": 0, "cacheHitTokens": 1,
                     "cacheMissTokens": 0}
            one.write(one.chunk(1, type="reasoning", text="hm", signature="s"), one.chunk(2, "I "), one.chunk(3, "look."),
                      one.chunk(4, type="tool_call_start", toolCall=call), one.chunk(5, type="tool_call", toolCall=call),
                      one.chunk(6, type="usage", usage=usage), one.chunk(7, type="done"), one.ends(7))
            self.assertEqual(passes("provider.response"), {
                "text": "I look.", "reasoning": "hm", "signature": "s", "calls": [call], "usage": usage})
            self.assertEqual(passes("frontend.event"), {"kind": "text", "text": "I look.", "detail": ""})
            self.assertEqual(passes("tool.before"), {"name": "ls", "arguments": '{"path":"."}'})
            self.assertEqual(passes("permission.decision")["hostDecision"], "allow")
            ran = passes("tool.after", decision="replace", replacement={"name": "ls", "arguments": "{}", "result": "nothing"})
            self.assertEqual((ran["isError"], ran["result"][:9]), (False, "README.md"))
            messages = passes("context.prepare")["messages"]
            self.assertEqual(messages[3], {"role": "tool", "tool_call_id": "c1", "name": "ls", "content": "nothing"})
            passes("provider.request")
            one.says("Nothing.")
            passes("provider.response", decision="replace", replacement={"text": "Something."})
            passes("frontend.event")
            passes("session.save")
            self.assertEqual(stage.outcome(), {"done": True, "text": "I look.Something."})
            stage.ask("compact")
            self.assertEqual(len(passes("compaction.prepare")["messages"]), 4)
            passes("compaction.complete", decision="replace", replacement={"summary": "It was short."})
            self.assertEqual(stage.outcome(), {"done": True})
            stage.ask("new-session")
            passes("session.rotate")
            self.assertEqual(stage.outcome(), {"done": True})
            self.assertIn("It was short.", stage.found[-1]["text"])
            stage.ask("stop")
            passes("session.end")
            self.assertEqual(one.leaves(), {"timeoutMillis": 5000})
            self.assertEqual(stage.outcome(), {"done": True})
            self.assertEqual(seen, list(range(1, len(seen) + 1)))

    def turn(self, stage, **more):
        return stage.ask("turn", text="hi", **more)

    def test_chain(self):
        with Stage() as stage:
            told = {"c": {"priority": -5}, "b": {"priority": -5}, "a": {"priority": 10}, "z": {}}
            guests = dict(zip(told, stage.begin(*[stage.plugin(
                name, intercepts=["input.receive"], capabilities=["interceptors"], **more) for name, more in told.items()])))
            self.turn(stage)
            self.assertEqual(guests["b"].rule("input.receive", "replace", replacement={"text": " "})["payload"], {"text": "hi"})
            self.assertEqual(guests["c"].rule("input.receive", replacement={"text": "x"})["payload"], {"text": " "})
            self.assertEqual(guests["z"].rule("input.receive", "block", reason=f"no {KEY}")["payload"], {"text": " "})
            self.assertEqual(stage.outcome(), {"blocked": "plugin z blocked input.receive: no ****"})
            for guest in guests.values():
                self.assertEqual(guest.event("input.receive"), {"text": " "})

    def test_violations(self):
        bad = [("allow", {}), ("deny", {}), ("replace", {}), ("replace", {"replacement": None}), ("zzz", {}),
               ("continue", {"x": 1}), ("continue", {"reason": None})]
        bad += [("replace", {"replacement": it}) for it in (
            {}, {"text": ""}, {"text": 1}, {"text": "x", "y": 1}, [], {"Text": "x"})]
        with Stage() as stage:
            one, two = stage.begin(stage.plugin("one", intercepts=["input.receive"]),
                                   stage.plugin("two", intercepts=["input.receive"], capabilities=["interceptors"]))
            for decision, more in bad:
                with self.subTest(decision=decision, **more):
                    self.turn(stage)
                    one.rule("input.receive", decision, **more)
                    self.assertEqual(two.rule("input.receive", "block")["payload"], {"text": "hi"})
                    self.assertEqual(stage.outcome(), {"blocked": "plugin two blocked input.receive: it gave no reason"})
                    one.event("input.receive"), two.event("input.receive")
            self.assertEqual([it["plugin"] for it in stage.shown], ["one"])  # one warning
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", intercepts=["input.receive"], required=True))
            for decision, more in bad:
                with self.subTest(decision=decision, **more):
                    self.turn(stage)
                    one.rule("input.receive", decision, **more)
                    self.fails(stage.outcome(), "protocol_error", "plugin one failed at input.receive")

    def test_replacements_are_what_the_contract_says(self):
        message, tool = {"role": "user", "content": "x"}, {"name": "t", "parameters": {}}
        request = {"messages": [message], "tools": [], "maxTokens": 1}
        usage = dict.fromkeys(("promptTokens", "completionTokens", "totalTokens", "reasoningTokens", "cacheHitTokens",
                               "cacheMissTokens"), 1)
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", intercepts=["context.prepare", "provider.request", "provider.response"], required=True))
            self.turn(stage)
            one.catalog()
            for point, wrong in (
                    ("context.prepare", {}), ("context.prepare", {"messages": None}),
                    ("context.prepare", {"messages": [{"role": "robot"}]}), ("context.prepare", {"messages": [{"content": None}]}),
                    ("provider.request", {"request": {**request, "maxTokens": None}}), ("provider.request", {"request": {"messages": []}}),
                    ("provider.request", {"request": {**request, "tools": [{**tool, "name": ""}]}}),
                    ("provider.request", {"request": {**request, "tools": [{**tool, "parameters": []}]}}),
                    ("provider.response", None), ("provider.response", {"usage": {**usage, "totalTokens": -1}}),
                    ("provider.response", {"calls": [{"id": "", "name": "ls", "arguments": "{}"}]})):
                with self.subTest(point=point, wrong=wrong):
                    for before in ("context.prepare", "provider.request", "provider.response"):
                        if before == "provider.response":
                            one.says("x")
                        one.rule(before, *(["replace"] if before == point else []), **({"replacement": wrong} if before == point else {}))
                        if before == point:
                            break
                        one.event(before)
                    self.fails(stage.outcome(), "protocol_error")
                    self.turn(stage)
            one.rule("context.prepare", "replace", replacement={"messages": []})
            one.event("context.prepare")
            self.assertEqual(one.rule("provider.request", "replace", replacement={"request": request})["payload"]["request"]["messages"], [])
            one.event("provider.request")
            self.assertEqual(one.opens()["request"], request)

    def test_timeouts(self):
        with Stage() as stage:
            one, two = stage.begin(stage.plugin("one", intercepts=["input.receive"], timeoutMillis=700),
                                   stage.plugin("two", intercepts=["input.receive"], capabilities=["interceptors"],
                                                timeoutMillis=90_000, required=True))
            self.turn(stage)
            late = one.read("extension/intercept")
            self.assertEqual(late["params"]["timeoutMillis"], 700)
            self.assertEqual(two.rule("input.receive", "block")["timeoutMillis"], 60_000)
            self.assertIn("blocked", stage.outcome())
            one.event("input.receive"), two.event("input.receive")
            one.answer(late, {"decision": "block"})
            self.turn(stage)
            one.rule("input.receive", "replace", replacement={"text": "in time"})
            self.assertEqual(two.rule("input.receive", "block")["payload"], {"text": "in time"})
            self.assertIn("blocked", stage.outcome())
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", intercepts=["input.receive"], timeoutMillis=700, required=True))
            self.turn(stage)
            one.read("extension/intercept")
            self.fails(stage.outcome(), "intercept_timeout")

    def test_slots(self):
        with Stage() as stage:
            plugins = [stage.plugin("one", replaces=["context"]), stage.plugin("two", replaces=["tool:ls", "context"])]
            outcome = stage.does("start", workspace="/", plugins=plugins)
            self.fails(outcome, None, "one and two both replace context")
        with Stage() as stage:
            slots = ["context", "tool:ls", "permission"]
            one, two = stage.begin(stage.plugin("one", intercepts=["context.prepare", "permission.decision"], priority=9),
                                   stage.plugin("two", replaces=slots, intercepts=["context.prepare"], capabilities=[]))
            self.turn(stage)
            one.catalog()
            first = two.rule("context.prepare")["payload"]
            changed = {"messages": first["messages"] + [{"role": "user", "content": "one"}]}
            self.assertEqual(one.rule("context.prepare", "replace", replacement=changed)["payload"], first)
            final = {"messages": [{"role": "user", "content": "two"}]}
            self.assertEqual(two.rule("context.prepare", "replace", replacement=final)["payload"], changed)
            self.assertEqual((one.event("context.prepare"), two.event("context.prepare")), (final, final))
            one.says({"type": "tool_call", "toolCall": {"id": "c", "name": "ls", "arguments": ""}})
            two.rule("tool.before")
            two.event("tool.before")
            one.rule("permission.decision", "allow")
            two.rule("permission.decision", "deny")  # the owner has the last word
            one.event("permission.decision"), two.event("permission.decision")
            two.rule("context.prepare"), one.rule("context.prepare")
            result = two.rule("context.prepare", "block")["payload"]["messages"][-1]
            self.assertEqual(result["content"], "the tool ls is not permitted")
            self.assertIn("blocked", stage.outcome())
            one.event("context.prepare"), two.event("context.prepare")
            self.turn(stage)
            two.rule("context.prepare"), one.rule("context.prepare", "block")  # the owner is not asked any more
            self.assertIn("blocked", stage.outcome())
            one.event("context.prepare"), two.event("context.prepare")
            self.turn(stage)
            two.rule("context.prepare"), one.rule("context.prepare")
            frame = two.read("extension/intercept")
            two.answer(frame, error={"code": -32603, "message": f"oh {KEY}", "data": {"reason": "internal", "retryable": True}})
            self.fails(stage.outcome(), "internal", "plugin two failed at context.prepare: oh ****")
            self.turn(stage)
            two.rule("context.prepare"), one.rule("context.prepare"), two.read("extension/intercept")
            two.order(exit=1)
            self.fails(stage.outcome(), "provider_interrupted")
            self.turn(stage)
            self.fails(stage.outcome(), "provider_interrupted", "has crashed")

    def test_permissions(self):
        with Stage() as stage:
            for host, tool, ruling, runs in (
                    ("deny", "write_file", {"decision": "continue"}, False), ("deny", "write_file", {"decision": "allow"}, True),
                    ("allow", "ls", {"decision": "deny"}, False), ("allow", "write_file", {"decision": "continue"}, True),
                    ("allow", "ls", {"decision": "block", "reason": "x"}, False)):
                with self.subTest(host=host, tool=tool, **ruling):
                    self.permission(stage, host, tool, ruling, runs)

    def permission(self, stage, host, tool, ruling, runs):
        one, two = stage.begin(stage.plugin("one", intercepts=["permission.decision"]),
                               stage.plugin("two", intercepts=["permission.decision", "tool.after"], capabilities=[]), permission=host)
        self.turn(stage)
        one.catalog()
        one.says({"type": "tool_call", "toolCall": {"id": "c", "name": tool, "arguments": "{}"}})
        asked = one.rule("permission.decision", **ruling)["payload"]
        self.assertEqual((asked["hostDecision"], asked["readOnly"]), (host, tool == "ls"))
        if ruling["decision"] == "continue":
            two.rule("permission.decision")
        one.event("permission.decision"), two.event("permission.decision")
        if runs:
            two.rule("tool.after")
            two.event("tool.after")
        one.says("done")
        self.assertEqual(stage.outcome(), {"done": True, "text": "done"})
        self.assertEqual(any(it["as"] == "notice" for it in stage.shown), ruling["decision"] in ("allow", "deny"))
        stage.shown.clear()
        stage.ask("stop")
        one.leaves(), two.leaves()
        self.assertEqual(stage.outcome(), {"done": True})

    def test_tools_that_cannot_run(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", intercepts=["tool.before"]))
            self.turn(stage)
            one.catalog()
            for name, arguments, asked, says in (("zzz", "{}", True, "no tool zzz"), ("ls", "[]", False, "no object"),
                                                 ("ls", "{}", False, "README.md")):
                one.says({"type": "tool_call", "toolCall": {"id": "c", "name": name, "arguments": arguments}})
                if asked or says == "README.md":
                    one.rule("tool.before", "replace", replacement={"name": name, "arguments": "[]"})  # passed over
                    one.event("tool.before")
                self.assertIn(says, one.opens()["request"]["messages"][-1]["content"])
                one.write(one.chunk(1, type="tool_call", toolCall={"id": "d", "name": "zzz", "arguments": "x"}), one.ends(1))
            for _ in range(2):
                one.says({"type": "tool_call", "toolCall": {"id": "e", "name": "zzz", "arguments": "x"}})
            self.fails(stage.outcome(), None, "8 times")


class Content(HostCase):
    def sent(self, stage, guest, size):
        """A turn whose payload has this many bytes; its params, and the frame that waits for a ruling."""
        stage.ask("turn", text="é" + "a" * (size - 13))
        frame = guest.read("extension/intercept")
        return frame, frame["params"]

    def test_pages(self):
        with Stage() as stage:
            one, two = stage.begin(stage.plugin("one", intercepts=["input.receive"], required=True), stage.plugin("two", capabilities=[]))
            frame, params = self.sent(stage, one, 65_536)
            self.assertNotIn("externalized", params)
            one.answer(frame, {"decision": "block"})
            stage.outcome()
            self.assertEqual(len(json.dumps(one.event("input.receive"), ensure_ascii=False, separators=(",", ":")).encode()), 65_536)
            for size in (65_537, 262_144, 262_145):
                frame, params = self.sent(stage, one, size)
                self.assertIsNone(params["payload"])
                field, = params["externalized"]
                self.assertEqual((field["jsonPointer"], field["totalBytes"]), ("/payload", size))
                data, page = b"", {"nextOffset": 0}
                while "nextOffset" in page:
                    offset = page["nextOffset"]
                    page = one.ask(READ, {"contentRef": field["contentRef"], "offset": offset})["result"]
                    piece = base64.b64decode(page["dataBase64"], validate=True)
                    self.assertLessEqual(len(piece), 262_144)
                    self.assertEqual({name: page[name] for name in ("contentRef", "sha256", "totalBytes", "encoding", "offset")}, {
                        **{name: field[name] for name in ("contentRef", "sha256", "totalBytes")}, "encoding": "utf8", "offset": offset})
                    data += piece
                self.assertEqual((len(data), hashlib.sha256(data).hexdigest()), (size, field["sha256"]))
                self.assertEqual(json.loads(data)["text"][:2], "éa")
                empty = one.ask(READ, {"contentRef": field["contentRef"], "offset": size})["result"]
                self.assertEqual((empty["dataBase64"], "nextOffset" in empty), ("", False))
                middle = one.ask(READ, {"contentRef": field["contentRef"], "offset": 5})["result"]
                self.assertEqual(base64.b64decode(middle["dataBase64"])[:3], data[5:8])
                self.refuses(one.ask(READ, {"contentRef": field["contentRef"], "offset": size + 1}), -32000, "content_ref_expired")
                self.refuses(two.ask(READ, {"contentRef": field["contentRef"], "offset": 0}), -32000, "content_ref_expired")
                one.answer(frame, {"decision": "block"})
                stage.outcome()
                event = one.read("extension/event")["params"]
                self.assertEqual(event["externalized"][0]["sha256"], field["sha256"])
            stage.ask("turn", text="a" * (8 * 1024 * 1024))
            self.fails(stage.outcome(), "frame_too_large")
            self.assertEqual(self.sent(stage, one, 100)[1]["seq"], 5)  # nothing was sent of the one before

    def test_the_newest_stay(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", intercepts=["input.receive"]))
            refs = []
            for _ in range(33):
                frame, params = self.sent(stage, one, 65_537)
                one.answer(frame, {"decision": "block"})
                stage.outcome()
                refs += [params["externalized"][0]["contentRef"], one.read("extension/event")["params"]["externalized"][0]["contentRef"]]
            answers = [one.ask(READ, {"contentRef": ref, "offset": 65_000}) for ref in refs]
            self.assertEqual(["result" in it for it in answers], [False] * 2 + [True] * 64)

    def test_replacements_by_reference(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", intercepts=["input.receive", "agent.before_start"], required=True))
            for changes, more, reason in (
                    ({"jsonPointer": "/payload"}, {}, "protocol_error"), ({"sha256": "0" * 64}, {}, "protocol_error"),
                    ({"totalBytes": 1}, {}, "protocol_error"), ({"totalBytes": 8_388_609}, {}, "frame_too_large"),
                    ({"contentRef": "nope"}, {}, "content_ref_expired"), ({}, {"replacement": {"text": "x"}}, "protocol_error"),
                    ({}, {"twice": True}, "protocol_error"), ({"sha256": "A" * 64}, {}, "protocol_error")):
                with self.subTest(changes=changes, more=more):
                    frame, params = self.sent(stage, one, 65_537)
                    field = {**params["externalized"][0], "jsonPointer": "/replacement", **changes}
                    fields = [field] * (2 if "twice" in more else 1)
                    inline = {name: value for name, value in more.items() if name == "replacement"}
                    one.answer(frame, {"decision": "replace", "externalized": fields, **inline})
                    self.fails(stage.outcome(), reason)
            frame, params = self.sent(stage, one, 65_537)
            one.answer(frame, {"decision": "replace", "externalized": [{**params["externalized"][0], "jsonPointer": "/replacement"}]})
            one.read("extension/event")
            one.catalog()
            one.rule("agent.before_start", "block")
            self.assertIn("blocked", stage.outcome())


class Events(HostCase):
    def test_a_plugin_that_does_not_read(self):
        with Stage() as stage:
            deaf, one = stage.begin(stage.plugin("deaf", intercepts=["input.receive"], priority=1, capabilities=[], timeoutMillis=60_000),
                                    stage.plugin("one", intercepts=["input.receive"]))
            deaf.order(reads=False)
            for _ in range(40):
                stage.ask("turn", text="a" * 60_000)
                one.rule("input.receive", "block")
                self.assertIn("blocked", stage.outcome())
                one.event("input.receive")
            self.assertEqual([(it["as"], it["plugin"]) for it in stage.shown], [("warning", "deaf")])
            stage.ask("turn", text="hello")
            one.rule("input.receive")
            deaf.order(reads=True)
            events = 0
            while (frame := deaf.read())["method"] == "extension/event":
                events += 1
            self.assertLessEqual(16, events)
            self.assertLess(events, 25)
            deaf.answer(frame, {"decision": "block"})  # a request is never dropped
            self.assertIn("blocked", stage.outcome())


# ------------------------------------------------------------------------------------------- streams


class Streams(HostCase):
    def test_sequences(self):
        text = lambda guest, *seqs: [guest.chunk(int(it[0]), it[1:]) for it in seqs]
        sequences = (
                ("in order", lambda it: [*text(it, "1a", "2b"), it.ends(2)], "ab"),
                ("out of order", lambda it: [*text(it, "2b", "1a", "3c"), it.ends(3)], "abc"),
                ("an early end", lambda it: [it.ends(2), *text(it, "2b", "1a")], "ab"),
                ("duplicates", lambda it: [*text(it, "1a", "1x", "3c", "3y", "2b"), it.ends(3)], "abc"),
                ("empty", lambda it: [it.ends(0)], ""),
                ("done is not the end", lambda it: [it.chunk(1, type="done"), *text(it, "2b"), it.ends(2)], "b"),
                ("two equal ends", lambda it: [it.ends(1), it.ends(1), *text(it, "1a")], "a"),
                ("more after the end", lambda it: [*text(it, "1a"), it.ends(1), *text(it, "2b")], "a"),
                ("content is left alone", lambda it: [it.chunk(1, KEY), it.ends(1)], KEY),
                ("the window", lambda it: [it.chunk(256, "b"), it.chunk(1, "a"), *[it.chunk(n, ".") for n in range(2, 256)], it.ends(256)],
                 "a" + "." * 254 + "b"),
                ("another stream", lambda it: [{**it.chunk(1, "x"), "params": {**it.chunk(1, "x")["params"], "streamId": "z"}},
                                               *text(it, "1a"), it.ends(1)], "a"),
                ("a gap", lambda it: [*text(it, "1a", "3c"), it.ends(3)], "chunk 2 of 3 is missing"),
                ("a gap and no end", lambda it: text(it, "1a", "3c"), "chunk 2 is missing"),
                ("no last chunk", lambda it: [*text(it, "1a"), it.ends(2)], "chunk 2 of 2 is missing"),
                ("beyond the window", lambda it: [it.chunk(257, "b")], "chunk 1 is missing"),
                ("beyond the end", lambda it: [it.ends(1), *text(it, "2b")], "chunk 2 lies behind the end"),
                ("an end before", lambda it: [*text(it, "1a", "2b"), it.ends(1)], "before what it had sent"),
                ("two ends", lambda it: [it.ends(1), it.ends(2)], "ended twice"),
                ("a chunk that is none", lambda it: [it.chunk(1, type="text", x=1), it.chunk(2, type="usage"), it.ends(2)], "chunk 1 of 2"),
                ("interrupted", lambda it: [*text(it, "1a"), it.ends(1, interrupted=True)], "the provider interrupted it"),
                ("failed", lambda it: [*text(it, "1a"), it.ends(1, error=f"bad {KEY}")], "bad ****"),
                ("an error", lambda it: [it.chunk(1, type="error", error={"code": "provider_failed", "message": f"bad {KEY}"}), it.ends(1)],
                 "bad ****"))
        with Stage() as stage:
            one = stage.begin(stage.plugin("one"))
            for name, frames, outcome in sequences:
                with self.subTest(name):
                    self.sequence(stage, one, frames, outcome, "provider_failed" if "bad" in outcome else "provider_interrupted")

    def sequence(self, stage, one, frames, outcome, reason):
        stage.shown.clear()
        stage.ask("turn", text="hi")
        if stage.asked == 2:
            one.catalog()
        one.opens()
        sent = frames(one)
        one.write(*sent)
        if not any("lastSeq" in it["params"] for it in sent):
            one.answer(one.read("extension/provider/stream/cancel"), {"cancelled": True})
        found = stage.outcome()
        if "done" in found:
            self.assertEqual(found["text"], outcome)
            self.assertEqual("".join(it["text"] for it in stage.shown), outcome)
        else:
            self.fails(found, reason, outcome)

    def test_a_late_chunk_within_its_time(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one", intercepts=["provider.response"]))
            stage.ask("turn", text="hi")
            one.catalog()
            frame = one.read("extension/provider/stream/open")
            one.stream = frame["params"]["streamId"]
            one.write(one.chunk(2, "b"))
            one.ask(READ, {"contentRef": "c", "offset": 0})  # by its answer the chunk is there, before the open is answered
            one.answer(frame, {"accepted": True})
            one.write(one.ends(3), one.chunk(1, "a"), one.chunk(3, "c"))
            self.assertEqual(one.rule("provider.response")["payload"]["text"], "abc")
            self.assertEqual(stage.outcome(), {"done": True, "text": "abc"})

    def test_opens_that_fail(self):
        error = {"code": -32000, "message": f"no {KEY}", "data": {"reason": "provider_failed", "retryable": True}}
        for answer, says in (({"result": {"accepted": False}}, "declined"), ({"error": error}, "no ****")):
            with Stage() as stage:
                one = stage.begin(stage.plugin("one"))
                stage.ask("turn", text="hi")
                one.catalog()
                one.answer(one.read("extension/provider/stream/open"), **answer)
                one.answer(one.read("extension/provider/stream/cancel"), {"cancelled": False})
                self.fails(stage.outcome(), "provider_failed", says)

    def test_cancel(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one"))
            self.assertIn("refused", stage.does("cancel"))
            turn = stage.ask("turn", text="hi")
            one.catalog()
            one.opens()
            one.write(one.chunk(1, "a"))
            one.ask(READ, {"contentRef": "c", "offset": 0})
            for word in ("turn", "reload", "compact"):
                self.assertIn("refused", stage.does(word, **({"text": "x"} if word == "turn" else {})))
            cancel = stage.ask("cancel")
            frame = one.read("extension/provider/stream/cancel")
            self.assertEqual(frame["params"], {"streamId": one.stream})
            one.answer(frame, {"cancelled": True})
            one.write(one.chunk(2, "late"), one.ends(2))
            self.fails(stage.outcome(turn), "stream_cancelled")
            self.assertEqual(stage.outcome(cancel), {"done": True})
            stage.ask("turn", text="again")
            one.says("b")
            self.assertEqual(stage.outcome(), {"done": True, "text": "b"})

    def test_models(self):
        with Stage() as stage:
            one, two = stage.begin(stage.plugin("one"), stage.plugin("two", capabilities=["interceptors"]))
            stage.ask("models")
            listed = [{"ref": ref} for ref in (REF, "plugin/other/p/m", REF + "/large", "plugin/one/q/m")]
            one.answer(one.read("extension/provider/catalog"), {"providers": listed})
            names = [REF, REF + "/large", "plugin/one/q/m"]
            self.assertEqual(stage.outcome(), {"done": True, "models": names})
            for _ in range(2):
                stage.ask("turn", text="hi", model=REF + "/large")
                self.assertEqual(one.opens()["providerRef"], REF + "/large")
                one.write(one.chunk(1, "x"), one.ends(1))
                self.assertEqual(stage.outcome()["text"], "x")
            for wrong in ("plugin/one/q/m", "plugin/two/p/m", "zzz"):  # not declared, not listed, nowhere
                self.fails(stage.does("turn", text="hi", model=wrong), None, "no plugin offers")

    def test_a_catalog_that_fails_is_asked_for_again(self):
        with Stage() as stage:
            one = stage.begin(stage.plugin("one"))
            stage.ask("models")
            one.answer(one.read("extension/provider/catalog"), {"providers": [{"ref": REF, "x": 1}]})
            self.assertEqual(stage.outcome(), {"done": True, "models": []})
            stage.ask("models")
            one.catalog()
            self.assertEqual(stage.outcome(), {"done": True, "models": [REF]})

    def test_no_other_provider_takes_over(self):
        with Stage() as stage:
            one, two = stage.begin(stage.plugin("one", priority=-1), stage.plugin("two"))
            stage.ask("turn", text="hi")
            one.catalog()
            two.catalog()
            one.opens()
            one.write(one.chunk(1, "half"))
            one.order(exit=1)
            self.fails(stage.outcome(), "provider_interrupted", "crashed")
            self.assertEqual([it["text"] for it in stage.shown if it["as"] == "text"], ["half"])
            self.fails(stage.does("turn", text="hi"), "provider_interrupted", "has crashed")
            stage.ask("turn", text="hi", model="plugin/two/p/m")
            two.says("yes")
            self.assertEqual(stage.outcome()["text"], "yes")
