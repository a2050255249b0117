"""One Spark session for all tests of the room: starting one takes longer than most tests."""

from __future__ import annotations

import os
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
    """Spark on two cores of this machine, with few shuffle partitions."""
    settings = {
        "spark__sql__shuffle__partitions": "2",
        "spark__driver__memory": "2g",
        "spark__driver__extraJavaOptions": "-XX:TieredStopAtLevel=1",  # compiling further costs more than such small data win
    }
    before = signal.getsignal(signal.SIGINT)
    running = session("trimtab tests", "local[2]", **settings)
    signal.signal(signal.SIGINT, before)  # Spark puts its own there, for the tests of every other room too
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()


@pytest.fixture
def command_line() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``trimtab`` in a process of its own, with a Spark of its own as small as the one above; what it said and its exit code."""
    small = {
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
        "PYSPARK_SUBMIT_ARGS": "--conf spark.sql.shuffle.partitions=2 --conf spark.default.parallelism=2 pyspark-shell",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "trimtab", *arguments],
            env={**os.environ, **small}, capture_output=True, text=True, check=False, timeout=500,
        )  # fmt: skip

    return run
