"""What the host of host.py holds a plugin to: the contract, the documents that it does not name, what is masked
of a text, and what a manifest may say.
"""
from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Dict, List, Optional, Tuple

CONTRACTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../harness/proto/src/reasonix/contract")
MAX_NESTING = 10_000  # levels of arrays and objects in one frame
MAX_CALLED = 60_000  # milliseconds that a manifest may give a ruling
CAPABILITIES = ("interceptors", "strategies", "providers", "ui")
QUICK = ("input.receive", "tool.before", "tool.after", "permission.decision")  # 5 s; the others have 30 s
SLOT_OF = {
    "system_prompt.build": "system_prompt", "context.prepare": "context", "provider.request": "provider_request",
    "provider.response": "provider_response", "compaction.prepare": "compaction", "compaction.complete": "compaction",
    "permission.decision": "permission", "frontend.event": "frontend_events",
    **{f"session.{phase}": "session_policy" for phase in ("start", "end", "load", "save", "rotate")}}


class Failure(Exception):
    """Something failed: what the user is told, and the reason of the protocol where there is one."""

    def __init__(self, message: str, reason: Optional[str] = None) -> None:
        super().__init__(redacted(message))
        self.reason = reason


class Blocked(Exception):
    """A plugin blocked an operation."""

    def __init__(self, message: str) -> None:
        super().__init__(redacted(message))


class Refused(Exception):
    """The host does not do that, or not now."""


# --------------------------------------------------------------------------------------------- JSON


class Written(int):
    """An integer that int() would not give back as it was written; an id is echoed as text."""

    text: str


def read_int(text: str) -> int:
    if text != "-0" and len(text) < 20:
        return int(text)
    number = Written(text[:4000])  # nothing of the protocol is longer than 20 digits
    number.text = text
    return number


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


quick, deep = (json.JSONDecoder(parse_int=read_int, parse_constant=no_constant) for _ in range(2))
# From Python 3.12 on the quick scanner gives up on deep nesting, whatever the recursion limit; the other one does not.
deep.scan_once = json.scanner.py_make_scanner(deep)


def parse(data: bytes) -> Any:
    """One JSON document, or ValueError. What is no UTF-8 becomes U+FFFD; of two members of a name the last counts."""
    text = data.decode("utf-8", "replace")
    if text.count("[") + text.count("{") > MAX_NESTING:
        depth = 0
        for mark in re.finditer(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{\]}]', text, re.S):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark.group(), 0)
            if depth > MAX_NESTING:
                raise ValueError("nested too deeply")
    try:
        return quick.decode(text)
    except RecursionError:
        return deep.decode(text)


encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def dumps(value: Any) -> str:
    """Compact JSON. Half of a surrogate pair cannot be written, so it becomes U+FFFD."""
    try:
        return re.sub("[\ud800-\udfff]", "\ufffd", encode(value))
    except (ValueError, RecursionError):
        raise Failure("a value cannot be written as JSON", "protocol_error") from None


# ------------------------------------------------------------------------------------- the contract

# What stands in `payload`: the documents of the UI, then those of the seventeen points. A line is a name and its
# members; `?` marks one that may be absent. All are closed. `word` is text that may be blank but not empty, `text`
# is not blank, `object` is text that holds a JSON object, and a capital names another line or the contract's.
DOCUMENTS = """
status               label:text detail?string severity?info|warn|error progress?number
card                 title?string markdown?string text?string fields?[CardField] progress?number actions?[CardAction]
form                 title?string message?string fields:[FormField]
notification         title:text body?string severity?info|warn|error
CardField            key:text value:string
CardAction           actionId:text label:text
FormField            key:text label?string kind:confirm|input|select|multiselect required?bool default?any options?[string]
input.receive        text:word
agent.before_start   model?string toolCount?natural sessionId:word
system_prompt.build  prompt?string workspaceRoot:word
context.prepare      messages:[ProviderMessage]
provider.request     request:ProviderRequest
provider.response    text?string reasoning?string signature?string calls?[ProviderToolCall] usage?ProviderUsage
tool.before          name:word arguments:object
tool.after           name:word arguments:object result?string isError?bool
permission.decision  name:word arguments:object readOnly?bool hostDecision:allow|deny
compaction.prepare   messages:[ProviderMessage] guidance?string
compaction.complete  summary:word
session.start        sessionPath?string phase:start|
session.end          sessionPath?string phase:end|
session.load         sessionPath?string phase:load|
session.save         sessionPath?string phase:save|
session.rotate       sessionPath?string phase:rotate|
frontend.event       kind:word text?string detail?string
"""
PLAIN = {
    "string": {"type": "string"}, "text": {"type": "string", "minLength": 1}, "bool": {"type": "boolean"},
    "word": {"type": "string", "notEmpty": True}, "object": {"type": "string", "holdsObject": True}, "any": True,
    "number": {"type": "number"}, "natural": {"type": "integer", "minimum": 0}}
