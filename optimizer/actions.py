"""Actions of a plan: columns, read as a sequence that builds what is asked for.

`optimizer.assemble` makes the columns; reports and executors see `Sequence[Action]`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState
from optimizer.changes import BLOCK, Blocks, ChangeTable, Item
from optimizer.outcome import judged
from optimizer.placement.evaluate import (
    REPAIRS_DEAD,
    REPAIRS_DRAINING,
    REPAIRS_LEADERLESS,
    REPAIRS_RACKS,
    REPAIRS_SCORES,
    REPAIRS_SETS,
    TOLERANCE,
)
from optimizer.placement.record import Before
from optimizer.plan import Action, ActionType, Change, GoalScore, ScoreFrame, ScoreRows, as_written
from optimizer.problem import HARD, KIND, LIMIT, RACK, STATE, WEIGHT, Compiled
from optimizer.reasons import BROKER_SET, helped, reason_of

REPAIR_NAMES = {
    REPAIRS_DEAD: "dead_broker",
    REPAIRS_DRAINING: "draining_broker",
    REPAIRS_LEADERLESS: "leaderless",
    REPAIRS_SETS: BROKER_SET,
}
ONE_CHANGE: tuple[ActionType, ...] = ("leadership", "move", "exchange")  # by brokers added: none, one, several


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
    score_before: np.ndarray | Before  # float64 [N, G]
    score_after: np.ndarray  # float64 [N, G]
    bytes_to_move: np.ndarray  # float64 [A]

    def rows(self, rows: np.ndarray) -> ActionTable:
        """The actions `rows` (int64) alone."""
        first, changes = _taken(self.first, rows)
        first_broker, touched = _taken(self.first_broker, rows)
        return ActionTable(
            self.changes.taken(changes), first, self.score[rows], self.repairs[rows], self.goal_score[rows], first_broker,
            self.broker[touched], self.score_before[touched], self.score_after[touched], self.bytes_to_move[rows],
        )  # fmt: skip


def _taken(first: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64 [n + 1] where the parts of `rows` start when only they are left, and int64 rows of all their parts."""
    count = first[rows + 1] - first[rows]
    begin = np.concatenate([[0], np.cumsum(count)])
    return begin, np.arange(begin[-1]) + np.repeat(first[rows] - begin[:-1], count)


