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
from optimizer.search.state import LED, State
from optimizer.threads import Threads

FEW = 0.25  # of the leaderships that a broker's replicas would have if every replica were as likely to lead
ENOUGH = 4.0  # such leaderships at least; with fewer, chance alone leaves brokers without one


def is_lopsided(compiled: Compiled, state: State) -> bool:
    """Whether an active broker leads far fewer of its replicas than others do in `state`. O(replicas), quick."""
    problem = compiled.problem
    if not compiled.roles.any() or not len(state.lead):  # a leader costs what a follower does
        return False
    fair = state.hosts / max(float(problem.partition[:, RF].mean()), 1.0)
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    return any(
        int(np.count_nonzero(state.mark[b, : state.hosts[b]] & LED)) < FEW * fair[b] for b in np.flatnonzero(active & (fair >= ENOUGH))
    )


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
