"""Which hard goals keep a replica where it is, whichever broker it is offered to.

Called by `why_emptied` for replicas that wait on a broker, and by `explain`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState
from goals.model import RackAware
from optimizer.placement.feasible import hosts_legally
from optimizer.placement.state import State
from optimizer.problem import (
    ANYWHERE,
    CEILING,
    COLUMN,
    FOLLOWING,
    HARD,
    KIND,
    LEADING,
    LIMIT,
    RACK_LIMIT,
    RACK_OF,
    SET_OF,
    STATE,
    Compiled,
    Problem,
)


def blockers(compiled: Compiled, end: State, p: int, slot: int) -> tuple[str, ...] | None:
    """The hard goals that keep every active broker of its set which holds no replica of partition `p` from taking the one in `slot`.

    None where a broker could take it; empty where there is no such broker.
    """
    problem = compiled.problem
    found: dict[str, None] = {}
    for target in np.flatnonzero(problem.broker[:, STATE] == BrokerState.ACTIVE):
        if target in end.replicas[p] or not belongs(problem, p, int(target)):
            continue
        if hosts_legally(problem, end, p, slot, int(target)):
            return None
        found |= dict.fromkeys(_forbids(compiled, end, p, slot, int(target)))
    return tuple(found)


def belongs(problem: Problem, p: int, b: int) -> bool:
    """Whether broker `b` is of the set that partition `p` stays on."""
    own = problem.topic_set[problem.topic[p]]
    return bool(own == ANYWHERE or problem.broker[b, SET_OF] in (own, ANYWHERE))


def _forbids(compiled: Compiled, end: State, p: int, slot: int, target: int) -> list[str]:
    """The hard goals that broker `target` would break with the replica."""
    problem = compiled.problem
    role = LEADING if end.lead[p] == slot else FOLLOWING
    names = []
    for g, goal in enumerate(compiled.goals):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD]:
            load = end.load[target, problem.goal[g, COLUMN]]
            amount_more = problem.vector[p, role, problem.goal[g, COLUMN]]
            if amount_more > 0 and load + amount_more > problem.table[target, g, CEILING]:
                names.append(goal.name)
    racks = [g.name for g in compiled.goals if isinstance(g, RackAware) and g.hard]
    if racks:
        others = [b for s, b in enumerate(end.replicas[p]) if b >= 0 and s != slot]
        same = sum(problem.broker[b, RACK_OF] == problem.broker[target, RACK_OF] for b in others)
        if same >= problem.partition[p, RACK_LIMIT] or not names:
            names = [racks[0], *names]
    return names
