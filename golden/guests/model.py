#!/usr/bin/env python3
"""A guest that is the model of a Reasonix host: it says the same on every run, so that a recording can be made again.

    python3 -I -S model.py PLAY

PLAY is one of PLAYS below: what it rules on intercepts, and what its streams say. It is no example to start from
(`sidecert init guest` writes one); it takes what the released host sends and checks little. v2 only.
"""
import base64
import hashlib
import json
import sys

REF = "plugin/probe/acme/m1"
TEXT = [{"type": "text", "text": part} for part in ("Hello", " from", " the golden guest.")]
USAGE = {"promptTokens": 3, "completionTokens": 3, "totalTokens": 6, "reasoningTokens": 0,
         "cacheHitTokens": 0, "cacheMissTokens": 3}
CALL = {"type": "tool_call", "toolCall": {"id": "call-1", "name": "ls", "arguments": '{"path":"."}'}}
LAST = [{"type": "usage", "usage": USAGE}, {"type": "done"}]
CARD = {"surfaceId": "golden-card", "kind": "card", "payload": {"title": "Golden", "markdown": "A *card*."}}

# What each play rules at a point (else it goes on), the chunks of its streams one after the other (the last one is
# said again), and what it publishes with the first.
PLAYS = {
    "plain": {},
    "replace": {"rules": {"input.receive": {"decision": "replace", "replacement": {"text": "list the files here"}}},
                "streams": [[CALL] + LAST, TEXT + LAST]},
    "block": {"rules": {"input.receive": {"decision": "block", "reason": "the golden guest blocks every input"}}},
    "fail": {"refuses": True},
    "card": {"publishes": [CARD]},
}


class Guest:
    def __init__(self, play):
        self.rules, self.streams = play.get("rules", {}), list(play.get("streams", [TEXT + LAST]))
        self.refuses, self.surfaces = play.get("refuses", False), list(play.get("publishes", []))
        self.session, self.asked = {}, 0

    def run(self):
        for frame in frames():
            self.take(frame)

    def take(self, frame):
        method, params = frame.get("method"), frame.get("params", {})
        if method is None or "id" not in frame:
            return  # a notification, or an answer that nobody waits for
        served = getattr(self, "on_" + method.replace("/", "_"), None)
        if served is None:
            data = {"reason": "unknown_method", "retryable": False}
            error = {"code": -32601, "message": "no such method", "data": data}
            return send({"id": frame["id"], "error": error})
        then = served(params, lambda result: send({"id": frame["id"], **result}))
        if then:
            then()

    def on_extension_initialize(self, params, answer):
        if self.refuses:
            return answer({"error": {"code": -32000, "message": "the golden guest speaks no version",
                                     "data": {"reason": "unsupported_version", "retryable": False}}})
        self.session, manifest = params["session"], params["manifest"]
        answer({"result": {"protocolVersion": params["protocolVersion"], "name": "probe", "version": "0.1.0",
                           "stateSchemaVersion": 1, "subscriptions": manifest.get("intercepts", []),
                           "replaces": [], "providers": [{"ref": REF, "model": "m1"}]}})

    def on_extension_shutdown(self, params, answer):
        answer({"result": {"accepted": True}})

    def on_extension_intercept(self, params, answer):
        for descriptor in params.get("externalized", []):
            self.read(descriptor)
        answer({"result": self.rules.get(params["event"], {"decision": "continue"})})

    def on_extension_provider_catalog(self, params, answer):
        answer({"result": {"providers": [{"ref": REF, "model": "m1", "displayName": "M1", "contextWindow": 400000,
                                          "tools": True}]}})

    def on_extension_provider_stream_open(self, params, answer):
        answer({"result": {"accepted": True}})
        chunks = self.streams.pop(0) if len(self.streams) > 1 else self.streams[0]
        stream, first = params["streamId"], params["seqBase"]

        def say():
            for surface in self.surfaces:
                session = {name: self.session[name] for name in ("sessionId", "generation")}
                self.ask("host/ui/publish", {**surface, **session})
            self.surfaces = []
            for seq, chunk in enumerate(chunks, first):
                notify("extension/provider/stream/chunk", {"streamId": stream, "seq": seq, "chunk": chunk})
            notify("extension/provider/stream/end", {"streamId": stream, "lastSeq": first + len(chunks) - 1})
        return say

    def on_extension_provider_stream_cancel(self, params, answer):
        answer({"result": {"cancelled": False}})

    def read(self, descriptor):
        """Reads a content to its end, page by page, and sees that it is what was promised."""
        content, offset = b"", 0
        while offset is not None:
            page = self.ask("host/content/read", {"contentRef": descriptor["contentRef"], "offset": offset})["result"]
            content += base64.b64decode(page["dataBase64"])
            offset = page.get("nextOffset")
        assert hashlib.sha256(content).hexdigest() == descriptor["sha256"], "the content is another"

    def ask(self, method, params):
        """Asks the host, and serves what comes before the answer."""
        self.asked += 1
        send({"id": self.asked, "method": method, "params": params})
        for frame in frames():
            if "method" not in frame and frame.get("id") == self.asked:
                return frame
            self.take(frame)
        raise EOFError("the host went away before it answered")


def frames():
    return (json.loads(line) for line in iter(sys.stdin.readline, "") if line.strip())


def notify(method, params):
    send({"method": method, "params": params})


def send(frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}, separators=(",", ":"), ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Guest(PLAYS[sys.argv[1]]).run()