KINDS = {
    "object": lambda it: type(it) is dict, "array": lambda it: type(it) is list, "string": lambda it: type(it) is str,
    "boolean": lambda it: type(it) is bool, "integer": lambda it: type(it) in (int, Written),
    "number": lambda it: type(it) in (int, Written) or type(it) is float and math.isfinite(it)}


def documents() -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for line in DOCUMENTS.strip().split("\n"):
        name, *members = line.split()
        properties, required = {}, []
        for member in members:
            key, mark, kind = re.fullmatch(r"(\w+)([:?])(.+)", member).groups()
            inner = kind.strip("[]")
            enum = {"type": "string", "enum": [it for it in inner.split("|") if it]}
            schema = PLAIN.get(inner) or (enum if "|" in inner else {"$ref": f"#/$defs/{inner}"})
            properties[key] = {"type": "array", "items": schema} if kind[0] == "[" else schema
            required += [key] if mark == ":" else []
        found[name] = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return found


def holds_object(text: str) -> bool:
    try:
        return type(parse(text.encode("utf-8", "replace"))) is dict
    except ValueError:
        return False


class Contract:
    """A major of the protocol: its limits, its reasons, and whether a value is what it says."""

    def __init__(self, major: int) -> None:
        with open(os.path.join(CONTRACTS, f"v{major}.json"), encoding="utf-8") as file:
            tree = json.load(file)
        self.major, self.id, self.events = major, tree["protocolID"], tree["interceptEvents"]
        limits = tree["limits"]
        self.frame_bytes, self.object_bytes = limits["frameBytes"], limits["contentRefObjectBytes"]
        self.page_bytes, self.inline_bytes = limits["contentRefChunkBytes"], limits["externalizeFieldBytes"]
        self.reasons = {it["reason"]: (it["jsonRpcCode"], it["retryable"]) for it in tree["errors"]}
        self.methods, self.defs = tree["methods"], {**tree["$defs"], **documents()}

    def fault(self, schema: Any, value: Any, at: str = "") -> Optional[str]:
        """Why a value is not what its schema says, or None. A name stands for the document of that name."""
        if type(schema) is str:
            schema = {"$ref": schema}
        if schema is True:
            return f"{at} is null" if value is None else None
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.fault(self.defs[name], value, at) or self.beyond(name, value, at)
        kind = schema.get("type")
        if kind is None:  # anything, null too
            return None
        if not KINDS[kind](value) or "enum" in schema and value not in schema["enum"]:
            return f"{at or 'the value'} is not {'one of ' + ', '.join(schema['enum']) if 'enum' in schema else kind}"
        if kind == "integer" and not schema.get("minimum", -(1 << 63)) <= value < 1 << 63 + ("generation" in at):
            return f"{at} is out of range"
        if "minLength" in schema and not value.strip() or "notEmpty" in schema and not value:
            return f"{at} is empty"
        if "holdsObject" in schema and not holds_object(value):
            return f"{at} does not hold an object"
        if kind == "array":
            faults = (self.fault(schema["items"], item, f"{at}/{place}") for place, item in enumerate(value))
            return next(filter(None, faults), None)
        return self.members(schema, value, at) if kind == "object" else None

    def members(self, schema: Any, value: Dict[str, Any], at: str) -> Optional[str]:
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name in schema.get("required", ()):
            if name not in value:
                return f"{at}/{name} is missing"
        for name, member in value.items():
            if name not in known and rest is False:
                return f"{at}/{name[:80]} is unknown"
            fault = self.fault(known.get(name, rest), member, f"{at}/{name[:80]}")
            if fault or name == "generation" and member < 0:
                return fault or f"{at}/{name} is negative"
            if name == "sha256" and not re.fullmatch("[0-9a-f]{64}", member):
                return f"{at}/{name} is no SHA-256"
        return None

    @staticmethod
    def beyond(name: str, value: Any, at: str) -> Optional[str]:
        """What the schema cannot say."""
        if name == "ProviderChunk":
            if ("error" in value) != (value["type"] == "error"):
                return f"{at}/error does not go with the type"
            if value["type"] == "usage" and "usage" not in value:
                return f"{at}/usage is missing"
        if name == "ProviderToolSchema" and type(value["parameters"]) is not dict:
            return f"{at}/parameters is no object"
        return None


