"""What stands on a broker at the end of a plan, gathered once for all proofs that ask for it."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from optimizer.placement.state import State
from optimizer.problem import COLUMN, FOLLOWING, LEADING, MENDABLE, MOVABLE, Compiled


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

    @property
    def fixed_topics(self) -> str:
        """How to call the topics of replicas that are `fixed`."""
        excluded, frozen = self._excluded_and_frozen
        listed = "frozen topics (constraints.freeze_topics)"
        return "excluded topics" if not frozen else f"excluded topics and {listed}" if excluded else listed

    @property
    def remedy(self) -> str:
        """How to let some of them move."""
        return "take some of them off that list" if self._excluded_and_frozen[1] else "include some of them"

    @cached_property
    def _excluded_and_frozen(self) -> tuple[bool, bool]:
        mended = self._problem.partition[self.partitions, MENDABLE] == 1
        return bool((self.fixed & mended).any()), bool((self.fixed & ~mended).any())

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
