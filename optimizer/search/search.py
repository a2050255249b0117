"""The whole search, from a compiled problem to logs of acceptable actions. `docs/search.md` explains it.

One potential (`optimizer.placement.potential`) guides it. The stages are construct and repair, improve, escape, reduce, schedule, finish.
Where a stage needs another potential, only data differ: ranges that can be reached, from the start of a round; no middle of a range in
escapes; broken hard limits as wishes while a target is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cluster_model.snapshot import BrokerState
from optimizer.found import Found, Round
from optimizer.options import PlanOptions, Watch
from optimizer.parameters import (
    CHEAPER_CHANGES,
    ENDLESS,
    FEW_MOVES,
    MANY_CHANGES,
    MOST_CHEAPER,
    MOST_ESCAPED,
    MOST_RESTARTED,
    MOST_ROUNDS,
    POLISH_ROOM,
    ROUNDS_OF_BALANCE,
    SEED_STEP,
    SEEDS,
    VAIN_REPLICAS,
    VAIN_RESTARTS,
)
from optimizer.placement.commit import appraise
from optimizer.placement.log import Budget, Log, budget_for, copied, has_partitions, is_spent, plenty, written
from optimizer.placement.record import published_changes, record
from optimizer.placement.restore import align_slots, follow
from optimizer.placement.standing import Standing, broken_goals, count_low, is_progress, same_rack_only, standing_of, undone
from optimizer.placement.state import COST, Rows, State
from optimizer.placement.states import States, differing
from optimizer.problem import COLUMN, KIND, LIMIT, SAME_RACK, STATE, Compiled, Problem
from optimizer.search.balance import balance
from optimizer.search.irreducible import Aim
from optimizer.search.partners import broker_loads
from optimizer.search.polish import polish
from optimizer.search.reduce import reduce
from optimizer.search.repack import repack
from optimizer.search.repair import drain, lead_leaderless, mend_racks, repair, stays_crowded, to_drain, withdraw
from optimizer.search.sequence import carry_out, cheapest_broker_first
from optimizer.search.swaps import swap_out
from optimizer.search.topics import spread_topics
from optimizer.search.variants import banded, firmly, hard_limits, limits_alone, mending, tightest, without_middle
from optimizer.threads import Threads

FIRST_THINGS_FIRST = -1  # the attempt that puts repairs in order first, then hard limits, then the rest, as searches with a budget do


@dataclass(frozen=True)
class Chain:
    """Rounds from one placement until no further round is worth its moves, where they lead, and how good that is (smaller is better)."""

    rounds: list[Round]
    replicas: Rows
    lead: Rows
    end: State
    budget: Budget
    reached: Standing
    potential: float
    cost: float  # `cost_since_start`

    @property
    def worth(self) -> tuple[int, int, int, int, int, float, float]:
        """What chains are compared by; smaller is better. The cost of moves goes before the potential if nothing remains to be done."""
        first, second = (self.cost, self.potential) if self.is_perfect else (self.potential, self.cost)
        reached = self.reached
        return reached.urgent, reached.undone, reached.broken, reached.low, reached.violations, first, second

    def further_seeds(self, replicas: int) -> int:
        """How many other seeds are tried in a cluster of so many `replicas`: in all if this is perfect, else in a row without success.

        Rounds before this chain do not count: with few changes to make, a seed takes little time.
        """
        changes = sum(int(one.log.used[1]) for one in self.rounds)
        if self.is_perfect:
            return min(MOST_CHEAPER, CHEAPER_CHANGES // changes) if changes and self.cost else 0
        return max(min(VAIN_RESTARTS, VAIN_REPLICAS // replicas), 1) if self.reached.broken else 1

    @property
    def is_perfect(self) -> bool:
        """Whether nothing remains to be done."""
        return self.reached.undone == self.reached.low == 0

    @property
    def is_open(self) -> bool:
        """Whether repairs or hard goals on loads are left, so that it is worth a try to put these in order first."""
        return bool(self.reached.undone or self.reached.broken) and not self.is_perfect


class Watcher:
    """Reports to the caller's watch between stages, and remembers that it said stop."""

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch
        self.stopped = False

    def tell(self, low: int) -> None:
        if self._watch is not None and not self.stopped:
            self.stopped = not self._watch(low)


