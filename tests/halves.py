"""Tests in two processes side by side. What the first half says follows when all are done.

`make test` runs all: those with real Kafka and a real browser mostly wait; beside them run those that compute. What is left, the assembled
commands and service, then Spark's, follows in the half that ends first. `make quick` runs unit tests only
(``python -m tests.halves quick``), half of them in each process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from typing import IO

WAITING = ("tests/kafka", "tests/browser")
FOLLOWING = ("tests/assembled", "tests/spark")
PLANNER = "tests/unit/optimizer"  # with its policies, more than half of the unit tests
NOTHING_RUN = 5  # pytest's exit code where nothing was chosen
LOOK = 0.2  # seconds between looks at what has ended


def main(waiting: Sequence[str], runs: Sequence[Sequence[str]]) -> int:
    """Run `waiting` in one half and the first of `runs` in the other; the next follow in the half that ends first. Arguments are those of
    pytest.

    An interrupt reaches both halves, and no further run starts. Returns the first exit code that is not 0.
    """
    todo = deque(runs)
    with tempfile.TemporaryFile() as said:
        output = (said, None)
        started = [_started(waiting, said), _started(todo.popleft(), None, yields=True)]
        halves = list(started)
        try:
            while todo and not _interrupted():
                for n, half in enumerate(halves):
                    if todo and half.poll() is not None:
                        halves[n] = _started(todo.popleft(), output[n], yields=True)
                        started.append(halves[n])
            while any(half.poll() is None for half in started):
                _interrupted()
        finally:
            for half in started:
                half.terminate()  # does nothing to one that has ended
        said.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(said.read())
        sys.stdout.flush()
    return next((half.returncode for half in started if half.returncode not in (0, NOTHING_RUN)), 0)


def _started(given: Sequence[str], said: IO[bytes] | None, *, yields: bool = False) -> subprocess.Popen[bytes]:
    """A run of pytest that writes to `said`, or here. What waits for brokers gets a processor when it wants one, so others are to yield:
    brokers that are starved look like broken ones."""
    command = [sys.executable, "-m", "pytest", *given]
    aside = {} if said is None else {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": subprocess.STDOUT}
    half: subprocess.Popen[bytes] = subprocess.Popen(command, **aside)  # type: ignore[call-overload]
    if yields:
        with contextlib.suppress(OSError, AttributeError):  # it ended already; there is no such thing on this system
            os.setpriority(os.PRIO_PROCESS, half.pid, 10)
    return half


def _interrupted() -> bool:
    """Wait a moment; whether Ctrl-C came. It reaches both halves, each of which then ends what it started and says what it knows."""
    try:
        time.sleep(LOOK)
    except KeyboardInterrupt:
        return True
    return False


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    quick = sys.argv[1:2] == ["quick"]
    given = sys.argv[2:] if quick else sys.argv[1:]
    if quick:
        sys.exit(main([*given, "tests/unit", f"--ignore-glob={PLANNER}/test_*"], [[*given, PLANNER, f"--ignore={PLANNER}/policies"]]))
    computing = [f"--ignore={folder}" for folder in (*WAITING, *FOLLOWING)]
    sys.exit(main([*given, *WAITING], [[*given, *computing], *([*given, folder] for folder in FOLLOWING)]))
