#!/usr/bin/env python3
"""A small, strict host for the Reasonix Extension Protocol, v1 and v2, behind the shim of docs/host-shim.md.

    python3 -I -S host.py [--suite reasonix-v1|reasonix-v2]

It is told on stdin what to do, and tells on stdout what came of it; the plugins that it is told to start
run as real processes. It shares no code with the rest of this repository, so that two readings of the same
specification meet; of the repository it reads the contracts, which say what the members of a frame are.

Where the specification and the released host differ, it follows the specification. Its model is a plugin's,
its tools answer what they always answer, and nothing of the workspace is read or written. A `start` may say
`"permission": "deny"`: then the tool that writes is denied, unless a plugin allows it.

This file is the agent and its loop, the rulings that it asks plugins for, and the words of the shim. A plugin as it
runs is in host_guest.py, and what it is held to in host_contract.py. Only the standard library.
"""
from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
import threading
import traceback
from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # `-I` leaves it out

from host_contract import KINDS, MAX_NESTING, SLOT_OF, Blocked, Contract, Failure, Plugin, Refused
from host_contract import dumps, holds_object, parse, redacted, redacted_all
from host_guest import CRASHED, SETTLE, SILENCE, STARTUP, STREAM, Guest, Stream, within

MAX_ROUNDS = 8  # answers of the model in one turn
AT_ONCE = 4  # plugins that start at the same time
TOOLS = {  # name -> what it does, whether it only reads, arguments that work, what it answers
    "ls": ("Lists a folder.", True, {"path": "."}, "README.md\nsrc\n"),
    "read_file": ("Reads a file.", True, {"path": "README.md"}, "# An example\n"),
    "write_file": ("Writes a file.", False, {"path": "notes.txt", "content": "x"}, "written"),
}


# ------------------------------------------------------------------------------------------ the host


