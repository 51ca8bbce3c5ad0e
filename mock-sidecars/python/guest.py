#!/usr/bin/env python3
"""A small, strict guest (sidecar) for the Reasonix Extension Protocol, v1 and v2.

Run it the way a host would:

    python3 -I -S guest.py [--protocol v1|v2]

The host writes one JSON-RPC frame per line to stdin and reads frames from stdout. Without the
flag the guest speaks whichever of the two majors `extension/initialize` offers.

It has one thread and one loop. A request is served by a plain method that returns the result, or
by a generator when the guest has to ask the host something first: `page = yield (method, params)`
sends a request of its own and is resumed with the answer, and everything else is served in
between. Top to bottom: limits and errors, text to JSON, the shapes of params, bytes to lines,
content pages, the guest, and the test provocations it understands.

Only the standard library; stdout carries frames and nothing else.
"""
from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import select
import sys
import time
from types import GeneratorType
from typing import Any, Callable, Dict, FrozenSet, Generator, Iterator, List, NoReturn, Optional, Tuple

FRAME_BYTES = 8 * 1024 * 1024  # one frame, its LF included, in either direction
OBJECT_BYTES = 8 * 1024 * 1024  # one content object
PAGE_BYTES = 256 * 1024  # one page of it
READ_BYTES = 64 * 1024  # a pipe seldom holds more
MAX_NESTING = 10_000  # levels of arrays and objects in one frame
MAX_TASKS = 32  # requests that wait for something at the same time

PROTOCOLS = {"reasonix.extension.v1": 1, "reasonix.extension.v2": 2}
NAME = os.environ.get("REASONIX_PLUGIN_NAME", "").strip() or "sidecert-guest"
PROVIDER = {"ref": f"plugin/{NAME}/sample/echo", "displayName": "Echo", "contextWindow": 8192}
UI_ACTION = {"actionId": "demo", "label": "Demo"}

EVENTS = """
    session.start session.end session.load session.save session.rotate input.receive
    agent.before_start system_prompt.build context.prepare provider.request provider.response
    tool.before tool.after permission.decision compaction.prepare compaction.complete frontend.event
"""

# ------------------------------------------------------------------------------------- errors

# reason -> (JSON-RPC code, whether a retry may help). The second half exists in v2 only; it is
# here because an error of the host is passed on only when its reason is known.
REASONS: Dict[str, Tuple[int, bool]] = {
    "protocol_error": (-32600, False), "unknown_method": (-32601, False),
    "invalid_params": (-32602, False), "internal": (-32603, True),
    "capability_not_declared": (-32000, False), "content_ref_expired": (-32000, True),
    "frame_too_large": (-32000, False), "intercept_timeout": (-32000, True),
    "provider_failed": (-32000, True), "provider_interrupted": (-32000, True),
    "shutdown_timeout": (-32000, True), "stream_cancelled": (-32000, False),
    "stream_gap": (-32000, True), "unsupported_version": (-32000, False),
    "activation_failed": (-32000, False), "cleanup_failed": (-32000, True),
    "dependency_cycle": (-32000, False), "dependency_unsatisfied": (-32000, False),
    "schema_mismatch": (-32000, False), "stale_generation": (-32000, False),
}


class WireError(Exception):
    """An error with one of the frozen reasons; the answer to the request being served."""

    def __init__(self, reason: str, message: str, fatal: bool = False) -> None:
        super().__init__(message)
        self.reason, self.message, self.fatal = reason, message, fatal


class ConnectionEnd(Exception):
    """The peer broke a rule after which nothing it says can be trusted."""


def diagnose(message: str) -> None:
    """A line for whoever reads stderr. Not print(): without a stderr it would take stdout."""
    try:
        os.write(2, f"guest: {message}\n".encode("utf-8", "replace"))
    except OSError:
        pass


# -------------------------------------------------------------------------------- text to JSON


class Verbatim(int):
    """An integer token that int() would not give back as it was written: `-0`, or a huge one.

    An id is echoed as text, so the text is kept. The number only has to be right within 64 bits,
    and a prefix of 22 characters already lies outside: no long conversion at a stranger's wish.
    """

    text: str

    def __new__(cls, text: str) -> "Verbatim":
        number = super().__new__(cls, text[:22])
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text


