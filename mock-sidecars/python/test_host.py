"""Drives host.py over its shim, and the plugins that it starts: `python3 -I test_host.py`.

A plugin here is this file once more, `--as-guest SOCKET`: a relay that shows the test every line of the host's, and
does what the test says. So a test is both ends, and reads what was really written. Every line of the shim is held
against its schema and every frame of the host's against the contract. Nothing sleeps, and every wait is bounded.
"""
import base64
import hashlib
import json
import os
import queue
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(HERE, "../../harness/proto")
PATIENCE = 20  # seconds for whatever should come at once
ALL = ["interceptors", "strategies", "providers", "ui"]
REF = "plugin/one/p/m"
READ, KEY = "host/content/read", "sk-abcdefghijklmnopqrstuv"


def load(*path):
    with open(os.path.join(PROTO, *path), encoding="utf-8") as file:
        return json.load(file)


SHIM = load("schema/host-shim-1.schema.json")
CONTRACTS = {major: load(f"src/reasonix/contract/v{major}.json") for major in (1, 2)}


def fits(root, schema, value):
    """Whether a value is what a schema says: as much of JSON Schema as these documents use."""
    if schema is True or schema == {}:
        return True
    if "$ref" in schema:
        return fits(root, root["$defs"][schema["$ref"].rpartition("/")[2]], value)
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    if "type" in schema and (not isinstance(value, types[schema["type"]]) or
                             isinstance(value, bool) != (schema["type"] == "boolean")):
        return False
    if "const" in schema and (value != schema["const"] or type(value) is not type(schema["const"])):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "oneOf" in schema and sum(fits(root, one, value) for one in schema["oneOf"]) != 1:
        return False
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0)
    if isinstance(value, (int, float)):
        return value >= schema.get("minimum", value)
    if isinstance(value, list):
        return all(fits(root, schema.get("items", True), item) for item in value)
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        return all(name in value for name in schema.get("required", ())) and all(
            name in known or rest is not False for name in value) and all(
            fits(root, known.get(name, rest), member) for name, member in value.items())
    return True


# ------------------------------------------------------------------------------------------ the relay


def relay(path):
    """A plugin that only does what the test says. It ends when the test does."""
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)
    env = {name: value for name, value in os.environ.items() if name.startswith(("REASONIX_PLUGIN_", "TEST_"))}
    tell = lambda **what: link.sendall(json.dumps(what).encode() + b"\n")
    tell(name=os.environ["REASONIX_PLUGIN_NAME"], pid=os.getpid(), argv=sys.argv[3:], env=env,
         leads=os.getsid(0) == os.getpgid(0) == os.getpid())
    told, heard, reads = b"", b"", [0]
    while True:
        ready, _, _ = select.select([link, *reads], [], [])
        if link in ready:
            data = link.recv(1 << 16)
            *orders, told = (told + data).split(b"\n")
            for order in map(json.loads, orders):
                if "write" in order:
                    os.write(1, order["write"].encode("utf-8", "surrogateescape"))
                elif "fill" in order:
                    for fd, byte, count in [order["fill"]]:
                        while count > 0:
                            count -= os.write(fd, byte.encode() * min(count, 1 << 16))
                elif "stderr" in order:
                    os.write(2, order["stderr"].encode())
                elif "spawn" in order:
                    child = subprocess.Popen(order["spawn"])
                    tell(spawned=child.pid)
                elif "close" in order:
                    os.close(order["close"])
                elif "reads" in order:
                    reads = [0] if order["reads"] else []
                elif "exit" in order:
                    os._exit(order["exit"])
            if not data:
                os._exit(9)
        elif reads and 0 in ready:
            data = os.read(0, 1 << 16)
            *lines, heard = (heard + data).split(b"\n")
            for line in lines:
                tell(line=line.decode())
            if not data:
                tell(eof=True)
                reads = []


