// What a shim for sidecert needs besides your host: copy this file, and say what your host does for each word.
//
//     import { Shim, Blocked, Failed } from "./sidecert-shim.mjs";
//
//     const shim = new Shim("my-host", "1.2", [{ name: "ls", readOnly: true, arguments: { path: "." } }]);
//     shim.does("turn", async ({ text, model }) => {
//       ...
//       shim.shown("text", answer);
//       return answer;
//     });
//     await shim.run();
//
// A function gets the members of the ask. What it returns is done: a text, a list of models, members by name, or
// nothing. `Blocked`, `Failed`, `Refused` and `Cannot` say that it did not come to that; any other error is a failure. Asks
// are served side by side, so a `cancel` comes while a `turn` runs. With `perTurn`, a session of the host is one turn: what
// came of its `start` is told when a `turn` calls `started`, or when that is over. docs/host-shim.md of sidecert says what
// the words mean. Needs Node 18, Deno or Bun, and nothing else; TypeScript reads the types from the comments.

/** @typedef {"start" | "stop" | "turn" | "cancel" | "reload" | "action" | "submit" | "answer" | "compact" | "new-session"
 *   | "models" | "admit" | "describe" | "signal"} Word */
/** @typedef {{ name: string, readOnly: boolean, arguments: Record<string, unknown> }} Tool */
/** @typedef {{ name: string, manifest: any, enabled?: boolean, declared?: "project" }} Plugin */
/**
 * The members of an ask; each word has those that it needs.
 * @typedef {object} Ask
 * @property {Plugin[]} plugins
 * @property {string} workspace
 * @property {string} [uiHost]
 * @property {string} text
 * @property {string} [model]
 * @property {string} [effort]
 * @property {any} plugin a name; for `admit` and `describe` a whole plugin
 * @property {string} action
 * @property {Record<string, string>} [args]
 * @property {string} surface
 * @property {string} prompt
 * @property {Record<string, any>} values
 * @property {true} [cancelled]
 * @property {"preview" | "show" | "doctor"} view
 * @property {"TERM" | "INT"} signal
 */
/** @typedef {void | string | string[] | Record<string, unknown>} Done */
/** @typedef {(ask: Ask) => Done | Promise<Done>} Does */

/** What a session begins with, and what it is over with. */
const BOUNDS = ["start", "stop", "signal"];

/** That something is not done: why, for whoever uses the host. */
class Outcome extends Error {
  /** @returns {Record<string, string>} */
  members() {
    return {};
  }
}

/** A plugin blocked it; the text is what the user is told. */
export class Blocked extends Outcome {
  members() {
    return { blocked: this.message };
  }
}

/** It failed; the text is what the user is told, and `reason` the reason of the protocol if the host has it. */
export class Failed extends Outcome {
  /**
   * @param {string} text
   * @param {string} [reason]
   */
  constructor(text, reason) {
    super(text);
    this.reason = reason;
  }

  members() {
    return { failed: this.message, ...(this.reason === undefined ? {} : { reason: this.reason }) };
  }
}

/** The host does not do it now, or does not take it. */
export class Refused extends Outcome {
  members() {
    return { refused: this.message };
  }
}

/** This shim cannot make its host do that. */
export class Cannot extends Outcome {
  members() {
    return { cannot: this.message };
  }
}

/** The two pipes to sidecert. Nothing else may write to stdout; `console.log` writes to stderr from `run` on. */
export class Shim {
  /** @type {string} What is played; there as soon as the first function is called. */
  suite = "";
  /** @type {string} What is the shim's to keep things in; likewise. */
  folder = "";
  /** @type {Map<string, Does>} */
  #words = new Map();
  #hasSession = false;
  /** @type {Promise<unknown>} The starts and stops, one after the other. */
  #session = Promise.resolve();
  /** @type {number | undefined} With `perTurn`: the start, until it is known what came of it. */
  #starting;
  /** @type {Promise<Record<string, unknown>>} With `perTurn`: what came at once of the start. */
  #prepared = Promise.resolve({});

  /**
   * @param {string} name
   * @param {string} version
   * @param {Tool[]} [tools]
   * @param {{ perTurn?: boolean }} [more]
   */
  constructor(name, version, tools = [], { perTurn = false } = {}) {
    this.name = name;
    this.version = version;
    this.tools = tools;
    this.perTurn = perTurn;
  }

  /**
   * That this function does what the word says.
   * @param {Word} word
   * @param {Does} does
   * @returns {this}
   */
  does(word, does) {
    this.#words.set(word, does);
    return this;
  }

