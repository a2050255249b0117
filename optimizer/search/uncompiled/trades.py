"""The best swap between two brokers without a compiler: `optimizer.search.swaps.best_swap`, all pairs of replicas at once."""

from __future__ import annotations

import numpy as np

from optimizer.problem import Problem
from optimizer.search.state import State
from optimizer.search.uncompiled.partitions import fits
from optimizer.search.uncompiled.scales import Scales
from optimizer.search.uncompiled.sheets import sheet_of


def best_swap(
    problem: Problem, state: State, watched: np.ndarray, v: int, u: int, found: int, small: np.ndarray, mine: np.ndarray,
    given: np.ndarray, found2: int, small2: np.ndarray, theirs: np.ndarray, got: np.ndarray, gains: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """`optimizer.search.swaps.best_swap`."""
    from optimizer.search.candidates import LEAST_GAIN
    from optimizer.search.swaps import keeps_limits

    if not found or not found2:
        return -1, -1
    slots = state.replicas.shape[1]
    scales = Scales(problem, watched, v, u)
    amounts = small[scales.columns, :found, None] - small2[scales.columns, None, :found2]
    gain = scales.falls(state, amounts.reshape(len(scales.columns), found * found2)).reshape(found, found2)
    good = gain > LEAST_GAIN
    p, q = mine[:found] // slots, theirs[:found2] // slots
    if len(given):
        apart = problem.topic[p][:, None] != problem.topic[q]
        gain -= np.where(apart, given[:found, None] + got[:found2], 0.0)
        good &= gain > LEAST_GAIN
    good &= p[:, None] != q
    keys = (gain * np.minimum(small[-1, :found, None], small2[-1, :found2])).reshape(-1)
    keys[~good.reshape(-1)] = 0.0
    fit: dict[tuple[int, int], bool] = {}  # whether a replica may stand on the other broker

    def may(entry: int, target: int) -> bool:
        known = fit.get((entry, target))
        if known is None:
            brokers = state.replicas[entry // slots].tolist()
            known = fit[entry, target] = target not in brokers and fits(
                problem, sheet_of(problem), entry // slots, brokers, entry % slots, target
            )
        return known

    some = np.flatnonzero(keys > 0.0)
    for at in some[np.argsort(-keys[some], kind="stable")].tolist():
        i, j = divmod(at, found2)
        if (
            may(int(mine[i]), u)
            and may(int(theirs[j]), v)
            and keeps_limits(problem, state, v, u, small, i, small2, j)
        ):
            return i, j
    return -1, -1
