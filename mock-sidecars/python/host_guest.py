"""A plugin of the host of host.py as it runs: its process, the connection to it, and the streams that come over it."""
from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import secrets
import signal
import subprocess
import threading
from collections import OrderedDict, deque
from contextlib import suppress
from typing import Any, AsyncIterator, Dict, List, Optional, Set, Tuple

from host_contract import KINDS, Failure, Plugin, dumps, parse, redacted

INTERCEPT, EVENT, INITIALIZE = "extension/intercept", "extension/event", "extension/initialize"
STREAM = "extension/provider/stream/"
MAX_REQUESTS = 64  # of a plugin that wait for their answers
MAX_OBJECTS = 64  # that a plugin can still read
MAX_EVENTS = 16  # that a plugin has not read yet
MAX_AHEAD = 256  # chunks that may come before one that is missing
TAIL_BYTES = 16 * 1024  # what is kept of a plugin's stderr
STARTUP = 30.0  # seconds in which all plugins have started
SHUTDOWN_MILLIS, EXIT, REAP, STALL = 5000, 0.75, 5.0, 10.0
GAP, GAP_AFTER_END, SILENCE = 3.0, 1.0, 300.0  # seconds that a stream may lack a chunk, or be silent
SETTLE = 0.25  # seconds in which the last words of a process arrive
SHELLS = "sh bash zsh fish dash ksh cmd powershell pwsh".split()


# ---------------------------------------------------------------------------------------- a stream


class Stream:
    """The chunks of one answer in their order, however they come in."""

    def __init__(self) -> None:
        self.next, self.early, self.ready = 1, {}, deque()
        self.last: Optional[Dict[str, Any]] = None  # what stream/end said
        self.is_complete, self.failure = False, None
        self.news, self.timer, self.waits_for = asyncio.Event(), None, None

    def take(self, seq: int, chunk: Dict[str, Any]) -> None:
        if self.is_complete or self.failure or seq < self.next or seq in self.early:
            return  # of two with one number the first counts
        if self.last and seq > self.last["lastSeq"]:
            return self.fail(f"chunk {seq} lies behind the end at {self.last['lastSeq']}")
        if seq >= self.next + MAX_AHEAD:
            return self.fail(f"chunk {self.next} is missing, and chunk {seq} is there")
        self.early[seq] = chunk
        self.settle()

    def end(self, params: Dict[str, Any]) -> None:
        if self.is_complete or self.failure:
            return
        if self.last and self.last != params:
            return self.fail("it ended twice, differently")
        self.last = params
        if params["lastSeq"] < max(self.early, default=self.next - 1):
            return self.fail(f"it ended at {params['lastSeq']}, before what it had sent")
        self.settle()

    def settle(self) -> None:
        while self.next in self.early:
            self.ready.append(self.early.pop(self.next))
            self.next += 1
        if self.last and self.next > self.last["lastSeq"]:
            self.is_complete = True
            if self.last.get("error"):
                self.fail(self.last["error"], "provider_failed")
            elif self.last.get("interrupted"):
                self.fail("the provider interrupted it")
        lacks = (self.next, bool(self.last)) if (self.early or self.last) and not self.is_complete else None
        if lacks != self.waits_for:
            self.rest()
            self.waits_for = lacks
            if lacks:
                patience = GAP_AFTER_END if self.last else GAP
                self.timer = asyncio.get_running_loop().call_later(patience, self.give_up)
        self.news.set()

    def give_up(self) -> None:
        of = f" of {self.last['lastSeq']}" if self.last else ""
        self.fail(f"chunk {self.next}{of} is missing")

    def fail(self, why: str, reason: str = "provider_interrupted") -> None:
        if not self.failure:
            said = "provider stream failed" if reason == "provider_failed" else "provider stream interrupted"
            self.failure = Failure(f"{said}: {why}", reason)
        self.news.set()

    def rest(self) -> None:
        if self.timer:
            self.timer.cancel()

    async def chunks(self) -> AsyncIterator[Dict[str, Any]]:
        while True:
            while self.ready:
                yield self.ready.popleft()
            if self.failure:
                raise self.failure
            if self.is_complete:
                return
            self.news.clear()
            try:
                await bounded(self.news.wait(), SILENCE)
            except asyncio.TimeoutError:
                raise Failure("provider stream interrupted: it fell silent", "provider_interrupted") from None


