"""What a shim for sidecert needs besides your host: copy this file, and say what your host does for each word.

    from sidecert_shim import Shim, Blocked, Failed

    shim = Shim("my-host", "1.2", tools=[{"name": "ls", "readOnly": True, "arguments": {"path": "."}}])

    @shim.does("turn")
    def turn(text, model=None):
        ...
        shim.shown("text", answer)
        return answer

    shim.run()

A function gets those members of the ask that it names. What it returns is done: a text, a list of models, members by
name, or nothing. `Blocked`, `Failed`, `Refused` and `Cannot` say that it did not come to that; any other exception is a
failure. Each ask has a thread of its own, so a `cancel` comes while a `turn` runs; what is `async` runs in one event
loop. With `per_turn`, a session of the host is one turn: what came of its `start` is told when a `turn` calls
`started`, or when that is over. docs/host-shim.md of sidecert says what the words mean. Needs Python 3.9 and nothing
else.
"""
from __future__ import annotations

import asyncio
import inspect
import json
import os
import threading
import traceback
from typing import Any, Callable, Dict, List, Optional

WORDS = ("start", "stop", "turn", "cancel", "reload", "action", "submit", "answer", "compact", "new-session", "models",
         "admit", "describe", "signal")
BOUNDS = ("start", "stop", "signal")  # what a session begins with, and what it is over with


class Outcome(Exception):
    """That something is not done: why, for whoever uses the host."""

    member = ""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)

    def members(self) -> Dict[str, Any]:
        return {self.member: str(self)}


class Blocked(Outcome):
    """A plugin blocked it; the text is what the user is told."""

    member = "blocked"


class Failed(Outcome):
    """It failed; the text is what the user is told, and `reason` the reason of the protocol if the host has it."""

    member = "failed"

    def __init__(self, text: str = "", reason: Optional[str] = None) -> None:
        super().__init__(text)
        self.reason = reason

    def members(self) -> Dict[str, Any]:
        return {**super().members(), **({"reason": self.reason} if self.reason else {})}


class Refused(Outcome):
    """The host does not do it now, or does not take it."""

    member = "refused"


class Cannot(Outcome):
    """This shim cannot make its host do that."""

    member = "cannot"


class Shim:
    """The two pipes to sidecert. `suite` and `folder` are there as soon as the first function is called.

    Whatever else of this process, or of one that it starts, writes to stdout writes to stderr from `run` on.
    """

    def __init__(self, name: str, version: str, tools: Optional[List[Dict[str, Any]]] = None,
                 per_turn: bool = False) -> None:
        self.name, self.version, self.tools, self.per_turn = name, version, tools or [], per_turn
        self.suite = self.folder = ""
        self._words: Dict[str, Callable[..., Any]] = {}
        self._has_session = False
        self._sessions: List[threading.Thread] = []  # what they begin and end with
        self._lock, self._out = threading.Lock(), -1
        self._prepared = threading.Event()  # with `per_turn`: no function for `start` is at work
        self._prepared.set()
        self._starting: Optional[int] = None  # that start, until it is known what came of it
        self._unprepared: Optional[Dict[str, Any]] = None  # what came of it at once
        self._loop: Optional[asyncio.AbstractEventLoop] = None

    def does(self, word: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """That the function below does what this word says."""
        if word not in WORDS:
            raise ValueError(f"{word!r} is none of {', '.join(WORDS)}")

        def keep(function: Callable[..., Any]) -> Callable[..., Any]:
            self._words[word] = function
            return function
        return keep

    def shown(self, how: str, text: str, **more: Any) -> None:
        """What the user is shown: as a `text`, `notice`, `warning`, `error`, `surface` or `prompt`."""
        self._write({"shown": {"as": how, "text": text, **more}})

    def found(self, where: str, text: str) -> None:
        """What the host keeps for itself: in its `log`, its `diagnostics`, or its `session`."""
        self._write({"found": {"in": where, "text": text}})

    def started(self) -> None:
        """With `per_turn`: the plugins of this session have started."""
        self._settle_start({"done": True})

    def run(self) -> None:
        """Serves sidecert until it closes our stdin, and then stops what runs."""
        with os.fdopen(os.dup(0), "rb") as lines:
            first = json.loads(lines.readline() or b"null")
            if type(first) is not dict or first.get("shim") != 1:
                raise SystemExit("this is a shim of version 1 for `sidecert check host --driver shim`")
            self.suite, self.folder = first["suite"], first["folder"]
            self._out = os.dup(1)
            os.dup2(2, 1)
            self._write({"shim": 1, "name": self.name, "version": self.version, "does": list(self._words),
                         "tools": self.tools, "perTurn": self.per_turn})
            for line in lines:
                if not line.strip():
                    continue
                ask = json.loads(line)
                if "ask" in ask:
                    if ask.get("do") == "start":
                        self._prepared.clear()
                    thread = threading.Thread(target=self._perform, args=(ask,), daemon=True)
                    thread.start()
                    self._sessions += [thread] if ask.get("do") in BOUNDS else []
        for thread in self._sessions:
            thread.join()
        if self._has_session and "stop" in self._words:
            self._outcome({"do": "stop"})

    def _perform(self, ask: Dict[str, Any]) -> None:
        word = ask.get("do") if self.per_turn else None
        if word in ("turn", "stop", "signal"):
            self._prepared.wait()
        outcome = self._unprepared if word == "turn" and self._unprepared else self._outcome(ask)
        if word == "start":
            self._starting, self._unprepared = ask["ask"], None if "done" in outcome else outcome
            if self._unprepared:
                self._settle_start(outcome)
            return self._prepared.set()
        if word == "turn":
            self._settle_start(outcome if "failed" in outcome else {"done": True})
        elif word == "stop":
            self._settle_start({"cannot": "a session of this host begins with a turn, and none was asked for"})
        self._write({"outcome": ask["ask"], **outcome})

    def _settle_start(self, outcome: Dict[str, Any]) -> None:
        with self._lock:
            number, self._starting = self._starting, None
        if number is not None:
            self._write({"outcome": number, **outcome})

    def _outcome(self, ask: Dict[str, Any]) -> Dict[str, Any]:
        word = ask.get("do")
        function = self._words.get(word)
        if function is None:
            return {"cannot": f"this shim does not do {word}"}
        try:
            known = inspect.signature(function).parameters.values()
            takes_all = any(it.kind is it.VAR_KEYWORD for it in known)
            names = {it.name for it in known if it.kind is not it.POSITIONAL_ONLY}
            members = {name: ask[name] for name in ask if name not in ("ask", "do") and (takes_all or name in names)}
            done = function(**members)
            if inspect.isawaitable(done):
                done = asyncio.run_coroutine_threadsafe(awaited(done), self._event_loop()).result()
        except Outcome as outcome:
            return outcome.members()
        except Exception as error:
            traceback.print_exc()
            return {"failed": f"{type(error).__name__}: {error}"}
        if word in BOUNDS:
            self._has_session = word == "start"
        named = {"text": done} if isinstance(done, str) else {"models": done} if isinstance(done, list) else done
        return {"done": True, **(named or {})}

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, daemon=True).start()
        return self._loop

    def _write(self, line: Dict[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        with self._lock:
            while data:
                try:
                    data = data[os.write(self._out, data):]
                except BrokenPipeError:
                    return  # nobody listens any more; the end of stdin follows


async def awaited(work: Any) -> Any:
    return await work
