// A WebCodex plugin in JavaScript that shares no code with sidecert: it adds, says again what it is told, and fails.

import { createInterface } from "node:readline";

const VERSION = "webcodex-plugin-v1";

const closed = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const INTEGER = { type: "integer" };
const TEXT = { type: "string", maxLength: 4096 };
const TOOLS = [
  {
    name: "add",
    title: "Add",
    inputSchema: closed({ a: INTEGER, b: INTEGER }),
    outputSchema: closed({ sum: INTEGER }),
    annotations: { readOnlyHint: true },
  },
  {
    name: "echo",
    description: "Says it again.",
    inputSchema: closed({ text: TEXT }),
    outputSchema: closed({ text: TEXT }),
    annotations: { readOnlyHint: true },
  },
  { name: "fail", inputSchema: { type: "object" } },
];

class Refused extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const completed = (text, structuredContent, isError = false) => ({
  content: [{ type: "text", text }],
  ...(structuredContent && { structuredContent }),
  isError,
});

const HANDLERS = new Map([
  [
    "add",
    ({ a, b }) => {
      if (!Number.isSafeInteger(a) || !Number.isSafeInteger(b)) throw new Refused(-32602, "a and b must be integers");
      return completed(String(a + b), { sum: a + b });
    },
  ],
  [
    "echo",
    ({ text }) => {
      if (typeof text !== "string" || [...text].length > 4096) throw new Refused(-32602, "text must be a short string");
      // eslint-disable-next-line no-control-regex
      if (/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/.test(text)) {
        return completed("the text has a control character", { text: "" }, true);
      }
      return completed(text, { text });
    },
  ],
  ["fail", () => completed("it fails, as it says", undefined, true)],
]);

function serve(method, params) {
  if (method === "tools/list") return { tools: TOOLS };
  if (method !== "initialize" && method !== "tools/call") throw new Refused(-32601, "no such method");
  if (!isObject(params)) throw new Refused(-32602, "params must be an object");
  if (method === "initialize") {
    if (params.protocolVersion !== VERSION) throw new Refused(-32602, "no such version");
    return { protocolVersion: VERSION };
  }
  const handler = HANDLERS.get(params.name);
  if (!handler || !isObject(params.arguments)) throw new Refused(-32602, "no such tool, or no arguments");
  return handler(params.arguments);
}

function answer(line) {
  let request;
  try {
    request = JSON.parse(line);
  } catch {
    return { id: null, error: { code: -32700, message: "no JSON" } };
  }
  const id = isObject(request) && Number.isSafeInteger(request.id) ? request.id : null;
  if (id === null || request.jsonrpc !== "2.0" || typeof request.method !== "string") {
    return { id, error: { code: -32600, message: "no request" } };
  }
  try {
    return { id, result: serve(request.method, request.params) };
  } catch (refused) {
    if (!(refused instanceof Refused)) throw refused;
    return { id, error: { code: refused.code, message: refused.message } };
  }
}

for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...answer(line) })}\n`);
}
