"""One Spark session for all tests of the room: starting one takes longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Spark on two cores of this machine, with few shuffle partitions."""
    running = session("trimtab tests", "local[2]", spark__sql__shuffle__partitions="2", spark__driver__memory="2g")
    running.sparkContext.setLogLevel("ERROR")
    yield running
    running.stop()