class Guest:
    """The test's end of a relay: it is the plugin."""

    def __init__(self, link, major):
        self.link, self.contract, self.rest, self.lines, self.answered = link, CONTRACTS[major], b"", [], {}
        link.settimeout(PATIENCE)
        self.who = self.news()
        self.major, self.name = major, self.who["name"]

    def news(self):
        """What the relay tells next; None once its process is gone."""
        while not self.lines:
            try:
                data = self.link.recv(1 << 20)
            except ConnectionResetError:
                data = b""
            if not data:
                return None
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.lines += lines
        return json.loads(self.lines.pop(0))

    def read(self, method=None):
        """The next frame of the host's, which is what the contract says."""
        news = self.news()
        assert news and "line" in news, f"{self.name} waits for {method}, and there is {news}"
        frame = json.loads(news["line"])
        assert frame["jsonrpc"] == "2.0", frame
        if "method" in frame:
            told = self.contract["methods"][frame["method"]]
            assert told["direction"].startswith("host_to_extension") and told["notification"] == ("id" not in frame), frame
            assert fits(self.contract, told["params"], frame["params"]), str(frame)[:2000]
        else:
            assert ("result" in frame) != ("error" in frame) and "id" in frame, frame
        assert method in (None, frame.get("method")), f"not {method}: {str(frame)[:500]}"
        return frame

    def order(self, **order):
        try:
            self.link.sendall(json.dumps(order).encode() + b"\n")
        except OSError:
            pass  # its process is gone

    def write(self, *frames):
        self.order(write="".join((it if isinstance(it, str) else json.dumps(it)) + "\n" for it in frames))

    def answer(self, frame, result=None, error=None):
        self.write({"jsonrpc": "2.0", "id": frame["id"], **({"result": result} if error is None else {"error": error})})

    def ask(self, method, params, ident=7):
        """A request to the host, and the response."""
        self.write({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        frame = self.read()
        assert frame["id"] == ident, frame
        return frame

    def declares(self, **changes):
        return {"name": "relay", "version": "1", "protocolVersion": str(self.major), "stateSchemaVersion": 1,
                **({"providers": [{"ref": f"plugin/{self.name}/p/m"}]} if changes.pop("provides", False) else {}), **changes}

    def greet(self, **changes):
        first = self.read("extension/initialize")
        self.answer(first, self.declares(**changes))
        self.read("extension/initialized")
        return first["params"]

    def rule(self, point, decision="continue", **more):
        """The next frame is this intercept; what it was about."""
        frame = self.read("extension/intercept")
        assert frame["params"]["event"] == point, f"not {point}: {str(frame)[:500]}"
        self.answer(frame, {"decision": decision, **more})
        return frame["params"]

    def event(self, point):
        frame = self.read("extension/event")
        assert frame["params"]["event"] == point, frame
        return frame["params"]["payload"]

    def catalog(self, **more):
        self.answer(self.read("extension/provider/catalog"), {"providers": [{"ref": f"plugin/{self.name}/p/m", **more}]})

    def opens(self, accepted=True):
        """It is asked for a stream; the number of chunks tells where the stream is."""
        frame = self.read("extension/provider/stream/open")
        self.answer(frame, {"accepted": accepted})
        self.stream = frame["params"]["streamId"]
        return frame["params"]

    def chunk(self, seq, text=None, **chunk):
        chunk = {"type": "text", **chunk, **({} if text is None else {"text": text})}
        return {"jsonrpc": "2.0", "method": "extension/provider/stream/chunk",
                "params": {"streamId": self.stream, "seq": seq, "chunk": chunk}}

    def ends(self, last, **more):
        return {"jsonrpc": "2.0", "method": "extension/provider/stream/end",
                "params": {"streamId": self.stream, "lastSeq": last, **more}}

    def says(self, *chunks):
        """It answers with these chunks, texts or whole ones."""
        self.opens()
        chunks = [{"type": "text", "text": it} if isinstance(it, str) else it for it in chunks]
        self.write(*[self.chunk(seq, **it) for seq, it in enumerate(chunks, 1)], self.ends(len(chunks)))

    def leaves(self):
        """It is told to stop, and does."""
        frame = self.read("extension/shutdown")
        self.answer(frame, {"accepted": True})
        assert self.news() == {"eof": True}
        self.order(exit=0)
        assert self.news() is None
        return frame["params"]

    def is_gone(self):
        """Nothing more was written to it, and its process has ended."""
        while (news := self.news()) is not None:
            assert "eof" in news, news
        return True


class Stage:
    """The host, and the socket to which its plugins connect."""

    def __init__(self, major=2):
        self.major, self.folder = major, tempfile.mkdtemp()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.folder, "s"))
        self.listener.listen(16)
        self.listener.settimeout(PATIENCE)
        self.host = subprocess.Popen([sys.executable, "-I", "-S", os.path.join(HERE, "host.py")], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, env={**os.environ, "TEST_INHERITED": "yes"})
        self.told, self.asked, self.shown, self.found, self.guests = queue.Queue(), 0, [], [], {}
        threading.Thread(target=self.listen, daemon=True).start()
        os.mkdir(os.path.join(self.folder, "host"))
        self.send({"shim": 1, "suite": f"reasonix-v{major}", "folder": os.path.join(self.folder, "host")})
        self.hello = self.hear()

    def listen(self):
        for line in self.host.stdout:
            self.told.put(line)
        self.told.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.host.stdin.close()
        for guest in self.guests.values():
            guest.link.close()
        try:
            self.host.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.host.kill()
            raise
        finally:
            self.host.wait()
            self.host.stdout.close()
            self.listener.close()
            shutil.rmtree(self.folder)

    def send(self, line):
        assert fits(SHIM, SHIM["$defs"]["toShim"], line), line
        self.host.stdin.write(json.dumps(line).encode() + b"\n")
        self.host.stdin.flush()

    def hear(self):
        line = self.told.get(timeout=PATIENCE)
        assert line is not None, "the host ended"
        line = json.loads(line)
        assert fits(SHIM, SHIM["$defs"]["fromShim"], line), line
        return line

    def ask(self, do, **more):
        self.asked += 1
        self.send({"ask": self.asked, "do": do, **more})
        return self.asked

    def outcome(self, ask=None):
        """That of an ask, the last one unless another is named."""
        while True:
            line = self.hear()
            if "outcome" in line:
                assert line.pop("outcome") == (ask or self.asked), line
                return line
            if "shown" in line:
                self.shown.append(line["shown"])
            else:
                self.found.append(line["found"])

    def show(self, kind):
        """Hears until something of this kind is shown."""
        while True:
            line = self.hear()
            if line.get("shown", {}).get("as") == kind:
                return line["shown"]
            assert "outcome" not in line, line

    def does(self, do, **more):
        self.ask(do, **more)
        return self.outcome()

    def plugin(self, name, manifest=(), **runtime):
        argv = ["-I", "-S", os.path.abspath(__file__), "--as-guest", os.path.join(self.folder, "s")]
        return {"name": name, "enabled": True, "manifest": {
            "apiVersion": f"reasonix.io/plugin/v{self.major}", "name": name, "version": "0.1",
            "runtime": {"command": sys.executable, "args": argv, "capabilities": ALL, **runtime}, **dict(manifest)}}

    def guest(self):
        guest = Guest(self.listener.accept()[0], self.major)
        self.guests[guest.name] = guest
        return guest

    def starts(self, *plugins, **more):
        return self.ask("start", workspace=self.folder, plugins=list(plugins), **more)

    def begin(self, *plugins, **more):
        """A session with these plugins; each has greeted, and has a provider if its manifest says so."""
        self.starts(*plugins, **more)
        for _ in plugins:
            guest = self.guest()
            caps = self.caps(plugins, guest.name)
            guest.greet(provides="providers" in caps, uiActions=[{"actionId": "demo"}] if "ui" in caps else [])
        done = self.outcome()
        assert done == {"done": True}, done
        guests = [self.guests[plugin["name"]] for plugin in plugins]
        return guests[0] if len(guests) == 1 else guests

    @staticmethod
    def caps(plugins, name):
        return next(it for it in plugins if it["name"] == name)["manifest"]["runtime"]["capabilities"]


