// Drives shims that are written with sidecert-shim.mjs, that of docs/host-shim.md first: `node --test`, with this file.
//
// Nothing sleeps, and every wait is bounded.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const PATIENCE = 20_000;
const LIBRARY = new URL("sidecert-shim.mjs", import.meta.url);
const GUIDE = new URL("../../docs/host-shim.md", import.meta.url);

const HOST = `
import { EventEmitter } from "node:events";
export class Host extends EventEmitter {
  constructor({ home, workspace }) { super(); this.said = [home !== "", workspace]; }
  async install(manifest, { enabled }) { this.said.push(manifest.name, enabled); }
  async start() { this.emit("warning", "it is slow", "one"); }
  turn(text, { model }) {
    if (text === "wait") return new Promise((end) => { this.end = () => end({ error: { message: "cancelled", reason: "r" } }); });
    if (text === "block") return { blocked: "no" };
    if (text === "fail") return { error: { message: "it went wrong" } };
    return { text: [text, model, ...this.said].join(" ") };
  }
  cancel() { this.end(); }
  reload() { throw new Error("it broke"); }
  async stop() { console.log("it stops"); }
}`;

const REST = `
import { Cannot, Refused, Shim } from "./sidecert-shim.mjs";
const shim = new Shim("n", "0");
shim.does("models", () => ["a", "b"]).does("compact", () => { throw new Refused("not now"); });
shim.does("admit", async ({ plugin }) => { throw new Cannot(plugin.name); });
shim.does("describe", () => { shim.found("log", shim.suite); return { text: "\\u2028", more: 1 }; });
await shim.run();`;

/** Sidecert's end of a shim. */
class Sidecert {
  #lines;
  #rest = "";

  static async of(shim) {
    const it = new Sidecert();
    it.folder = await mkdtemp(join(tmpdir(), "shim-"));
    await cp(LIBRARY, join(it.folder, "sidecert-shim.mjs"));
    await writeFile(join(it.folder, "shim.mjs"), shim);
    const host = join(it.folder, "node_modules", "my-host");
    await mkdir(host, { recursive: true });
    await writeFile(join(host, "package.json"), '{"name":"my-host","type":"module","exports":"./index.js"}');
    await writeFile(join(host, "index.js"), HOST);
    it.process = spawn(process.execPath, [join(it.folder, "shim.mjs")], { stdio: "pipe", timeout: PATIENCE });
    it.ended = new Promise((end) => it.process.on("close", end));
    it.errors = "";
    it.process.stderr.on("data", (data) => { it.errors += data; });
    it.#lines = it.process.stdout.setEncoding("utf8")[Symbol.asyncIterator]();
    it.hello = await it.says({ shim: 1, suite: "reasonix-v2", folder: it.folder });
    return it;
  }

  writes(line) {
    this.process.stdin.write(`${JSON.stringify(line)}\n`);
  }

  async reads() {
    while (!this.#rest.includes("\n")) {
      const { value, done } = await this.#lines.next();
      assert.ok(!done, `the shim ended: ${this.errors}`);
      this.#rest += value;
    }
    const end = this.#rest.indexOf("\n");
    const line = this.#rest.slice(0, end);
    this.#rest = this.#rest.slice(end + 1);
    return JSON.parse(line);
  }

  says(line) {
    this.writes(line);
    return this.reads();
  }

