"""A WebCodex plugin in Python that shares no code with sidecert: it adds, says again what it is told, and fails."""

import json
import sys

VERSION = "webcodex-plugin-v1"


def closed(properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


INTEGER = {"type": "integer"}
TEXT = {"type": "string", "maxLength": 4096}
TOOLS = [
    {
        "name": "add",
        "title": "Add",
        "inputSchema": closed({"a": INTEGER, "b": INTEGER}),
        "outputSchema": closed({"sum": INTEGER}),
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "echo",
        "description": "Says it again.",
        "inputSchema": closed({"text": TEXT}),
        "outputSchema": closed({"text": TEXT}),
        "annotations": {"readOnlyHint": True},
    },
    {"name": "fail", "inputSchema": {"type": "object"}},
]


class Refused(Exception):
    """A request that is refused, with the code and the message."""


def is_integer(value):
    return isinstance(value, int) and not isinstance(value, bool)


def completed(text, structured=None, is_error=False):
    result = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if structured is not None:
        result["structuredContent"] = structured
    return result


def call(params):
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(arguments, dict):
        raise Refused(-32602, "arguments must be an object")
    if name == "add":
        if set(arguments) != {"a", "b"} or not all(map(is_integer, arguments.values())):
            raise Refused(-32602, "a and b must be integers")
        total = arguments["a"] + arguments["b"]
        return completed(str(total), {"sum": total})
    if name == "echo":
        text = arguments.get("text")
        if set(arguments) != {"text"} or not isinstance(text, str) or len(text) > 4096:
            raise Refused(-32602, "text must be a string of at most 4096 characters")
        if any((ord(it) < 32 or 127 <= ord(it) < 160) and it not in "\t\n\r" for it in text):
            return completed("the text has a control character", {"text": ""}, True)
        return completed(text, {"text": text})
    if name == "fail":
        return completed("it fails, as it says", is_error=True)
    raise Refused(-32602, "no such tool")


def serve(method, params):
    if method == "initialize":
        if not isinstance(params, dict) or params.get("protocolVersion") != VERSION:
            raise Refused(-32602, "no such version")
        return {"protocolVersion": VERSION}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        if not isinstance(params, dict):
            raise Refused(-32602, "params must be an object")
        return call(params)
    raise Refused(-32601, "no such method")


def answer(line):
    try:
        request = json.loads(line.decode("utf-8"))
    except ValueError:
        return {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}}
    known = isinstance(request, dict) and is_integer(request.get("id"))
    own = request["id"] if known else None
    if not known or request.get("jsonrpc") != "2.0" or not isinstance(request.get("method"), str):
        return {"jsonrpc": "2.0", "id": own, "error": {"code": -32600, "message": "no request"}}
    try:
        return {"jsonrpc": "2.0", "id": own, "result": serve(request["method"], request.get("params"))}
    except Refused as refused:
        code, message = refused.args
        return {"jsonrpc": "2.0", "id": own, "error": {"code": code, "message": message}}


def main():
    for line in sys.stdin.buffer:
        text = json.dumps(answer(line), separators=(",", ":"), ensure_ascii=False)
        sys.stdout.buffer.write(text.encode("utf-8") + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
