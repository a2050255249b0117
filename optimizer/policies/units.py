"""Units of movement: a replica, all replicas of a topic on a broker, or all of a group of a namespace (a range of CRC32 hashes).

Called by `pipeline`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np

from cluster_model.snapshot import FloatArray
from optimizer.policies.board import Board
from optimizer.policies.groups import Groups
from optimizer.policies.profiles import Weights


@dataclass(frozen=True, slots=True)
class Unit:
    """Replicas of one broker that move as one: partition rows and slots, and what they weigh together."""

    name: str
    replicas: tuple[tuple[int, int], ...]
    amount: float


def units_on(board: Board, broker: int, weights: Weights, kind: str, groups: Groups | None) -> list[Unit]:
    """Units on broker row `broker`, in the order of partitions. `groups` are those that kind ``group`` needs."""
    rows, slots = np.nonzero(board.lists == broker)
    amounts = weights.of(board.lead[rows] == slots, rows).tolist()
    entries = [(int(p), int(s), a) for p, s, a in zip(rows, slots, amounts, strict=True)]
    snapshot = board.snapshot
    if kind == "partition":
        return [Unit(snapshot.partition_name(p), ((p, s),), a) for p, s, a in entries]
    keyed = sorted((_scope(board, p, groups), p, s, a) for p, s, a in entries)
    result = []
    for scope, members in groupby(keyed, key=lambda entry: entry[0]):
        listed = list(members)
        result.append(Unit(scope, tuple((p, s) for _, p, s, _ in listed), sum(a for *_, a in listed)))
    return result


def carried(board: Board, weights: Weights) -> FloatArray:
    """float64 [B]: what all replicas of each broker weigh together."""
    rows, slots = np.nonzero(board.lists >= 0)
    amounts = weights.of(board.lead[rows] == slots, rows)
    return np.bincount(board.lists[rows, slots], weights=amounts, minlength=len(board.active)).astype(np.float64)


def _scope(board: Board, p: int, groups: Groups | None) -> str:
    if groups is not None:
        name: str = groups.names[groups.of[p]]
        return name
    topic: str = board.snapshot.topics[board.snapshot.partition_topic[p]]
    return topic
