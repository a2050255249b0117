"""One partition without a compiler: where its replicas may stand, and what changes when they do."""

from __future__ import annotations

import numpy as np

from optimizer.problem import (
    CEILING,
    COLUMN,
    FOLLOWING,
    HARD_RACK,
    LEADING,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    Problem,
)
from optimizer.search.state import RACKS, State
from optimizer.search.uncompiled.changes import crowd_of
from optimizer.search.uncompiled.sheets import Sheet, sheet_of


def rack_units(problem: Problem, state: State, p: int, sign: float) -> int:
    """`optimizer.search.broker_scores.rack_units`."""
    excess, crowded = crowd_of(sheet_of(problem), problem, p, state.replicas[p].tolist())
    for b in crowded:
        state.units[RACKS, b] += sign
    return excess


def fits_rack(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`optimizer.search.hosting.fits_rack`."""
    return fits(problem, sheet_of(problem), p, state.replicas[p].tolist(), s, target)


def fits(problem: Problem, sheet: Sheet, p: int, brokers: list[int], s: int, target: int) -> bool:
    """As `fits_rack`, of a partition on `brokers`."""
    if problem.setting[RACK_GOAL] != HARD_RACK:
        return True
    new, old = sheet.rack[target], sheet.rack[brokers[s]]
    if old == new:
        return True
    left, came = 0, 1
    for b in brokers:
        if b >= 0:
            rack = sheet.rack[b]
            left += rack == old
            came += rack == new
    limit = int(problem.partition[p, RACK_LIMIT])
    return came <= limit or left > limit


def may_host(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`optimizer.search.hosting.may_host`."""
    sheet = sheet_of(problem)
    if sheet.state[target] != 0 or state.hosts[target] >= state.hosted.shape[1]:
        return False
    brokers = state.replicas[p].tolist()
    if target in brokers or not fits(problem, sheet, p, brokers, s, target):
        return False
    if sheet.hard_limits:
        amounts = problem.vector[p, LEADING if state.lead[p] == s else FOLLOWING].tolist()
        loads, table = state.load[target].tolist(), sheet.table(int(target))
        for g, c in sheet.hard_limits:
            if amounts[c] > 0.0 and loads[c] + amounts[c] > table[g][CEILING]:
                return False
    return True


def rack_mates(problem: Problem, state: State, p: int, b: int) -> int:
    """`optimizer.search.racks.rack_mates`."""
    rack = sheet_of(problem).rack
    return sum(1 for o in state.replicas[p].tolist() if o >= 0 and rack[o] == rack[b])


def short_list(
    problem: Problem, state: State, p: int, s: int, felt: np.ndarray, slope: np.ndarray, targets: np.ndarray, tries: int,
    chosen: np.ndarray, keys: np.ndarray, amount: np.ndarray,
) -> int:  # fmt: skip
    """`optimizer.search.drain.short_list`."""
    targets, lists = targets[:tries], state.replicas[p]
    racks, others = problem.broker[targets, RACK_OF], lists[lists >= 0]
    legal = (targets[:, None] != lists).all(axis=1)
    if problem.setting[RACK_GOAL] == HARD_RACK:
        taken, old, limit = (
            problem.broker[others, RACK_OF],
            problem.broker[lists[s], RACK_OF],
            problem.partition[p, RACK_LIMIT],
        )
        if (taken == old).sum() <= limit:
            legal &= (racks == old) | (1 + (taken == racks[:, None]).sum(axis=1) <= limit)
    targets = targets[legal]
    load = problem.vector[p, LEADING if state.lead[p] == s else FOLLOWING]
    key = np.zeros(len(targets))
    for k, g in enumerate(felt.tolist()):
        key += slope[targets, k] * load[problem.goal[g, COLUMN]]
    best = targets[np.argsort(key, kind="stable")[: len(chosen)]]
    chosen[: len(best)] = best
    return len(best)
