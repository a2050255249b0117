"""What brokers cost with many different loads: one pair of brokers, and each of n replicas that might go from one to the other.

Called by `lists`, `pours` and others; the order of operations for each element is that of the kernels.
"""

from __future__ import annotations

import numpy as np

from optimizer.problem import COLUMN, HIGH, LOW, MEAN, SCALE, SPREAD, STEEP, STRENGTH, Problem
from optimizer.search.state import State
from optimizer.search.uncompiled.sheets import cost_of, sheet_of


class Scales:
    """Weighs what goes from broker `source` to broker `target`, in the goals `watched` (int64) of G that can change.

    Notes
    -----
    About twenty passes over float64 [2, G, n].
    """

    def __init__(self, problem: Problem, watched: np.ndarray, source: int, target: int) -> None:
        sheet = sheet_of(problem)
        pair = (sheet.table(int(source)), sheet.table(int(target)))
        goals = [g for g in watched.tolist() if pair[0][g][SCALE] != 0.0 or pair[1][g][SCALE] != 0.0]
        self.columns = [sheet.goal[g][COLUMN] for g in goals]
        self._brokers = [int(source), int(target)]
        self._rows = [
            (c, *((t[g][MEAN], t[g][HIGH], t[g][LOW], t[g][SCALE]) for t in pair), *_weights(sheet.force[g]))
            for g, c in zip(goals, self.columns, strict=True)
        ]
        table = problem.table[self._brokers][:, goals]
        self._mean, self._high, self._low, self._scale = (
            np.ascontiguousarray(table[:, :, which, None]) for which in (MEAN, HIGH, LOW, SCALE)
        )
        force = problem.force[goals]
        self._strength, self._spread = force[:, STRENGTH, None], force[:, SPREAD, None]
        self._odd = bool((self._low > self._high).any())
        self._room: np.ndarray | None = None

    def falls(self, state: State, amounts: np.ndarray) -> np.ndarray:
        """By how much the potential falls, float64 [n], when each of `amounts` (float64 [G, n], rows as `columns`) goes over."""
        if not self.columns:
            return np.zeros(amounts.shape[1])
        loads = (state.load[self._brokers[0]].tolist(), state.load[self._brokers[1]].tolist())
        now, levels = [], ([], [])  # type: ignore[var-annotated]
        for c, (m, h, o, s), (m2, h2, o2, s2), w, e in self._rows:
            x, y = loads[0][c], loads[1][c]
            levels[0].append(x)
            levels[1].append(y)
            now.append(cost_of(x, m, h, o, s, w, e) + cost_of(y, m2, h2, o2, s2, w, e))
        after, room, off = self._rooms(amounts.shape[1])
        level = np.array(levels)[:, :, None]
        np.subtract(level[0], amounts, out=after[0])
        np.add(level[1], amounts, out=after[1])
        np.subtract(after, self._mean, out=off)
        off *= self._scale
        off *= off
        if self._odd:
            room = np.maximum(after - self._high, 0.0) + np.maximum(self._low - after, 0.0)
        else:
            np.maximum(after, self._low, out=room)
            np.minimum(room, self._high, out=room)
            np.subtract(after, room, out=room)
        room *= self._scale
        room *= room
        np.multiply(room, STEEP, out=after)
        after += 1.0
        room *= after
        cost, beside = room[0], off[0]
        cost += room[1]
        beside += off[1]
        cost *= self._strength
        beside *= self._spread
        np.subtract(np.array(now)[:, None], cost, out=cost)
        cost -= beside
        if cost.shape[1] == 1:  # a single column would be added up in another order
            return np.asarray(np.add.accumulate(cost, axis=0)[-1])
        return np.asarray(np.add.reduce(cost, axis=0))

    def _rooms(self, n: int) -> np.ndarray:
        """float64 [3, 2, G, n] to work in."""
        if self._room is None or self._room.shape[3] != n:
            self._room = np.empty((3, 2, len(self.columns), n))
        return self._room


def _weights(force: list[float]) -> tuple[float, float]:
    return force[STRENGTH], force[SPREAD]
