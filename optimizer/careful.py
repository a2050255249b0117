"""Search where something is left alone: repairs first, which need no numbers, then balance without what is in doubt or was moved lately.

Called by the planner in place of `search` when the compiled problem carries a `Caution`. Both parts are ordinary rounds, judged by the
same rule; what is in doubt is kept out of the second by calling its partitions immovable and its brokers excluded. Means and bands
stay those of the whole cluster, in which the last known loads count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState
from optimizer.caution import Caution
from optimizer.found import Found, Round
from optimizer.options import PlanOptions, Watch
from optimizer.placement.commit import build_state
from optimizer.placement.log import Budget, budget_for, empty_log
from optimizer.placement.record import published_changes, record
from optimizer.placement.restore import align_slots
from optimizer.placement.standing import standing_of
from optimizer.placement.state import Rows
from optimizer.placement.states import States, differing
from optimizer.problem import MOVABLE, NO_RACK_GOAL, RACK_GOAL, STATE, Compiled, Problem
from optimizer.search.repair import drain, lead_leaderless, mend_racks, to_drain
from optimizer.search.sequence import sequence
from optimizer.spending import affordable_search
from optimizer.threads import Threads

MOST_TURNS = 20


def careful_search(
    compiled: Compiled, caution: Caution, options: PlanOptions, watch: Watch | None, states: States, threads: Threads | None = None
) -> Found:
    """Rounds of repairs, and of balance among what can be trusted, until neither finds anything.

    `states` stands at the placement of `compiled` with its loads, as for `search`.
    """
    nothing = np.zeros_like(caution.resting)
    open_to_all = compiled.problem
    reserved = _without(compiled.problem, nothing, caution.unmeasured) if caution.unmeasured.any() else open_to_all
    trusted = _without(compiled.problem, caution.held, caution.brokers)
    walk = _Walk(compiled, compiled.replicas, compiled.lead, [], budget_for(compiled, options))
    stopped, left_out, state = False, None, states.current
    for turn in range(MOST_TURNS):
        repaired = False
        if standing_of(open_to_all, state).undone:
            repaired = walk.repair(reserved, options)
            repaired |= reserved is not open_to_all and walk.repair(open_to_all, options)
        if turn and not repaired:
            break
        rest = replace(compiled, problem=trusted, replicas=walk.replicas, lead=walk.lead)
        found = affordable_search(rest, walk.rest_of(options), watch, None if walk.rounds else states, threads)
        for part in found.rounds:
            walk.take(part)
        stopped, left_out, state = found.stopped, found.left_out, found.end
        if stopped:
            break
    return Found(walk.rounds, build_state(compiled.problem, walk.replicas, walk.lead), stopped, left_out)


def _without(problem: Problem, partitions: BoolArray, brokers: BoolArray) -> Problem:
    """The same with `partitions` immovable and active `brokers` excluded."""
    partition, broker = problem.partition.copy(), problem.broker.copy()
    partition[partitions, MOVABLE] = 0
    broker[brokers, STATE] = BrokerState.EXCLUDED
    return problem._replace(partition=partition, broker=broker)


@dataclass
class _Walk:
    """Rounds so far, the placement they lead to (published order), and what they cost."""

    compiled: Compiled
    replicas: Rows
    lead: Rows
    rounds: list[Round]
    budget: Budget

    def take(self, part: Round) -> None:
        """Append a round that starts at this placement."""
        changes = int(part.log.used[1])
        rows = part.log.partition[:changes]
        self.rounds.append(part)
        self.replicas, self.lead = self.replicas.copy(), self.lead.copy()
        self.replicas[rows], self.lead[rows] = part.changes.after, part.changes.lead_after  # of several, the last stays

    def repair(self, problem: Problem, options: PlanOptions) -> bool:
        """A round of repairs alone; whether it found any."""
        by_potential = options.acceptance == "potential"
        target = build_state(problem, self.replicas, self.lead)
        lead_leaderless(problem, target)
        drain(problem, target, to_drain(problem, target, self.compiled.leading), options.seed)
        if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
            mend_racks(problem, target, options.seed)
        moved = differing(target.replicas, target.lead, self.replicas, self.lead, target)
        align_slots(problem, target, self.replicas, moved)
        pending = differing(target.replicas, target.lead, self.replicas, self.lead, target)
        if not len(pending):
            return False
        log = empty_log(self.replicas.shape[1], self.replicas.size + len(pending))
        standing = build_state(problem, self.replicas, self.lead)
        sequence(problem, standing, self.budget, log, pending, target.replicas, target.lead, by_potential)
        if log.used[0] == 0:
            return False
        scores = record(problem, build_state(problem, self.replicas, self.lead), log, by_potential)
        changes = published_changes(self.compiled, self.replicas, self.lead, log)
        self.take(Round(self.replicas, self.lead, log, scores, changes))
        return True

    def rest_of(self, options: PlanOptions) -> PlanOptions:
        """The options with what is left of their budgets."""
        spent = self.budget.spent
        moves, data, partitions = (
            None if limit is None else max(limit - int(np.ceil(used)), 0)
            for limit, used in zip((options.max_moves, options.max_bytes, options.max_partitions), spent.tolist(), strict=True)
        )
        return replace(options, max_moves=moves, max_bytes=data, max_partitions=partitions)
