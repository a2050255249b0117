"""Why a broker would stay beyond a limit: what all brokers together lack, a replica larger than any limit, load that may not move.

Called by `why` for goals of kind `capacity` and `count_limit`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import Capacity, CountLimit
from optimizer.options import PlanOptions
from optimizer.problem import CEILING, COLUMN, STATE, Compiled
from optimizer.search.state import State
from optimizer.why_held import Held
from optimizer.why_words import amount


def limit_proof(
    snapshot: Snapshot, compiled: Compiled, end: State, here: Held, row: int, g: int, goal: Capacity | CountLimit,
    options: PlanOptions,
) -> str | None:  # fmt: skip
    """What keeps broker `row`, which holds what is `here`, beyond the limit of goal `g`; None where a larger budget may help."""
    problem = compiled.problem
    column = problem.goal[g, COLUMN]
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    room, total = float(problem.table[eligible, g, CEILING].sum()), float(end.load[eligible, column].sum())
    ceiling = float(problem.table[row, g, CEILING])
    if total > room * (1 + 1e-12):
        return (
            f"all eligible brokers together may hold {amount(room, goal.resource)}, the load is {amount(total, goal.resource)}: "
            f"{amount(total - room, goal.resource)} is missing; add brokers or capacity, or raise the limit"
        )
    held = here.amounts(g)
    if len(held) and held.max() > problem.table[eligible, g, CEILING].max():
        name = snapshot.partition_name(int(here.partitions[int(np.argmax(held))]))
        return f"{name} alone is {amount(float(held.max()), goal.resource)}, above every broker's limit; split the topic"
    stuck = float(held[here.fixed].sum())
    if stuck > ceiling:
        return f"excluded topics hold {amount(stuck, goal.resource)} on it, above its limit of {amount(ceiling, goal.resource)}"
    if options.budgeted:
        return None
    missing = float(end.load[row, column]) - ceiling
    spare = float(np.maximum(problem.table[eligible, g, CEILING] - end.load[eligible, column], 0.0).sum())
    return (
        f"{amount(missing, goal.resource)} above its limit of {amount(ceiling, goal.resource)}; the other brokers' room of "
        f"{amount(spare, goal.resource)} could not be used without breaking another hard goal or splitting a replica"
    )
