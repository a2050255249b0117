"""Scores and costs of many brokers at once, or of one with many loads: `optimizer.search.broker_scores.assess`, row by row.

Called where nothing depends on what came just before (`lists.fill`, `trains`). Not for topic goals.
"""

from __future__ import annotations

import math

import numpy as np

from goals.score import TOLERANCE
from optimizer.problem import (
    ABSOLUTE,
    COLUMN,
    DISTRIBUTION,
    HIGH,
    KIND,
    LIMIT,
    LOW,
    MEAN,
    MIN_LOAD,
    RACK,
    SCALE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    Problem,
)
from optimizer.search.state import COST, RACKS, State


def judged(problem: Problem, state: State, brokers: np.ndarray, loads: np.ndarray) -> np.ndarray:
    """Scores, and last the part of the potential, float64 [n, G + 1], of `brokers` int64 [n] with `loads` float64 [n, C]; replicas in
    over-full racks are as `state` has them."""
    out = np.ones((len(brokers), len(problem.goal) + 1))
    out[:, COST] = 0.0
    eligible = problem.broker[brokers, STATE] == 0
    for g, goal in enumerate(problem.goal.tolist()):
        kind, load = goal[KIND], loads[:, goal[COLUMN]]
        if kind == RACK:
            out[:, g] = 1.0 / (1.0 + state.units[RACKS, brokers])
            continue
        table = problem.table[:, g][brokers]
        mean, bound, var, ceiling = table[:, :4].T
        force = problem.force[g].tolist()
        cost = costs_of(load, table, force)
        if kind == LIMIT:
            out[:, g] = _limit_scores(load, ceiling)
        elif kind == DISTRIBUTION:
            out[:, g] = np.where(eligible, _scores(load, mean, bound, var, goal[ABSOLUTE] == 1, force[MIN_LOAD]), 1.0)
            cost[~eligible] = 0.0
        out[:, COST] += cost
    return out


def costs_of(load: np.ndarray, table: np.ndarray, force: list[float]) -> np.ndarray:
    """`optimizer.search.broker_scores.linear_cost`, float64 [n], of `load` float64 [n] on brokers whose rows of a goal are `table`."""
    mean, high, low, scale = (table[:, which] for which in (MEAN, HIGH, LOW, SCALE))
    over, under = load - high, low - load
    beyond = np.where(over > 0.0, over, np.where(under > 0.0, under, 0.0)) * scale
    beyond *= beyond
    off = (load - mean) * scale
    return np.asarray(force[STRENGTH] * beyond * (1.0 + STEEP * beyond) + force[SPREAD] * off * off)


def _limit_scores(load: np.ndarray, ceiling: np.ndarray) -> np.ndarray:
    """`goals.score.limit_score`."""
    scores = np.ones(len(load))
    beyond = load > ceiling * (1.0 + TOLERANCE)
    excess, ceiling = (load - ceiling)[beyond], ceiling[beyond]
    scores[beyond] = 1.0 / (1.0 + np.divide(excess, ceiling, out=excess, where=ceiling > 0.0))
    return scores


def _scores(
    load: np.ndarray, mean: np.ndarray, bound: np.ndarray, var: np.ndarray, absolute: bool, min_load: float
) -> np.ndarray:
    """`goals.score.distribution_score`."""
    scores = np.ones(len(load))
    deviation = np.abs(mean - load)
    out = (deviation > bound * (1.0 + TOLERANCE)) & (mean > 0.0) & ~((load < min_load) & (mean < min_load))
    near = out & (deviation <= var)
    scores[near] = 1.0 - 0.9 * (deviation - bound)[near] / (var - bound)[near]
    far = np.flatnonzero(out & ~near)
    deviation, bound, var = deviation[far], bound[far], var[far]
    literal = absolute & (var > 1.0)
    unit = np.where(literal, 1.0, bound)
    some = unit > 0.0  # a mean so small that its share is 0 scores what the others tend to
    unit = unit[some]
    tail = np.full(len(far), 0.1)
    tail[some] = 0.1 * logarithms(var[some] / unit) / logarithms(deviation[some] / unit)
    scores[far] = tail
    return scores


def logarithms(x: np.ndarray) -> np.ndarray:
    """As `math.log` has them, float64 [n]; numpy's are rounded otherwise."""
    return np.fromiter(map(math.log, x.tolist()), np.float64, len(x))