def search(
    compiled: Compiled, options: PlanOptions, watch: Watch | None = None, states: States | None = None, threads: Threads | None = None
) -> Found:
    """The rounds of `descend`, restarted with other seeds from the best end so far until none finds an action.

    Large problems get one seed. Small ones get more if hard goals stay missed, or if nothing is left to do and another seed may do it with
    fewer moves. If repairs or hard goals stay open, one attempt puts these in order before all else.
    `states`, if given, stand at the placement of `compiled` with its loads; tasks of `Threads.beside` may read them while they do.
    """
    threads = threads or Threads()
    problem = compiled.problem
    states = States(problem, compiled.replicas, compiled.lead) if states is None else states
    if not len(compiled.replicas) or not (problem.broker[:, STATE] == BrokerState.ACTIVE).any():
        return Found([], states.at(problem, compiled.replicas, compiled.lead))
    replicas, lead, budget = compiled.replicas, compiled.lead, budget_for(compiled, options)
    seeds = 1 if options.budgeted or compiled.replicas.size > MOST_RESTARTED else options.restarts or SEEDS
    ordered = not options.budgeted and compiled.replicas.size <= MOST_ESCAPED
    rounds: list[Round] = []
    end: State | None = states.current
    watcher, aim = Watcher(watch), Aim(problem)
    exhausted: tuple[int, Chain] | None = None  # the attempt that ended here, so that it finds nothing more

    def attempted(attempt: int) -> Chain:
        if exhausted is not None and attempt == exhausted[0]:
            return exhausted[1]
        moves = ENDLESS if attempt == FIRST_THINGS_FIRST else options.max_moves
        way = replace(options, seed=options.seed % SEEDS + max(attempt, 0) * SEED_STEP, max_moves=moves)
        return descend(compiled, aim, states, replicas, lead, way, budget, watcher, threads)

    for _ in range(MOST_ROUNDS):
        best, found, in_vain = attempted(0), 0, 0
        chain = best
        if ordered and best.is_open and not watcher.stopped:
            chain = attempted(FIRST_THINGS_FIRST)
            if chain.worth < best.worth:
                best, found = chain, FIRST_THINGS_FIRST
        for attempt in range(1, seeds if found == 0 else 0):
            tried = attempt - 1 if best.is_perfect else in_vain
            if tried >= best.further_seeds(replicas.size) or watcher.stopped:
                break
            chain = attempted(attempt)
            if chain.worth < best.worth:
                best, found, in_vain = chain, attempt, 0
            else:
                in_vain += 1
        if not best.rounds:
            end = end if chain is best and found == 0 and not rounds else None
            break
        end = best.end if best is chain else None
        exhausted = found, replace(best, rounds=[])
        rounds.extend(best.rounds)
        replicas, lead, budget = best.replicas, best.lead, best.budget
        if (seeds == 1 and not (ordered and best.is_open)) or best.is_perfect or watcher.stopped:
            break
    if end is None:
        threads.settle()
        end = states.at(problem, replicas, lead)
    return Found(rounds, end, watcher.stopped and not best.is_perfect)


# wide: a target has lists and leaders, a plan has a budget and a log, and each of them has another owner
def descend(
    compiled: Compiled, aim: Aim, states: States, replicas: Rows, lead: Rows, options: PlanOptions, budget: Budget, watcher: Watcher,
    threads: Threads,
) -> Chain:  # fmt: skip
    """Rounds with one seed from the given lists, as long as each is worth its moves.

    The lists of the chain are not brought up to date where no search continues from its end: if the budget is spent, or if nothing is left
    to do in a large cluster.
    """
    budget = copied(budget)
    rounds: list[Round] = []
    end = states.at(compiled.problem, replicas, lead)
    problem, reached = _start(aim, states)
    watcher.tell(reached.low)
    while len(rounds) < MOST_ROUNDS and (reached.undone or reached.low) and not watcher.stopped:
        spent = copied(budget)
        log, tried = one_round(compiled, problem, states, replicas, lead, options, spent, watcher, threads)
        after = _reached(aim, problem, states, reached, tried, threads) if log.used[0] else None
        if log.used[1] > MANY_CHANGES:  # to free memory: the record will be large
            del tried
            states.drop(1)
        if after is None:
            break
        end = states.spare(0)
        scores = record(problem, end, log, options.acceptance == "potential")
        changes = published_changes(compiled, replicas, lead, log)
        rounds.append(Round(replicas, lead, log, scores, changes))
        reached, budget = after, spent
        if is_spent(problem, budget):
            break
        more = reached.undone or reached.low
        if more or replicas.size <= MOST_RESTARTED:
            rows = log.partition[: log.used[1]]
            replicas, lead = replicas.copy(), lead.copy()
            replicas[rows], lead[rows] = changes.after, changes.lead_after  # of several changes of a partition the last stays
            threads.settle()
        if more:
            end = states.at(compiled.problem, replicas, lead, np.unique(rows))
            problem, reached = _start(aim, states)
    potential = float(end.score[problem.broker[:, STATE] == BrokerState.ACTIVE, COST].sum())
    return Chain(rounds, replicas, lead, end, budget, reached, potential, cost_since_start(compiled, replicas))


