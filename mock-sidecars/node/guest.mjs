#!/usr/bin/env node
// A small, strict guest (sidecar) for the Reasonix Extension Protocol, v1 and v2, in plain Node >= 18.
//
//     node guest.mjs [--protocol v1|v2]
//
// The host writes one JSON-RPC frame per line to stdin and reads frames from stdout. Without the flag the
// guest speaks whichever of the two majors `extension/initialize` offers.
//
// JSON stays text here: an object is taken apart into the texts of its members, and a value is decoded
// where it is used. So an id of thirty digits, a `1.0` and an odd escape come back as they were written.
// Nothing shares code with the other guests of this repository: a misreading in one shows in the others.

const FRAME_BYTES = 8 * 1024 * 1024; // one frame, its LF included, in either direction
const OBJECT_BYTES = 8 * 1024 * 1024; // one content object
const PAGE_BYTES = 256 * 1024; // one page of it
const NESTING = 10_000; // levels of arrays and objects in one frame
const WAITING = 32; // intercepts that wait for something at the same time
const LONGEST_BUDGET = 30_000; // milliseconds, for an intercept that names no time of its own

const MAJORS = new Map([["reasonix.extension.v1", 1], ["reasonix.extension.v2", 2]]);
const NAME = process.env.REASONIX_PLUGIN_NAME?.trim() || "sidecert-guest";
const PROVIDER = { ref: `plugin/${NAME}/sample/echo`, displayName: "Echo", contextWindow: 8192 };
const ACTION = { actionId: "demo", label: "Demo" };

const json = JSON.stringify;
const CONTINUE = json({ decision: "continue" });

// ---- errors ----

/** The reasons of the protocol: the code of each, and whether a retry may help. The last six are v2 only. */
const REASONS = new Map(Object.entries({
  protocol_error: [-32600, false], unknown_method: [-32601, false], invalid_params: [-32602, false],
  internal: [-32603, true], capability_not_declared: [-32000, false], content_ref_expired: [-32000, true],
  frame_too_large: [-32000, false], intercept_timeout: [-32000, true], provider_failed: [-32000, true],
  provider_interrupted: [-32000, true], shutdown_timeout: [-32000, true], stream_cancelled: [-32000, false],
  stream_gap: [-32000, true], unsupported_version: [-32000, false],
  activation_failed: [-32000, false], cleanup_failed: [-32000, true],
  dependency_cycle: [-32000, false], dependency_unsatisfied: [-32000, false],
  schema_mismatch: [-32000, false], stale_generation: [-32000, false],
}));

/** What a request is refused with. A fatal one ends the connection. */
class Refusal extends Error {
  constructor(reason, message, fatal = false) {
    super(message);
    Object.assign(this, { reason, fatal });
  }

  get body() {
    const [code, retryable] = REASONS.get(this.reason);
    return { code, message: this.message, data: { reason: this.reason, retryable } };
  }
}

/** What an error says may hold a credential of the service that it came from. */
const withoutKeys = (text) => text.replace(/\b(?:sk|rk)-[\w-]{8,}/g, "****");
const diagnose = (error) => process.stderr.write(`guest: ${withoutKeys(String(error))}\n`);

// ---- JSON as text ----

const INTEGER = /^-?\d+$/; // of a text that is JSON already
const [QUOTE, COMMA] = [0x22, 0x2c];
const opens = (unit) => unit === 0x5b || unit === 0x7b;
const closes = (unit) => unit === 0x5d || unit === 0x7d;

/** The place of the quote that ends the string whose first quote is at `at`. */
function stringEnd(text, at) {
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let slashes = 0;
    while (text[at - 1 - slashes] === "\\") slashes += 1;
    if (slashes % 2 === 0) return at;
  }
}

/** How deep arrays and objects nest; the text need not be JSON yet. */
function nesting(text) {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = stringEnd(text, at);
    else if (opens(unit)) deepest = Math.max(deepest, (depth += 1));
    else if (closes(unit)) depth -= 1;
  }
  return deepest;
}

/** The text, without white space around it; throws if it is not one JSON document. */
function checked(text) {
  if (text.length > NESTING && nesting(text) > NESTING) throw new SyntaxError("nested too deeply");
  JSON.parse(text);
  return text.trim();
}

