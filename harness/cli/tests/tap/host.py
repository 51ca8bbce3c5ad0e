"""A small host: runs the guest that its arguments name, goes through one session with it, and ends in order.

The variable INITIALIZE holds what it begins with.
"""

import json
import os
import subprocess
import sys

guest = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(**frame):
    guest.stdin.write(json.dumps({"jsonrpc": "2.0", **frame}).encode() + b"\n")
    guest.stdin.flush()


def answer(id):
    """Reads to the answer under this id."""
    for line in guest.stdout:
        frame = json.loads(line)
        if frame.get("id") == id and "method" not in frame:
            return frame
    sys.exit("the guest ended without an answer")


send(id=1, method="extension/initialize", params=json.loads(os.environ["INITIALIZE"]))
assert "result" in answer(1)
send(method="extension/initialized", params={})
send(id=2, method="extension/provider/stream/cancel", params={"streamId": "es_0123456789abcdef01234567"})
answer(2)
send(id=3, method="extension/shutdown", params={"timeoutMillis": 5000})
answer(3)
guest.stdin.close()
for _ in guest.stdout:
    pass
sys.exit(guest.wait())
