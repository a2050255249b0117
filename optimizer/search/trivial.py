"""Changes too small for `trivial_change` are left out of a target."""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState
from goals.model import UsageDistribution
from optimizer.problem import COLUMN, MEAN, STATE, Compiled, Problem
from optimizer.search.commit import build_state
from optimizer.search.state import Rows, State


def without_trivial(
    compiled: Compiled, problem: Problem, replicas: Rows, lead: Rows, state: State
) -> tuple[Rows, Rows]:
    """Lists of the target `state` without the changes of brokers whose net change is below `trivial_change` in every goal that has one."""
    limits = [
        (g, goal.trivial_change)
        for g, goal in enumerate(compiled.goals)
        if isinstance(goal, UsageDistribution) and goal.trivial_change > 0
    ]
    if not limits:
        return state.replicas, state.lead
    target, target_lead = state.replicas.copy(), state.lead.copy()
    for _ in range(replicas.shape[0] + 1):
        changed = np.flatnonzero((target != replicas).any(axis=1) | (target_lead != lead))
        before = build_state(problem, replicas, lead).load
        after = build_state(problem, target, target_lead).load
        net = np.abs(after - before)
        trivial = problem.broker[:, STATE] == BrokerState.ACTIVE
        for g, share in limits:
            trivial &= net[:, problem.goal[g, COLUMN]] < share * problem.table[:, g, MEAN]
        dropped = [
            p
            for p in changed
            if _is_trivial(problem, trivial, replicas[p], lead[p], target[p], target_lead[p])
        ]
        if not dropped:
            break
        target[dropped], target_lead[dropped] = replicas[dropped], lead[dropped]
    return target, target_lead


def _is_trivial(
    problem: Problem, trivial: np.ndarray, before: Rows, lead: int, after: Rows, lead_after: int
) -> bool:
    """Whether a change touches a trivially changed broker and takes nothing off a dead or draining one."""
    touched = {int(b) for b in np.concatenate([before[before != after], after[before != after]])}
    if lead != lead_after:
        touched |= {int(before[lead]) if lead >= 0 else -1, int(after[lead_after])}
    touched.discard(-1)
    if lead < 0 or any(problem.broker[b, STATE] in (BrokerState.DEAD, BrokerState.DRAINING) for b in touched):
        return False
    return any(trivial[b] for b in touched)
