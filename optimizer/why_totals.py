"""Sums over all partitions that proofs ask for, each worked out once for all brokers.

Made by `why_left` for one plan; hundreds of brokers may be left in several goals each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from optimizer.columns import offline_partitions
from optimizer.conflicts import Conflict, conflicts
from optimizer.problem import (
    ANYWHERE,
    BOUND,
    COLUMN,
    FOLLOWING,
    LEADING,
    MEAN,
    MENDABLE,
    MOVABLE,
    RACK_LIMIT,
    RACK_OF,
    RF,
    SET_OF,
    STATE,
    Compiled,
)


class Totals:
    """Of one compiled problem; goals and racks by their rows."""

    def __init__(self, compiled: Compiled) -> None:
        self._problem = compiled.problem
        self._replicas, self._lead = compiled.replicas, compiled.lead
        self._eligible = self._problem.broker[:, STATE] == BrokerState.ACTIVE
        self._known: dict[tuple[str, int, int], Any] = {}  # no caches of bound methods: their cycle would keep the problem in memory

    @cached_property
    def everywhere(self) -> bool:
        """Whether every partition has a replica on every eligible broker."""
        return bool((self._problem.partition[:, RF] >= self._eligible.sum()).all())

    @cached_property
    def conflicts(self) -> dict[int, list[Conflict]]:
        """Broker row -> bands that it cannot keep both, where there are any."""
        found: dict[int, list[Conflict]] = {}
        for one in conflicts(self._problem, self._replicas, self._lead):
            found.setdefault(one.broker, []).append(one)
        return found

    @cached_property
    def _kinds(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """int64: which kind of partition each is, and of each kind the replicas that a rack may hold and the replication factor."""
        limit, rf = self._problem.partition[:, [RACK_LIMIT, RF]].astype(np.int64).T
        width = int(rf.max(initial=0)) + 1
        key = limit * width + rf
        kinds = np.flatnonzero(np.bincount(key))
        return np.searchsorted(kinds, key), kinds // width, kinds % width

    @cached_property
    def _rooms(self) -> np.ndarray:
        """int64 [kinds, racks]: replicas of a partition of each kind that a rack may hold."""
        racks = self._problem.broker[:, RACK_OF]
        sizes = np.bincount(racks[self._eligible], minlength=int(racks.max()) + 1)
        return np.asarray(np.minimum(self._kinds[1][:, None], sizes[None, :]))

    def together(self, row: int) -> np.ndarray:
        """bool [B]: active brokers that share loads with broker `row`: those of its set, or all."""
        return np.asarray(self._eligible & (self._problem.broker[:, SET_OF] == self._problem.broker[row, SET_OF]))

    @cached_property
    def active(self) -> int:
        """How many brokers are active."""
        return int(np.count_nonzero(self._eligible))

    def top(self, g: int) -> float:
        """Where the highest band of goal `g` ends."""
        table = self._problem.table
        return float(self._once(("top", g, -1), lambda: (table[self._eligible, g, MEAN] + table[self._eligible, g, BOUND]).max()))

    def bands(self, rack: int, g: int) -> tuple[int, float, float]:
        """Active brokers of a rack, and where their bands of goal `g` start and end, all taken together."""
        found: tuple[int, float, float] = self._once(("bands", g, rack), lambda: self._bands(rack, g))
        return found

    def movable(self, g: int) -> float:
        """What replicas that may move amount to in goal `g`, if each led, or followed where that costs more."""
        return float(self._once(("movable", g, -1), lambda: self._movable(g)))

    def to_move_more(self, snapshot: Snapshot) -> str:
        """On which lists topics stand that may not move, as the end of a sentence; empty where all may."""
        return str(self._once(("to_move_more", -1, -1), lambda: self._to_move_more(snapshot)))

    def rack(self, rack: int, g: int) -> tuple[float, float]:
        """The least and the most that a rack can hold in goal `g` by the hard rule, whichever replica leads."""
        held: tuple[float, float] = self._once(("rack", g, rack), lambda: self._rack(rack, g))
        return held

    def giants(self, g: int, row: int) -> tuple[np.ndarray, float]:
        """Partitions whose leader alone is above every band in goal `g` of the brokers that share loads with `row`, and that may stand on
        these; and what they amount to."""
        number = int(self._problem.broker[row, SET_OF])
        found: tuple[np.ndarray, float] = self._once(("giants", g, number), lambda: self._giants(g, row))
        return found

    def _once(self, what: tuple[str, int, int], make: Callable[[], Any]) -> Any:
        if what not in self._known:
            self._known[what] = make()
        return self._known[what]

    def _movable(self, g: int) -> float:
        vector, column = self._problem.vector, self._problem.goal[g, COLUMN]
        most = np.maximum(vector[:, LEADING, column], vector[:, FOLLOWING, column])
        return float(most[self._problem.partition[:, MOVABLE] == 1].sum())

    def _to_move_more(self, snapshot: Snapshot) -> str:
        live, partition = ~offline_partitions(snapshot), self._problem.partition
        frozen = live & (partition[:, MENDABLE] == 0)
        excluded = live & ~frozen & (partition[:, MOVABLE] == 0)
        parts = ["take some topics off constraints.freeze_topics"] if frozen.any() else []
        parts += ["include more topics (constraints.exclude_topics or include_topics, --exclude-topic)"] if excluded.any() else []
        return f"; {', or '.join(parts)}" if parts else ""

    def _bands(self, rack: int, g: int) -> tuple[int, float, float]:
        members = self._problem.table[self._eligible & (self._problem.broker[:, RACK_OF] == rack), g]
        mean, bound = members[:, MEAN], members[:, BOUND]
        return len(members), float((mean - bound).sum()), float((mean + bound).sum())

    def _by_kind(self, g: int) -> np.ndarray:
        """float64 [4, kinds]: what partitions amount to in goal `g` as followers; what leaders cost beyond that, where it is less than
        nothing, and where it is more."""
        kind, count, column = self._kinds[0], len(self._kinds[1]), self._problem.goal[g, COLUMN]
        following = self._problem.vector[:, FOLLOWING, column]
        more = self._problem.vector[:, LEADING, column] - following
        parts = (following, more, np.minimum(more, 0.0), np.maximum(more, 0.0))
        return np.stack([np.bincount(kind, weights=part, minlength=count) for part in parts])

    def _rack(self, rack: int, g: int) -> tuple[float, float]:
        following, more, less, extra = self._once(("kinds", g, -1), lambda: self._by_kind(g))
        here, rf = self._rooms[:, rack], self._kinds[2]
        least, most = np.maximum(rf - (self._rooms.sum(axis=1) - here), 0), np.minimum(here, rf)
        whole = (rf > 0) & (least >= rf)
        # With all replicas of a partition in the rack one of them leads; otherwise the leader may be here or elsewhere.
        led = np.where(whole, more, np.where(least > 0, less, 0.0))
        led_most = np.where(whole, more, np.where(most > 0, extra, 0.0))
        return float((least * following + led).sum()), float((most * following + led_most).sum())

    def _giants(self, g: int, row: int) -> tuple[np.ndarray, float]:
        table = self._problem.table[self.together(row), g]
        vector = self._problem.vector[:, LEADING, self._problem.goal[g, COLUMN]]
        may = np.isin(self._problem.topic_set, (ANYWHERE, self._problem.broker[row, SET_OF]))[self._problem.topic]
        rows = np.flatnonzero((vector > (table[:, MEAN] + table[:, BOUND]).max()) & may & (self._lead >= 0))
        leaders = self._replicas[rows, self._lead[rows]]  # an excluded one keeps its leadership
        rows = rows[self._problem.broker[leaders, STATE] != BrokerState.EXCLUDED]
        return rows, float(vector[rows].sum())