class Host:
    """A session of the host: its plugins, the rulings that it asks them for, and the agent's loop."""

    def __init__(self, contract: Contract, tell: Any) -> None:
        self.contract, self.tell, self.folder = contract, tell, ""
        self.is_running, self.busy, self.broken = False, None, None
        self.plugins: List[Plugin] = []
        self.guests: List[Guest] = []  # in the order of the chain
        self.generation, self.session, self.conversation, self.workspace, self.ui_host = 0, "", "", "", "headless"
        self.permission, self.selected, self.system = "allow", None, ""
        self.messages: List[Dict[str, Any]] = []
        self.prompts: Dict[str, Tuple[asyncio.Future, List[Dict[str, Any]]]] = {}
        self.prompted = 0
        self.turning: Optional[asyncio.Task] = None
        self.tasks: Set[asyncio.Task] = set()  # what an ask caused and nobody waits for

    def place(self) -> Dict[str, Any]:
        return {"sessionId": self.session, "workspaceRoot": self.workspace, "generation": self.generation}

    # -- what is told

    def shown(self, how: str, text: str, **more: Any) -> None:
        self.tell({"shown": {"as": how, "text": text, **more}})

    def found(self, where: str, text: str) -> None:
        self.tell({"found": {"in": where, "text": text}})

    def warn(self, text: str, plugin: str) -> None:
        self.shown("warning", redacted(text), plugin=plugin)
        self.found("log", redacted(text))

    def warn_once(self, guest: Guest, topic: str, text: str) -> None:
        if topic not in guest.warned:
            guest.warned.add(topic)
            self.warn(text, guest.name)

    def behind(self, work: Any) -> asyncio.Task:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def settled(self) -> None:
        """Every line to a plugin that reads is written, and what there is to tell is told."""
        while self.tasks:
            await asyncio.wait(self.tasks)
        for guest in self.guests:
            patience = guest.blocked_at + SETTLE - asyncio.get_running_loop().time()
            if guest.is_blocked and patience > 0:  # who has not read for longer is not waited for
                await within(guest.idle.wait(), patience)

    @contextmanager
    def alone(self, what: str, needs_session: bool = True) -> Iterator[None]:
        """One thing at a time."""
        if self.busy:
            raise Refused(f"the host is busy: {self.busy}")
        if needs_session and not self.is_running:
            raise Refused("no session is running")
        self.busy = what
        try:
            yield
        finally:
            self.busy = None

    # -- a session

    def install(self, plugin: Plugin) -> str:
        root = os.path.join(os.path.abspath(self.folder), "plugins", plugin.name)
        os.makedirs(root, exist_ok=True)
        with open(os.path.join(root, "reasonix-plugin.json"), "w", encoding="utf-8") as file:
            file.write(dumps(plugin.manifest))
        return root

    async def start(self, ask: Dict[str, Any]) -> None:
        if self.is_running:
            raise Refused("a session is running")
        with self.alone("it starts", needs_session=False):
            plugins = [Plugin(self.contract, told) for told in ask["plugins"]]
            owners: Dict[str, str] = {}
            for plugin in plugins:
                if [it.name for it in plugins].count(plugin.name) > 1:
                    raise Refused(f"two plugins are called {plugin.name}")
                for slot in plugin.lists("replaces"):
                    if slot in owners:
                        raise Failure(f"plugins {owners[slot]} and {plugin.name} both replace {slot}")
                    owners[slot] = plugin.name
            self.plugins, self.workspace, self.ui_host = plugins, ask["workspace"], ask.get("uiHost", "headless")
            self.permission, self.generation, self.selected = ask.get("permission", "allow"), 0, None
            self.session, self.conversation, self.messages = secrets.token_hex(8), secrets.token_hex(8), []
            await self.launch()
            try:
                await self.prepare()
                await self.govern("session.start", self.phase("start"))
            except BaseException:
                await self.shut()
                raise
            self.is_running = True

    async def launch(self) -> None:
        """The next generation of the plugins."""
        self.generation += 1
        order = lambda plugin: (plugin.runtime.get("priority", 0), plugin.name)
        self.guests = [Guest(self, plugin) for plugin in sorted((it for it in self.plugins if it.runtime), key=order)]
        gate, now = asyncio.Semaphore(AT_ONCE), asyncio.get_running_loop().time
        end = now() + STARTUP

        async def start(guest: Guest) -> None:
            async with gate:
                if now() >= end or not await within(guest.start(), end - now()):
                    raise Failure(f"the plugins did not start within {STARTUP:g} s")

        starts = {asyncio.ensure_future(start(guest)): guest for guest in self.guests}
        waiting, self.broken = set(starts), "the plugins did not start again"
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for failed in (task for task in done if task.exception()):
                    self.unstarted(starts[failed], failed.exception())
        except BaseException:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await self.shut()
            raise
        self.guests, self.broken = [guest for guest in self.guests if guest.said], None

    def unstarted(self, guest: Guest, failure: BaseException) -> None:
        if not isinstance(failure, Failure):
            raise failure
        what = guest.diagnosis(f"plugin {guest.name} failed to start: {failure}")
        self.found("diagnostics", what)
        if guest.plugin.is_required:
            raise Failure(what, failure.reason)
        self.warn(what, guest.name)

    async def shut(self) -> None:
        guests, self.guests = self.guests, []
        closing = [self.behind(guest.close()) for guest in guests if guest.said]
        await asyncio.shield(asyncio.gather(*closing))  # whoever is cancelled meanwhile leaves no process behind

    async def prepare(self) -> None:
        built, _ = await self.govern("system_prompt.build", {"prompt": "You help.", "workspaceRoot": self.workspace})
        self.system = built.get("prompt", "")

    def phase(self, phase: str) -> Dict[str, Any]:
        return {"sessionPath": os.path.join(self.folder, self.conversation + ".json"), "phase": phase}

    async def stop(self, _: Dict[str, Any]) -> None:
        await self.cancel_turn()
        with self.alone("it stops"):
            try:
                await self.govern("session.end", self.phase("end"))
            except (Blocked, Failure) as error:
                self.shown("error", str(error))
            self.found("session", dumps(self.messages))
            await self.shut()
            self.is_running = False

    async def signalled(self, ask: Dict[str, Any]) -> None:
        """As if this process got it, which ends in order then; here it goes on."""
        if ask["signal"] not in ("TERM", "INT"):
            raise Refused("this host knows no such signal")
        await self.stop({})

    async def reload(self, _: Dict[str, Any]) -> None:
        with self.alone("it reloads"):
            await self.shut()
            await self.launch()
            await self.prepare()

    async def new_session(self, _: Dict[str, Any]) -> None:
        with self.alone("another session begins"):
            await self.govern("session.rotate", self.phase("rotate"))
            self.found("session", dumps(self.messages))
            self.conversation, self.messages = secrets.token_hex(8), []

    # -- rulings

    async def govern(self, point: str, payload: Dict[str, Any],
                     slot: Optional[str] = None) -> Tuple[Dict[str, Any], Optional[str]]:
        """What becomes of a payload at a point: the chain, the owner of the slot, then the event. With it comes
        the last ruling on a permission."""
        chain = [guest for guest in self.guests if point in guest.plugin.lists("intercepts")]
        slot = slot or SLOT_OF.get(point)
        owners = [guest for guest in self.guests if slot in guest.plugin.lists("replaces")]
        ruling, blocked = None, None
        for place, guest in enumerate(chain + owners):
            is_owner = place >= len(chain)
            if ruling and not is_owner:
                continue  # the first ruling ends the chain
            try:
                result = await guest.rule(point, payload)
            except Failure as failure:
                said = f"plugin {guest.name} failed at {point}: {failure}"
                if guest.plugin.is_required:
                    raise Failure(said, failure.reason) from None
                self.warn_once(guest, "ruling", said + "; it is passed over")
                continue
            if result["decision"] == "block":
                why = result.get("reason") or "it gave no reason"
                blocked = Blocked(f"plugin {guest.name} blocked {point}: {why}")
                break
            if result["decision"] == "replace":
                payload = result["replacement"]
            elif result["decision"] in ("allow", "deny"):
                ruling = result["decision"]
        for guest in dict.fromkeys(chain + owners):
            guest.observe(point, payload)
        if blocked:
            raise blocked
        return payload, ruling

    # -- the agent

    async def turn(self, ask: Dict[str, Any]) -> Dict[str, Any]:
        with self.alone("a turn is running"):
            if self.broken:
                raise Failure(self.broken)
            self.turning = asyncio.ensure_future(self.take_turn(ask["text"], ask.get("model"), ask.get("effort")))
            try:
                return {"text": await self.turning}
            except asyncio.CancelledError:
                self.turning.cancel()
                await asyncio.wait([self.turning])
                raise Failure("the turn was cancelled", "stream_cancelled") from None

    async def cancel_turn(self) -> bool:
        is_running = self.turning is not None and not self.turning.done()
        if is_running:
            self.turning.cancel()
            await asyncio.wait([self.turning])
            while self.busy == "a turn is running":
                await asyncio.sleep(0)
        return is_running

    async def cancel(self, _: Dict[str, Any]) -> None:
        if not await self.cancel_turn():
            raise Refused("no turn is running")

    async def take_turn(self, text: str, model: Optional[str], effort: Optional[str]) -> str:
        received, _ = await self.govern("input.receive", {"text": text})
        guest, entry = await self.route(model)
        await self.govern("agent.before_start", {
            "model": entry["ref"], "toolCount": len(TOOLS), "sessionId": self.conversation})
        self.messages.append({"role": "user", "content": received["text"]})
        shown = []
        for _ in range(MAX_ROUNDS):
            said = await self.ask_model(guest, entry, effort, shown)
            calls = said.get("calls", [])
            message = {"role": "assistant", "content": said.get("text", ""), "tool_calls": calls,
                       "reasoning_content": said.get("reasoning", ""), "reasoning_signature": said.get("signature", "")}
            self.messages.append({name: value for name, value in message.items() if value or name == "content"})
            await self.show(said.get("text", ""), shown)
            for call in calls:
                result = await self.use(call["name"], call["arguments"] or "{}")
                told = {"role": "tool", "tool_call_id": call["id"], "name": call["name"], "content": result}
                self.messages.append(told)
            if not calls:
                await self.save()
                return "".join(shown)
        raise Failure(f"the model asked for tools {MAX_ROUNDS} times in one turn")

    async def route(self, wanted: Optional[str]) -> Tuple[Guest, Dict[str, Any]]:
        """The plugin of a model. One that was chosen stays chosen: no other takes the place of one that crashed."""
        if wanted is None and self.selected is None:
            self.selected = next(iter((await self.models({}))["models"]), None)
        name = wanted or self.selected
        if name is None:
            raise Failure("no plugin offers a model")
        guest = next((it for it in self.guests if name.startswith(f"plugin/{it.name}/")), None)
        if guest and guest.state == CRASHED:
            raise Failure(f"plugin {guest.name} of the model {name} has crashed", "provider_interrupted")
        entries = [it for it in await guest.providers() if it["ref"] == name] if guest else []
        declared = [it["ref"] for it in guest.said.get("providers", ())] if guest else []
        if not entries or not any(name == ref or name.startswith(ref + "/") for ref in declared):
            raise Failure(f"no plugin offers the model {name}")
        return guest, entries[0]

    async def ask_model(self, guest: Guest, entry: Dict[str, Any], effort: Optional[str],
                        shown: List[str]) -> Dict[str, Any]:
        system = [{"role": "system", "content": self.system}] if self.system else []
        context, _ = await self.govern("context.prepare", {"messages": system + self.messages})
        schema = {"type": "object"}
        tools = [{"name": name, "description": it[0], "parameters": schema} for name, it in TOOLS.items()]
        request = {"messages": context["messages"], "tools": tools, "maxTokens": 4096}
        prepared, _ = await self.govern("provider.request", {"request": request})
        answer: Dict[str, Any] = {"text": "", "reasoning": "", "signature": "", "calls": []}
        try:
            await self.stream(guest, entry, effort, prepared["request"], answer)
        except Failure:
            await self.show(answer["text"], shown)  # what came before it failed
            raise
        return (await self.govern("provider.response", answer))[0]

    async def stream(self, guest: Guest, entry: Dict[str, Any], effort: Optional[str], request: Any,
                     answer: Dict[str, Any]) -> None:
        ident, stream = "es_" + secrets.token_hex(12), Stream()
        params = {"streamId": ident, "providerRef": entry["ref"], "request": request, "seqBase": 1}
        params.update({name: value for name, value in (("model", entry.get("model")), ("effort", effort)) if value})
        guest.frame(STREAM + "open", params)  # of one that is too large nothing is sent
        guest.streams[ident] = stream
        try:
            if not (await guest.call(STREAM + "open", params, SILENCE))["accepted"]:
                raise Failure(f"plugin {guest.name} declined the stream", "provider_failed")
            async for chunk in stream.chunks():
                take_chunk(chunk, answer)
        finally:
            del guest.streams[ident]
            stream.rest()
            if not stream.last:
                with suppress(Failure):
                    await guest.call(STREAM + "cancel", {"streamId": ident}, 2.0)

    async def show(self, text: str, shown: List[str]) -> None:
        """A piece of the answer on its way to the user."""
        if text:
            with suppress(Blocked):
                event, _ = await self.govern("frontend.event", {"kind": "text", "text": text, "detail": ""})
                shown.append(event.get("text", ""))
                self.shown("text", shown[-1])

    async def use(self, name: str, arguments: str) -> str:
        """One call of a tool, and its result; what goes wrong is the result as well."""
        try:
            if not holds_object(arguments):
                raise Refused(f"the arguments of {name} are no object")
            before, _ = await self.govern("tool.before", {"name": name, "arguments": arguments}, f"tool:{name}")
            name, arguments = before["name"], before["arguments"]
            if name not in TOOLS:
                raise Refused(f"there is no tool {name}")
            _, reads, _, result = TOOLS[name]
            host = "allow" if reads else self.permission
            asked = {"name": name, "arguments": arguments, "readOnly": reads, "hostDecision": host}
            asked, ruling = await self.govern("permission.decision", asked)
            ruling = ruling or asked["hostDecision"]
            if ruling != host:
                note = f"a plugin decided {ruling} for the tool {name}; the host had decided {host}"
                self.shown("notice", note)
                self.found("log", note)
            if ruling != "allow":
                raise Refused(f"the tool {name} is not permitted")
            after = {"name": name, "arguments": arguments, "result": result, "isError": False}
            return (await self.govern("tool.after", after))[0].get("result", "")
        except (Blocked, Failure, Refused) as error:
            self.shown("warning", str(error))
            return str(error)

    async def save(self) -> None:
        try:
            phase = self.phase("save")
            await self.govern("session.save", phase)
            with open(phase["sessionPath"], "w", encoding="utf-8") as file:
                file.write(dumps(self.messages))
        except (Blocked, Failure, OSError) as error:
            self.shown("error", f"the session is not saved: {error}")

    async def compact(self, _: Dict[str, Any]) -> None:
        with self.alone("it compacts"):
            asked, _ = await self.govern("compaction.prepare", {"messages": self.messages, "guidance": ""})
            summary = f"A conversation of {len(asked['messages'])} messages."
            done, _ = await self.govern("compaction.complete", {"summary": summary})
            self.messages = [{"role": "user", "content": done["summary"]}]

    async def models(self, _: Dict[str, Any]) -> Dict[str, Any]:
        if not self.is_running:
            raise Refused("no session is running")
        listed = await asyncio.gather(*(guest.providers() for guest in self.guests))
        return {"models": [entry["ref"] for entries in listed for entry in entries]}

    # -- the user's side

    def guest(self, name: str) -> Guest:
        for guest in self.guests:
            if guest.name == name:
                return guest
        raise Refused(f"no plugin {name} is running")

    def publish(self, guest: Guest, params: Dict[str, Any]) -> None:
        if params["kind"] == "form":
            guest.forms.add(params["surfaceId"])
        self.shown("surface", in_words(redacted_all(params["payload"])), plugin=guest.name, surface=params["surfaceId"],
                   kind=params["kind"])

    async def prompt(self, guest: Guest, params: Dict[str, Any]) -> Dict[str, Any]:
        """A question to the user, who has all the time of the session."""
        self.prompted += 1
        ident, payload = f"p{self.prompted}", params["payload"]
        fields = payload["fields"] or [{"key": "value", "kind": params["kind"]}]
        future = asyncio.get_running_loop().create_future()
        self.prompts[ident] = future, fields
        words = in_words({name: redacted(payload[name]) for name in ("title", "message") if name in payload})
        visible = [{**redacted_all(field), "key": field["key"]} for field in fields]
        self.shown("prompt", words, plugin=guest.name, surface=params["surfaceId"], kind=params["kind"], prompt=ident,
                   fields=visible)
        try:
            return await future
        finally:
            del self.prompts[ident]

    async def reply(self, ask: Dict[str, Any]) -> None:
        if ask["prompt"] not in self.prompts:
            raise Refused(f"there is no prompt {ask['prompt']}")
        future, fields = self.prompts[ask["prompt"]]
        values = {} if ask.get("cancelled") else ask["values"]
        is_text = KINDS["string"]
        is_list = lambda it: type(it) is list and all(map(is_text, it))
        takes = {"confirm": KINDS["boolean"], "input": is_text, "select": is_text, "multiselect": is_list}
        kinds = {field["key"]: field["kind"] for field in fields}
        for key, value in values.items():
            if key not in kinds or not takes[kinds[key]](value):
                raise Refused(f"{key} is no field, or its value is not of its kind")
        if not future.done():
            future.set_result({"cancelled": False, "values": values} if values else {"cancelled": True})

    async def action(self, ask: Dict[str, Any]) -> None:
        guest = self.guest(ask["plugin"])
        if ask["action"] not in guest.actions:
            raise Refused(f"there is no action /{guest.name}:{ask['action']}")
        args = {"args": ask["args"]} if ask.get("args") else {}
        await self.invoke(guest, "extension/ui/action", {"actionId": ask["action"], **args})

    async def submit(self, ask: Dict[str, Any]) -> None:
        guest = self.guest(ask["plugin"])
        if ask["surface"] not in guest.forms:
            raise Refused(f"plugin {guest.name} shows no form {ask['surface']}")
        await self.invoke(guest, "extension/ui/submit", {"surfaceId": ask["surface"], "values": ask["values"]})

    async def invoke(self, guest: Guest, method: str, params: Dict[str, Any]) -> None:
        place = {name: self.place()[name] for name in ("sessionId", "generation")}
        result = await guest.call(method, {**params, **place}, 30.0)
        message = redacted(result.get("message", ""))
        if not result["accepted"]:
            raise Failure(message or f"plugin {guest.name} did not accept it")
        if message:
            self.shown("notice", message, plugin=guest.name)

    # -- what the host says of plugins

    async def admit(self, ask: Dict[str, Any]) -> None:
        Plugin(self.contract, {**ask["plugin"], "enabled": True, "declared": None})

    async def describe(self, ask: Dict[str, Any]) -> Dict[str, Any]:
        told = ask["plugin"]
        if type(told) is dict:
            plugin = Plugin(self.contract, {**told, "enabled": True, "declared": None})
        else:
            plugin = next((it for it in self.plugins if it.name == told), None)
            if plugin is None:
                raise Refused(f"no plugin {told} is installed")
        states = [guest.state for guest in self.guests if guest.name == plugin.name]
        state = f"\nstate: {states[0] if states else 'not running'}" if ask["view"] == "doctor" else ""
        return {"text": plugin.described() + state}


