"""Each requirement of a sidecert suite as a test: copy this file among your tests, and edit what follows.

Needs the program `sidecert` (on PATH, or named by the variable SIDECERT), Python 3.9 and pytest; nothing else. The check
is made once, by the first of these tests that runs, of those that are selected. `--collect-only` starts no guest.
"""

import functools
import json
import os
import pathlib
import subprocess
import tempfile
import warnings

import pytest

# ---- yours ----

SUITE = "reasonix-v2"
# The guest, as it is started; no shell reads it.
COMMAND = ["python3", "guest.py"]
# Any options of `sidecert check guest`, for example ["--manifest", "reasonix-plugin.json", "--exercise", "all"].
OPTIONS = []
# Where sidecert runs, and where relative paths start.
FOLDER = pathlib.Path(__file__).parent

# ---- the adapter ----


def pytest_generate_tests(metafunc):
    if "requirement" in metafunc.fixturenames:
        found = listed()
        ids = ["sidecert"] if isinstance(found, NoCheck) else found
        metafunc.parametrize("requirement", ids, ids=ids)


def test_requirement(requirement, request):
    check = made(request)
    row = check.rows[requirement]
    if row["verdict"] == "fail" and check.demands(row):
        pytest.fail(check.text("FAIL", row), pytrace=False)
    elif row["verdict"] in ("fail", "warn"):
        warnings.warn(Nonconformance(check.text(row["verdict"].upper(), row)))
    elif row.get("why") == "cut_short":
        pytest.fail(check.cause(row), pytrace=False)
    elif row["verdict"] != "pass":
        pytest.skip(reason(row))


def test_check_as_a_whole(request):
    """Fails for what no requirement shows: a script that did not come to its end, a --require that did not pass."""
    check = made(request)
    code, says = check.outcome["exit_code"], check.outcome["says"]
    if code not in (0, 1, 3) or (code != 0 and not check.is_red()):
        pytest.fail(f"exit code {code}: {shown(says)}", pytrace=False)


class Nonconformance(UserWarning):
    """Something did not hold that is not demanded: for example, only the reference implementation does it so."""


class NoCheck(Exception):
    """Why there is no report: what the program said, and with which exit code."""

    def __init__(self, code, said):
        lines = [shown(line) for line in said.splitlines() if line.strip()]
        ended = [] if code is None else [f"there was no check: sidecert ended with the exit code {code}"]
        super().__init__("\n".join([*ended, *lines]))
        self.is_told = False


class Check:
    """A check that was made: its report, and what people read of it."""

    def __init__(self, report, text, said):
        self.said = "".join(f"\n{shown(line)}" for line in said.splitlines() if line.strip())
        self.strict, self.outcome, self.causes = report["strict"], report["outcome"], report["causes"]
        self.rows = {row["id"]: row for row in report["requirements"]}
        self.blocks = text.split("\n\n")

    def demands(self, row):
        return row["level"] == "must" or (row["level"] == "should" and self.strict)

    def is_red(self):
        fails = (row["verdict"] == "fail" and self.demands(row) for row in self.rows.values())
        return any(fails) or any(row.get("why") == "cut_short" for row in self.rows.values())

    def text(self, word, row):
        """What was expected, what came, the frames around it, and how to see it again."""
        blocks = [block for block in self.blocks if block.split("\n")[0] == f"{word}  {row['id']}"]
        return (blocks[0] if blocks else shown(f"{row['text']} Actual: {row.get('actual')}")) + self.said

    def cause(self, row):
        """That of a cause, with the first of those that it cut short; the others name that one."""
        blocks = [block for block in self.blocks if block.startswith("CUT SHORT  ")]
        for cause, block in zip(self.causes, blocks):
            if row["id"] in cause["cuts"]:
                first = cause["cuts"][0]
                return block + self.said if row["id"] == first else f"{reason(row)}\nsee {first}"
        return reason(row)


def made(request):
    """The check. Where it could not be made, the first test says why, and no other passes."""
    items = [item for item in request.session.items if getattr(item, "module", None) is request.module]
    asked = [item.callspec.params["requirement"] for item in items if hasattr(item, "callspec")]
    found = listed()
    if not isinstance(found, NoCheck):
        found = checked(tuple(asked))
    if isinstance(found, NoCheck):
        if found.is_told:
            pytest.skip("there was no check; the first of these tests says why")
        found.is_told = True
        pytest.fail(str(found), pytrace=False)
    return found


@functools.lru_cache(maxsize=None)
def listed():
    """The ids in the order of the suite, or why they are not known."""
    # Another schema also says what there is.
    contract = [word for before, word in zip(["", *OPTIONS], OPTIONS) if "--contract" in (before, word.split("=")[0])]
    try:
        code, listing, said = sidecert("list", "requirements", "--suite", SUITE, "--format", "json", *contract)
        if code != 0:
            raise NoCheck(code, said)
        return [row["id"] for row in read(listing, "the list") if row["side"] == "guest"]
    except NoCheck as why:
        return why


@functools.lru_cache(maxsize=None)
def checked(asked):
    """The check of these requirements, or why there is none."""
    # What the options say themselves of --only is left as it is.
    narrowed = 0 < len(asked) < len(listed()) and not any(word.startswith("--only") for word in OPTIONS)
    only = [f"--only={id}" for id in asked] if narrowed else []
    with tempfile.TemporaryDirectory() as folder:
        report, text = pathlib.Path(folder, "report.json"), pathlib.Path(folder, "report.txt")
        options = [*OPTIONS, *only, f"--report=json={report}", f"--report=terminal={text}"]
        try:
            code, _, said = sidecert("check", "guest", "--suite", SUITE, *options, "--", *COMMAND)
            if not report.exists() or not text.exists():
                raise NoCheck(code, said)
            return Check(read(report.read_bytes(), "the report"), text.read_text(encoding="utf-8"), said)
        except NoCheck as why:
            return why


def sidecert(*words):
    """Runs the program: its exit code, and what it wrote."""
    program = os.environ.get("SIDECERT") or "sidecert"
    # What pytest says to its tests is not for the guest.
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    try:
        done = subprocess.run([program, *words], cwd=FOLDER, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    except OSError as error:
        says = f"there was no check: {program} cannot be run: {error.strerror}; the variable SIDECERT can say where it is"
        raise NoCheck(None, says) from None
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace")


def read(text, what):
    try:
        return json.loads(text)
    except ValueError as error:
        raise NoCheck(None, f"there was no check: {what} of sidecert is no JSON: {error}") from None


def reason(row):
    """Why a requirement is undecided, and what would decide it."""
    why = row["why"].replace("_", " ") if "why" in row else row["verdict"].replace("_", " ")
    return shown(": ".join([why, *(row[key] for key in ("option", "says") if key in row)]))


def shown(text):
    """Nothing that a guest says moves a cursor or begins a line."""
    return "".join(it if it.isprintable() else it.encode("unicode_escape").decode() for it in text)
