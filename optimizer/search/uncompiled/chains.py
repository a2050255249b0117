"""Chains of one broker without a compiler: which of what came may go on instead of what left is found out for all of it at once."""

from __future__ import annotations

import numpy as np

from optimizer.problem import COLUMN, FOLLOWING, LEADING, Problem
from optimizer.search.state import COST, State
from optimizer.search.uncompiled.windows import windows


def trade_back(
    problem: Problem, state: State, linear: np.ndarray, v: int, left: np.ndarray, n: int, came: np.ndarray, amount: np.ndarray,
    row: np.ndarray, vain: int,
) -> tuple[int, int]:  # fmt: skip
    """`optimizer.search.chains.trade_back`."""
    from optimizer.search.chains import TRIES, VAIN, may_trade
    from optimizer.search.strays import put
    from optimizer.search.swaps import may_swap

    slots, topics, n = state.replicas.shape[1], len(problem.topic_goal), int(n)
    p, s = np.divmod(left, slots)
    target = state.replicas[p, s]
    loads = problem.vector[p, np.where(state.lead[p] == s, LEADING, FOLLOWING)][:, problem.goal[linear, COLUMN]]
    first, done = 0, 0
    while first < len(left) and n and not (topics and vain > VAIN):
        low, high = windows(problem, state, linear, v, target[first:], loads[first:])
        fit = np.repeat(((low <= high).all(axis=1) & (target[first:] != v))[:, None], n, axis=1)
        for k in range(len(linear)):
            fit &= (amount[k, :n] >= low[:, k, None]) & (amount[k, :n] <= high[:, k, None])
        made = -1
        for i in np.flatnonzero(fit.any(axis=1)).tolist():
            entry, u = int(left[first + i]), int(target[first + i])
            if (topics and vain > VAIN) or not may_swap(problem, state, entry // slots, entry % slots, v):
                continue
            before, units = state.score[[v, u], :COST], state.units[:topics, [v, u]]
            for at in np.flatnonzero(fit[i])[:TRIES].tolist():
                other = int(came[at])
                if not may_trade(problem, state, other, v, u):
                    continue
                put(problem, state, entry, v, row)
                put(problem, state, other, u, row)
                worse = (state.score[[v, u], :COST] < before - 1e-12).any()
                if not worse and not (state.units[:topics, [v, u]] > units + 1e-12).any():
                    made, done, n, vain = i, done + 1, n - 1, 0
                    came[at], amount[:, at] = came[n], amount[:, n]
                    break
                put(problem, state, other, v, row)
                put(problem, state, entry, u, row)
                vain += 1
            if made >= 0:
                break
        if made < 0:
            break
        first += made + 1
    return done, vain