class ActionLog(Blocks[Action]):
    """Actions of a plan in order."""

    def __init__(self, table: ActionTable, compiled: Compiled) -> None:
        self._table = table
        self._ids = table.changes.snapshot.broker_ids
        goals = range(len(compiled.goals))
        self._judges = np.zeros((len(self._ids), len(goals)), np.bool_)
        for g in goals:
            self._judges[judged(compiled, g), g] = True
        self.frame = ScoreFrame(
            tuple(goal.name for goal in compiled.goals), tuple(frozenset(self._ids[self._judges[:, g]].tolist()) for g in goals)
        )
        topics = table.changes.snapshot.topics
        self._homes = compiled.sets.told(topics, self._ids) if compiled.sets is not None else None
        self._weights = compiled.problem.force[:, WEIGHT].copy()
        self._states = dict(zip(self._ids.tolist(), compiled.problem.broker[:, STATE].tolist(), strict=True))
        kind, hard = compiled.problem.goal[:, KIND], compiled.problem.goal[:, HARD] == 1
        self._hard, self._racks, self._limits = hard & (kind != RACK), hard & (kind == RACK), np.flatnonzero(hard & (kind == LIMIT))
        self._active = compiled.problem.broker[:, STATE] == BrokerState.ACTIVE

    def __len__(self) -> int:
        return len(self._table.score)

    @property
    def changes(self) -> ChangeTable:
        """Changes of all actions, in order."""
        return self._table.changes

    @property
    def sizes(self) -> np.ndarray:
        """int64: how many changes each action has."""
        return np.diff(self._table.first)

    def blocks(self) -> Iterator[tuple[list[Action], ActionTable, BoolArray]]:
        """All actions, a block at a time, the columns that they are made of, and which goals judge their touched brokers [N, G]."""
        for start in range(0, len(self), BLOCK):
            part = self._table.rows(np.arange(start, min(start + BLOCK, len(self))))
            yield self._made(part, range(start + 1, start + 1 + len(part.score))), part, self._judged(part)

    def ranked(self, most: int) -> list[Action]:
        """At most so many actions: repairs first, then the highest combined score as the plan file has it, then the earliest."""
        table = self._table
        score = np.fromiter(map(as_written, table.score.tolist()), np.float64, len(table.score))
        rows = np.lexsort((-score, table.repairs == 0))[:most]
        return self._made(table.rows(rows), (rows + 1).tolist())

    def types(self) -> Counter[str]:
        """How many actions there are of each type."""
        found: Counter[str] = Counter()
        for start in range(0, len(self), BLOCK):
            part = self._table.rows(np.arange(start, min(start + BLOCK, len(self))))
            two = np.flatnonzero(np.diff(part.first) == 2)
            rows = part.rows(two).changes
            changes = rows.rows(0, len(rows))
            found.update(_types(part, [changes[n : n + 2] for n in range(0, len(changes), 2)]))
        return found

    def _built(self, start: int, stop: int) -> list[Action]:
        return self._made(self._table.rows(np.arange(start, stop)), range(start + 1, stop + 1))

    def _made(self, part: ActionTable, numbers: Sequence[int]) -> list[Action]:
        """Actions of all rows of `part`, which are the ones of these numbers."""
        changes = _slices(part.changes.rows(0, len(part.changes)), part.first.tolist())
        pairs = [changes[n] for n in np.flatnonzero(np.diff(part.first) == 2).tolist()]
        columns = (
            numbers, _types(part, pairs), part.score.tolist(), self._repairs(part), list(map(round, part.bytes_to_move.tolist())),
            changes, self._helped(part), range(len(numbers)),
        )  # fmt: skip
        return [
            Action(
                number, kind, score, repairs, reason_of(given, repairs, helps, self.frame.index, self._states, self._homes),
                size, tuple(given), TableScores(self.frame, part, n),
            )
            for number, kind, score, repairs, size, given, helps, n in zip(*columns, strict=True)
        ]  # fmt: skip

    def _judged(self, part: ActionTable) -> BoolArray:
        return np.asarray(self._judges[np.searchsorted(self._ids, part.broker)])

    def _helped(self, part: ActionTable) -> list[str | None]:
        """Of each action, what it does for the goal that gains most; None where none does."""
        gained = self._weights * (part.goal_score - 0.5)
        if not gained.size:
            return [None] * len(gained)
        best = gained.argmax(axis=1)
        gains = gained[np.arange(len(best)), best] > 1e-9
        each = np.repeat(best, np.diff(part.first_broker))
        rows = np.arange(len(each))
        judges = self._judged(part)[rows, each]
        before, after = (
            np.append(np.where(judges, scores[rows, each], np.inf), np.inf) for scores in (part.score_before[:], part.score_after)
        )
        starts = part.first_broker[:-1]
        low = np.minimum.reduceat(before, starts)
        at_low = before[:-1] == np.repeat(low, np.diff(part.first_broker))
        at = np.minimum.reduceat(np.append(np.where(at_low, rows, len(rows)), len(rows)), starts)
        broker = np.append(part.broker, -1)[at]
        columns = gains.tolist(), best.tolist(), broker.tolist(), low.tolist(), np.minimum.reduceat(after, starts).tolist()
        names = self.frame.names
        return [helped(names[g], b, was, becomes) if gain else None for gain, g, b, was, becomes in zip(*columns, strict=True)]

    def _repairs(self, part: ActionTable) -> list[tuple[str, ...]]:
        """What each action repairs: brokers that go, leaders, hard goals."""
        mends = np.zeros((len(part.repairs), len(self.frame.names)), np.bool_)
        if (part.repairs >> REPAIRS_SCORES & 1).any():
            before, after = part.score_before[:].copy(), part.score_after.copy()
            for scores in (before, after):
                scores[:, self._limits] = 1.0 - 1.0 / scores[:, self._limits]
            raised = (after > before + TOLERANCE) & self._hard & self._active[np.searchsorted(self._ids, part.broker)][:, None]
            mends |= np.logical_or.reduceat(raised, part.first_broker[:-1], axis=0)
        mends |= (part.repairs >> REPAIRS_RACKS & 1).astype(np.bool_)[:, None] & self._racks
        return [
            (*(name for bit, name in REPAIR_NAMES.items() if bits >> bit & 1), *(self.frame.names[g] for g in np.flatnonzero(row)))
            if bits else () for bits, row in zip(part.repairs.tolist(), mends, strict=True)
        ]  # fmt: skip


class TableScores(Mapping[str, GoalScore]):
    """Goal name -> `GoalScore` of one action, read from its table when looked at."""

    __slots__ = ("_frame", "_row", "_table")

    def __init__(self, frame: ScoreFrame, table: ActionTable, row: int) -> None:
        self._frame, self._table, self._row = frame, table, row

    def rows(self) -> ScoreRows:
        """The same as plain numbers."""
        table = self._table
        here = slice(table.first_broker[self._row], table.first_broker[self._row + 1])
        return ScoreRows(
            self._frame, table.goal_score[self._row].tolist(), table.broker[here].tolist(), table.score_before[here].tolist(),
            table.score_after[here].tolist(),
        )  # fmt: skip

    def __getitem__(self, name: str) -> GoalScore:
        return self.rows()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._frame.names)

    def __len__(self) -> int:
        return len(self._frame.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment]


def _slices(items: list[Item], ends: list[int]) -> list[list[Item]]:
    base = ends[0]
    return [items[start - base : stop - base] for start, stop in pairwise(ends)]


def _types(part: ActionTable, pairs: Sequence[Sequence[Change]]) -> list[ActionType]:
    """What the contract calls each action; `pairs` are the changes of those that have two."""
    count = np.diff(part.first)
    rows = part.first[:-1][count == 1]
    before, after = part.changes.before[rows], part.changes.after[rows]
    added = ((after[:, :, None] != before[:, None, :]).all(axis=2) & (after >= 0)).sum(axis=1)
    single, double = iter(np.minimum(added, 2).tolist()), iter(pairs)
    return [ONE_CHANGE[next(single)] if n == 1 else _type_of_two(*next(double)) if n == 2 else "exchange" for n in count.tolist()]


def _type_of_two(one: Change, two: Change) -> ActionType:
    gone = [set(c.replicas_before) - set(c.replicas_after) for c in (one, two)]
    came = [set(c.added) for c in (one, two)]
    if len(came[0]) == 1 and came[0] == gone[1] and came[1] == gone[0] and one != two:
        return "swap"
    return "exchange"
