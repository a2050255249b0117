"""How much the bytes of a partition count against the gain of moving it.

Called by everything that chooses among moves. It is a root and a division, made where it is needed: kept for every partition it would
take memory that the search reads nowhere else.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.compiled import inner
from optimizer.problem import Problem


@inner
def thrift_of(problem: Problem, p: Any) -> Any:
    """Factor on the gain of a move of partition `p` (outside kernels also int64 [n]): 1 for a typical size, less for many bytes."""
    return 1.0 / np.sqrt(0.1 + 0.9 * problem.cost[p] / problem.typical[0])
