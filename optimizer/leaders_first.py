"""Another way to level a cluster: what leaderships alone reach first, which copies nothing, then only what that leaves.

Called by `optimizer.worth` where some brokers lead far fewer of their replicas than others do, as after a rolling restart: the plain search
looks at one broker after the other and moves replicas of a broker that leads too little before the leaderships of the next are settled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cluster_model.snapshot import BrokerState
from optimizer.course import Placement
from optimizer.options import PlanOptions, Watch
from optimizer.problem import RF, STATE, Compiled
from optimizer.search.search import Round, search
from optimizer.threads import Threads

FEW = 0.25  # of the leaderships that a broker's replicas would have if every replica were as likely to lead
ENOUGH = 4.0  # such leaderships at least; with fewer, chance alone leaves brokers without one


def is_lopsided(compiled: Compiled, start: Placement) -> bool:
    """Whether an active broker leads far fewer of its replicas than others. O(replicas)."""
    problem = compiled.problem
    if not compiled.roles.any():  # a leader costs what a follower does
        return False
    chance = 1.0 / np.maximum(problem.partition[:, RF], 1)
    holds = start.replicas >= 0
    fair = np.bincount(start.replicas[holds], np.broadcast_to(chance[:, None], holds.shape)[holds], len(problem.broker))
    leaders = start.leaders()
    led = np.bincount(leaders[leaders >= 0], minlength=len(problem.broker))
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    return bool((active & (fair >= ENOUGH) & (led < FEW * fair)).any())


def leaders_first(
    compiled: Compiled, options: PlanOptions, start: Placement, watch: Watch | None, threads: Threads
) -> tuple[list[Round], bool] | None:
    """Rounds of leadership transfers from `start`, then of all actions, and whether `watch` stopped them; None where no transfer is
    acceptable. `compiled` starts there, and the options have no budget."""
    transfers = search(compiled, replace(options, max_moves=0), watch, threads=threads)
    if not transfers.rounds or transfers.stopped:
        return None
    middle = start.after(transfers.rounds)
    rest = replace(compiled, replicas=middle.replicas, lead=middle.lead)
    found = search(rest, options, watch, threads=threads)
    return [*transfers.rounds, *found.rounds], found.stopped
