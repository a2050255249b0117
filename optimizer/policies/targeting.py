"""Finds the broker that takes a unit: who may, and of those whom the `placement` of a policy picks.

Called by `pipeline`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import FloatArray, Snapshot
from optimizer.policies.board import Board
from optimizer.policies.confines import Confines
from optimizer.policies.counts import Placement as Standing
from optimizer.policies.counts import may_take
from optimizer.policies.placements import Placer
from optimizer.policies.units import Unit


class Chooser:
    """Who may take a unit, and of those whom `placer` picks."""

    def __init__(self, placer: Placer, confines: Confines) -> None:
        self._placer = placer
        self._confines = confines

    def target(self, board: Board, now: Snapshot, unit: Unit, source: int, scores: FloatArray, most: int | None) -> int | None:
        """Broker row for a unit, None where none may take it. `now` is the cluster as it stands on the board, `scores` its brokers'."""
        candidates = np.array([b for b in self.able(board, unit, most, source) if b != source], np.int64)
        if not len(candidates):
            return None
        company = self._company(board, unit)
        if company is not None:
            rank = company[candidates]
            candidates = candidates[(rank == min(map(tuple, rank.tolist()))).all(axis=1)]
        return self._placer.pick(now, candidates, scores, _topic_counts(board, unit))

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
