"""Actions and proposals of a plan: columns, read as sequences that build what is asked for.

`optimizer.assemble` makes the columns; reports and executors see `Sequence[Action]` and `Sequence[Change]`. Going through all of
them builds a block at a time, which is several times cheaper than one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar, overload

import numpy as np

from cluster_model.snapshot import Snapshot
from optimizer.outcome import judged
from optimizer.plan import Action, ActionType, Change, ScoreFrame, ScoreRows
from optimizer.problem import STATE, WEIGHT, Compiled
from optimizer.reasons import reason_of
from optimizer.search.evaluate import REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS

REPAIR_NAMES = {
    REPAIRS_DEAD: "dead_broker",
    REPAIRS_DRAINING: "draining_broker",
    REPAIRS_LEADERLESS: "leaderless",
}
BLOCK = 2_048  # rows

Item = TypeVar("Item")


@dataclass(frozen=True)
class ChangeTable:
    """Changes in rows: partition, lists before and after (wire ids, -1 beyond the list), leaders (-1 none)."""

    snapshot: Snapshot
    partition: np.ndarray
    before: np.ndarray
    after: np.ndarray
    leader_before: np.ndarray
    leader_after: np.ndarray

    def rows(self, start: int, stop: int) -> list[Change]:
        """Rows of a range."""
        topics = self.snapshot.topics
        partition = self.partition[start:stop]
        columns = (
            self.snapshot.partition_topic[partition].tolist(), self.snapshot.partition_number[partition].tolist(),
            _tuples(self.before[start:stop]), _tuples(self.after[start:stop]),
            self.leader_before[start:stop].tolist(), self.leader_after[start:stop].tolist(),
        )  # fmt: skip
        return [
            Change(topics[topic], number, old, new, led if led >= 0 else None, leads if leads >= 0 else None)
            for topic, number, old, new, led, leads in zip(*columns, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.partition)


def _tuples(lists: np.ndarray) -> list[tuple[int, ...]]:
    """Rows without their -1."""
    rows: list[list[int]] = lists.tolist()
    if not len(lists) or lists.min() >= 0:
        return [tuple(row) for row in rows]
    return [tuple([b for b in row if b >= 0]) for row in rows]


@dataclass(frozen=True)
class ActionTable:
    """Columns of all actions; `first` and `first_broker` index the rows of changes and of touched brokers."""

    changes: ChangeTable
    first: np.ndarray  # int64 [A + 1]
    score: np.ndarray  # float64 [A]
    repairs: np.ndarray  # int64 [A]
    goal_score: np.ndarray  # float64 [A, G]
    first_broker: np.ndarray  # int64 [A + 1]
    broker: np.ndarray  # int64 [N], wire ids
    score_before: np.ndarray  # float64 [N, G]
    score_after: np.ndarray  # float64 [N, G]
    bytes_to_move: np.ndarray  # float64 [A]


class _Blocks(Sequence[Item]):
    """A sequence of rows that are built by the range."""

    def _built(self, start: int, stop: int) -> list[Item]:
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            rows = range(*index.indices(len(self)))
            if rows.step == 1:
                return self._built(rows.start, max(rows.stop, rows.start))
            return [self._built(i, i + 1)[0] for i in rows]
        i = range(len(self))[index]
        return self._built(i, i + 1)[0]

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), BLOCK):
            yield from self._built(start, min(start + BLOCK, len(self)))


class Proposals(_Blocks[Change]):
    """Net changes."""

    def __init__(self, table: ChangeTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def _built(self, start: int, stop: int) -> list[Change]:
        return self._table.rows(start, stop)


class ActionLog(_Blocks[Action]):
    """Actions of a plan in order."""

    def __init__(self, table: ActionTable, compiled: Compiled) -> None:
        self._table = table
        ids = table.changes.snapshot.broker_ids
        goals = range(len(compiled.goals))
        self._frame = ScoreFrame(
            tuple(goal.name for goal in compiled.goals),
            tuple(frozenset(ids[judged(compiled, g)].tolist()) for g in goals),
        )
        self._weights: list[float] = compiled.problem.force[:, WEIGHT].tolist()
        self._states = dict(zip(ids.tolist(), compiled.problem.broker[:, STATE].tolist(), strict=True))
        self._repaired: dict[int, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._table.score)

    def _built(self, start: int, stop: int) -> list[Action]:
        table = self._table
        first = table.first[start : stop + 1].tolist()
        touched = table.first_broker[start : stop + 1].tolist()
        here = slice(touched[0], touched[-1])
        brokers: list[int] = table.broker[here].tolist()
        before, after = table.score_before[here].tolist(), table.score_after[here].tolist()
        columns = (
            range(start + 1, stop + 1), table.score[start:stop].tolist(), table.repairs[start:stop].tolist(),
            table.goal_score[start:stop].tolist(), table.bytes_to_move[start:stop].tolist(),
            _slices(table.changes.rows(first[0], first[-1]), first), _slices(brokers, touched), _slices(before, touched),
            _slices(after, touched),
        )  # fmt: skip
        return [self._action(*row) for row in zip(*columns, strict=True)]

    def _action(
        self, seq: int, score: float, bits: int, goal_score: list[float], size: float, changes: list[Change],
        brokers: list[int], before: list[list[float]], after: list[list[float]],
    ) -> Action:  # fmt: skip
        scores = ScoreRows(self._frame, goal_score, brokers, before, after)
        repairs = self._repaired.get(bits)
        if repairs is None:
            repairs = self._repaired[bits] = self._repairs(bits)
        return Action(
            seq=seq,
            type=action_type(changes),
            score=score,
            repairs=repairs,
            reason=reason_of(changes, repairs, scores, self._weights, self._states),
            bytes_to_move=round(size),
            changes=tuple(changes),
            goal_scores=scores,
        )

    def _repairs(self, bits: int) -> tuple[str, ...]:
        beyond = [name for bit, name in REPAIR_NAMES.items() if bits >> bit & 1]
        return (*beyond, *(name for g, name in enumerate(self._frame.names) if bits >> g & 1))


def _slices(items: list[Item], ends: list[int]) -> list[list[Item]]:
    base = ends[0]
    return [items[start - base : stop - base] for start, stop in pairwise(ends)]


def action_type(changes: Sequence[Change]) -> ActionType:
    """What the contract calls an action of these changes."""
    if len(changes) == 1:
        added = len(changes[0].added)
        return "leadership" if added == 0 else ("move" if added == 1 else "exchange")
    if len(changes) == 2:
        one, two = changes
        gone = [set(c.replicas_before) - set(c.replicas_after) for c in changes]
        came = [set(c.added) for c in changes]
        if len(came[0]) == 1 and came[0] == gone[1] and came[1] == gone[0] and one != two:
            return "swap"
    return "exchange"
