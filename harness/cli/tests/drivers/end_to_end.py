"""An end-to-end run of a host, as its authors have one: all plugins of a folder, one turn.

    python3 end_to_end.py PLUGINS HOST…

HOST is a host behind a shim, so that there is something to run; nothing of that is seen by whoever runs this.
"""

import json
import pathlib
import subprocess
import sys

plugins, *command = sys.argv[1:]
host = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def tell(line):
    print(json.dumps(line), file=host.stdin, flush=True)


def ask(number, **what):
    tell({"ask": number, **what})
    for line in host.stdout:
        if json.loads(line).get("outcome") == number:
            return


manifests = [json.loads(path.read_text()) for path in sorted(pathlib.Path(plugins).glob("*/reasonix-plugin.json"))]
assert [manifest["name"] for manifest in manifests] == ["one", "two"], manifests
tell({"shim": 1, "suite": "reasonix-v2", "folder": plugins})
host.stdout.readline()
installed = [{"name": it["name"], "enabled": True, "manifest": it} for it in manifests]
ask(1, do="start", workspace=plugins, plugins=installed)
ask(2, do="turn", text="Hello")
ask(3, do="stop")
host.stdin.close()
sys.exit(host.wait())
