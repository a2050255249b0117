"""Lower bounds without a compiler: `optimizer.bounds.leaving`, a broker at a time."""

from __future__ import annotations

import numpy as np

from optimizer.problem import COLUMN, KIND, LIMIT, STATE, Problem
from optimizer.search.state import State
from optimizer.search.uncompiled.choices import ascending


def leaving(
    problem: Problem, state: State, low: np.ndarray, high: np.ndarray, out_moves: np.ndarray, out_bytes: np.ndarray, lack: np.ndarray
) -> None:  # fmt: skip
    """`optimizer.bounds.leaving`."""
    from optimizer.bounds import FEW, fewest

    slots = state.replicas.shape[1]
    few = len(state.lead) * slots <= FEW * len(problem.broker)
    goals = [(g, c) for g, c in enumerate(problem.goal[:, COLUMN].tolist()) if problem.goal[g, KIND] <= LIMIT]
    rows, columns = [g for g, _ in goals], [c for _, c in goals]
    loads = state.load[:, columns].T
    level = ~((loads > high[rows]) | (loads < low[rows])).any(axis=0)
    for b in np.flatnonzero((problem.broker[:, STATE] == 0) & ~level).tolist():
        partitions = state.hosted[b, : state.hosts[b]] // slots
        size, both = problem.size[partitions], problem.vector[partitions]
        least, most = both.min(axis=1), both.max(axis=1)
        beyond, amounts = [], []
        for g, c in goals:
            lack[g, b] = max(low[g, b] - float(most[:, c].sum()), 0.0)
            excess = float(least[:, c].sum()) - float(high[g, b])
            if excess > 1e-9 * max(float(high[g, b]), 1e-300):
                amount = most[:, c]
                out_moves[b] = max(out_moves[b], fraction(-amount, amount, size, False, excess))
                keys = np.divide(size, amount, out=np.full(len(size), np.inf), where=amount > 0.0)
                out_bytes[b] = max(out_bytes[b], fraction(keys, amount, size, True, excess))
                beyond.append(excess)
                amounts.append(amount)
        if len(beyond) > 1 and few:
            out_moves[b] = max(out_moves[b], fewest(np.array(amounts), np.array(beyond)))


def fraction(keys: np.ndarray, amount: np.ndarray, size: np.ndarray, by_size: bool, need: float) -> float:
    """`optimizer.bounds.fraction`."""
    rows = np.flatnonzero(amount > 0.0)
    rows = rows[ascending(keys[rows])]
    taken = np.cumsum(amount[rows])
    price = size[rows] if by_size else np.ones(len(rows))
    at = int(np.searchsorted(taken, need))
    paid = float(price[:at].sum())
    if at == len(rows):
        return paid
    gone = float(taken[at - 1]) if at else 0.0
    return paid + float(price[at]) * (need - gone) / float(amount[rows[at]])
