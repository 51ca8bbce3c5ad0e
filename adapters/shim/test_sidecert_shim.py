"""Drives shims that are written with sidecert_shim.py, that of docs/host-shim.md first: `python3 -I test_sidecert_shim.py`.

Nothing sleeps, and every wait is bounded.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
GUIDE = HERE.parent.parent / "docs/host-shim.md"
PATIENCE = 20

HOST = """#!{python} -I
import os, sys
if sys.argv[1:] == ["run", "fail"]:
    sys.exit("it went wrong")
if sys.argv[1:] == ["run", "break"]:
    sys.exit("plugins failed to start")
print("said", *sys.argv[1:], "with", *sorted(os.listdir(os.environ["MY_HOST_HOME"] + "/plugins")), end="")
"""

EVERYTHING = """
import asyncio, subprocess, sys, threading
from sidecert_shim import Blocked, Cannot, Failed, Refused, Shim
shim = Shim("n", "0")
cancelled = threading.Event()

@shim.does("start")
def start(**members):
    print("this goes to stderr")
    subprocess.run([sys.executable, "-c", "print('and this')"])
    shim.found("log", f"{shim.suite} {sorted(members)}")

@shim.does("turn")
def turn(text):
    if text == "wait":
        shim.shown("notice", "it waits", plugin="p")
        cancelled.wait()
        raise Failed("it was cancelled", "stream_cancelled")
    raise {"blocked": Blocked, "failed": Failed, "refused": Refused, "cannot": Cannot, "bug": ValueError}[text]("why")

@shim.does("cancel")
async def cancel():
    await asyncio.get_running_loop().run_in_executor(None, cancelled.set)

@shim.does("models")
def models(): return ["a", "b"]

@shim.does("answer")
def answer(prompt, values=None, cancelled=False): return {"text": f"{prompt} {values} {cancelled}"}

@shim.does("new-session")
def new(): raise Failed("no")

@shim.does("signal")
def signalled(signal): shim.found("log", f"SIG{signal}")

@shim.does("stop")
def stop(): shim.found("session", "it stops")

