"""The guest's side of the Reasonix Extension Protocol, v1 and v2: everything but what the guest is for.

One JSON-RPC frame per line on stdin and stdout, one thread, one loop; an intercept is a task of its own,
so that others are served while it waits. `serve` is all that a guest calls.
"""
import asyncio
import base64
import hashlib
import json
import os
import re
import sys

# ---- limits and errors ----

FRAME_BYTES = OBJECT_BYTES = 8 * 1024 * 1024  # the LF of a frame counts
PAGE_BYTES = 256 * 1024
MAX_NESTING = 10_000
REASONS = {  # the code of each, and whether a retry may help
    "protocol_error": (-32600, False), "unknown_method": (-32601, False), "invalid_params": (-32602, False),
    "internal": (-32603, True), "unsupported_version": (-32000, False), "intercept_timeout": (-32000, True),
    "content_ref_expired": (-32000, True), "frame_too_large": (-32000, False),
}


class Refusal(Exception):
    def __init__(self, reason, message, fatal=False):
        super().__init__(message)
        self.reason, self.fatal = reason, fatal


# ---- text to JSON ----


class Integer(int):
    """It remembers how it was written: an id goes back to the last digit, even if it is -0."""

    def __new__(cls, text):
        number = super().__new__(cls, text[:22])  # beyond 64 bits already, and quickly read
        number.text = text
        return number


def no_constant(name):
    raise ValueError(f"{name} is not JSON")


quick, deep = (json.JSONDecoder(parse_int=Integer, parse_constant=no_constant) for _ in range(2))
deep.scan_once = json.scanner.py_make_scanner(deep)  # since Python 3.12 the quick one has its own limit


def parse(data):
    """Exactly one JSON document, or ValueError. What is no UTF-8 becomes U+FFFD."""
    source = data.decode("utf-8", "replace").strip(" \t\r\n")
    if source.count("[") + source.count("{") > MAX_NESTING:
        depth = 0
        for bracket in re.findall(r"[][{}]", re.sub(r'"[^"]*"', "", re.sub(r"\\.", "", source, flags=re.S))):
            depth += 1 if bracket in "[{" else -1
            if depth > MAX_NESTING:
                raise ValueError("nested too deeply")
    try:
        value, end = quick.raw_decode(source)
    except RecursionError:
        value, end = deep.raw_decode(source)
    if end != len(source):
        raise ValueError("more than one document")
    return value


# ---- shapes: a member with ? is optional, one with ?? is also new in v2, and others are not allowed ----


def anything(_): return True
def boolean(value): return isinstance(value, bool)
def string(value): return isinstance(value, str)
def text(value): return isinstance(value, str) and value.strip() != ""
def at_least(least): return lambda value: isinstance(value, Integer) and least <= value < 2**64
def one_of(names): return lambda value: isinstance(value, str) and value in names.split()


capability = {"kind": text, "namespace": text, "id": text, "version?": string, "schemaHash?": string}
requirement = {**capability, "versionRange?": string, "optional?": boolean}
externalized = {"contentRef": text, "jsonPointer": text, "sha256": string, "totalBytes": at_least(0)}
page_shape = {
    "contentRef": text, "dataBase64": string, "encoding": one_of("utf8"), "sha256": string,
    "offset": at_least(0), "totalBytes": at_least(0), "nextOffset?": at_least(0)}
event = one_of("""session.start session.end session.load session.save session.rotate input.receive
    agent.before_start system_prompt.build context.prepare provider.request provider.response tool.before
    tool.after permission.decision compaction.prepare compaction.complete frontend.event""")
MANIFEST_LISTS = ("capabilities", "intercepts", "providers", "replaces", "uiActions")
SHAPES = {
    "extension/initialize": {
        "protocolId": text, "protocolVersion": text, "dependencySchemaVersion??": at_least(0),
        "session": {"generation": at_least(-(2**63)), "sessionId": text, "workspaceRoot": text,
                    "epoch??": string},
        "manifest": {**{f"{name}?": [string] for name in MANIFEST_LISTS}, "provides??": [capability],
                     "requires??": [requirement]},
        "capabilities": {"contentRefs": boolean, "protocolVersion": text,
                         "dependencySchemaVersion??": at_least(0),
                         "uiHost": one_of("acp desktop headless tui")}},
    "extension/shutdown": {"timeoutMillis": at_least(0)},
    "extension/intercept": {"event": event, "payload": anything, "seq": at_least(1),
                            "timeoutMillis": at_least(0), "externalized?": [externalized]},
    "extension/provider/stream/cancel": {"streamId": text},
}


