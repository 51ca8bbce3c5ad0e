"""A guest for the tests of tap: does what its first argument says. Bytes, signals and ends are all that it knows."""

import os
import signal
import sys

READ = 1 << 16


def write_all(to, data):
    while data:
        data = data[os.write(to, data):]


def ready():
    """Whoever reads this knows that what was set up is set up."""
    write_all(1, b"ready\n")


def echo():
    while data := os.read(0, READ):
        write_all(1, data)


def count():
    """How much came until the end, told after it."""
    total = 0
    while data := os.read(0, READ):
        total += len(data)
    write_all(1, b"%d\n" % total)


def say_and_stay():
    """Closes its output, and goes on reading; its exit code tells how much that was."""
    write_all(1, b"all\n")
    os.close(1)
    total = 0
    while data := os.read(0, READ):
        total += len(data)
    sys.exit(total)


def deaf():
    """Never reads. It ends when it is told to."""
    ready()
    signal.pause()


def end_at_term():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
    deaf()


def tell_signals():
    """Names each signal that comes; the last one is TERM."""
    for number in (1, 2, 3, 10, 12, 14, 28):
        signal.signal(number, lambda number, _: write_all(1, b"%d\n" % number))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    ready()
    while True:
        signal.pause()


def write_until_broken():
    """Writes until nobody reads, and says on standard error how that was."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    ready()
    os.read(0, 1)
    try:
        while True:
            write_all(1, b"x" * READ)
    except BrokenPipeError:
        write_all(2, b"broken\n")


def stop_reading():
    """Closes its input, and stays until it is told to end."""
    os.close(0)
    deaf()


def leave_one():
    """Ends while a child of it holds its output open."""
    if os.fork() == 0:
        signal.pause()
    write_all(1, b"done\n")
    os._exit(3)


def ids():
    write_all(1, b"%d %d %d\n" % (os.getpid(), os.getpgid(0), os.getppid()))
    write_all(2, b"on standard error\n")


def die():
    number = int(sys.argv[2])
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pause()


def leave():
    sys.exit(int(sys.argv[2]))


def flood():
    """So many MiB in one line, or in lines of so many bytes."""
    mib, line = int(sys.argv[2]), int(sys.argv[3])
    data = (b'"' + b"x" * (line - 3) + b'"\n') * (READ * 16 // line) if line else b"x" * (READ * 16)
    left = mib << 20
    while left > 0:
        write_all(1, data[:left])
        left -= len(data)


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")]()