# ---------------------------------------------------------------------------------------- redaction

SECRETS = [(re.compile(pattern), by) for pattern, by in (
    (r"(?i)(\b[a-z][a-z0-9+.-]{0,15}://)[^\s/@]{1,512}@", r"\1****@"),
    (r"(?i)(\b(?:set-)?cookie[\"']?\s{0,9}[:=]\s{0,9})[^\r\n]+", r"\1****"),
    (r"(?i)([\"']?[\w-]{0,64}(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|password|passwd|[_-]pwd|"
     r"authorization)[\w-]{0,64}[\"']?\s{0,9}[:=]\s{0,9})(?:\"[^\"\r\n]*\"?|'[^'\r\n]*'?|(?:bearer|basic)\s+[^\s,;\"']+|[^\s,;&\"']+)",
     r"\1****"),
    (r"(?i)\b(bearer\s{1,9})[\w.~+/=-]{16,}", r"\1****"),
    (r"(?i)\b((?:api|access|private|secret)[ -]key(?: is)?\s{0,9}:?\s{0,9})[\w.~+/=-]{12,}", r"\1****"),
    (r"\b(?:sk|rk)-[\w-]{12,}", "****"), (r"\bgh[a-z]_\w{20,}|\bgithub_pat_\w{20,}", "****"),
    (r"\bxox[a-z]-[\w-]{16,}", "****"), (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}", "****"),
    (r"\beyJ[\w-]{4,}\.[\w-]+\.[\w-]*", "****"))]


def redacted(text: str) -> str:
    """A text without the credentials in it: before it is shown, logged, or told in an error."""
    for pattern, by in SECRETS:
        text = pattern.sub(by, text)
    return text


def redacted_all(value: Any) -> Any:
    """The same for every string of a document."""
    if type(value) is str:
        return redacted(value)
    if type(value) is list:
        return [redacted_all(item) for item in value]
    return {name: redacted_all(item) for name, item in value.items()} if type(value) is dict else value


# ---------------------------------------------------------------------------------------- manifests

RUNTIME = {
    "command": "a text", "args": "texts", "env": "texts by name", "required": "true or false", "priority": "-1000 to 1000",
    "intercepts": "points", "replaces": "slots", "capabilities": "capabilities", "timeoutMillis": "0 or more"}


def is_slot(name: str) -> bool:
    return name in SLOT_OF.values() or bool(
        re.fullmatch(r"tool:[^ \t\n]+|provider:(?:[^/\s]+/[^/\s]+|plugin/[^/\s]+/[^/\s]+/[^/\s]+)", name))


