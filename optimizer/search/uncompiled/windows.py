"""Windows of many replicas at once without a compiler: what brokers may give and take before they are worse off in a goal on loads."""

from __future__ import annotations

import numpy as np

from optimizer.problem import BOUND, CEILING, COLUMN, KIND, LIMIT, MEAN, MIN_LOAD, STATE, Problem
from optimizer.search.state import State


def bands(problem: Problem, state: State, linear: np.ndarray, brokers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`optimizer.search.windows.band_of`, least and most float64 [n, W], of `brokers` int64 [n] in the goals `linear` int64 [W]."""
    load, table = state.load[brokers][:, problem.goal[linear, COLUMN]], problem.table[brokers][:, linear]
    mean, bound, ceiling = table[:, :, MEAN], table[:, :, BOUND], table[:, :, CEILING]
    least = problem.force[linear, MIN_LOAD]
    few = mean < least
    low, high = np.where(few, -np.inf, mean - bound), mean + bound
    high = np.where(few, np.maximum(high, least), high)
    limited = problem.goal[linear, KIND] == LIMIT
    free = (problem.broker[brokers, STATE] != 0)[:, None] | (~limited & (mean <= 0.0))
    low = np.where(limited | free, -np.inf, np.minimum(low, load))
    high = np.where(free, np.inf, np.maximum(np.where(limited, ceiling, high), load))
    return low, high


def windows(
    problem: Problem, state: State, linear: np.ndarray, v: int, others: np.ndarray, loads: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Least and most, float64 [n, W], that may go from broker `v` to each of `others` int64 [n] once `loads` float64 [n, W] came back
    from there."""
    columns = problem.goal[linear, COLUMN]
    brokers, at = np.unique(others, return_inverse=True)
    bottom, top = bands(problem, state, linear, np.append(brokers, v))
    back = state.load[v, columns] + loads
    theirs = state.load[brokers][:, columns]
    low = np.maximum(back - top[-1], (bottom[:-1] - theirs)[at] + loads)
    high = np.minimum(back - bottom[-1], (top[:-1] - theirs)[at] + loads)
    return low, high
