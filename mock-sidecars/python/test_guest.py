"""Drives guest.py through its pipes, as a host would: `python3 -I test_guest.py`.

Nothing sleeps. A guest that hangs is killed by a watchdog, so every test is bounded.
"""
import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import unittest

GUEST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guest.py")
LIMIT = 8 * 1024 * 1024
REF = "plugin/sidecert-guest/sample/echo"
EVERYTHING = {"capabilities": ["interceptors", "providers", "ui"], "intercepts": ["input.receive", "tool.before"]}


def initialize(major=1, manifest=EVERYTHING, **changes):
    return {
        "protocolId": f"reasonix.extension.v{major}", "protocolVersion": str(major), "manifest": manifest,
        "session": {"sessionId": "s", "workspaceRoot": "/w", "generation": 1},
        "capabilities": {"contentRefs": True, "uiHost": "headless", "protocolVersion": str(major)}, **changes}


def intercept(payload, event="input.receive", **changes):
    return {"event": event, "payload": payload, "seq": 1, "timeoutMillis": 5000, **changes}


def stream_open(text, stream="es_1", ref=REF):
    request = {"messages": [{"role": "user", "content": text}], "tools": [], "maxTokens": 1}
    return {"streamId": stream, "providerRef": ref, "seqBase": 1, "request": request}


def request(ident, method, params=None):
    frame = {"jsonrpc": "2.0", "id": ident, "method": "extension/" + method}
    return frame if params is None else {**frame, "params": params}


def padded(size):
    """A request whose frame, LF included, has exactly this many bytes."""
    empty = len(json.dumps(request(1, "zzz", {"x": ""}))) + 1
    return json.dumps(request(1, "zzz", {"x": "a" * (size - empty)})).encode() + b"\n"


class Host:
    def __init__(self, *flags):
        environment = {key: value for key, value in os.environ.items() if key != "REASONIX_PLUGIN_NAME"}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", GUEST, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment)
        self.watchdog = threading.Timer(20, self.process.kill)
        self.watchdog.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self.process.stdin.closed:
            try:
                self.process.stdin.close()
            except BrokenPipeError:
                pass
        self.process.wait()
        self.watchdog.cancel()
        self.process.stdout.close()

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, *frames):
        self.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))

    def read(self):
        line = self.process.stdout.readline()
        assert line.endswith(b"\n") and len(line) <= LIMIT, line[:80]
        return json.loads(line)

    def ask(self, ident, method, params=None):
        self.send(request(ident, method, params))
        return self.read()

    def raw(self, line):
        self.write(line + b"\n")
        return self.read()

    def ready(self, major=1, manifest=EVERYTHING):
        answer = self.ask(0, "initialize", initialize(major, manifest))
        self.send({"jsonrpc": "2.0", "method": "extension/initialized", "params": {}})
        return answer["result"]

    def end(self):
        """Close stdin; what the guest still wrote, and its exit code."""
        self.process.stdin.close()
        return self.process.stdout.read(), self.process.wait()


class GuestCase(unittest.TestCase):
    def fails(self, answer, code, reason=None, ident=1):
        self.assertEqual((answer.get("id", "absent"), answer["error"]["code"]), (ident, code), answer)
        self.assertEqual((answer["error"].get("data") or {}).get("reason"), reason, answer)
        if reason:
            self.assertIs(type(answer["error"]["data"]["retryable"]), bool)
        return answer["error"]