class HostCase(unittest.TestCase):
    def fails(self, outcome, reason=None, says=""):
        self.assertIn("failed", outcome)
        self.assertEqual(outcome.get("reason"), reason, outcome)
        self.assertIn(says, outcome["failed"])

    def refuses(self, frame, code, reason=None, ident=7):
        self.assertEqual((frame["id"], frame["error"]["code"]), (ident, code), frame)
        self.assertEqual((frame["error"].get("data") or {}).get("reason"), reason, frame)


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
            place = self.place(stage, guest)
            ask = {"kind": "confirm", "surfaceId": "s", "payload": {"fields": []}, **place}
            guest.write(*[{"jsonrpc": "2.0", "id": n, "method": "host/ui/request", "params": ask} for n in range(65)])
            self.refuses(guest.read(), -32099, ident=64)
            stage.ask("stop")
            self.assertEqual([guest.read()["result"] for _ in range(64)], [{"cancelled": True}] * 64)
            guest.leaves()
            self.assertEqual(stage.outcome(), {"done": True})

    def place(self, stage, guest):
        """What a UI frame repeats, as an action tells it."""
        ask = stage.ask("action", plugin=guest.name, action="demo")
        frame = guest.read("extension/ui/action")
        guest.answer(frame, {"accepted": True})
        self.assertEqual(stage.outcome(ask), {"done": True})
        return {name: frame["params"][name] for name in ("sessionId", "generation")}


