"""Samples become the loads that the service would have seen: in its windows, of whole brokers and of replicas."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import nan

import pytest
from pyspark.sql import DataFrame, SparkSession

from spark.outgoing import completed
from spark.schemas import BrokerWindows, PartitionWindows, Samples
from spark.windows import blocks, brokers_of, partitions_of, windows

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)
Row = tuple[float, int, str | None, int | None, str, float | None]


def samples(spark: SparkSession, rows: list[Row]) -> Samples:
    """Samples of cluster ``c`` from (minutes after noon, broker, topic, partition, metric, value)."""
    table = [
        (at := NOON + timedelta(minutes=minutes), "c", broker, topic, partition, metric, value, at.date())
        for minutes, broker, topic, partition, metric, value in rows
    ]
    return Samples(spark.createDataFrame(table, Samples.SCHEMA))


def broker_windows(of: Samples, seconds: float) -> BrokerWindows:
    return brokers_of(completed(blocks(of, seconds)), seconds)


def partition_windows(of: Samples, seconds: float) -> PartitionWindows:
    return partitions_of(completed(blocks(of, seconds)), seconds)


def found(frame: DataFrame, *names: str) -> set[tuple[object, ...]]:
    """Rows with the minutes that their window starts after noon first."""
    return {
        ((row["start"].astimezone(UTC) - NOON) / timedelta(minutes=1), *[row[name] for name in names])
        for row in frame.collect()
    }


def test_a_window_holds_what_was_measured_in_it_in_whatever_order_it_came(spark: SparkSession) -> None:
    rows: list[Row] = [
        (4.99, 1, None, None, "cpu", 3.0), (5, 1, None, None, "cpu", 7.0), (0, 1, None, None, "cpu", 1.0),
        (-0.01, 1, None, None, "cpu", 9.0),
    ]  # fmt: skip
    made = broker_windows(samples(spark, rows), 300)
    assert found(made.frame, "mean", "max", "samples") == {(0, 2.0, 3.0, 2), (5, 7.0, 7.0, 1), (-5, 9.0, 9.0, 1)}


def test_values_that_are_none_do_not_turn_a_window_into_none(spark: SparkSession) -> None:
    rows: list[Row] = [(0, 1, None, None, "cpu", nan), (1, 1, None, None, "cpu", None), (2, 1, None, None, "cpu", 4.0)]
    assert found(windows(samples(spark, rows), 300).frame, "mean", "samples") == {(0, 4.0, 1)}


def test_a_duplicate_hardly_moves_a_mean(spark: SparkSession) -> None:
    rows: list[Row] = [(minute, 1, None, None, "cpu", 1.0 + minute) for minute in range(5)]
    once = found(windows(samples(spark, rows), 300).frame, "mean")
    twice = found(windows(samples(spark, rows * 2), 300).frame, "mean")
    assert once == twice == {(0, 3.0)}


def test_a_broker_that_reports_itself_is_believed_one_that_does_not_is_its_replicas(spark: SparkSession) -> None:
    rows: list[Row] = [
        (0, 1, None, None, "network_in", 100.0), (0, 1, "t", 0, "network_in", 60.0), (0, 1, "t", 1, "follower.network_in", 30.0),
        (0, 2, "t", 1, "network_in", 30.0), (1, 2, "t", 1, "network_in", 34.0), (0, 2, "t", 0, "follower.network_in", 60.0),
        (0, 2, "u", 0, "replica.network_in", 5.0),
        (6, 1, "t", 0, "network_in", 50.0),
    ]  # fmt: skip
    made = broker_windows(samples(spark, rows), 300)
    assert found(made.frame, "broker", "resource", "mean") == {(0, 1, "network_in", 100.0), (0, 2, "network_in", 97.0)}


def test_what_is_no_resource_is_kept_of_brokers_and_left_out_of_replicas(spark: SparkSession) -> None:
    rows: list[Row] = [
        (0, 1, None, None, "produce_latency_ms", 4.0), (0, 1, None, None, "capacity.disk", 1e12), (0, 1, "t", 0, "lag", 8.0),
    ]  # fmt: skip
    made = samples(spark, rows)
    assert found(broker_windows(made, 300).frame, "resource") == {(0, "produce_latency_ms"), (0, "capacity.disk")}
    assert partition_windows(made, 300).frame.count() == 0


def test_a_replica_has_the_role_that_its_sample_says(spark: SparkSession) -> None:
    rows: list[Row] = [
        (0, 1, "t", 0, "network_in", 4.0), (0, 2, "t", 0, "follower.network_in", 3.0), (0, 3, "t", 0, "replica.disk", 2.0),
    ]  # fmt: skip
    made = partition_windows(samples(spark, rows), 60).frame
    assert found(made, "topic", "partition", "broker", "role", "resource", "mean") == {
        (0, "t", 0, 1, "leader", "network_in", 4.0),
        (0, "t", 0, 2, "follower", "network_in", 3.0),
        (0, "t", 0, 3, "replica", "disk", 2.0),
    }


@pytest.mark.parametrize("seconds", [60.0, 300.0, 3600.0, 5400.0])
def test_windows_start_at_whole_multiples_of_their_length(spark: SparkSession, seconds: float) -> None:
    rows: list[Row] = [(minutes, 1, None, None, "cpu", 1.0) for minutes in (-7000, -1, 0, 1, 59, 60, 1e6)]
    for row in windows(samples(spark, rows), seconds).frame.collect():
        assert row["start"].astimezone(UTC).timestamp() % seconds == 0


def out(minutes: float, broker: int, metric: str, value: float, partition: int = 0) -> Row:
    return (minutes, broker, "t", partition, metric, value)


def test_what_leaders_send_is_what_consumers_fetch_and_each_follower_copies(spark: SparkSession) -> None:
    """No reporter writes network_out of partitions: without this, calibration and backtest know nothing of it."""
    rows: list[Row] = []
    for minute in range(0, 180, 5):
        rows += [out(minute, 1, "network_in", 10.0), out(minute, 1, "consumer_out", 40.0), out(minute, 2, "follower.network_in", 10.0)]
        rows += [out(minute, 1, "network_in", 3.0, 1), out(minute, 2, "follower.disk", 7.0, 1)]  # not fetched
        rows += [out(minute, 3, "consumer_out", 5.0, 2)]  # one replica, and what came in is not known
        rows += [out(minute, 3, "network_in", 5.0, 3), out(minute, 3, "consumer_out", 1.0, 3), out(minute, 3, "network_out", 9.0, 3)]
        if not 60 <= minute < 120:  # silent for an hour
            rows += [out(minute, 4, "follower.network_in", 10.0)]
    made = partition_windows(samples(spark, rows), 300).frame.where("resource = 'network_out'")
    each = {(row["partition"], row["broker"], row["role"], row["mean"], row["max"]) for row in made.collect()}
    assert each == {(0, 1, "leader", 60.0, 60.0), (1, 1, "leader", 3.0, 3.0), (2, 3, "leader", 5.0, 5.0), (3, 3, "leader", 9.0, 9.0)}
    assert made.count() == 4 * 36
    of_brokers = broker_windows(samples(spark, rows), 300).frame.where("resource = 'network_out'").select("broker", "mean").distinct()
    assert {tuple(row) for row in of_brokers.collect()} == {(1, 63.0), (3, 14.0)}


def test_a_replica_counts_once_where_its_role_was_not_known_for_a_while(spark: SparkSession) -> None:
    """Two lost samples of a hundred made brokers a tenth larger, and noise of it."""
    rows = [out(minute, 1, "replica.disk" if minute % 7 == 3 else "disk", 100.0) for minute in range(60)]
    rows += [out(minute, 1, "disk" if minute < 12 else "follower.disk", 30.0, 1) for minute in range(60)]
    made = broker_windows(samples(spark, rows), 300).frame
    assert {(row["mean"], row["samples"]) for row in made.collect()} == {(130.0, 5)}
