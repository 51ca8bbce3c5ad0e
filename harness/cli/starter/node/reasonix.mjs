// The guest's side of the Reasonix Extension Protocol, v1 and v2: everything but what the guest is for.
//
// One JSON-RPC frame per line on stdin and stdout; an intercept is answered when its interceptor is done, and
// others are served meanwhile. `serve` is all that a guest calls. Plain Node >= 18.

// ---- limits and errors ----

const FRAME_BYTES = 8 * 1024 * 1024; // its LF counts
const OBJECT_BYTES = 8 * 1024 * 1024;
const PAGE_BYTES = 256 * 1024;
const NESTING = 10_000;
const REASONS = { // the code of each, and whether a retry may help
  protocol_error: [-32600, false], unknown_method: [-32601, false], invalid_params: [-32602, false],
  internal: [-32603, true], unsupported_version: [-32000, false], intercept_timeout: [-32000, true],
  content_ref_expired: [-32000, true], frame_too_large: [-32000, false],
};

class Refusal extends Error {
  constructor(reason, message, fatal = false) {
    super(message);
    const [code, retryable] = REASONS[reason];
    Object.assign(this, { fatal, body: { code, message, data: { reason, retryable } } });
  }
}

// ---- JSON stays text, and is decoded where it is used: so no digit of an id is ever lost ----

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

/** Calls back for every bracket and comma outside of strings, with how deep it stands. */
function walk(text, visit) {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const mark = text[at];
    if (mark === '"') at = stringEnd(text, at);
    else if (mark === "[" || mark === "{") visit(at, (depth += 1));
    else if (mark === ",") visit(at, depth);
    else if (mark === "]" || mark === "}") visit(at, depth--);
  }
}

/** The text without white space around it; throws unless it is exactly one JSON document. */
function checked(text) {
  walk(text, (_, depth) => {
    if (depth > NESTING) throw new SyntaxError("nested too deeply");
  });
  JSON.parse(text);
  return text.trim();
}

/** The texts of what stands in an array or object. */
function parts(text) {
  const found = [];
  let from = 1;
  walk(text, (at, depth) => {
    if (depth !== 1 || at === 0) return;
    const part = text.slice(from, at).trim();
    if (part) found.push(part); // `[]` has none
    from = at + 1;
  });
  return found;
}

/** The texts of the members of an object; of those with the same name the last one counts. */
function members(text) {
  return new Map(parts(text).map((part) => {
    const end = stringEnd(part, 0) + 1;
    return [JSON.parse(part.slice(0, end)), part.slice(part.indexOf(":", end) + 1).trim()];
  }));
}

const isObject = (raw) => raw?.[0] === "{";
const isInteger = (raw) => /^-?\d+$/.test(raw);
const string = (raw) => (raw?.[0] === '"' ? JSON.parse(raw) : undefined);

// ---- shapes: whether the text of a value is what the protocol asks for; members are needed or optional ----

const any = () => true;
const bool = (raw) => raw === "true" || raw === "false";
const aString = (raw) => raw[0] === '"';
const text = (raw) => Boolean(string(raw)?.trim());
const atLeast = (least) => (raw) =>
  isInteger(raw) && raw.length <= 20 && BigInt(raw) >= least && BigInt(raw) < 2n ** 64n;
const natural = atLeast(0);
const oneOf = (...names) => (raw) => names.includes(string(raw));
const list = (item) => (raw) => raw[0] === "[" && parts(raw).every(item);

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
const content = { contentRef: text, sha256: aString, totalBytes: natural };
const externalized = closed({ ...content, jsonPointer: text });
const pageShape = closed(
  { ...content, dataBase64: aString, encoding: oneOf("utf8"), offset: natural }, { nextOffset: natural });

function shapesOf(major) {
  const since2 = (optional) => (major >= 2 ? optional : {});
  const names = list(aString);
  const capability = { kind: text, namespace: text, id: text };
  const versioned = { version: aString, schemaHash: aString };
  const required = closed(capability, { ...versioned, versionRange: aString, optional: bool });
  const manifest = closed({}, {
    capabilities: names, intercepts: names, providers: names, replaces: names, uiActions: names,
    ...since2({ provides: list(closed(capability, versioned)), requires: list(required) }),
  });
  const session = closed(
    { generation: atLeast(-(2n ** 63n)), sessionId: text, workspaceRoot: text }, since2({ epoch: aString }));
  const dependencies = since2({ dependencySchemaVersion: natural });
  const uiHost = oneOf("acp", "desktop", "headless", "tui");
  const capabilities = closed({ contentRefs: bool, protocolVersion: text, uiHost }, dependencies);
  return {
    initialize: closed(
      { protocolId: text, protocolVersion: text, manifest, session, capabilities }, dependencies),
    shutdown: closed({ timeoutMillis: natural }),
    intercept: closed(
      { event, payload: any, seq: atLeast(1), timeoutMillis: natural }, { externalized: list(externalized) }),
    cancel: closed({ streamId: text }),
  };
}

