"""The gain of each further gigabyte: how balanced a cluster would be after a plan for each of some budgets, or after each part of a plan.

`Frontier` is of the parts of one plan, and computed when a report asks for it: a first part of a plan is a plan for a smaller budget, but
seldom the best one, because much of the gain comes with the last actions. `with_budgets` plans for each budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, overload

import numpy as np

from optimizer.options import PlanOptions
from optimizer.plan import Plan, Step
from optimizer.problem import ACTIVE, HARD, STATE, WEIGHT, Compiled

if TYPE_CHECKING:
    from optimizer.actions import ActionTable
    from optimizer.outcome import Picture

POINTS = 20  # steps of the curve, the start not counted
SHARES = tuple(eighths / 8 for eighths in (0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 5, 6, 7))  # of the bytes of a plan: budgets that are planned for


def with_budgets(whole: Plan, options: PlanOptions, planned: Callable[[PlanOptions], Plan]) -> Plan:
    """The plan `whole` with a frontier of plans for smaller budgets: `SHARES` of its bytes, or of its moves if it copies nothing.

    `planned` gives the plan for options; `options` are those of `whole`. A plan that was stopped, or that a policy made, stays as it is.
    """
    if not isinstance(whole.frontier, Frontier) or whole.stopped or not whole.summary.replica_moves:
        return whole
    steps, data, moves = [whole.frontier[0]], whole.summary.bytes_to_move, whole.summary.replica_moves
    for share in SHARES:
        part = planned(replace(options, max_bytes=int(share * data)) if data else replace(options, max_moves=int(share * moves)))
        if part.stopped:
            return whole
        if part.frontier[-1] != steps[-1]:
            steps.append(part.frontier[-1])
    return replace(whole, frontier=(*steps, whole.frontier[-1]))


class Frontier(Sequence[Step]):
    """Steps from nothing to the whole plan, at about equal distances in bytes (in actions, where nothing is copied)."""

    def __init__(self, table: ActionTable, compiled: Compiled, start: Picture) -> None:
        problem = compiled.problem
        self._table = table
        self._sizes = problem.size[table.changes.partition]
        self._soft = np.flatnonzero(problem.goal[:, HARD] == 0)
        self._weight = problem.force[self._soft, WEIGHT]
        self._active = problem.broker[:, STATE] == ACTIVE
        self._scores = start.score[:, : len(compiled.goals)].copy()

    def __len__(self) -> int:
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        return self._steps[index]

    @cached_property
    def _steps(self) -> tuple[Step, ...]:
        table = self._table
        rows = {int(b): row for row, b in enumerate(table.changes.snapshot.broker_ids)}
        row = np.array([rows[int(b)] for b in table.broker], dtype=np.int64)
        soft, weight, active = self._soft, self._weight, self._active
        scores, at = self._scores.copy(), 0
        steps = []
        for cut in self._cuts():
            until = int(table.first_broker[cut])
            scores[row[at:until]] = table.score_after[at:until]  # of a broker's several, the last stays
            at = until
            low = scores[active] < 1.0
            kept = scores[active][:, soft]
            moves, data, leaders = self._spent(int(table.first[cut]))
            steps.append(
                Step(
                    actions=cut,
                    replica_moves=moves,
                    leadership_changes=leaders,
                    bytes_to_move=data,
                    brokers_in_band=int((~low.any(axis=1)).sum()),
                    violations=int(low.sum()),
                    balance=float((kept * weight).sum() / (weight.sum() * len(kept))) if kept.size and weight.sum() > 0 else 1.0,
                    worst=float(kept.min()) if kept.size else 1.0,
                )
            )
        return tuple(steps)

    def _cuts(self) -> list[int]:
        """Numbers of actions after which to look."""
        spent = np.cumsum(self._table.bytes_to_move)
        count = len(spent)
        if not count:
            return [0]
        if spent[-1] <= 0:
            spent = np.arange(1.0, count + 1)
        marks = np.searchsorted(spent, np.linspace(0.0, spent[-1], POINTS + 1)) + 1
        return sorted({0, count, *(int(min(mark, count)) for mark in marks)})

    def _spent(self, changes: int) -> tuple[int, int, int]:
        """Net replica moves, bytes and leadership changes of the first so many changes."""
        table = self._table.changes
        partitions = table.partition[:changes]
        _, first = np.unique(partitions, return_index=True)
        _, last = np.unique(partitions[::-1], return_index=True)
        last = changes - 1 - last
        before, after = table.before[first], table.after[last]
        new = ((after[:, :, None] != before[:, None, :]).all(axis=2) & (after >= 0)).sum(axis=1)
        led = (table.leader_before[first] != table.leader_after[last]).sum()
        return int(new.sum()), round(float((new * self._sizes[first]).sum())), int(led)