def cost_since_start(compiled: Compiled, replicas: Rows) -> float:
    """Cost of all moves from the start of the plan to `replicas`, in typical moves; 0 in clusters too large for several seeds."""
    if replicas.size > MOST_RESTARTED:
        return 0.0
    moved = (replicas >= 0) & ~(replicas[:, :, None] == compiled.home[:, None, :]).any(axis=2)
    return round(float((moved.sum(axis=1) * compiled.problem.cost).sum() / compiled.problem.typical[0]), 6)  # so that equal costs are equal


# wide: a target has lists and leaders, a plan has a budget and a log, and each of them has another owner
# long: the page of docs/search.md, one stage after the other
def one_round(
    compiled: Compiled, problem: Problem, states: States, replicas: Rows, lead: Rows, options: PlanOptions, budget: Budget,
    watcher: Watcher, threads: Threads,
) -> tuple[Log, State]:  # fmt: skip
    """One search from the given lists, at which `states` stands. Returns its log and the state that it leads to.

    The search finds a target by the potential alone, then puts its changes into an acceptable order. It repeats both from there while fewer
    brokers stay outside, or broken hard limits were wishes of the target. If hard goals stay missed, it repeats once with these above all.
    """
    by_potential = options.acceptance == "potential"
    target, standing = states.spare(0), states.current  # which stays as it is: `schedule` works on a copy
    log = states.log(replicas.size + POLISH_ROOM)
    placed_anyhow = np.zeros(0, np.int64)  # partitions in racks that may be too small for them

    def schedule(most_urgent: Problem | None = None) -> int:
        nonlocal standing, placed_anyhow
        withdraw(problem, target, standing, placed_anyhow)
        placed_anyhow = placed_anyhow[:0]
        to, to_lead = target.replicas, target.lead
        pending = differing(to, to_lead, standing.replicas, standing.lead, target, standing)
        align_slots(problem, target, standing.replicas, pending)
        standing = states.spare(1) if standing is states.current else standing
        turns = [pending] if most_urgent is None else cheapest_broker_first(most_urgent, standing, pending, to, to_lead)
        carry_out(problem, standing, budget, log, turns, to, to_lead, by_potential, threads)
        follow(problem, target, standing, pending)
        return len(pending)

    # Construct and repair: leaders, brokers that must be emptied, racks.
    lead_leaderless(problem, target)
    leaving = to_drain(problem, standing, compiled.leading)
    repair(problem, target, leaving, options.seed)
    if stays_crowded(problem, target) and _is_beyond(problem, target):  # racks lack room: first what brokers beyond limits have to give
        follow(problem, target, standing, differing(target.replicas, target.lead, replicas, lead, target))
        lead_leaderless(problem, target)
        drain(problem, target, leaving, options.seed)
        _level(limits_alone(problem, budget), target, options.seed, threads)
        appraise(problem, target)
        mend_racks(problem, target, options.seed)
    if options.budgeted:  # repairs are put in order first, so that the budget is spent on them first
        schedule()
        leaving = to_drain(problem, standing, compiled.leading)  # others have their place
    exceeding, placed_anyhow = _placed_anyhow(problem, target, leaving, options.seed)
    broken = broken_goals(problem, target)
    wish = problem if options.budgeted else exceeding or mending(problem, broken * tightest(problem))
    wish = wish if options.budgeted or len(leaving) else banded(wish, standing)
    if options.budgeted and broken.any():  # then hard limits
        limits = limits_alone(problem, budget)
        _level(limits, target, options.seed, threads)
        align_slots(problem, target, replicas, differing(target.replicas, target.lead, replicas, lead, target))
        reduce(limits, target, standing, replicas, lead, options.seed)
        appraise(problem, target)
        schedule(limits)
    roles, enough, marks = led_goals(problem, compiled.roles), plenty(problem, budget), states.topics_out(problem)
    published_before, cut, low = int(log.used[0]), False, len(problem.broker) + 1
    firm: Problem | None = None
    most = len(problem.broker) * len(problem.goal) + 1  # broken hard limits: another target with wishes needs fewer
    while not is_spent(problem, budget):
        # Improve.
        if wish is not problem:
            appraise(wish, target)
        spread_topics(wish, target, options.seed, False, marks)
        balance(wish, target, options.seed, 1 if enough < FEW_MOVES * replicas.size else ROUNDS_OF_BALANCE, roles, True, threads)
        threads.begin()  # the rest shares little between threads
        spread_topics(wish, target, options.seed, True, marks)
        # Escape: destroy and repair, then swaps with all replicas of other brokers.
        if replicas.size <= MOST_ESCAPED and not options.budgeted:  # a budget is spent on easier changes
            repack(wish, target, options.seed)
            if count_low(problem, target):
                edges = without_middle(wish)
                appraise(edges, target)
                swap_out(edges, target, options.seed)
        appraise(problem, target)
        if wish is firm and broken_goals(problem, target).sum() >= broken.sum():  # this target helps no hard goal: it is dropped
            follow(problem, target, standing, differing(target.replicas, target.lead, standing.replicas, standing.lead, target, standing))
            break
        # Reduce.
        align_slots(problem, target, replicas, differing(target.replicas, target.lead, replicas, lead, target))
        reduce(problem, target, standing, replicas, lead, options.seed)
        # Schedule.
        cut = 2 * schedule() >= enough
        left, low = low, count_low(problem, standing)
        watcher.tell(low)
        if watcher.stopped:
            return written(log), standing
        broken = broken_goals(problem, standing)
        if not low or options.budgeted:
            break
        exceeded = int((broken * hard_limits(problem)).sum())
        if 0 < exceeded < most:
            wish, most = mending(problem, broken), exceeded
        elif wish is not problem or low < left:
            wish, most = problem, 0
        elif broken.any() and firm is None:
            wish = firm = firmly(problem)
        else:
            break
    # Finish: single actions that are acceptable now.
    if is_spent(problem, budget):
        if has_partitions(budget):
            balance(problem, target, options.seed, ROUNDS_OF_BALANCE, roles, False, threads)
            if options.max_moves == 0 and replicas.size <= MOST_ESCAPED:
                repack(problem, target, options.seed, False)
            schedule()
    elif cut and log.used[0] > published_before:
        pass  # the next round finds a target for the remaining budget
    else:
        polish(problem, standing, broker_loads(problem), budget, log, options.seed, by_potential)
    return written(log), standing