# --------------------------------------------------------------------------- a plugin's process

STARTING, READY, CLOSING, CRASHED = "starting", "ready", "closing", "crashed"


class Pipe(asyncio.Protocol):
    """One of the three pipes of a process; what happens on it is told to the guest."""

    def __init__(self, heard=None, ended=None, blocked=None) -> None:
        self.heard, self.ended, self.blocked = heard, ended, blocked

    def data_received(self, data: bytes) -> None:
        self.heard(data)

    def connection_lost(self, _: Optional[Exception]) -> None:
        self.ended()

    def pause_writing(self) -> None:
        self.blocked(True)

    def resume_writing(self) -> None:
        self.blocked(False)


class Guest:
    """A plugin that runs: its process, and the connection to it."""

    def __init__(self, host: "Host", plugin: Plugin) -> None:
        self.host, self.plugin, self.name, self.contract = host, plugin, plugin.name, host.contract
        self.state, self.process, self.outlet, self.pipes, self.is_unheard = STARTING, None, None, [], False
        self.rest, self.tail, self.cut = bytearray(), bytearray(), False
        self.queue, self.is_blocked, self.blocked_at, self.stalled = deque(), False, 0.0, None
        self.events, self.writes_event = 0, False  # those that it has not read, and whether one is half written
        self.calls: Dict[int, asyncio.Future] = {}
        self.last_id = self.seq = 0
        self.serving: Set[asyncio.Task] = set()
        self.store: "OrderedDict[str, Tuple[bytes, str]]" = OrderedDict()
        self.streams: Dict[str, Stream] = {}
        self.said: Dict[str, Any] = {}  # in its answer to initialize
        self.actions: Set[str] = set()
        self.forms: Set[str] = set()
        self.catalog: Optional[asyncio.Task] = None
        self.warned: Set[str] = set()
        self.fatal: Optional[Failure] = None  # what makes the start fail
        self.exited, self.silent, self.quiet, self.idle = (asyncio.Event() for _ in range(4))

    # -- its life

    async def start(self) -> None:
        """From nothing to ready; of what fails nothing is left."""
        try:
            await self.spawn()
            runtime = self.plugin.runtime
            told = ("intercepts", "replaces", "capabilities", "provides", "requires")
            lists = {it: runtime[it] for it in told if it in runtime}
            major = str(self.contract.major)
            result = await self.call(INITIALIZE, {
                "protocolId": self.contract.id, "protocolVersion": major, "manifest": lists, "session": self.host.place(),
                "capabilities": {"contentRefs": True, "uiHost": self.host.ui_host, "protocolVersion": major}}, STARTUP)
            self.check(result)
            if self.fatal:
                raise self.fatal
            self.said, self.state = result, READY
            self.send(self.frame("extension/initialized", {}))
        except BaseException:
            self.state = CRASHED
            self.kill()
            await self.gone()
            raise

    async def spawn(self) -> None:
        root = self.host.install(self.plugin)
        command, prefix = self.plugin.runtime["command"], "${REASONIX_PLUGIN_ROOT}"
        command = root + command[len(prefix):] if command.startswith(prefix) else command
        if not os.path.isabs(command):
            raise Failure("its command is not absolute")
        if re.sub(r"\.exe$", "", os.path.basename(command).lower()) in SHELLS:
            raise Failure("its command is a shell")
        env = {**os.environ, **self.plugin.runtime.get("env", {}), "REASONIX_PLUGIN_ROOT": root,
               "REASONIX_PLUGIN_NAME": self.name, "REASONIX_PLUGIN_VERSION": str(self.plugin.manifest.get("version", ""))}
        pipe = subprocess.PIPE
        try:
            self.process = subprocess.Popen([command, *self.plugin.lists("args")], stdin=pipe, stdout=pipe, stderr=pipe,
                                            env=env, start_new_session=True, bufsize=0)
        except (OSError, ValueError) as error:
            raise Failure(f"its command cannot be run: {error}") from None
        loop = asyncio.get_running_loop()
        threading.Thread(target=self.watch, args=(loop,), daemon=True).start()
        told = Pipe(ended=self.unheard, blocked=self.block)
        self.outlet, _ = await loop.connect_write_pipe(lambda: told, self.process.stdin)
        self.outlet.set_write_buffer_limits(high=0)
        said, noted = (self.process.stdout, self.hear, self.end), (self.process.stderr, self.mind, self.quiet.set)
        for stream, heard, ended in (said, noted):
            transport, _ = await loop.connect_read_pipe(lambda: Pipe(heard, ended), stream)
            self.pipes.append(transport)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own: when the process ends. Its id stays its own until `over` has cleaned up."""
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        with suppress(RuntimeError):  # the loop may be gone
            loop.call_soon_threadsafe(self.over)

    def over(self) -> None:
        if self.state != CLOSING:
            self.kill()  # what it left behind as well
        self.process.wait()
        self.exited.set()
        self.lose("its process ended")

    def kill(self) -> None:
        if self.process and not self.exited.is_set():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    async def gone(self) -> None:
        """The process is reaped, and its pipes are closed."""
        if self.process is None:
            return
        await within(self.exited.wait(), REAP)
        await within(self.quiet.wait(), SETTLE)
        for pipe in self.pipes:
            pipe.close()
        if self.outlet and not self.is_unheard:
            self.outlet.abort()

    async def close(self) -> None:
        """The orderly end."""
        was_ready, crashed = self.state == READY, self.state == CRASHED
        self.state = CLOSING if not crashed else CRASHED
        for task in self.serving:
            task.cancel()
        if was_ready:
            await asyncio.gather(*self.serving, return_exceptions=True)  # they are answered
            with suppress(Failure):
                await self.call("extension/shutdown", {"timeoutMillis": SHUTDOWN_MILLIS}, SHUTDOWN_MILLIS / 1000)
        if not crashed:
            self.queue.clear()  # events that it did not read
            self.outlet.close()
            await within(self.exited.wait(), EXIT)
            self.kill()
        self.drop(Failure(f"plugin {self.name} was shut down", "provider_interrupted"))
        await self.gone()

    def drop(self, failure: Failure) -> None:
        """Nothing waits for it any more."""
        for future in self.calls.values():
            if not future.done():
                future.set_exception(failure)
        for stream in self.streams.values():
            stream.fail(str(failure))

    def lose(self, why: str) -> None:
        """The process or one of its pipes is gone. What it wrote before that still counts."""
        async def settle() -> None:
            await within(self.silent.wait(), SETTLE)
            self.crash(why)
        if self.state == CLOSING:
            self.drop(Failure(f"plugin {self.name} ended", "provider_interrupted"))
        elif self.state in (STARTING, READY):
            self.host.behind(settle())

    def unheard(self) -> None:
        self.is_unheard = True
        self.idle.set()
        self.lose("it reads no more")

    def crash(self, why: str, reason: str = "provider_interrupted") -> None:
        if self.state not in (STARTING, READY):
            return
        was_ready, self.state = self.state == READY, CRASHED
        self.kill()
        self.drop(Failure(f"plugin {self.name} crashed: {why}", reason))
        for task in self.serving:
            task.cancel()
        if was_ready:
            self.host.behind(self.report(why))

    async def report(self, why: str) -> None:
        await within(self.quiet.wait(), SETTLE)
        self.host.warn(f"plugin {self.name} crashed: {why}", self.name)
        self.host.found("diagnostics", self.diagnosis(f"plugin {self.name} crashed: {why}"))

    def diagnosis(self, what: str) -> str:
        """What is said of a plugin that failed. A credential that was cut in two is not known any more, so the
        tail begins with a whole line or word."""
        tail = bytes(self.tail)
        if self.cut:
            tail = tail.partition(b"\n")[2] if b"\n" in tail else tail.partition(b" ")[2]
        said = tail.decode("utf-8", "replace").strip()
        return redacted(f"{what}; stderr: {said}" if said else what)

    def mind(self, data: bytes) -> None:
        self.tail += data
        if len(self.tail) > TAIL_BYTES:
            self.cut = True
            del self.tail[:-TAIL_BYTES]

    # -- frames out

    def frame(self, method: str, params: Dict[str, Any], ident: Optional[int] = None) -> bytes:
        head = "" if ident is None else f'"id":{ident},'
        data = f'{{"jsonrpc":"2.0",{head}"method":"{method}","params":{dumps(params)}}}\n'.encode()
        if len(data) > self.contract.frame_bytes:
            raise Failure(f"{method} would be a frame of {len(data)} bytes", "frame_too_large")
        return data

    def send(self, data: bytes, is_event: bool = False) -> None:
        self.queue.append((data, is_event))
        self.events += is_event
        self.pump()

    def pump(self) -> None:
        while self.queue and not self.is_blocked and not self.is_unheard:
            data, self.writes_event = self.queue.popleft()
            self.outlet.write(data)
            if not self.is_blocked:
                self.events -= self.writes_event
        self.idle.clear() if self.is_blocked and not self.is_unheard else self.idle.set()

    def block(self, is_blocked: bool) -> None:
        self.is_blocked = is_blocked
        if self.stalled:
            self.stalled.cancel()
        if is_blocked:
            self.blocked_at = asyncio.get_running_loop().time()
            self.patience(self.outlet.get_write_buffer_size())
        else:
            self.events -= self.writes_event
            self.pump()

    def patience(self, left: int) -> None:
        def look() -> None:
            now = self.outlet.get_write_buffer_size()
            self.crash("it stopped reading") if now >= left else self.patience(now)
        self.stalled = asyncio.get_running_loop().call_later(STALL, look)

    def answer(self, ident: str, result: Dict[str, Any]) -> None:
        if self.state in (READY, CLOSING):
            self.send(f'{{"jsonrpc":"2.0","id":{ident},"result":{dumps(result)}}}\n'.encode())

    def refuse(self, ident: str, code: int, message: str, reason: Optional[str] = None) -> None:
        error: Dict[str, Any] = {"code": code, "message": message}
        if reason:
            error["data"] = {"reason": reason, "retryable": self.contract.reasons[reason][1]}
        self.send(f'{{"jsonrpc":"2.0","id":{ident},"error":{dumps(error)}}}\n'.encode())

    async def call(self, method: str, params: Dict[str, Any], seconds: float) -> Any:
        """A request, and its result, which is what the contract says."""
        if self.state == CRASHED:
            raise Failure(f"plugin {self.name} has crashed", "provider_interrupted")
        data = self.frame(method, params, self.last_id + 1)
        self.last_id += 1
        ident, future = self.last_id, asyncio.get_running_loop().create_future()
        self.calls[ident] = future
        self.send(data)
        try:
            answer = await bounded(future, seconds)
        except asyncio.TimeoutError:
            reason = "intercept_timeout" if method == INTERCEPT else None
            raise Failure(f"{method} was not answered within {seconds:g} s", reason) from None
        finally:
            del self.calls[ident]
        if "error" in answer:
            data = answer["error"].get("data")
            reason = data.get("reason") if type(data) is dict else None
            known = type(reason) is str and self.contract.reasons.get(reason, (0, None))[1] is data.get("retryable")
            raise Failure(answer["error"]["message"], reason if known else None)
        fault = self.contract.fault(self.contract.methods[method]["result"], answer["result"])
        if fault:
            raise Failure(f"the answer to {method} is not what the contract says: {fault}", "protocol_error")
        return answer["result"]

    # -- frames in

    def hear(self, data: bytes) -> None:
        if self.state == CRASHED:
            return
        self.rest += data
        *lines, rest = bytes(self.rest).split(b"\n") if b"\n" in data else (self.rest,)
        self.rest = bytearray(rest) if lines else self.rest
        for line in lines:
            self.receive(line, 1)
        if len(self.rest) > self.contract.frame_bytes:
            self.receive(bytes(self.rest), 0)

    def end(self) -> None:
        self.receive(bytes(self.rest), 0)
        self.silent.set()
        self.lose("it closed its output")

    def receive(self, line: bytes, newline: int) -> None:
        if self.state == CRASHED or self.silent.is_set():
            return
        if len(line) + newline > self.contract.frame_bytes:
            return self.crash(f"it wrote a frame of more than {self.contract.frame_bytes} bytes", "frame_too_large")
        line = line.strip(b" \t\r\n")
        if not line:
            return
        try:
            frame = parse(line)
        except ValueError:
            return self.wrong("null", -32700, "parse error")
        if type(frame) is not dict:
            return self.wrong("null", -32600, "a frame is one object")
        ident, method, params = frame.get("id"), frame.get("method"), frame.get("params", {})
        legal = getattr(ident, "text", str(ident)) if KINDS["integer"](ident) else "null"
        if frame.get("jsonrpc") != "2.0":
            return self.wrong(legal if "method" in frame else "null", -32600, "invalid frame")
        if "method" not in frame:
            return self.resolve(frame)
        if type(method) is not str or not method or "result" in frame or "error" in frame:
            return self.wrong(legal, -32600, "invalid frame")
        if self.state == STARTING:
            return self.poison(f"it sent {method[:80]} before the handshake was over")
        if "id" not in frame:
            return self.notified(method, params)
        if legal == "null" or type(params) is not dict:
            return self.wrong(legal, -32600, "the id is an integer, and params is an object")
        self.serve(legal, method, params)

    def wrong(self, ident: str, code: int, message: str) -> None:
        if self.state == STARTING:
            return self.poison("it wrote what is no frame before the handshake was over")
        self.refuse(ident, code, message)

    def poison(self, why: str) -> None:
        self.fatal = self.fatal or Failure(why, "protocol_error")
        self.drop(self.fatal)

    def resolve(self, frame: Dict[str, Any]) -> None:
        """A response. Only a whole one to a pending call counts; an answer is not answered under its own id."""
        ident, error = frame.get("id"), frame.get("error", {"code": 0, "message": ""})
        is_whole = ("result" in frame) != ("error" in frame) and "params" not in frame and "id" in frame
        if not is_whole or type(ident) in (float, bool, list, dict) or type(error) is not dict \
                or not KINDS["integer"](error.get("code")) or type(error.get("message")) is not str:
            return self.wrong("null", -32600, "invalid frame")
        future = self.calls.get(ident) if KINDS["integer"](ident) else None
        if future and not future.done():
            future.set_result(frame)
        elif self.state == STARTING:
            self.poison("it answered what nobody asked before the handshake was over")

    def notified(self, method: str, params: Any) -> None:
        """Notifications are never answered: one that is wrong is passed over."""
        known = method in (STREAM + "chunk", STREAM + "end") and self.state == READY
        if not known or self.contract.fault(self.contract.methods[method]["params"], params):
            return
        stream = self.streams.get(params["streamId"])
        if stream:
            stream.end(params) if method == STREAM + "end" else stream.take(params["seq"], params["chunk"])

    def serve(self, ident: str, method: str, params: Dict[str, Any]) -> None:
        told = self.contract.methods.get(method, {})
        try:
            if self.state != READY:
                raise Failure("the connection is closing", "protocol_error")
            if told.get("direction") != "extension_to_host_request":
                raise Failure("no such method here", "unknown_method")
            if len(self.serving) >= MAX_REQUESTS:
                return self.refuse(ident, -32099, "server busy")
            fault = self.contract.fault(told["params"], params)
            if fault:
                raise Failure(f"the params are not what the contract says: {fault}", "invalid_params")
            if method == "host/content/read":
                return self.answer(ident, self.page(**params))
            if not self.fresh(params):
                return self.answer(ident, {"cancelled": True} if method == "host/ui/request" else {"accepted": False})
            if method == "host/ui/publish":
                self.answer(ident, {"accepted": True})
                return self.host.publish(self, params)
            task = asyncio.ensure_future(self.host.prompt(self, params))
            self.serving.add(task)
            task.add_done_callback(lambda _: (self.serving.discard(task), self.answer(
                ident, {"cancelled": True} if task.cancelled() else task.result())))
        except Failure as failure:
            self.refuse(ident, self.contract.reasons[failure.reason][0], str(failure), failure.reason)

    def fresh(self, params: Dict[str, Any]) -> bool:
        """Whether what it shows belongs to the session and generation that are there now; it must be what its
        kind says then."""
        if "ui" not in self.plugin.lists("capabilities"):
            raise Failure("the manifest does not declare the capability ui", "capability_not_declared")
        if any(params[name] != self.host.place()[name] for name in ("sessionId", "generation")):
            return False
        kind = params["kind"] if params["kind"] in ("status", "card", "form", "notification") else "form"
        fault = self.contract.fault(kind, params["payload"])
        if fault:
            raise Failure(f"invalid {params['kind']}: {fault}", "invalid_params")
        return True

    # -- content

    def envelope(self, payload: Any) -> Dict[str, Any]:
        """The payload, or where it can be read."""
        data = dumps(payload).encode()
        if len(data) <= self.contract.inline_bytes:
            return {"payload": payload}
        if len(data) > self.contract.object_bytes:
            raise Failure(f"a payload of {len(data)} bytes is too large", "frame_too_large")
        ref, digest = "content_" + secrets.token_hex(12), hashlib.sha256(data).hexdigest()
        self.store[ref] = data, digest
        if len(self.store) > MAX_OBJECTS:
            self.store.popitem(last=False)
        return {"payload": None, "externalized": [
            {"jsonPointer": "/payload", "contentRef": ref, "totalBytes": len(data), "sha256": digest}]}

    def page(self, contentRef: str, offset: int) -> Dict[str, Any]:
        data, digest = self.store.get(contentRef, (b"", ""))
        if not digest or offset > len(data):
            raise Failure("there is no such content", "content_ref_expired")
        end = min(offset + self.contract.page_bytes, len(data))
        more = {"nextOffset": end} if end < len(data) else {}
        return {"contentRef": contentRef, "offset": offset, "dataBase64": base64.b64encode(data[offset:end]).decode(),
                "encoding": "utf8", "totalBytes": len(data), "sha256": digest, **more}

    def fetch(self, result: Dict[str, Any]) -> Any:
        """A replacement that names content which this plugin was sent."""
        field, *others = result["externalized"]
        if others or result.get("replacement") is not None or field["jsonPointer"] != "/replacement":
            raise Failure("an externalized replacement is one descriptor of /replacement", "protocol_error")
        if field["totalBytes"] > self.contract.object_bytes:
            raise Failure("the externalized replacement is too large", "frame_too_large")
        if field["contentRef"] not in self.store:
            raise Failure("the externalized replacement is not there", "content_ref_expired")
        data, digest = self.store[field["contentRef"]]
        if (len(data), digest) != (field["totalBytes"], field["sha256"]):
            raise Failure("the externalized replacement is not what its descriptor says", "protocol_error")
        return parse(data)

    # -- what it is asked

    def check(self, result: Dict[str, Any]) -> None:
        """Whether it declares what its manifest allows."""
        if not re.fullmatch(r"\d{1,9}", result["protocolVersion"], re.A):
            raise Failure("its protocol version is no number", "protocol_error")
        if result["protocolVersion"] != str(self.contract.major):
            raise Failure(f"it speaks version {result['protocolVersion']}", "unsupported_version")
        undeclared = lambda what: Failure(f"its manifest does not declare {what}", "capability_not_declared")
        lists, has = self.plugin.lists, self.plugin.lists("capabilities")
        for member, allowed in (("subscriptions", "intercepts"), ("replaces", "replaces")):
            for name in result.get(member, ()):
                if name not in lists(allowed):
                    raise undeclared(f"{member} {name}")
        for provider in result.get("providers", ()):
            if "providers" not in has or not provider["ref"].startswith(f"plugin/{self.name}/"):
                raise undeclared(f"the provider {provider['ref']}")
        if result.get("uiActions") and "ui" not in has:
            raise undeclared("actions of the user interface")
        key = lambda it: (it["kind"], it["namespace"], it["id"])
        for it in result.get("provides", ()) if "provides" in self.plugin.runtime else ():
            if key(it) not in map(key, lists("provides")):
                raise undeclared(f"that it provides {it['id']}")
        named = [action["actionId"] for action in result.get("uiActions", ())]
        self.actions = {name for name in named if re.fullmatch("[a-z0-9-]+", name)}
        if len(self.actions) < len(named):
            self.host.warn(f"plugin {self.name} names an action twice, or not as actions are named", self.name)

    async def rule(self, point: str, payload: Dict[str, Any]) -> Dict[str, Any]:
        """Its ruling. A replacement is what the point's document says."""
        millis = self.plugin.millis(point)
        envelope = {"event": point, **self.envelope(payload), "seq": self.seq + 1, "timeoutMillis": millis}
        self.seq += 1
        result = await self.call(INTERCEPT, envelope, millis / 1000)
        if result.get("externalized"):
            result = {**result, "replacement": self.fetch(result)}
        violates = lambda why: Failure(f"it violated the contract: {why}", "protocol_error")
        if result["decision"] in ("allow", "deny") and point != "permission.decision":
            raise violates(f"{result['decision']} is no ruling here")
        if result["decision"] == "replace":
            fault = self.contract.fault(point, result.get("replacement"), "/replacement")
            if point == "frontend.event" and not fault and result["replacement"]["kind"] != payload["kind"]:
                fault = "/replacement/kind is another one"
            if fault:
                raise violates(fault)
        return result

    def observe(self, point: str, payload: Any) -> None:
        """An event: it is dropped where the plugin does not read."""
        if self.state != READY:
            return
        with suppress(Failure):  # too large to be told
            if self.events < MAX_EVENTS:
                return self.send(self.frame(EVENT, {"event": point, **self.envelope(payload)}), True)
        self.host.warn_once(self, "events", f"plugin {self.name} does not take its events; some are dropped")

    async def providers(self) -> List[Dict[str, Any]]:
        """Its catalog, asked for once; a failed try does not count."""
        if "providers" not in self.plugin.lists("capabilities") or self.state != READY and not self.catalog:
            return []
        if self.catalog is None or self.catalog.done() and (self.catalog.cancelled() or self.catalog.exception()):
            self.catalog = asyncio.ensure_future(self.call("extension/provider/catalog", {}, 10.0))
        try:
            listed = await asyncio.shield(self.catalog)
        except Failure as failure:
            self.host.warn(f"plugin {self.name} lists no models: {failure}", self.name)
            return []
        return [it for it in listed["providers"] if it["ref"].startswith(f"plugin/{self.name}/")]


async def bounded(work: Any, seconds: float) -> Any:
    """What comes of it in time, or TimeoutError, once it has cleaned up. (`wait_for` may lose a cancellation that
    comes together with the result.)"""
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
        if done:
            return task.result()
        raise asyncio.TimeoutError
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


async def within(work: Any, seconds: float) -> bool:
    """Whether it comes to its end in time."""
    try:
        await bounded(work, seconds)
        return True
    except asyncio.TimeoutError:
        return False
