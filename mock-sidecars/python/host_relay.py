"""A plugin of the tests of host.py, `host_relay.py SOCKET`: it shows the test every line of the host's, and does what
the test says. It starts quickly, and ends when the test does.
"""
import json
import os
import select
import socket
import sys


def relay(path):
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)
    env = {name: value for name, value in os.environ.items() if name.startswith(("REASONIX_PLUGIN_", "TEST_"))}
    tell = lambda **what: link.sendall(json.dumps(what).encode() + b"\n")
    tell(name=os.environ["REASONIX_PLUGIN_NAME"], pid=os.getpid(), argv=sys.argv[2:], env=env,
         leads=os.getsid(0) == os.getpgid(0) == os.getpid())
    told, heard, reads = b"", b"", [0]
    while True:
        ready, _, _ = select.select([link, *reads], [], [])
        if link in ready:
            data = link.recv(1 << 16)
            *orders, told = (told + data).split(b"\n")
            for order in map(json.loads, orders):
                if "write" in order:
                    os.write(1, order["write"].encode("utf-8", "surrogateescape"))
                elif "fill" in order:
                    for fd, byte, count in [order["fill"]]:
                        while count > 0:
                            count -= os.write(fd, byte.encode() * min(count, 1 << 16))
                elif "stderr" in order:
                    os.write(2, order["stderr"].encode())
                elif "spawn" in order:
                    tell(spawned=os.spawnvp(os.P_NOWAIT, order["spawn"][0], order["spawn"]))
                elif "close" in order:
                    os.close(order["close"])
                elif "reads" in order:
                    reads = [0] if order["reads"] else []
                elif "exit" in order:
                    os._exit(order["exit"])
            if not data:
                os._exit(9)
        elif reads and 0 in ready:
            data = os.read(0, 1 << 16)
            *lines, heard = (heard + data).split(b"\n")
            for line in lines:
                tell(line=line.decode())
            if not data:
                tell(eof=True)
                reads = []


if __name__ == "__main__":
    relay(sys.argv[1])
