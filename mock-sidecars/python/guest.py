#!/usr/bin/env python3
"""A small, strict guest (sidecar) for the Reasonix Extension Protocol, v1 and v2.

Run it the way a host would:

    python3 -I -S guest.py [--protocol v1|v2]

The host writes one JSON-RPC frame per line to stdin and reads frames from stdout. Without the
flag the guest speaks whichever of the two majors `extension/initialize` offers.

It has one thread and one loop. A request is served by a plain method that returns the result, or
by a generator when the guest has to ask the host something first: `yield [(method, params), ...]`
sends requests of its own and is resumed with all the answers, and everything else is served in
between. Top to bottom: limits and errors, text to JSON, the shapes of params, bytes to lines,
content pages, the guest, its provider, and the test provocations that it understands.

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
from typing import Any, Callable, Dict, FrozenSet, Generator, Iterator, List, NoReturn, Optional, Set, Tuple

FRAME_BYTES = 8 * 1024 * 1024  # one frame, its LF included, in either direction
OBJECT_BYTES = 8 * 1024 * 1024  # one content object
PAGE_BYTES = 256 * 1024  # one page of it
READ_BYTES = 64 * 1024  # a pipe seldom holds more
MAX_NESTING = 10_000  # levels of arrays and objects in one frame
MAX_TASKS = 32  # requests that wait for something at the same time
LONGEST_BUDGET = 30.0  # seconds that an intercept may take when it names no time of its own

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


def without_keys(text: str) -> str:
    """What is said of an error may hold a credential of the service that it came from."""
    return re.sub(r"\b(?:sk|rk)-[\w-]{8,}", "****", text)


def diagnose(message: str) -> None:
    """A line for whoever reads stderr. Not print(): without a stderr it would take stdout."""
    try:
        os.write(2, f"guest: {without_keys(message)}\n".encode("utf-8", "replace"))
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


def reader(**options: Any) -> Callable[[str, int], Tuple[Any, int]]:
    """Reads a value and says where it ends. The quick scanner of Python 3.12 and later gives up on deep
    nesting, whatever the recursion limit; the other one does not."""
    quick, deep = json.JSONDecoder(**options), json.JSONDecoder(**options)
    deep.scan_once = json.scanner.py_make_scanner(deep)

    def read(text: str, at: int) -> Tuple[Any, int]:
        try:
            return quick.raw_decode(text, at)
        except RecursionError:
            return deep.raw_decode(text, at)
    return read


raw_decode = reader(parse_int=read_integer, parse_constant=no_constant)
skip = reader(parse_int=len, parse_float=len)  # for where a value ends, and nothing else
dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


# Answers that never change are encoded once. No result of the protocol is a bare string, so a
# handler that returns one has encoded it already.
CONTINUE = dumps({"decision": "continue"})
ACCEPTED, NOT_ACCEPTED = dumps({"accepted": True}), dumps({"accepted": False})
CANCELLED, NOT_CANCELLED = dumps({"cancelled": True}), dumps({"cancelled": False})


def nesting(text: str) -> int:
    """How deep arrays and objects nest, without recursion."""
    bare = re.sub(r'"[^"]*"', "", re.sub(r"\\.", "", text, flags=re.S))
    depth = deepest = 0
    for mark in re.finditer(r"[\[{]|[\]}]", bare):
        depth += 1 if mark.group() in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def parse(data: bytes) -> Tuple[str, Any]:
    """Exactly one JSON document, as text and as value, or ValueError. What is no UTF-8 becomes U+FFFD."""
    text = data.decode("utf-8", "replace")
    if len(text) > MAX_NESTING and text.count("[") + text.count("{") > MAX_NESTING:
        if nesting(text) > MAX_NESTING:
            raise ValueError("nested too deeply")
    value, end = raw_decode(text, 0)
    if end != len(text) and text[end:].strip(" \t\r\n"):
        raise ValueError("more than one document")
    return text, value


SPACE = re.compile(r"[ \t\r\n]*").match


def written(text: str, *path: str) -> str:
    """A value inside of an object, as it was written: no digit and no escape of it changes.

    The text has been parsed, and has these members; of those with the same name the last one counts.
    """
    for wanted in path:
        at, found = SPACE(text).end() + 1, ""
        while text[at - 1] != "}":
            name, at = skip(text, SPACE(text, at).end())
            start = SPACE(text, SPACE(text, at).end() + 1).end()  # behind the colon
            _, end = skip(text, start)
            found = text[start:end] if name == wanted else found
            at = SPACE(text, end).end() + 1  # behind the comma, or the brace
        text = found
    return text


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

# What a generator yields (requests to the host; none: it waits for its budget to run out), what it
# is sent (the answers to them), and what it returns (the result of the request that it serves).
Calls = List[Tuple[str, Dict[str, Any]]]
Routine = Generator[Calls, List[Dict[str, Any]], Any]


def ask(method: str, params: Dict[str, Any]) -> Routine:
    """One request to the host, and its result. A reason counts only if it is told as we know it."""
    answer, = yield [(method, params)]
    if "result" in answer:
        return answer["result"]
    data = answer["error"].get("data")
    reason = data.get("reason") if type(data) is dict else None
    if type(reason) is str and reason in REASONS and data.get("retryable") is REASONS[reason][1]:
        raise WireError(reason, "the host refused a request of this extension")
    raise WireError("internal", "a request to the host failed")


def fetch(fields: List[Dict[str, Any]], inline: Any) -> Routine:
    """Read a payload that the host moved out of the frame, page by page, trusting nothing."""
    if inline is not None or len(fields) != 1 or fields[0]["jsonPointer"] != "/payload":
        raise WireError("protocol_error", "an externalized payload needs null and one descriptor")
    field = fields[0]
    if field["totalBytes"] > OBJECT_BYTES:
        raise WireError("frame_too_large", "the content object is above the limit")
    body, more = bytearray(), True
    while more:
        page = yield from ask("host/content/read", {"contentRef": field["contentRef"], "offset": len(body)})
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

    __slots__ = ("ident", "routine", "deadline", "answers")

    def __init__(self, ident: str, routine: Routine, deadline: float) -> None:
        self.ident, self.routine, self.deadline = ident, routine, deadline
        self.answers: Dict[int, Optional[Dict[str, Any]]] = {}  # by the id of what it asked


class Stream:
    """A running provider stream: the chunks to come, and how many are out."""

    __slots__ = ("chunks", "seq", "stamp")

    def __init__(self, chunks: Iterator[Dict[str, Any]], stamp: Dict[str, Any]) -> None:
        self.chunks, self.stamp, self.seq = chunks, stamp, 0


NEW, GREETED, READY, CLOSING = "new", "greeted", "ready", "closing"
SERVED = {  # by state; a ready guest serves all it knows
    NEW: ("extension/initialize", "extension/shutdown"), GREETED: ("extension/shutdown",), CLOSING: ()}


class Guest:
    def __init__(self, protocols: Dict[str, int]) -> None:
        self.protocols = protocols
        self.state = NEW
        self.shapes = SHAPES[max(protocols.values())]
        self.session: Dict[str, Any] = {}  # what every UI frame repeats
        self.has_provider = self.has_ui = False
        self.surfaces: Set[str] = set()
        self.text = ""  # of the frame that is being served
        self.streams: Dict[str, Stream] = {}
        self.cancelled: List[Dict[str, Any]] = []  # ends of streams, told once the cancel is answered
        self.tasks: List[Task] = []
        self.calls: Dict[int, Task] = {}  # by the ids of the requests that they wait for
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
                readable, writable = self.wait()
                if readable:
                    chunk = os.read(0, READ_BYTES)
                    for line in reader.feed(chunk):
                        self.receive(line)
                    if not chunk:  # a last line without LF still counts
                        self.receive(bytes(reader.tail))
                        return 0
                self.expire()
                if writable:
                    self.advance()
        except (ConnectionEnd, OSError) as end:
            diagnose(f"connection ended: {end}")
            return 1

    def wait(self) -> Tuple[bool, bool]:
        """Wait for input, for room for a chunk of a stream, or for the next deadline."""
        if not self.tasks and not self.streams:
            return True, False  # the read itself waits
        patience: Optional[float] = None
        if self.tasks:
            nearest = min(task.deadline for task in self.tasks) - time.monotonic()
            patience = max(0.0, min(nearest, 3600.0))
        readable, writable, _ = select.select([0], [1] if self.streams else [], [], patience)
        return bool(readable), bool(writable)

    def advance(self) -> None:
        """One chunk of each stream. They go out between two reads, so that a cancel is soon seen."""
        for stream_id, stream in list(self.streams.items()):
            self.step(stream_id, stream)

    def expire(self) -> None:
        now = time.monotonic() if self.tasks else 0.0
        for task in [task for task in self.tasks if task.deadline <= now]:
            self.abandon(task, WireError("intercept_timeout", "the budget ran out"))

    # -- frames in

    def receive(self, line: bytes) -> None:
        line = line.strip(b" \t\r\n")
        if not line:
            return
        try:
            self.text, frame = parse(line)
        except ValueError:
            return self.refuse("null", -32700, "parse error")
        if type(frame) is not dict:  # a batch, too: the protocol has none
            return self.refuse("null", -32600, "a frame is one object")
        ident, method, is_request = frame.get("id"), frame.get("method"), "method" in frame
        legal = "null" if ident is None or not is_integer(ident) else str(ident)
        if not self.well_formed(frame, is_request):
            return self.refuse(legal, -32600, "invalid frame")
        if not is_request:
            return self.resume(frame)
        params = frame.get("params", {})
        if "id" not in frame:
            return self.notified(method, params)
        if type(params) is not dict:
            return self.refuse(legal, -32600, "params is an object")
        self.serve(legal, method, params)

    @staticmethod
    def well_formed(frame: Dict[str, Any], is_request: bool) -> bool:
        ident = frame.get("id")
        if frame.get("jsonrpc") != "2.0":
            return False
        if is_request:
            return (
                type(frame["method"]) is str and frame["method"] != ""
                and (ident is None or is_integer(ident)) and "result" not in frame and "error" not in frame
            )
        if "id" not in frame or "params" in frame or ("result" in frame) == ("error" in frame):
            return False
        # A response to an id that we never use is ignored, not refused.
        if not (ident is None or is_integer(ident) or type(ident) is str):
            return False
        error = frame.get("error", {"code": 0, "message": ""})
        return type(error) is dict and is_integer(error.get("code")) and type(error.get("message")) is str

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
                while self.cancelled:
                    self.notify("extension/provider/stream/end", self.cancelled.pop())
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
        budget = budget_millis / 1000 if budget_millis else LONGEST_BUDGET
        budget -= min(budget / 4, 0.1)  # the answer has to be there in time, not to leave in time
        task = Task(ident, routine, time.monotonic() + budget)
        self.tasks.append(task)
        self.proceed(task, None)

    def proceed(self, task: Task, answers: Optional[List[Dict[str, Any]]]) -> None:
        """Run a task up to its next questions, or to its end."""
        try:
            task.answers.clear()
            for method, params in task.routine.send(answers):
                self.last_call += 1
                if not self.emit(f'{{"jsonrpc":"2.0","id":{self.last_call},{self.call(method, params)}}}'):
                    raise WireError("frame_too_large", "the question would not fit into a frame")
                task.answers[self.last_call] = None
                self.calls[self.last_call] = task
        except StopIteration as done:
            self.tasks.remove(task)
            self.reply(task.ident, done.value)
        except Exception as error:
            self.abandon(task, error)

    def resume(self, frame: Dict[str, Any]) -> None:
        """Hand an answer to whoever waits for it; late and unasked ones go unnoticed."""
        ident = frame["id"]
        task = self.calls.pop(ident, None) if type(ident) is int else None
        if task is None:
            return
        task.answers[ident] = frame
        if None not in task.answers.values():
            self.proceed(task, list(task.answers.values()))

    def abandon(self, task: Task, error: Exception) -> None:
        self.tasks.remove(task)
        for call in task.answers:
            self.calls.pop(call, None)
        task.routine.close()
        self.fail(task.ident, error)

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
        self.emit(f'{{"jsonrpc":"2.0",{self.call(method, params)}}}')

    @staticmethod
    def call(method: str, params: Dict[str, Any]) -> str:
        return f'"method":"{method}","params":{dumps(params)}'

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
        self.session = {name: params["session"][name] for name in ("sessionId", "generation")}
        manifest = params["manifest"]
        capabilities = manifest.get("capabilities", [])
        self.has_ui = "ui" in capabilities
        answer: Dict[str, Any] = {
            "name": NAME, "version": "1.0.0", "protocolVersion": version, "stateSchemaVersion": 0,
            # Never more than the manifest expects: the host would refuse the whole handshake.
            # There is nothing to say about what a frontend shows.
            "subscriptions": [name for name in manifest.get("intercepts", [])
                              if SCALARS["event"](name) and name != "frontend.event"],
            "replaces": [],
        }
        ref, action = PROVIDER["ref"], UI_ACTION["actionId"]  # a missing list sets no limit
        if "providers" in capabilities and ref in manifest.get("providers", [ref]):
            self.has_provider = True
            answer["providers"] = [PROVIDER]
        if self.has_ui and action in manifest.get("uiActions", [action]):
            answer["uiActions"] = [UI_ACTION]
        if "provides" in manifest:  # only a v2 manifest can have it
            answer["provides"] = manifest["provides"]
        return answer

    def shutdown(self, _: Dict[str, Any]) -> str:
        self.state = CLOSING
        self.streams.clear()
        for task in list(self.tasks):  # nobody would answer what they ask any more
            self.abandon(task, WireError("protocol_error", "the connection is closing"))
        return ACCEPTED

    # -- interception

    def intercept(self, params: Dict[str, Any]) -> Any:
        if params.get("externalized"):
            return self.intercept_external(params)
        text = self.text
        return self.rule(params["event"], params["payload"], lambda: written(text, "params", "payload"))

    def intercept_external(self, params: Dict[str, Any]) -> Routine:
        text, payload = yield from fetch(params["externalized"], params["payload"])
        # A line break of the content would end the frame that repeats it; inside of strings there is none.
        ruling = self.rule(params["event"], payload, lambda: re.sub(r"[\r\n]", " ", text))
        if isinstance(ruling, GeneratorType):
            ruling = yield from ruling
        return ruling

    def rule(self, event: str, payload: Any, raw: Callable[[], str]) -> Any:
        """This guest has no opinion, unless a test asks for one."""
        if event == "input.receive" and type(payload) is dict and type(payload.get("text")) is str:
            for mark, provoked in PROVOKED_RULINGS.items():
                if payload["text"].startswith(mark):
                    return provoked(self, raw)
        return CONTINUE

    # -- streams

    def catalog(self, _: Dict[str, Any]) -> Dict[str, Any]:
        if not self.has_provider:
            raise WireError("unknown_method", "there is no provider here")
        return {"providers": [PROVIDER]}

    def stream_open(self, params: Dict[str, Any]) -> str:
        stream_id = params["streamId"]
        if not self.has_provider or params["providerRef"] != PROVIDER["ref"]:
            raise WireError("provider_failed", "no such provider here")
        if stream_id in self.streams:
            raise WireError("protocol_error", "this stream is running already")
        # In v2 a chunk names the generation it was asked by, so that a stale one can be told.
        stamp = {name: params[name] for name in ("generation", "epoch") if name in params}
        self.streams[stream_id] = Stream(chunks(params["request"]["messages"]), stamp)
        return ACCEPTED

    def stream_cancel(self, params: Dict[str, Any]) -> str:
        stream = self.streams.pop(params["streamId"], None)
        if stream is None:
            return NOT_CANCELLED
        end = {"streamId": params["streamId"], "lastSeq": stream.seq, "interrupted": True}
        self.cancelled.append(end)
        return CANCELLED

    def step(self, stream_id: str, stream: Stream) -> None:
        try:
            chunk = next(stream.chunks, None)
        except Exception as failure:
            message = without_keys(str(failure)) or "the provider failed"
            chunk = {"type": "error", "error": {"code": "provider_failed", "message": message}}
            stream.chunks = iter(())
        if chunk is None:
            del self.streams[stream_id]
            end = {"streamId": stream_id, "lastSeq": stream.seq}
            return self.notify("extension/provider/stream/end", end)
        stream.seq += 1
        params = {"streamId": stream_id, "seq": stream.seq, "chunk": chunk, **stream.stamp}
        self.notify("extension/provider/stream/chunk", params)

    # -- UI

    def ui_action(self, params: Dict[str, Any]) -> Any:
        if not self.has_ui:
            raise WireError("unknown_method", "there is no action here")
        if params["actionId"] != UI_ACTION["actionId"]:
            return {"accepted": False, "message": "no such action here"}
        return ACCEPTED

    def ui_submit(self, params: Dict[str, Any]) -> str:
        if not self.has_ui:
            raise WireError("unknown_method", "there is no form here")
        return ACCEPTED if params["surfaceId"] in self.surfaces else NOT_ACCEPTED

    def ui(self, surface_id: str, kind: str, payload: Dict[str, Any]) -> Dict[str, Any]:
        return {"surfaceId": surface_id, "kind": kind, "payload": payload, **self.session}


# ------------------------------------------------------------------------------- the provider

Chunks = Iterator[Dict[str, Any]]


def chunks(messages: List[Dict[str, Any]]) -> Chunks:
    """What the provider says to these messages."""
    said = next((m.get("content", "") for m in reversed(messages) if m.get("role") == "user"), "")
    for mark, provoked in PROVOKED_STREAMS.items():
        if said.startswith(mark):
            return provoked()
    return echo(said[:1024] or "(silence)")


def text_chunk(text: str) -> Dict[str, Any]:
    return {"type": "text", "text": text}


def echo(said: str) -> Chunks:
    """It says what the user said."""
    yield {"type": "reasoning", "text": "They want to hear it again.", "signature": "echo-1"}
    for start in range(0, len(said), 512):
        yield text_chunk(said[start:start + 512])
    yield from conclusion()


def conclusion() -> Chunks:
    kinds = ("cacheHit", "cacheMiss", "completion", "prompt", "reasoning", "total")
    usage = {f"{kind}Tokens": 0 for kind in kinds}
    yield {"type": "usage", "usage": {**usage, "finishReason": "stop"}}
    yield {"type": "done"}


# ------------------------------------------------------------------------------- provocations

# A test begins the text of an `input.receive` payload, or a user message, with one of the marks
# below: see docs/provocations.md. What is provoked here gets the guest, and the payload as written.


def panic(guest: Guest, raw: Callable[[], str]) -> NoReturn:
    raise RuntimeError("asked to fail")


def slow(guest: Guest, raw: Callable[[], str]) -> Routine:
    yield []  # never resumed: the budget of the intercept ends it
    return CONTINUE


def replace(guest: Guest, raw: Callable[[], str]) -> Dict[str, Any]:
    return {"decision": "replace", "replacement": {"text": "sidecert was here"}}


def large(guest: Guest, raw: Callable[[], str]) -> Dict[str, Any]:
    return {"decision": "replace", "replacement": {"text": "x" * (9 << 20)}}


def prompt(guest: Guest, raw: Callable[[], str]) -> Routine:
    if guest.has_ui:
        question = {"title": "Go on?", "message": "A test asks this.", "fields": []}
        yield [("host/ui/request", guest.ui("sidecert-prompt", "confirm", question))]  # any answer will do
    return CONTINUE


def publish(guest: Guest, raw: Callable[[], str]) -> Routine:
    if guest.has_ui:
        guest.surfaces.update(f"sidecert-{kind}" for kind in SURFACES)
        frames = [guest.ui(f"sidecert-{kind}", kind, shown) for kind, shown in SURFACES.items()]
        yield [("host/ui/publish", frame) for frame in frames]
    return CONTINUE


def echo_payload(guest: Guest, raw: Callable[[], str]) -> str:
    return f'{{"decision":"replace","replacement":{raw()}}}'


SURFACES: Dict[str, Dict[str, Any]] = {
    "status": {"label": "Ready", "detail": "Nothing to do", "severity": "info", "progress": 0.5},
    "card": {
        "title": "A card", "markdown": "It has *one* field and one action.",
        "fields": [{"key": "colour", "value": "green"}],
        "actions": [{"actionId": UI_ACTION["actionId"], "label": UI_ACTION["label"]}],
    },
    "form": {
        "title": "A form", "message": "Which colour?",
        "fields": [{"key": "colour", "label": "Colour", "kind": "select", "options": ["green", "red"]}],
    },
    "notification": {"title": "A notification", "body": "It says nothing.", "severity": "info"},
}


def failing_stream() -> Chunks:
    yield text_chunk("so far so good")
    raise RuntimeError("the service refused the key sk-" + "made0up1for2a3test")


def long_stream() -> Chunks:
    for number in range(20_000):
        yield text_chunk(f"{number} ")
    yield from conclusion()


PROVOKED_RULINGS: Dict[str, Callable[[Guest, Callable[[], str]], Any]] = {
    "sidecert:panic": panic, "sidecert:slow": slow, "sidecert:replace": replace, "sidecert:large": large,
    "sidecert:prompt": prompt, "sidecert:publish": publish, "sidecert:echo-payload": echo_payload,
}
PROVOKED_STREAMS: Dict[str, Callable[[], Chunks]] = {
    "sidecert:empty-stream": lambda: iter(()),
    "sidecert:failing-stream": failing_stream,
    "sidecert:long-stream": long_stream,
}


def main(arguments: List[str]) -> int:
    wanted = {(): (1, 2), ("--protocol", "v1"): (1,), ("--protocol", "v2"): (2,)}.get(tuple(arguments))
    if wanted is None:
        print("usage: guest.py [--protocol v1|v2]", file=sys.stderr)
        return 2
    sys.setrecursionlimit(3 * MAX_NESTING)  # the parser recurses as deep as a frame may nest
    return Guest({name: major for name, major in PROTOCOLS.items() if major in wanted}).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
