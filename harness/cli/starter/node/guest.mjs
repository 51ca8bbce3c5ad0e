#!/usr/bin/env node
// A sidecar for the Reasonix Extension Protocol. This file is yours; reasonix.mjs keeps the protocol.
//
// stdout belongs to the protocol: what people should see goes to stderr (console.error).
// `sidecert check guest` says whether the sidecar conforms.

import { serve } from "./reasonix.mjs";

/** Blocks what a user typed if it holds something like an API key. */
async function keepKeysOut(payload) {
  if (/\bsk-[\w-]{20,}/.test(payload?.text)) {
    return { decision: "block", reason: "This looks like an API key, so it was not sent." };
  }
  return { decision: "continue" };
}

// An interceptor gets the payload of its event and returns a decision: continue, block with a reason, or
// replace with a replacement. A new event must stand in reasonix-plugin.json, too: the host asks about
// no other.
serve("my-sidecar", "0.1.0", { "input.receive": keepKeysOut });
