"""From one placement to another as a round of acceptable actions, each partition changed once.

Called by what looks for a better way to where a search led, or for a better end (`optimizer.worth`): a search publishes as it goes, so
its rounds may move a replica away and back; a round made here has the net effect alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optimizer.options import PlanOptions
from optimizer.problem import SAME_RACK, Compiled
from optimizer.search.align import align_slots
from optimizer.search.appraise import appraise
from optimizer.search.bench import differing
from optimizer.search.commit import build_state
from optimizer.search.irreducible import Aim
from optimizer.search.ledger import budget_for, empty_log, written
from optimizer.search.published import published_changes
from optimizer.search.record import record
from optimizer.search.search import Round
from optimizer.search.sequence import sequence
from optimizer.search.standing import same_rack_only
from optimizer.search.state import Rows, State


@dataclass(frozen=True)
class Placement:
    """Replica lists int64 [P, R] (broker rows, -1 beyond the replication factor) in published order, and slots of leaders int64 [P]."""

    replicas: Rows
    lead: Rows

    def state(self, compiled: Compiled) -> State:
        """Loads and scores there. O(replicas)."""
        return build_state(compiled.problem, self.replicas, self.lead)

    def after(self, rounds: list[Round]) -> Placement:
        """Where `rounds` lead that start here."""
        if not rounds:
            return self
        replicas, lead = self.replicas.copy(), self.lead.copy()
        for part in rounds:
            rows = part.log.partition[: int(part.log.used[1])]
            replicas[rows], lead[rows] = part.changes.after, part.changes.lead_after  # of a partition's several, the last stays
        return Placement(replicas, lead)

    def with_rows(self, rows: Rows, other: Placement) -> Placement:
        """The same with partitions `rows` (int64) as in `other`."""
        replicas, lead = self.replicas.copy(), self.lead.copy()
        replicas[rows], lead[rows] = other.replicas[rows], other.lead[rows]
        return Placement(replicas, lead)

    def leaders(self) -> Rows:
        """int64 [P]: broker rows of leaders, -1 where there is none."""
        slot = np.maximum(self.lead, 0)
        return np.asarray(np.where(self.lead >= 0, self.replicas[np.arange(len(slot)), slot], -1), np.int64)

    def moved(self, to: Placement) -> Rows:
        """int64 [P]: replicas of each partition that stand elsewhere in `to`."""
        rows = np.flatnonzero((self.replicas != to.replicas).any(axis=1))
        count = np.zeros(len(self.lead), np.int64)
        one, other = self.replicas[rows], to.replicas[rows]
        count[rows] = ((other[:, :, None] != one[:, None, :]).all(axis=2) & (other >= 0)).sum(axis=1)
        return count


def net_round(compiled: Compiled, options: PlanOptions, start: Placement, to: Placement) -> tuple[Round, int]:
    """A round that leads from `start` towards `to`, each partition changed once, and of how many no acceptable order was found.

    O(replicas), and the scheduling of what differs.
    """
    compiled = replace(compiled, replicas=start.replicas, lead=start.lead)
    standing, target = start.state(compiled), to.state(compiled)
    problem = Aim(compiled.problem, start.replicas, start.lead).at(standing)
    setting = problem.setting.copy()
    setting[SAME_RACK] = same_rack_only(problem, standing)
    problem = problem._replace(setting=setting)
    for state in (standing, target):
        appraise(problem, state)
    align_slots(problem, target, start.replicas, differing(target.replicas, target.lead, start.replicas, start.lead))
    pending = differing(target.replicas, target.lead, start.replicas, start.lead)
    log = empty_log(start.replicas.shape[1], len(pending) + 1)
    by_potential = options.acceptance == "potential"
    left = sequence(problem, standing, budget_for(compiled, options), log, pending, target.replicas, target.lead, by_potential)
    log = written(log)
    begin = start.state(compiled)
    appraise(problem, begin)
    scores = record(problem, begin, log, by_potential)
    return Round(start.replicas, start.lead, log, scores, published_changes(compiled, start.replicas, start.lead, log)), left
