"""The best partners of a broker: those with which it could trade so that the potential falls most.

Called by `balance`, `polish` and `repack`; `relocate` and `leadership` ask in which direction a broker is off (`leans`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import by_reference, inner, part
from kernels.lanes import either, lanes, larger
from kernels.order import scramble
from optimizer.placement.potential import cost_at
from optimizer.placement.state import State, is_active
from optimizer.problem import COLUMN, DISTRIBUTION, HIGH, KIND, LOW, MEAN, RACK_OF, SAME_RACK, SCALE, SET_OF, SPREAD, STRENGTH, Problem


@by_reference
class BrokerLoads(NamedTuple):
    """Loads and ranges of all brokers, side by side for fast comparison: float64 [G, B] for goals on loads, and `worth` [B]."""

    load: np.ndarray  # as of the last `observe`
    mean: np.ndarray
    high: np.ndarray
    low: np.ndarray
    scale: np.ndarray
    worth: np.ndarray  # scratch for `rank_partners`, which only one thread calls


def broker_loads(problem: Problem) -> BrokerLoads:
    """The ranges of all brokers, with all loads 0 until `observe`."""
    mean, high, low, scale = (np.ascontiguousarray(problem.table[:, :, which].T) for which in (MEAN, HIGH, LOW, SCALE))
    return BrokerLoads(np.zeros_like(mean), mean, high, low, scale, np.zeros(len(problem.broker)))


@inner
def observe(problem: Problem, state: State, watched: np.ndarray, loads: BrokerLoads) -> None:
    """Copy the present loads of the goals `watched` (int64) into `loads`."""
    for g in watched:
        c = problem.goal[g, COLUMN]
        for b in range(len(problem.broker)):
            loads.load[g, b] = state.load[b, c]


@inner
def rank_partners(
    problem: Problem, state: State, loads: BrokerLoads, watched: np.ndarray, v: int, most: int, noise: int, partners: np.ndarray
) -> int:
    """Write up to `most` brokers with which `v` could best meet half-way into `partners`, best first; returns how many.

    `noise` seeds a disturbance of up to 30%, so that equal brokers do not all choose the same partner; 0: none.
    """
    observe(problem, state, watched, loads)
    return rank_observed(problem, loads, watched, v, most, noise, partners, loads.worth)


@inner
def rank_observed(
    problem: Problem, loads: BrokerLoads, watched: np.ndarray, v: int, most: int, noise: int, partners: np.ndarray, worth: np.ndarray
) -> int:
    """As `rank_partners`, with `loads` that `observe` has brought up to date; `worth` float64 [B] is scratch."""
    for u in lanes(len(worth)):
        worth[u] = 0.0
    for g in watched:
        w, e = problem.force[g, STRENGTH], problem.force[g, SPREAD]
        shared = problem.goal[g, KIND] == DISTRIBUTION
        load, mean, high, low, scale = loads.load[g], loads.mean[g], loads.high[g], loads.low[g], loads.scale[g]
        lv, mv, hv, ov, sv = load[v], mean[v], high[v], low[v], scale[v]
        now = cost_at(lv, hv, ov, mv, sv, w, e)
        for u in lanes(len(worth)):
            lu, mu, hu, ou, su = load[u], mean[u], high[u], low[u], scale[u]
            worth[u] += half_way(shared, now, w, e, lv, mv, hv, ov, sv, lu, mu, hu, ou, su)
    return best_of(problem, v, most, noise, partners, worth)


@part
def half_way(
    shared: bool, now: float, w: float, e: float, lv: float, mv: float, hv: float, ov: float, sv: float, lu: float, mu: float, hu: float,
    ou: float, su: float,
) -> float:  # fmt: skip  # wide: plain numbers, so that a processor handles many brokers at a time
    """By how much the potential of brokers `v` and `u` falls in a goal if they meet half-way. Takes the load, the mean, the upper and
    lower end of the range and the scale of each; `now` is the present potential of `v`."""
    mine, both = hv + larger(ov, 0.0), hv + larger(ov, 0.0) + hu + larger(ou, 0.0)  # twice the middles of their ranges
    share = either(shared & (both > 0.0), mine / both, 0.5)
    mid = (lv + lu) * share
    return now + cost_at(lu, hu, ou, mu, su, w, e) - cost_at(mid, hv, ov, mv, sv, w, e) - cost_at(lv + lu - mid, hu, ou, mu, su, w, e)


@inner
def best_of(problem: Problem, v: int, most: int, noise: int, partners: np.ndarray, worth: np.ndarray) -> int:
    """Write the brokers of most `worth` that `v` may trade with into `partners`, lower row first among equals; returns how many."""
    found = 0
    for u in range(len(worth)):
        far = problem.setting[SAME_RACK] == 1 and problem.broker[u, RACK_OF] != problem.broker[v, RACK_OF]
        if u == v or far or problem.broker[u, SET_OF] != problem.broker[v, SET_OF] or not is_active(problem, u):
            continue
        if noise != 0:
            worth[u] *= 1.0 - 0.3 * ((scramble(noise + v * 1000003 + u) & 0xFFFF) / 65536.0)
        if found == most and worth[u] <= worth[partners[most - 1]]:
            continue
        at = found if found < most else most - 1
        found = at + 1
        while at > 0 and worth[partners[at - 1]] < worth[u]:
            partners[at] = partners[at - 1]
            at -= 1
        partners[at] = u
    return found


@inner
def leans(problem: Problem, state: State, watched: np.ndarray, b: int) -> tuple[bool, bool]:
    """Whether the load of broker `b` is above the upper end of its range, and whether it is below the lower end, in any goal `watched`."""
    over, under = False, False
    for g in watched:
        if problem.table[b, g, SCALE] > 0.0:
            load = state.load[b, problem.goal[g, COLUMN]]
            if load > problem.table[b, g, HIGH]:
                over = True
            if load < problem.table[b, g, LOW]:
                under = True
    return over, under
