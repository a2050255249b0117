"""A sample that stands in a history twice weighs once: else a history that was imported twice in part has other bounds."""

from __future__ import annotations

import random
from datetime import timedelta
from math import nan
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark.blocks import TO_ALL, Tally, counted, unpacked
from spark.history.sift import REASON, reason
from tests.spark.test_windows import NOON, Row, samples

WINDOW = 300.0


def judged(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return samples(spark, rows).frame.withColumn(REASON, reason(F.lit(NOON + timedelta(days=30))))


def windows_of(spark: SparkSession, rows: list[Row], window: float = WINDOW, to_all: int = TO_ALL) -> tuple[set[Any], Tally]:
    """All windows that `rows` make, and the tally."""
    with counted(judged(spark, rows), window, to_all=to_all) as (found, seen):
        return {tuple(row) for row in unpacked(found, window).frame.collect()}, seen


def regular(minutes: int, seed: int = 1) -> list[Row]:
    """A sample a minute, give or take a few seconds, of a broker and of replicas."""
    draw = random.Random(seed)
    return [
        (minute + draw.uniform(-0.05, 0.05), broker, topic, partition, "network_in", draw.uniform(1, 100))
        for minute in range(minutes)
        for broker, topic, partition in ((1, None, None), (1, "t", 0), (2, "t", 1), (2, "u", 0))
    ]


@pytest.mark.parametrize("to_all", [1_000_000, 1])
def test_samples_that_are_there_again_change_nothing_and_are_counted(spark: SparkSession, to_all: int) -> None:
    """Those of doubtful blocks looked at alone, or all."""
    once = regular(200)
    bad: list[Row] = [(3, 1, "t", 0, "network_in", nan), (4, 1, "t", 0, "network_in", -1.0)] * 2
    again = random.Random(2).sample([row for row in once if row[0] > 130], 100)
    wanted, clean = windows_of(spark, [*once, *bad])
    found, seen = windows_of(spark, [*once, *bad, *again, *again[:5]], to_all=to_all)
    assert found == wanted
    assert dict(clean.reasons) == {"not a number": 2, "negative": 2}
    assert dict(seen.reasons) == {"not a number": 2, "negative": 2, "repeated": len(again) + 5}
    assert (seen.rows, seen.begin_ms, seen.end_ms) == (clean.rows + len(again) + 5, clean.begin_ms, clean.end_ms)


def test_of_a_sample_that_is_there_with_two_values_the_larger_stays(spark: SparkSession) -> None:
    rows: list[Row] = [(0, 1, "t", 0, "disk", 5.0), (0, 1, "t", 0, "disk", 7.0), (1, 1, "t", 0, "disk", 1.0)]
    found, seen = windows_of(spark, rows)
    assert [row[6:] for row in found] == [(4.0, 7.0, 2)]
    assert seen.reasons == {"repeated": 1}


def test_samples_that_are_close_together_are_not_taken_for_the_same(spark: SparkSession) -> None:
    """Two seconds apart, less than the bits can tell: all count."""
    found, seen = windows_of(spark, [(second / 60, 1, None, None, "cpu", float(second)) for second in range(0, 600, 2)])
    assert {row[6:] for row in found} == {(149.0, 298.0, 150), (449.0, 598.0, 150)}
    assert seen.reasons == {}
    assert seen.doubtful == 1


@pytest.mark.parametrize("window", [60.0, 300.0, 3600.0])
def test_a_history_without_any_is_not_read_twice(spark: SparkSession, window: float) -> None:
    assert windows_of(spark, regular(300), window)[1].doubtful == 0


def test_without_the_option_a_sample_that_is_there_twice_weighs_twice(spark: SparkSession) -> None:
    rows: list[Row] = [(0, 1, "t", 0, "disk", 5.0), (0, 1, "t", 0, "disk", 5.0), (1, 1, "t", 0, "disk", 2.0)]
    with counted(judged(spark, rows), WINDOW, once=False) as (found, seen):
        assert [tuple(row)[6:] for row in unpacked(found, WINDOW).frame.collect()] == [(4.0, 5.0, 3)]
    assert (seen.reasons, seen.doubtful) == ({}, 0)