/** The texts of what stands between the brackets of an array or object. */
function* parts(text) {
  let depth = 0;
  let from = 1;
  for (let at = 1; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = stringEnd(text, at);
    else if (opens(unit)) depth += 1;
    else if (closes(unit)) depth -= 1;
    if (depth < 0 || (depth === 0 && unit === COMMA)) {
      const part = text.slice(from, at).trim();
      if (part) yield part; // `[]` has none
      from = at + 1;
    }
  }
}

/** The members of an object, each as it was written. Of those with the same name the last one counts. */
function members(text) {
  const found = new Map();
  for (const part of parts(text)) {
    const end = stringEnd(part, 0) + 1;
    found.set(JSON.parse(part.slice(0, end)), part.slice(part.indexOf(":", end) + 1).trim());
  }
  return found;
}

const isObject = (raw) => raw?.[0] === "{";
const string = (raw) => (raw?.[0] === '"' ? JSON.parse(raw) : undefined);

// ---- the shapes of params: each says whether the text of a value is what the protocol asks for ----

const any = () => true;
const bool = (raw) => raw === "true" || raw === "false";
const aString = (raw) => raw[0] === '"';
const text = (raw) => Boolean(string(raw)?.trim());
const number = (raw) => /^[-\d]/.test(raw);
const integerFrom = (least) => (raw) =>
  INTEGER.test(raw) && raw.length <= 20 && BigInt(raw) >= least && BigInt(raw) < 2n ** 64n;
const [integer, natural, count] = [-(2n ** 63n), 0n, 1n].map(integerFrom);
const oneOf = (...names) => (raw) => names.includes(string(raw));
const list = (item) => (raw) => raw[0] === "[" && [...parts(raw)].every(item);
const map = (item) => (raw) => isObject(raw) && [...members(raw).values()].every(item);

/** An object with all of the needed members, and none but these and the optional ones. */
function closed(needed, optional = {}) {
  const shapes = new Map(Object.entries({ ...needed, ...optional }));
  return (raw) => {
    if (!isObject(raw)) return false;
    const found = members(raw);
    return Object.keys(needed).every((name) => found.has(name))
      && [...found].every(([name, value]) => shapes.get(name)?.(value));
  };
}

const event = oneOf(
  "session.start", "session.end", "session.load", "session.save", "session.rotate", "input.receive",
  "agent.before_start", "system_prompt.build", "context.prepare", "provider.request", "provider.response",
  "tool.before", "tool.after", "permission.decision", "compaction.prepare", "compaction.complete",
  "frontend.event",
);
const descriptor = closed({ contentRef: text, jsonPointer: text, sha256: aString, totalBytes: natural });
const page = closed(
  {
    contentRef: text, dataBase64: aString, encoding: oneOf("utf8"), offset: natural, sha256: aString,
    totalBytes: natural,
  },
  { nextOffset: natural },
);

/** The shapes of the params of every request, in this major of the protocol. */
function shapesOf(major) {
  const since2 = (optional) => (major >= 2 ? optional : {});
  const capability = { kind: text, namespace: text, id: text };
  const versioned = { version: aString, schemaHash: aString };
  const names = list(aString);
  const manifest = closed({}, {
    capabilities: names, intercepts: names, providers: names, replaces: names, uiActions: names,
    ...since2({
      provides: list(closed(capability, versioned)),
      requires: list(closed(capability, { ...versioned, versionRange: aString, optional: bool })),
    }),
  });
  const dependencies = since2({ dependencySchemaVersion: natural });
  const place = { generation: integer, sessionId: text };
  const session = closed({ ...place, workspaceRoot: text }, since2({ epoch: aString }));
  const uiHost = oneOf("acp", "desktop", "headless", "tui");
  const capabilities = closed({ contentRefs: bool, protocolVersion: text, uiHost }, dependencies);
  const toolCall = closed({ arguments: aString, id: text, name: text }, { thought_signature: aString });
  const message = closed({}, {
    role: oneOf("assistant", "system", "tool", "user"), content: aString, name: aString, images: names,
    reasoning_content: aString, reasoning_signature: aString,
    tool_call_id: aString, tool_calls: list(toolCall),
  });
  const tool = closed({ name: text, parameters: any }, { description: aString });
  const request = closed(
    { maxTokens: natural, messages: list(message), tools: list(tool) },
    { responseFormat: closed({ type: text }), temperature: number },
  );
  return new Map(Object.entries({
    "extension/initialize": closed(
      { protocolId: text, protocolVersion: text, manifest, session, capabilities }, dependencies),
    "extension/shutdown": closed({ timeoutMillis: natural }),
    "extension/intercept": closed(
      { event, payload: any, seq: count, timeoutMillis: natural }, { externalized: list(descriptor) }),
    "extension/provider/catalog": closed({}),
    "extension/provider/stream/open": closed(
      { providerRef: text, request, seqBase: natural, streamId: text },
      { effort: aString, model: aString, ...since2({ epoch: aString, generation: integer }) }),
    "extension/provider/stream/cancel": closed({ streamId: text }),
    "extension/ui/action": closed({ actionId: text, ...place }, { args: map(aString) }),
    "extension/ui/submit": closed({ surfaceId: text, values: map(any), ...place }),
  }));
}

