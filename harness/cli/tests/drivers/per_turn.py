"""The reference host in Python as a host that lives for one turn: `start` starts nothing, and nothing outlives a turn.

    python3 -B per_turn.py FOLDER_OF_THE_HOST --suite SUITE
"""

import sys
from contextlib import suppress

sys.path.insert(0, sys.argv[1])
import host

DOES = ("start", "stop", "turn", "cancel", "admit", "describe")


class Shim(host.Shim):
    starting = None

    def tell(self, line):
        if "shim" in line:
            line = {**line, "perTurn": True, "does": DOES}
        super().tell(line)

    async def perform(self, ask):
        if ask["do"] == "start":
            self.starting = ask
        elif ask["do"] == "turn":
            await self.live(self.starting, ask)
        elif ask["do"] == "stop" and not self.host.is_running:
            self.tell({"outcome": ask["ask"], "done": True})
        else:
            await super().perform(ask)

    async def live(self, start, turn):
        """What came of the start is told as a command tells it: when all is over."""
        told = []
        self.tell, kept = lambda line: told.append(line) if "outcome" in line else kept(line), self.tell
        for ask in (start, turn):
            await super().perform(ask)
        del self.tell
        with suppress(host.Refused):  # it is being stopped, or did not start
            await self.host.stop({})
        await self.host.settled()
        for line in told:
            self.tell({**told[0], "outcome": turn["ask"]} if "failed" in told[0] and line is told[1] else line)


host.Shim = Shim
sys.exit(host.main(sys.argv[2:]))
