"""One partition without a compiler: where its replicas may stand, and what changes when they do."""

from __future__ import annotations

import numpy as np

from optimizer.problem import (
    CEILING,
    COLUMN,
    FOLLOWING,
    HARD,
    HARD_RACK,
    KIND,
    LEADING,
    LIMIT,
    NO_RACK_GOAL,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    STATE,
    Problem,
)
from optimizer.search.state import RACKS, State


def rack_units(problem: Problem, state: State, p: int, sign: float) -> int:
    """`optimizer.search.broker_scores.rack_units`."""
    brokers = state.replicas[p].tolist()
    racks = [problem.broker[b, RACK_OF] if b >= 0 else None for b in brokers]
    limit = problem.partition[p, RACK_LIMIT]
    excess = 0
    for s, b in enumerate(brokers):
        if b < 0:
            continue
        same = racks.count(racks[s])
        if same > limit:
            state.units[RACKS, b] += sign
            if racks.index(racks[s]) == s:
                excess += same - int(limit)
    return excess


def fits_rack(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`optimizer.search.hosting.fits_rack`."""
    if problem.setting[RACK_GOAL] != 2:
        return True
    brokers = state.replicas[p].tolist()
    new, old = problem.broker[target, RACK_OF], problem.broker[brokers[s], RACK_OF]
    if old == new:
        return True
    racks = [problem.broker[b, RACK_OF] for b in brokers if b >= 0]
    limit = problem.partition[p, RACK_LIMIT]
    return bool(1 + racks.count(new) <= limit or racks.count(old) > limit)


def may_host(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`optimizer.search.hosting.may_host`."""
    if problem.broker[target, STATE] != 0 or state.hosts[target] >= state.hosted.shape[1]:
        return False
    if target in state.replicas[p].tolist() or not fits_rack(problem, state, p, s, target):
        return False
    role = LEADING if state.lead[p] == s else FOLLOWING
    for g, goal in enumerate(problem.goal.tolist()):
        if goal[KIND] == LIMIT and goal[HARD] == 1:
            c = goal[COLUMN]
            amount = problem.vector[p, role, c]
            if amount > 0.0 and state.load[target, c] + amount > problem.table[target, g, CEILING]:
                return False
    return True


def rack_mates(problem: Problem, state: State, p: int, b: int) -> int:
    """`optimizer.search.racks.rack_mates`."""
    rack = problem.broker[b, RACK_OF]
    return sum(1 for o in state.replicas[p].tolist() if o >= 0 and problem.broker[o, RACK_OF] == rack)


def carry(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> int:
    """`optimizer.search.commit.carry`."""
    racks = problem.setting[RACK_GOAL] != NO_RACK_GOAL
    old_lead, lead = int(state.lead[p]), int(lead)
    excess = -rack_units(problem, state, p, -1.0) if racks else 0
    slots = state.replicas.shape[1]
    for s, (old, new) in enumerate(zip(state.replicas[p].tolist(), replicas[:slots].tolist(), strict=True)):
        if old < 0 or (old == new and (s == old_lead) == (s == lead)):
            continue
        state.load[old] -= problem.vector[p, LEADING if s == old_lead else FOLLOWING]
        state.load[new] += problem.vector[p, LEADING if s == lead else FOLLOWING]
    state.replicas[p] = replicas[:slots]
    state.lead[p] = lead
    return excess + rack_units(problem, state, p, 1.0) if racks else excess


def short_list(
    problem: Problem, state: State, p: int, s: int, felt: np.ndarray, slope: np.ndarray, targets: np.ndarray, tries: int,
    chosen: np.ndarray, keys: np.ndarray,
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
    amount = problem.vector[p, LEADING if state.lead[p] == s else FOLLOWING]
    key = np.zeros(len(targets))
    for k, g in enumerate(felt.tolist()):
        key += slope[targets, k] * amount[problem.goal[g, COLUMN]]
    best = targets[np.argsort(key, kind="stable")[: len(chosen)]]
    chosen[: len(best)] = best
    return len(best)