def read_integer(text: str) -> int:
    return int(text) if len(text) < 19 and text != "-0" else Verbatim(text)


def no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")  # Python would take NaN and Infinity


raw_decode = json.JSONDecoder(parse_int=read_integer, parse_constant=no_constant).raw_decode
dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


# Answers that never change are encoded once. No result of the protocol is a bare string, so a
# handler that returns one has encoded it already.
CONTINUE = dumps({"decision": "continue"})
ACCEPTED = dumps({"accepted": True})
CANCELLED, NOT_CANCELLED = dumps({"cancelled": True}), dumps({"cancelled": False})


def nesting(text: str) -> int:
    """How deep arrays and objects nest, without recursion."""
    bare = re.sub(r'"[^"]*"', "", re.sub(r"\\.", "", text, flags=re.S))
    depth = deepest = 0
    for mark in re.finditer(r"[\[{]|[\]}]", bare):
        depth += 1 if mark.group() in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def parse(data: bytes) -> Any:
    """Exactly one JSON document, or ValueError. Bytes that are no UTF-8 become U+FFFD."""
    text = data.decode("utf-8", "replace")
    if len(text) > MAX_NESTING and text.count("[") + text.count("{") > MAX_NESTING:
        if nesting(text) > MAX_NESTING:
            raise ValueError("nested too deeply")
    try:
        value, end = raw_decode(text)
    except RecursionError:  # some interpreters have a lower ceiling of their own
        raise ValueError("nested too deeply") from None
    if end != len(text) and text[end:].strip(" \t\r\n"):
        raise ValueError("more than one document")
    return value


# ----------------------------------------------------------------------- the shapes of params

# Every object of the protocol that reaches a guest. A line is a name and its members; `?` marks
# an optional member, `??` one that only v2 has; a capital names another line. All are closed.
SCHEMA = """
extension/initialize              protocolId:text protocolVersion:text manifest:Manifest session:Session
                                  capabilities:Host dependencySchemaVersion??natural
extension/shutdown                timeoutMillis:natural
extension/intercept               event:event payload:any seq:count timeoutMillis:natural
                                  externalized?[Descriptor]
extension/provider/catalog
extension/provider/stream/open    providerRef:text request:Request seqBase:natural streamId:text
                                  effort?string model?string epoch??string generation??integer
extension/provider/stream/cancel  streamId:text
extension/ui/action               actionId:text generation:integer sessionId:text args?{string}
extension/ui/submit               generation:integer sessionId:text surfaceId:text values:{any}
Manifest     capabilities?[string] intercepts?[string] providers?[string] replaces?[string]
             uiActions?[string] provides??[Capability] requires??[Requirement]
Capability   kind:text namespace:text id:text version?string schemaHash?string
Requirement  kind:text namespace:text id:text version?string schemaHash?string versionRange?string
             optional?bool
Session      generation:integer sessionId:text workspaceRoot:text epoch??string
Host         contentRefs:bool protocolVersion:text uiHost:uiHost dependencySchemaVersion??natural
Request      maxTokens:natural messages:[Message] tools:[Tool] responseFormat?Format temperature?number
Message      role?role content?string name?string images?[string] reasoning_content?string
             reasoning_signature?string tool_call_id?string tool_calls?[ToolCall]
ToolCall     arguments:string id:text name:text thought_signature?string
Tool         name:text parameters:any description?string
Format       type:text
Descriptor   contentRef:text jsonPointer:text sha256:string totalBytes:natural
Page         contentRef:text dataBase64:string encoding:encoding offset:natural sha256:string
             totalBytes:natural nextOffset?natural
"""

Shape = Callable[[Any], bool]  # whether a value is what the protocol says


def is_integer(value: Any) -> bool:
    return type(value) is int or type(value) is Verbatim  # a bool is neither


def integer(minimum: int) -> Shape:
    return lambda value: is_integer(value) and minimum <= value < 1 << 64


def one_of(names: str) -> Shape:
    known = frozenset(names.split())
    return lambda value: type(value) is str and value in known


