"""Kills a cluster's processes when the test run that started them is gone, however it went.

Started by `tests.kafka.cluster` as a process of its own, in a session of its own. It reads lines from a
pipe whose other end only the run holds: ``+PID`` for a process group to watch, ``-PID`` for one that has
ended. When the pipe closes (the run ended, crashed, or was killed) what is left is killed, and the scratch
folder given as argument is removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys


def main() -> None:
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    watched: set[int] = set()
    kept = False
    for line in sys.stdin:
        if line.startswith("+"):
            watched.add(int(line[1:]))
        elif line.startswith("-"):
            watched.discard(int(line[1:]))
        elif line.startswith("keep"):
            kept = True
    for group in watched:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
    if not kept:
        for _ in range(3):  # a broker that is dying may still be creating files
            shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
