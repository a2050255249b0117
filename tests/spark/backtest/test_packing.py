"""From windows of a history to the stretch that is replayed: placement, loads, followers, capacity, gaps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from cluster_model.errors import InputError
from goals.calibration import Tried
from spark.backtest.packing import Cut, packed, sizes, unpacked
from spark.backtest.run import Result, Wish, backtest
from spark.backtest.search import Space
from spark.backtest.stretch import Stretch
from spark.backtest.tasks import Job
from spark.schemas import Windows
from tests.spark.backtest.shapes import HOUR, START, level, swinging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CUT = Cut(START, HOUR, 4 * HOUR)
Row = tuple[int, str | None, int | None, str, int, float]


def measured(spark: SparkSession, rows: list[Row]) -> Windows:
    """Windows of (broker, topic, partition, metric, hour, mean)."""
    begin = datetime.fromtimestamp(START, UTC)
    full = [("c", b, t, p, m, begin + timedelta(hours=h), v, v, 1) for b, t, p, m, h, v in rows]
    return Windows(spark.createDataFrame(full, Windows.SCHEMA))


def only(spark: SparkSession, rows: list[Row], number: int = 0) -> Stretch:
    series = packed(measured(spark, rows), CUT).where(f"stretch = {number}")
    return unpacked(series.toArrow(), CUT, "c", {"disk": {1: 7.0, 2: 8.0}})


def test_a_stretch_has_the_placement_of_its_start_and_the_loads_of_every_window(spark: SparkSession) -> None:
    rows: list[Row] = []
    for hour in range(8):
        leader = 2 if hour in (0, 4, 5) else 1  # leadership changes within the first stretch
        rows += [
            (leader, "a", 0, "network_in", hour, 10.0 + hour),
            (3 - leader, "a", 0, "follower.network_in", hour, 5.0),
        ]
    rows += [(3, "b", 1, "network_in", 2, 1.0), (3, "b", 1, "network_in", 3, 2.0)]  # new in the middle
    rows += [
        (4, None, None, "network_in", 0, 0.0),
        (4, None, None, "capacity.network_in", 0, 90.0),
    ]  # empty, but there
    rows += [(4, None, None, "capacity.network_in", 3, 99.0), (1, "a", 0, "produce_latency_ms", 0, 3.0)]
    found = only(spark, rows)
    assert found.topics == ("a", "b")
    assert found.broker_ids.tolist() == [1, 2, 3, 4]
    assert found.replicas.tolist() == [[1, 0], [2, -1]]
    assert found.load["network_in"].T.tolist()[0] == [10.0, 11.0, 12.0, 13.0]
    assert (found.first.tolist(), found.last.tolist()) == ([0, 2], [3, 3])
    assert found.follower["network_in"][0] == pytest.approx(5.0 / 11.5)
    assert np.isnan(found.capacity["network_in"][:3]).all()
    assert found.capacity["network_in"][3] == 99.0
    assert found.capacity["disk"][:2].tolist() == [7.0, 8.0]
    later = only(spark, rows, 1)
    assert later.start == START + 4 * 3600
    assert later.replicas.tolist() == [[1, 0]]
    assert later.load["network_in"].T.tolist() == [[14.0, 15.0, 16.0, 17.0]]


def test_what_leaders_send_is_scored_though_only_consumers_are_measured(spark: SparkSession) -> None:
    """No reporter writes network_out of partitions: a backtest would leave outgoing traffic alone."""
    rows: list[Row] = []
    for hour in range(4):
        rows += [(1, "a", 0, "network_in", hour, 10.0), (1, "a", 0, "consumer_out", hour, 5.0 + hour)]
        rows += [(2, "a", 0, "follower.network_in", hour, 10.0), (3, "a", 0, "replica.disk", hour, 1.0)]
        rows += [(2, "b", 0, "network_in", hour, 3.0)]
    found = unpacked(packed(measured(spark, rows), CUT).toArrow(), CUT, "c", {}, racks={1: "x", 3: "y"})
    assert found.racks == ("x", None, "y")  # which no history has
    assert found.load["network_out"].T.tolist()[0] == [25.0, 26.0, 27.0, 28.0]
    assert "consumer_out" not in found.load
    assert np.isnan(found.load["network_out"][:, 1]).all()  # one replica, and what consumers fetch was not measured
    assert found.follower_share("network_out").tolist() == [0.0, 0.0]


def test_where_the_leader_is_unknown_the_lowest_broker_leads(spark: SparkSession) -> None:
    found = only(spark, [(b, "a", 0, "replica.network_in", h, float(b)) for b in (5, 3) for h in range(4)])
    assert found.broker_ids[found.replicas].tolist() == [[3, 5]]
    assert found.load["network_in"].T.tolist() == [[3.0] * 4]


def test_each_stretch_knows_the_end_of_the_one_before_and_a_lead_alone_is_no_stretch(spark: SparkSession) -> None:
    """Else the first looks of every stretch would plan on hours where a day is asked for."""
    cut = Cut(START, HOUR, 4 * HOUR, 2 * HOUR)
    rows: list[Row] = [(1, "a", 0, "network_in", hour, float(hour)) for hour in range(10)]
    series = packed(measured(spark, rows), cut).cache()
    assert sizes(series, cut, "h") == [0, 1]  # hours 8 and 9 would only lead to a third
    for number, begin in ((0, 0), (1, 4)):
        found = unpacked(series.where(f"stretch = {number}").toArrow(), cut, "c", {})
        assert found.start == START + begin * 3600
        assert cut.scored(number) == found.start + 2 * 3600
        assert found.load["network_in"].T.tolist() == [[float(begin + h) for h in range(6)]]


def test_hours_at_the_end_of_a_history_validate_nothing_and_what_comes_after_it_is_no_time_within_range(spark: SparkSession) -> None:
    """Two weeks and an hour would have made the hour all that is held out."""
    rows: list[Row] = [(1, "a", 0, "network_in", hour, 1.0) for hour in range(9)]
    series = packed(measured(spark, rows), CUT)
    assert sizes(series, CUT, "h") == [0, 1]
    more: list[Row] = [*rows, (1, "a", 0, "network_in", 9, 1.0)]
    longer = packed(measured(spark, more), CUT)
    assert sizes(longer, CUT, "h") == [0, 1, 2]
    half = unpacked(longer.where("stretch = 2").toArrow(), CUT, "c", {})
    assert (half.windows, half.last.tolist()) == (2, [1])
    with pytest.raises(InputError, match="expected at least half a stretch of history"):
        sizes(packed(measured(spark, rows[:1]), CUT), CUT, "h")


def test_a_history_without_partitions_or_too_large_for_a_task_is_refused_with_what_to_do(
    spark: SparkSession,
) -> None:
    alone = measured(spark, [(1, None, None, "network_in", 0, 1.0)])
    with pytest.raises(InputError, match="expected samples of partitions"):
        sizes(packed(alone, CUT), CUT, "h")
    long = Cut(START, 0.01, 4 * 86_400 * 30.0)
    with pytest.raises(InputError, match="make windows longer"):
        sizes(packed(measured(spark, [(1, "a", 0, "disk", 0, 1.0)]), long), long, "h")


def history(spark: SparkSession, days: int) -> DataFrame:
    swings = swinging(days=days)
    loads = swings.filled["network_in"]
    rows: list[Row] = [
        (10 + p % 2, "t", p, "network_in", h, float(loads[h, p])) for h in range(24 * days) for p in range(12)
    ]
    rows += [(10 + p % 2, "t", p, "disk", h, 1e9) for h in range(24 * days) for p in range(12)]
    rows += [(12, None, None, "network_in", 24 * d, 0.0) for d in range(days)]  # empty, but there
    return packed(measured(spark, rows), Cut(START, HOUR, 24 * HOUR)).cache()


def tried(spark: SparkSession, series: DataFrame) -> Result:
    goals = level()
    job = Job(Cut(START, HOUR, 24 * HOUR), "c", goals, goals, {})
    return backtest(
        spark,
        series,
        job,
        Space(goals, {"net": 0.2}, (4 * HOUR, 8 * HOUR), (HOUR,)),
        Wish("random", 4, seed=3),
        lambda _: None,
    )


def test_a_backtest_is_the_same_however_spark_cuts_it_and_held_out_days_do_not_decide(
    spark: SparkSession,
) -> None:
    series = history(spark, 3)
    found = tried(spark, series.repartition(2))
    again = tried(spark, series.coalesce(1))
    assert [t.outcome for t in found.searched] == [t.outcome for t in again.searched]
    assert found.rows() == again.rows()
    assert (found.training, found.choosing, found.held_out) == ((0,), (1,), (2,))
    assert found.own.outcome.plans > 0
    rows = found.rows()
    assert rows[0].what == "default: goals as they are"
    assert sum(row.chosen for row in rows) == 1
    assert all(isinstance(row, Tried) and row.weights["net"] > 0 for row in rows)
    # Held-out days that are twisted change their own figures, not what was tried or chosen.
    twisted = series.selectExpr(
        "stretch", "broker", "topic", "partition", "metric", "at",
        "transform(mean, (x, i) -> if(stretch = 2 and partition < 6, cast(x * (1 + i % 5) as float), x)) as mean",
    )  # fmt: skip
    other = tried(spark, twisted)
    assert [t.outcome for t in other.searched] == [t.outcome for t in found.searched]
    assert other.chosen.trained == found.chosen.trained
    assert other.own.outcome != found.own.outcome
