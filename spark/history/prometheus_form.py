"""Answers of Prometheus to range queries (``/api/v1/query_range``) as samples, day by day.

Called by `spark.history.importing`. A mapping says which series is what (`spark.history.answers`). Counters become rates, series that are
summed up count where all of them are there, and what brokers count for a topic is split among the partitions that they lead by how
their logs grew. Without Spark: a server's months are gigabytes, which it would spend more on starting tasks than on counting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from cluster_model.resources import LARGEST_AMOUNT
from spark.history.answers import Answers, Points, Series
from spark.history.counters import MOST_STEPS
from spark.history.mapping import PrometheusMapping, Source
from spark.history.refused import Refused
from spark.history.repeats import PROBED, USUAL_MS
from spark.history.sift import AHEAD_SECONDS, EARLIEST, REPEATED

NOT_SPLIT = "topic cannot be split among partitions"
FOLLOWER, UNKNOWN_ROLE = "follower.", "replica."
NONE = -1  # number of a topic or partition, where a series is about more than that
EARLIEST_US = int(datetime.fromisoformat(EARLIEST).replace(tzinfo=UTC).timestamp() * 1e6)
PLACE = ["cluster_id", "broker", "topic"]
IDENTITY = [*PLACE, "partition", "metric"]
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Day:
    """A day's samples that count: columns `time` (microseconds), `cluster_id`, `broker`, `topic`, `partition` (`NONE`: of the whole
    broker), `metric`, `value`; sorted as the history's files are."""

    number: int
    samples: pd.DataFrame


def samples_of(answers: Answers, mapping: PrometheusMapping, now: datetime, refused: Refused) -> Iterator[Day]:
    """The samples of each day in order; what does not count is told to `refused`.

    Notes
    -----
    O(points log points) a day, one day in memory; of the days before only the last reading of each counter.
    """
    tables = _Tables(answers.series, list(mapping.sources()))
    state = _Readings(len(answers.series))
    spacing = _spacing_us(answers)
    for day in sorted(answers.days):
        found = _samples(_measured(answers.points_of(day), tables, state, spacing), tables, refused)
        counted = _sifted(found, now, tables, refused)
        if len(counted):
            yield Day(day, counted)


def table_of(day: Day) -> pa.Table:
    """The day as a table of the history's files."""
    found = day.samples
    partition = found["partition"].to_numpy()
    return pa.table({
        "time": pa.array(found["time"].to_numpy()).cast(pa.timestamp("us", tz="UTC")),
        "cluster_id": _texts(found["cluster_id"]), "broker": pa.array(found["broker"].to_numpy().astype(np.int32)),
        "topic": _texts(found["topic"]), "partition": pa.array(partition.astype(np.int32), mask=partition == NONE),
        "metric": _texts(found["metric"]), "value": pa.array(found["value"].to_numpy()),
    })  # fmt: skip


def _texts(column: pd.Series[str]) -> pa.Array:
    return pa.array(column, pa.string(), from_pandas=True)


class _Tables:
    """What is known of each series by its place, as arrays."""

    def __init__(self, series: Sequence[Series], sources: Sequence[Source]) -> None:
        of = [sources[one.origin] for one in series]
        self.series = series
        self.about = np.array([source.about for source in of], dtype=object)
        self.counter = np.array([source.series.is_counter or source.about == "growth" for source in of], bool)
        self.scale = np.array([source.series.scale for source in of], np.float64)
        self.summands = np.array([source.summands for source in of], np.int64)
        self.origin = np.array([one.origin for one in series], np.int64)
        topics = sorted({one.topic for one in series if one.topic is not None})
        metrics = sorted({source.metric for source in of})
        clusters = sorted({one.cluster_id for one in series if one.cluster_id is not None})
        self.names = {"cluster_id": clusters, "topic": topics, "metric": metrics}
        self.frame = pd.DataFrame({
            "cluster_id": _codes(clusters, [one.cluster_id for one in series]), "broker": [one.broker for one in series],
            "topic": _codes(topics, [one.topic for one in series]),
            "partition": [NONE if one.partition is None else one.partition for one in series],
            "metric": _codes(metrics, [source.metric for source in of]),
        }, dtype=np.int64)  # fmt: skip
        self.negative = np.array([one.partition is not None and one.partition < 0 for one in series], bool)

    def of(self, column: str, codes: IntArray) -> npt.NDArray[np.object_]:
        """The names that codes stand for; None for `NONE`."""
        return np.array([*self.names[column], None], dtype=object)[codes]


def _codes(names: Sequence[str], values: Sequence[str | None]) -> list[int]:
    place = {name: n for n, name in enumerate(names)}
    return [NONE if value is None else place[value] for value in values]


