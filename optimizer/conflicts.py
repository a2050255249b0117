"""Bands that a broker cannot keep both, because of what it holds that may not move.

What excluded topics leave on a broker may fill nearly all of its band, or all of a hard limit, in one resource and little of it in
another. What may come besides takes some of the first for whatever it brings of the second: at best that of the replicas which bring
most for it, of all that may move anywhere. Where even these bring too little, no plan keeps both bands. Called by the proofs of
`optimizer.why_bands`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState
from goals.score import TOLERANCE
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    DISTRIBUTION,
    FOLLOWING,
    HARD,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MIN_LOAD,
    MOVABLE,
    RF,
    STATE,
    Problem,
)

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
ROUNDING = 1e-9  # of a load
NOTHING = -1  # in the place of a goal: replicas that cost nothing where hard limits are exceeded already


@dataclass(frozen=True, slots=True)
class Conflict:
    """Broker `broker` cannot come up to its band in goal `needs` without going beyond that of goal `caps`.

    `caps` is `NOTHING` where only what adds nothing to broken hard limits may come. Loads in the unit of each resource.
    """

    broker: int
    caps: int
    needs: int
    room: float  # up to the band or the limit of `caps`, beside what may not move; inf for `NOTHING`
    most: float  # what this can bring at most for `needs`
    missing: float  # what `needs` asks for, beside what may not move
    least: float  # of `caps`, with which there would be enough; inf where there is not


def conflicts(problem: Problem, replicas: npt.NDArray[np.int64], lead: npt.NDArray[np.int64]) -> tuple[Conflict, ...]:
    """All of a cluster in which partitions that may not move are where `replicas` int64 [P, R] and `lead` int64 [P] have them.

    Each by itself is proof: any number of the replicas that may move, of any part of each and in both roles, is considered. Where all
    are whole numbers, as in counts, what a broker can have up to the ends of its band is, too.

    Notes
    -----
    O(P C), and a sort of all replicas that may move for each pair of goals that comes into question.
    """
    stays = np.flatnonzero(problem.partition[:, MOVABLE] == 0)
    active = np.flatnonzero(problem.broker[:, STATE] == BrokerState.ACTIVE)
    kind = problem.goal[:, KIND]
    goals = np.flatnonzero((kind == DISTRIBUTION) | ((kind == LIMIT) & (problem.goal[:, HARD] == 1)))
    if not len(stays) or not len(goals) or not len(active):
        return ()
    columns = problem.goal[goals, COLUMN]
    fixed = held_for_good(problem, stays, replicas, lead)[:, columns]
    low, high = _ends(problem, goals)
    hard = kind[goals] == LIMIT
    closed = (fixed > high) & hard
    some = active[(np.any(fixed > 0.0, axis=1) & np.any(fixed < low, axis=1))[active]]
    offers = _offers(problem, lead)[:, columns]
    whole = np.all(offers == np.rint(offers), axis=0) & np.all(fixed == np.rint(fixed), axis=0)
    low[:, whole], high[:, whole] = np.ceil(low[:, whole]), np.floor(high[:, whole])
    found: list[Conflict] = []
    for shut in np.unique(closed[some], axis=0):
        rows = some[(closed[some] == shut).all(axis=1)]
        harmless = np.all(offers[:, shut] <= 0.0, axis=1)
        alike = _Alike(rows, goals, high[rows] - fixed[rows], low[rows] - fixed[rows], offers[harmless])
        for needs in np.flatnonzero(~hard).tolist():
            if shut.any():
                found += alike.without(needs)
            for caps in np.flatnonzero(~shut & (columns != columns[needs])).tolist():
                found += alike.between(caps, needs)
    return tuple(found)


@dataclass(frozen=True)
class _Alike:
    """Brokers for which the same replicas come into question."""

    rows: Rows  # [n]
    goals: Rows  # [m]
    room: Floats  # [n, m], up to the end of a band or limit
    missing: Floats  # [n, m], to the start of a band
    offers: Floats  # [offers, m]

    def without(self, needs: int) -> list[Conflict]:
        """Brokers that all of the offers do not bring into a band."""
        total, missing = float(self.offers[:, needs].sum()), self.missing[:, needs]
        return [
            Conflict(int(self.rows[i]), NOTHING, int(self.goals[needs]), np.inf, total, float(missing[i]), np.inf)
            for i in np.flatnonzero(total * (1.0 + ROUNDING) < missing).tolist()
        ]

    def between(self, caps: int, needs: int) -> list[Conflict]:
        """Brokers that what has room in one goal does not bring into the band of another."""
        room, missing = self.room[:, caps], self.missing[:, needs]
        takes, brings = self.offers[:, caps], self.offers[:, needs]
        asked = np.flatnonzero((room >= 0.0) & np.isfinite(room) & (missing > 0.0))
        if not len(asked):
            return []
        asked = asked[room[asked] * brings.sum() < missing[asked] * takes.sum()]  # the best bring more than all together
        if not len(asked):
            return []
        rows, room, missing = self.rows[asked], room[asked], missing[asked]
        taken, brought = _best(takes, brings)
        most, least = np.interp(room, taken, brought), np.interp(missing, brought, taken, right=np.inf)
        return [
            Conflict(int(rows[i]), int(self.goals[caps]), int(self.goals[needs]), *(float(x[i]) for x in (room, most, missing, least)))
            for i in np.flatnonzero(most * (1.0 + ROUNDING) < missing).tolist()
        ]


def held_for_good(problem: Problem, stays: Rows, replicas: npt.NDArray[np.int64], lead: npt.NDArray[np.int64]) -> Floats:
    """float64 [B, C]: what brokers hold of partitions `stays` int64."""
    held = np.zeros((len(problem.broker), problem.vector.shape[2]))
    for slot in range(replicas.shape[1]):
        hosts = replicas[stays, slot]
        there = hosts >= 0
        role = np.where(lead[stays] == slot, LEADING, FOLLOWING)
        loads = problem.vector[stays[there], role[there]]
        for c in range(held.shape[1]):
            held[:, c] += np.bincount(hosts[there], weights=loads[:, c], minlength=len(held))
    return held


def _offers(problem: Problem, lead: npt.NDArray[np.int64]) -> Floats:
    """float64 [n, C]: what each partition that may move costs as a leader, and as a follower where it can have any."""
    moves = problem.partition[:, MOVABLE] == 1
    follows = moves & ((problem.partition[:, RF] > 1) | (lead < 0))
    return np.concatenate([problem.vector[moves, LEADING], problem.vector[follows, FOLLOWING]])


def _ends(problem: Problem, goals: Rows) -> tuple[Floats, Floats]:
    """float64 [B, n] twice: least and most load with which a broker is in a band, or under a limit."""
    table, kind = problem.table[:, goals], problem.goal[goals, KIND]
    mean, bound, floor = table[:, :, MEAN], table[:, :, BOUND], problem.force[goals, MIN_LOAD]
    small = (mean < floor) | (mean <= 0.0)
    bound = bound * (1.0 + TOLERANCE)
    low = np.where(small, -np.inf, mean - bound)
    high = np.where(mean <= 0.0, np.inf, np.where(small, np.maximum(mean + bound, floor), mean + bound))
    limit = kind == LIMIT
    return np.where(limit, -np.inf, low), np.where(limit, table[:, :, CEILING] * (1.0 + TOLERANCE), high)


def _best(takes: Floats, brings: Floats) -> tuple[Floats, Floats]:
    """How much of one load what brings most of another for it takes, and brings, added up (both ascending, from what takes none)."""
    free = float(brings[takes <= 0.0].sum())
    some = (takes > 0.0) & (brings > 0.0)
    takes, brings = takes[some], brings[some]
    order = np.argsort(-brings / takes, kind="stable")
    return np.concatenate([[0.0], np.cumsum(takes[order])]), free + np.concatenate([[0.0], np.cumsum(brings[order])])
