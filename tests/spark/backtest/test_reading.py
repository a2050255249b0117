"""From a history to what is replayed: what counts of it, how often, and whose capacities hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from cluster_model.errors import InputError
from spark.backtest.packing import unpacked
from spark.backtest.reading import capacities_told, read_series
from spark.schemas import Samples
from tests.spark.backtest.shapes import HOUR, START

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN = datetime.fromtimestamp(START, UTC)
NOW = BEGIN + timedelta(days=2)
Row = tuple[float, int, str | None, int | None, str, float]


def samples(spark: SparkSession, rows: list[Row]) -> Samples:
    """Of (hour, broker, topic, partition, metric, value)."""
    full = [(BEGIN + timedelta(hours=h), "c", b, t, p, m, v, None) for h, b, t, p, m, v in rows]
    return Samples(spark.createDataFrame(full, Samples.SCHEMA).withColumn("date", F.to_date("time")))


def test_a_sample_that_is_there_twice_counts_once_where_asked_and_bad_ones_never(spark: SparkSession) -> None:
    rows: list[Row] = [(hour / 4, 1, "a", 0, "network_in", 10.0) for hour in range(16)]
    rows += [(0.5, 1, "a", 0, "network_in", 40.0)] * 2
    rows += [(1.0, 1, "a", 0, "network_in", float("nan")), (99.0, 1, "a", 0, "network_in", 1.0), (2.0, 1, "a", 0, "network_in", -1.0)]
    for once, first in ((False, (40.0 + 80.0) / 6), (True, (10 + 10 + 40 + 10) / 4)):
        told: list[str] = []
        with read_series(samples(spark, rows), HOUR, 4 * HOUR, 0.0, "h", NOW, once, told.append) as read:
            found = unpacked(read.series.toArrow(), read.cut, read.cluster_id, {})
        assert found.load["network_in"].T.tolist() == [[pytest.approx(first), 10.0, 10.0, 10.0]]
        assert (read.cut.begin, read.cluster_id) == (START, "c")
        again = ", 2 repeated" if once else ""
        taken = 16 if once else 18
        assert told[:1] == [f"21 samples, {taken} of them count (1 negative, 1 not a number, 1 time in the future{again})"]


def test_a_history_of_nothing_that_counts_is_refused_with_the_reasons(spark: SparkSession) -> None:
    with (
        pytest.raises(InputError, match="found none: 2 samples, 0 of them count \\(2 negative\\)"),
        read_series(samples(spark, [(0, 1, "a", 0, "cpu", -1.0)] * 2), HOUR, 4 * HOUR, 0.0, "h", NOW, False, lambda _: None),
    ):
        pass


def test_what_brokers_report_comes_before_the_calibration_and_a_capacity_of_0_is_none(spark: SparkSession) -> None:
    """A network card was changed, or an exporter says 0: plans on the old or on no capacity would be of another cluster."""
    rows: list[Row] = [(h, b, "a", b, "network_in", 5.0) for h in range(4) for b in (1, 2)]
    rows += [(h, 1, None, None, "capacity.network_in", 70.0 + h) for h in range(4)]
    rows += [(h, 2, None, None, "capacity.network_in", 0.0) for h in range(4)]
    given = {"network_in": {1: 50.0, 2: 60.0}, "cpu": {1: 4.0}}
    with read_series(samples(spark, rows), HOUR, 4 * HOUR, 0.0, "h", NOW, False, lambda _: None) as read:
        found = unpacked(read.series.toArrow(), read.cut, "c", given)
        told, none = capacities_told(read.series, given), capacities_told(read.series.where("topic is not null"), {})
    assert found.capacity["network_in"].tolist() == [73.0, 60.0]
    assert told == (
        "capacities: network_in as 1 broker reports in the history and from the calibration for 1, cpu from the calibration for 1; "
        "none known for other resources"
    )
    assert "none known" in none
