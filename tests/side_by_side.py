"""Tests in several processes side by side. What all but one say follows when all are done.

`make test` runs all: those with real Kafka and a real browser mostly wait, so two processes share them; beside them run those that compute,
those that start commands and Spark's, the next where one has ended. `make quick` runs unit tests only
(``python -m tests.side_by_side quick``), half of them in each of two processes.
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
from contextlib import ExitStack
from itertools import pairwise
from typing import IO

KAFKA, BROWSER, SPARK, UNIT, COMMANDS = "tests/kafka", "tests/browser", "tests/spark", "tests/unit", "tests/unit/trimtab"
LONG = tuple(f"{KAFKA}/test_{name}.py" for name in ("execution", "history"))  # half of the time of those with Kafka
HALF_OF_UNIT = tuple(f"{UNIT}/{room}" for room in ("trimtab", "cluster_model", "metrics_reporter"))
NOTHING_RUN = 5  # pytest's exit code where nothing was chosen
LOOK = 0.2  # seconds between looks at what has ended
PORTS, FIRST, END = "TRIMTAB_TEST_PORTS", 15_000, 32_000  # of these, each run has a part for its brokers

Run = Sequence[str]  # arguments of pytest


def main(waiting: Sequence[Run], computing: Sequence[Run]) -> int:
    """Run all `waiting` and the first of `computing` at once; the next of `computing` follow, each where a run has ended.

    An interrupt reaches all of them, and no further run starts. Returns the first exit code that is not 0.
    """
    todo = deque(computing)
    with ExitStack() as files:
        said = [files.enter_context(tempfile.TemporaryFile()) for _ in waiting]
        parts = pairwise(range(FIRST, END + 1, (END - FIRST) // len(waiting)))
        started = [_started(run, file, f"{first}-{end}") for run, file, (first, end) in zip(waiting, said, parts, strict=True)]
        started.append(_started(todo.popleft(), None, yields=True))
        lanes, outputs = list(started), [*said, None]
        try:
            while todo and not _interrupted():
                for n, run in enumerate(lanes):
                    if todo and run.poll() is not None:
                        lanes[n] = _started(todo.popleft(), outputs[n], yields=True)
                        started.append(lanes[n])
            while any(run.poll() is None for run in started):
                _interrupted()
        finally:
            for run in started:
                run.terminate()  # does nothing to one that has ended
        sys.stdout.flush()
        for file in said:
            file.seek(0)
            sys.stdout.buffer.write(file.read())
        sys.stdout.flush()
    return next((run.returncode for run in started if run.returncode not in (0, NOTHING_RUN)), 0)


def _started(given: Run, said: IO[bytes] | None, ports: str | None = None, *, yields: bool = False) -> subprocess.Popen[bytes]:
    """A run of pytest that writes to `said`, or here. What waits for brokers gets a processor when it wants one, so others are to yield:
    brokers that are starved look like broken ones."""
    command = [sys.executable, "-m", "pytest", *given]
    aside = {} if said is None else {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": subprocess.STDOUT}
    environment = os.environ | ({PORTS: ports} if ports else {})
    run: subprocess.Popen[bytes] = subprocess.Popen(command, env=environment, **aside)  # type: ignore[call-overload]
    if yields:
        with contextlib.suppress(OSError, AttributeError):  # it ended already; there is no such thing on this system
            os.setpriority(os.PRIO_PROCESS, run.pid, 10)
    return run


def _interrupted() -> bool:
    """Wait a moment; whether Ctrl-C came. It reaches all runs, each of which then ends what it started and says what it knows."""
    try:
        time.sleep(LOOK)
    except KeyboardInterrupt:
        return True
    return False


def _but(*paths: str) -> list[str]:
    return [f"--ignore={path}" for path in paths]


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if sys.argv[1:2] == ["quick"]:
        given = sys.argv[2:]
        sys.exit(main([[*given, *HALF_OF_UNIT]], [[*given, *_but(*HALF_OF_UNIT), UNIT]]))
    given = sys.argv[1:]
    shared = [[*given, *LONG], [*given, KAFKA, BROWSER, *_but(*LONG)]]
    sys.exit(main(shared, [[*given, *_but(KAFKA, BROWSER, SPARK, COMMANDS)], [*given, SPARK], [*given, COMMANDS]]))
