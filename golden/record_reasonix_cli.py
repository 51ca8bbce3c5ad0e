#!/usr/bin/env python3
"""Records the released Reasonix CLI as a host, and redacts what it said: with `sidecert tap` before a guest of ours, and
with `sidecert check host`.

    cargo build --workspace && python3 golden/record_reasonix_cli.py --sidecert target/debug/sidecert

It installs the CLI with `npm` into a cache folder, drives it in throw-away homes, and writes the recordings and their
part of golden/recordings/provenance.toml. `--raw DIR` keeps what the tap recorded as it was, with what was found wrong
in it, and writes nothing else. Exit code 75: there is no npm, or the registry cannot be reached.
"""
import argparse
import datetime
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

PACKAGE, VERSION = "@reasonix/cli-linux-x64", "1.38.11"
EXECUTABLE_SHA256 = "d555069295fa8c9b87dbad3a4ea52758b587843710adf7cad47d130fec691d21"
SUITE = "reasonix-v2"
SET = f"reasonix-cli-{VERSION}"
MODEL = "plugin/probe/acme/m1"
WITHIN = 60  # seconds that one scenario may take
CHECK_WITHIN = 600
INSTALL_WITHIN = 180
UNREACHABLE = 75
OFFLINE = ("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|"
           "ENOTCACHED")
GOLDEN = Path(__file__).resolve().parent

# Name, play of the guest, points that it intercepts, words after `reasonix`, input, and the exit code of the host.
LARGE = "A line of a large input, of which only the size matters.\n" * 1132  # just above 64 KiB
SCENARIOS = [
    ("plain-turn", "plain", [], ["run", "--model", MODEL, "say hello"], "", 0),
    ("tool-call", "replace", ["input.receive", "tool.before", "tool.after"],
     ["run", "--model", MODEL, "--max-steps", "4", "say hello"], "", 0),
    ("blocked-input", "block", ["input.receive"], ["run", "--model", MODEL, "say hello"], "", 0),
    ("large-input", "plain", ["input.receive"], ["run", "--model", MODEL], LARGE, 0),
    ("failed-handshake", "fail", [], ["run", "--model", MODEL, "say hello"], "", 1),
    ("acp-card", "card", [], ["acp", "--model", MODEL], None, 0),
]

# The recording of a check, as it is named here; the rows that need what the host says in its own words, which is not
# kept; and the one place where texts are: what it shows of an answer is put together of what our guests said.
CHECKED = "acp-check"
CHECKED_SET = f"{SET}-acp"
SKIPPED = ["reasonix/host-content/*", "reasonix/host-processes/identity-prevails",
           "reasonix/host-interception/block-reason-told", "reasonix/host-security/stderr-masked",
           "reasonix/host-security/stderr-bounded", "reasonix/host-manifest/trust-in-*"]
KEPT = ["/outcome/text"]
# A recording says where a program works: this is there on every Linux.
STAGE = Path("/dev/shm/sidecert")


def install(cache):
    """The executable of the CLI, which `npm` puts into the cache folder if it is not there."""
    program = cache / "node_modules" / PACKAGE / "bin" / "reasonix"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            sys.exit(unreachable("there is no npm"))
        cache.mkdir(parents=True, exist_ok=True)
        words = [npm, "install", "--prefix", cache, "--no-audit", "--no-fund", "--no-save", "--ignore-scripts",
                 "--fetch-retries=1", f"{PACKAGE}@{VERSION}"]
        try:
            done = subprocess.run(words, cwd=cache, capture_output=True, text=True, timeout=INSTALL_WITHIN)
        except subprocess.TimeoutExpired:
            sys.exit(unreachable(f"npm took more than {INSTALL_WITHIN} s"))
        if done.returncode and re.search(OFFLINE, done.stderr):
            sys.exit(unreachable("the registry of npm"))
        if done.returncode:
            sys.exit(f"npm: {done.stderr.strip()}")
    if hashlib.sha256(program.read_bytes()).hexdigest() != EXECUTABLE_SHA256:
        sys.exit(f"{program} is not the executable of {VERSION}")
    return program


def unreachable(what):
    print(f"cannot be reached: {what}", file=sys.stderr)
    return UNREACHABLE


