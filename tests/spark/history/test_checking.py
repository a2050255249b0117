"""`trimtab history check` says what a history lacks before a calibration."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import SparkSession

from goals.document import load_goals
from spark.history.checking import Gap, check
from tests.spark.history.rows import BEGIN, Row, row, samples
from trimtab.commands.history_check import as_text

NOW = BEGIN + timedelta(days=2)


def test_what_is_missing_twice_or_of_a_wrong_clock_is_seen_by_metric_broker_and_day(spark: SparkSession) -> None:
    rows: list[Row] = []
    for minute in range(0, 600, 5):
        rows.append(row(minute, metric="network_in", topic=None, partition=None))
        rows += [row(minute), row(minute, metric="consumer_out"), row(minute, metric="follower.network_in", broker=2)]
        if not 100 <= minute < 300:
            rows.append(row(minute, metric="cpu", topic=None, partition=None, broker=3))
    rows += [row(5), row(10), row(60 * 60, broker=2), row(0, -1.0), row(0, metric="lag")]
    found = check(samples(spark, rows), load_goals(None, preset="default"), NOW)
    assert found.rows == len(rows)
    assert found.rejected == {"negative": 1, "time in the future": 1, "repeated": 2}
    assert (found.spacing, found.begin, found.end) == (300.0, "2026-11-19T23:30:00Z", "2026-11-20T09:25:00Z")
    share = {(one.metric, one.whole, one.broker): (one.series, one.samples, one.due) for one in found.metrics}
    assert share["network_in", False, 1] == (1, 120, 120)
    assert share["cpu", True, 3] == (1, 80, 120)
    assert found.gaps == (Gap(3, "2026-11-20T02:00:00Z", "2026-11-20T04:00:00Z"),)
    assert [(day.date, day.brokers, day.repeated) for day in found.days] == [("2026-11-19", 3, 2), ("2026-11-20", 3, 0)]
    able = {one.resource: (one.calibrate, one.backtest) for one in found.feeds}
    assert able["network_out"] == ("", "")
    assert able["cpu"] == ("", "no cpu of partitions")
    assert able["disk"] == ("no disk", "no disk of partitions")
    assert able["replicas"] == ("counts have no noise", "")
    text = as_text(found, "h")
    for said in (
        "broker 2: 1 samples with time in the future; check its clock", "cpu of brokers: 33% of the samples are missing",
        "not used: lag (1 samples)", "network_in of brokers: no samples from brokers 2, 3", "broker 3: 2026-11-20T02:00:00Z to",
    ):  # fmt: skip
        assert said in text
