"""Fewer moves for the same balance, where a move costs the same whatever it carries, as with shared storage.

Called by `rounds` once a target, before its changes are put in order.
"""

from __future__ import annotations

import numpy as np

from optimizer.problem import Problem
from optimizer.search.bench import differing
from optimizer.search.merge import merge
from optimizer.search.regroup import regroup
from optimizer.search.state import Rows, State

ALL_ASKED = 20_000  # replicas; of up to so many all brokers are asked every time, which takes milliseconds

def save_moves(
    problem: Problem, target: State, standing: State, home: Rows, home_lead: Rows, moved: Rows, most_held: np.ndarray
) -> None:  # fmt: skip
    """Let one replica go instead of two, or one fewer of several, where that is enough.

    Where replicas are many, only for brokers between which partitions `moved` (int64) differ in `target` and `standing`: the others were
    asked before, and what the order of actions refused then, it would refuse again. `most_held` is what `merge.largest` says of `home`.
    """
    few = home.size <= ALL_ASKED
    asked = np.full(len(problem.broker) + 1, few, np.uint8)  # the last one for places beyond a list
    asked[target.replicas[moved]] = asked[standing.replicas[moved]] = 1
    regroup(problem, target, home, moved)
    before = int(target.trail[0])
    merge(problem, target, home, differing(target.replicas, target.lead, home, home_lead, target), most_held, asked[:-1])
    if target.trail[0] < len(target.trail) and not few:
        merged = np.unique(target.trail[1 + before : 1 + target.trail[0]])
    else:
        merged = differing(target.replicas, target.lead, home, home_lead)
    regroup(problem, target, home, merged)
