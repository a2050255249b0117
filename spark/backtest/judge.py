"""How windows of history look on the brokers: loads, and who is out of the band of the reference bounds.

Called by the replay for every run of windows between two plans. Plain numpy on arrays [windows, brokers].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cluster_model.resources import DERIVED_FROM
from cluster_model.snapshot import FloatArray, IntArray
from goals.model import GoalSet, UsageDistribution
from goals.score import TOLERANCE
from spark.backtest.outcome import POINTS, Day, Outcome
from spark.backtest.stretch import Stretch

PEAK = 0.99  # of the windows
DAY = 86_400.0


@dataclass
class Tally:
    """Adds up windows. `reference` has the bands that count, one for each of its distribution goals whose resource is known."""

    stretch: Stretch
    reference: GoalSet
    hours: float = 0.0
    out: float = 0.0
    by_goal: dict[str, float] = field(default_factory=dict)
    busiest: list[FloatArray] = field(default_factory=list)
    outside: list[FloatArray] = field(default_factory=list)  # of each window, brokers, each goal by itself
    begin: int | None = None  # the first window that was added
    moved: dict[int, tuple[float, int]] = field(default_factory=dict)  # day -> bytes and replicas that plans moved

    def add(self, begin: int, end: int, replicas: IntArray, leader: IntArray, more: Mapping[str, FloatArray] | None = None) -> None:
        """Count windows `begin` up to `end` (excluded), which passed with this placement. O(windows x replicas).

        `more`: resource -> float64 [B], load of each broker beyond that of its partitions: what copying adds.
        """
        if begin >= end:
            return
        each = self.stretch.window / 3600.0
        outside = np.zeros((end - begin, self.stretch.brokers), np.bool_)
        together = np.zeros(end - begin)
        busiest = np.zeros(end - begin)
        loads: dict[str, FloatArray] = {}
        for goal in self.goals():
            if goal.resource not in loads:
                loads[goal.resource] = broker_loads(self.stretch, goal.resource, begin, end, replicas, leader)
                if more is not None and goal.resource in more:
                    loads[goal.resource] = loads[goal.resource] + more[goal.resource]
                busiest = np.maximum(busiest, utilization(self.stretch, goal.resource, loads[goal.resource]))
            mine = beyond(self.stretch, goal, loads[goal.resource])
            self.by_goal[goal.name] = self.by_goal.get(goal.name, 0.0) + float(mine.sum()) * each
            outside |= mine
            together += mine.sum(axis=1)
        self.hours += (end - begin) * self.stretch.brokers * each
        self.out += float(outside.sum()) * each
        self.busiest.append(busiest)
        self.outside.append(together)
        self.begin = begin if self.begin is None else self.begin

    def add_plan(self, window: int, bytes_moved: float, replica_moves: int) -> None:
        """Count what a plan cost that was carried out at the start of a window."""
        day = self._day(window)
        before = self.moved.get(day, (0.0, 0))
        self.moved[day] = (before[0] + bytes_moved, before[1] + replica_moves)

    def _day(self, window: int) -> int:
        return int((self.stretch.start + window * self.stretch.window) // DAY)

    def goals(self) -> tuple[UsageDistribution, ...]:
        known = self.stretch.load
        return tuple(
            g for g in self.reference.goals
            if isinstance(g, UsageDistribution)
            and (g.resource in ("replicas", "leaders") or DERIVED_FROM.get(g.resource, g.resource) in known)
        )  # fmt: skip

    def outcome(self) -> Outcome:
        """Hours and peak; what the plans did is for the replay to fill in."""
        peaks = np.concatenate(self.busiest) if self.busiest else np.zeros(1)
        return Outcome(
            broker_hours=self.hours,
            out_of_band_hours=sum(self.by_goal.values()),
            any_goal_hours=self.out,
            by_goal=dict(self.by_goal),
            peak_utilization=float(np.quantile(peaks, PEAK)),
            course=self.course(),
            by_day=self.by_day(),
        )

    def course(self) -> tuple[tuple[float, float], ...]:
        """Start of each part of the time and brokers outside in it, on average; windows were added in order and without gaps."""
        if self.begin is None:
            return ()
        parts = np.array_split(np.concatenate(self.outside), min(POINTS, sum(map(len, self.outside))))
        begins = self.begin + np.cumsum([0, *map(len, parts[:-1])])
        at = self.stretch.start + begins * self.stretch.window
        return tuple((float(t), float(part.mean())) for t, part in zip(at, parts, strict=True))

    def by_day(self) -> tuple[Day, ...]:
        """Each day that windows were added of, in order."""
        if self.begin is None:
            return ()
        outside = np.concatenate(self.outside)
        days, which = np.unique([self._day(self.begin + n) for n in range(len(outside))], return_inverse=True)
        hours = np.bincount(which, outside) * self.stretch.window / 3600.0
        return tuple(Day(int(day), float(h), *self.moved.get(int(day), (0.0, 0))) for day, h in zip(days, hours, strict=True))


def broker_loads(
    stretch: Stretch, resource: str, begin: int, end: int, replicas: IntArray, leader: IntArray
) -> FloatArray:
    """float64 [`end` - `begin`, B], load of each broker in each window, in the resource's unit.

    Parameters
    ----------
    resource
        Measured or derived, as in `cluster_model.resources`.
    replicas, leader
        int32 [P, R] and [P], broker rows.
    """
    if resource in ("replicas", "leaders"):
        rows = np.arange(begin, end)[:, None]
        leading = ((rows >= stretch.first) & (rows <= stretch.last)).astype(np.float64)
        share = np.full(stretch.partitions, 1.0 if resource == "replicas" else 0.0)
    else:
        leading = stretch.filled[DERIVED_FROM.get(resource, resource)][begin:end].astype(np.float64)
        share = stretch.follower_share(resource)
        if resource in DERIVED_FROM:
            share = np.full(stretch.partitions, 0.0 if resource == "leader_network_in" else 1.0)
    p, slot = np.nonzero(replicas >= 0)
    broker = replicas[p, slot]
    part = np.where(broker == leader[p], 1.0, share[p])
    hosting = csr_array((part, (broker, p)), shape=(stretch.brokers, stretch.partitions))
    return np.asarray((hosting @ leading.T).T, dtype=np.float64)


def utilization(stretch: Stretch, resource: str, load: FloatArray) -> FloatArray:
    """float64 [n]: the busiest broker of each window, load over capacity, or over the mean where not all have one; 0 for counts."""
    if resource in ("replicas", "leaders"):
        return np.zeros(len(load))
    capacity = stretch.capacity.get(resource)
    if capacity is not None and bool((capacity > 0).all()):
        return np.asarray((load / capacity).max(axis=1), dtype=np.float64)
    mean = load.mean(axis=1)
    share: FloatArray = np.divide(load.max(axis=1), mean, out=np.zeros(len(load)), where=mean > 0)
    return share


def beyond(stretch: Stretch, goal: UsageDistribution, load: FloatArray) -> npt.NDArray[np.bool_]:
    """bool [n, B], whether a broker is outside the goal's band, as a broker score below 1 has it (docs/contract.md, section 7)."""
    mean = load.sum(axis=1, keepdims=True) * shares(stretch, goal.resource)
    outside = np.abs(load - mean) > goal.bound * mean * (1.0 + TOLERANCE)
    quiet = (load < goal.min_load) & (mean < goal.min_load)
    return np.asarray(outside & ~quiet & (mean > 0.0))


def shares(stretch: Stretch, resource: str) -> FloatArray:
    """float64 [B], each broker's share of the whole: by capacity where all have one and they differ."""
    capacity = stretch.capacity.get(resource)
    if capacity is None or not bool((capacity > 0).all()) or bool((capacity == capacity[0]).all()):
        return np.full(stretch.brokers, 1.0 / stretch.brokers)
    return np.asarray(capacity / capacity.sum())
