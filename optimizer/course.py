"""From one placement to another as a round of acceptable actions, each partition changed once.

Called by what looks for a better way to where a search led, or for a better end (`optimizer.worth`): a search publishes as it goes, so
its rounds may move a replica away and back; a round made here has the net effect alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from optimizer.found import Round
from optimizer.options import PlanOptions
from optimizer.placement.commit import appraise, build_state
from optimizer.placement.log import Log, budget_for, empty_log, written
from optimizer.placement.record import Lists, published_changes, record
from optimizer.placement.restore import align_slots
from optimizer.placement.standing import same_rack_only
from optimizer.placement.state import Rows, State
from optimizer.placement.states import differing
from optimizer.problem import SAME_RACK, Compiled, Problem
from optimizer.search.irreducible import Aim
from optimizer.search.partners import broker_loads
from optimizer.search.polish import polish
from optimizer.search.sequence import carry_out, cheapest_broker_first
from optimizer.search.variants import by_moves

MOST_STEPS = 2_000  # single steps of a round: one takes a millisecond with 50,000 replicas, and ten with a million
PRICED = 0.01  # of the mean size, taken as the mean cost where bytes are limited: gains are divided by hardly more than the size


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
        net = Net.of(rounds)
        return self.with_rows(net.rows, net.after)

    def with_rows(self, rows: Rows, others: Placement) -> Placement:
        """The same with partitions `rows` (int64 [n]) as in `others`, which has n."""
        replicas, lead = self.replicas.copy(), self.lead.copy()
        replicas[rows], lead[rows] = others.replicas, others.lead
        return Placement(replicas, lead)

    def leaders(self) -> Rows:
        """int64 [P]: broker rows of leaders, -1 where there is none."""
        slot = np.maximum(self.lead, 0)
        return np.asarray(np.where(self.lead >= 0, self.replicas[np.arange(len(slot)), slot], -1), np.int64)

    def taken(self, rows: Rows) -> Placement:
        """That of partitions `rows` (int64) alone."""
        return Placement(self.replicas[rows], self.lead[rows])

    def moved(self, to: Placement) -> Rows:
        """int64 [P]: replicas of each partition that stand elsewhere in `to`."""
        moved = np.zeros(len(to.lead), np.int64)
        for new in to.replicas.T:
            stays = new < 0
            for old in self.replicas.T:
                stays |= old == new
            moved += ~stays
        return moved

    def relieved(self, to: Placement) -> Rows:
        """int64 [P]: 1 where another broker leads in `to`."""
        return np.asarray(self.leaders() != to.leaders(), np.int64)


@dataclass(frozen=True)
class Net:
    """What rounds do in the end to each partition that they change: `rows` int64, ascending, and where these stand before and after."""

    rows: Rows
    before: Placement
    after: Placement

    @classmethod
    def of(cls, rounds: list[Round]) -> Net:
        """O(partitions + changes)."""
        every = np.concatenate([part.log.partition[: int(part.log.used[1])] for part in rounds])
        lists = [part.changes for part in rounds]
        before = Placement(np.concatenate([one.before for one in lists]), np.concatenate([one.lead_before for one in lists]))
        after = Placement(np.concatenate([one.after for one in lists]), np.concatenate([one.lead_after for one in lists]))
        at = np.full(len(rounds[0].lead) if rounds else 0, -1)  # numbers of changes; of a partition's several, the one written last stays
        at[every] = np.arange(len(every))
        rows = np.flatnonzero(at >= 0)
        last = at[rows]
        if len(rows) == len(every):
            return cls(rows, before.taken(last), after.taken(last))
        at[every[::-1]] = np.arange(len(every))[::-1]
        return cls(rows, before.taken(at[rows]), after.taken(last))

    @property
    def moved(self) -> Rows:
        """int64 [n]: replicas of each of `rows` that stand elsewhere."""
        return self.before.moved(self.after)

    @property
    def relieved(self) -> Rows:
        """int64 [n]: 1 where another broker leads."""
        return self.before.relieved(self.after)

    def cost(self, compiled: Compiled) -> float:
        """What the moves cost together (`Problem.cost`)."""
        return float((self.moved * compiled.problem.cost[self.rows]).sum())


def net_round(
    compiled: Compiled, options: PlanOptions, start: Placement, to: Placement, cheapest_first: bool = False
) -> tuple[Round, int]:
    """A round that leads from `start` towards `to`, each partition changed once, and of how many no acceptable order was found.

    Where it should serve budgets, what ends a violation of hard goals `cheapest_first`. O(replicas), and the scheduling of what differs.
    """
    compiled, problem, standing = _at(compiled, start)
    target = to.state(compiled)
    appraise(problem, target)
    align_slots(problem, target, start.replicas, differing(target.replicas, target.lead, start.replicas, start.lead))
    pending = differing(target.replicas, target.lead, start.replicas, start.lead)
    log = empty_log(start.replicas.shape[1], 2 * len(pending))  # of each partition the leader first, then a replica
    by_potential = options.acceptance == "potential"
    turns = cheapest_broker_first(problem, standing, pending, target.replicas, target.lead) if cheapest_first else [pending]
    left = carry_out(problem, standing, budget_for(compiled, options), log, turns, target.replicas, target.lead, by_potential)
    made = _round(compiled, options, problem, start, log)
    rows = made.log.partition[: int(made.log.used[1])]
    return replace(made, changes=_listed_as(made.changes, to.taken(rows))), left


def step_round(compiled: Compiled, options: PlanOptions, start: Placement) -> Round:
    """A round of single acceptable steps from `start`, until there is none, the budget of `options` is not enough for the next, or there
    are `MOST_STEPS`. Those go first that gain most for their bytes or, if these are not limited, for their moves."""
    sizes = compiled.problem.size.copy()  # kernels want them writable
    by_bytes = compiled.problem._replace(cost=sizes, typical=np.full(2, PRICED * sizes.mean() or 1.0))
    priced = by_moves(compiled.problem) if options.max_bytes is None else by_bytes
    compiled, problem, standing = _at(replace(compiled, problem=priced), start)
    log = empty_log(start.replicas.shape[1], MOST_STEPS)
    by_potential = options.acceptance == "potential"
    polish(problem, standing, broker_loads(problem), budget_for(compiled, options), log, options.seed, by_potential)
    return _round(compiled, options, problem, start, log)


def _at(compiled: Compiled, start: Placement) -> tuple[Compiled, Problem, State]:
    """The same from `start`, what a search from there aims at, and the state there."""
    compiled = replace(compiled, replicas=start.replicas, lead=start.lead)
    standing = start.state(compiled)
    problem = Aim(compiled.problem).at(standing)
    setting = problem.setting.copy()
    setting[SAME_RACK] = same_rack_only(problem, standing)
    problem = problem._replace(setting=setting)
    appraise(problem, standing)
    return compiled, problem, standing


def _round(compiled: Compiled, options: PlanOptions, problem: Problem, start: Placement, log: Log) -> Round:
    """The actions of `log` from `start`, with the scores on the way."""
    log = written(log)
    begin = start.state(compiled)
    appraise(problem, begin)
    scores = record(problem, begin, log, options.acceptance == "potential")
    return Round(start.replicas, start.lead, log, scores, published_changes(compiled, start.replicas, start.lead, log))


def _listed_as(made: Lists, to: Placement) -> Lists:
    """`made`, whose changes lead to the brokers and leaders of `to`, with the lists of `to` where only the order of followers differs.

    A search found nothing more from these lists. It is not sure to find nothing from others.
    """
    end = Placement(made.after, made.lead_after)
    same = (np.sort(end.replicas, axis=1) == np.sort(to.replicas, axis=1)).all(axis=1) & (end.leaders() == to.leaders())
    return replace(made, after=np.where(same[:, None], to.replicas, made.after), lead_after=np.where(same, to.lead, made.lead_after))
