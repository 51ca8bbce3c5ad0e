// Each requirement of a sidecert suite as a test of node:test: copy this file among your tests, and call `certify`.
//
// Needs the program `sidecert` (on PATH, or named by the variable SIDECERT) and Node 20; nothing else. The check is made
// once, by the first of these tests that runs. A pattern for test names is of what is told; all is played.

import { execFile, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

/**
 * Makes each requirement of the suite a test.
 *
 * @param {object} it
 * @param {string} it.suite what to check against: "reasonix-v2"
 * @param {string[]} it.command the guest, as it is started; no shell reads it
 * @param {string[]} [it.options] any of `sidecert check guest`: ["--manifest", "reasonix-plugin.json"]
 * @param {string} [it.folder] where sidecert runs, and where relative paths start; by default where we do
 */
export function certify({ suite, command, options = [], folder = process.cwd() }) {
  let ids;
  try {
    ids = listed(suite, options, folder);
  } catch (why) {
    test("sidecert", () => fail(why.message));
    return;
  }
  let made;
  let told = false;
  const withCheck = (body) => async (t) => {
    made ??= checked(suite, command, options, folder).catch((why) => why);
    const found = await made;
    if (!(found instanceof Error)) return body(t, found);
    if (told) return t.skip("there was no check; the first of these tests says why");
    told = true;
    return fail(found.message);
  };
  for (const id of ids) test(id, withCheck((t, check) => requirement(t, check, check.rows.get(id))));
  test(`${suite} as a whole`, withCheck((_, check) => whole(check)));
}

function requirement(t, check, row) {
  if (row.verdict === "fail" && demanded(check, row)) fail(text(check, "FAIL", row));
  if (row.why === "cut_short") fail(cause(check, row));
  if (row.verdict === "fail" || row.verdict === "warn") {
    for (const line of text(check, row.verdict.toUpperCase(), row).split("\n")) t.diagnostic(line);
  } else if (row.verdict !== "pass") {
    t.skip(reason(row));
  }
}

/** Fails for what no requirement shows: a script that did not come to its end, a --require that did not pass. */
function whole(check) {
  const { exit_code: code, says } = check.report.outcome;
  const red = [...check.rows.values()].some(
    (row) => (row.verdict === "fail" && demanded(check, row)) || row.why === "cut_short",
  );
  if (![0, 1, 3].includes(code) || (code !== 0 && !red)) fail(`exit code ${code}: ${shown(says)}`);
}

function demanded(check, row) {
  return row.level === "must" || (row.level === "should" && check.report.strict);
}

/** What was expected, what came, the frames around it, and how to see it again. */
function text(check, word, row) {
  const block = check.blocks.find((it) => it.split("\n")[0] === `${word}  ${row.id}`);
  return (block ?? shown(`${row.text} Actual: ${row.actual}`)) + check.said;
}

/** That of a cause, with the first of those that it cut short; the others name that one. */
function cause(check, row) {
  const at = check.report.causes.findIndex((it) => it.cuts.includes(row.id));
  const block = check.blocks.filter((it) => it.startsWith("CUT SHORT  "))[at];
  if (at < 0 || block === undefined) return reason(row);
  const [first] = check.report.causes[at].cuts;
  return first === row.id ? block + check.said : `${reason(row)}\nsee ${first}`;
}

/** Why a requirement is undecided, and what would decide it. */
function reason(row) {
  const why = (row.why ?? row.verdict).replaceAll("_", " ");
  return shown([why, row.option, row.says].filter((it) => it !== undefined).join(": "));
}

/** The ids in the order of the suite. */
function listed(suite, options, folder) {
  // Another schema also says what there is.
  const contract = options.filter((it, at) => options[at - 1] === "--contract" || it.split("=")[0] === "--contract");
  const words = ["list", "requirements", "--suite", suite, "--format", "json", ...contract];
  const done = spawnSync(program(), words, { cwd: folder, env: environment(), encoding: "utf8", maxBuffer: Infinity });
  if (done.error) throw unrun(done.error);
  if (done.status !== 0) throw unmade(done.status ?? done.signal, done.stderr);
  return read(done.stdout, "the list").filter((row) => row.side === "guest").map((row) => row.id);
}

/** The check: its report, and what people read of it. */
async function checked(suite, command, options, folder) {
  const scratch = await mkdtemp(join(tmpdir(), "sidecert-"));
  const [json, people] = [join(scratch, "report.json"), join(scratch, "report.txt")];
  const reports = [`--report=json=${json}`, `--report=terminal=${people}`];
  const words = ["check", "guest", "--suite", suite, ...options, ...reports, "--", ...command];
  try {
    const { error, stderr } = await new Promise((resolve) => {
      const settings = { cwd: folder, env: environment(), maxBuffer: Infinity };
      execFile(program(), words, settings, (error, _, stderr) => resolve({ error, stderr })).stdin?.end();
    });
    if (typeof error?.code === "string") throw unrun(error);
    const written = await Promise.all([json, people].map((path) => readFile(path, "utf8").catch(() => undefined)));
    if (written.includes(undefined)) throw unmade(error?.code ?? error?.signal ?? 0, stderr);
    const report = read(written[0], "the report");
    const rows = new Map(report.requirements.map((row) => [row.id, row]));
    const said = lines(stderr).map((line) => `\n${line}`).join("");
    return { report, rows, blocks: written[1].split("\n\n"), said };
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function program() {
  return process.env.SIDECERT || "sidecert";
}

/** What node says to its tests is not for the guest. */
function environment() {
  const { NODE_TEST_CONTEXT: _, ...rest } = process.env;
  return rest;
}

function unrun(error) {
  return new Error(`there was no check: ${program()} cannot be run: ${error.code}; the variable SIDECERT can say where it is`);
}

function unmade(code, said) {
  return new Error([`there was no check: sidecert ended with the exit code ${code}`, ...lines(said)].join("\n"));
}

function lines(said) {
  return said.split("\n").filter((line) => line.trim()).map(shown);
}

function read(text, what) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`there was no check: ${what} of sidecert is no JSON: ${shown(error.message)}`);
  }
}

/** Nothing that a guest says moves a cursor or begins a line. */
function shown(text) {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (it) => `\\u{${it.codePointAt(0).toString(16)}}`);
}

/** Fails a test with a text; where that happened in this file is nobody's interest. */
function fail(text) {
  const error = new Error(text);
  error.stack = text;
  throw error;
}
