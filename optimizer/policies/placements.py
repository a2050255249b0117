"""Which broker gets a unit: the `placement` of a policy, and pure functions on scores of candidates.

Called by `targeting` and `assign`. Chance comes from a seed that is handed in. Candidates are rows, ascending; ties go to the lowest id.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster_model.snapshot import FloatArray, Snapshot
from goals.model import GoalSet
from goals.policy import Placement
from optimizer.policies.profiles import traffic, utilization
from optimizer.policies.rankings import candidates_within, next_in_turn


class Dice:
    """Numbers that depend on nothing but a seed and how many were drawn before (splitmix64)."""

    def __init__(self, seed: int) -> None:
        self._state = seed & (2**64 - 1)

    def below(self, count: int) -> int:
        """A whole number from 0 to `count` - 1."""
        return int(self.share() * count)

    def share(self) -> float:
        """A number in [0, 1)."""
        mask = 2**64 - 1
        self._state = (self._state + 0x9E3779B97F4A7C15) & mask
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return ((z ^ (z >> 31)) >> 11) / 2.0**53


def least(scores: FloatArray) -> int:
    """Index of the lowest score, the first of equals."""
    return int(np.argmin(scores))


def least_rate(rates: FloatArray, usage: FloatArray, limit: float) -> int:
    """Index of the lowest rate among those whose utilization is up to `limit`; where none is, of the lowest utilization."""
    usable = np.flatnonzero(usage <= limit)
    return int(usable[least(rates[usable])]) if len(usable) else least(usage)


def below_mean(scores: FloatArray, margin: float) -> list[int]:
    """Indices of those at least `margin` below the mean; NaN (no data) is left out of both."""
    known = ~np.isnan(scores)
    if not known.any():
        return []
    return np.flatnonzero(known & (scores + margin <= float(scores[known].mean()) + 1e-12)).tolist()


def below_mean_random(scores: FloatArray, margin: float, dice: Dice) -> int:
    """One of those below the mean by chance; where there is none, the lowest: one of all by chance would fill who is full already."""
    found = below_mean(scores, margin)
    return found[dice.below(len(found))] if found else least(np.nan_to_num(scores, nan=np.inf))


def rotate_within(scores: FloatArray, share: float, last: int | None) -> int:
    """The next in turn of those within `share` of the lowest score."""
    return next_in_turn(candidates_within(scores, share), last)


def by_headroom(usage: FloatArray, limit: float, dice: Dice) -> int:
    """One by chance, each as likely as 1 over how far it is from `limit` says of the others: those with most room most often."""
    room = np.maximum(limit - usage, 0.0)
    if not room.any():
        return least(usage)
    point, total = dice.share() * float(room.sum()), 0.0
    for i, part in enumerate(room.tolist()):
        total += part
        if point < total:
            return i
    return int(np.flatnonzero(room)[-1])


def spread_scope(counts: Sequence[int]) -> list[int]:
    """Indices of those that hold fewest of a scope (a topic, a namespace)."""
    return [i for i, count in enumerate(counts) if count == min(counts)] if counts else []


class Placer:
    """One placement through a plan; it knows which broker it picked last."""

    def __init__(self, placement: Placement | None, goals: GoalSet, dice: Dice) -> None:
        self.placement = placement or Placement(kind="least")
        self._goals, self._dice = goals, dice
        self._last: int | None = None

    def pick(self, now: Snapshot, candidates: np.ndarray, scores: FloatArray, held: np.ndarray) -> int:
        """One of the candidate rows of the cluster as it would stand; `held` [B] counts what brokers hold of the scope of the unit."""
        own = scores[candidates]
        match self.placement.kind:
            case "rotate_within":
                last = int(np.flatnonzero(candidates == self._last)[0]) if self._last in candidates else None
                i = rotate_within(own, self.placement.margin, last)
            case "below_mean_random":
                i = below_mean_random(own, self.placement.margin, self._dice)
            case "least_rate":
                usage, by_capacity = utilization(now, self._goals)
                i = least_rate(traffic(now)[candidates], usage[candidates], self.placement.limit if by_capacity else np.inf)
            case "weighted_by_headroom":
                i = by_headroom(utilization(now, self._goals)[0][candidates], self.placement.limit, self._dice)
            case "spread_scope":
                few = spread_scope(held[candidates].tolist())
                i = few[least(own[few])]
            case "leader_deficit":
                i = least(now.broker_load("leaders")[candidates])
            case _:
                i = least(own)
        self._last = int(candidates[i])
        return self._last