SCALARS: Dict[str, Shape] = {
    "any": lambda value: True,
    "bool": lambda value: type(value) is bool,
    "string": lambda value: type(value) is str,
    "text": lambda value: type(value) is str and value != "" and not value.isspace(),
    "number": lambda value: type(value) is float or is_integer(value),
    "integer": integer(-(1 << 63)), "natural": integer(0), "count": integer(1),
    "event": one_of(EVENTS), "encoding": one_of("utf8"),
    "role": one_of("assistant system tool user"), "uiHost": one_of("acp desktop headless tui"),
}


def compile_schema(major: int) -> Dict[str, Shape]:
    shapes = dict(SCALARS)

    def shape_of(kind: str) -> Shape:
        if kind[0] == "[":
            item = shape_of(kind[1:-1])
            return lambda value: type(value) is list and all(map(item, value))
        if kind[0] == "{":
            item = shape_of(kind[1:-1])
            return lambda value: type(value) is dict and all(map(item, value.values()))
        return shapes[kind]

    def record(members: Dict[str, Shape], needed: FrozenSet[str]) -> Shape:
        def check(value: Any) -> bool:
            if type(value) is not dict or not needed <= value.keys():
                return False
            for name, member in value.items():
                if name not in members or not members[name](member):
                    return False
            return True
        return check

    lines = re.sub(r"\n +", " ", SCHEMA).strip().split("\n")
    for line in reversed(lines):  # whatever a line names stands below it
        name, *fields = line.split()
        parts = [re.fullmatch(r"(\w+)(:|\?\??)(.+)", field).groups() for field in fields]
        members = {member: shape_of(kind) for member, mark, kind in parts if mark != "??" or major > 1}
        shapes[name] = record(members, frozenset(member for member, mark, _ in parts if mark == ":"))
    return shapes


SHAPES = {major: compile_schema(major) for major in PROTOCOLS.values()}
PAGE = SHAPES[1]["Page"]

# ------------------------------------------------------------------------------ bytes to lines


class LineReader:
    """Cuts what arrives into lines, however it was split on the way, and enforces the limit."""

    def __init__(self) -> None:
        self.tail = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            if self.tail:
                line, self.tail = bytes(self.tail) + line, bytearray()
            if len(line) >= FRAME_BYTES:  # its LF counts as well
                raise ConnectionEnd("frame too large")
            yield line
        self.tail += rest
        if len(self.tail) > FRAME_BYTES:  # do not wait for an LF that may never come
            raise ConnectionEnd("frame too large")


# ------------------------------------------------------------------------------- content pages

# What a generator yields (a request to the host, or None to wait for its budget to run out),
# what it is sent (the result), and what it returns (the result of the request it serves).
Call = Optional[Tuple[str, Dict[str, Any]]]
Routine = Generator[Call, Any, Any]


def fetch(fields: List[Dict[str, Any]], inline: Any) -> Routine:
    """Read a payload that the host moved out of the frame, page by page, trusting nothing."""
    if inline is not None or len(fields) != 1 or fields[0]["jsonPointer"] != "/payload":
        raise WireError("protocol_error", "an externalized payload needs null and one descriptor")
    field = fields[0]
    if field["totalBytes"] > OBJECT_BYTES:
        raise WireError("frame_too_large", "the content object is above the limit")
    body, more = bytearray(), True
    while more:
        page = yield ("host/content/read", {"contentRef": field["contentRef"], "offset": len(body)})
        body += page_bytes(page, field, len(body))
        more = "nextOffset" in page
    if len(body) != field["totalBytes"] or hashlib.sha256(body).hexdigest() != field["sha256"]:
        raise WireError("protocol_error", "the content does not match its descriptor")
    try:
        return parse(body)
    except ValueError:
        raise WireError("protocol_error", "the content is not JSON") from None


def page_bytes(page: Any, field: Dict[str, Any], offset: int) -> bytes:
    """The bytes of one page; it must be the one asked for, and must lead on or be the last."""
    repeated = {**{name: field[name] for name in ("contentRef", "sha256", "totalBytes")}, "offset": offset}
    if not PAGE(page) or any(page[name] != value for name, value in repeated.items()):
        raise WireError("protocol_error", "not the page that was asked for")
    try:
        data = base64.b64decode(page["dataBase64"], validate=True)
    except ValueError:
        raise WireError("protocol_error", "the page is not base64") from None
    end = offset + len(data)
    if len(data) > PAGE_BYTES or end > field["totalBytes"]:
        raise WireError("protocol_error", "the page is out of bounds")
    if "nextOffset" in page and (page["nextOffset"] != end or not data):
        raise WireError("protocol_error", "the pages do not lead on")  # nor may they loop
    return data