def _reached(aim: Aim, problem: Problem, states: States, reached: Standing, end: State, threads: Threads) -> Standing | None:
    """How good the `end` of a round is by the ranges that it aims at itself; None if the round is not worth its moves, by these or by the
    ranges of its start. Without this, rounds could go in a circle, or stop where a search from the end finds more."""
    if not is_progress(reached, standing_of(problem, end)):
        return None
    ahead = aim.at(end)
    threads.settle()
    before, after = (_judged(ahead, state) for state in (states.current, end))
    for state in (states.current, end):
        appraise(problem, state)
    return after if is_progress(before, after) else None


def _judged(problem: Problem, state: State) -> Standing:
    appraise(problem, state)
    return standing_of(problem, state)


def _start(aim: Aim, states: States) -> tuple[Problem, Standing]:
    """The problem that a round aims at from the placement of `states`, and how good that placement is."""
    problem = aim.at(states.current)
    if problem is not states.judged_by:
        states.appraise(problem)
    setting = problem.setting.copy()
    setting[SAME_RACK] = same_rack_only(problem, states.current)
    return problem._replace(setting=setting), standing_of(problem, states.current)


def _is_beyond(problem: Problem, state: State) -> bool:
    """Whether any active broker is beyond a hard limit that could be met."""
    return bool((broken_goals(problem, state) * hard_limits(problem)).any())


def _level(limits: Problem, target: State, seed: int, threads: Threads) -> None:
    """Bring brokers below hard limits, with the problem of these alone (`limits_alone`), in which `target` is appraised afterwards."""
    appraise(limits, target)
    balance(limits, target, seed, ROUNDS_OF_BALANCE, np.zeros(len(limits.goal), np.int64), True, threads)


def _placed_anyhow(problem: Problem, target: State, leaving: Rows, seed: int) -> tuple[Problem | None, Rows]:
    """Place replicas that `repair` found no room for, beyond hard limits. Returns the problem with these as wishes, None if none moved; and
    the partitions that were in crowded racks alone, int64."""
    wish = mending(problem, hard_limits(problem))
    if wish is problem or not undone(problem, target):
        return None, leaving[:0]
    before, before_lead = target.replicas.copy(), target.lead.copy()
    appraise(wish, target)
    placed = repair(wish, target, leaving, seed)
    appraise(problem, target)
    moved = differing(target.replicas, target.lead, before, before_lead)
    return wish if placed else None, np.setdiff1d(moved, leaving // before.shape[1])


def led_goals(problem: Problem, roles: np.ndarray) -> np.ndarray:
    """int64 [G]: 1 for goals on loads in which a leader costs another amount than a follower (`roles` int64 [C] is not 0), else 0."""
    return np.array([kind <= LIMIT and roles[column] > 0 for kind, column in problem.goal[:, [KIND, COLUMN]]], dtype=np.int64)
