"""Another way to level a cluster: what leaderships alone reach first, which copies nothing, then only what that leaves.

Called by `optimizer.worth` where leaderships may be most of what is needed, as after a rolling restart: the plain search looks at one
broker after the other and moves replicas of a broker that leads too little before the leaderships of the next are settled.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cluster_model.snapshot import BrokerState
from optimizer.course import Placement
from optimizer.found import Round
from optimizer.options import PlanOptions, Watch
from optimizer.parameters import MOST_RESTARTED
from optimizer.placement.state import COST, LED, State
from optimizer.problem import RF, STATE, Compiled
from optimizer.search.search import led_goals, search
from optimizer.threads import Threads

FEW = 0.25  # of the leaderships that a broker's replicas would have if every replica were as likely to lead
SEARCHES = 2  # for leadership transfers, the second from where the first ends, as in a plan with `--max-moves 0`
ENOUGH = 4.0  # such leaderships at least; with fewer, chance alone leaves brokers without one


def leaders_may_level(compiled: Compiled, state: State) -> bool:
    """Whether leadership transfers may be most of what `state` needs: an active broker leads far fewer of its replicas than others do, or,
    where replicas are few, brokers are outside only goals in which a leader counts more than a follower. O(replicas), quick."""
    problem = compiled.problem
    if not compiled.roles.any() or not len(state.lead):  # a leader costs what a follower does
        return False
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    low = np.asarray((state.score[active, :COST] < 1.0).any(axis=0))
    others = led_goals(problem, compiled.roles) == 0
    if state.replicas.size <= MOST_RESTARTED and low.any() and not low[others].any():
        return True
    fair = state.hosts / max(float(problem.partition[:, RF].mean()), 1.0)
    return any(
        int(np.count_nonzero(state.mark[b, : state.hosts[b]] & LED)) < FEW * fair[b] for b in np.flatnonzero(active & (fair >= ENOUGH))
    )


def leaders_first(
    compiled: Compiled, options: PlanOptions, start: Placement, watch: Watch | None, threads: Threads
) -> tuple[list[Round], bool] | None:
    """Rounds of leadership transfers from `start`, then of all actions, and whether `watch` stopped them; None where no transfer is
    acceptable. `compiled` starts there, and the options have no budget."""
    rounds: list[Round] = []
    rest = compiled
    for _ in range(SEARCHES):
        transfers = search(rest, replace(options, max_moves=0), watch, threads=threads)
        rounds += transfers.rounds
        if transfers.stopped or not rounds:
            return None
        if not transfers.rounds:
            break
        middle = start.after(rounds)
        rest = replace(compiled, replicas=middle.replicas, lead=middle.lead)
    found = search(rest, options, watch, threads=threads)
    return [*rounds, *found.rounds], found.stopped
