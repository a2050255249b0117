"""Lower bounds: replica moves and bytes that no plan can avoid.

For every broker and goal, the fewest replicas and the fewest bytes that must leave it (or enter it) before it is in band, each as a
fractional knapsack, which no whole number of replicas can beat. Leadership transfers are free: a broker's excess counts only as far
as giving up every leadership cannot mend it. Source: ours, reference study of the planner.
"""

from __future__ import annotations

import math

import numpy as np

from cluster_model.snapshot import BrokerState
from optimizer.plan import LowerBounds
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    DISTRIBUTION,
    FOLLOWING,
    HARD,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MIN_LOAD,
    MOVABLE,
    SIZE,
    STATE,
    Problem,
)  # fmt: skip

Array = np.ndarray


def lower_bounds(problem: Problem, replicas: Array, lead: Array) -> LowerBounds:
    """Bounds for bringing every broker into band (and dead and draining ones empty) from this placement.

    O(G P R log P). A broker that cannot reach its band counts as far as it can be known to need.
    """
    present = replicas >= 0
    partition, slot = np.nonzero(present)
    broker = replicas[partition, slot]
    led = lead[partition] == slot
    size = problem.haul[partition, SIZE]
    count = len(problem.broker)
    state = problem.broker[:, STATE]
    out_moves, in_moves = np.zeros(count), np.zeros(count)
    out_bytes, in_bytes = np.zeros(count), np.zeros(count)
    live = (problem.broker[np.maximum(replicas, 0), STATE] != BrokerState.DEAD) & present
    must_go = (
        np.isin(state[broker], (BrokerState.DEAD, BrokerState.DRAINING))
        & (problem.partition[partition, MOVABLE] == 1)
        & live.any(axis=1)[partition]
    )
    out_moves += np.bincount(broker[must_go], minlength=count)
    out_bytes += np.bincount(broker[must_go], weights=size[must_go], minlength=count)
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] > LIMIT:
            continue
        column = problem.goal[g, COLUMN]
        leading, following = problem.vector[:, LEADING, column], problem.vector[:, FOLLOWING, column]
        least = np.minimum(leading, following)[partition]
        most = np.maximum(leading, following)[partition]
        held = np.where(led, leading[partition], following[partition])
        equal = bool((leading == following).all())
        low, high = _band(problem, g)
        floor = np.bincount(broker, weights=held if equal else least, minlength=count)
        roof = np.bincount(broker, weights=held if equal else most, minlength=count)
        excess = np.where(state == BrokerState.ACTIVE, floor - high, 0.0)
        lack = np.where(state == BrokerState.ACTIVE, low - roof, 0.0)
        over = np.flatnonzero(excess > 1e-9 * np.maximum(high, 1e-300))
        if len(over):
            amount = held if equal else most
            moves, data = _knapsacks(broker, amount, size, over, excess)
            out_moves[over] = np.maximum(out_moves[over], moves)
            out_bytes[over] = np.maximum(out_bytes[over], data)
        under = np.flatnonzero(lack > 1e-9 * np.maximum(low, 1e-300))
        if len(under):
            moves, data = _fillings(np.maximum(leading, following), problem.haul[:, SIZE], lack[under])
            in_moves[under] = np.maximum(in_moves[under], moves)
            in_bytes[under] = np.maximum(in_bytes[under], data)
    moves = max(np.ceil(out_moves - 1e-9).sum(), np.ceil(in_moves - 1e-9).sum())
    data = max(out_bytes.sum(), in_bytes.sum())
    return LowerBounds(replica_moves=int(moves), bytes_to_move=math.floor(data * (1 - 1e-12)))


def _band(problem: Problem, g: int) -> tuple[Array, Array]:
    """float64 [B] low and high end of what scores 1 (or is under the ceiling)."""
    table = problem.table[:, g]
    if problem.goal[g, KIND] != DISTRIBUTION:
        ceiling = table[:, CEILING] if problem.goal[g, HARD] else np.full(len(table), np.inf)
        return np.full(len(table), -np.inf), ceiling
    mean = table[:, MEAN]
    low, high = mean - table[:, BOUND], mean + table[:, BOUND]
    quiet = mean < problem.force[g, MIN_LOAD]
    high = np.where(quiet, np.maximum(high, problem.force[g, MIN_LOAD]), high)
    return np.where(quiet | (mean <= 0), -np.inf, low), np.where(mean <= 0, np.inf, high)


def _knapsacks(broker: Array, amount: Array, size: Array, over: Array, excess: Array) -> tuple[Array, Array]:
    """Fewest (fractional) replicas and bytes that take `excess` off each broker of `over`."""
    order = np.argsort(broker, kind="stable")
    starts = np.searchsorted(broker[order], over)
    ends = np.searchsorted(broker[order], over, side="right")
    moves, data = np.zeros(len(over)), np.zeros(len(over))
    for i, b in enumerate(over):
        rows = order[starts[i] : ends[i]]
        rows = rows[amount[rows] > 0]
        by_amount = rows[np.argsort(-amount[rows], kind="stable")]
        moves[i] = _fraction(amount[by_amount], np.ones(len(rows)), excess[b])
        by_bytes = rows[np.argsort(size[rows] / amount[rows], kind="stable")]
        data[i] = _fraction(amount[by_bytes], size[by_bytes], excess[b])
    return moves, data


def _fillings(amount: Array, size: Array, lack: Array) -> tuple[Array, Array]:
    """Fewest replicas and bytes, out of all partitions, that supply each of `lack`; every broker may use the best ones."""
    rows = np.flatnonzero(amount > 0)
    by_amount = rows[np.argsort(-amount[rows], kind="stable")]
    by_bytes = rows[np.argsort(size[rows] / amount[rows], kind="stable")]
    moves = np.array([_fraction(amount[by_amount], np.ones(len(rows)), need) for need in lack])
    data = np.array([_fraction(amount[by_bytes], size[by_bytes], need) for need in lack])
    return moves, data


def _fraction(amount: Array, price: Array, need: float) -> float:
    """Price of taking items in the given order, the last in part, until `need` is reached (all of them if it never is)."""
    taken = np.cumsum(amount)
    at = int(np.searchsorted(taken, need))
    if at >= len(amount):
        return float(price.sum())
    before = taken[at - 1] if at else 0.0
    return float(price[:at].sum() + price[at] * (need - before) / amount[at])
