"""Which broker gets a unit: the `placement` of a policy. Pure functions on scores of candidates.

Called by `pipeline` and `assign`. Chance comes from a seed that is handed in. Candidates are rows, ascending; ties go to the lowest id.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster_model.snapshot import FloatArray
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


def least_rate(rates: FloatArray, usage: FloatArray, dice: Dice, overloaded: float = 0.85) -> int:
    """Index of the lowest rate among those not overloaded, one of equals by chance; where all are, one of all."""
    usable = np.flatnonzero(usage <= overloaded)
    if not len(usable):
        return dice.below(len(rates))
    low = rates[usable].min()
    equal = usable[rates[usable] == low]
    return int(equal[dice.below(len(equal))])


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
