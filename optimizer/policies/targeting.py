"""Finds the broker that takes a unit: who may, and of those whom the `placement` of a policy picks.

Called by `pipeline`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import FloatArray
from goals.policy import Placement
from optimizer.policies.board import Board
from optimizer.policies.confines import Confines
from optimizer.policies.counts import Placement as Standing
from optimizer.policies.counts import may_take
from optimizer.policies.placements import (
    Dice,
    below_mean_random,
    by_headroom,
    least,
    rotate_within,
    spread_scope,
)
from optimizer.policies.units import Unit


class Chooser:
    """One placement through a plan; it knows whom it picked last."""

    def __init__(self, placement: Placement | None, dice: Dice, confines: Confines) -> None:
        self._placement = placement or Placement(kind="least")
        self._confines = confines
        self._dice = dice
        self._last: int | None = None

    def target(self, board: Board, unit: Unit, source: int, scores: FloatArray, most: int | None) -> int | None:
        """Broker row for a unit, None where none may take it."""
        candidates = np.array([b for b in self.able(board, unit, most, source) if b != source], np.int64)
        if not len(candidates):
            return None
        company = self._company(board, unit)
        if company is not None:
            rank = company[candidates]
            candidates = candidates[(rank == min(map(tuple, rank.tolist()))).all(axis=1)]
        return self.pick(board, candidates, scores, _topic_counts(board, unit))

    def pick(self, board: Board, candidates: np.ndarray, scores: FloatArray, held: FloatArray) -> int:
        """One of the candidate rows (ascending); `held` float64 [B] counts what they hold of the scope of the unit."""
        own = scores[candidates]
        match self._placement.kind:
            case "rotate_within":
                last = int(np.flatnonzero(candidates == self._last)[0]) if self._last in candidates else None
                i = rotate_within(own, self._placement.margin, last)
            case "below_mean_random":
                i = below_mean_random(own, self._placement.margin, self._dice)
            case "weighted_by_headroom":
                i = by_headroom(own, self._placement.limit, self._dice)
            case "spread_scope":
                few = spread_scope(held[candidates].tolist())
                i = few[least(own[few])]
            case "leader_deficit":
                i = least(board.snapshot.broker_load("leaders")[candidates])
            case _:
                i = least(own)
        self._last = int(candidates[i])
        return self._last

    def fits(self, board: Board, unit: Unit, source: int, target: int, most: int | None) -> bool:
        """Whether broker row `target` may take a unit of broker row `source`."""
        return target in self.able(board, unit, most, source)

    def _company(self, board: Board, unit: Unit) -> np.ndarray | None:
        return self._confines.company(_topics(board, unit), board.lists, board.snapshot.partition_topic)

    def able(self, board: Board, unit: Unit, most: int | None, source: int) -> list[int]:
        """Broker rows that may take a unit of `source`: active, without a replica of it, in a rack that may, with room, among those that
        its topics are kept to, and no nearer to the others of their group, unless `source` is to be emptied."""
        brokers = np.flatnonzero(board.active)
        rows = np.array([p for p, _ in unit.replicas], np.int64)
        slots = np.array([s for _, s in unit.replicas], np.int64)
        few = Standing(
            board.lists[rows], np.ones(len(rows), np.bool_), board.active, board.leaving, board.rack, board.per_rack[rows],
            np.zeros(len(rows)),
        )  # fmt: skip
        good = may_take(few, np.arange(len(rows)), slots, brokers).all(axis=0)
        if most is not None:
            counts = np.bincount(board.lists[board.lists >= 0], minlength=len(board.active))[brokers]
            good &= counts + len(rows) <= most
        may = self._confines.may(_topics(board, unit))
        if may is not None:
            good &= may[brokers]
        company = None if board.leaving[source] else self._company(board, unit)
        if company is not None:
            here = tuple(company[source].tolist())
            good &= np.array([tuple(company[b].tolist()) <= here for b in brokers], np.bool_)
        return [int(b) for b in brokers[good]]


def _topics(board: Board, unit: Unit) -> list[int]:
    """Rows of the topics of a unit."""
    return sorted({int(board.snapshot.partition_topic[p]) for p, _ in unit.replicas})


def _topic_counts(board: Board, unit: Unit) -> FloatArray:
    """float64 [B]: replicas of the unit's first topic on each broker."""
    topic = board.snapshot.partition_topic[unit.replicas[0][0]]
    lists = board.lists[board.snapshot.partition_topic == topic]
    return np.bincount(lists[lists >= 0], minlength=len(board.active)).astype(np.float64)
