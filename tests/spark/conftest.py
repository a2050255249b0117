"""One Spark session for all tests of the room: starting one takes longer than most tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on two cores of this machine, as for the smallest histories; expressions of such small data are not worth compiling."""
    settings = {"spark__driver__memory": "2g", "spark__sql__codegen__wholeStage": "false"}
    before = signal.getsignal(signal.SIGINT)
    running = session("trimtab tests", "local[2]", short=True, **settings)
    signal.signal(signal.SIGINT, before)  # Spark puts its own there, for the tests of every other room too
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()


@pytest.fixture
def command_line() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``trimtab`` in a process of its own, with a Spark of its own; what it said and its exit code."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "trimtab", *arguments],
            capture_output=True, text=True, check=False, timeout=500,
        )  # fmt: skip

    return run
