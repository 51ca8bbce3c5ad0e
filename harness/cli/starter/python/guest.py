#!/usr/bin/env python3
"""A sidecar for the Reasonix Extension Protocol. This file is yours; reasonix.py keeps the protocol.

stdout belongs to the protocol: what people should see goes to stderr. `sidecert check guest` says
whether the sidecar conforms.
"""
import re

import reasonix


async def keep_keys_out(payload):
    """Blocks what a user typed if it holds something like an API key."""
    typed = payload.get("text") if isinstance(payload, dict) else None
    if isinstance(typed, str) and re.search(r"\bsk-[A-Za-z0-9_-]{20,}", typed):
        return {"decision": "block", "reason": "This looks like an API key, so it was not sent."}
    return {"decision": "continue"}


# An interceptor gets the payload of its event and returns a decision: continue, block with a reason, or
# replace with a replacement. Others wait while it computes, so slow work belongs into `asyncio.to_thread`.
# A new event must stand in reasonix-plugin.json, too: the host asks about no other.
INTERCEPTORS = {"input.receive": keep_keys_out}

if __name__ == "__main__":
    reasonix.serve("my-sidecar", "0.1.0", INTERCEPTORS)