class _Readings:
    """The last reading of each series, of the days before."""

    def __init__(self, series: int) -> None:
        self.time = np.full(series, np.iinfo(np.int64).min // 2, np.int64)
        self.value = np.zeros(series)


def _spacing_us(answers: Answers) -> float:
    """How far apart the points of a series usually are, by the first of them."""
    for day in sorted(answers.days):
        points = np.sort(np.load(answers.days[day][0])[:PROBED], order=["series", "time"])
        apart = np.diff(points["time"])[np.diff(points["series"]) == 0]
        apart = apart[apart > 0]
        if len(apart):
            return max(float(np.median(apart)), 1.0)
    return USUAL_MS * 1000.0


def _measured(points: Points, tables: _Tables, state: _Readings, spacing: float) -> pd.DataFrame:
    """Gauges as they are and counters as rates: `time`, `series`, `value`."""
    points = points[np.lexsort((points["value"], points["time"], points["series"]))]
    counts = tables.counter[points["series"]]
    read = points[counts & ~np.isnan(points["value"])]
    series, time, value = read["series"], read["time"], read["value"] * tables.scale[read["series"]]
    first = np.ones(len(read), bool)
    first[1:] = series[1:] != series[:-1]
    before, since = np.empty(len(read)), np.empty(len(read), np.int64)
    before[1:], since[1:] = value[:-1], time[:-1]
    before[first], since[first] = state.value[series[first]], state.time[series[first]]
    last = np.ones(len(read), bool)
    last[:-1] = first[1:]
    state.value[series[last]], state.time[series[last]] = value[last], time[last]
    apart = time - since
    told = (apart > 0) & (apart <= MOST_STEPS * spacing)
    grown = np.where(value < before, value, value - before)
    rates = pd.DataFrame({"time": time[told], "series": series[told], "value": grown[told] / (apart[told] / 1e6)})
    gauges = points[~counts]
    as_read = pd.DataFrame({
        "time": gauges["time"], "series": gauges["series"], "value": gauges["value"] * tables.scale[gauges["series"]],
    })  # fmt: skip
    return pd.concat([as_read, rates], ignore_index=True)


def _samples(measured: pd.DataFrame, tables: _Tables, refused: Refused) -> pd.DataFrame:
    """One row a sample, with `prefix` (of its role) and the `series` that it came from; repeated ones too."""
    about = tables.about[measured["series"].to_numpy()]
    helpers = {name: _placed(measured[about == name], tables) for name in ("leads", "growth")}
    leads = helpers["leads"].groupby([*PLACE, "partition", "time"], as_index=False)["value"].max()
    wanted = {name: _summed(measured[about == name], tables) for name in ("broker", "partition", "topic")}
    found = [wanted["broker"].assign(prefix=""), _with_roles(wanted["partition"], leads)]
    found.append(_split(wanted["topic"], helpers["growth"], leads, tables, refused))
    return pd.concat([one for one in found if len(one)] or found[:1], ignore_index=True)


def _placed(measured: pd.DataFrame, tables: _Tables) -> pd.DataFrame:
    """With the columns of the series' identity."""
    where = tables.frame.take(measured["series"].to_numpy())
    return pd.concat([measured.reset_index(drop=True), where.reset_index(drop=True)], axis=1)


def _summed(measured: pd.DataFrame, tables: _Tables) -> pd.DataFrame:
    """A metric that is the sum of series, where all of them are there; others one by one."""
    summands = tables.summands[measured["series"].to_numpy()]
    placed = _placed(measured, tables)
    alone, parts = placed[summands == 1], placed[summands > 1]
    if not len(parts):
        return alone
    parts = parts.assign(origin=tables.origin[parts["series"].to_numpy()], summands=summands[summands > 1])
    group = parts.groupby([*IDENTITY, "time"], sort=False)
    totals = pd.DataFrame({"place": group.ngroup()})
    totals["value"] = np.bincount(totals["place"], parts["value"])[totals["place"].to_numpy()]  # a NaN stays one
    whole = group["origin"].transform("nunique").to_numpy() == parts["summands"].to_numpy()
    once = ~totals["place"].duplicated().to_numpy()
    summed = parts.assign(value=totals["value"].to_numpy())[whole & once].drop(columns=["origin", "summands"])
    return pd.concat([alone, summed], ignore_index=True)


def _with_roles(replicas: pd.DataFrame, leads: pd.DataFrame) -> pd.DataFrame:
    """`prefix` says which role the replica had at the time."""
    joined = replicas.merge(leads.rename(columns={"value": "leads"}), "left", [*PLACE, "partition", "time"])
    value = joined["leads"].to_numpy()
    prefix = np.where(np.isnan(value), UNKNOWN_ROLE, np.where(value > 0, "", FOLLOWER))
    return joined.drop(columns="leads").assign(prefix=prefix)


def _split(topics: pd.DataFrame, growth: pd.DataFrame, leads: pd.DataFrame, tables: _Tables, refused: Refused) -> pd.DataFrame:
    """What a broker counted for a topic, split among the partitions that it leads by how their logs grew; equally where none did.

    Without knowing who leads, nothing is split: a follower's log grows as the leader's does.
    """
    led = leads[leads["value"] > 0].drop(columns="value")
    grown = growth.groupby([*PLACE, "partition", "time"], as_index=False)["value"].max().rename(columns={"value": "growth"})
    weighed = led.merge(grown, "left", [*PLACE, "partition", "time"]).rename(columns={"partition": "part"})
    weighed["growth"] = weighed["growth"].fillna(0.0)
    of_topic = weighed.groupby([*PLACE, "time"])["growth"]
    whole, number = of_topic.transform("sum").to_numpy(), of_topic.transform("size").to_numpy()
    share = np.divide(weighed["growth"].to_numpy(), whole, out=1.0 / np.maximum(number, 1), where=whole > 0)
    weighed = weighed.drop(columns="growth").assign(share=share)
    split = topics.merge(weighed, "left", [*PLACE, "time"])
    lone = split["part"].isna()
    _refuse(split[lone & (split["value"] > 0)].assign(prefix=""), NOT_SPLIT, tables, refused)
    split = split[~lone]
    found = split.assign(value=split["value"] * split["share"], partition=split["part"].astype(np.int64), prefix="")
    return found.drop(columns=["part", "share"])


def _sifted(found: pd.DataFrame, now: datetime, tables: _Tables, refused: Refused) -> pd.DataFrame:
    """Those that count, once each, in the order of the history's files; by the rules of `spark.history.sift`."""
    value, time = found["value"].to_numpy(np.float64), found["time"].to_numpy(np.int64)
    topic, partition = found["topic"].to_numpy(), found["partition"].to_numpy()
    blank = np.array([name == "" for name in tables.names["topic"]] + [False], bool)
    no_cluster = np.array([not name for name in tables.names["cluster_id"]] + [True], bool)
    latest = now.timestamp() * 1e6 + AHEAD_SECONDS * 1e6
    with np.errstate(invalid="ignore"):
        conditions = {
            "no cluster": no_cluster[found["cluster_id"].to_numpy()],
            "no broker": found["broker"].to_numpy() < 0,
            "not a number": np.isnan(value),
            "infinite": np.isinf(value),
            "negative": value < 0,
            "too large": value > LARGEST_AMOUNT,
            "time before 2000": time < EARLIEST_US,
            "time in the future": time > latest,
            "neither broker nor partition": (topic == NONE) != (partition == NONE),
            "unknown partition": (partition < NONE) | tables.negative[found["series"].to_numpy()] | blank[topic],
        }
    fine = np.ones(len(found), bool)
    for reason, holds in conditions.items():
        _refuse(found[fine & holds], reason, tables, refused)
        fine &= ~holds
    good = found[fine].assign(metric=_named(found[fine], tables))
    good = good.sort_values(["metric", "topic", "partition", "broker", "cluster_id", "time", "value"], kind="stable")
    again = good.duplicated(["metric", "topic", "partition", "broker", "cluster_id", "time"], keep="last")
    _refuse(good[again], REPEATED, tables, refused)
    once = good[~again]
    names = {column: tables.of(column, once[column].to_numpy()) for column in ("cluster_id", "topic")}
    return once.assign(**names)


def _named(found: pd.DataFrame, tables: _Tables) -> npt.NDArray[np.object_]:
    names = tables.of("metric", found["metric"].to_numpy())
    return np.asarray(found["prefix"].to_numpy() + names, dtype=object)


def _refuse(rows: pd.DataFrame, reason: str, tables: _Tables, refused: Refused) -> None:
    if not len(rows):
        return
    series = rows["series"].to_numpy()
    first = min(tables.series[place].source for place in np.unique(series).tolist())

    def columns() -> dict[str, object]:
        metric = rows["metric"].to_numpy()
        partition = pd.array(rows["partition"].where(rows["partition"] != NONE), dtype="Int64")
        return {
            "time": rows["time"].to_numpy(), "cluster_id": tables.of("cluster_id", rows["cluster_id"].to_numpy()),
            "broker": rows["broker"].to_numpy(), "topic": tables.of("topic", rows["topic"].to_numpy()), "partition": partition,
            "metric": metric if metric.dtype == object else _named(rows, tables), "value": rows["value"].to_numpy(),
            "source": np.array([tables.series[place].source for place in series.tolist()], dtype=object),
        }  # fmt: skip

    refused.add(reason, first, len(rows), columns)
