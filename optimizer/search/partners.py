"""With which brokers a broker could best trade.

Called by `balance` and `polish`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, inner_as
from optimizer.problem import (
    COLUMN,
    DISTRIBUTION,
    HIGH,
    KIND,
    LOW,
    MEAN,
    RACK_OF,
    SAME_RACK,
    SCALE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    Problem,
)
from optimizer.search import uncompiled
from optimizer.search.broker_scores import linear_cost
from optimizer.search.chance import scramble
from optimizer.search.state import State


@inner_as(uncompiled.rank_partners)
def rank_partners(
    problem: Problem, state: State, watched: np.ndarray, v: int, most: int, noise: int, partners: np.ndarray,
    worth: np.ndarray,
) -> int:  # fmt: skip
    """The brokers with which `v` could best meet half-way, best first, into `partners`; returns how many.

    `noise` seeds a disturbance of up to 30 % that keeps equal brokers from all choosing the same partner; 0 for none.
    """
    brokers = len(problem.broker)
    for u in range(brokers):
        worth[u] = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        w, e = problem.force[g, STRENGTH], problem.force[g, SPREAD]
        shared = problem.goal[g, KIND] == DISTRIBUTION
        lv, mv, hv, ov, sv = (
            state.load[v, c], problem.table[v, g, MEAN], problem.table[v, g, HIGH], problem.table[v, g, LOW],
            problem.table[v, g, SCALE],
        )  # fmt: skip
        now = linear_cost(problem, v, g, lv)
        for u in range(brokers):
            lu, mu, hu, ou, su = (
                state.load[u, c], problem.table[u, g, MEAN], problem.table[u, g, HIGH], problem.table[u, g, LOW],
                problem.table[u, g, SCALE],
            )  # fmt: skip
            both = mv + mu
            share = mv / both if shared and both > 0.0 else 0.5
            mid = (lv + lu) * share
            rest = lv + lu - mid
            x, y, z = max(lu - hu, ou - lu, 0.0) * su, max(mid - hv, ov - mid, 0.0) * sv, max(rest - hu, ou - rest, 0.0) * su
            x *= x
            y *= y
            z *= z
            cost = x * (1.0 + STEEP * x) - y * (1.0 + STEEP * y) - z * (1.0 + STEEP * z)
            x, y, z = (lu - mu) * su, (mid - mv) * sv, (rest - mu) * su
            worth[u] += now + w * cost + e * (x * x - y * y - z * z)
    for u in range(brokers):
        far = problem.setting[SAME_RACK] == 1 and problem.broker[u, RACK_OF] != problem.broker[v, RACK_OF]
        if u == v or far or problem.broker[u, STATE] != 0 or worth[u] <= 0.0:
            worth[u] = -1.0
        elif noise != 0:
            worth[u] *= 1.0 - 0.3 * ((scramble(noise + v * 1000003 + u) & 0xFFFF) / 65536.0)
    found = 0
    while found < most:
        best, best_worth = -1, 0.0
        for u in range(brokers):
            if worth[u] > best_worth:
                best, best_worth = u, worth[u]
        if best < 0:
            break
        partners[found] = best
        worth[best] = -1.0
        found += 1
    return found


@inner
def leans(problem: Problem, state: State, watched: np.ndarray, b: int) -> tuple[bool, bool]:
    """Whether the broker is over, and whether it is under, its hinge in some of the goals."""
    over, under = False, False
    for g in watched:
        if problem.table[b, g, SCALE] > 0.0:
            load = state.load[b, problem.goal[g, COLUMN]]
            if load > problem.table[b, g, HIGH]:
                over = True
            if load < problem.table[b, g, LOW]:
                under = True
    return over, under