# ------------------------------------------------------------------------------------------- rulings


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


# ------------------------------------------------------------------------------- the user's interface


class Interface(HostCase):
    place = Frames.place

    def test_surfaces(self):
        field = {"key": "k", "kind": "input"}
        good = [("status", {"label": "Ready", "progress": 7}), ("card", {}), ("card", {"fields": [{"key": "a", "value": "b"}]}),
                ("form", {"fields": [field]}), ("notification", {"title": "T", "severity": "warn"})]
        bad = [("status", {}), ("status", {"label": " "}), ("status", {"label": "x", "severity": "bad"}), ("card", {"html": "x"}),
               ("card", None), ("card", "x"), ("card", {"actions": [{"actionId": "a"}]}), ("form", {}), ("panel", {}),
               ("form", {"fields": [{**field, "kind": "x"}]}), ("notification", {"title": "T", "url": "x"}), ("confirm", {"fields": []})]
        with Stage() as stage:
            one, two = stage.begin(stage.plugin("one"), stage.plugin("two", capabilities=["providers"]))
            place = self.place(stage, one)
            surface = {"surfaceId": "s", **place}
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
            surface = {"surfaceId": "s", **self.place(stage, one)}
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
            before = Frames.place(self, stage, one)
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
            after = Frames.place(self, stage, again["two"])
            self.assertEqual(after["generation"], 2)

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
        sys.path.insert(0, HERE)
        sys.dont_write_bytecode = True
        from host_contract import redacted
        for secret in ("https://me:hunter2x@example.org", "Cookie: a=hunter2x; b=hunter2x", 'api_key="hunter2x"', "password = hunter2x",
                       "Authorization: Basic hunter2x", "MY_SECRET_TOKEN=hunter2x", "db_pwd: hunter2x", f"Bearer hunter2x{'a' * 16}",
                       "the api key: hunter2xhunter2x", "sk-hunter2xhunter2x", "ghp_hunter2xhunter2xhunter2", "xoxb-1-hunter2xhunter2x",
                       "AKIAHUNTER2XHUNTER2X", "eyJhunter2x.hunter2x.hunter2x", f"github_pat_hunter2x{'a' * 20}"):
            self.assertIsNone(re.search("(?i)hunter2x", redacted(f"before {secret}\nafter")), secret)
        for plain in ("a plain text: with words, and 17 numbers", "https://example.org/a?b=c", "the secret of it", "task-forces"):
            self.assertEqual(redacted(plain), plain)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as-guest"]:
        relay(sys.argv[2])
    unittest.main()