// ---- bytes to lines ----

/** Cuts what arrives into lines; a frame above the limit is an error, whether or not its LF ever comes. */
class Lines {
  #pieces = [];
  #bytes = 0;

  *feed(chunk) {
    let from = 0;
    for (let lf = chunk.indexOf(10); lf >= 0; lf = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, lf + 1));
      from = lf + 1;
      yield this.rest();
    }
    this.#add(chunk.subarray(from));
  }

  /** What has come since the last LF. */
  rest() {
    const line = Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    return line.toString(); // what is no UTF-8 becomes U+FFFD; a byte order mark stays, and is no JSON
  }

  #add(piece) {
    this.#bytes += piece.length;
    if (this.#bytes > FRAME_BYTES) throw new Error("a frame is above the limit");
    this.#pieces.push(piece);
  }
}

// ---- the guest ----

class Guest {
  #majors; // those that it speaks, by protocol id
  #state = "new"; // then greeted, ready, closing
  #shapes = shapesOf(2);
  #place = ""; // the session and its generation, as members of a frame about UI
  #hasProvider = false;
  #hasUi = false;
  #surfaces = new Set();
  #streams = new Map();
  #waiting = new Set(); // intercepts that are not answered at once
  #lastId = 0; // of our own requests
  #asked = new Map(); // what to call with the answer, by the id of our request
  #drained; // a promise, while stdout is full
  #handlers = new Map(Object.entries({
    "extension/initialize": this.#initialize,
    "extension/shutdown": this.#shutdown,
    "extension/intercept": this.#intercept,
    "extension/provider/catalog": this.#catalog,
    "extension/provider/stream/open": this.#open,
    "extension/provider/stream/cancel": this.#cancel,
    "extension/ui/action": this.#action,
    "extension/ui/submit": this.#submit,
  }));

  constructor(majors) {
    this.#majors = majors;
  }

  /** Serves until stdin ends. What is still to be written then is written before the process exits. */
  run() {
    const lines = new Lines();
    const { stdin, stdout } = process;
    const orEnd = (work) => {
      try {
        work();
      } catch (error) {
        diagnose(error);
        process.exitCode = 1;
        stdin.destroy();
        this.#stop();
      }
    };
    stdout.on("error", () => process.exit(1)); // nobody listens any more
    stdin.on("data", (chunk) => orEnd(() => {
      for (const line of lines.feed(chunk)) this.#receive(line);
      if (stdout.writableLength <= FRAME_BYTES) return;
      stdin.pause(); // a host that does not read is not served any further
      this.#room().then(() => stdin.resume());
    }));
    stdin.on("end", () => orEnd(() => {
      this.#receive(lines.rest()); // a last line without LF still counts
      this.#stop();
    }));
  }

  #stop() {
    this.#state = "stopped";
    this.#streams.clear();
    this.#waiting.clear();
  }

  // -- frames in

  #receive(line) {
    if (/^[ \t\r\n]*$/.test(line)) return;
    let whole;
    try {
      whole = checked(line);
    } catch {
      this.#refuse("null", { code: -32700, message: "parse error" });
      return;
    }
    const frame = isObject(whole) ? members(whole) : new Map(); // a batch is no frame either
    const id = frame.get("id");
    const legalId = INTEGER.test(id) ? id : "null";
    if (!wellFormed(frame)) this.#refuse(legalId, { code: -32600, message: "invalid frame" });
    else if (!frame.has("method")) this.#asked.get(id)?.(frame); // a late or unasked answer goes unnoticed
    else if (id === undefined) this.#notified(string(frame.get("method")));
    else this.#serve(legalId, string(frame.get("method")), frame.get("params") ?? "{}");
  }

  #notified(method) {
    if (method === "extension/initialized" && this.#state === "greeted") this.#state = "ready";
  }

  #serve(id, method, params) {
    try {
      this.#admit(method, params);
      const handler = this.#handlers.get(method);
      if (!handler) throw new Refusal("unknown_method", "no such method here");
      if (!this.#shapes.get(method)(params)) {
        throw new Refusal("invalid_params", "the params do not fit the method");
      }
      const result = handler.call(this, members(params), id);
      if (result !== undefined) this.#reply(id, result); // or it answers by itself
    } catch (error) {
      this.#fail(id, error);
      if (error.fatal) throw error;
    }
  }

  /** What is served before the host said initialized, and after it said shutdown. */
  #admit(method, params) {
    if (this.#state === "ready") return;
    const early = this.#state === "new" && method === "extension/initialize";
    const last = method === "extension/shutdown" && this.#state !== "closing";
    if (!early && !last) throw new Refusal("protocol_error", `not while the connection is ${this.#state}`);
    // Which schema applies is said in the params; of an unknown one nobody knows.
    if (early) this.#shapes = shapesOf(this.#majors.get(string(members(params).get("protocolId"))) ?? 2);
  }

  // -- frames out

  /** Writes a frame, or nothing of it if it is above the limit. */
  #emit(frame) {
    if (Buffer.byteLength(frame) + 1 > FRAME_BYTES) return false;
    process.stdout.write(`${frame}\n`);
    return true;
  }

  #reply(id, result) {
    if (this.#emit(`{"jsonrpc":"2.0","id":${id},"result":${result}}`)) return;
    this.#refuse(id, { code: -32603, message: "response exceeds frame size limit" });
  }

  #refuse(id, error) {
    this.#emit(`{"jsonrpc":"2.0","id":${id},"error":${json(error)}}`);
  }

  #fail(id, error) {
    const known = error instanceof Refusal;
    if (!known) diagnose(error); // a fault of ours: details stay on this side
    this.#refuse(id, (known ? error : new Refusal("internal", "the extension failed")).body);
  }

  #notify(method, params) {
    this.#emit(`{"jsonrpc":"2.0","method":"${method}","params":${params}}`);
  }

  /** Asks the host something for an intercept that waits. Resolves with the members of the answer. */
  #ask(method, params, waiting) {
    const id = String((this.#lastId += 1));
    if (!this.#emit(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`)) {
      throw new Refusal("frame_too_large", "the question would not fit into a frame");
    }
    waiting.asked.add(id);
    return new Promise((resolve) => {
      this.#asked.set(id, (answer) => {
        this.#asked.delete(id);
        resolve(answer);
      });
    });
  }

  // -- lifecycle

  #initialize(params) {
    if (this.#state !== "new") throw new Refusal("protocol_error", "initialized already");
    const version = string(params.get("protocolVersion"));
    if (!/^\d+$/.test(version)) throw new Refusal("protocol_error", "a protocol version is a number", true);
    if (version !== String(this.#majors.get(string(params.get("protocolId"))))) {
      throw new Refusal("unsupported_version", "this version is not spoken here", true);
    }
    this.#state = "greeted";
    const session = members(params.get("session"));
    this.#place = `"sessionId":${session.get("sessionId")},"generation":${session.get("generation")}`;
    const manifest = members(params.get("manifest"));
    const allowed = (name) => (manifest.has(name) ? JSON.parse(manifest.get(name)) : undefined);
    const capabilities = allowed("capabilities") ?? [];
    this.#hasUi = capabilities.includes("ui");
    // Where a list is missing, only the capability counts.
    const lists = (name, own) => allowed(name)?.includes(own) ?? true;
    this.#hasProvider = capabilities.includes("providers") && lists("providers", PROVIDER.ref);
    const answer = {
      name: NAME, version: "1.0.0", protocolVersion: version, stateSchemaVersion: 0,
      // Never more than the manifest expects: the host would refuse the whole handshake.
      subscriptions: (allowed("intercepts") ?? []).filter((name) => event(json(name)) && name !== "frontend.event"),
      replaces: [],
      providers: this.#hasProvider ? [PROVIDER] : undefined,
      uiActions: this.#hasUi && lists("uiActions", ACTION.actionId) ? [ACTION] : undefined,
      provides: allowed("provides"), // only a v2 manifest can have it
    };
    return json(answer);
  }

  #shutdown() {
    this.#state = "closing";
    this.#streams.clear();
    for (const waiting of this.#waiting) {
      waiting.giveUp(new Refusal("protocol_error", "the connection is closing"));
    }
    return json({ accepted: true });
  }

  // -- interception

  #intercept(params, id) {
    const [name, payload] = [string(params.get("event")), params.get("payload")];
    const fields = [...parts(params.get("externalized") ?? "[]")].map(members);
    const ruling = provokedRuling(name, payload);
    if (fields.length === 0 && !ruling) return CONTINUE; // no opinion, unless a test asks for one
    return this.#wait(id, params, async (waiting) => {
      if (fields.length === 0) return ruling(this.#means(payload, waiting));
      const whole = await this.#fetch(fields, payload, waiting);
      return provokedRuling(name, whole)?.(this.#means(whole, waiting)) ?? CONTINUE;
    });
  }

  /** Lets an intercept take its time, but not longer than the host waits, and answers it then. */
  #wait(id, params, serve) {
    if (this.#waiting.size >= WAITING) return this.#refuse(id, { code: -32099, message: "server busy" });
    const waiting = { asked: new Set(), giveUp: (error) => finish(() => this.#fail(id, error)) };
    const finish = (answer) => {
      clearTimeout(timer);
      for (const asked of waiting.asked) this.#asked.delete(asked);
      if (this.#waiting.delete(waiting)) answer();
    };
    const budget = Math.min(Number(params.get("timeoutMillis")) || LONGEST_BUDGET, 2 ** 31 - 1);
    const early = Math.min(budget / 4, 100); // the answer has to be there in time, not to leave in time
    const expire = () => waiting.giveUp(new Refusal("intercept_timeout", "the budget ran out"));
    const timer = setTimeout(expire, budget - early).unref();
    this.#waiting.add(waiting);
    serve(waiting).then((result) => finish(() => this.#reply(id, result)), waiting.giveUp);
  }

  /** What a provoked ruling may use. */
  #means(payload, waiting) {
    const ask = (method, surfaceId, kind, shown) => {
      const what = `"surfaceId":${json(surfaceId)},"kind":${json(kind)},"payload":${json(shown)}`;
      return this.#ask(method, `{${what},${this.#place}}`, waiting);
    };
    return {
      payload, hasUi: this.#hasUi,
      prompt: (kind, shown) => ask("host/ui/request", "sidecert-prompt", kind, shown),
      publish: (kind, shown) => {
        this.#surfaces.add(`sidecert-${kind}`);
        return ask("host/ui/publish", `sidecert-${kind}`, kind, shown);
      },
    };
  }

  /** Reads a payload that the host moved out of the frame, page by page, trusting nothing. */
  async #fetch(fields, inline, waiting) {
    const { createHash } = await import("node:crypto"); // most runs do not need it
    const [field] = fields;
    if (inline !== "null" || fields.length !== 1 || string(field.get("jsonPointer")) !== "/payload") {
      throw new Refusal("protocol_error", "an externalized payload needs null and one descriptor");
    }
    const total = Number(field.get("totalBytes"));
    if (total > OBJECT_BYTES) throw new Refusal("frame_too_large", "the content object is above the limit");
    const pages = [];
    for (let offset = 0, more = true; more;) {
      const params = `{"contentRef":${field.get("contentRef")},"offset":${offset}}`;
      const found = resultOf(await this.#ask("host/content/read", params, waiting));
      const data = pageBytes(found, field, offset, total);
      pages.push(data);
      offset += data.length;
      more = members(found).has("nextOffset");
    }
    const content = Buffer.concat(pages);
    const sha256 = createHash("sha256").update(content).digest("hex");
    if (content.length !== total || sha256 !== string(field.get("sha256"))) {
      throw new Refusal("protocol_error", "the content does not match its descriptor");
    }
    try {
      return checked(content.toString());
    } catch {
      throw new Refusal("protocol_error", "the content is not JSON");
    }
  }

  // -- streams

  #catalog() {
    if (!this.#hasProvider) throw new Refusal("unknown_method", "there is no provider here");
    return json({ providers: [PROVIDER] });
  }

  #open(params) {
    const id = string(params.get("streamId"));
    if (!this.#hasProvider || string(params.get("providerRef")) !== PROVIDER.ref) {
      throw new Refusal("provider_failed", "no such provider here");
    }
    if (this.#streams.has(id)) throw new Refusal("protocol_error", "this stream is running already");
    const messages = JSON.parse(members(params.get("request")).get("messages"));
    // In v2 a chunk names the generation that it was asked by, so that a stale one can be told.
    const stamps = ["generation", "epoch"].filter((name) => params.has(name));
    const stamp = stamps.map((name) => `,"${name}":${params.get(name)}`).join("");
    const stream = { id, seq: 0, stamp, chunks: chunksFor(messages) };
    this.#streams.set(id, stream);
    this.#pump(stream);
    return json({ accepted: true });
  }

  /** Sends chunk after chunk. In between it gives way to what comes in, and waits until there is room. */
  async #pump(stream) {
    const { id, stamp } = stream;
    const isLive = async () => {
      await new Promise(setImmediate);
      while (process.stdout.writableNeedDrain) await this.#room();
      return this.#streams.get(id) === stream;
    };
    const send = (chunk) => {
      const numbered = `"streamId":${json(id)},"seq":${(stream.seq += 1)},"chunk":${json(chunk)}`;
      this.#notify("extension/provider/stream/chunk", `{${numbered}${stamp}}`);
    };
    try {
      for (;;) {
        if (!(await isLive())) return;
        const { done, value } = stream.chunks.next();
        if (done) break;
        send(value);
      }
    } catch (failure) {
      send({ type: "error", error: { code: "provider_failed", message: withoutKeys(failure.message) } });
    }
    this.#streams.delete(id);
    this.#notify("extension/provider/stream/end", json({ streamId: id, lastSeq: stream.seq }));
  }

  #room() {
    this.#drained ??= new Promise((resolve) => process.stdout.once("drain", resolve))
      .then(() => (this.#drained = undefined));
    return this.#drained;
  }

  /** Answers by itself, since the end of the stream comes after the answer. */
  #cancel(params, id) {
    const streamId = string(params.get("streamId"));
    const stream = this.#streams.get(streamId);
    this.#streams.delete(streamId);
    this.#reply(id, json({ cancelled: stream !== undefined }));
    if (!stream) return;
    const end = { streamId, lastSeq: stream.seq, interrupted: true };
    this.#notify("extension/provider/stream/end", json(end));
  }

  // -- UI

  #action(params) {
    if (!this.#hasUi) throw new Refusal("unknown_method", "there is no action here");
    const known = string(params.get("actionId")) === ACTION.actionId;
    return json(known ? { accepted: true } : { accepted: false, message: "no such action here" });
  }

  #submit(params) {
    if (!this.#hasUi) throw new Refusal("unknown_method", "there is no form here");
    return json({ accepted: this.#surfaces.has(string(params.get("surfaceId"))) });
  }
}

/** Whether the members of a frame make a request, a notification or a response. */
function wellFormed(frame) {
  const [id, params, error] = ["id", "params", "error"].map((name) => frame.get(name));
  if (string(frame.get("jsonrpc")) !== "2.0") return false;
  const legalId = id === "null" || INTEGER.test(id);
  if (frame.has("method")) {
    if (!string(frame.get("method")) || frame.has("result") || frame.has("error")) return false;
    // A notification is never answered, whatever its params are.
    return id === undefined || (legalId && (params === undefined || isObject(params)));
  }
  // A response under a string is ignored, like any that nobody waits for.
  if ((!legalId && string(id) === undefined) || frame.has("params")) return false;
  if (frame.has("result") === frame.has("error")) return false;
  if (error === undefined) return true;
  if (!isObject(error)) return false;
  const body = members(error);
  return INTEGER.test(body.get("code")) && string(body.get("message")) !== undefined;
}

/** The result in an answer of the host. A reason counts only if it is told as we know it. */
function resultOf(answer) {
  if (answer.has("result")) return answer.get("result");
  const { data } = JSON.parse(answer.get("error"));
  if (REASONS.get(data?.reason)?.[1] === data?.retryable && data?.retryable !== undefined) {
    throw new Refusal(data.reason, "the host refused a request of this extension");
  }
  throw new Refusal("internal", "a request to the host failed");
}

/** The bytes of one page; it must be the one that was asked for, and must lead on or be the last. */
function pageBytes(result, field, offset, total) {
  if (!page(result)) throw new Refusal("protocol_error", "no page of a content");
  const found = JSON.parse(result);
  const data = Buffer.from(found.dataBase64, "base64");
  const end = offset + data.length;
  const asked = found.contentRef === string(field.get("contentRef")) && found.offset === offset;
  const same = found.totalBytes === total && found.sha256 === string(field.get("sha256"));
  const clean = data.toString("base64") === found.dataBase64 && data.length <= PAGE_BYTES && end <= total;
  const leads = found.nextOffset === undefined || (found.nextOffset === end && data.length > 0);
  if (!asked || !same || !clean || !leads) {
    throw new Refusal("protocol_error", "not the page that was asked for");
  }
  return data;
}

// ---- the provider ----

/** What the provider says to these messages. */
function chunksFor(messages) {
  const said = messages.findLast(({ role }) => role === "user")?.content ?? "";
  return (provoked(PROVOKED_STREAMS, said) ?? echo)(said);
}

/** It says what the user said. */
function* echo(said) {
  yield { type: "reasoning", text: "They want to hear it again.", signature: "echo-1" };
  const pieces = (said || "(silence)").slice(0, 2048).match(/[^]{1,512}/gu); // by character, not by half
  for (const text of pieces.slice(0, 2)) yield { type: "text", text };
  yield* conclusion();
}

function* conclusion() {
  const kinds = ["cacheHit", "cacheMiss", "completion", "prompt", "reasoning", "total"];
  const usage = Object.fromEntries(kinds.map((kind) => [`${kind}Tokens`, 0]));
  yield { type: "usage", usage: { ...usage, finishReason: "stop" } };
  yield { type: "done" };
}

// ---- provocations: what a test asks for by a mark at the beginning of a text ----

const SURFACES = {
  status: { label: "Ready", detail: "Nothing to do", severity: "info", progress: 0.5 },
  card: {
    title: "A card", markdown: "It has *one* field and one action.",
    fields: [{ key: "colour", value: "green" }], actions: [ACTION],
  },
  form: {
    title: "A form", message: "Which colour?",
    fields: [{ key: "colour", label: "Colour", kind: "select", options: ["green", "red"] }],
  },
  notification: { title: "A notification", body: "It says nothing.", severity: "info" },
};

const replaceBy = (replacement) => `{"decision":"replace","replacement":${replacement}}`;

const PROVOKED_RULINGS = {
  panic: async () => {
    throw new Error("asked to fail");
  },
  slow: () => new Promise(() => {}), // never done: the budget ends it
  replace: async () => replaceBy(json({ text: "sidecert was here" })),
  large: async () => replaceBy(json({ text: "x".repeat(9 << 20) })),
  prompt: async ({ hasUi, prompt }) => {
    const question = { title: "Go on?", message: "A test asks this.", fields: [] };
    if (hasUi) await prompt("confirm", question); // any answer will do
    return CONTINUE;
  },
  publish: async ({ hasUi, publish }) => {
    if (hasUi) await Promise.all(Object.entries(SURFACES).map((surface) => publish(...surface)));
    return CONTINUE;
  },
  // A line break between two tokens of a content would end the frame that repeats it.
  "echo-payload": async ({ payload }) => replaceBy(payload.replace(/[\r\n]/g, " ")),
};

const PROVOKED_STREAMS = {
  *"empty-stream"() {},
  *"failing-stream"() {
    yield { type: "text", text: "so far so good" };
    throw new Error(`the service refused the key sk-${"made0up1for2a3test"}`);
  },
  *"long-stream"() {
    for (let number = 0; number < 20_000; number += 1) yield { type: "text", text: `${number} ` };
    yield* conclusion();
  },
};

const provoked = (table, said) =>
  Object.entries(table).find(([mark]) => said.startsWith(`sidecert:${mark}`))?.[1];

function provokedRuling(name, payload) {
  if (name !== "input.receive" || !isObject(payload)) return undefined;
  const said = string(members(payload).get("text"));
  return said === undefined ? undefined : provoked(PROVOKED_RULINGS, said);
}

// ---- the process ----

const wanted = { "": [1, 2], "--protocol v1": [1], "--protocol v2": [2] }[process.argv.slice(2).join(" ")];
if (wanted) {
  new Guest(new Map([...MAJORS].filter(([, major]) => wanted.includes(major)))).run();
} else {
  process.stderr.write("usage: guest.mjs [--protocol v1|v2]\n");
  process.exitCode = 2;
}
