"""Several runs of pytest in parallel. One says what it does as it goes; what the others say follows when all are done.

`make test` runs all tests in parts, three at a time. First comes the part with real Kafka and a real browser, which mostly waits.
`make quick` runs unit tests only (``python -m tests.parallel quick``), in two runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import IO

WAITING = ("tests/kafka", "tests/browser")
# Beside it, the longest first. What is in none of these folders comes before the last two.
COMPUTING = (("tests/property", "tests/scale", "tests/simulation"), ("tests/unit",), ("tests/assembled",), ("tests/spark",))
PLANNER = "tests/unit/optimizer"  # with its policies, more than half of the unit tests
NOTHING_RUN = 5  # pytest's exit code where nothing was chosen
AT_ONCE = 3  # enough for two processors, as one mostly waits; with more, Kafka's run takes longest, and more at once would save nothing
INTERRUPTED = 128 + signal.SIGINT


def main(runs: Sequence[Sequence[str]], at_once: int) -> int:
    """Start the `runs` in their order, as soon as fewer than `at_once` are running. Each is a list of arguments of pytest. What the second
    one says is seen at once.

    An interrupt reaches all that are running, and no further run starts. Returns the first exit code that is not 0, `INTERRUPTED` if there
    is none but some runs did not start.
    """
    started: list[subprocess.Popen[bytes]] = []

    def code_of(given: Sequence[str], said: IO[bytes] | None, yields: bool) -> int:
        run = _started(given, said, yields=yields)
        started.append(run)
        return run.wait()

    with contextlib.ExitStack() as files:
        said = [None if n == 1 else files.enter_context(tempfile.TemporaryFile()) for n in range(len(runs))]
        with ThreadPoolExecutor(at_once) as pool:
            ends = [pool.submit(code_of, runs[n], said[n], n > 0) for n in range(len(runs))]
            try:
                _wait_for(ends)
            finally:  # of what has ended, nothing is cancelled or terminated
                pool.shutdown(wait=False, cancel_futures=True)
                for run in started:
                    run.terminate()
        for file in said:
            if file is not None:
                file.seek(0)
                sys.stdout.flush()
                sys.stdout.buffer.write(file.read())
        sys.stdout.flush()
    codes = [INTERRUPTED if end.cancelled() else end.result() for end in ends]
    return next((code for code in codes if code not in (0, NOTHING_RUN)), 0)


def _wait_for(ends: Sequence[Future[int]]) -> None:
    """Wait until all have ended. Ctrl-C reaches all runs: each ends what it started and says what it knows, and no other starts."""
    while True:
        try:
            wait(ends)
            return
        except KeyboardInterrupt:
            for end in ends:
                end.cancel()  # does nothing to one that has started


def _started(given: Sequence[str], said: IO[bytes] | None, *, yields: bool) -> subprocess.Popen[bytes]:
    """A run of pytest that writes to `said`, or here. What waits for brokers gets a processor when it wants one, so others are to yield:
    brokers that are starved look like broken ones."""
    command = [sys.executable, "-m", "pytest", *given]
    aside = {} if said is None else {"stdin": subprocess.DEVNULL, "stdout": said, "stderr": subprocess.STDOUT}
    run: subprocess.Popen[bytes] = subprocess.Popen(command, **aside)  # type: ignore[call-overload]
    if yields:
        with contextlib.suppress(OSError, AttributeError):  # it ended already; there is no such thing on this system
            os.setpriority(os.PRIO_PROCESS, run.pid, 10)
    return run


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    quick = sys.argv[1:2] == ["quick"]
    given = sys.argv[2:] if quick else sys.argv[1:]
    if quick:
        sys.exit(main([[*given, "tests/unit", f"--ignore-glob={PLANNER}/test_*"], [*given, PLANNER, f"--ignore={PLANNER}/policies"]], 2))
    rest = [f"--ignore={folder}" for folders in (WAITING, *COMPUTING) for folder in folders]
    sys.exit(main([[*given, *folders] for folders in (WAITING, *COMPUTING[:-2], rest, *COMPUTING[-2:])], AT_ONCE))