# ----------------------------------------------------------------------------------- the guest


class Task:
    """A request that is being served by a generator, until `deadline`."""

    __slots__ = ("ident", "routine", "deadline")

    def __init__(self, ident: str, routine: Routine, deadline: float) -> None:
        self.ident, self.routine, self.deadline = ident, routine, deadline


class Stream:
    """A running provider stream: the chunks to come, and how many are out."""

    __slots__ = ("chunks", "seq", "stamp", "held")

    def __init__(self, chunks: Iterator[Optional[Dict[str, Any]]], stamp: Dict[str, Any]) -> None:
        self.chunks, self.stamp, self.seq, self.held = chunks, stamp, 0, False


NEW, GREETED, READY, CLOSING = "new", "greeted", "ready", "closing"
SERVED = {  # by state; a ready guest serves all it knows
    NEW: ("extension/initialize", "extension/shutdown"), GREETED: ("extension/shutdown",), CLOSING: ()}


class Guest:
    def __init__(self, protocols: Dict[str, int]) -> None:
        self.protocols = protocols
        self.state = NEW
        self.shapes = SHAPES[max(protocols.values())]
        self.has_provider = False
        self.streams: Dict[str, Stream] = {}
        self.tasks: Dict[int, Task] = {}  # by the id of the request each one waits for
        self.last_call = 0
        self.handlers: Dict[str, Callable[[Dict[str, Any]], Any]] = {
            "extension/initialize": self.initialize,
            "extension/shutdown": self.shutdown,
            "extension/intercept": self.intercept,
            "extension/provider/catalog": self.catalog,
            "extension/provider/stream/open": self.stream_open,
            "extension/provider/stream/cancel": self.stream_cancel,
            "extension/ui/action": self.ui_action,
            "extension/ui/submit": self.ui_submit,
        }

    # -- the loop

    def run(self) -> int:
        """Serve until stdin ends. Returns the exit code of the process."""
        reader = LineReader()
        try:
            while True:
                if not self.tasks and not self.streams or self.input_waits():
                    chunk = os.read(0, READ_BYTES)
                    for line in reader.feed(chunk):
                        self.receive(line)
                    if not chunk:  # a last line without LF still counts
                        self.receive(bytes(reader.tail))
                        return 0
                self.advance()
        except (ConnectionEnd, OSError) as end:
            diagnose(f"connection ended: {end}")
            return 1

    def input_waits(self) -> bool:
        """Wait for input, but not longer than the guest's own work can wait."""
        patience: Optional[float] = None
        if any(not stream.held for stream in self.streams.values()):
            patience = 0
        elif self.tasks:
            nearest = min(task.deadline for task in self.tasks.values()) - time.monotonic()
            patience = max(0.0, min(nearest, 3600.0))
        return bool(select.select([0], [], [], patience)[0])

    def advance(self) -> None:
        """One chunk of each stream, and an end to whatever ran out of time.

        Chunks go out between two reads, so that a cancel is seen while its stream still runs.
        """
        for stream_id, stream in list(self.streams.items()):
            if not stream.held:
                self.step(stream_id, stream)
        now = time.monotonic() if self.tasks else 0.0
        for call, task in list(self.tasks.items()):
            if task.deadline <= now:
                del self.tasks[call]
                task.routine.close()
                self.fail(task.ident, WireError("intercept_timeout", "the budget ran out"))

    # -- frames in

    def receive(self, line: bytes) -> None:
        line = line.strip(b" \t\r\n")
        if not line:
            return
        try:
            frame = parse(line)
        except ValueError:
            return self.refuse("null", -32700, "parse error")
        if type(frame) is not dict:  # a batch, too: the protocol has none
            return self.refuse("null", -32600, "a frame is one object")
        ident, method = frame.get("id"), frame.get("method")
        is_request = "method" in frame
        if not self.well_typed(frame, is_request):
            return self.refuse("null", -32600, "a member of the frame has the wrong type")
        if not self.well_formed(frame, is_request):
            return self.refuse(str(ident) if is_integer(ident) else "null", -32600, "invalid frame")
        if not is_request:
            return self.resume(frame)
        params = frame.get("params", {})
        if "id" not in frame:
            return self.notified(method, params)
        ident = "null" if ident is None else str(ident)
        if type(params) is not dict:
            return self.refuse(ident, -32600, "params is an object")
        self.serve(ident, method, params)

    @staticmethod
    def well_typed(frame: Dict[str, Any], is_request: bool) -> bool:
        """With a member of the wrong type not even the id is to be trusted."""
        ident, method, error = frame.get("id"), frame.get("method"), frame.get("error")
        return (
            type(frame.get("jsonrpc", "")) is str
            # A response to an id that we never use is ignored, not refused.
            and (ident is None or is_integer(ident) or not is_request and type(ident) is str)
            and (method is None or type(method) is str)
            and (error is None or type(error) is dict and is_integer(error.get("code", 0))
                 and type(error.get("message", "")) is str)
        )

    @staticmethod
    def well_formed(frame: Dict[str, Any], is_request: bool) -> bool:
        if frame.get("jsonrpc") != "2.0":
            return False
        if is_request:
            return bool(frame["method"]) and "result" not in frame and "error" not in frame
        if "id" not in frame or "params" in frame or ("result" in frame) == ("error" in frame):
            return False
        error = frame.get("error", {"code": 0, "message": ""})
        return error is not None and "code" in error and "message" in error

    def notified(self, method: str, params: Any) -> None:
        """Notifications are never answered; events and changed resources need nothing done."""
        if method == "extension/initialized" and self.state == GREETED and params == {}:
            self.state = READY

    def serve(self, ident: str, method: str, params: Dict[str, Any]) -> None:
        try:
            if self.state is not READY:
                self.admit(method, params)
            handler = self.handlers.get(method)
            if handler is None:
                raise WireError("unknown_method", "no such method here")
            if not self.shapes[method](params):
                raise WireError("invalid_params", "the params do not fit the method")
            outcome = handler(params)
            if isinstance(outcome, GeneratorType):
                self.start(ident, outcome, params.get("timeoutMillis", 0))
            else:
                self.reply(ident, outcome)
        except Exception as error:
            self.fail(ident, error)

    def admit(self, method: str, params: Dict[str, Any]) -> None:
        if method not in SERVED[self.state]:
            raise WireError("protocol_error", f"not while the connection is {self.state}")
        if method == "extension/initialize":  # which schema applies is said in the params
            offered = params.get("protocolId")
            known = self.protocols.get(offered) if type(offered) is str else None
            self.shapes = SHAPES[known or max(self.protocols.values())]  # the newest forgives most

    # -- requests that wait for the host

    def start(self, ident: str, routine: Routine, budget_millis: int) -> None:
        if len(self.tasks) >= MAX_TASKS:
            return self.refuse(ident, -32099, "server busy")
        budget = budget_millis / 1000 if budget_millis else float("inf")
        self.proceed(Task(ident, routine, time.monotonic() + budget), routine.send, None)

    def proceed(self, task: Task, enter: Callable[[Any], Call], value: Any) -> None:
        """Run a task up to its next question, or to its end."""
        try:
            call = enter(value)
            self.last_call += 1
            if call is not None and not self.emit(self.request(*call)):
                raise WireError("frame_too_large", "the question would not fit into a frame")
            self.tasks[self.last_call] = task
        except StopIteration as done:
            self.reply(task.ident, done.value)
        except Exception as error:
            self.fail(task.ident, error)

    def request(self, method: str, params: Dict[str, Any]) -> str:
        return f'{{"jsonrpc":"2.0","id":{self.last_call},"method":"{method}","params":{dumps(params)}}}'

    def resume(self, frame: Dict[str, Any]) -> None:
        """Hand an answer to whoever waits for it; late and unasked ones go unnoticed."""
        ident = frame["id"]
        task = self.tasks.pop(ident, None) if type(ident) is int else None
        if task is None:
            return
        if "result" in frame:
            self.proceed(task, task.routine.send, frame["result"])
        else:
            self.proceed(task, task.routine.throw, self.host_error(frame["error"]))

    @staticmethod
    def host_error(error: Dict[str, Any]) -> WireError:
        """A reason counts only when we know it and it is told as we know it."""
        data = error.get("data")
        reason = data.get("reason") if type(data) is dict else None
        if type(reason) is str and reason in REASONS and data.get("retryable") is REASONS[reason][1]:
            return WireError(reason, "the host refused a request of this extension")
        return WireError("internal", "a request to the host failed")

    # -- frames out

    def emit(self, frame: str) -> bool:
        """Write one frame at once, unless it is too large: then write nothing.

        `replace` because a lone surrogate, legal in JSON, has no UTF-8.
        """
        data = (frame + "\n").encode("utf-8", "replace")
        if len(data) > FRAME_BYTES:
            return False
        sent = os.write(1, data)
        while sent < len(data):  # a signal may cut a long write short
            sent += os.write(1, memoryview(data)[sent:])
        return True

    def reply(self, ident: str, result: Any) -> None:
        encoded = result if type(result) is str else dumps(result)
        if not self.emit(f'{{"jsonrpc":"2.0","id":{ident},"result":{encoded}}}'):
            self.refuse(ident, -32603, "response exceeds frame size limit")

    def refuse(self, ident: str, code: int, message: str, data: Optional[Dict[str, Any]] = None) -> None:
        error = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self.emit(f'{{"jsonrpc":"2.0","id":{ident},"error":{dumps(error)}}}')

    def fail(self, ident: str, error: Exception) -> None:
        if isinstance(error, (ConnectionEnd, OSError)):  # the pipe itself broke
            raise error
        if not isinstance(error, WireError):  # a fault of ours: details stay on this side
            diagnose(f"{type(error).__name__}: {error}")
            error = WireError("internal", "the extension failed")
        code, retryable = REASONS[error.reason]
        self.refuse(ident, code, error.message, {"reason": error.reason, "retryable": retryable})
        if error.fatal:
            raise ConnectionEnd("no common protocol version")

    def notify(self, method: str, params: Dict[str, Any]) -> None:
        self.emit(f'{{"jsonrpc":"2.0","method":"{method}","params":{dumps(params)}}}')

    # -- lifecycle

    def initialize(self, params: Dict[str, Any]) -> Dict[str, Any]:
        if self.state != NEW:
            raise WireError("protocol_error", "initialized already")
        major, version = self.protocols.get(params["protocolId"]), params["protocolVersion"]
        if not (version.isascii() and version.isdigit()):
            raise WireError("protocol_error", "a protocol version is a number", fatal=True)
        if version != str(major):
            raise WireError("unsupported_version", "this version is not spoken here", fatal=True)
        self.state = GREETED
        manifest = params["manifest"]
        capabilities = manifest.get("capabilities", [])
        answer: Dict[str, Any] = {
            "name": NAME, "version": "1.0.0", "protocolVersion": version, "stateSchemaVersion": 0,
            # Never more than the manifest expects: the host would refuse the whole handshake.
            "subscriptions": [name for name in manifest.get("intercepts", []) if SCALARS["event"](name)],
            "replaces": [],
        }
        ref, action = PROVIDER["ref"], UI_ACTION["actionId"]  # a missing list sets no limit
        if "providers" in capabilities and ref in manifest.get("providers", [ref]):
            self.has_provider = True
            answer["providers"] = [PROVIDER]
        if "ui" in capabilities and action in manifest.get("uiActions", [action]):
            answer["uiActions"] = [UI_ACTION]
        if manifest.get("provides"):  # only a v2 manifest can have it
            key = ("kind", "namespace", "id")
            answer["provides"] = [{name: entry[name] for name in key} for entry in manifest["provides"]]
        return answer

    def shutdown(self, _: Dict[str, Any]) -> str:
        self.state = CLOSING
        self.streams.clear()
        for task in self.tasks.values():  # nobody would serve their pages any more
            task.routine.close()
            self.fail(task.ident, WireError("protocol_error", "the connection is closing"))
        self.tasks.clear()
        return ACCEPTED

    # -- interception

    def intercept(self, params: Dict[str, Any]) -> Any:
        if params.get("externalized"):
            return self.intercept_external(params)
        return self.rule(params["event"], params["payload"])

    def intercept_external(self, params: Dict[str, Any]) -> Routine:
        payload = yield from fetch(params["externalized"], params["payload"])
        ruling = self.rule(params["event"], payload)
        if isinstance(ruling, GeneratorType):
            ruling = yield from ruling
        return ruling

    def rule(self, event: str, payload: Any) -> Any:
        """This guest has no opinion, unless a test asks for one."""
        if event == "input.receive" and type(payload) is dict and type(payload.get("text")) is str:
            provoke = PROVOCATIONS.get(payload["text"])
            if provoke is not None:
                return provoke()
        return CONTINUE

    # -- the provider: it says what the user said

    def catalog(self, _: Dict[str, Any]) -> Dict[str, Any]:
        return {"providers": [PROVIDER] if self.has_provider else []}

    def stream_open(self, params: Dict[str, Any]) -> str:
        stream_id = params["streamId"]
        if not self.has_provider or params["providerRef"] != PROVIDER["ref"]:
            raise WireError("provider_failed", "no such provider here")
        if stream_id in self.streams:
            raise WireError("protocol_error", "this stream is running already")
        # In v2 a chunk names the generation it was asked by, so that a stale one can be told.
        stamp = {name: params[name] for name in ("generation", "epoch") if name in params}
        self.streams[stream_id] = Stream(echo(params["request"]["messages"]), stamp)
        return ACCEPTED

    def stream_cancel(self, params: Dict[str, Any]) -> str:
        stream = self.streams.pop(params["streamId"], None)
        if stream is None:
            return NOT_CANCELLED
        end = {"streamId": params["streamId"], "lastSeq": stream.seq, "interrupted": True}
        self.notify("extension/provider/stream/end", end)
        return CANCELLED

    def step(self, stream_id: str, stream: Stream) -> None:
        try:
            chunk = next(stream.chunks)
        except StopIteration:
            del self.streams[stream_id]
            self.notify("extension/provider/stream/end", {"streamId": stream_id, "lastSeq": stream.seq})
            return
        if chunk is None:
            stream.held = True
            return
        stream.seq += 1
        params = {"streamId": stream_id, "seq": stream.seq, "chunk": chunk, **stream.stamp}
        self.notify("extension/provider/stream/chunk", params)

    # -- UI

    def ui_action(self, params: Dict[str, Any]) -> Any:
        if params["actionId"] != UI_ACTION["actionId"]:
            return {"accepted": False, "message": "no such action here"}
        return ACCEPTED

    def ui_submit(self, _: Dict[str, Any]) -> str:
        return ACCEPTED