function wellFormed(frame) {
  const [id, params, error] = ["id", "params", "error"].map((name) => frame.get(name));
  const legalId = id === "null" || isInteger(id);
  if (string(frame.get("jsonrpc")) !== "2.0") return false;
  if (frame.has("method")) {
    if (!string(frame.get("method")) || frame.has("result") || frame.has("error")) return false;
    return id === undefined || (legalId && (params === undefined || isObject(params)));
  }
  if ((!legalId && string(id) === undefined) || params !== undefined) return false;
  if (frame.has("result") === frame.has("error")) return false;
  if (frame.has("result")) return true;
  const body = isObject(error) ? members(error) : new Map();
  return isInteger(body.get("code")) && string(body.get("message")) !== undefined;
}

// ---- the connection ----

const METHODS = new Map([ // what the manifest does not declare is unknown here
  ["extension/initialize", "initialize"], ["extension/shutdown", "shutdown"],
  ["extension/intercept", "intercept"],
  ["extension/provider/stream/cancel", "cancel"],
]);

class Sidecar {
  state = "new"; // then greeted, ready, closing
  major = 2;
  shapes = shapesOf(2);
  lastId = 0;
  asked = new Map(); // what to call with the answer, by the id of our request
  waiting = new Set(); // intercepts at work

  constructor(name, version, interceptors) {
    Object.assign(this, { name, version, interceptors: new Map(Object.entries(interceptors)) });
  }

  receive(line) {
    if (/^[ \t\r\n]*$/.test(line)) return;
    let whole;
    try {
      whole = checked(line);
    } catch {
      this.refuse("null", { code: -32700, message: "parse error" });
      return;
    }
    const frame = isObject(whole) ? members(whole) : new Map(); // a batch is no frame either
    const id = isInteger(frame.get("id")) ? frame.get("id") : "null";
    if (!wellFormed(frame)) {
      this.refuse(id, { code: -32600, message: "invalid frame" });
    } else if (!frame.has("method")) {
      this.asked.get(id)?.(frame); // a late or unasked answer goes unnoticed
    } else if (frame.has("id")) {
      this.serve(id, METHODS.get(string(frame.get("method"))), frame.get("params") ?? "{}");
    } else if (string(frame.get("method")) === "extension/initialized" && this.state === "greeted") {
      this.state = "ready";
    }
  }

  serve(id, method, raw) {
    try {
      const first = this.state === "new" && method === "initialize";
      const last = this.state !== "closing" && method === "shutdown";
      if (this.state !== "ready" && !first && !last) {
        throw new Refusal("protocol_error", `not while the connection is ${this.state}`);
      }
      if (!method) throw new Refusal("unknown_method", "no such method here");
      const params = members(raw);
      if (first) { // which shapes hold is said in the params
        this.major = string(params.get("protocolId")) === "reasonix.extension.v1" ? 1 : 2;
        this.shapes = shapesOf(this.major);
      }
      if (!this.shapes[method](raw)) throw new Refusal("invalid_params", "the params do not fit the method");
      const result = this[method](params, id);
      if (result) this.reply(id, result); // an intercept answers later
    } catch (error) {
      this.fail(id, error);
      if (error.fatal) throw error;
    }
  }

  /** Writes one frame, or nothing of it. */
  write(members) {
    const frame = `{"jsonrpc":"2.0",${members}}\n`;
    const fits = Buffer.byteLength(frame) <= FRAME_BYTES;
    if (fits) process.stdout.write(frame);
    return fits;
  }

  reply(id, result) {
    if (this.write(`"id":${id},"result":${JSON.stringify(result)}`)) return;
    this.refuse(id, { code: -32603, message: "response exceeds frame size limit" });
  }

  refuse(id, error) {
    this.write(`"id":${id},"error":${JSON.stringify(error)}`);
  }

  fail(id, error) {
    const known = error instanceof Refusal;
    if (!known) console.error(`${this.name}: ${error}`); // a fault of ours: details stay on this side
    this.refuse(id, (known ? error : new Refusal("internal", "the sidecar failed")).body);
  }

  initialize(params) {
    if (this.state !== "new") throw new Refusal("protocol_error", "initialized already");
    const [id, version] = ["protocolId", "protocolVersion"].map((name) => string(params.get(name)));
    if (!/^\d+$/.test(version)) throw new Refusal("protocol_error", "a protocol version is a number", true);
    if (id !== `reasonix.extension.v${this.major}` || version !== String(this.major)) {
      throw new Refusal("unsupported_version", "this version is not spoken here", true);
    }
    this.state = "greeted";
    const { intercepts = [] } = JSON.parse(params.get("manifest"));
    return {
      name: this.name, version: this.version, protocolVersion: version, stateSchemaVersion: 0,
      subscriptions: intercepts.filter((name) => this.interceptors.has(name)), replaces: [],
    };
  }

  shutdown() {
    this.state = "closing";
    const closing = new Refusal("protocol_error", "the connection is closing");
    for (const intercept of this.waiting) intercept.giveUp(closing);
    return { accepted: true };
  }

  cancel() {
    return { cancelled: false };
  }