class Frames(GuestCase):
    def test_limits(self):
        for size, served in ((LIMIT, True), (LIMIT + 1, False), (LIMIT + 2, False)):
            with Host() as host:
                host.ready()
                try:
                    host.write(padded(size))
                    out, code = host.end()
                except BrokenPipeError:
                    out, code = host.process.stdout.read(), host.process.wait()
                self.assertEqual((code == 0, out.count(b"\n")), (served, int(served)), size)

    def test_the_limit_does_not_wait_for_the_line_to_end(self):
        with Host() as host:
            host.write(b" " * (LIMIT + 1))
            self.assertEqual((host.process.stdout.read(), host.process.wait()), (b"", 1))

    def test_lines(self):
        with Host() as host:
            host.ready()
            cancel = json.dumps(request(1, "provider/stream/cancel", {"streamId": "x"})).encode()
            for at in range(0, len(cancel), 7):  # split anywhere
                host.write(cancel[at:at + 7])
            host.write(b"\r\n\n\r\n  \t\n  " + cancel + b"\n" + cancel + b"\n")
            for _ in range(3):
                self.assertEqual(host.read()["result"], {"cancelled": False})
            host.write(cancel)  # no LF before the end
            out, code = host.end()
            self.assertEqual((json.loads(out)["id"], code), (1, 0))

    def test_truncated_at_the_end(self):
        with Host() as host:
            host.write(b'{"jsonrpc":')
            out, code = host.end()
            self.fails(json.loads(out), -32700, ident=None)
            self.assertEqual(code, 0)

    def test_not_json(self):
        with Host() as host:
            for line in (b"hello", b"\xef\xbb\xbf{}", b"{} {}", b'{"a":NaN}', b'{"a":"\x00"}', b"{", b"[" * 10001 + b"]" * 10001):
                self.fails(host.raw(line), -32700, ident=None)

    def test_nesting_and_bad_unicode_are_served(self):
        with Host() as host:
            host.ready()
            deep = b'{"jsonrpc":"2.0","id":1,"method":"zzz","params":{"a":' + b"[" * 9998 + b"]" * 9998 + b"}}"
            self.fails(host.raw(deep), -32601, "unknown_method")
            self.fails(host.raw(b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe\\ud800"}'), -32601, "unknown_method")
            host.send(request(1, "provider/stream/open", stream_open("\ud800 é")))
            self.assertEqual(host.read()["result"], {"accepted": True})
            self.assertEqual(host.read()["params"]["chunk"]["type"], "reasoning")
            self.assertEqual(host.read()["params"]["chunk"], {"type": "text", "text": "? é"})


class Envelope(GuestCase):
    def test_refused(self):
        call = '"jsonrpc":"2.0","method":"x"'
        no_id = ['"x"', "42", "null", "[]", "[{}]", "{}", '{"jsonrpc":"2.0","result":{}}',
                 '{"jsonrpc":"2.0","id":7.0,"result":{}}']
        no_id += ['{%s,"id":%s}' % (call, ident) for ident in ('"a"', "1.0", "1e2", "1.5", "true", "{}", "[]")]
        with_id = ['{"id":1,"method":"x"}', '{"jsonrpc":"1.0","id":1,"method":"x"}', '{"jsonrpc":"2.0","id":1,"method":""}',
                   '{"jsonrpc":2,"id":1,"method":"x"}', '{"jsonrpc":"2.0","id":1,"method":7}',
                   '{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}',
                   '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":null}}', '{"jsonrpc":"2.0","id":1,"error":null}',
                   '{"jsonrpc":"2.0","id":1,"method":null}', '{"jsonrpc":"2.0","id":1}',
                   '{"jsonrpc":"2.0","id":1,"result":1,"error":null}', '{"jsonrpc":"2.0","id":1,"error":{"code":1}}']
        with_id += ['{%s,"id":1,%s}' % (call, more) for more in ('"params":[]', '"params":"x"', '"params":null', '"result":1')]
        with Host() as host:
            host.ready()
            for line in no_id:
                self.fails(host.raw(line.encode()), -32600, ident=None)
            for line in with_id:
                self.fails(host.raw(line.encode()), -32600, ident=1)

    def test_ids_come_back_as_they_were_written(self):
        with Host() as host:
            for ident in (b"-5", b"-0", b"9" * 30, b"1" * 9000, b"null"):
                host.write(b'{"jsonrpc":"2.0","id":%s,"method":"x"}\n' % ident)
                self.assertIn(b'"id":%s,' % ident, host.process.stdout.readline())

    def test_silence(self):
        with Host() as host:
            host.ready()
            for method, params in (("event", {}), ("event", {"event": "tool.after", "payload": None}), ("zzz", {}),
                                   ("resources/changed", {"paths": None}), ("provider/catalog", {}), ("event", [])):
                host.send({"jsonrpc": "2.0", "method": "extension/" + method, "params": params})
            for ident in (999, "7", None):
                host.send({"jsonrpc": "2.0", "id": ident, "result": {}})
            self.assertEqual(host.ask(1, "provider/catalog")["result"]["providers"][0]["ref"], REF)
            self.assertEqual(host.end(), (b"", 0))

    def test_unknown_methods(self):
        with Host() as host:
            host.ready()
            for method in ("zzz", "event", "initialized", "../host/ui/publish"):
                self.fails(host.ask(1, method, {}), -32601, "unknown_method")

    def test_unknown_members_of_the_frame_and_duplicates(self):
        with Host() as host:
            host.ready()
            line = b'{"x":1,"jsonrpc":"2.0","id":"a","id":3,"method":"zzz","method":"extension/provider/catalog"}'
            self.assertEqual(host.raw(line)["id"], 3)


class Params(GuestCase):
    def test_refused(self):
        good = intercept({})
        open_ = stream_open("x")
        wrong = [("intercept", {**good, "x": 1}), ("intercept", {**good, "seq": 0}), ("intercept", {**good, "event": "zzz"}),
                 ("intercept", {**good, "seq": 1.0}), ("intercept", {**good, "timeoutMillis": -1}),
                 ("intercept", {**good, "seq": True}), ("intercept", {**good, "externalized": None}),
                 ("intercept", {**good, "externalized": [{"x": 1}]}), ("provider/catalog", {"x": 1}),
                 ("provider/stream/cancel", {"streamId": ""}), ("provider/stream/cancel", None),
                 ("provider/stream/open", {**open_, "seqBase": -1}), ("provider/stream/open", {**open_, "generation": 1}),
                 ("provider/stream/open", {**open_, "request": {**open_["request"], "tools": None}}),
                 ("provider/stream/open", {**open_, "request": {**open_["request"], "messages": [{"role": "user", "x": 1}]}}),
                 ("ui/action", {"actionId": "demo", "generation": 1, "sessionId": "s", "args": {"a": 1}}),
                 ("ui/submit", {"surfaceId": "f", "generation": 1, "sessionId": "s", "values": None}),
                 ("shutdown", {}), ("shutdown", {"timeoutMillis": -1})]
        wrong += [("intercept", {key: value for key, value in good.items() if key != gone}) for gone in good]
        with Host() as host:
            host.ready()
            for method, params in wrong:
                self.fails(host.ask(1, method, params), -32602, "invalid_params")
            self.assertEqual(host.ask(1, "intercept", good)["result"], {"decision": "continue"})


class Lifecycle(GuestCase):
    def test_order(self):
        with Host() as host:
            self.fails(host.ask(1, "provider/catalog", {}), -32600, "protocol_error")
            host.send({"jsonrpc": "2.0", "method": "extension/initialized", "params": {}})
            self.fails(host.ask(1, "initialize", {}), -32602, "invalid_params")
            self.fails(host.ask(1, "initialize", initialize(foo=1)), -32602, "invalid_params")
            self.assertIn("result", host.ask(1, "initialize", initialize()))
            for method, params in (("intercept", intercept({})), ("initialize", initialize())):
                self.fails(host.ask(1, method, params), -32600, "protocol_error")
            host.send({"jsonrpc": "2.0", "method": "extension/initialized"})
            self.assertIn("result", host.ask(1, "intercept", intercept({})))
            self.assertEqual(host.ask(1, "shutdown", {"timeoutMillis": 1000})["result"], {"accepted": True})
            self.fails(host.ask(1, "provider/catalog", {}), -32600, "protocol_error")
            self.assertEqual(host.end(), (b"", 0))

    def test_shutdown_first_and_bare_end(self):
        with Host() as host:
            self.assertEqual(host.ask(1, "shutdown", {"timeoutMillis": 0})["result"], {"accepted": True})
        with Host() as host:
            self.assertEqual(host.end(), (b"", 0))

    def test_versions(self):
        for flags, changes, code, reason in (
                ((), {"protocolId": "reasonix.extension.v2"}, -32000, "unsupported_version"),
                ((), {"protocolId": "acme.extension.v1"}, -32000, "unsupported_version"),
                ((), {"protocolVersion": "2"}, -32000, "unsupported_version"),
                ((), {"protocolVersion": "v1"}, -32600, "protocol_error"),
                (("--protocol", "v2"), {}, -32000, "unsupported_version")):
            with Host(*flags) as host:
                self.fails(host.ask(1, "initialize", initialize(**changes)), code, reason)
                self.assertEqual((host.process.stdout.read(), host.process.wait()), (b"", 1))

    def test_declares_what_the_manifest_allows(self):
        with Host() as host:
            answer = host.ready()
            self.assertEqual((answer["protocolVersion"], answer["stateSchemaVersion"]), ("1", 0))
            self.assertEqual((answer["subscriptions"], answer["replaces"]), ([name for name in EVERYTHING["intercepts"] if name != "frontend.event"], []))
            self.assertEqual(answer["providers"][0]["ref"], REF)
            self.assertEqual(answer["uiActions"][0]["actionId"], "demo")
            self.assertNotIn("provides", answer)
        with Host() as host:
            answer = host.ready(manifest={})
            self.assertEqual(answer["subscriptions"], [])
            self.assertFalse({"providers", "uiActions", "provides"} & answer.keys())

    def test_v2(self):
        entry = {"kind": "tool", "namespace": "n", "id": "i", "version": "1"}
        manifest = {**EVERYTHING, "provides": [entry]}
        with Host() as host:
            answer = host.ready(2, manifest)
            self.assertEqual((answer["protocolVersion"], answer["provides"]), ("2", [entry]))
            host.send(request(1, "provider/stream/open", {**stream_open("hi"), "generation": 4, "epoch": "e"}))
            host.read()
            chunk = host.read()["params"]
            self.assertEqual((chunk["generation"], chunk["epoch"]), (4, "e"))
        with Host() as host:  # v1 knows no such member
            self.fails(host.ask(1, "initialize", initialize(1, manifest)), -32602, "invalid_params")


class Content(GuestCase):
    """The guest reads pages that this host serves, honestly or not."""

    BODY = json.dumps({"text": "sidecert:replace", "pad": "é" * 200000}, ensure_ascii=False).encode()

    def descriptor(self, **changes):
        return {"jsonPointer": "/payload", "contentRef": "content_1", "totalBytes": len(self.BODY),
                "sha256": hashlib.sha256(self.BODY).hexdigest(), **changes}

    def page(self, call, **changes):
        offset = call["params"]["offset"]
        end = min(offset + 262144, len(self.BODY))
        page = {**self.descriptor(), "offset": offset, "encoding": "utf8",
                "dataBase64": base64.b64encode(self.BODY[offset:end]).decode()}
        del page["jsonPointer"]
        if end < len(self.BODY):
            page["nextOffset"] = end
        return {"jsonrpc": "2.0", "id": call["id"], "result": {**page, **changes}}

    def start(self, host, *fields, payload=None, **changes):
        host.ready()
        host.send(request(1, "intercept", intercept(payload, externalized=list(fields), **changes)))

    def test_pages_while_others_are_served(self):
        with Host() as host:
            self.start(host, self.descriptor())
            calls = 0
            while True:
                call = host.read()
                if call.get("id") == 1 and "result" in call:
                    break
                self.assertEqual((call["method"], type(call["id"])), ("host/content/read", int))
                self.assertIn("result", host.ask(50, "provider/catalog", {}))
                host.send(self.page(call))
                calls += 1
            self.assertEqual((call["result"]["decision"], calls), ("replace", 2))

    def test_dishonest_pages(self):
        for changes in ({"sha256": "0" * 64}, {"totalBytes": 1}, {"offset": 5}, {"contentRef": "other"}, {"encoding": "x"},
                        {"nextOffset": 0}, {"nextOffset": None}, {"dataBase64": "*"}, {"x": 1},
                        {"dataBase64": base64.b64encode(b"a" * 262145).decode()}):
            with Host() as host:
                self.start(host, self.descriptor())
                host.send(self.page(host.read(), **changes))
                self.fails(host.read(), -32600, "protocol_error")
        with Host() as host:  # the right shape, the wrong bytes
            self.start(host, self.descriptor())
            host.send(self.page(host.read()))
            call = host.read()
            data = base64.b64encode(b"x" * (len(self.BODY) - 262144)).decode()
            host.send(self.page(call, dataBase64=data))
            self.fails(host.read(), -32600, "protocol_error")

    def test_refused_unread(self):
        good = self.descriptor()
        for fields, payload in (([good, good], None), ([good], {"text": "x"}), ([{**good, "jsonPointer": "/x"}], None)):
            with Host() as host:
                self.start(host, *fields, payload=payload)
                self.fails(host.read(), -32600, "protocol_error")
        with Host() as host:
            self.start(host, self.descriptor(totalBytes=LIMIT + 1))
            self.fails(host.read(), -32000, "frame_too_large")

    def test_errors_of_the_host(self):
        for data, code, reason in (({"reason": "content_ref_expired", "retryable": True}, -32000, "content_ref_expired"),
                                   ({"reason": "content_ref_expired", "retryable": False}, -32603, "internal"),
                                   (None, -32603, "internal")):
            with Host() as host:
                self.start(host, self.descriptor())
                error = {"code": -32000, "message": "gone", "data": data}
                host.send({"jsonrpc": "2.0", "id": host.read()["id"], "error": error})
                self.fails(host.read(), code, reason)

    def test_a_broken_response_leaves_the_call_pending(self):
        with Host() as host:
            self.start(host, self.descriptor(totalBytes=2, sha256=hashlib.sha256(b"{}").hexdigest()))
            ident = host.read()["id"]
            host.send({"jsonrpc": "2.0", "id": ident, "result": {}, "error": None})
            self.fails(host.read(), -32600, ident=ident)
            result = {"contentRef": "content_1", "offset": 0, "encoding": "utf8", "dataBase64": "e30=", "totalBytes": 2,
                      "sha256": hashlib.sha256(b"{}").hexdigest()}
            host.send(*[{"jsonrpc": "2.0", "id": ident, "result": result}] * 2)
            self.assertEqual(host.read(), {"jsonrpc": "2.0", "id": 1, "result": {"decision": "continue"}})

    def test_budget_and_shutdown(self):
        with Host() as host:
            self.start(host, self.descriptor(), timeoutMillis=50)
            call = host.read()
            self.fails(host.read(), -32000, "intercept_timeout")
            host.send(self.page(call))  # too late
            self.assertIn("result", host.ask(2, "provider/catalog"))
            host.send(request(1, "intercept", intercept(None, externalized=[self.descriptor()])))
            host.read()
            host.send(request(3, "shutdown", {"timeoutMillis": 0}))
            self.fails(host.read(), -32600, "protocol_error")
            self.assertEqual(host.read()["result"], {"accepted": True})


class Provocations(GuestCase):
    def provoke(self, host, mark, **changes):
        host.send(request(1, "intercept", intercept({"text": "sidecert:" + mark}, **changes)))

    def test_rulings(self):
        with Host() as host:
            host.ready()
            for more in ("", " and then some more"):
                self.provoke(host, "large" + more)
                self.assertNotIn("data", self.fails(host.read(), -32603))
                self.provoke(host, "panic" + more)
                self.assertNotIn("asked", self.fails(host.read(), -32603, "internal")["message"])
                self.provoke(host, "replace" + more)
                replaced = {"decision": "replace", "replacement": {"text": "sidecert was here"}}
                self.assertEqual(host.read()["result"], replaced)
            for payload in ({"text": 1}, [], None, "sidecert:panic", {"text": "hello"}, {"text": " sidecert:panic"}):
                self.assertEqual(host.ask(1, "intercept", intercept(payload))["result"], {"decision": "continue"})
            elsewhere = intercept({"text": "sidecert:panic"}, event="tool.before")
            self.assertEqual(host.ask(1, "intercept", elsewhere)["result"], {"decision": "continue"})

    def test_slow_takes_its_time_and_keeps_nobody_waiting(self):
        with Host() as host:
            host.ready()
            before = time.monotonic()
            self.provoke(host, "slow", timeoutMillis=600)
            self.assertIn("result", host.ask(2, "provider/catalog"))
            self.fails(host.read(), -32000, "intercept_timeout")
            self.assertGreater(time.monotonic() - before, 0.4)

    def test_busy(self):
        with Host() as host:
            host.ready()
            slow = intercept({"text": "sidecert:slow"}, timeoutMillis=0)
            host.send(*[request(n, "intercept", slow) for n in range(33)])
            self.fails(host.read(), -32099, ident=32)
            self.assertIn("result", host.ask(50, "provider/catalog"))

    def test_prompt(self):
        with Host() as host:
            host.ready()
            error = {"code": -32601, "message": "no", "data": {"reason": "unknown_method", "retryable": False}}
            for answer in ({"result": {"cancelled": True}}, {"result": {"cancelled": False, "values": {"value": True}}},
                           {"error": error}, {"result": None}):
                self.provoke(host, "prompt")
                call = host.read()
                self.assertEqual((call["method"], call["params"]["kind"]), ("host/ui/request", "confirm"))
                self.assertEqual((call["params"]["sessionId"], call["params"]["generation"]), ("s", 1))
                self.assertEqual((call["params"]["payload"].keys(), call["params"]["payload"]["fields"]),
                                 ({"title", "message", "fields"}, []))
                self.assertIn("result", host.ask(2, "provider/catalog"))
                host.send(*[{"jsonrpc": "2.0", "id": call["id"], **answer}] * 2)  # the second one is ignored
                self.assertEqual(host.read(), {"jsonrpc": "2.0", "id": 1, "result": {"decision": "continue"}})
            self.provoke(host, "prompt", timeoutMillis=20)
            host.read()
            self.fails(host.read(), -32000, "intercept_timeout")

    def test_publish_and_submit(self):
        place = {"generation": 1, "sessionId": "s"}
        with Host() as host:
            host.ready()
            self.provoke(host, "publish")
            calls = [host.read() for _ in range(4)]
            self.assertEqual([call["params"]["kind"] for call in calls], ["status", "card", "form", "notification"])
            for call in calls:
                self.assertEqual((call["method"], call["params"]["sessionId"]), ("host/ui/publish", "s"))
            for call in reversed(calls):
                self.assertIn("result", host.ask(2, "provider/catalog"))
                host.send({"jsonrpc": "2.0", "id": call["id"], "result": {"accepted": True}})
            self.assertEqual(host.read()["result"], {"decision": "continue"})
            for surface, known in ((calls[2]["params"]["surfaceId"], True), ("f", False)):
                answer = host.ask(1, "ui/submit", {"surfaceId": surface, "values": {}, **place})
                self.assertEqual(answer["result"], {"accepted": known})
            for action, known in (("demo", True), ("nope", False)):
                answer = host.ask(1, "ui/action", {"actionId": action, **place})
                self.assertIs(answer["result"]["accepted"], known)

    def test_no_ui_where_the_manifest_has_none(self):
        with Host() as host:
            host.ready(manifest={"capabilities": ["interceptors"], "intercepts": ["input.receive"]})
            for mark in ("prompt", "publish"):
                self.provoke(host, mark)
                self.assertEqual(host.read()["result"], {"decision": "continue"})


class Echo(GuestCase):
    TEXT = (r'{ "text":"sidecert:echo-payload \u00e9 \ud800 \/","n":[ 1.0,-0, 1e400,123456789012345678901234567890,'
            r'0.1000000000000000000001],"a":1,"a":"}{,\"","\u0061":{}}')

    def test_inline(self):
        with Host() as host:
            host.ready()
            deep = self.TEXT.replace('{}', "[" * 9990 + "]" * 9990)
            for body in (self.TEXT, deep, self.TEXT.replace(":1,", ":1 \t, \r").replace("{ ", "{\r ")):
                host.write(('{"params":{"payload":{"x":0} , "event":"input.receive","payload" :%s,"seq":1,'
                            '"timeoutMillis":5000} , "id":1,"method":"extension/intercept","jsonrpc":"2.0"}\n' % body).encode())
                line = host.process.stdout.readline().decode()
                self.assertIn('"replacement":%s}}' % body, line)

    def test_page_by_page(self):
        with Host() as host:
            host.ready()
            body = self.TEXT.replace("[ 1.0,", "[\r\n1.0,\n") + "\n"
            data = body.encode()
            field = {"contentRef": "c", "totalBytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            fields = [{**field, "jsonPointer": "/payload"}]
            host.send(request(1, "intercept", intercept(None, externalized=fields)))
            call = host.read()
            page = {**field, "offset": 0, "encoding": "utf8", "dataBase64": base64.b64encode(data).decode()}
            host.send({"jsonrpc": "2.0", "id": call["id"], "result": page})
            line = host.process.stdout.readline().decode()
            self.assertIn('"replacement":%s}}' % body.replace("\r", " ").replace("\n", " "), line)


class Streams(GuestCase):
    def test_to_the_end(self):
        with Host() as host:
            host.ready()
            answer = host.ask(1, "provider/stream/open", {**stream_open("a" * 2000), "seqBase": 0})
            self.assertEqual(answer["result"], {"accepted": True})
            chunks = [host.read()["params"] for _ in range(5)]
            self.assertEqual([chunk["seq"] for chunk in chunks], [1, 2, 3, 4, 5])
            self.assertEqual([chunk["chunk"]["type"] for chunk in chunks], ["reasoning", "text", "text", "usage", "done"])
            self.assertIn("signature", chunks[0]["chunk"])
            self.assertEqual(len(chunks[3]["chunk"]["usage"]), 7)
            self.ends(host.read(), 5)
            self.assertEqual(host.end(), (b"", 0))

    def ends(self, end, last, **more):
        self.assertEqual(end["method"], "extension/provider/stream/end")
        self.assertEqual(end["params"], {"streamId": "es_1", "lastSeq": last, **more})

    def test_empty(self):
        with Host() as host:
            host.ready()
            self.assertIn("result", host.ask(1, "provider/stream/open", stream_open("sidecert:empty-stream")))
            self.ends(host.read(), 0)

    def test_failing(self):
        with Host() as host:
            host.ready()
            host.ask(1, "provider/stream/open", stream_open("sidecert:failing-stream, please"))
            self.assertEqual(host.read()["params"]["chunk"]["type"], "text")
            failed = host.read()["params"]
            self.assertEqual((failed["seq"], failed["chunk"]["error"]["code"]), (2, "provider_failed"))
            self.assertNotIn("sk-", failed["chunk"]["error"]["message"])
            self.ends(host.read(), 2)

    def test_long_gives_way(self):
        with Host() as host:
            host.ready()
            host.ask(1, "provider/stream/open", stream_open("sidecert:long-stream"))
            self.assertEqual(host.read()["params"]["seq"], 1)
            # Nobody reads on, so the pipe fills up, and yet the guest hears what comes in.
            host.send(request(2, "provider/stream/open", stream_open("x")),
                      request(3, "provider/stream/open", stream_open("x", "es_2")),
                      request(4, "provider/stream/open", stream_open("x", ref="nope")),
                      request(5, "provider/stream/cancel", {"streamId": "es_1"}),
                      request(6, "provider/stream/cancel", {"streamId": "es_1"}))
            frames, chunks = {}, 1
            while 6 not in frames or "es_2" not in frames:
                frame = host.read()
                if frame.get("method", "").endswith("end"):
                    frames[frame["params"]["streamId"]] = frame
                elif "id" in frame:
                    frames[frame["id"]] = frame
                elif frame["params"]["streamId"] == "es_1":
                    self.assertNotIn(5, frames)
                    chunks += 1
            self.fails(frames[2], -32600, "protocol_error", ident=2)
            self.fails(frames[4], -32000, "provider_failed", ident=4)
            self.assertEqual((frames[5]["result"], frames[6]["result"]), ({"cancelled": True}, {"cancelled": False}))
            self.ends(frames["es_1"], chunks, interrupted=True)
            self.assertLess(chunks, 20_000)


if __name__ == "__main__":
    unittest.main()