def echo(messages: List[Dict[str, Any]]) -> Iterator[Optional[Dict[str, Any]]]:
    """The chunks of a stream; None means that nothing follows until the host cancels."""
    said = next((m.get("content", "") for m in reversed(messages) if m.get("role") == "user"), "")
    said = said[:4096] or "(silence)"
    for start in range(0, len(said), 512):
        yield {"type": "text", "text": said[start:start + 512]}
    if said == "sidecert:hold":
        yield None
    kinds = ("cacheHit", "cacheMiss", "completion", "prompt", "reasoning", "total")
    usage = {f"{kind}Tokens": 0 for kind in kinds}
    yield {"type": "usage", "usage": {**usage, "finishReason": "stop"}}
    yield {"type": "done"}


# ------------------------------------------------------------------------------- provocations


def provoke_panic() -> NoReturn:
    raise RuntimeError("asked to fail")


def provoke_slow() -> Routine:
    yield None  # never resumed: the budget of the intercept ends it
    return CONTINUE


# A test puts one of these into the text of an `input.receive` payload.
PROVOCATIONS: Dict[str, Callable[[], Any]] = {
    "sidecert:large": lambda: {"decision": "replace", "replacement": {"text": "x" * (9 << 20)}},
    "sidecert:block": lambda: {"decision": "block", "reason": "asked to block"},
    "sidecert:panic": provoke_panic,
    "sidecert:slow": provoke_slow,
}


def main(arguments: List[str]) -> int:
    wanted = {(): (1, 2), ("--protocol", "v1"): (1,), ("--protocol", "v2"): (2,)}.get(tuple(arguments))
    if wanted is None:
        print("usage: guest.py [--protocol v1|v2]", file=sys.stderr)
        return 2
    sys.setrecursionlimit(MAX_NESTING + 1000)  # the parser recurses as deep as a frame may nest
    return Guest({name: major for name, major in PROTOCOLS.items() if major in wanted}).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