class Scenario:
    """One host in a home of its own, and what was recorded of it."""

    def __init__(self, row, program, sidecert, folder):
        self.name, self.play, self.points, self.words, self.input, self.code = row
        self.program, self.sidecert, self.folder = program, sidecert, folder
        self.record, self.findings = folder / "record.ndjson", folder / "findings.txt"

    def run(self):
        """Drives the host to its end: its exit code, and what it printed."""
        home, plugin, workspace = (self.folder / name for name in ("home", "plugin", "workspace"))
        for folder in (home / ".reasonix", plugin, workspace):
            folder.mkdir(parents=True)
        (workspace / "a-file.txt").write_text("ours\n")
        tap = ["tap", "--record", str(self.record), "--suite", SUITE, "--judge", "--findings", str(self.findings),
               "--", sys.executable, "-I", "-S", str(GOLDEN / "guests" / "model.py"), self.play]
        manifest = {
            "apiVersion": "reasonix.io/plugin/v2", "name": "probe", "version": "0.1.0", "description": "probe",
            "contributes": {},
            "runtime": {"command": str(self.sidecert), "args": tap, "env": {}, "required": True, "priority": 0,
                        "intercepts": self.points, "replaces": [],
                        "capabilities": ["interceptors", "providers", "ui"]}}
        (plugin / "reasonix-plugin.json").write_text(json.dumps(manifest))
        package = {"name": "probe", "source": str(plugin), "root": str(plugin), "version": "0.1.0",
                   "manifestKind": "reasonix", "enabled": True}
        (home / ".reasonix" / "plugin-packages.json").write_text(json.dumps({"version": 1, "plugins": [package]}))
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "DO_NOT_TRACK": "1",
                       "REASONIX_TELEMETRY": "off", "REASONIX_LANG": "en", "LANG": "C.UTF-8"}
        host = subprocess.Popen([self.program, *self.words], cwd=workspace, env=environment, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        late = threading.Timer(WITHIN, host.kill)
        late.start()
        try:
            said = converse(host, str(workspace)) if self.input is None else ""
            out, err = host.communicate(self.input)
        finally:
            late.cancel()
            host.kill()
            host.wait()
        return host.returncode, said + out, err


def converse(host, workspace):
    """Is the editor of an `acp` host for one prompt; gives what the host said."""
    said = []

    def ask(number, method, params):
        host.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        host.stdin.flush()
        for line in iter(host.stdout.readline, ""):
            said.append(line)
            frame = json.loads(line)
            if frame.get("id") == number and "method" not in frame:
                return frame["result"]
        raise EOFError(f"the host ended before it answered {method}")

    surfaces = {"_meta": {"reasonix.io": {"extensionSurface": {"supported": True}}}}
    ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": surfaces})
    session = ask(2, "session/new", {"cwd": workspace, "mcpServers": []})["sessionId"]
    ask(3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "show a card"}]})
    return "".join(said)


def check(program, sidecert, folder):
    """Checks the host in `acp` mode, and redacts the recording, of which the verdicts must not change: the command, and
    the new recording."""
    options = ["check", "host", "--suite", SUITE, "--seed", "1", "--driver", "reasonix-cli:acp", "--profile", "reference"]
    options += [word for row in SKIPPED for word in ("--skip", row)]
    STAGE.mkdir()
    try:
        shutil.copy(sidecert, STAGE / "sidecert")
        (STAGE / "reasonix").symlink_to(program)
        words = ["./sidecert", *options, "--quiet", "--record", folder / "run", "--", "./reasonix"]
        environment = {"PATH": os.environ["PATH"], "TMPDIR": str(STAGE.parent)}
        subprocess.run(words, cwd=STAGE, env=environment, check=True, timeout=CHECK_WITHIN)
    finally:
        shutil.rmtree(STAGE)
    keep = [word for pointer in KEPT for word in ("--keep", pointer)]
    redact = ["redact", "--side", "host", *keep]
    done = subprocess.run([sidecert, *redact, folder / "run", "--output", folder / "redacted"], check=True,
                          capture_output=True, text=True)
    if done.stderr:
        sys.exit(f"{CHECKED}: redacted, it says something else\n{done.stderr}")
    how = f"sidecert {shown(options)} -- reasonix; then sidecert {shown(redact)}"
    return how, folder / "redacted"


