"""Why a broker would stay beyond a limit: what all brokers together lack, a replica larger than any limit, load that may not move.

Called by `why` for goals of kind `capacity` and `count_limit`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import Limit
from optimizer.broker_sets import strays
from optimizer.placement.state import State
from optimizer.problem import CEILING, COLUMN, SET_OF, STATE, Compiled
from optimizer.why_held import Held
from optimizer.why_words import amount, amounts


def limit_proof(
    snapshot: Snapshot, compiled: Compiled, end: State, here: Held, row: int, g: int, goal: Limit,
) -> str | None:  # fmt: skip
    """Proof that every plan leaves broker `row`, which holds `here`, or another beyond the limit of goal `g`; None where none is known."""
    problem = compiled.problem
    column = problem.goal[g, COLUMN]
    every = problem.broker[:, STATE] == BrokerState.ACTIVE
    together = every & (problem.broker[:, SET_OF] == problem.broker[row, SET_OF])
    eligible = every if len(strays(problem, end.replicas)) else together  # what stands on brokers of another set may leave them
    whose = "all eligible brokers" if eligible.sum() == every.sum() else "the eligible brokers of its set"
    room, total = float(problem.table[eligible, g, CEILING].sum()), float(end.load[eligible, column].sum())
    ceiling = float(problem.table[row, g, CEILING])
    if total > room * (1 + 1e-12):
        load, most = amounts(total, room, goal.resource)
        return (
            f"{whose} together may hold {most}, the load is {load}: "
            f"{amount(total - room, goal.resource)} more is needed; add brokers or capacity, or raise the limit"
        )
    held = here.amounts(g)
    if len(held) and np.isfinite(room) and held.max() > problem.table[eligible, g, CEILING].max():
        name = snapshot.partition_name(int(here.partitions[int(np.argmax(held))]))
        return f"{name} alone is {amount(float(held.max()), goal.resource)}, above every broker's limit; split the topic"
    stuck = float(held[here.fixed].sum())
    if stuck > ceiling:
        held_there, limit = amounts(stuck, ceiling, goal.resource)
        return f"{here.fixed_topics} hold {held_there} on it, above its limit of {limit}; {here.remedy}"
    return None


def beyond_limit(compiled: Compiled, end: State, row: int, g: int) -> str:
    """By how much broker `row` is beyond the limit of goal `g`, and how much room the others have."""
    problem, resource = compiled.problem, str(getattr(compiled.goals[g], "resource", ""))
    column, ceiling = problem.goal[g, COLUMN], float(problem.table[row, g, CEILING])
    others = (problem.broker[:, STATE] == BrokerState.ACTIVE) & (np.arange(len(problem.broker)) != row)
    spare = float(np.maximum(problem.table[others, g, CEILING] - end.load[others, column], 0.0).sum())
    room = f"room for {amount(spare, resource)}" if np.isfinite(spare) else "room (some have no limit)"
    return (
        f"{amount(float(end.load[row, column]) - ceiling, resource)} above its limit of {amount(ceiling, resource)}; the other brokers "
        f"have {room}, but no acceptable way to use it was found"
    )
