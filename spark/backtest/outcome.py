"""What came of a configuration on a stretch of history, and of several stretches together.

Made by the replay, summed up by the search, compared in `spark.backtest.difference`. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

POINTS = 96  # of the course of one replay


@dataclass(frozen=True)
class Day:
    """What one replay had on one day: `day` counts from 1970 (UTC), `phase` tells replays of the same stretch apart."""

    day: int
    hours: float = 0.0
    bytes_moved: float = 0.0
    replica_moves: int = 0
    phase: int = 0


@dataclass(frozen=True)
class Outcome:
    """Scores of one replay, or the sum of several.

    Attributes
    ----------
    broker_hours
        Brokers times hours that were looked at.
    out_of_band_hours
        Broker-hours outside the band of the reference bounds, each goal counted by itself: the sum of `by_goal`. (A broker that is
        out in any goal is too coarse: where one resource cannot be levelled, it is all of them all the time.)
    any_goal_hours
        Broker-hours outside the band of at least one goal.
    by_goal
        Broker-hours outside the band of each goal of the reference.
    peak_utilization
        99th percentile over the windows of the busiest broker's load over its capacity, or over the mean of the brokers in
        resources without capacities; the largest of all resources.
    bytes_moved
        Copied by the plans, of the partitions' size at the time.
    copying_hours
        In which a plan was being carried out.
    actions, replica_moves, leadership_changes
        As the plans count them.
    moved_back
        Replicas that came back to a broker within a day of leaving it.
    looks, fired, plans
        Checks of the detector, those that fired, and plans that were carried out.
    course
        (epoch seconds, brokers outside the band of a goal, each goal counted by itself) of at most `POINTS` parts of a replay, in
        order: what `out_of_band_hours` is the area under.
    by_day
        The same hours, and what plans cost, by day and replay: what chance in them is told by.
    """

    broker_hours: float = 0.0
    out_of_band_hours: float = 0.0
    any_goal_hours: float = 0.0
    by_goal: Mapping[str, float] = field(default_factory=dict)
    peak_utilization: float = 0.0
    bytes_moved: float = 0.0
    copying_hours: float = 0.0
    actions: int = 0
    replica_moves: int = 0
    leadership_changes: int = 0
    moved_back: int = 0
    looks: int = 0
    fired: int = 0
    plans: int = 0
    course: tuple[tuple[float, float], ...] = ()
    by_day: tuple[Day, ...] = ()

    def __add__(self, other: Outcome) -> Outcome:
        names = dict.fromkeys((*self.by_goal, *other.by_goal))
        return Outcome(
            broker_hours=self.broker_hours + other.broker_hours,
            out_of_band_hours=self.out_of_band_hours + other.out_of_band_hours,
            any_goal_hours=self.any_goal_hours + other.any_goal_hours,
            by_goal={n: self.by_goal.get(n, 0.0) + other.by_goal.get(n, 0.0) for n in names},
            peak_utilization=max(self.peak_utilization, other.peak_utilization),
            bytes_moved=self.bytes_moved + other.bytes_moved,
            copying_hours=self.copying_hours + other.copying_hours,
            actions=self.actions + other.actions,
            replica_moves=self.replica_moves + other.replica_moves,
            leadership_changes=self.leadership_changes + other.leadership_changes,
            moved_back=self.moved_back + other.moved_back,
            looks=self.looks + other.looks,
            fired=self.fired + other.fired,
            plans=self.plans + other.plans,
            course=(*self.course, *other.course),
            by_day=(*self.by_day, *other.by_day),
        )

    @staticmethod
    def mean(found: Sequence[Outcome]) -> Outcome:
        """That of several replays of the same stretch, counts rounded; the days of each are kept."""
        total, n = sum(found, Outcome()), len(found)
        values: dict[str, Any] = {
            f.name: round(getattr(total, f.name) / n) if f.type == "int" else getattr(total, f.name) / n
            for f in fields(Outcome)
            if f.type in ("int", "float")
        }
        values["peak_utilization"] = sum(one.peak_utilization for one in found) / n
        together = zip(*(one.course for one in found), strict=True)
        course = tuple((points[0][0], sum(outside for _, outside in points) / n) for points in together)
        days = tuple(replace(day, phase=phase) for phase, one in enumerate(found) for day in one.by_day)
        return Outcome(**values, by_goal={name: hours / n for name, hours in total.by_goal.items()}, course=course, by_day=days)

    @property
    def phases(self) -> int:
        """How many replays it is the mean of."""
        return max((day.phase for day in self.by_day), default=0) + 1

    @property
    def cost(self) -> float:
        """What moving cost: bytes, or replica moves where no bytes are copied or sizes are unknown."""
        return self.bytes_moved if self.bytes_moved > 0.0 else float(self.replica_moves)
