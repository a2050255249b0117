"""What detectors see of a snapshot: loads of the brokers they judge. Active brokers only; of a `LiveSnapshot`, only brokers
whose load of the resource in question is not in doubt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cluster_model.resources import DERIVED_FROM, RESOURCES
from cluster_model.snapshot import BoolArray, BrokerState, FloatArray, Snapshot
from cluster_model.trust import DOUBTFUL_SHARE, LiveSnapshot
from goals.model import Capacity, GoalSet, UsageDistribution
from optimizer.broker_sets import strays
from optimizer.capacity import with_capacity
from optimizer.detectors.averages import Averages
from optimizer.judgement import Judgement, judge
from optimizer.shares import Share, broker_means

FEWEST = 2  # brokers that can be compared


@dataclass(frozen=True, eq=False)
class Utilization:
    """float64 [n, resources] utilization, 0..1 and above, of brokers `rows`; NaN where it cannot be told.

    `by_capacity` False: no resource has a capacity on every broker, so shares of the busiest broker's load stand in.
    """

    rows: np.ndarray
    shares: FloatArray
    resources: tuple[str, ...]
    by_capacity: bool

    @cached_property
    def worst(self) -> FloatArray:
        """float64 [n], the largest of each broker, 0 where nothing can be told."""
        known = np.where(np.isnan(self.shares), 0.0, self.shares)
        return np.asarray(known.max(axis=1, initial=0.0))

    def resource(self, row: int) -> str:
        """Which one is the largest; the first of equals."""
        known = np.where(np.isnan(self.shares[row]), -1.0, self.shares[row])
        return self.resources[int(np.argmax(known))]


class Sight:
    """One snapshot under one set of goals. Loads are summed when first asked for: O(replicas) for each resource."""

    def __init__(
        self, snapshot: Snapshot, goals: GoalSet, judgement: Judgement | None = None, averages: Averages | None = None
    ) -> None:
        self.snapshot = with_capacity(snapshot, goals) if judgement is None else judgement.snapshot
        self.goals = goals
        self._judgement = judgement
        self.averages = Averages({}, snapshot) if averages is None else averages
        self.notes: dict[str, None] = {}  # in order, each once
        self._loads: dict[str, FloatArray] = {}

    @property
    def judgement(self) -> Judgement:
        """What every goal makes of the snapshot; made when first asked for."""
        if self._judgement is None:
            self._judgement = judge(self.snapshot, self.goals)
        return self._judgement

    @cached_property
    def active(self) -> BoolArray:
        return np.asarray(self.snapshot.broker_states == BrokerState.ACTIVE)

    @property
    def unrepaired(self) -> int:
        """Replicas on dead and draining brokers, and partitions without a leader."""
        leaving = np.isin(self.snapshot.broker_states, (BrokerState.DEAD, BrokerState.DRAINING))
        there = np.append(leaving, False)[self.snapshot.replicas]
        return int(there.sum()) + int((self.snapshot.leader < 0).sum())

    @property
    def astray(self) -> int:
        """Replicas on active brokers of other broker sets that may move."""
        if not self.goals.constraints.broker_sets:
            return 0
        compiled = self.judgement.compiled
        return len(strays(compiled.problem, compiled.replicas))

    @cached_property
    def levelled(self) -> tuple[str, ...]:
        """Resources that goals distribute and a broker reports, in the order of the goals."""
        found = [g.resource for g in self.goals.goals if isinstance(g, UsageDistribution)]
        return self._known(found)

    @cached_property
    def loaded(self) -> tuple[str, ...]:
        """The same, and those that goals limit to a share of capacity."""
        found = [g.resource for g in self.goals.goals if isinstance(g, UsageDistribution | Capacity)]
        return self._known(found)

    def _known(self, resources: list[str]) -> tuple[str, ...]:
        return tuple(r for r in dict.fromkeys(resources) if self.snapshot.is_reported(r))

    def load(self, resource: str) -> FloatArray:
        """float64 [B] in the resource's unit."""
        if resource not in self._loads:
            self._loads[resource] = self.snapshot.broker_load(resource)
        return self._loads[resource]

    def ids(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.snapshot.broker_ids[rows], dtype=np.int64)

    def rows(self, *resources: str) -> np.ndarray:
        """int64: active brokers whose loads of the resources can be trusted; who cannot be is noted."""
        trusted = self.active.copy()
        for resource in resources:
            doubts = self.active & doubtful(self.snapshot, resource)
            if doubts.any():
                who = ", ".join(str(b) for b in self.snapshot.broker_ids[doubts][:5])
                more = f" and {int(doubts.sum()) - 5} more" if doubts.sum() > 5 else ""
                self.notes[f"{resource} is not judged on brokers {who}{more}: too much of it is stale or unknown"] = None
            trusted &= ~doubts
        return np.flatnonzero(trusted)

    def shares_of_mean(self, resource: str, rows: np.ndarray) -> tuple[FloatArray, float]:
        """float64 [n], load over the broker's mean (by capacity where capacities differ), 0 where the mean is; and the
        plain mean over the brokers `rows`, in the resource's unit."""
        load = self.load(resource)[rows]
        judged = np.zeros(self.snapshot.broker_count, dtype=np.bool_)
        judged[rows] = True
        means = broker_means(self.snapshot, resource, (Share(judged, float(load.sum())),), judged)[rows]
        shares = np.divide(load, means, out=np.zeros(len(rows)), where=means > 0.0)
        return shares, float(load.mean()) if len(rows) else 0.0

    def utilization(self) -> Utilization:
        """Of resources of the goals: by capacity, or as shares of the busiest where no resource has a capacity everywhere."""
        table = self.by_capacity()
        whole = np.logical_not(np.isnan(table.shares).any(axis=0)) if len(table.rows) else np.zeros(0, np.bool_)
        if whole.any():
            resources = tuple(r for r, use in zip(table.resources, whole.tolist(), strict=True) if use)
            rows = self.rows(*resources)
            return Utilization(rows, table.shares[np.ix_(np.isin(table.rows, rows), whole)], resources, True)
        rows = self.rows(*self.loaded)
        columns = [self.load(r)[rows] for r in self.loaded]
        shares = [x / x.max() if len(x) and x.max() > 0.0 else np.zeros(len(x)) for x in columns]
        table_of = np.stack(shares, axis=1) if shares else np.zeros((len(rows), 0))
        return Utilization(rows, table_of, self.loaded, False)

    def by_capacity(self) -> Utilization:
        """Of every active broker, load over capacity in each resource of the goals; NaN where it has no capacity. A capacity of 0
        gives 0, as nothing can be made of it."""
        rows = np.flatnonzero(self.active)
        columns = []
        for resource in self.loaded:
            capacity = self.snapshot.capacity.get(resource, np.full(self.snapshot.broker_count, np.nan))[rows]
            load = self.load(resource)[rows]
            share = np.divide(load, capacity, out=np.zeros(len(rows)), where=capacity > 0.0)
            columns.append(np.where(np.isnan(capacity), np.nan, share))
        table = np.stack(columns, axis=1) if columns else np.zeros((len(rows), 0))
        return Utilization(rows, table, self.loaded, True)


def doubtful(snapshot: Snapshot, resource: str) -> BoolArray:
    """bool [B]: brokers of whose load too much is stale, or of whose replicas too many were never measured. Counts never are."""
    source = DERIVED_FROM.get(resource, resource)
    if not isinstance(snapshot, LiveSnapshot) or RESOURCES.get(source) == "count" or not snapshot.is_reported(source):
        return np.zeros(snapshot.broker_count, dtype=np.bool_)
    return np.asarray(snapshot.broker_doubts(source).share() > DOUBTFUL_SHARE)
