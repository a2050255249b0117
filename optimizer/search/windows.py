"""How much may leave a broker, or come to it, before it is worse off in a goal on loads.

Called by `substitute`, `merge` and `regroup`, which change one replica for another; nothing here changes a state.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, whole
from optimizer.problem import BOUND, CEILING, COLUMN, KIND, LIMIT, MEAN, MIN_LOAD, STATE, Problem
from optimizer.search.state import State


@inner
def linear_goals(problem: Problem) -> np.ndarray:
    """Rows (int64) of the goals on loads, also of limits that nobody exceeds yet."""
    found = np.zeros(len(problem.goal), np.int64)
    count = 0
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT:
            found[count] = g
            count += 1
    return found[:count].copy()


@inner
def band_of(problem: Problem, state: State, b: int, g: int) -> tuple[float, float]:
    """Least and most load with which broker `b` is no worse off in goal `g` than it is."""
    if problem.broker[b, STATE] != 0:
        return -np.inf, np.inf
    load, mean = state.load[b, problem.goal[g, COLUMN]], problem.table[b, g, MEAN]
    if problem.goal[g, KIND] == LIMIT:
        return -np.inf, max(problem.table[b, g, CEILING], load)
    if mean <= 0.0:
        return -np.inf, np.inf
    low, high = mean - problem.table[b, g, BOUND], mean + problem.table[b, g, BOUND]
    if mean < problem.force[g, MIN_LOAD]:
        low, high = -np.inf, max(high, problem.force[g, MIN_LOAD])
    return min(low, load), max(high, load)


@inner
def open_window(low: np.ndarray, high: np.ndarray) -> None:
    """Let everything into the window."""
    for k in range(len(low)):
        low[k], high[k] = -np.inf, np.inf


@inner
def narrow(
    problem: Problem, state: State, linear: np.ndarray, b: int, back: np.ndarray, gives: bool, low: np.ndarray, high: np.ndarray
) -> bool:
    """Narrow the window, float64 [W] by goal of `linear`, to what broker `b` may give up once it has got the loads `back`; or, unless
    it `gives`, to what it may take once it has lost them. Returns whether anything is left of the window."""
    some = True
    for k in range(len(linear)):
        bottom, top = band_of(problem, state, b, linear[k])
        load = state.load[b, problem.goal[linear[k], COLUMN]]
        if gives:
            low[k], high[k] = max(low[k], load + back[k] - top), min(high[k], load + back[k] - bottom)
        else:
            low[k], high[k] = max(low[k], bottom - load + back[k]), min(high[k], top - load + back[k])
        some = some and low[k] <= high[k]
    return some


@inner
def stands_open(low: np.ndarray, high: np.ndarray) -> bool:
    """Whether nothing at all is within the window, too: the broker needs no more than what went back."""
    for k in range(len(low)):
        if low[k] > 0.0 or high[k] < 0.0:
            return False
    return True


@inner
def smallest(
    amounts: np.ndarray, sizes: np.ndarray, n: int, low: np.ndarray, high: np.ndarray, floor: float, after: int, roof: float
) -> int:
    """The first smallest of `n` replicas whose loads lie between `low` and `high` and that is smaller than `roof`; -1 if none.

    It comes behind the one at `after`, of size `floor`, in the order of sizes, then of the list.
    """
    best, least = whole(-1), roof
    for i in range(n):
        if sizes[i] >= least or sizes[i] < floor or (sizes[i] == floor and i <= after):
            continue
        good = True
        for k in range(len(low)):
            if amounts[k, i] < low[k] or amounts[k, i] > high[k]:
                good = False
                break
        if good:
            best, least = whole(i), sizes[i]
    return best