def shown(words):
    """The words of a command, as one would write them."""
    return " ".join(word if " " not in word and "*" not in word else f"'{word}'" for word in words)


def tapped(row):
    """The command of one scenario."""
    _, play, points, words, _, _ = row
    return (f"sidecert tap in front of golden/guests/model.py {play}; intercepts: {' '.join(points) or 'none'}; "
            f"reasonix {shown(words)}; then sidecert redact --side host")


def provenance(path, how, files, tool):
    """The entry of one recording."""
    how = f"{how}; by golden/record_reasonix_cli.py with {tool}; sha256 of the executable: {EXECUTABLE_SHA256}"
    digests = [f'"{file.name}" = "{hashlib.sha256(file.read_bytes()).hexdigest()}"' for file in sorted(files)]
    lines = ["[[recording]]", f'path = "{path}"', f'suite = "{SUITE}"',
             f'program = "{PACKAGE} {VERSION} (npm)"', 'role = "host"',
             f'made = "{datetime.datetime.now(datetime.timezone.utc).date()}"', f'how = "{how}"', "redacted = true",
             "", "[recording.sha256]", *digests]
    return "\n".join(lines) + "\n"


def write_provenance(entries):
    """Puts the entries in the place of those of the same path, in the order of paths."""
    path = GOLDEN / "recordings" / "provenance.toml"
    text = path.read_text() if path.exists() else "# Where each recording comes from.\n"
    head, *blocks = re.split(r"^(?=\[\[recording\]\])", text, flags=re.M)

    def of(block):
        return re.search(r'^path = "(.*)"', block, flags=re.M).group(1)
    new = {of(block): block for block in blocks + entries}
    path.write_text("\n".join(part.rstrip("\n") + "\n" for part in [head] + [new[name] for name in sorted(new)]))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sidecert", type=Path, required=True)
    options.add_argument("--cache", type=Path, default=GOLDEN.parent / "target" / "reasonix-cli")
    options.add_argument("--raw", type=Path)
    options.add_argument("--only", action="append", choices=[*(row[0] for row in SCENARIOS), CHECKED])
    given = options.parse_args()
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        sys.exit(unreachable(f"a release of the CLI for {platform.system()} {platform.machine()}"))
    program, sidecert = install(given.cache.resolve()), given.sidecert.resolve()
    tool = subprocess.run([sidecert, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    entries, output = [], GOLDEN / "recordings" / SET
    for row in SCENARIOS:
        if given.only and row[0] not in given.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            scenario = Scenario(row, program, sidecert, Path(folder))
            code, out, err = scenario.run()
            if code != scenario.code or not scenario.record.exists():
                sys.exit(f"{row[0]}: the host ended with {code}\n{out}\n{err}")
            if given.raw:
                given.raw.mkdir(parents=True, exist_ok=True)
                for text, ending in ((out, "stdout"), (err, "stderr")):
                    (given.raw / f"{row[0]}.{ending}").write_text(text)
                shutil.copy(scenario.record, given.raw / f"{row[0]}.ndjson")
                if scenario.findings.exists():
                    shutil.copy(scenario.findings, given.raw / f"{row[0]}.findings")
                continue
            output.mkdir(parents=True, exist_ok=True)
            to = output / f"{row[0]}.ndjson"
            new = Path(folder) / "redacted.ndjson"
            redact = [sidecert, "redact", "--suite", SUITE, "--side", "host", scenario.record, "--output", new]
            subprocess.run(redact, check=True)
            shutil.copyfile(new, to)
            entries.append(provenance(f"{SET}/{to.name}", tapped(row), [to], tool))
    if not given.raw and CHECKED in (given.only or [CHECKED]):
        with tempfile.TemporaryDirectory() as folder:
            how, run = check(program, sidecert, Path(folder))
            to = GOLDEN / "recordings" / CHECKED_SET
            shutil.rmtree(to, ignore_errors=True)
            shutil.copytree(run, to)
            entries.append(provenance(CHECKED_SET, how, list(to.iterdir()), tool))
    if entries:
        write_provenance(entries)


if __name__ == "__main__":
    main()