  /** Answers later, but not later than the host waits; others are served meanwhile. */
  intercept(params, id) {
    const intercept = { asked: new Set(), giveUp: (error) => finish(() => this.fail(id, error)) };
    const finish = (answer) => {
      clearTimeout(timer);
      for (const asked of intercept.asked) this.asked.delete(asked);
      if (this.waiting.delete(intercept)) answer();
    };
    const millis = Math.min(Number(params.get("timeoutMillis")) || 30_000, 2 ** 31 - 1);
    const early = Math.min(millis / 4, 100); // the answer has to be there in time, not to leave in time
    const timer = setTimeout(
      () => intercept.giveUp(new Refusal("intercept_timeout", "the time ran out")), millis - early).unref();
    this.waiting.add(intercept);
    this.rule(params, intercept).then(
      (decision) => finish(() => this.reply(id, decision)), intercept.giveUp);
  }

  async rule(params, intercept) {
    const fields = JSON.parse(params.get("externalized") ?? "[]");
    const inline = params.get("payload");
    const payload = JSON.parse(fields.length > 0 ? await this.fetch(fields, inline, intercept) : inline);
    const interceptor = this.interceptors.get(string(params.get("event")));
    return (await interceptor?.(payload)) ?? { decision: "continue" };
  }

  /** A request of ours, for an intercept. Resolves with the members of the answer. */
  ask(method, params, intercept) {
    const id = String((this.lastId += 1));
    intercept.asked.add(id);
    this.write(`"id":${id},"method":"${method}","params":${JSON.stringify(params)}`);
    return new Promise((resolve) => this.asked.set(id, (answer) => {
      this.asked.delete(id);
      resolve(answer);
    }));
  }

  /** The text of a payload that the host moved out of the frame, read page by page. */
  async fetch([field, ...others], inline, intercept) {
    const { createHash } = await import("node:crypto");
    const refuse = (message) => {
      throw new Refusal("protocol_error", message);
    };
    if (inline !== "null" || others.length > 0 || field.jsonPointer !== "/payload") {
      refuse("an externalized payload needs null and one descriptor");
    }
    if (field.totalBytes > OBJECT_BYTES) {
      throw new Refusal("frame_too_large", "the content is above the limit");
    }
    const pages = [];
    for (let offset = 0, more = true; more;) {
      const answer = await this.ask("host/content/read", { contentRef: field.contentRef, offset }, intercept);
      if (answer.has("error")) {
        const { reason, retryable } = JSON.parse(answer.get("error")).data ?? {};
        const expired = reason === "content_ref_expired" && retryable === true;
        throw new Refusal(expired ? reason : "internal", "the host refused a request");
      }
      if (!pageShape(answer.get("result"))) refuse("no page of a content");
      const page = JSON.parse(answer.get("result"));
      const same = ["contentRef", "sha256", "totalBytes"].every((name) => page[name] === field[name]);
      const data = Buffer.from(page.dataBase64, "base64");
      const clean = data.toString("base64") === page.dataBase64 && data.length <= PAGE_BYTES;
      const asked = same && page.offset === offset;
      more = page.nextOffset !== undefined;
      offset += data.length;
      const leads = offset <= field.totalBytes && (!more || (page.nextOffset === offset && data.length > 0));
      if (!asked || !clean || !leads) refuse("not the page that was asked for");
      pages.push(data);
    }
    const whole = Buffer.concat(pages);
    const sha256 = createHash("sha256").update(whole).digest("hex");
    if (whole.length !== field.totalBytes || sha256 !== field.sha256) refuse("not what its descriptor says");
    try {
      return checked(whole.toString());
    } catch {
      return refuse("the content is not JSON");
    }
  }
}

/** Serves until stdin ends; `interceptors` has an async function for each event. */
export function serve(name, version, interceptors) {
  const sidecar = new Sidecar(name, version, interceptors);
  let pieces = [];
  let bytes = 0;
  const take = (piece) => {
    bytes += piece.length;
    if (bytes > FRAME_BYTES) throw new Error("a frame is above the limit"); // whether or not it has an LF
    pieces.push(piece);
  };
  const line = () => {
    const whole = Buffer.concat(pieces).toString(); // what is no UTF-8 becomes U+FFFD
    [pieces, bytes] = [[], 0];
    return whole;
  };
  const stop = (code) => {
    sidecar.waiting.clear();
    process.stdin.destroy();
    process.stdout.write("", () => process.exit(code)); // when all is written, whatever is still going on
  };
  const orStop = (work) => {
    try {
      work();
    } catch (error) {
      console.error(`${name}: ${error.message}`);
      stop(1);
    }
  };
  process.stdout.on("error", () => process.exit(1)); // nobody listens any more
  process.stdin.on("data", (chunk) => orStop(() => {
    let from = 0;
    for (let lf = chunk.indexOf(10); lf >= 0; lf = chunk.indexOf(10, from)) {
      take(chunk.subarray(from, lf + 1));
      from = lf + 1;
      sidecar.receive(line());
    }
    take(chunk.subarray(from));
  }));
  process.stdin.on("end", () => orStop(() => {
    sidecar.receive(line()); // a last line without LF is served as well
    stop(0);
  }));
}
