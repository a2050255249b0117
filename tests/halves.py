"""All tests in two processes side by side: those with real Kafka and a real browser mostly wait, the others compute.

`make test` runs it. What the first half says follows when the other is done.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence

WAITING = ("tests/kafka", "tests/browser")
NOTHING_RUN = 5  # pytest's exit code where nothing was chosen


def main(waiting: Sequence[str], others: Sequence[str]) -> int:
    """Run both halves (arguments of pytest each) to their end, an interrupt included; the first exit code that is not 0."""
    pytest = [sys.executable, "-m", "pytest"]
    with tempfile.TemporaryFile() as said:
        halves = [
            subprocess.Popen([*pytest, *waiting], stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT),
            subprocess.Popen([*pytest, *others]),
        ]
        try:
            _yield_to_waiting(halves[1])
            for half in reversed(halves):
                _wait(half)
        finally:
            for half in halves:
                half.terminate()  # does nothing to one that has ended
        said.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(said.read())
        sys.stdout.flush()
    return next((half.returncode for half in halves if half.returncode not in (0, NOTHING_RUN)), 0)


def _yield_to_waiting(half: subprocess.Popen[bytes]) -> None:
    """What waits for brokers gets a processor when it wants one: brokers that are starved look like broken ones."""
    with contextlib.suppress(OSError, AttributeError):  # it ended already; there is no such thing on this system
        os.setpriority(os.PRIO_PROCESS, half.pid, 10)


def _wait(half: subprocess.Popen[bytes]) -> None:
    """Ctrl-C reaches both halves, each of which then ends what it started and says what it knows; another one ends it at once."""
    while True:
        try:
            half.wait()
            return
        except KeyboardInterrupt:
            continue


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sys.exit(main([*sys.argv[1:], *WAITING], [*sys.argv[1:], *(f"--ignore={folder}" for folder in WAITING)]))
