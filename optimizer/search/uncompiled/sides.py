"""Two brokers without a compiler: who would be a partner, and whom leadership would help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optimizer.problem import (
    COLUMN,
    COUNTS_LEADERS,
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
    TOPIC_ROW,
    Problem,
)
from optimizer.search.state import LED, State
from optimizer.search.uncompiled.choices import scrambled
from optimizer.search.uncompiled.panels import costs_of
from optimizer.search.uncompiled.ranks import best_of
from optimizer.search.uncompiled.sheets import cost_of, sheet_of

if TYPE_CHECKING:
    from optimizer.search.shelf import Shelf


def rank_partners(
    problem: Problem, state: State, watched: np.ndarray, v: int, most: int, noise: int, partners: np.ndarray,
    worth: np.ndarray,
) -> int:  # fmt: skip
    """`optimizer.search.partners.rank_partners`."""
    worth[:] = 0.0
    for g in watched.tolist():
        c = int(problem.goal[g, COLUMN])
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        mv, _, _, _, hv, ov, sv = problem.table[v, g].tolist()
        lv = float(state.load[v, c])
        now = cost_of(lv, mv, hv, ov, sv, w, e)
        lu, mu, hu, ou, su = state.load[:, c], *(problem.table[:, g, i] for i in (MEAN, HIGH, LOW, SCALE))
        both = mv + mu
        share = np.full(len(worth), 0.5)
        if problem.goal[g, KIND] == DISTRIBUTION:
            np.divide(mv, both, out=share, where=both > 0.0)
        mid = (lv + lu) * share
        rest = lv + lu - mid
        x = np.maximum(np.maximum(lu - hu, ou - lu), 0.0) * su
        y = np.maximum(np.maximum(mid - hv, ov - mid), 0.0) * sv
        z = np.maximum(np.maximum(rest - hu, ou - rest), 0.0) * su
        x *= x
        y *= y
        z *= z
        cost = x * (1.0 + STEEP * x) - y * (1.0 + STEEP * y) - z * (1.0 + STEEP * z)
        x, y, z = (lu - mu) * su, (mid - mv) * sv, (rest - mu) * su
        worth += now + w * cost + e * (x * x - y * y - z * z)
    unfit = (problem.broker[:, STATE] != 0) | ~(worth > 0.0)
    if problem.setting[SAME_RACK] == 1:
        unfit |= problem.broker[:, RACK_OF] != problem.broker[v, RACK_OF]
    unfit[v] = True
    if noise != 0:
        worth *= 1.0 - 0.3 * ((scrambled(noise + v * 1000003 + np.arange(len(worth))) & 0xFFFF) / 65536.0)
    worth[unfit] = -1.0
    return best_of(worth, partners[:most])


def observe(problem: Problem, state: State, watched: np.ndarray, crowd: Any) -> None:
    """`optimizer.search.partners.observe`."""
    crowd.load[watched] = state.load[:, problem.goal[watched, COLUMN]].T


def rises(problem: Problem, crowd: Any, linear: np.ndarray, p: int, role: int, rise: np.ndarray) -> None:
    """`optimizer.search.onward.rises`."""
    rise[:] = 0.0
    for g in linear.tolist():
        table, force, load = problem.table[:, g], problem.force[g].tolist(), crowd.load[g]
        rise += costs_of(load + problem.vector[p, role, problem.goal[g, COLUMN]], table, force) - costs_of(load, table, force)


def survey(problem: Problem, state: State, led: np.ndarray, slopes: np.ndarray, steep: np.ndarray) -> None:
    """`optimizer.search.leadership.survey`."""
    for g in led.tolist():
        loads, table = state.load[:, problem.goal[g, COLUMN]], problem.table[:, g]
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        beyond = np.maximum(loads - table[:, HIGH], 0.0) - np.maximum(table[:, LOW] - loads, 0.0)
        beyond *= table[:, SCALE]
        slope = (
            2.0
            * table[:, SCALE]
            * (
                w * beyond * (1.0 + 2.0 * STEEP * beyond * beyond)
                + e * (loads - table[:, MEAN]) * table[:, SCALE]
            )
        )
        slopes[:, g] = slope
        least, most = int(slope.argmin()), int(slope.argmax())
        rest = np.ones(len(slope), np.bool_)
        rest[least] = False
        steep[g, :3] = slope[least], least, slope[rest].min(initial=np.inf)
        rest[least], rest[most] = True, False
        steep[g, 3:] = slope[most], most, slope[rest].max(initial=-np.inf)


def promises(
    problem: Problem, state: State, shelf: Shelf, led: np.ndarray, v: int, over: bool, under: bool, steep: np.ndarray,
    mine: np.ndarray, bounds: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.leadership.promises`."""
    n = int(state.hosts[v])
    leads = (state.mark[v, :n] & LED) != 0
    chosen = (shelf.vector[v, -1, :n] != 0.0) & (leads if over and not under else ~leads if under and not over else over)
    sign = np.where(leads, 1.0, -1.0)
    topics = (
        problem.topic_goal[problem.topic_goal[:, COUNTS_LEADERS] == 1, TOPIC_ROW]
        if len(problem.topic_goal)
        else []
    )
    total = np.where(chosen, 0.0, -np.inf)
    mine[:n] = 2.0 * problem.force[topics, STRENGTH].sum() if len(topics) else 0.0
    for g in led.tolist():
        c = int(problem.goal[g, COLUMN])
        w, e = problem.force[g, [STRENGTH, SPREAD]].tolist()
        least, at_least, next_least, greatest, at_greatest, next_greatest = steep[g].tolist()
        rising, falling = -(next_least if at_least == v else least), next_greatest if at_greatest == v else greatest
        mean, _, _, _, high, low, scale = problem.table[v, g].tolist()
        load = float(state.load[v, c])
        x = shelf.lead[v, shelf.seat[g], :n] * sign  # off `v`, onto another
        now = cost_of(load, mean, high, low, scale, w, e)
        after = load - x
        out = (np.maximum(after - high, 0.0) + np.maximum(low - after, 0.0)) * scale
        out *= out
        off = (after - mean) * scale
        gain = now - w * out * (1.0 + STEEP * out) - e * off * off
        theirs = np.where(x > 0.0, rising, -falling) * x
        mine[:n] += gain + 1e-6 * np.abs(gain) + 1e-12 * now
        total += theirs + 1e-6 * np.abs(theirs)
    bounds[:n] = total + mine[:n]


