#!/usr/bin/env python3
"""A guest whose model does what the last word of the user says, so that a test can bring up whatever it needs.

    python3 -I -S obedient.py [PLAY]

PLAY `refuses` fails the handshake. It is no example to start from (`sidecert init guest` writes one); it takes what
the released host sends and checks little. v2 only.
"""
import json
import os
import subprocess
import sys

NAME = os.environ.get("REASONIX_PLUGIN_NAME", "")
MODEL = {"ref": f"plugin/{NAME}/sample/echo", "model": "echo", "efforts": ["low", "high"], "defaultEffort": "low",
         "reasoning": True}
USAGE = {"promptTokens": 3, "completionTokens": 3, "totalTokens": 6, "reasoningTokens": 0,
         "cacheHitTokens": 0, "cacheMissTokens": 3}
LAST = [{"type": "usage", "usage": USAGE}, {"type": "done"}]
CALLS = {"list": ("ls", '{"path":"."}'), "write": ("write_file", '{"path":"made.txt","content":"made"}')}
SELECT = {"key": "colour", "label": "Which?", "kind": "select", "options": ["red", "blue"]}
SURE = {"key": "sure", "label": "Sure?", "kind": "confirm"}
TYPED = {"key": "value", "label": "What?", "kind": "input"}
MANY = {"key": "many", "label": "Which ones?", "kind": "multiselect", "options": ["x", "y", "z"]}
SURFACES = {"status": {"label": "Ready"}, "card": {"title": "A card", "markdown": "its *text*"},
            "form": {"title": "A form", "fields": [SELECT]}}
PROMPTS = {"confirm": [], "select": [SELECT], "input": [TYPED], "multiselect": [MANY], "two": [SELECT, SURE]}


class Guest:
    def __init__(self):
        self.session, self.asked, self.hanging, self.submitted, self.effort = {}, 0, None, None, None

    def run(self):
        for frame in frames():
            self.take(frame)

    def take(self, frame):
        if "method" not in frame or "id" not in frame:
            return  # a notification, or an answer that nobody waits for
        served = getattr(self, "on_" + frame["method"].split("/", 1)[1].replace("/", "_"), None)
        then = served(frame["params"], lambda **answer: send({"id": frame["id"], **answer}))
        if then:
            then()

    def on_initialize(self, params, answer):
        if "refuses" in sys.argv:
            data = {"reason": "unsupported_version", "retryable": False}
            return answer(error={"code": -32000, "message": "this guest speaks no version", "data": data})
        self.session = {name: params["session"][name] for name in ("sessionId", "generation")}
        answer(result={"protocolVersion": params["protocolVersion"], "name": "obedient", "version": "0.1.0",
                       "stateSchemaVersion": 1, "subscriptions": params["manifest"].get("intercepts", []),
                       "replaces": [], "providers": [MODEL], "uiActions": [{"actionId": "demo", "label": "Demo"}]})

    def on_shutdown(self, params, answer):
        answer(result={"accepted": True})

    def on_intercept(self, params, answer):
        # A large payload is elsewhere.
        is_forbidden = params["event"] == "input.receive" and "forbidden" in json.dumps(params.get("payload"))
        block = {"decision": "block", "reason": "that word is forbidden"}
        answer(result=block if is_forbidden else {"decision": "continue"})

    def on_ui_action(self, params, answer):
        answer(result={"accepted": True, "message": "did " + json.dumps(params.get("args"))})

    def on_ui_submit(self, params, answer):
        self.submitted = params["values"]
        answer(result={"accepted": True})

    def on_provider_catalog(self, params, answer):
        answer(result={"providers": [{**MODEL, "contextWindow": 400000, "tools": True}]})

    def on_provider_stream_cancel(self, params, answer):
        answer(result={"cancelled": self.hanging is not None})
        if self.hanging is not None:
            end = {"streamId": params["streamId"], "lastSeq": self.hanging, "interrupted": True}
            send({"method": "extension/provider/stream/end", "params": end})
            self.hanging = None

    def on_provider_stream_open(self, params, answer):
        answer(result={"accepted": True})
        self.effort = params.get("effort")
        messages = params["request"]["messages"]
        said = [message["content"] for message in messages if message["role"] == "user"][-1]
        word = "called" if messages[-1]["role"] == "tool" else (said.split() or [""])[-1]
        return lambda: self.say(params["streamId"], params["seqBase"], self.obey(word, said), word != "hang")

    def obey(self, word, said):
        """What the model says to this: chunks."""
        if word in CALLS:
            name, arguments = CALLS[word]
            return [{"type": "tool_call", "toolCall": {"id": "call-1", "name": name, "arguments": arguments}}]
        if word in SURFACES:
            self.ask("host/ui/publish", surfaceId="s-" + word, kind=word, payload=SURFACES[word])
        if word in PROMPTS:
            kind = "select" if word == "two" else word
            payload = {"title": "A title", "message": "Really?", "fields": PROMPTS[word]}
            answer = self.ask("host/ui/request", surfaceId="p-" + word, kind=kind, payload=payload)
            return text("answer " + json.dumps(answer.get("result")))
        told = {
            "called": lambda: "the tool was called", "hang": lambda: "begun", "pid": os.getpid,
            "child": lambda: subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL,
                                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid,
            "generation": lambda: self.session["generation"], "effort": lambda: self.effort,
            "submitted": lambda: json.dumps(self.submitted),
            "environment": lambda: json.dumps(dict(os.environ)),
        }
        return text(str(told[word]()) if word in told else "echo " + said)

    def say(self, stream, first, chunks, ends):
        chunks = chunks + (LAST if ends else [])
        for seq, chunk in enumerate(chunks, first):
            send({"method": "extension/provider/stream/chunk",
                  "params": {"streamId": stream, "seq": seq, "chunk": chunk}})
        last = first + len(chunks) - 1
        if ends:
            send({"method": "extension/provider/stream/end", "params": {"streamId": stream, "lastSeq": last}})
        else:
            self.hanging = last

    def ask(self, method, **params):
        """Asks the host, and serves what comes before the answer."""
        self.asked += 1
        send({"id": self.asked, "method": method, "params": {**self.session, **params}})
        for frame in frames():
            if "method" not in frame and frame.get("id") == self.asked:
                return frame
            self.take(frame)
        raise EOFError("the host went away before it answered")


def text(said):
    return [{"type": "text", "text": said}]


def frames():
    return (json.loads(line) for line in iter(sys.stdin.readline, "") if line.strip())


def send(frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}, separators=(",", ":")) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    Guest().run()
