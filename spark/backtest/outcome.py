"""What came of a configuration on a stretch of history, and of several stretches together.

Made by the replay, summed up by the search. Values only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    actions, replica_moves, leadership_changes
        As the plans count them.
    moved_back
        Replicas that came back to a broker within a day of leaving it.
    looks, fired, plans
        Checks of the detector, those that fired, and plans that were carried out.
    """

    broker_hours: float = 0.0
    out_of_band_hours: float = 0.0
    any_goal_hours: float = 0.0
    by_goal: Mapping[str, float] = field(default_factory=dict)
    peak_utilization: float = 0.0
    bytes_moved: float = 0.0
    actions: int = 0
    replica_moves: int = 0
    leadership_changes: int = 0
    moved_back: int = 0
    looks: int = 0
    fired: int = 0
    plans: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        names = dict.fromkeys((*self.by_goal, *other.by_goal))
        return Outcome(
            broker_hours=self.broker_hours + other.broker_hours,
            out_of_band_hours=self.out_of_band_hours + other.out_of_band_hours,
            any_goal_hours=self.any_goal_hours + other.any_goal_hours,
            by_goal={n: self.by_goal.get(n, 0.0) + other.by_goal.get(n, 0.0) for n in names},
            peak_utilization=max(self.peak_utilization, other.peak_utilization),
            bytes_moved=self.bytes_moved + other.bytes_moved,
            actions=self.actions + other.actions,
            replica_moves=self.replica_moves + other.replica_moves,
            leadership_changes=self.leadership_changes + other.leadership_changes,
            moved_back=self.moved_back + other.moved_back,
            looks=self.looks + other.looks,
            fired=self.fired + other.fired,
            plans=self.plans + other.plans,
        )

    @property
    def cost(self) -> float:
        """What moving cost: bytes, or replica moves where no bytes are copied or sizes are unknown."""
        return self.bytes_moved if self.bytes_moved > 0.0 else float(self.replica_moves)
