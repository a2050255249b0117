"""Scores and costs of many brokers at once, or of one with many loads: `optimizer.search.broker_scores.assess`, row by row.

Called where nothing depends on what came just before (`lists.fill`, `trains`). Not for topic goals.
"""

from __future__ import annotations

import numpy as np

from goals.score import TOLERANCE, distribution_score
from optimizer.problem import (
    ABSOLUTE,
    COLUMN,
    DISTRIBUTION,
    KIND,
    LIMIT,
    MIN_LOAD,
    RACK,
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
        mean, bound, var, ceiling, high, low, scale = problem.table[:, g][brokers].T
        force = problem.force[g].tolist()
        over, under = load - high, low - load
        beyond = np.where(over > 0.0, over, np.where(under > 0.0, under, 0.0)) * scale
        beyond *= beyond
        off = (load - mean) * scale
        cost = force[STRENGTH] * beyond * (1.0 + STEEP * beyond) + force[SPREAD] * off * off
        if kind == LIMIT:
            out[:, g] = _limit_scores(load, ceiling)
        elif kind == DISTRIBUTION:
            out[:, g] = np.where(eligible, _scores(load, mean, bound, var, goal[ABSOLUTE] == 1, force[MIN_LOAD]), 1.0)
            cost[~eligible] = 0.0
        out[:, COST] += cost
    return out


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
    """`goals.score.distribution_score`; one by one where it asks for logarithms, which arrays round otherwise."""
    scores = np.ones(len(load))
    deviation = np.abs(mean - load)
    out = (deviation > bound * (1.0 + TOLERANCE)) & (mean > 0.0) & ~((load < min_load) & (mean < min_load))
    near = out & (deviation <= var)
    scores[near] = 1.0 - 0.9 * (deviation - bound)[near] / (var - bound)[near]
    far = np.flatnonzero(out & ~near)
    columns = (load[far].tolist(), mean[far].tolist(), bound[far].tolist(), var[far].tolist())
    scores[far] = [distribution_score(*row, absolute, min_load) for row in zip(*columns, strict=True)]
    return scores
