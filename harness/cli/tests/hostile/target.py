"""A guest that is hostile in one way, named by its first argument, and conforms as far as its tests need otherwise.

Run as `python3 -I -S target.py MISDEED`. It knows no more of the protocol than what the host of the tests sends it.
"""

import base64
import json
import os
import subprocess
import sys
import threading
import urllib.parse

HOSTILE = (
    "\x1b[31m\x1b]0;owned\x07\x9b2J\r\u202eevil\u2066\u200b\ufeff\u2028 ::error::gone ##[group]x ##vso[task.x]"
    " <b>&amp;</b>]]><?xml?><script>alert(1)</script> \\x1b"
)
RESULTS = {
    "extension/shutdown": {"accepted": True},
    "extension/intercept": {"decision": "continue"},
    "extension/provider/stream/cancel": {"cancelled": False},
    "extension/provider/catalog": {"providers": []},
}


def write(text):
    data = text.encode() + b"\n"
    while data:
        data = data[os.write(1, data):]


def told(text):
    os.write(2, text.encode("utf-8", "replace"))


def disguises(secret):
    """The forms in which a secret may leave a program by accident."""
    plain = secret.encode()
    spelled = "".join(f"\\u{ord(letter):04x}" for letter in secret)
    coded = "".join(f"%{byte:02X}" for byte in plain)
    encoded = [base64.b64encode(b"xy"[:shift] + plain).decode() for shift in range(3)]
    return " ".join([secret, json.dumps(secret), spelled, coded, urllib.parse.quote(secret), *encoded])


def hostile_text(misdeed):
    if misdeed == "discloses":
        return disguises(os.environ["API_TOKEN"])
    return HOSTILE


def initialized(misdeed):
    name = hostile_text(misdeed) if misdeed in ("discloses", "shouts") else "hostile"
    return {"name": name, "version": name, "protocolVersion": "1", "stateSchemaVersion": 1,
            "subscriptions": ["input.receive"], "replaces": []}


def answer(misdeed, argument, frame):
    method = frame.get("method")
    if "id" not in frame or method is None or method == argument:
        return
    written = json.dumps(frame["id"])
    if misdeed == "wide-ids":
        write('{"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{}}')
        write('{"jsonrpc":"2.0","id":1e400,"method":"host/content/read","params":{}}')
    if type(frame["id"]) is not int:
        return write('{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no such id"}}')
    if misdeed == "nests":
        return write('{"jsonrpc":"2.0","id":%s,"result":%s}' % (written, "[" * 1_000_000 + "]" * 1_000_000))
    if misdeed == "talks-past-the-pipe":
        told("x" * (256 << 10))
    if misdeed in ("discloses", "shouts") and method != "extension/initialize":
        said = hostile_text(misdeed)
        told(said + "\n")
        error = {"code": -32603, "message": said, "data": {"reason": said, "retryable": False}}
        refusal = {"jsonrpc": "2.0", "id": frame["id"], "error": error}
        return write(json.dumps(refusal, ensure_ascii=misdeed != "shouts"))
    if method == "extension/initialize":
        result = initialized(misdeed)
    elif method == "extension/intercept" and "timeoutMillis" not in frame["params"]:
        error = '{"code":-32602,"message":"incomplete","data":{"reason":"invalid_params","retryable":false}}'
        return write('{"jsonrpc":"2.0","id":%s,"error":%s}' % (written, error))
    else:
        result = RESULTS.get(method, {})
    if misdeed == "under-text-ids":
        written = f'"{written}"'
    version = "" if misdeed == "without-version" else '"jsonrpc":"2.0",'
    # As it stands, not escaped: a report must do that itself.
    text = json.dumps(result, ensure_ascii=misdeed != "shouts")
    write('{%s"id":%s,"result":%s}' % (version, written, text))


THROUGH = ("conforms", "hangs", "talks-past-the-pipe")


def through(misdeed, argument):
    """Stands before a guest that conforms, and keeps from it what it is not to answer."""
    guest = os.path.join(os.path.dirname(__file__), "../../../../mock-sidecars/python/guest.py")
    behind = subprocess.Popen([sys.executable, "-I", "-S", guest], stdin=subprocess.PIPE)
    # When that one ends, so does this one, whatever is still being read.
    end = threading.Thread(target=lambda: os._exit(behind.wait()), daemon=True)
    end.start()
    kept, inside = b"", False
    asks = f'"method":"{argument}"'.encode()
    try:
        while chunk := os.read(0, 1 << 16):
            if misdeed == "talks-past-the-pipe":
                told("x" * (256 << 10))
            *lines, kept = (kept + chunk).split(b"\n")
            for line in lines:
                if inside or not (argument and asks in line and b'"id":' in line):
                    behind.stdin.write(line + b"\n")
                inside = False
            if len(kept) > 1 << 16:
                # A line this long is passed on as it comes: only the guest knows when it is too long.
                behind.stdin.write(kept)
                kept, inside = b"", True
            behind.stdin.flush()
        behind.stdin.write(kept)
        behind.stdin.close()
    except BrokenPipeError:
        pass
    end.join()


def main(misdeed, argument=None):
    if misdeed in THROUGH:
        return through(misdeed, argument)
    limit = 8 << 20
    for line in sys.stdin.buffer:
        if len(line) > limit + 1:
            return 1
        answer(misdeed, argument, json.loads(line))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
