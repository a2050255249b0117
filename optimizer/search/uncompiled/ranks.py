"""Who would be the best partner of each of many brokers, without a compiler: some of them at a time, each with all others.

The form of `optimizer.search.partners.rank_all`; the order of operations for each pair is that of the kernels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optimizer.problem import DISTRIBUTION, KIND, RACK_OF, SAME_RACK, SPREAD, STATE, STEEP, STRENGTH, Problem
from optimizer.search.state import State
from optimizer.search.uncompiled.choices import scrambled
from optimizer.search.uncompiled.sheets import cost_of

PAIRS = 8_192  # looked at in one go: what is computed of them stays near the processor


def rank_all(
    problem: Problem, state: State, crowd: Any, watched: np.ndarray, left: np.ndarray, first: int, last: int, step: int, noise: int,
    ranked: np.ndarray, ranks: np.ndarray, worth: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.partners.rank_all`."""
    rows, some = np.arange(first, last, step), max(PAIRS // len(worth), 1)
    for i in range(0, len(rows), some):
        part = rows[i : i + some]
        found = _worth(problem, crowd, watched, left[part], int(noise))
        for row, values in zip(part.tolist(), found, strict=True):
            ranks[row] = best_of(values, ranked[row])


def rank_crowd(
    problem: Problem, state: State, crowd: Any, watched: np.ndarray, v: int, most: int, noise: int, partners: np.ndarray,
    worth: np.ndarray,
) -> int:  # fmt: skip
    """`optimizer.search.partners.rank_crowd`."""
    worth[:] = _worth(problem, crowd, watched, np.array([v]), int(noise))[0]
    return best_of(worth, partners[:most])


def best_of(worth: np.ndarray, partners: np.ndarray) -> int:
    """The brokers that are worth most, float64 [B], and more than nothing into `partners`, the first of equal ones before; how many."""
    found = np.flatnonzero(worth > 0.0)
    most = len(partners)
    if len(found) > most:
        values = worth[found]
        found = found[values >= np.partition(values, len(values) - most)[len(values) - most]]
    found = found[np.argsort(-worth[found], kind="stable")[:most]]
    partners[: len(found)] = found
    return len(found)


def _worth(problem: Problem, crowd: Any, watched: np.ndarray, brokers: np.ndarray, noise: int) -> np.ndarray:
    """float64 [n, B]: what each of `brokers` int64 [n] could gain with each other one; not above 0 where it may not, or gains nothing."""
    count = len(problem.broker)
    worth, y, z, rest = (np.zeros((len(brokers), count)) for _ in range(4))
    for g in watched.tolist():
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        lu, mu, hu, ou, su = crowd.load[g], crowd.mean[g], crowd.high[g], crowd.low[g], crowd.scale[g]
        mine = [(float(lu[v]), float(mu[v]), float(hu[v]), float(ou[v]), float(su[v])) for v in brokers.tolist()]
        lv, mv, hv, ov, sv = (np.array(column)[:, None] for column in zip(*mine, strict=True))
        now = np.array([cost_of(*one, w, e) for one in mine])[:, None]
        x = np.maximum(np.maximum(lu - hu, ou - lu), 0.0) * su
        x *= x
        away = (lu - mu) * su
        cost, beside = x * (1.0 + STEEP * x), away * away
        both = lv + lu
        if problem.goal[g, KIND] != DISTRIBUTION or (mu == mu[0]).all():
            mid = both * 0.5
        else:
            means = mv + mu
            mid = both * np.divide(mv, means, out=np.full(means.shape, 0.5), where=means > 0.0)
        np.subtract(both, mid, out=rest)
        _hinge(mid, hv, ov, sv, y, both)
        _hinge(rest, hu, ou, su, z, both)
        np.subtract(cost, y, out=y)
        y -= z
        y *= w
        y += now
        mid -= mv
        mid *= sv
        mid *= mid
        rest -= mu
        rest *= su
        rest *= rest
        np.subtract(beside, mid, out=mid)
        mid -= rest
        mid *= e
        y += mid
        worth += y
    unfit = (problem.broker[:, STATE] != 0) | ~(worth > 0.0)
    if problem.setting[SAME_RACK] == 1:
        unfit |= problem.broker[:, RACK_OF] != problem.broker[brokers, RACK_OF, None]
    unfit[np.arange(len(brokers)), brokers] = True
    if noise != 0:
        names = noise + brokers[:, None] * 1000003 + np.arange(count)
        worth *= 1.0 - 0.3 * ((scrambled(names) & 0xFFFF) / 65536.0)
    worth[unfit] = -1.0
    return worth


def _hinge(load: np.ndarray, high: np.ndarray, low: np.ndarray, scale: np.ndarray, out: np.ndarray, room: np.ndarray) -> None:
    """What `load` costs beyond the hinges, into `out`; `room` is scratch."""
    np.subtract(load, high, out=out)
    np.subtract(low, load, out=room)
    np.maximum(out, room, out=out)
    np.maximum(out, 0.0, out=out)
    out *= scale
    out *= out
    np.multiply(out, STEEP, out=room)
    room += 1.0
    out *= room