def take_chunk(chunk: Dict[str, Any], answer: Dict[str, Any]) -> None:
    kind = chunk["type"]
    if kind in ("text", "reasoning"):
        answer[kind] += chunk.get("text", "")
        if kind == "reasoning":
            answer["signature"] = chunk.get("signature", answer["signature"])
    elif kind == "tool_call" and "toolCall" in chunk:
        answer["calls"].append(chunk["toolCall"])
    elif kind == "usage":
        answer["usage"] = chunk["usage"]
    elif kind == "error":
        raise Failure(chunk["error"]["message"], chunk["error"]["code"])


def in_words(document: Dict[str, Any]) -> str:
    """What of a document of the UI is text, a line each."""
    lines = []
    for name, value in document.items():
        if name == "fields":
            lines += [f"{it.get('label', it['key'])}: {it.get('value', '')}".rstrip(": ") for it in value]
        elif name == "actions":
            lines += [it["label"] for it in value]
        elif name != "severity":
            lines.append(str(value))
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------ the shim


class Shim:
    """Lines of asks in, lines of outcomes out."""

    def __init__(self, suite: Optional[str]) -> None:
        self.suite, self.host, self.asks = suite, None, set()
        self.lines: "asyncio.Queue[Optional[bytes]]" = asyncio.Queue()

    def tell(self, line: Dict[str, Any]) -> None:
        data = (dumps(line) + "\n").encode()
        with suppress(BrokenPipeError):  # nobody listens any more; the end of stdin follows
            while data:
                data = data[os.write(1, data):]

    def read(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread of its own, so that it does not matter what stdin is."""
        rest, more = b"", True
        with suppress(RuntimeError):  # the loop may be gone
            while more:
                more = os.read(0, 1 << 20)
                *lines, rest = (rest + more).split(b"\n") if b"\n" in more or not more else (rest + more,)
                for line in lines if more else [*lines, rest]:
                    loop.call_soon_threadsafe(self.lines.put_nowait, line)
            loop.call_soon_threadsafe(self.lines.put_nowait, None)

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.lines.put_nowait, None)
        threading.Thread(target=self.read, args=(loop,), daemon=True).start()
        code = 0
        while (line := await self.lines.get()) is not None:
            if line.strip():
                code = self.hear(line)
                if code:
                    break
        for task in self.asks:
            task.cancel()
        if self.asks:
            await asyncio.wait(self.asks)
        if self.host:
            if self.host.is_running:
                await self.host.stop({})
            await self.host.settled()
        return code

    def hear(self, line: bytes) -> int:
        try:
            ask = parse(line)
        except ValueError:
            return complain("a line of stdin is no JSON; it is passed over")
        if type(ask) is not dict:
            return complain("a line of stdin is no object; it is passed over")
        if self.host is None:
            return self.hello(ask)
        if type(ask.get("ask")) is int:
            task = asyncio.ensure_future(self.perform(ask))
            self.asks.add(task)
            task.add_done_callback(self.asks.discard)
        return 0

    def hello(self, line: Dict[str, Any]) -> int:
        suite = self.suite or line.get("suite")
        if line.get("shim") != 1 or line.get("suite") != suite or suite not in SUITES:
            complain(f"the first line is not of version 1 and the suite {suite or 'reasonix-v1 or reasonix-v2'}")
            return 2
        self.host = Host(Contract(SUITES[suite]), self.tell)
        self.host.folder = line["folder"]
        self.words = {
            "start": self.host.start, "stop": self.host.stop, "turn": self.host.turn, "cancel": self.host.cancel,
            "reload": self.host.reload, "action": self.host.action, "submit": self.host.submit,
            "answer": self.host.reply, "compact": self.host.compact, "new-session": self.host.new_session,
            "models": self.host.models,
            "admit": self.host.admit, "describe": self.host.describe, "signal": self.host.signalled}
        tools = [{"name": name, "readOnly": it[1], "arguments": it[2]} for name, it in TOOLS.items()]
        self.tell({"shim": 1, "name": "sidecert-python-host", "version": "1", "does": list(self.words), "tools": tools})
        return 0

    async def done(self, ask: Dict[str, Any]) -> Dict[str, Any]:
        word = self.words.get(ask.get("do"))
        if word is None:
            return {"cannot": "this host has no such word"}
        for name, kind in NEEDED.get(ask["do"], {}).items():
            if name not in ask or kind and not KINDS[kind](ask[name]):
                raise Refused(f"the ask has no {name}, or it is no {kind or 'value'}")
        return {"done": True, **(await word(ask) or {})}

    async def perform(self, ask: Dict[str, Any]) -> None:
        try:
            outcome = await self.done(ask)
        except Blocked as blocked:
            outcome = {"blocked": str(blocked)}
        except Failure as failure:
            outcome = {"failed": str(failure), **({"reason": failure.reason} if failure.reason else {})}
        except Refused as refused:
            outcome = {"refused": redacted(str(refused))}
        except asyncio.CancelledError:
            outcome = {"failed": "the host ends"}
        except Exception as error:  # ours; whoever asked waits for an outcome
            traceback.print_exc()
            outcome = {"failed": f"an error of the host itself: {error!r}"}
        with suppress(asyncio.CancelledError):
            await self.host.settled()
        self.tell({"outcome": ask["ask"], **outcome})


SUITES = {"reasonix-v1": 1, "reasonix-v2": 2}
NEEDED = {  # what an ask must have, and of which kind it is
    "start": {"plugins": "array", "workspace": "string"}, "turn": {"text": "string"},
    "action": {"plugin": "string", "action": "string"}, "answer": {"prompt": "string"},
    "submit": {"plugin": "string", "surface": "string", "values": "object"},
    "admit": {"plugin": "object"}, "describe": {"plugin": None, "view": "string"},
    "signal": {"signal": "string"}}


def complain(text: str) -> int:
    os.write(2, f"host: {text}\n".encode())
    return 0


def main(words: List[str]) -> int:
    if words and (len(words) != 2 or words[0] != "--suite" or words[1] not in SUITES):
        complain("usage: host.py [--suite reasonix-v1|reasonix-v2]")
        return 2
    sys.setrecursionlimit(MAX_NESTING * 5)  # a level is up to three calls of a parser

    async def serve() -> int:
        return await Shim(words[1] if words else None).run()
    return asyncio.run(serve())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
