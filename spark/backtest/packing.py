"""From windows of a history to packed series: one row a replica, metric and stretch, with all its windows in two arrays.

The Spark side (`packed`, `sizes`) groups; `unpacked` makes a `Stretch` of the rows of one stretch, in the task that replays it.
A stretch is bounded by `MOST_CELLS`; nothing that grows with history comes to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cluster_model.errors import InputError, Problem
from cluster_model.resources import MEASURED
from cluster_model.snapshot import FloatArray, IntArray, Storage
from spark.backtest.stretch import Series, Stretch
from spark.outgoing import CONSUMER_OUT, INCOMING, OUTGOING, sent
from spark.schemas import Windows

MOST_CELLS = 80_000_000  # windows x partitions x resources of a stretch: 320 MB, and the same again while it is replayed
COVERED = 0.5  # share of a stretch from its first window with samples to its last
GRACE = 3600.0  # seconds without samples at an end of a stretch that do not make a partition new or gone
FOLLOWER, UNKNOWN_ROLE, CAPACITY = "follower.", "replica.", "capacity."


@dataclass(frozen=True)
class Cut:
    """How history is cut: epoch seconds of its start, window and stretch in seconds (a stretch is a whole number of windows).

    Before each stretch there are `lead` seconds (at most a stretch) that are known to the first look and not scored: of the first
    stretch those with which history starts, of the others the end of the one before.
    """

    begin: int
    window: float
    stretch: float
    lead: float = 0.0

    @property
    def windows(self) -> int:
        """In a stretch, without its lead."""
        return max(1, round(self.stretch / self.window))

    @property
    def lead_windows(self) -> int:
        return round(self.lead / self.window)

    @property
    def length(self) -> int:
        """Windows of a stretch and its lead."""
        return self.lead_windows + self.windows

    def scored(self, number: int) -> float:
        """Epoch seconds at which the scored part of a stretch starts."""
        return self.begin + self.lead + number * self.stretch


def packed(measured: Windows, cut: Cut) -> DataFrame:
    """One row per stretch, broker, topic, partition and metric: `at` (windows since its lead's start) and `mean`, in any order.

    Rows about whole brokers say that a broker is there, and its newest capacity; of other metrics only those of measured resources,
    and what consumers fetch, are taken. One grouping of the windows.
    """
    metric, index = F.col("metric"), F.floor((F.unix_seconds("start") - cut.begin) / cut.window).cast("int")
    resource = F.regexp_replace(metric, r"^(follower|replica)\.", "")
    whole = F.col("topic").isNull()
    wanted = (whole & (metric.startswith(CAPACITY) | metric.isin(*MEASURED))) | (
        ~whole & (resource.isin(*MEASURED) | (metric == CONSUMER_OUT))
    )
    newest_stretch = F.floor(index / cut.windows).cast("int")
    oldest_stretch = F.greatest(F.lit(0), F.floor((index - cut.lead_windows) / cut.windows).cast("int"))
    rows = measured.frame.where(wanted & (index >= 0)).select(
        F.explode(F.sequence(oldest_stretch, newest_stretch)).alias("stretch"), "broker", "topic", "partition", "metric",
        index.alias("index"), F.col("mean").cast("float").alias("mean"),
    ).withColumn("at", F.col("index") - F.col("stretch") * cut.windows)  # fmt: skip
    point = F.collect_list(F.struct("at", "mean"))
    newest = F.array(F.max(F.struct("at", "mean")))
    keys = ["stretch", "broker", "topic", "partition", "metric"]
    series = rows.groupBy(*keys).agg(F.when(F.col("topic").isNull(), newest).otherwise(point).alias("points"))
    return series.select(*keys, F.col("points.at").alias("at"), F.col("points.mean").alias("mean"))


def sizes(series: DataFrame, cut: Cut, name: str) -> list[int]:
    """Stretches whose scored part is known for `COVERED` of its length, in order: a last one of hours would be all that validates a choice.

    Raises
    ------
    InputError
        There are none, or only parts of one, or one is larger than a task may hold.
    """
    replicas = series.where(F.col("topic").isNotNull())
    counts = replicas.groupBy("stretch").agg(
        F.count_distinct("topic", "partition").alias("partitions"),
        F.count_distinct(F.regexp_replace("metric", r"^(follower|replica)\.", "")).alias("resources"),
        F.min(F.array_min("at")).alias("since"), F.max(F.array_max("at")).alias("until"),
    )  # fmt: skip
    every = sorted(counts.collect(), key=lambda row: int(row.stretch))
    if not every:
        raise InputError(
            name,
            [
                Problem(
                    "",
                    "expected samples of partitions (a topic, a partition, a measured resource), found none",
                )
            ],
        )
    largest = max(every, key=lambda row: row.partitions * row.resources)
    cells = largest.partitions * largest.resources * cut.length
    if cells > MOST_CELLS:
        shape = f"{largest.partitions:,} partitions x {largest.resources} resources x {cut.length:,} windows"
        remedy = f"make windows longer (--window) or stretches shorter (--stretch), by {cells / MOST_CELLS:.1f} times or more"
        raise InputError(
            name, [Problem("", f"a stretch of history has {shape}, more than the {MOST_CELLS:,} values that a task holds; {remedy}")]
        )
    found = [row.stretch for row in every if row.until + 1 - max(row.since, cut.lead_windows) >= COVERED * cut.windows]
    if not found:
        wanted = f"expected at least half a stretch of history ({COVERED * cut.stretch / 3600:g} h) after the longest horizon"
        raise InputError(name, [Problem("", f"{wanted}, found less; make stretches shorter (--stretch) or give more history")])
    return found


def unpacked(
    rows: pa.Table,
    cut: Cut,
    cluster_id: str,
    capacity: Mapping[str, Mapping[int, float]],
    storage: Storage = "local",
    racks: Mapping[int, str] | None = None,
) -> Stretch:
    """The stretch in its packed rows, whatever their order.

    Parameters
    ----------
    capacity
        resource -> broker -> what it can carry, where the history itself reports nothing.
    racks
        broker -> rack; one that is not named has none.
    """
    (number,) = set(rows["stretch"].to_pylist())
    brokers = np.unique(rows["broker"].to_numpy()).astype(np.int32)
    about = rows.filter(pc.is_valid(rows["topic"])).sort_by(
        [(k, "ascending") for k in ("topic", "partition", "metric", "broker")]
    )
    topic = about["topic"].combine_chunks().dictionary_encode()
    names = topic.dictionary.to_pylist()
    code = topic.indices.to_numpy().astype(np.int64)
    partition = about["partition"].to_numpy().astype(np.int64)
    key, inverse = np.unique(code * 2**31 + partition, return_inverse=True)
    row_of = inverse.astype(np.int32)
    host = np.searchsorted(brokers, about["broker"].to_numpy()).astype(np.int32)
    metrics = about["metric"].to_pylist()
    resource = [m.removeprefix(FOLLOWER).removeprefix(UNKNOWN_ROLE) for m in metrics]
    at, offsets = _flat(about["at"])
    mean, _ = _flat(about["mean"])
    earliest = np.array([at[a:b].min() for a, b in pairwise(offsets.tolist())], dtype=np.int64)
    latest = np.array([at[a:b].max() for a, b in pairwise(offsets.tolist())], dtype=np.int64)
    leads = _leading(metrics, row_of, host, earliest, len(key))
    length = int(latest.max()) + 1  # what comes after the end of history is no time in range
    first, last = _lifetime(row_of, earliest, latest, len(key), length, round(GRACE / cut.window))
    placed = _placement(leads, row_of, host, earliest, first, len(key), cut)
    kinds = [r for r in (*MEASURED, CONSUMER_OUT) if r in set(resource)]
    load: dict[str, Series] = {}
    follower: dict[str, FloatArray] = {}
    for kind in kinds:
        mine = np.array([r == kind for r in resource])
        load[kind] = _series(np.flatnonzero(mine & leads), row_of, offsets, at, mean, (length, len(key)))
        following = np.flatnonzero(mine & ~leads)
        if len(following):
            follower[kind] = _share(following, np.flatnonzero(mine & leads), row_of, offsets, mean, len(key))
    consumers = load.pop(CONSUMER_OUT, None)
    if consumers is not None:
        copies = (placed >= 0).sum(axis=1) - 1
        incoming = load.get(INCOMING, np.full((length, len(key)), np.nan, np.float32))
        out = sent(consumers, incoming, copies, load.get(OUTGOING))
        if not np.isnan(out).all():
            load[OUTGOING] = out
    return Stretch(
        cluster_id=cluster_id,
        start=int(cut.begin + number * cut.windows * cut.window),
        window=cut.window,
        topics=tuple(names),
        partition_topic=(key // 2**31).astype(np.int32),
        partition_number=(key % 2**31).astype(np.int32),
        broker_ids=brokers,
        replicas=placed,
        load={kind: load[kind] for kind in MEASURED if kind in load},
        first=first,
        last=last,
        follower=follower,
        capacity=_capacity(rows, brokers, capacity),
        storage=storage,
        racks=tuple((racks or {}).get(int(broker)) for broker in brokers),
    )


def _flat(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.int64]]:
    lists = column.combine_chunks()
    values = lists.flatten().to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _leading(
    metrics: list[str], row_of: IntArray, host: IntArray, earliest: npt.NDArray[np.int64], partitions: int
) -> npt.NDArray[np.bool_]:
    """bool [n]: rows measured by a leader. Where no role is known in a partition, the broker with the lowest id counts as such."""
    plain = np.array([not m.startswith((FOLLOWER, UNKNOWN_ROLE)) for m in metrics], dtype=np.bool_)
    unknown = np.array([m.startswith(UNKNOWN_ROLE) for m in metrics], dtype=np.bool_)
    led = np.zeros(partitions, np.bool_)
    led[row_of[plain]] = True
    lowest = np.full(partitions, np.iinfo(np.int32).max, np.int64)
    np.minimum.at(lowest, row_of[unknown], host[unknown])
    return np.asarray(plain | (unknown & ~led[row_of] & (host == lowest[row_of])))


def _lifetime(
    row_of: IntArray,
    earliest: npt.NDArray[np.int64],
    latest: npt.NDArray[np.int64],
    partitions: int,
    length: int,
    grace: int,
) -> tuple[IntArray, IntArray]:
    first, last = np.full(partitions, length, np.int64), np.full(partitions, -1, np.int64)
    np.minimum.at(first, row_of, earliest)
    np.maximum.at(last, row_of, latest)
    first = np.where(first <= grace, 0, first)
    last = np.where(last >= length - 1 - grace, length - 1, last)
    return first.astype(np.int32), last.astype(np.int32)


def _placement(
    leads: npt.NDArray[np.bool_], row_of: IntArray, host: IntArray, earliest: npt.NDArray[np.int64], first: IntArray,
    partitions: int, cut: Cut,
) -> IntArray:  # fmt: skip
    """int32 [P, R]: the first leader, then the followers that were there within `GRACE` of the partition's first window, by id.

    Without any leader the first follower stands in.
    """
    early = leads | (earliest <= first[row_of] + round(GRACE / cut.window))
    order = np.lexsort((host, earliest * leads, ~leads, row_of))
    order = order[early[order]]
    lists: list[list[int]] = [[] for _ in range(partitions)]
    led = np.zeros(partitions, np.bool_)
    for p, broker, leader in zip(
        row_of[order].tolist(), host[order].tolist(), leads[order].tolist(), strict=True
    ):
        if leader and led[p]:
            continue  # a later leader; it is a follower where it was measured as one
        led[p] |= leader
        if broker not in lists[p]:
            lists[p].append(broker)
    replicas = np.full((partitions, max(map(len, lists), default=1)), -1, np.int32)
    for p, hosts in enumerate(lists):
        replicas[p, : len(hosts)] = hosts
    return replicas


def _series(
    rows: npt.NDArray[np.int64], row_of: IntArray, offsets: npt.NDArray[np.int64], at: npt.NDArray[np.generic],
    mean: npt.NDArray[np.generic], shape: tuple[int, int],
) -> Series:  # fmt: skip
    """float32 `shape`, NaN where nothing was measured; the mean of two that led in one window."""
    total, count = np.zeros(shape, np.float32), np.zeros(shape, np.uint8)
    for row in rows.tolist():
        when = at[offsets[row] : offsets[row + 1]]
        total[when, row_of[row]] += mean[offsets[row] : offsets[row + 1]]
        count[when, row_of[row]] += 1
    return np.where(count > 0, total / np.maximum(count, 1), np.float32(np.nan)).astype(np.float32)


def _share(
    following: npt.NDArray[np.int64], leading: npt.NDArray[np.int64], row_of: IntArray, offsets: npt.NDArray[np.int64],
    mean: npt.NDArray[np.generic], partitions: int,
) -> FloatArray:  # fmt: skip
    """float64 [P]: mean load of a follower over that of the leader; over all partitions where one's cannot be told."""
    sums = np.zeros((2, partitions))
    counts = np.zeros((2, partitions))
    for side, rows in enumerate((leading, following)):
        for row in rows.tolist():
            values = mean[offsets[row] : offsets[row + 1]]
            sums[side, row_of[row]] += values.sum(dtype=np.float64)
            counts[side, row_of[row]] += len(values)
    average = sums / np.maximum(counts, 1)
    known = (counts[0] > 0) & (counts[1] > 0) & (average[0] > 0)
    together = average[1][known].sum() / average[0][known].sum() if known.any() else 1.0
    return np.where(known, average[1] / np.where(average[0] > 0, average[0], 1.0), together)


def _capacity(
    rows: pa.Table, brokers: IntArray, given: Mapping[str, Mapping[int, float]]
) -> dict[str, FloatArray]:
    """resource -> float64 [B], NaN where neither the history nor `given` has one."""
    table: dict[str, FloatArray] = {}

    def put(resource: str, broker: int, value: float) -> None:
        if resource not in table:
            table[resource] = np.full(len(brokers), np.nan)
        row = int(np.searchsorted(brokers, broker))
        if row < len(brokers) and brokers[row] == broker:
            table[resource][row] = value

    for resource, values in given.items():
        for broker, value in values.items():
            put(resource, broker, value)
    whole = rows.filter(pc.and_(pc.is_null(rows["topic"]), pc.starts_with(rows["metric"], CAPACITY)))
    for row in whole.select(["broker", "metric", "mean"]).to_pylist():
        if row["mean"][-1] > 0:  # a broker that says 0 does not know
            put(row["metric"].removeprefix(CAPACITY), row["broker"], float(row["mean"][-1]))
    return {
        name: values
        for name, values in sorted(table.items())
        if name in MEASURED and not np.isnan(values).all()
    }
