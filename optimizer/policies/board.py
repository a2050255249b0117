"""Where every replica stands while a policy works, and the steps that it has made: slots of lists keep their places.

Written by `follow` and the parts that it calls; `recording` makes a plan of its steps.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BoolArray, BrokerState, Snapshot
from optimizer.problem import HARD_RACK, MENDABLE, MOVABLE, RACK_GOAL, RACK_LIMIT, RACK_OF, STATE, Compiled

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Step:
    """One action: partition rows with their lists (broker rows, slot by slot) and leader slots afterwards, and why."""

    partitions: tuple[int, ...]
    lists: tuple[tuple[int, ...], ...]
    leads: tuple[int, ...]
    reason: str


@dataclass(eq=False)
class Board:
    """B brokers, P partitions, R slots; broker rows. `lists` int64 [P, R] and `lead` int64 [P] (a slot, -1 none) change with `make`."""

    snapshot: Snapshot
    compiled: Compiled
    lists: Rows
    lead: Rows
    steps: list[Step] = field(default_factory=list)

    @classmethod
    def of(cls, snapshot: Snapshot, compiled: Compiled) -> Board:
        """At the start of `compiled`."""
        return cls(snapshot, compiled, compiled.replicas.copy(), compiled.lead.copy())

    @property
    def active(self) -> BoolArray:
        return np.asarray(self.compiled.problem.broker[:, STATE] == BrokerState.ACTIVE)

    @property
    def leaving(self) -> BoolArray:
        """bool [B]: draining and dead brokers."""
        return np.isin(self.compiled.problem.broker[:, STATE], (BrokerState.DRAINING, BrokerState.DEAD))

    @property
    def movable(self) -> BoolArray:
        """bool [P]: may change for balance."""
        return np.asarray((self.compiled.problem.partition[:, MOVABLE] == 1) & ~self.resting)

    @property
    def resting(self) -> BoolArray:
        """bool [P]: stays for now, as it was moved lately or its load is in doubt."""
        caution = self.compiled.caution
        return caution.held if caution is not None else np.zeros(len(self.lead), np.bool_)

    @property
    def mendable(self) -> BoolArray:
        """bool [P]: may change to leave a dead or draining broker."""
        return np.asarray(self.compiled.problem.partition[:, MENDABLE] == 1)

    @property
    def rack(self) -> Rows | None:
        """int64 [B] where a hard goal keeps racks, None where none does."""
        kept = self.compiled.problem.setting[RACK_GOAL] == HARD_RACK
        return self.compiled.problem.broker[:, RACK_OF].copy() if kept else None

    @property
    def per_rack(self) -> Rows:
        return self.compiled.problem.partition[:, RACK_LIMIT].astype(np.int64)

    @property
    def leaders(self) -> Rows:
        """int64 [P]: broker row of each leader, -1 none."""
        return np.where(self.lead >= 0, self.lists[np.arange(len(self.lead)), np.maximum(self.lead, 0)], -1)

    def now(self) -> Snapshot:
        """The cluster as it would stand; lists in the order of slots."""
        return self.snapshot.with_placement(self.lists.astype(np.int32), self.leaders.astype(np.int32))

    def make(self, step: Step) -> None:
        """Carry out `step`."""
        for p, row, lead in zip(step.partitions, step.lists, step.leads, strict=True):
            self.lists[p] = row
            self.lead[p] = lead
        self.steps.append(step)

    def moved(self, p: int, slot: int, target: int) -> tuple[int, ...]:
        """The list of partition `p` with `target` in `slot`."""
        row = self.lists[p].tolist()
        row[slot] = target
        return tuple(row)

    def name(self, broker: int) -> str:
        """What people call broker row `broker`."""
        return f"broker {self.snapshot.broker_ids[broker]}"
