"""Which of many moves are legal, for callers in Python."""

from __future__ import annotations

import numpy as np

from kernels.compiled import kernel
from optimizer.problem import Problem
from optimizer.search.hosting import may_host
from optimizer.search.state import State


@kernel
def legal_moves(
    problem: Problem, state: State, partitions: np.ndarray, slots: np.ndarray, brokers: np.ndarray, legal: np.ndarray
) -> None:
    """Write into `legal` bool [n] whether each broker may take the place of that slot (`may_host`)."""
    for i in range(len(partitions)):
        legal[i] = may_host(problem, state, partitions[i], slots[i], brokers[i])
