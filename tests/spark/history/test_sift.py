"""No bad row is calibrated on, none is lost without a word, and no sample counts twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession

from spark.history.counters import rates
from spark.history.repeats import spacing_ms
from spark.history.sift import reasons, sift, sifted
from tests.spark.history.rows import BEGIN, Row, row, samples

NOW = BEGIN + timedelta(days=1)
LONG_AGO = (datetime(1999, 12, 31, tzinfo=UTC), *row(0)[1:])
BAD: dict[str, Row] = {
    "no time": (None, *row(0)[1:]),
    "no cluster": row(0, cluster_id=None),
    "no broker": row(0, broker=None),
    "no metric": row(0, metric=None),
    "no value": row(0, None),
    "not a number": row(0, float("nan")),
    "infinite": row(0, float("-inf")),
    "negative": row(0, -0.1),
    "too large": row(0, 1e31),
    "time before 2000": LONG_AGO,
    "time in the future": row(60 * 26),
    "neither broker nor partition": row(0, topic=None, partition=3),
    "unknown partition": row(0, partition=-1),
}


def test_every_bad_row_is_kept_apart_with_its_reason(spark: SparkSession) -> None:
    fine = [row(0), row(0, topic=None, partition=None), row(60 * 24.5, 0.0)]
    found = sifted(samples(spark, [*BAD.values(), *fine]), NOW)
    assert {r.reason: tuple(r)[:7] for r in found.rejected.frame.collect()}.keys() == BAD.keys()
    assert found.reasons == dict.fromkeys(BAD, 1)
    assert (found.rows, found.samples.frame.count()) == (len(BAD) + 3, 3)
    assert (found.begin_ms, found.end_ms) == (int(BEGIN.timestamp() * 1000), int((BEGIN.timestamp() + 24.5 * 3600) * 1000))


def test_of_samples_that_stand_there_twice_the_largest_counts(spark: SparkSession) -> None:
    """Around a restart of the service, or where a day was imported twice: all else stays as it is."""
    alone = [row(m, 10.0 * m, partition=p) for m in range(200) for p in (0, 1)]
    again = [row(7, 70.0), row(7, 5.0), row(150, 1e9, partition=1)]
    found = sifted(samples(spark, [*alone, *again]), NOW)
    assert found.reasons == {"repeated": 3}
    kept = {(r.time.astimezone(UTC), r.partition): r.value for r in found.samples.frame.collect()}
    assert len(kept) == found.samples.frame.count() == len(alone)
    assert kept == {(r[0], r[4]): r[6] for r in alone} | {(row(150)[0], 1): 1e9}
    assert sorted(r.value for r in found.rejected.frame.collect()) == [5.0, 70.0, 1500.0]


def test_samples_closer_than_usual_are_no_repeats(spark: SparkSession) -> None:
    """Most come a minute apart; some a millisecond: they are looked at one by one, and all stay."""
    usual = [row(m) for m in range(100)]
    close = [row(3 + i / 60_000, 2.0) for i in range(1, 40)]
    found = sifted(samples(spark, usual + close), NOW)
    assert (found.reasons, found.samples.frame.count()) == ({}, 139)


def test_where_nothing_repeats_no_row_is_moved(spark: SparkSession) -> None:
    """At 100 million rows, moving them all would take longer than everything else together."""
    counted, _ = sift(samples(spark, [row(m, partition=p) for m in range(300) for p in range(3)]), NOW)
    plan = counted.frame._jdf.queryExecution().executedPlan().toString()
    assert "Exchange" not in plan
    assert "Window" not in plan


def test_late_and_out_of_order_rows_count_like_others(spark: SparkSession) -> None:
    rows = [row(m, float(m)) for m in (50, 3, 0, 170, 2)]
    ordered, shuffled = sifted(samples(spark, sorted(rows)), NOW), sifted(samples(spark, rows), NOW)
    assert ordered.digest == shuffled.digest
    assert shuffled.reasons == {}
    assert sorted(shuffled.samples.frame.collect()) == sorted(ordered.samples.frame.collect())
    assert sifted(samples(spark, rows[1:]), NOW).digest != ordered.digest


def test_reasons_are_counted_from_what_was_kept_apart(spark: SparkSession) -> None:
    _, rejected = sift(samples(spark, [row(0, -1.0), row(1, -2.0), row(2, None), row(3), row(3)]), NOW)
    assert reasons(rejected) == {"negative": 2, "no value": 1, "repeated": 1}


def test_an_empty_history_has_no_span(spark: SparkSession) -> None:
    found = sifted(samples(spark, []), NOW)
    assert (found.rows, found.reasons, found.begin_ms, found.samples.frame.count()) == (0, {}, None, 0)


def test_the_spacing_of_samples_is_found_where_some_are_missing(spark: SparkSession) -> None:
    rows = [row(m) for m in range(20) if not 5 <= m < 10] + [row(m, partition=1) for m in range(15, 20)]
    assert spacing_ms(samples(spark, rows).frame) == 60_000


def by_hand(readings: list[tuple[float, float]], longest: float) -> list[tuple[float, float]]:
    """Rates as Prometheus defines them, with a loop: a value below the one before is a reset to 0."""
    found = []
    for (then, old), (now, new) in pairwise(readings):
        if now - then <= longest:
            found.append((now, (new if new < old else new - old) / ((now - then) * 60)))
    return found


@pytest.mark.parametrize(
    "readings",
    [
        [(0, 0.0), (1, 60.0), (2, 180.0)],
        [(0, 600.0), (1, 660.0), (2, 30.0), (3, 90.0)],  # the broker was restarted
        [(0, 600.0), (1, 600.0), (2, 0.0), (3, 0.0)],
        [(0, 10.0), (1, 20.0), (30, 5000.0), (31, 5060.0)],  # nothing is said over half an hour of silence
        [(0, 1.0)],
    ],
)
def test_counters_become_rates_across_restarts_of_brokers(spark: SparkSession, readings: list[tuple[float, float]]) -> None:
    frame = samples(spark, [row(m, v) for m, v in readings]).frame
    found = rates(frame, ("broker", "topic", "partition", "metric"), 60_000).orderBy("time").collect()
    assert [((r.time.astimezone(UTC) - BEGIN).total_seconds() / 60, r.value) for r in found] == by_hand(readings, 5)


def test_series_of_counters_are_told_apart_and_no_number_is_no_reading(spark: SparkSession) -> None:
    rows = [row(0, 10.0), row(0, 1000.0, broker=2), row(1, 70.0), row(1, float("nan"), broker=2), row(2, 1120.0, broker=2)]
    found = rates(samples(spark, rows).frame, ("broker",), 60_000).collect()
    assert {(r.broker, r.value) for r in found} == {(1, 1.0), (2, 1.0)}