  async ends() {
    this.process.stdin.end();
    while (!(await this.#lines.next()).done); // whoever does not read does not hear of the end
    const code = await this.ended;
    await rm(this.folder, { recursive: true });
    return code;
  }
}

test("the example of the guide", async () => {
  const [, example] = (await readFile(GUIDE, "utf8")).match(/```js\n(.*?)```/s);
  const sidecert = await Sidecert.of(example);
  assert.deepEqual(sidecert.hello.does, ["start", "turn", "cancel", "reload", "stop"]);
  assert.deepEqual(sidecert.hello.tools, [{ name: "ls", readOnly: true, arguments: { path: "." } }]);
  const plugins = [{ name: "one", manifest: { name: "one" }, enabled: false }];
  assert.deepEqual(await sidecert.says({ ask: 1, do: "start", plugins, workspace: "/w" }), {
    shown: { as: "warning", text: "it is slow", plugin: "one" },
  });
  assert.deepEqual(await sidecert.reads(), { outcome: 1, done: true });
  const text = "hi m true /w one false";
  assert.deepEqual(await sidecert.says({ ask: 2, do: "turn", text: "hi", model: "m" }), { shown: { as: "text", text } });
  assert.deepEqual(await sidecert.reads(), { outcome: 2, done: true, text });
  assert.deepEqual(await sidecert.says({ ask: 3, do: "turn", text: "block" }), { outcome: 3, blocked: "no" });
  assert.deepEqual(await sidecert.says({ ask: 4, do: "turn", text: "fail" }), { outcome: 4, failed: "it went wrong" });
  assert.deepEqual(await sidecert.says({ ask: 5, do: "reload" }), { outcome: 5, failed: "Error: it broke" });
  sidecert.writes({ ask: 6, do: "turn", text: "wait" });
  sidecert.writes({ ask: 7, do: "cancel" });
  const outcomes = [await sidecert.reads(), await sidecert.reads()].sort((one, other) => one.outcome - other.outcome);
  assert.deepEqual(outcomes, [{ outcome: 6, failed: "cancelled", reason: "r" }, { outcome: 7, done: true }]);
  assert.equal(await sidecert.ends(), 0);
  assert.match(sidecert.errors, /it broke[^]*it stops\n$/);
});

test("a session that was stopped is not stopped again", async () => {
  const [, example] = (await readFile(GUIDE, "utf8")).match(/```js\n(.*?)```/s);
  const sidecert = await Sidecert.of(example);
  await sidecert.says({ ask: 1, do: "start", plugins: [], workspace: "/w" });
  assert.deepEqual(await sidecert.reads(), { outcome: 1, done: true });
  sidecert.writes({ ask: 2, do: "stop" });
  assert.equal(await sidecert.ends(), 0);
  assert.equal(sidecert.errors, "it stops\n");
});

test("the other outcomes", async () => {
  const sidecert = await Sidecert.of(REST);
  assert.deepEqual(await sidecert.says({ ask: 1, do: "models" }), { outcome: 1, done: true, models: ["a", "b"] });
  assert.deepEqual(await sidecert.says({ ask: 2, do: "compact" }), { outcome: 2, refused: "not now" });
  const name = "a\u2028b\u2029c\rd";
  assert.deepEqual(await sidecert.says({ ask: 3, do: "admit", plugin: { name } }), { outcome: 3, cannot: name });
  assert.deepEqual(await sidecert.says({ ask: 4, do: "describe" }), { found: { in: "log", text: "reasonix-v2" } });
  assert.deepEqual(await sidecert.reads(), { outcome: 4, done: true, text: "\u2028", more: 1 });
  assert.deepEqual(await sidecert.says({ ask: 5, do: "turn" }), { outcome: 5, cannot: "this shim does not do turn" });
  assert.equal(await sidecert.ends(), 0);
});

test("a host for one turn at a time", async () => {
  const sidecert = await Sidecert.of(`
import { Failed, Refused, Shim } from "./sidecert-shim.mjs";
const shim = new Shim("n", "0", [], { perTurn: true });
shim.does("start", ({ workspace }) => { if (workspace === "/none") throw new Refused("no room"); });
shim.does("turn", ({ text }) => {
  if (text !== "break") shim.started();
  if (text !== "hi") throw new Failed(text);
  return text;
});
shim.does("stop", () => {});
await shim.run();`);
  assert.equal(sidecert.hello.perTurn, true);
  const sessions = [
    ["/", "hi", { done: true }, { done: true, text: "hi" }],
    ["/", "fail", { done: true }, { failed: "fail" }],
    ["/", "break", { failed: "break" }, { failed: "break" }],
    ["/none", "hi", { refused: "no room" }, { refused: "no room" }],
  ];
  for (const [workspace, text, started, turned] of sessions) {
    // The turn is asked for together with the start, and it is the turn that tells what came of that.
    sidecert.writes({ ask: 1, do: "start", plugins: [], workspace });
    sidecert.writes({ ask: 2, do: "turn", text });
    assert.deepEqual(await sidecert.reads(), { outcome: 1, ...started });
    assert.deepEqual(await sidecert.reads(), { outcome: 2, ...turned });
    assert.deepEqual(await sidecert.says({ ask: 3, do: "stop" }), { outcome: 3, done: true });
  }
  sidecert.writes({ ask: 1, do: "start", plugins: [], workspace: "/" });
  sidecert.writes({ ask: 2, do: "stop" });
  assert.match((await sidecert.reads()).cannot, /none was asked for/);
  assert.deepEqual(await sidecert.reads(), { outcome: 2, done: true });
  assert.equal(await sidecert.ends(), 0);
});
