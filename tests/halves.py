"""Tests in two processes side by side. What the first half says follows when the other is done.

`make test` runs all: those with real Kafka and a real browser mostly wait; beside them run those that compute, then Spark's. `make quick`
runs unit tests only (``python -m tests.halves quick``), half of them in each process.
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
SPARK = ("tests/spark",)
UNIT = "tests/unit"
HALF_OF_UNIT = tuple(f"{UNIT}/{room}" for room in ("trimtab", "cluster_model", "metrics_reporter"))
NOTHING_RUN = 5  # pytest's exit code where nothing was chosen


def main(waiting: Sequence[str], runs: Sequence[Sequence[str]]) -> int:
    """Run `waiting`, and beside it `runs` one after the other, to their end; arguments are those of pytest.

    An interrupt reaches both halves, and no further run starts. Returns the first exit code that is not 0.
    """
    pytest = [sys.executable, "-m", "pytest"]
    with tempfile.TemporaryFile() as said:
        started = [subprocess.Popen([*pytest, *waiting], stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)]
        try:
            for run in runs:
                started.append(subprocess.Popen([*pytest, *run]))
                _yield_to_waiting(started[-1])
                if _interrupted(started[-1]):
                    break
            _interrupted(started[0])
        finally:
            for half in started:
                half.terminate()  # does nothing to one that has ended
        said.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(said.read())
        sys.stdout.flush()
    return next((half.returncode for half in started if half.returncode not in (0, NOTHING_RUN)), 0)


def _yield_to_waiting(half: subprocess.Popen[bytes]) -> None:
    """What waits for brokers gets a processor when it wants one: brokers that are starved look like broken ones."""
    with contextlib.suppress(OSError, AttributeError):  # it ended already; there is no such thing on this system
        os.setpriority(os.PRIO_PROCESS, half.pid, 10)


def _interrupted(half: subprocess.Popen[bytes]) -> bool:
    """Wait for the end; whether Ctrl-C came. It reaches both halves, each of which then ends what it started and says what it knows."""
    interrupted = False
    while True:
        try:
            half.wait()
            return interrupted
        except KeyboardInterrupt:
            interrupted = True


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    quick = sys.argv[1:2] == ["quick"]
    given = sys.argv[2:] if quick else sys.argv[1:]
    half = HALF_OF_UNIT if quick else WAITING
    computing = [*given, *(f"--ignore={folder}" for folder in (*half, *([] if quick else SPARK))), *([UNIT] if quick else [])]
    sys.exit(main([*given, *half], [computing] if quick else [computing, [*given, *SPARK]]))
