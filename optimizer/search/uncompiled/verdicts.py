"""An action judged without a compiler: what it would do to the brokers that it touches, without doing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from goals.score import TOLERANCE
from optimizer.problem import (
    HARD_RACK,
    HARD_WEIGHT,
    KIND,
    LIMIT,
    NO_RACK_GOAL,
    RACK_GOAL,
    SOFT_RACK,
    UNIT_WEIGHT,
    Problem,
)
from optimizer.search.state import COST, RACKS, State
from optimizer.search.uncompiled.brokers import combined
from optimizer.search.uncompiled.changes import crowd_of, loads_after
from optimizer.search.uncompiled.scenes import Scene
from optimizer.search.uncompiled.sheets import Sheet, sheet_of

if TYPE_CHECKING:
    from optimizer.search.evaluate import Verdict

Fresh = list[tuple[float, list[float]]]


def evaluate(
    problem: Problem, state: State, n: int, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray,
    scores: np.ndarray,
) -> Verdict:  # fmt: skip
    """`optimizer.search.evaluate.evaluate`."""
    from optimizer.search.evaluate import REPAIRS_DEAD, REPAIRS_DRAINING, REPAIRS_LEADERLESS, Verdict

    sheet = sheet_of(problem)
    rows, lists, chosen = partitions[:n].tolist(), replicas[:n].tolist(), leads[:n].tolist()
    touched: list[int] = []
    repairs = 0
    for i, p in enumerate(rows):
        old, new, was, lead = state.replicas[p].tolist(), lists[i], int(state.lead[p]), chosen[i]
        if was < 0 <= lead:
            repairs |= 1 << REPAIRS_LEADERLESS
        for s, b in enumerate(old):
            u = new[s]
            if b < 0 or (b == u and (was == s) == (lead == s)):
                continue
            if b not in touched:
                touched.append(b)
            if u not in touched:
                touched.append(u)
            if sheet.state[b] and (b != u or was == s):
                repairs |= {2: 1 << REPAIRS_DEAD, 1: 1 << REPAIRS_DRAINING}.get(sheet.state[b], 0)
    state.touched[: len(touched)] = touched
    if n == 1:
        fresh, rack_gain = _of_one(problem, state, sheet, rows[0], lists[0], chosen[0], touched, replicas[0])
        worse = rack_gain < 0
    else:
        fresh, rack_gain, worse = _of_many(problem, state, sheet, list(zip(rows, lists, chosen, strict=True)), touched)
    before = state.score[touched].tolist()
    gain = 0.0
    for row, (cost, after) in zip(before, fresh, strict=True):
        gain += row[COST] - cost
        after.append(cost)
    if touched:
        state.fresh[: len(touched)] = [after for _, after in fresh]
    result, allowed, mended, low = _compared(
        sheet, [(row, after) for b, row, (_, after) in zip(touched, before, fresh, strict=True) if sheet.state[b] == 0]
    )
    scores[: len(result)] = result
    repairs |= mended
    for g in sheet.racks_goal:
        if rack_gain > 0 and sheet.goal[g][2] == 1:
            repairs |= 1 << g
    rack = problem.setting[RACK_GOAL]
    if rack == HARD_RACK:
        if worse:
            allowed = False
        gain += HARD_WEIGHT * UNIT_WEIGHT * rack_gain
    elif rack == SOFT_RACK:
        gain += UNIT_WEIGHT * rack_gain
    better, score = combined(sheet, result)
    return Verdict(allowed, better, score, repairs, gain, low, len(touched))


def _of_one(
    problem: Problem, state: State, sheet: Sheet, p: int, new: list[int], lead: int, touched: list[int], row: np.ndarray
) -> tuple[Fresh, int]:  # fmt: skip
    """Cost and scores of the brokers `touched` by one change, and by how much racks are less over-full; nothing is changed meanwhile but
    units of topics."""
    old = state.replicas[p].tolist()
    after = loads_after(problem, state, p, old, int(state.lead[p]), new, lead)
    racks = dict.fromkeys(touched, 0.0)
    rack_gain = 0
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        for b, units in zip(touched, state.units[RACKS, touched].tolist(), strict=True):
            racks[b] = units
        if old != new:
            excess, crowded = crowd_of(sheet, problem, p, old)
            excess2, crowded2 = crowd_of(sheet, problem, p, new)
            rack_gain = excess - excess2
            for b in crowded:
                racks[b] = racks.get(b, 0.0) - 1.0
            for b in crowded2:
                racks[b] = racks.get(b, 0.0) + 1.0
    if not len(problem.topic_goal):
        return [sheet.judge(b, after.get(b) or state.load[b].tolist(), racks[b], []) for b in touched], rack_gain
    from optimizer.search.topic_counts import recount

    kept = state.units[:RACKS, touched].copy()
    for k in range(len(problem.topic_goal)):
        recount(problem, state, k, p, row, lead, False)
    units = state.units[:RACKS, touched].T.tolist()
    state.units[:RACKS, touched] = kept
    return [
        sheet.judge(b, after.get(b) or state.load[b].tolist(), racks[b], mine)
        for b, mine in zip(touched, units, strict=True)
    ], rack_gain


def _of_many(
    problem: Problem, state: State, sheet: Sheet, changes: list[tuple[int, list[int], int]], touched: list[int]
) -> tuple[Fresh, int, bool]:
    """As `_of_one`, one after the other, and whether some rack is fuller by one of the changes."""
    scene, weighs_racks = Scene(problem, state), problem.setting[RACK_GOAL] != NO_RACK_GOAL
    racks = dict(zip(touched, state.units[RACKS, touched].tolist(), strict=True))
    rack_gain, worse = 0, False
    for p, new, lead in changes:
        old = scene.stand(p)[0]
        scene.touched(p, new, lead)
        scene.carry(p, new, lead)
        if weighs_racks and old != new:
            excess, crowded = crowd_of(sheet, problem, p, old)
            excess2, crowded2 = crowd_of(sheet, problem, p, new)
            rack_gain += excess - excess2
            worse = worse or excess2 > excess
            for b in crowded:
                racks[b] = racks.get(b, 0.0) - 1.0
            for b in crowded2:
                racks[b] = racks.get(b, 0.0) + 1.0
    fresh = []
    for b in touched:
        loads, units = scene.standing(b)
        fresh.append(sheet.judge(b, loads, racks[b], units))
    return fresh, rack_gain, worse


def _compared(sheet: Sheet, rows: list[tuple[list[float], list[float]]]) -> tuple[list[float], bool, int, bool]:
    """Action scores by goal from those of eligible brokers before and after, whether hard goals allow it, bits of those it repairs, and
    whether a broker scored below 1 before."""
    result = [0.5] * len(sheet.goal)
    allowed, repairs, low = True, 0, False
    changed: set[int] = set()
    for row, after in rows:
        for g in range(len(result)):
            if row[g] != after[g]:
                changed.add(g)
            low = low or row[g] < 1.0
    for g in sorted(changed):
        result[g] = (min(after[g] for _, after in rows) - min(row[g] for row, _ in rows) + 1.0) / 2.0
        if not sheet.hard[g]:
            continue
        for row, after in rows:
            was, now = row[g], after[g]
            if sheet.goal[g][KIND] == LIMIT:  # the excess as a share of the limit, falling as a score does
                was, now = 1.0 - 1.0 / was, 1.0 - 1.0 / now
            if now < was - 1e-12:
                allowed = False
            elif now > was + TOLERANCE:
                repairs |= 1 << g
    return result, allowed, repairs, low