def transfer_gain(
    problem: Problem, state: State, watched: np.ndarray, p: int, giver: int, taker: int, costs: np.ndarray
) -> float:
    """`optimizer.search.leadership.transfer_gain`."""
    from optimizer.search.candidates import topic_burden

    gain, sheet = 0.0, sheet_of(problem)
    lead, follow = problem.vector[p].astype(np.float32).tolist()
    loads, others = state.load[giver].tolist(), state.load[taker].tolist()
    mine, theirs = costs[giver].tolist(), costs[taker].tolist()
    table, table2 = sheet.table(int(giver)), sheet.table(int(taker))
    for g in watched.tolist():
        c = sheet.goal[g][COLUMN]
        x = lead[c] - follow[c]
        if x != 0.0:
            w, e = sheet.force[g][STRENGTH], sheet.force[g][SPREAD]
            ma, _, _, _, ha, oa, sa = table[g]
            mb, _, _, _, hb, ob, sb = table2[g]
            gain += (
                mine[g] + theirs[g]
                - cost_of(loads[c] - x, ma, ha, oa, sa, w, e) - cost_of(others[c] + x, mb, hb, ob, sb, w, e)
            )  # fmt: skip
    if gain > 0.0 and len(problem.topic_goal) > 0:
        gain -= topic_burden(problem, state, p, False, True, giver, taker)
    return gain
