"""Where host.py is tested: the two pipes of its shim, and the plugins that it starts.

A plugin here is a relay (host_relay.py), which shows the test every line of the host's, and does what the test says.
So a test is both ends, and reads what was really written. Every line of the shim is held against its schema and every
frame of the host's against the contract. Nothing sleeps, and every wait is bounded.
"""
import json
import os
import queue
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
        self.told, self.asked, self.shown, self.found, self.guests, self.links = queue.Queue(), 0, [], [], {}, []
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
        for link in self.links:
            link.close()
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
        argv = ["-I", "-S", os.path.join(HERE, "host_relay.py"), os.path.join(self.folder, "s")]
        return {"name": name, "enabled": True, "manifest": {
            "apiVersion": f"reasonix.io/plugin/v{self.major}", "name": name, "version": "0.1",
            "runtime": {"command": sys.executable, "args": argv, "capabilities": ALL, **runtime}, **dict(manifest)}}

    def guest(self):
        guest = Guest(self.listener.accept()[0], self.major)
        self.guests[guest.name] = guest
        self.links.append(guest.link)
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


def place(stage, guest):
    """What a UI frame repeats, as an action tells it."""
    ask = stage.ask("action", plugin=guest.name, action="demo")
    frame = guest.read("extension/ui/action")
    guest.answer(frame, {"accepted": True})
    assert stage.outcome(ask) == {"done": True}
    return {name: frame["params"][name] for name in ("sessionId", "generation")}


class HostCase(unittest.TestCase):
    def fails(self, outcome, reason=None, says=""):
        self.assertIn("failed", outcome)
        self.assertEqual(outcome.get("reason"), reason, outcome)
        self.assertIn(says, outcome["failed"])

    def refuses(self, frame, code, reason=None, ident=7):
        self.assertEqual((frame["id"], frame["error"]["code"]), (ident, code), frame)
        self.assertEqual((frame["error"].get("data") or {}).get("reason"), reason, frame)
