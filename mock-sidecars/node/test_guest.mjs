// Drives guest.mjs through its pipes, as a host would: `node --test mock-sidecars/node/test_guest.mjs`.
//
// Nothing sleeps. A guest that hangs is killed by a watchdog, so every test is bounded.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const GUEST = fileURLToPath(new URL("guest.mjs", import.meta.url));
const LIMIT = 8 * 1024 * 1024;
const WATCHDOG_MS = 20_000;
const REF = "plugin/tested/sample/echo";
const MANIFEST = { capabilities: ["interceptors", "providers", "ui"], intercepts: ["input.receive", "tool.before"] };
const CONTINUE = { decision: "continue" };
const PLACE = { sessionId: "s", generation: 1 };

const initialize = (major = 1, more = {}) => ({
  protocolId: `reasonix.extension.v${major}`, protocolVersion: String(major), manifest: MANIFEST,
  session: { ...PLACE, workspaceRoot: "/w" },
  capabilities: { contentRefs: true, uiHost: "headless", protocolVersion: String(major) }, ...more,
});
const intercept = (payload, more = {}) => ({ event: "input.receive", payload, seq: 1, timeoutMillis: 5000, ...more });
const provoke = (mark, more) => intercept({ text: `sidecert:${mark}` }, more);
const open = (content, more = {}) => ({
  streamId: "es_1", providerRef: REF, seqBase: 1,
  request: { messages: [{ role: "user", content }], tools: [], maxTokens: 1 }, ...more,
});
const request = (id, method, params) => ({ jsonrpc: "2.0", id, method: `extension/${method}`, params });
const sha256 = (data) => createHash("sha256").update(data).digest("hex");

