"""What stands on a broker at the end of a plan, gathered once for all proofs that ask for it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from optimizer.problem import COLUMN, FOLLOWING, LEADING, MOVABLE, Compiled
from optimizer.search.state import State


class Held:
    """The n replicas on broker `row`."""

    def __init__(self, compiled: Compiled, end: State, row: int) -> None:
        self._problem, self._end, self._row = compiled.problem, end, row

    @cached_property
    def partitions(self) -> np.ndarray:
        """int64 [n]: which partition each is of."""
        return np.asarray(self._entries // self._end.replicas.shape[1])

    @cached_property
    def fixed(self) -> np.ndarray:
        """bool [n]: whether it may not move."""
        return np.asarray(self._problem.partition[self.partitions, MOVABLE] == 0)

    def amounts(self, g: int) -> np.ndarray:
        """float64 [n]: what each costs the broker in goal `g`."""
        return np.asarray(self._vectors[:, self._problem.goal[g, COLUMN]])

    @property
    def _entries(self) -> np.ndarray:
        return np.asarray(self._end.hosted[self._row, : self._end.hosts[self._row]], dtype=np.int64)

    @cached_property
    def _vectors(self) -> np.ndarray:
        leads = self._end.lead[self.partitions] == self._entries % self._end.replicas.shape[1]
        return np.asarray(self._problem.vector[self.partitions, np.where(leads, LEADING, FOLLOWING)])
