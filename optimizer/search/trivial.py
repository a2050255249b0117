"""Changes too small for `trivial_change` are left out of a target.

Called by `rounds`. What repairs something stays in: what leaves a dead or draining broker or one out of a hard goal, gives a partition
a leader, or takes replicas out of an over-full rack.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState
from goals.model import UsageDistribution
from optimizer.problem import (
    COLUMN,
    HARD_RACK,
    KIND,
    MEAN,
    RACK,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    STATE,
    Compiled,
    Problem,
)
from optimizer.search.commit import build_state
from optimizer.search.state import Rows, State


def leaves_trivial(compiled: Compiled) -> bool:
    """Whether some goal has changes left out that are too small."""
    return any(isinstance(g, UsageDistribution) and g.trivial_change > 0 for g in compiled.goals)


def without_trivial(
    compiled: Compiled, problem: Problem, replicas: Rows, lead: Rows, state: State
) -> tuple[Rows, Rows]:
    """Lists of the target `state` without the changes of brokers whose net change is below `trivial_change` in every goal that has one."""
    if not leaves_trivial(compiled):
        return state.replicas, state.lead
    limits = [
        (g, goal.trivial_change)
        for g, goal in enumerate(compiled.goals)
        if isinstance(goal, UsageDistribution) and goal.trivial_change > 0
    ]
    target, target_lead = state.replicas.copy(), state.lead.copy()
    start = build_state(problem, replicas, lead)
    urgent = _urgent(compiled, problem, start)
    for _ in range(replicas.shape[0] + 1):
        net = np.abs(build_state(problem, target, target_lead).load - start.load)
        trivial = problem.broker[:, STATE] == BrokerState.ACTIVE
        for g, share in limits:
            trivial &= net[:, problem.goal[g, COLUMN]] < share * problem.table[:, g, MEAN]
        changed = np.flatnonzero((target != replicas).any(axis=1) | (target_lead != lead))
        lists, leads = (replicas[changed], target[changed]), (lead[changed], target_lead[changed])
        repairs = (leads[0] < 0) | _touch(urgent, lists, leads)
        if problem.setting[RACK_GOAL] == HARD_RACK:
            repairs |= _excess(problem, changed, lists[1]) < _excess(problem, changed, lists[0])
        dropped = changed[_touch(trivial, lists, leads) & ~repairs]
        if not len(dropped):
            break
        target[dropped], target_lead[dropped] = replicas[dropped], lead[dropped]
    return target, target_lead


def _urgent(compiled: Compiled, problem: Problem, start: State) -> BoolArray:
    """bool [B]: brokers that are to be emptied, and those out of a hard goal; of racks each partition is asked."""
    states = problem.broker[:, STATE]
    hard = [g for g, goal in enumerate(compiled.goals) if goal.hard and problem.goal[g, KIND] != RACK]
    out = (states == BrokerState.ACTIVE) & (start.score[:, hard] < 1.0).any(axis=1)
    urgent: BoolArray = out | (states == BrokerState.DEAD) | (states == BrokerState.DRAINING)
    return urgent


def _touch(brokers: BoolArray, lists: tuple[Rows, Rows], leads: tuple[Rows, Rows]) -> BoolArray:
    """bool [n]: whether a change from lists and leaders to others takes something off one of `brokers` (bool [B]) or gives it something."""
    at = np.append(brokers, False)  # where a list is shorter
    (before, after), every = lists, np.arange(len(lists[0]))
    placed = ((before != after) & (at[before] | at[after])).any(axis=1)
    led = [at[np.where(lead >= 0, on[every, np.maximum(lead, 0)], -1)] for on, lead in zip(lists, leads, strict=True)]
    touched: BoolArray = placed | ((leads[0] != leads[1]) & (led[0] | led[1]))
    return touched


def _excess(problem: Problem, partitions: Rows, lists: Rows) -> Rows:
    """int64 [n]: replicas of each of `partitions` that are too many in their racks, on `lists` [n, R]."""
    racks = np.where(lists >= 0, problem.broker[lists, RACK_OF], -1)
    together = (racks[:, :, None] == racks[:, None, :]).sum(axis=2)  # with each slot, itself included
    later = np.tril(racks[:, :, None] == racks[:, None, :], -1).any(axis=2)  # a rack counts once, where it first stands
    over = np.maximum(together - problem.partition[partitions, RACK_LIMIT][:, None], 0)
    excess: Rows = np.where(later | (racks < 0), 0, over).sum(axis=1)
    return excess
