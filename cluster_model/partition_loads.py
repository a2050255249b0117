"""Loads of partitions that stand in place of a snapshot's: a statistic of their history, such as the 95th percentile.

Read by `cluster_model.partition_loads_file`, put on a snapshot where the planner imagines. Frozen; belongs to one snapshot's partitions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np

from cluster_model.resources import FOLLOWER_COPIES_LEADER, LARGEST_AMOUNT, LEAST_AMOUNT, MEASURED
from cluster_model.snapshot import BoolArray, FloatArray, Snapshot

Statistic = Literal["mean", "p95", "forecast"]
S = TypeVar("S", bound=Snapshot)


@dataclass(frozen=True, eq=False)
class PartitionLoads:
    """What leaders cost.

    Attributes
    ----------
    statistic
        Of what history: the mean, the 95th percentile, or a forecast of the next window.
    source
        Where the loads come from, in words.
    amounts
        measured resource -> float64 [P] in the resource's unit, rows as in the snapshot; NaN where nothing is known.
    """

    statistic: Statistic
    source: str
    amounts: Mapping[str, FloatArray]

    @cached_property
    def digest(self) -> str:
        """``sha256:…`` over the amounts."""
        h = hashlib.sha256(self.statistic.encode())
        for name in sorted(self.amounts):
            h.update(name.encode())
            h.update(np.where(np.isnan(self.amounts[name]), np.nan, self.amounts[name] + 0.0).tobytes())
        return "sha256:" + h.hexdigest()

    def applied(self, snapshot: S) -> S:
        """`snapshot` with these loads; applied twice, nothing changes any more.

        A leader costs the amount here, where there is one. What a follower costs by its own vector changes in the same ratio; where
        that has no meaning (the snapshot has 0 or nothing for the leader), a follower costs as much `network_in` and `disk` as
        its leader, and nothing else. O(partitions x resources).
        """
        leader, follower = dict(snapshot.leader_load), dict(snapshot.follower_load)
        for name, amount in self.amounts.items():
            known = ~np.isnan(amount)
            before = leader.get(name, np.full(snapshot.partition_count, np.nan))
            leader[name] = np.where(known, amount, before)
            if name in follower:
                follower[name] = np.where(known, _followers(name, follower[name], before, amount), follower[name])
        return replace(snapshot, leader_load=leader, follower_load=follower)

    def note(self, snapshot: Snapshot) -> str:
        """What is replaced in `snapshot` (as given), and what is not, in words."""
        total = snapshot.partition_count
        counts = {name: int((~np.isnan(amount)).sum()) for name, amount in self.amounts.items()}
        told = ", ".join(f"{name} of {count:,}" for name, count in counts.items())
        text = f"loads are the {self.statistic} of {self.source}: {told} of {total:,} partitions"
        if any(count < total for count in counts.values()):
            text += "; the others keep the snapshot's"
        kept = [name for name in MEASURED if name in snapshot.leader_load and name not in self.amounts and name != "disk"]
        if kept:
            text += f"; of {', '.join(kept)} the history has nothing, so the snapshot's stay, which are of another time"
        guessed = int(self._without_ratio(snapshot).sum())
        if guessed:
            why = "as the snapshot has no load of their leader that would give a ratio"
            text += f"; followers of {guessed:,} take network_in of their leader and nothing else, {why}"
        return text

    def _without_ratio(self, snapshot: Snapshot) -> BoolArray:
        """bool [P], partitions with followers of their own vector for which no ratio can be told in some resource."""
        found = np.zeros(snapshot.partition_count, dtype=np.bool_)
        for name, amount in self.amounts.items():
            if name in snapshot.follower_load:
                before = np.nan_to_num(snapshot.leader_load.get(name, np.zeros(snapshot.partition_count)), nan=0.0)
                found |= (amount > 0) & (before <= 0) & ~np.isnan(snapshot.follower_load[name])
        return found & snapshot.has_follower_load & (snapshot.replication_factor > 1)


def _followers(name: str, follower: FloatArray, before: FloatArray, after: FloatArray) -> FloatArray:
    """Loads of followers whose leader's went from `before` to `after`; NaN where they have none of their own."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        scaled = np.minimum(follower * (after / before), LARGEST_AMOUNT)
    instead = after if name in FOLLOWER_COPIES_LEADER else np.zeros(len(after))
    taken = np.where(before > 0, scaled, instead)
    taken = np.where(taken < LEAST_AMOUNT, 0.0, taken)
    return np.where(np.isnan(follower), follower, taken)
