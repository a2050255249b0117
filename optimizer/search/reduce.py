"""Reduce: the same balance for fewer moves and bytes.

Called by `search` once a target, before its changes are put in order.
"""

from __future__ import annotations

import numpy as np

from optimizer.problem import Problem
from optimizer.search.bench import differing
from optimizer.search.homeward import send_home
from optimizer.search.partners import crowd_of
from optimizer.search.regroup import regroup
from optimizer.search.replace import replace
from optimizer.search.standing import count_low
from optimizer.search.state import Rows, State

LITTLE = 0.005  # of the partitions that a target moves: with fewer replaced, it is not tried again
TURNS = 3


def reduce(problem: Problem, target: State, standing: State, home: Rows, home_lead: Rows, firm: bool) -> None:
    """Take back what `target` moved without need, then let cheaper replicas, or one for two, go in place of others.

    `home` int64 [P, R] and `home_lead` int64 [P] are where the round began; what `standing` has is in order already. No broker scores lower
    in any goal for any of it; where `firm`, the potential does not rise either, so that all that is left can be put in order.
    """
    moved = differing(target.replicas, target.lead, standing.replicas, standing.lead, target, standing)
    order = moved[np.argsort(-problem.cost[moved], kind="stable")]
    send_home(problem, target, home, home_lead, order, firm)
    alike = len(moved) > 0 and problem.cost.min() == problem.cost.max()
    for _ in range(0 if firm or count_low(problem, target) else TURNS):  # while a broker is out, the room left in bands may still be needed
        fewer = replace(problem, target, home, order)
        if alike:  # then it is worth while to look for fewer of several, too
            fewer += regroup(problem, target, crowd_of(problem), home, differing(target.replicas, target.lead, home, home_lead, target))
        if fewer <= LITTLE * len(order):
            break
        order = differing(target.replicas, target.lead, standing.replicas, standing.lead, target, standing)
        order = order[np.argsort(-problem.cost[order], kind="stable")]
        send_home(problem, target, home, home_lead, order, firm)