class Host {
  constructor(...flags) {
    const env = { ...process.env, REASONIX_PLUGIN_NAME: "tested" };
    const stdio = ["pipe", "pipe", "ignore"];
    this.child = spawn(process.execPath, [GUEST, ...flags], { env, stdio, timeout: WATCHDOG_MS });
    this.exit = once(this.child, "exit");
    this.child.stdin.on("error", () => {}); // a guest may end before it has read all
    this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  write(data) {
    this.child.stdin.write(data);
  }

  send(...frames) {
    this.write(frames.map((frame) => `${JSON.stringify(frame)}\n`).join(""));
  }

  async line() {
    const { done, value } = await this.lines.next();
    assert.ok(!done, "the guest has ended");
    return value;
  }

  async read() {
    return JSON.parse(await this.line());
  }

  async raw(line) {
    this.write(`${line}\n`);
    return this.read();
  }

  async ask(id, method, params) {
    this.send(request(id, method, params));
    return this.read();
  }

  async ready(major = 1, more = {}) {
    const answer = await this.ask(0, "initialize", initialize(major, more));
    this.send({ jsonrpc: "2.0", method: "extension/initialized", params: {} });
    return answer.result;
  }

  /** Closes stdin. What the guest still said, and its exit code. */
  async end() {
    this.child.stdin.end();
    return this.rest();
  }

  async rest() {
    const said = [];
    for (let next = await this.lines.next(); !next.done; next = await this.lines.next()) said.push(next.value);
    const [code] = await this.exit;
    return { said, code };
  }
}

/** A test with a guest of its own. */
function withGuest(name, flags, drive) {
  test(name, async () => {
    const host = new Host(...flags);
    try {
      await drive(host);
    } finally {
      host.child.stdin.destroy();
      host.child.stdout.destroy();
      host.child.kill();
      await host.exit;
    }
  });
}

const withReady = (name, drive) => withGuest(name, [], async (host) => {
  await host.ready();
  await drive(host);
});

function fails(answer, code, reason, id = 1) {
  const { id: under, error } = answer;
  assert.deepEqual([under, error?.code, error?.data?.reason], [id, code, reason], JSON.stringify(answer));
  return answer.error;
}

// ---- frames ----

for (const [bytes, served] of [[LIMIT, true], [LIMIT + 1, false]]) {
  withReady(`a frame of ${bytes} bytes is ${served ? "served" : "fatal"}`, async (host) => {
    const around = JSON.stringify(request(1, "zzz", { x: "" })).length + 1;
    host.write(`${JSON.stringify(request(1, "zzz", { x: "a".repeat(bytes - around) }))}\n`);
    const { said, code } = await host.end();
    assert.deepEqual([said.length, code], served ? [1, 0] : [0, 1]);
  });
}

withGuest("the limit does not wait for the line to end", [], async (host) => {
  host.write(" ".repeat(LIMIT + 1));
  assert.deepEqual(await host.rest(), { said: [], code: 1 });
});

withReady("lines come in any pieces, blank ones are ignored, the last one needs no LF", async (host) => {
  const cancel = JSON.stringify(request(1, "provider/stream/cancel", { streamId: "x" }));
  for (let at = 0; at < cancel.length; at += 7) host.write(cancel.slice(at, at + 7));
  host.write(`\r\n\n\r\n  \t\n  ${cancel}\n${cancel}`);
  const { said, code } = await host.end();
  const answer = JSON.stringify({ jsonrpc: "2.0", id: 1, result: { cancelled: false } });
  assert.deepEqual([said, code], [[answer, answer, answer], 0]);
});

withReady("what is no JSON is a parse error, and the connection lives", async (host) => {
  const deep = (levels) => "[".repeat(levels) + "]".repeat(levels);
  const lines = ["hello", "\ufeff{}", "{} {}", '{"a":NaN}', '{"a":"\0"}', "{", '{"a":"', "\u00a0{}"];
  lines.push(deep(10_001), deep(4_000_000));
  for (const line of lines) fails(await host.raw(line), -32700, undefined, null);
  fails(await host.raw(deep(10_000)), -32600, undefined, null);
  host.write(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff\xfe\\ud800"}\n', "latin1")); // no UTF-8, but JSON
  fails(await host.read(), -32601, "unknown_method");
});

withGuest("a frame that ends too soon is a parse error", [], async (host) => {
  host.write('{"jsonrpc":');
  const { said, code } = await host.end();
  fails(JSON.parse(said[0]), -32700, undefined, null);
  assert.equal(code, 0);
});

withReady("a malformed envelope is refused under its id, if that is an integer", async (host) => {
  const call = '"jsonrpc":"2.0","method":"x"';
  const nameless = ['"x"', "42", "null", "[]", "[{}]", "{}", '{"jsonrpc":"2.0","result":{}}'];
  for (const id of ['"a"', "1.0", "1e2", "1.5", "true", "{}", "[]"]) nameless.push(`{${call},"id":${id}}`);
  const named = [
    '{"id":1,"method":"x"}', '{"jsonrpc":2,"id":1,"method":"x"}', '{"jsonrpc":"2.0","id":1,"method":""}',
    '{"jsonrpc":"2.0","id":1,"method":7}', '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"result":1,"error":null}',
    '{"jsonrpc":"2.0","id":1,"error":{"code":1}}', '{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}',
    `{${call},"id":1,"params":[]}`, `{${call},"id":1,"params":null}`, `{${call},"id":1,"result":1}`,
  ];
  for (const line of nameless) fails(await host.raw(line), -32600, undefined, null);
  for (const line of named) fails(await host.raw(line), -32600, undefined);
});

withReady("ids come back as they were written, and of two members the last one counts", async (host) => {
  for (const id of ["-5", "-0", "9".repeat(30), "1".repeat(9000), "null"]) {
    host.write(`{"x":1,"jsonrpc":"2.0","id":"a","id" : ${id} ,"method":1,"method":"\\u0078"}\n`);
    assert.ok((await host.line()).includes(`"id":${id},"error":{"code":-32601,`));
  }
});

withReady("notifications, and answers to nothing, are met with silence", async (host) => {
  for (const [method, params] of [["event", {}], ["zzz", {}], ["provider/catalog", {}], ["event", []]]) {
    host.send({ jsonrpc: "2.0", method: `extension/${method}`, params });
  }
  for (const id of [999, "7", null]) host.send({ jsonrpc: "2.0", id, result: {} });
  assert.deepEqual((await host.ask(1, "provider/catalog")).result.providers[0].ref, REF);
  for (const method of ["zzz", "event", "initialized", "../host/ui/publish", "__proto__"]) {
    fails(await host.ask(1, method, {}), -32601, "unknown_method");
  }
  assert.deepEqual(await host.end(), { said: [], code: 0 });
});

withReady("params that the schema does not allow are refused", async (host) => {
  const without = (params, name) => Object.fromEntries(Object.entries(params).filter(([key]) => key !== name));
  const good = intercept({});
  const asking = (more) => open("x", { request: { ...open("x").request, ...more } });
  const wrong = [
    ...Object.keys(good).map((name) => ["intercept", without(good, name)]),
    ["intercept", { ...good, x: 1 }], ["intercept", { ...good, seq: 0 }], ["intercept", { ...good, seq: true }],
    ["intercept", { ...good, event: "zzz" }], ["intercept", { ...good, externalized: null }],
    ["intercept", { ...good, externalized: [{ x: 1 }] }], ["provider/catalog", { x: 1 }],
    ["provider/stream/cancel", { streamId: "" }], ["provider/stream/open", open("x", { seqBase: -1 })],
    ["provider/stream/open", open("x", { generation: 1 })], ["provider/stream/open", asking({ tools: null })],
    ["provider/stream/open", asking({ messages: [{ role: "user", x: 1 }] })],
    ["provider/stream/open", asking({ messages: [{ role: "" }] })],
    ["ui/action", { actionId: "demo", ...PLACE, args: { a: 1 } }],
    ["ui/submit", { surfaceId: "f", ...PLACE, values: null }], ["shutdown", {}], ["shutdown", { timeoutMillis: -1 }],
  ];
  for (const [method, params] of wrong) fails(await host.ask(1, method, params), -32602, "invalid_params");
  for (const seq of ["1.0", "1e0", "18446744073709551616"]) {
    const line = JSON.stringify(request(1, "intercept", good)).replace('"seq":1', `"seq":${seq}`);
    fails(await host.raw(line), -32602, "invalid_params");
  }
  assert.deepEqual((await host.ask(1, "intercept", good)).result, CONTINUE);
});

// ---- lifecycle ----

withGuest("everything in its order", [], async (host) => {
  fails(await host.ask(1, "provider/catalog", {}), -32600, "protocol_error");
  host.send({ jsonrpc: "2.0", method: "extension/initialized", params: {} });
  fails(await host.ask(1, "initialize", {}), -32602, "invalid_params");
  fails(await host.ask(1, "initialize", initialize(1, { foo: 1 })), -32602, "invalid_params");
  assert.ok((await host.ask(1, "initialize", initialize())).result);
  fails(await host.ask(1, "intercept", intercept({})), -32600, "protocol_error");
  host.send({ jsonrpc: "2.0", method: "extension/initialized" });
  assert.deepEqual((await host.ask(1, "intercept", intercept({}))).result, CONTINUE);
  host.send(request(2, "intercept", provoke("slow")));
  host.send(request(1, "shutdown", { timeoutMillis: 1000 }));
  fails(await host.read(), -32600, "protocol_error", 2);
  assert.deepEqual((await host.read()).result, { accepted: true });
  fails(await host.ask(1, "provider/catalog", {}), -32600, "protocol_error");
  assert.deepEqual(await host.end(), { said: [], code: 0 });
});

withReady("the end of input ends it, whatever is going on", async (host) => {
  host.send(request(1, "intercept", provoke("slow", { timeoutMillis: 600_000 })));
  host.send(request(2, "intercept", provoke("prompt")));
  assert.equal((await host.read()).method, "host/ui/request");
  assert.deepEqual(await host.end(), { said: [], code: 0 });
});

for (const [flags, more, code, reason] of [
  [[], { protocolId: "reasonix.extension.v2" }, -32000, "unsupported_version"],
  [[], { protocolId: "acme.extension.v1" }, -32000, "unsupported_version"],
  [[], { protocolVersion: "v1" }, -32600, "protocol_error"],
  [["--protocol", "v2"], {}, -32000, "unsupported_version"],
]) {
  withGuest(`no common version: ${flags} ${JSON.stringify(more)}`, flags, async (host) => {
    host.send(request(1, "initialize", initialize(1, more)), request(2, "initialize", initialize()));
    fails(await host.read(), code, reason);
    assert.deepEqual(await host.rest(), { said: [], code: 1 });
  });
}

withGuest("it declares what the manifest allows", [], async (host) => {
  const { subscriptions, replaces, providers, uiActions, provides } = await host.ready();
  assert.deepEqual([subscriptions, replaces, provides], [MANIFEST.intercepts.filter((name) => name !== "frontend.event"), [], undefined]);
  assert.deepEqual([providers[0].ref, uiActions[0].actionId], [REF, "demo"]);
});

withGuest("it declares nothing to a manifest without capabilities, and asks nobody", [], async (host) => {
  const { providers, uiActions, subscriptions } = await host.ready(1, { manifest: {} });
  assert.deepEqual([providers, uiActions, subscriptions], [undefined, undefined, []]);
  for (const mark of ["prompt", "publish"]) {
    assert.deepEqual((await host.ask(1, "intercept", provoke(mark))).result, CONTINUE);
  }
});

withGuest("in v2 it provides what the manifest says, and stamps its chunks", [], async (host) => {
  const provides = [{ kind: "tool", namespace: "n", id: "i", version: "1" }];
  assert.deepEqual((await host.ready(2, { manifest: { ...MANIFEST, provides } })).provides, provides);
  host.write(`${JSON.stringify(request(1, "provider/stream/open", open("hi", { generation: 4, epoch: "e" })))
    .replace('"generation":4', '"generation":18446744073709551615')}\n`);
  await host.read();
  assert.ok((await host.line()).includes('"generation":18446744073709551615,"epoch":"e"'));
});

// ---- content ----

const BODY = Buffer.from(JSON.stringify({ text: "sidecert:replace", pad: "é".repeat(200_000) }));
const DESCRIPTOR = { jsonPointer: "/payload", contentRef: "c", totalBytes: BODY.length, sha256: sha256(BODY) };

function answerPage(host, call, body = BODY, more = {}) {
  const { offset } = call.params;
  const end = Math.min(offset + 262_144, body.length);
  const page = {
    contentRef: "c", offset, totalBytes: body.length, sha256: sha256(body), encoding: "utf8",
    dataBase64: body.subarray(offset, end).toString("base64"), ...(end < body.length && { nextOffset: end }), ...more,
  };
  host.send({ jsonrpc: "2.0", id: call.id, result: page });
}

withReady("it reads page by page, and serves others meanwhile", async (host) => {
  host.send(request(1, "intercept", intercept(null, { externalized: [DESCRIPTOR] })));
  for (const offset of [0, 262_144]) {
    const call = await host.read();
    assert.deepEqual([call.method, call.params], ["host/content/read", { contentRef: "c", offset }]);
    assert.ok((await host.ask(2, "provider/catalog")).result);
    answerPage(host, call);
  }
  assert.equal((await host.read()).result.decision, "replace");
});

withReady("dishonest pages and errors are refused", async (host) => {
  for (const more of [
    { sha256: "0".repeat(64) }, { totalBytes: 1 }, { offset: 5 }, { contentRef: "d" }, { encoding: "x" }, { x: 1 },
    { nextOffset: 0 }, { nextOffset: null }, { dataBase64: "*" },
    { dataBase64: Buffer.alloc(262_145).toString("base64") },
  ]) {
    host.send(request(1, "intercept", intercept(null, { externalized: [DESCRIPTOR] })));
    answerPage(host, await host.read(), BODY, more);
    fails(await host.read(), -32600, "protocol_error");
  }
  for (const [fields, payload] of [[[DESCRIPTOR, DESCRIPTOR], null], [[DESCRIPTOR], {}]]) {
    fails(await host.ask(1, "intercept", intercept(payload, { externalized: fields })), -32600, "protocol_error");
  }
  const tooLarge = [{ ...DESCRIPTOR, totalBytes: LIMIT + 1 }];
  fails(await host.ask(1, "intercept", intercept(null, { externalized: tooLarge })), -32000, "frame_too_large");
  for (const [retryable, code, reason] of [[true, -32000, "content_ref_expired"], [false, -32603, "internal"]]) {
    const { id } = await host.ask(1, "intercept", intercept(null, { externalized: [DESCRIPTOR] }));
    const data = { reason: "content_ref_expired", retryable };
    host.send({ jsonrpc: "2.0", id, error: { code: -32000, message: "gone", data } });
    fails(await host.read(), code, reason);
  }
});

// ---- provocations ----

withReady("rulings", async (host) => {
  for (const more of ["", " and then some more"]) {
    assert.ok(!("data" in fails(await host.ask(1, "intercept", provoke(`large${more}`)), -32603, undefined)));
    const { message } = fails(await host.ask(1, "intercept", provoke(`panic${more}`)), -32603, "internal");
    assert.ok(!message.includes("asked"));
    const replaced = { decision: "replace", replacement: { text: "sidecert was here" } };
    assert.deepEqual((await host.ask(1, "intercept", provoke(`replace${more}`))).result, replaced);
  }
  for (const payload of [{ text: 1 }, [], null, "sidecert:panic", { text: " sidecert:panic" }]) {
    assert.deepEqual((await host.ask(1, "intercept", intercept(payload))).result, CONTINUE);
  }
  assert.deepEqual((await host.ask(1, "intercept", provoke("panic", { event: "tool.before" }))).result, CONTINUE);
});

withReady("a payload is repeated to the last digit, inline and page by page", async (host) => {
  const body = String.raw`{ "text":"sidecert:echo-payload \u00e9 \ud800 \/ é","n":[1.0,-0, 1e400,`
    + String.raw`123456789012345678901,0.1000000000000000000001],"a":1,"a":"}{,\"","\u0061":{}}`;
  const line = JSON.stringify(request(1, "intercept", intercept(0)));
  host.write(`${line.replace('"payload":0', `"payload":1,"payload": ${body}`)}\n`);
  assert.ok((await host.line()).endsWith(`"replacement":${body}}}`));
  const content = Buffer.from(body.replace("[1.0", "[\r\n1.0"));
  const field = { ...DESCRIPTOR, totalBytes: content.length, sha256: sha256(content) };
  host.send(request(1, "intercept", intercept(null, { externalized: [field] })));
  answerPage(host, await host.read(), content);
  assert.ok((await host.line()).endsWith(`"replacement":${body.replace("[1.0", "[  1.0")}}}`));
});

withReady("slow takes its time, and keeps nobody waiting", async (host) => {
  const before = performance.now();
  host.send(request(1, "intercept", provoke("slow", { timeoutMillis: 600 })));
  assert.ok((await host.ask(2, "provider/catalog")).result);
  fails(await host.read(), -32000, "intercept_timeout");
  assert.ok(performance.now() - before > 400);
});

withReady("thirty-two wait, one more is refused", async (host) => {
  for (let id = 1; id <= 33; id += 1) host.send(request(id, "intercept", provoke("slow", { timeoutMillis: 0 })));
  fails(await host.read(), -32099, undefined, 33);
  assert.ok((await host.ask(50, "provider/catalog")).result);
});

withReady("a prompt: any answer will do, a second one is ignored, none is waited for too long", async (host) => {
  const error = { code: -32601, message: "no" };
  for (const answer of [{ result: { cancelled: true } }, { error }, { result: null }]) {
    const { id, method, params } = await host.ask(1, "intercept", provoke("prompt"));
    assert.deepEqual([method, params.kind, params.payload.fields], ["host/ui/request", "confirm", []]);
    assert.deepEqual([params.sessionId, params.generation], ["s", 1]);
    host.send({ jsonrpc: "2.0", id, ...answer }, { jsonrpc: "2.0", id, ...answer });
    assert.deepEqual(await host.read(), { jsonrpc: "2.0", id: 1, result: CONTINUE });
  }
  const { id } = await host.ask(1, "intercept", provoke("prompt", { timeoutMillis: 20 }));
  fails(await host.read(), -32000, "intercept_timeout");
  host.send({ jsonrpc: "2.0", id, result: { cancelled: true } }); // too late
  assert.ok((await host.ask(2, "provider/catalog")).result);
});

withReady("four surfaces are published, and what they submit is accepted", async (host) => {
  const calls = [await host.ask(1, "intercept", provoke("publish"))];
  while (calls.length < 4) calls.push(await host.read());
  assert.deepEqual(calls.map(({ params }) => params.kind), ["status", "card", "form", "notification"]);
  for (const { id, method } of calls.reverse()) {
    assert.equal(method, "host/ui/publish");
    assert.ok((await host.ask(2, "provider/catalog")).result);
    host.send({ jsonrpc: "2.0", id, result: { accepted: true } });
  }
  assert.deepEqual((await host.read()).result, CONTINUE);
  for (const [surfaceId, accepted] of [[calls[0].params.surfaceId, true], ["other", false]]) {
    assert.deepEqual((await host.ask(1, "ui/submit", { surfaceId, values: {}, ...PLACE })).result, { accepted });
  }
  for (const [actionId, accepted] of [["demo", true], ["other", false]]) {
    assert.equal((await host.ask(1, "ui/action", { actionId, ...PLACE })).result.accepted, accepted);
  }
});

/** The chunks of a stream that was just opened, and the params of its end. */
async function stream(host, content, more) {
  assert.deepEqual((await host.ask(1, "provider/stream/open", open(content, more))).result, { accepted: true });
  const chunks = [];
  for (;;) {
    const { method, params } = await host.read();
    if (method.endsWith("/end")) return { chunks, end: params };
    assert.equal(params.seq, chunks.length + 1);
    chunks.push(params.chunk);
  }
}

withReady("streams to their end", async (host) => {
  const plain = await stream(host, "😀".repeat(1000), { seqBase: 0 });
  assert.deepEqual(plain.chunks.map(({ type }) => type), ["reasoning", "text", "text", "usage", "done"]);
  assert.equal(plain.chunks[1].text + plain.chunks[2].text, "😀".repeat(1000));
  assert.equal(Object.keys(plain.chunks[3].usage).length, 7);
  assert.deepEqual(plain.end, { streamId: "es_1", lastSeq: 5 });
  const empty = await stream(host, "sidecert:empty-stream");
  assert.deepEqual([empty.chunks, empty.end.lastSeq], [[], 0]);
  const failing = await stream(host, "sidecert:failing-stream, please");
  const [said, { error }] = failing.chunks;
  assert.deepEqual([said.type, error.code, failing.end.lastSeq], ["text", "provider_failed", 2]);
  assert.ok(!error.message.includes("sk-"));
});

withReady("a long stream gives way to what comes in, though nobody reads it", async (host) => {
  host.send(request(1, "provider/stream/open", open("sidecert:long-stream")));
  const cancel = { streamId: "es_1" };
  host.send(
    request(2, "provider/stream/open", open("x")), request(3, "provider/stream/open", open("x", { streamId: "es_2" })),
    request(4, "provider/stream/open", open("x", { providerRef: "nope" })),
    request(5, "provider/stream/cancel", cancel), request(6, "provider/stream/cancel", cancel),
  );
  const answers = new Map();
  const ends = new Map();
  let chunks = 0;
  while (!answers.has(6) || !ends.has("es_2")) {
    const frame = await host.read();
    if ("id" in frame) answers.set(frame.id, frame);
    else if (frame.method.endsWith("/end")) ends.set(frame.params.streamId, frame.params);
    else if (frame.params.streamId === "es_1") {
      assert.ok(!answers.has(5));
      chunks += 1;
    }
  }
  fails(answers.get(2), -32600, "protocol_error", 2);
  fails(answers.get(4), -32000, "provider_failed", 4);
  assert.deepEqual([answers.get(5).result, answers.get(6).result], [{ cancelled: true }, { cancelled: false }]);
  assert.deepEqual(ends.get("es_1"), { streamId: "es_1", lastSeq: chunks, interrupted: true });
  assert.ok(chunks < 20_000);
});