def fits(value, shape, major=1):
    if callable(shape):
        return shape(value)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0], major) for item in value)
    known = {name.rstrip("?"): shape[name] for name in shape if major > 1 or not name.endswith("??")}
    return (isinstance(value, dict) and all(name in value for name in shape if not name.endswith("?"))
            and all(name in known and fits(member, known[name], major) for name, member in value.items()))


def well_formed(frame):
    ident = frame.get("id")
    known_id = ident is None or isinstance(ident, Integer)
    if frame.get("jsonrpc") != "2.0":
        return False
    if "method" in frame:
        named = string(frame["method"]) and frame["method"] != ""
        request = "result" not in frame and "error" not in frame
        params_fit = "id" not in frame or isinstance(frame.get("params", {}), dict)
        return known_id and named and request and params_fit
    error = frame.get("error", {"code": Integer("0"), "message": ""})
    return ("id" in frame and (known_id or string(ident)) and "params" not in frame
            and ("result" in frame) != ("error" in frame) and isinstance(error, dict)
            and isinstance(error.get("code"), Integer) and string(error.get("message")))


# ---- the connection ----


class Sidecar:
    def __init__(self, name, version, interceptors):
        self.name, self.version, self.interceptors = name, version, interceptors
        self.state, self.major, self.last_id = "new", 2, 0
        self.asked = {}  # futures, by the id of our request
        self.intercepts = set()  # those at work
        self.handlers = {  # what the manifest does not declare is unknown here
            "extension/initialize": self.initialize, "extension/shutdown": self.shutdown,
            "extension/intercept": self.intercept,
            "extension/provider/stream/cancel": lambda _: {"cancelled": False},
        }

    async def run(self):
        loop, line = asyncio.get_running_loop(), b"\n"
        while line.endswith(b"\n"):  # a last line without LF is served as well
            line = await loop.run_in_executor(None, sys.stdin.buffer.readline, FRAME_BYTES + 1)
            if len(line) > FRAME_BYTES:
                raise Refusal("frame_too_large", "a frame above the limit", fatal=True)
            if line.strip(b" \t\r\n"):
                await self.receive(line)

    async def receive(self, line):
        try:
            frame = parse(line)
        except ValueError:
            return self.write("null", error={"code": -32700, "message": "parse error"})
        frame = frame if isinstance(frame, dict) else {}  # a batch is no frame either
        ident = getattr(frame.get("id"), "text", "null")
        if not well_formed(frame):
            self.write(ident, error={"code": -32600, "message": "invalid frame"})
        elif "method" not in frame:
            asked = self.asked.pop(ident, None)
            if asked and not asked.done():  # late and unasked answers go unnoticed
                asked.set_result(frame)
        elif "id" in frame:
            await self.serve(ident, frame["method"], frame.get("params", {}))
        elif frame["method"] == "extension/initialized" and self.state == "greeted":
            self.state = "ready"

    async def serve(self, ident, method, params):
        try:
            first = self.state == "new" and method == "extension/initialize"
            last = self.state != "closing" and method == "extension/shutdown"
            if self.state != "ready" and not first and not last:
                raise Refusal("protocol_error", f"not while the connection is {self.state}")
            if method not in self.handlers:
                raise Refusal("unknown_method", "no such method here")
            if first:  # which shapes hold is said in the params
                self.major = 1 if params.get("protocolId") == "reasonix.extension.v1" else 2
            if not fits(params, SHAPES[method], self.major):
                raise Refusal("invalid_params", "the params do not fit the method")
            result = self.handlers[method](params)
            if not asyncio.iscoroutine(result):
                return self.write(ident, result=result)
            work = asyncio.ensure_future(self.finish(ident, result))  # others are served meanwhile
            self.intercepts.add(work)
            work.add_done_callback(self.intercepts.discard)
            if last:
                await work
        except Refusal as refusal:
            self.fail(ident, refusal)

    async def finish(self, ident, work):
        try:
            self.write(ident, result=await work)
        except asyncio.CancelledError:
            self.fail(ident, Refusal("protocol_error", "the connection is closing"))
        except Exception as error:
            self.fail(ident, error)

    def write(self, ident, **members):
        """One frame, or nothing of it."""
        rest = json.dumps(members, separators=(",", ":"))[1:]  # ASCII, whatever is in it
        frame = f'{{"jsonrpc":"2.0","id":{ident},{rest}\n'.encode()
        if len(frame) > FRAME_BYTES:
            error = {"code": -32603, "message": "response exceeds frame size limit"}
            return self.write(ident, error=error)
        sys.stdout.buffer.write(frame)
        sys.stdout.buffer.flush()

    def fail(self, ident, error):
        if not isinstance(error, Refusal):  # a fault of ours: details stay on this side
            print(f"{self.name}: {type(error).__name__}: {error}", file=sys.stderr)
            error = Refusal("internal", "the sidecar failed")
        code, retryable = REASONS[error.reason]
        data = {"reason": error.reason, "retryable": retryable}
        self.write(ident, error={"code": code, "message": str(error), "data": data})
        if error.fatal:
            raise error

    def initialize(self, params):
        if self.state != "new":
            raise Refusal("protocol_error", "initialized already")
        version = params["protocolVersion"]
        if not (version.isascii() and version.isdigit()):
            raise Refusal("protocol_error", "a protocol version is a number", fatal=True)
        if (params["protocolId"], version) != (f"reasonix.extension.v{self.major}", str(self.major)):
            raise Refusal("unsupported_version", "this version is not spoken here", fatal=True)
        self.state = "greeted"
        allowed = params["manifest"].get("intercepts", [])  # to declare more would end the handshake
        subscriptions = [name for name in self.interceptors if name in allowed]
        return {"name": self.name, "version": self.version, "protocolVersion": version,
                "stateSchemaVersion": 0, "subscriptions": subscriptions, "replaces": []}

    async def shutdown(self, _):
        self.state = "closing"
        others = self.intercepts - {asyncio.current_task()}
        for work in others:
            work.cancel()
        await asyncio.gather(*others)
        return {"accepted": True}

    async def intercept(self, params):
        seconds = params["timeoutMillis"] / 1000 or 30
        try:  # the answer has to be there in time, not to leave in time
            return await asyncio.wait_for(self.rule(params), seconds - min(seconds / 4, 0.1))
        except asyncio.TimeoutError:
            raise Refusal("intercept_timeout", "the time ran out") from None

    async def rule(self, params):
        payload = params["payload"]
        if params.get("externalized"):
            payload = await self.fetch(params["externalized"], payload)
        interceptor = self.interceptors.get(params["event"])
        return interceptor and await interceptor(payload) or {"decision": "continue"}

    async def ask(self, method, params):
        """A request of ours, and the result of it."""
        self.last_id += 1
        ident = str(self.last_id)
        self.asked[ident] = asyncio.get_running_loop().create_future()
        self.write(ident, method=method, params=params)
        try:
            answer = await self.asked[ident]
        finally:
            self.asked.pop(ident, None)
        if "result" in answer:
            return answer["result"]
        data = answer["error"].get("data")
        known = data if isinstance(data, dict) else {}  # there may be more in it
        expired = known.get("reason") == "content_ref_expired" and known.get("retryable") is True
        raise Refusal("content_ref_expired" if expired else "internal", "the host refused a request")

    async def fetch(self, fields, inline):
        """A payload that the host moved out of the frame, read page by page."""
        field = fields[0]
        if inline is not None or len(fields) != 1 or field["jsonPointer"] != "/payload":
            raise Refusal("protocol_error", "an externalized payload needs null and one descriptor")
        if field["totalBytes"] > OBJECT_BYTES:
            raise Refusal("frame_too_large", "the content is above the limit")
        asked = {name: field[name] for name in ("contentRef", "sha256", "totalBytes")}
        body, page = b"", {"nextOffset": 0}
        try:
            while "nextOffset" in page:
                start = len(body)
                wanted = {"contentRef": field["contentRef"], "offset": start}
                page = await self.ask("host/content/read", wanted)
                if not fits(page, page_shape) or {**page, **asked, "offset": start} != page:
                    raise ValueError("not the page that was asked for")
                body += base64.b64decode(page["dataBase64"], validate=True)
                leads_on = start < len(body) == page.get("nextOffset") or "nextOffset" not in page
                if not leads_on or len(body) - start > PAGE_BYTES or len(body) > field["totalBytes"]:
                    raise ValueError("the pages do not lead on")
            if len(body) != field["totalBytes"] or hashlib.sha256(body).hexdigest() != field["sha256"]:
                raise ValueError("the content is not what its descriptor says")
            return parse(body)
        except ValueError as error:
            raise Refusal("protocol_error", str(error)) from None


def serve(name, version, interceptors):
    """Serve until stdin ends; `interceptors` has a coroutine function for each event."""
    async def run():
        code = 0
        try:
            await Sidecar(name, version, interceptors).run()
        except (Refusal, OSError) as end:
            print(f"{name}: {end}", file=sys.stderr, flush=True)
            code = 1
        os._exit(code)  # at once, whatever is still going on

    sys.setrecursionlimit(3 * MAX_NESTING)  # the parser recurses as deep as a frame may nest
    asyncio.run(run())