shim.run()
"""


class Sidecert:
    """Sidecert's end of a shim."""

    def __init__(self, folder, shim, **env):
        shutil.copy(HERE / "sidecert_shim.py", folder)
        path = pathlib.Path(folder, "shim.py")
        path.write_text(shim, encoding="utf-8")
        self.process = subprocess.Popen([sys.executable, "-B", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env={**os.environ, **env})
        self.watchdog = threading.Timer(PATIENCE, self.process.kill)
        self.watchdog.start()
        self.hello = self.says({"shim": 1, "suite": "reasonix-v2", "folder": str(folder), "more": 1})

    def writes(self, line):
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()

    def reads(self):
        return json.loads(self.process.stdout.readline())

    def says(self, line):
        self.writes(line)
        return self.reads()

    def ends(self):
        """The rest of its output, of its stderr, and its exit code."""
        out, err = self.process.communicate(timeout=PATIENCE)
        self.watchdog.cancel()
        return out, err, self.process.returncode


class Shims(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def test_the_example_of_the_guide(self):
        host = pathlib.Path(self.folder, "my-host")
        host.write_text(HOST.replace("{python}", sys.executable), encoding="utf-8")
        host.chmod(0o755)
        example, = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
        sidecert = Sidecert(self.folder, example, PATH=self.folder + os.pathsep + os.environ["PATH"])
        self.assertEqual(sidecert.hello, {
            "shim": 1, "name": "my-host", "version": "1.2", "does": ["start", "turn", "stop"],
            "tools": [{"name": "ls", "readOnly": True, "arguments": {"path": "."}}], "perTurn": True})
        plugin = {"name": "one", "manifest": {"a": 1}, "enabled": True}
        ask = {"ask": 1, "do": "start", "plugins": [plugin], "workspace": self.folder}
        text, number = "said run --model m hi with one", 0
        for turn, outcomes in [
            ({"text": "hi", "model": "m", "zzz": 1}, [{"done": True}, {"done": True, "text": text}]),
            ({"text": "fail"}, [{"done": True}, {"failed": "it went wrong\n"}]),
            ({"text": "break"}, [{"failed": "plugins failed to start\n"}] * 2),
        ]:
            # The turn is asked for together with the start, and it is the turn that tells what came of that.
            sidecert.writes({**ask, "ask": number})
            sidecert.writes({"ask": number + 1, "do": "turn", **turn})
            self.assertEqual(sidecert.reads(), {"outcome": number, **outcomes[0]})
            if "text" in outcomes[1]:
                self.assertEqual(sidecert.reads(), {"shown": {"as": "text", "text": text}})
            self.assertEqual(sidecert.reads(), {"outcome": number + 1, **outcomes[1]})
            self.assertEqual(sidecert.says({"ask": number + 2, "do": "stop"}), {"outcome": number + 2, "done": True})
            number += 3
        for manifest in (manifests := list(pathlib.Path(self.folder).glob("*/plugins/one/reasonix-plugin.json"))):
            self.assertEqual(json.loads(manifest.read_text(encoding="utf-8")), {"a": 1})
        self.assertEqual(len(manifests), 3)
        sidecert.writes({**ask, "ask": number})
        sidecert.writes({"ask": number + 1, "do": "stop"})
        self.assertIn("none was asked for", sidecert.reads()["cannot"])
        self.assertEqual(sidecert.reads(), {"outcome": number + 1, "done": True})
        self.assertEqual(sidecert.ends(), (b"", b"", 0))

    def test_what_cannot_be_prepared_has_no_turn(self):
        sidecert = Sidecert(self.folder, """
from sidecert_shim import Refused, Shim
shim = Shim("n", "0", per_turn=True)

@shim.does("start")
def start(): raise Refused("no room")

@shim.does("turn")
def turn(text): return text

shim.run()
""")
        sidecert.writes({"ask": 1, "do": "start", "plugins": [], "workspace": "/"})
        sidecert.writes({"ask": 2, "do": "turn", "text": "hi"})
        self.assertEqual(sorted([sidecert.reads(), sidecert.reads()], key=lambda line: line["outcome"]),
                         [{"outcome": 1, "refused": "no room"}, {"outcome": 2, "refused": "no room"}])
        self.assertEqual(sidecert.ends()[2], 0)

    def test_every_outcome(self):
        sidecert = Sidecert(self.folder, EVERYTHING)
        self.assertEqual(sidecert.hello["does"], ["start", "turn", "cancel", "models", "answer", "new-session", "signal", "stop"])
        found = sidecert.says({"ask": 1, "do": "start", "plugins": [], "workspace": "/", "uiHost": "tui"})
        self.assertEqual(found, {"found": {"in": "log", "text": "reasonix-v2 ['plugins', 'uiHost', 'workspace']"}})
        self.assertEqual(sidecert.reads(), {"outcome": 1, "done": True})
        for text in ("blocked", "failed", "refused", "cannot"):
            self.assertEqual(sidecert.says({"ask": 2, "do": "turn", "text": text}), {"outcome": 2, text: "why"})
        self.assertEqual(sidecert.says({"ask": 2, "do": "turn", "text": "bug"}), {"outcome": 2, "failed": "ValueError: why"})
        self.assertEqual(sidecert.says({"ask": 3, "do": "models"}), {"outcome": 3, "done": True, "models": ["a", "b"]})
        self.assertEqual(sidecert.says({"ask": 4, "do": "answer", "prompt": "p", "cancelled": True})["text"], "p None True")
        self.assertEqual(sidecert.says({"ask": 5, "do": "new-session"}), {"outcome": 5, "failed": "no"})
        self.assertIn("cannot", sidecert.says({"ask": 6, "do": "compact"}))
        waits = sidecert.says({"ask": 7, "do": "turn", "text": "wait"})
        self.assertEqual(waits, {"shown": {"as": "notice", "text": "it waits", "plugin": "p"}})
        sidecert.writes({"ask": 8, "do": "cancel"})
        outcomes = [sidecert.reads(), sidecert.reads()]
        self.assertIn({"outcome": 7, "failed": "it was cancelled", "reason": "stream_cancelled"}, outcomes)
        self.assertIn({"outcome": 8, "done": True}, outcomes)
        out, err, code = sidecert.ends()
        self.assertEqual(json.loads(out), {"found": {"in": "session", "text": "it stops"}})
        self.assertEqual(code, 0)
        self.assertIn(b"this goes to stderr", err)
        self.assertIn(b"and this", err)
        self.assertIn(b"ValueError: why", err)

    def test_a_session_that_is_over_is_not_stopped_again(self):
        for ask, found in [({"do": "stop"}, b"it stops"), ({"do": "signal", "signal": "TERM"}, b"SIGTERM")]:
            sidecert = Sidecert(self.folder, EVERYTHING)
            sidecert.says({"ask": 1, "do": "start", "plugins": [], "workspace": "/"})
            sidecert.writes({"ask": 2, **ask})
            out, _, code = sidecert.ends()
            self.assertEqual((out.count(b"it stops") + out.count(b"SIGTERM"), out.count(found), code), (1, 1, 0))

    def test_a_word_that_is_none(self):
        done = subprocess.run([sys.executable, "-B", "-c", "from sidecert_shim import Shim\nShim('n', '0').does('dance')"], cwd=HERE,
                              capture_output=True, timeout=PATIENCE)
        self.assertIn(b"'dance' is none of start, stop", done.stderr)


if __name__ == "__main__":
    unittest.main()
