"""A stretch of history as arrays: who hosted what when it started, and what every partition cost in each of its windows.

Made by `spark.backtest.packing` out of partition windows (or by hand, in tests and benchmarks), read by the replay. Plain numpy;
knows neither Spark nor goals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from math import inf

import numpy as np
import numpy.typing as npt

from cluster_model.resources import FOLLOWER_COPIES_LEADER
from cluster_model.snapshot import FloatArray, IntArray, Snapshot, Storage

Series = npt.NDArray[np.float32]

NEWEST_COUNTS = frozenset({"disk"})  # no rates: the newest value is what a snapshot has, not a mean


@dataclass(frozen=True, eq=False)
class Stretch:
    """W windows of one cluster with P partitions, in canonical order (by topic name, then number).

    Attributes
    ----------
    start
        Epoch seconds of the first window's start.
    window
        Length of a window, seconds.
    broker_ids, racks, capacity
        As in `Snapshot`, for the whole stretch: a broker is there from the first window to the last.
    replicas
        int32 [P, R] broker rows, preferred leader first, -1 beyond the replication factor: when the partition was first seen.
    load
        resource -> float32 [W, P], what the leader of each partition costs, in the resource's unit. NaN where it was not measured:
        the newest earlier value holds, 0 before the first.
    follower
        resource -> float64 [P], what a follower costs as a share of its leader, the same throughout. A resource that is missing:
        1 for `network_in` and `disk`, 0 for the others, as in a snapshot without follower loads.
    throttle
        Bytes/s that plans copy into, and out of, each broker.
    first, last
        int32 [P]: windows in which the partition is first and last there.
    """

    cluster_id: str
    start: int
    window: float
    topics: tuple[str, ...]
    partition_topic: IntArray
    partition_number: IntArray
    broker_ids: IntArray
    replicas: IntArray
    load: Mapping[str, Series]
    first: IntArray
    last: IntArray
    follower: Mapping[str, FloatArray] = field(default_factory=dict)
    capacity: Mapping[str, FloatArray] = field(default_factory=dict)
    racks: tuple[str | None, ...] = ()
    storage: Storage = "local"
    throttle: float = inf

    @property
    def windows(self) -> int:
        return len(next(iter(self.load.values()))) if self.load else 0

    @property
    def partitions(self) -> int:
        return len(self.partition_topic)

    @property
    def brokers(self) -> int:
        return len(self.broker_ids)

    @cached_property
    def filled(self) -> Mapping[str, Series]:
        """`load` without gaps, and 0 while the partition is not there: resource -> float32 [W, P]."""
        rows = np.arange(self.windows)[:, None]
        there = (rows >= self.first) & (rows <= self.last)
        return {
            name: np.where(there, without_gaps(series), np.float32(0)) for name, series in self.load.items()
        }

    def follower_share(self, resource: str) -> FloatArray:
        """float64 [P], see `follower`."""
        given = self.follower.get(resource)
        if given is not None:
            return given
        return np.full(self.partitions, 1.0 if resource in FOLLOWER_COPIES_LEADER else 0.0)

    def present(self, window: int) -> npt.NDArray[np.bool_]:
        """bool [P], whether a partition is there in a window."""
        return np.asarray((self.first <= window) & (window <= self.last))

    def seen(self, window: int, horizon: int) -> dict[str, FloatArray]:
        """What a service knows at the start of `window`: resource -> float64 [P], the mean over the `horizon` windows before it (of
        `disk` the newest), over those in which the partition was there. Nothing of `window` itself or later is in it."""
        begin = max(0, window - horizon)
        known = np.maximum(window - np.maximum(begin, self.first), 1)
        means = {}
        for name, series in self.filled.items():
            newest = series[window - 1].astype(np.float64)
            means[name] = (
                newest
                if name in NEWEST_COUNTS
                else series[begin:window].sum(axis=0, dtype=np.float64) / known
            )
        return means

    def snapshot(
        self, window: int, horizon: int, replicas: IntArray, leader: IntArray
    ) -> tuple[Snapshot, IntArray]:
        """The cluster as a service sees it at the start of `window` (1 or later), with the given placement; and the partition rows
        (int32 [n]) that are in it: those that were there in the window before."""
        rows = np.flatnonzero(self.present(window - 1)).astype(np.int32)
        seen = {name: values[rows] for name, values in self.seen(window, horizon).items()}
        used, topic = np.unique(self.partition_topic[rows], return_inverse=True)
        taken = datetime.fromtimestamp(self.start + window * self.window, UTC)
        snapshot = Snapshot(
            cluster_id=self.cluster_id,
            taken_at=taken.strftime("%Y-%m-%dT%H:%M:%SZ"),
            storage=self.storage,
            broker_ids=self.broker_ids,
            broker_states=np.zeros(self.brokers, np.int8),
            racks=self.racks or (None,) * self.brokers,
            capacity=self.capacity,
            topics=tuple(self.topics[t] for t in used),
            partition_topic=topic.astype(np.int32),
            partition_number=self.partition_number[rows],
            replicas=replicas[rows],
            leader=leader[rows],
            leader_load=seen,
            follower_load={name: values * self.follower_share(name)[rows] for name, values in seen.items()},
            has_follower_load=np.ones(len(rows), np.bool_),
        )
        return snapshot, rows


def without_gaps(series: Series) -> Series:
    """float32 [W, P]: NaN takes the newest earlier value, 0 before the first."""
    missing = np.isnan(series)
    if not missing.any():
        return series
    rows = np.where(missing, 0, np.arange(len(series), dtype=np.int32)[:, None])
    newest = np.maximum.accumulate(rows, axis=0)
    return np.nan_to_num(np.take_along_axis(series, newest, axis=0), nan=0.0)
