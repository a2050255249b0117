"""Lists of one state brought in line with another's: the same slots for the same brokers, or the same placement."""

from __future__ import annotations

import numpy as np

from kernels.compiled import kernel, whole
from optimizer.problem import Problem
from optimizer.search.commit import commit
from optimizer.search.state import State


@kernel
def align_slots(problem: Problem, state: State, home: np.ndarray, partitions: np.ndarray) -> None:
    """Put every broker that stays in a list of `partitions` back into its slot of `home` int64 [P, R]; the placement is the same.

    Needed because two slots may have traded places on the way.
    """
    slots = state.replicas.shape[1]
    row = np.zeros(slots, np.int64)
    for p in partitions:
        same = True
        for s in range(slots):
            if state.replicas[p, s] != home[p, s]:
                same = False
        if same:
            continue
        leader = state.replicas[p, state.lead[p]] if state.lead[p] >= 0 else -1
        for s in range(slots):
            row[s] = -2
            for o in range(slots):
                if home[p, s] == state.replicas[p, o]:
                    row[s] = home[p, s]
        at = 0
        for o in range(slots):
            b = state.replicas[p, o]
            stays = b < 0
            for s in range(slots):
                if home[p, s] == b:
                    stays = True
            if not stays:
                while row[at] != -2:
                    at += 1
                row[at] = b
        lead = whole(-1)
        moved = False
        for s in range(slots):
            if leader >= 0 and row[s] == leader:
                lead = whole(s)
            if row[s] != state.replicas[p, s]:
                moved = True
        if moved:
            commit(problem, state, p, row, lead)


@kernel
def follow(problem: Problem, state: State, other: State, partitions: np.ndarray) -> None:
    """Make the lists of `partitions` in `state` those of `other`."""
    slots = state.replicas.shape[1]
    for p in partitions:
        same = state.lead[p] == other.lead[p]
        for s in range(slots):
            if state.replicas[p, s] != other.replicas[p, s]:
                same = False
        if not same:
            commit(problem, state, p, other.replicas[p], other.lead[p])
