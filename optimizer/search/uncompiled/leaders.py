"""Transfers of leadership without a compiler: `optimizer.search.leadership.find_leaders`, with what each promises found at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import COLUMN, FOLLOWING, LEADING, SPREAD, STATE, STRENGTH, Problem
from optimizer.search.state import LED, State
from optimizer.search.uncompiled.choices import cut_of
from optimizer.search.uncompiled.lists import fetch
from optimizer.search.uncompiled.panels import costs_of
from optimizer.search.uncompiled.sheets import cost_of, sheet_of
from optimizer.search.uncompiled.sides import promises

if TYPE_CHECKING:
    from optimizer.search.batch import Batch, Room
    from optimizer.search.shelf import Shelf


def find_leaders(
    problem: Problem, state: State, shelf: Shelf, led: np.ndarray, batch: Batch, star: int, room: Room
) -> None:  # fmt: skip
    """`optimizer.search.leadership.find_leaders`."""
    from optimizer.search.batch import LEADERSHIPS
    from optimizer.search.candidates import LEAST_GAIN, topic_burden
    from optimizer.search.leadership import LOOKED_AT, insert
    from optimizer.search.partners import leans

    v, slopes, mine, topics = int(batch.centre[star]), room.slopes, room.factors, len(problem.topic_goal) > 0
    gains, entries = batch.gain[star], batch.leader[star]
    over, under = leans(problem, state, led, v)
    fetch(problem, state, shelf, v)
    promises(problem, state, shelf, led, v, over, under, room.steep, mine, room.gains)
    n = int(state.hosts[v])
    bounds = room.gains[:n]
    few = np.count_nonzero(bounds > LEAST_GAIN) <= LOOKED_AT
    floor = LEAST_GAIN if few else cut_of(bounds, n, LEAST_GAIN, LOOKED_AT, room.spare)
    found, ceiling, last = 0, np.inf, LEADERSHIPS - 1
    while True:  # those that promise most, then others that may still be among the best
        chosen = (bounds >= floor) & (bounds < ceiling)
        if found == LEADERSHIPS:
            chosen &= bounds >= gains[last]
        least = max(float(gains[last]), LEAST_GAIN) if found == LEADERSHIPS else LEAST_GAIN
        for bound, most, gain, p, giver, taker, entry in _pairs(
            problem, state, shelf, led, v, np.flatnonzero(chosen), bounds, slopes, mine, least
        ):
            if found == LEADERSHIPS and (bound < gains[last] or most < gains[last]):
                continue
            if topics:
                gain -= topic_burden(problem, state, p, False, True, giver, taker)
            if gain > LEAST_GAIN:
                found = insert(gains, entries, found, gain, entry)
        if floor <= LEAST_GAIN or (found == LEADERSHIPS and gains[last] > floor):
            break
        floor, ceiling = LEAST_GAIN, floor
    batch.moves[star] = found


def _pairs(
    problem: Problem, state: State, shelf: Shelf, led: np.ndarray, v: int, rows: np.ndarray, bounds: np.ndarray, slopes: np.ndarray,
    mine: np.ndarray, least: float,
) -> list[tuple[float, float, float, int, int, int, int]]:  # fmt: skip
    """Transfers from or to broker `v`, of the replicas at `rows` of its list, that promise `least` or more and gain anything, in the list's
    order: bound, promise, gain (without topics), partition, giver, taker, entry that is to lead."""
    from optimizer.search.candidates import LEAST_GAIN

    slots = state.replicas.shape[1]
    entry = state.hosted[v, rows].astype(np.int64)
    p, s = entry // slots, entry % slots
    lists, lead = state.replicas[p], state.lead[p]
    leads = (state.mark[v, rows] & LED) != 0
    others = np.where(leads[:, None], lists, -1)
    others[np.arange(len(rows)), s] = -1
    others[(others >= 0) & (problem.broker[others, STATE] != 0)] = -1
    back = np.flatnonzero(~leads & (lead >= 0))
    leaders = lists[back, lead[back]]
    others[back, 0] = np.where(problem.broker[leaders, STATE] == 3, -1, leaders)  # the only one, whatever its slot
    others[lead < 0] = -1
    i, o = np.nonzero(others >= 0)
    u, sign = others[i, o], np.where(leads[i], -1.0, 1.0)
    most = mine[rows[i]].copy()
    for g in led.tolist():
        theirs = sign * slopes[u, g] * shelf.lead[v, shelf.seat[g], rows[i]]
        most += theirs + 1e-6 * np.abs(theirs)
    good = np.flatnonzero((most >= least) & (most > LEAST_GAIN))
    i, o, u, most = i[good], o[good], u[good], most[good]
    gives = leads[i]
    giver, taker = np.where(gives, v, u), np.where(gives, u, v)
    gain = transfer_gains(problem, state, led, p[i], giver, taker)
    return [
        row
        for row in zip(
            bounds[rows[i]].tolist(), most.tolist(), gain.tolist(), p[i].tolist(), giver.tolist(), taker.tolist(),
            np.where(gives, p[i] * slots + o, entry[i]).tolist(), strict=True,
        )
        if row[2] > LEAST_GAIN
    ]  # fmt: skip


def transfer_gains(
    problem: Problem, state: State, led: np.ndarray, p: np.ndarray, giver: np.ndarray, taker: np.ndarray
) -> np.ndarray:
    """`optimizer.search.leadership.transfer_gain` of many, float64 [n], without topics."""
    gain, both = np.zeros(len(p)), problem.vector[p].astype(np.float32)
    for g in led.tolist():
        c, force = int(problem.goal[g, COLUMN]), problem.force[g].tolist()
        x = both[:, LEADING, c].astype(np.float64) - both[:, FOLLOWING, c]
        a, b, mine, theirs = state.load[giver, c], state.load[taker, c], problem.table[giver, g], problem.table[taker, g]
        term = costs_of(a, mine, force) + costs_of(b, theirs, force)
        term -= costs_of(a - x, mine, force)
        term -= costs_of(b + x, theirs, force)
        gain += np.where(x != 0.0, term, 0.0)
    return gain


def appraise(problem: Problem, state: State, led: np.ndarray, b: int, costs: np.ndarray) -> None:
    """`optimizer.search.leadership.appraise`."""
    if costs[b, -1] != 0.0:
        return
    sheet, loads = sheet_of(problem), state.load[b].tolist()
    table = sheet.table(int(b))
    for g in led.tolist():
        mean, _, _, _, high, low, scale = table[g]
        force = sheet.force[g]
        costs[b, g] = cost_of(loads[sheet.goal[g][COLUMN]], mean, high, low, scale, force[STRENGTH], force[SPREAD])
    costs[b, -1] = 1.0