  /**
   * What the user is shown.
   * @param {"text" | "notice" | "warning" | "error" | "surface" | "prompt"} how
   * @param {string} text
   * @param {Record<string, unknown>} [more]
   */
  shown(how, text, more = {}) {
    this.#write({ shown: { as: how, text, ...more } });
  }

  /**
   * What the host keeps for itself.
   * @param {"log" | "diagnostics" | "session"} where
   * @param {string} text
   */
  found(where, text) {
    this.#write({ found: { in: where, text } });
  }

  /** With `perTurn`: the plugins of this session have started. */
  started() {
    this.#settleStart({ done: true });
  }

  /** Serves sidecert until it closes our stdin, then stops what runs, and ends the process. */
  async run() {
    console.log = console.info = console.debug = console.error;
    process.stdout.on("error", () => {}); // nobody listens any more; the end of stdin follows
    let isFirst = true;
    for await (const line of lines(process.stdin)) {
      if (!line.trim()) continue;
      const said = JSON.parse(line);
      if (isFirst) {
        isFirst = false;
        this.#greet(said);
      } else if ("ask" in said) {
        const told = this.perTurn ? this.#performPerTurn(said) : this.#perform(said);
        if (BOUNDS.includes(said.do)) this.#session = Promise.all([this.#session, told]);
      }
    }
    await this.#session;
    if (this.#hasSession && this.#words.has("stop")) await this.#outcome({ do: "stop" });
    await new Promise((written) => process.stdout.write("", written));
    process.exit(0);
  }

  /** @param {any} first */
  #greet(first) {
    if (first?.shim !== 1) {
      console.error("this is a shim of version 1 for `sidecert check host --driver shim`");
      process.exit(1);
    }
    this.suite = first.suite;
    this.folder = first.folder;
    const { name, version, tools, perTurn } = this;
    this.#write({ shim: 1, name, version, does: [...this.#words.keys()], tools, perTurn });
  }

  /** @param {any} ask */
  async #perform(ask) {
    this.#write({ outcome: ask.ask, ...(await this.#outcome(ask)) });
  }

  /** @param {any} ask */
  async #performPerTurn(ask) {
    if (ask.do === "start") {
      this.#starting = ask.ask;
      this.#prepared = this.#outcome(ask);
      const outcome = await this.#prepared;
      if (!("done" in outcome)) this.#settleStart(outcome);
    } else if (ask.do === "turn") {
      const prepared = await this.#prepared;
      const outcome = "done" in prepared ? await this.#outcome(ask) : prepared;
      this.#settleStart("failed" in outcome ? outcome : { done: true });
      this.#write({ outcome: ask.ask, ...outcome });
    } else {
      const outcome = await this.#outcome(ask);
      if (ask.do === "stop") {
        this.#settleStart({ cannot: "a session of this host begins with a turn, and none was asked for" });
      }
      this.#write({ outcome: ask.ask, ...outcome });
    }
  }

  /** @param {Record<string, unknown>} outcome */
  #settleStart(outcome) {
    if (this.#starting !== undefined) this.#write({ outcome: this.#starting, ...outcome });
    this.#starting = undefined;
  }

  /**
   * @param {any} ask
   * @returns {Promise<Record<string, unknown>>}
   */
  async #outcome(ask) {
    const does = this.#words.get(ask.do);
    if (does === undefined) return { cannot: `this shim does not do ${ask.do}` };
    try {
      const done = await does(ask);
      if (BOUNDS.includes(ask.do)) this.#hasSession = ask.do === "start";
      const named = typeof done === "string" ? { text: done } : Array.isArray(done) ? { models: done } : done;
      return { done: true, ...(named ?? {}) };
    } catch (error) {
      if (error instanceof Outcome) return error.members();
      console.error(error);
      return { failed: String(error) };
    }
  }

  /** @param {unknown} line */
  #write(line) {
    process.stdout.write(`${JSON.stringify(line)}\n`);
  }
}

/**
 * The lines of a stream. (Those of node:readline end at other characters as well, which JSON may hold.)
 * @param {NodeJS.ReadStream} stream
 */
async function* lines(stream) {
  stream.setEncoding("utf8");
  /** @type {string[]} */
  const parts = [];
  for await (const text of stream) {
    const [more, ...rest] = text.split("\n");
    parts.push(more);
    for (const next of rest) {
      yield parts.splice(0).join("");
      parts.push(next);
    }
  }
  yield parts.join("");
}