class Plugin:
    """An installed plugin. A manifest that the host does not take is refused, naming the member."""

    def __init__(self, contract: Contract, told: Dict[str, Any]) -> None:
        manifest = told.get("manifest")
        self.name = told.get("name", manifest.get("name") if type(manifest) is dict else None)
        self.is_started = told.get("enabled", True) is True and told.get("declared") != "project"
        self.manifest = manifest
        if not self.is_started:
            self.runtime: Optional[Dict[str, Any]] = None
            return
        if type(manifest) is not dict:
            raise Refused("the manifest is no object")
        v2 = ("provides", "requires") if contract.major > 1 else ()
        self.closed(manifest, ("apiVersion", "name", "version", "description", "contributes", "runtime", *v2), "")
        for name in (self.name, manifest.get("name", self.name)):
            if type(name) is not str or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
                raise Refused("/name is not the name of a plugin")
        api = manifest.get("apiVersion")
        exact = r"reasonix\.io/plugin/v1(\.\d+)?" if contract.major == 1 else r"reasonix\.io/plugin/v2"
        if (api is not None or contract.major > 1) and not (type(api) is str and re.fullmatch(exact, api)):
            raise Refused(f"/apiVersion {dumps(api)} is not supported")
        runtime = manifest.get("runtime")  # an older kind of manifest has none
        has_runtime = api is not None and "runtime" in manifest
        self.runtime = self.checked(contract, runtime, v2) if has_runtime else None

    @staticmethod
    def closed(value: Dict[str, Any], known: Any, at: str) -> None:
        for name in value:
            if name not in known:
                raise Refused(f"{at}/{name} is unknown")

    def checked(self, contract: Contract, runtime: Any, v2: Tuple[str, ...]) -> Dict[str, Any]:
        if type(runtime) is not dict:
            raise Refused("/runtime is no object")
        self.closed(runtime, (*RUNTIME, *v2), "/runtime")
        is_text, is_whole = (lambda it: type(it) is str and it.strip() != ""), (lambda it: type(it) in (int, Written))
        each = lambda of: lambda it: type(it) is list and all(type(item) is str and of(item) for item in it)
        rules = {
            "command": is_text, "args": each(is_text), "required": lambda it: type(it) is bool,
            "env": lambda it: type(it) is dict and all(is_text(key) and type(it[key]) is str for key in it),
            "priority": lambda it: is_whole(it) and -1000 <= it <= 1000,
            "timeoutMillis": lambda it: is_whole(it) and it >= 0,
            "intercepts": each(lambda it: it in contract.events), "replaces": each(is_slot),
            "capabilities": each(lambda it: it in CAPABILITIES)}
        if "command" not in runtime:
            raise Refused("/runtime/command is missing")
        for name, takes in rules.items():
            if name in runtime and not takes(runtime[name]):
                raise Refused(f"/runtime/{name} is not {RUNTIME[name]}: {dumps(runtime[name])[:200]}")
        for name, wire in zip(v2, ("CapabilityWire", "RequirementWire")):
            listed = runtime.get(name, self.manifest.get(name))
            items = {"type": "array", "items": {"$ref": wire}}
            if listed is not None and (fault := contract.fault(items, listed, f"/{name}")):
                raise Refused(fault)
            runtime = runtime if listed is None else {**runtime, name: listed}
        return runtime

    def lists(self, member: str) -> List[str]:
        return (self.runtime or {}).get(member, [])

    @property
    def is_required(self) -> bool:
        """Whoever owns a slot is, whatever its manifest says."""
        return bool((self.runtime or {}).get("required") or self.lists("replaces"))

    def millis(self, point: str) -> int:
        """How long it has for a ruling."""
        told = (self.runtime or {}).get("timeoutMillis", 0)
        return min(told, MAX_CALLED) if told else 5000 if point in QUICK else 30_000

    def described(self) -> str:
        trust = ("FULL TRUST: its process runs outside of the sandbox, with your environment and your rights.\n"
                 f"command: {self.runtime['command']}\nintercepts: {self.lists('intercepts')}\n"
                 f"replaces: {self.lists('replaces')}" if self.runtime else "It runs no process.")
        return redacted(f"{self.name}\n{trust}")
