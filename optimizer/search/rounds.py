"""Rounds of search: from a compiled problem to logs of acceptable actions.

A round looks for a target placement by potential, takes back what is not needed, puts the net changes into an order of acceptable
actions, and polishes. Rounds repeat until one finds nothing, and each is a function of the published placement alone, so planning
again on the result finds nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cluster_model.snapshot import BrokerState
from optimizer.options import PlanOptions, Watch
from optimizer.problem import (
    COLUMN,
    KIND,
    LIMIT,
    NO_RACK_GOAL,
    RACK_GOAL,
    SAME_RACK,
    STATE,
    Compiled,
    Problem,
)
from optimizer.search.align import align_slots, follow
from optimizer.search.appraise import appraise
from optimizer.search.balance import balance
from optimizer.search.bench import Bench, differing
from optimizer.search.conflicts import Reach
from optimizer.search.drain import drain, lead_leaderless, to_drain
from optimizer.search.fewer_moves import save_bytes, save_moves, shorten
from optimizer.search.handover import hand_over
from optimizer.search.homeward import send_home
from optimizer.search.ledger import Budget, Log, budget_for, copied, has_partitions, is_spent, plenty, written
from optimizer.search.merge import largest
from optimizer.search.polish import polish
from optimizer.search.published import Lists, published_changes
from optimizer.search.racks import mend_racks
from optimizer.search.reach import (
    beyond_limits,
    calmed,
    is_overloaded,
    keeps_a_limit_broken,
    with_firm_topics,
)
from optimizer.search.record import Record, record
from optimizer.search.relief import relieve_all
from optimizer.search.repack import repack
from optimizer.search.sequence import sequence
from optimizer.search.standing import (
    Standing,
    brings_nobody,
    count_low,
    is_clear_progress,
    is_progress,
    is_worthwhile,
    same_rack_only,
    standing_of,
)
from optimizer.search.state import COST, Rows, State
from optimizer.search.topics import spread_topics
from optimizer.search.trades import MOST_EXCHANGED, POLISH_ROOM, POLISH_STEPS, trade, trade_freely
from optimizer.search.trivial import leaves_trivial, without_trivial
from optimizer.threads import Threads

ROUNDS_OF_BALANCE = 400
FEW_MOVES = 0.05  # of all replicas: one round finds more
MOST_TARGETS = 8  # in one round
ENOUGH_BETTER = 0.8  # of the brokers out of band may be left after a target, for another
# How much more topic goals weigh while a target is looked for; searches take turns. Mostly bands of topics come before the middle of
# bands of loads, and what full topics leave is enough to fill a broker; where bands are narrow, some brokers need a way that breaks some.
FIRMNESS = (1000.0, 20.0)
MOST_ROUNDS = 200
# Up to so many replicas: so many seeds while somebody is out of band, how many in a row may bring nobody into it, and whether to go on
# from the first that finds anything instead of the best.
SEARCHES = ((100, 6, 6, False), (20_000, 3, 1, False), (200_000, 4, 4, True))
FEWER = 0.01  # of the repairs left that another seed has to do
SEED_STEP = 1_000_003
SEEDS = 2**62  # what is added to a seed on the way must fit into int64
MANY_CHANGES = 50_000
CALM_TURNS = 6  # rounds of balance where only swaps keep brokers at the ends of their bands; more are in vain and cost moves
HEAD_START = 20  # rounds of balance, in which brokers that cannot come under a limit shed what they can
BALANCE, PACKING, TRADES = 0, 1, 2  # what a round does for the last brokers, each once the one before it brings nothing


@dataclass(frozen=True)
class Round:
    """Actions of one round of search, on the lists of its start (broker rows, slots in published order)."""

    replicas: Rows
    lead: Rows
    log: Log
    record: Record
    changes: Lists


@dataclass(frozen=True)
class Chain:
    """Rounds from one placement until one was empty, where they lead, and how good that is (smaller is better)."""

    rounds: list[Round]
    replicas: Rows
    lead: Rows
    end: State
    budget: Budget
    undone: int  # repairs left
    low: int  # eligible brokers that are out of some goal
    violations: int
    potential: float

    @property
    def worth(self) -> tuple[int, int, int, float]:
        """Smaller is better."""
        return self.undone, self.low, self.violations, self.potential


@dataclass(frozen=True)
class Found:
    """What a search found, and the state it leads to (the slots of its lists in no particular order)."""

    rounds: list[Round]
    end: State
    stopped: bool = False  # before it was done, because the caller's watch said so


class Lookout:
    """Tells the caller's watch between phases, and keeps in mind that it said stop."""

    def __init__(self, watch: Watch | None) -> None:
        self._watch = watch
        self.stopped = False

    def tell(self, low: int) -> None:
        if self._watch is not None and not self.stopped:
            self.stopped = not self._watch(low)


def search(
    compiled: Compiled, options: PlanOptions, watch: Watch | None = None, bench: Bench | None = None, threads: Threads | None = None
) -> Found:
    """Rounds of actions until none of a few differently seeded searches finds any (or the budget is spent).

    Where the first search leaves nobody out of band there is no second; large problems get one only. `bench`, where given, stands at
    the placement of `compiled` with its loads; tasks beside may read it as long as it stands there.
    """
    threads = threads or Threads()
    problem = compiled.problem
    bench = Bench(problem, compiled.replicas, compiled.lead) if bench is None else bench
    if not len(compiled.replicas) or not (problem.broker[:, STATE] == BrokerState.ACTIVE).any():
        return Found([], bench.at(problem, compiled.replicas, compiled.lead))
    replicas, lead, budget = compiled.replicas, compiled.lead, budget_for(compiled, options)
    size, first_seed = compiled.replicas.size, options.seed if -SEEDS <= options.seed < SEEDS else options.seed % SEEDS
    tries, vain, at_once = (1, 1, False) if options.budgeted else next((rest for most, *rest in SEARCHES if size <= most), (1, 1, False))
    ways = FIRMNESS if tries > 1 and len(problem.topic_goal) else FIRMNESS[:1]
    tries, vain = tries * len(ways), vain * len(ways)
    rounds: list[Round] = []
    end: State | None = bench.begin
    lookout, reach = Lookout(watch), Reach(problem, compiled.replicas, compiled.lead)
    exhausted: tuple[int, Chain] | None = None  # the attempt that led here and finds nothing more
    for _ in range(MOST_ROUNDS):
        best: Chain | None = None
        since = 0  # attempts since one brought somebody into band, or was clearly better otherwise
        for attempt in range(tries):
            seed, firmness = first_seed + attempt // len(ways) * SEED_STEP, ways[attempt % len(ways)]
            if exhausted is not None and attempt == exhausted[0]:
                chain = exhausted[1]
            else:
                chain = _chain(compiled, reach, bench, replicas, lead, replace(options, seed=seed), budget, lookout, threads, firmness)
            since = 0 if best is None or _is_clearly_better(chain, best) else since + 1
            if best is None or chain.worth < best.worth or (at_once and chain.rounds):
                best, found = chain, attempt
            if chain.undone == chain.low == 0 or lookout.stopped or since >= vain or (at_once and chain.rounds):
                break
            if _is_hopeless(problem, bench.begin, chain.low):
                break
        if best is None or not best.rounds:
            end = None if tries > 1 and rounds else end
            break
        end = best.end if best is chain else None
        exhausted = found, replace(best, rounds=[])
        rounds.extend(best.rounds)
        replicas, lead, budget = best.replicas, best.lead, best.budget
        if tries == 1 or best.undone == best.low == 0 or lookout.stopped:
            break
    if end is None:
        threads.settle()
        end = bench.at(problem, replicas, lead)
    return Found(rounds, end, lookout.stopped)


def _is_clearly_better(one: Chain, other: Chain) -> bool:
    """Whether a chain leaves clearly fewer repairs undone than another; or no more, and fewer brokers out of band."""
    fewer = other.undone - one.undone
    return fewer > FEWER * other.undone or (fewer >= 0 and one.low < other.low)


def _is_hopeless(problem: Problem, state: State, low: int) -> bool:
    """Whether no effort brings anybody into band: all brokers are out, and together they may hold less than they do. Of few replicas
    all are tried, which takes milliseconds."""
    everybody = low == np.count_nonzero(problem.broker[:, STATE] == BrokerState.ACTIVE)
    return bool(everybody and state.replicas.size > SEARCHES[1][0] and is_overloaded(problem, state))


def _chain(
    compiled: Compiled, reach: Reach, bench: Bench, replicas: Rows, lead: Rows, options: PlanOptions, budget: Budget, lookout: Lookout,
    threads: Threads, firmness: float,
) -> Chain:  # fmt: skip
    """Rounds with one seed from the given lists, with more effort for the last brokers once a round brings nothing, and with less
    again once that brought something. Trades that are not worth their moves all in all are taken back with what led to them, and so is
    what would be gone on from without end, a little at a time.

    Where rounds leave nothing to be done, so that no search goes on from their end, the lists of the chain are not kept up.
    """
    budget = copied(budget)
    rounds: list[Round] = []
    end = bench.at(compiled.problem, replicas, lead)
    # Topics fill brokers in bands in many ways, so the next target brings most of those into band that one leaves out; where
    # replicas are many, a round in which brokers are packed takes too long for the few that it brings, one without topics packs only
    # first, and one after the first has to bring some.
    topics = len(compiled.problem.topic_goal) > 0
    many = replicas.size > SEARCHES[-1][0]
    efforts = ((BALANCE, TRADES) if many else (BALANCE, PACKING, TRADES)) if topics else (PACKING, TRADES)
    first, effort, traded = (replicas, lead, budget), efforts[0], False
    problem, reached = _start(compiled, reach, bench, False)
    began = reached
    lookout.tell(reached.low)
    while len(rounds) < MOST_ROUNDS and (reached.undone or reached.low) and not lookout.stopped:
        spent = copied(budget)
        if effort == TRADES:
            log, tried = trade(problem, bench, replicas, options, spent)
            seen = problem
        else:
            packing = effort == PACKING and not (many and rounds)
            log, tried, seen = _round(compiled, problem, bench, replicas, lead, options, spent, lookout, threads, firmness, packing)
            if seen is not problem:
                appraise(problem, tried)
        after = standing_of(problem, tried)
        if log.used[1] > MANY_CHANGES:  # the record will be large
            del tried
            bench.drop(1)
        worthy = is_clear_progress if effort == TRADES else is_progress
        in_vain = bool(rounds) and many and brings_nobody(reached, after)
        if log.used[0] == 0 or in_vain or not worthy(reached, after):
            if effort == efforts[-1] or not reached.low or options.budgeted or _is_hopeless(problem, bench.begin, reached.low):
                break
            effort = efforts[efforts.index(effort) + 1]
            problem, reached = _start(compiled, reach, bench, effort == TRADES)
            continue
        end = bench.spare(0)
        if seen is not problem:
            appraise(seen, end)
        scores = record(seen, end, log, options.acceptance == "potential")
        if seen is not problem:
            appraise(problem, end)
        changes = published_changes(compiled, replicas, lead, log)
        rounds.append(Round(replicas, lead, log, scores, changes))
        reached, budget, traded, effort = after, spent, traded or effort == TRADES, efforts[0]
        if is_spent(problem, budget):
            break
        if reached.undone or reached.low:
            rows = log.partition[: log.used[1]]
            replicas, lead = replicas.copy(), lead.copy()
            replicas[rows], lead[rows] = changes.after, changes.lead_after  # of a partition's several, the last stays
            threads.settle()
            end = bench.at(compiled.problem, replicas, lead, np.unique(rows))
            problem, reached = _start(compiled, reach, bench, False)
    again = SEARCHES[1][0] < replicas.size <= SEARCHES[-1][0] and not options.budgeted and not lookout.stopped
    ended = _start(compiled, reach, bench, False)[1] if rounds and reached.low and (traded or again) else reached
    if reached.low and ((traded and not is_clear_progress(began, ended)) or (again and rounds and not is_worthwhile(began, ended))):
        replicas, lead, budget = first
        rounds, reached, end = [], began, bench.at(compiled.problem, replicas, lead)
    elif problem.table is not compiled.problem.table or problem.force is not compiled.problem.force:
        appraise(compiled.problem, end)
    potential = float(end.score[compiled.problem.broker[:, STATE] == BrokerState.ACTIVE, COST].sum())
    return Chain(rounds, replicas, lead, end, budget, reached.undone, reached.low, reached.violations, potential)


def _start(compiled: Compiled, reach: Reach, bench: Bench, calm: bool) -> tuple[Problem, Standing]:
    """The problem as a round sees it from where `bench` stands, and how good that is; `calm`: the middle of a band weighs little."""
    problem = reach.at(bench.begin)
    if calm and not is_calm(compiled, problem):
        problem = calmed(problem)
    if problem is not bench.judged_by:
        bench.appraise(problem)
    setting = problem.setting.copy()
    setting[SAME_RACK] = same_rack_only(problem, bench.begin)
    return problem._replace(setting=setting), standing_of(problem, bench.begin)


def _round(
    compiled: Compiled, problem: Problem, bench: Bench, replicas: Rows, lead: Rows, options: PlanOptions, budget: Budget,
    lookout: Lookout, threads: Threads, firmness: float, packing: bool,
) -> tuple[Log, State, Problem]:  # fmt: skip
    """One search from the given lists, at which `bench` stands; its log, the state it leads to, and the problem by which it was judged.
    With `packing`, the last brokers out of band are packed anew, as long as that brings some into it. Where the middle of a band weighs
    little, swaps take the place of most rounds of balance.

    A target by potential, sent home where possible, is put in acceptable order; what the order leaves undone is the start of the
    next target, as long as brokers come into band by it; the rest is polished.
    """
    by_potential = options.acceptance == "potential"
    target, standing = bench.spare(0), bench.begin  # which stays as it is until something is put in order
    log = bench.log(replicas.size + POLISH_ROOM)
    lead_leaderless(problem, target)
    drain(problem, target, to_drain(problem, standing, compiled.leading), options.seed)
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        mend_racks(problem, target, options.seed)
    if options.budgeted:  # repairs by themselves, so that the budget is spent on them first
        standing = bench.spare(1)
        align_slots(problem, target, replicas, differing(target.replicas, target.lead, replicas, lead, target))
        pending = differing(target.replicas, target.lead, replicas, lead, target)
        sequence(problem, standing, budget, log, pending, target.replicas, target.lead, by_potential, threads)
        follow(problem, target, standing, pending)
    calm = is_calm(compiled, problem) and not options.budgeted
    low, roles = len(problem.broker) + 1, _led_goals(problem, compiled.roles)
    firm, enough = with_firm_topics(problem, firmness), plenty(problem, budget)
    begun, cut, marks, most_held = int(log.used[0]), False, bench.topics_out(problem), None
    for turn in range(0 if is_spent(problem, budget) else MOST_TARGETS):
        seed = options.seed + turn
        if len(problem.topic_goal):
            spread_topics(firm, target, seed, False, marks)
        turns = 1 if enough < FEW_MOVES * replicas.size else ROUNDS_OF_BALANCE
        if turn == 0 and keeps_a_limit_broken(problem, target):
            # Who can shed no more, and is still beyond a limit, is the best partner of nobody from then on.
            balance(firm, target, seed, min(turns, CALM_TURNS if calm else HEAD_START), roles, True, threads)
            problem = beyond_limits(problem, target)
            standing = bench.spare(1) if standing is bench.begin else standing
            appraise(problem, target)
            appraise(problem, standing)
            firm = with_firm_topics(problem, firmness)
        balance(firm, target, seed, min(turns, CALM_TURNS) if calm else turns, roles, True, threads)
        threads.begin()  # from here on little is shared
        if calm and count_low(problem, target):
            trade_freely(problem, target, seed)
        if len(problem.topic_goal):
            spread_topics(firm, target, seed, True, marks)
        packing = packing and repack(problem, target, seed) > 0
        away = differing(target.replicas, target.lead, replicas, lead, target)
        align_slots(problem, target, replicas, away)
        moved = differing(target.replicas, target.lead, standing.replicas, standing.lead, target, standing)
        order = moved[np.argsort(-problem.size[moved], kind="stable")]
        send_home(problem, target, replicas, lead, order)
        level = not count_low(problem, target)  # while anybody is out, the room left in bands may still be needed
        if not problem.size.any():  # storage is shared: a move costs what any other does
            most_held = largest(problem, replicas) if most_held is None else most_held
            save_moves(problem, target, standing, replicas, lead, moved, most_held)
        elif level:
            save_bytes(problem, target, replicas, lead, order)
        if level:
            shorten(problem, target, replicas, lead, order, len(away))
        moved = differing(target.replicas, target.lead, standing.replicas, standing.lead, target, standing)
        align_slots(problem, target, standing.replicas, moved)
        to, to_lead = without_trivial(compiled, problem, replicas, lead, target)
        pending = differing(to, to_lead, standing.replicas, standing.lead, target, standing)
        cut = 2 * len(pending) >= enough
        if standing is bench.begin:
            standing = bench.spare(1)
        if len(pending):
            sequence(problem, standing, budget, log, pending, to, to_lead, by_potential, threads)
        follow(problem, target, standing, pending)
        left, low = low, count_low(problem, standing)
        lookout.tell(low)
        if lookout.stopped:
            return written(log), standing, problem
        if low == 0 or low > ENOUGH_BETTER * left or not len(pending) or options.budgeted:
            break
    if is_spent(problem, budget):
        if not has_partitions(budget):
            return written(log), standing, problem
        hand_over(firm, target, roles)
        to, to_lead = without_trivial(compiled, problem, replicas, lead, target)
        pending = differing(to, to_lead, standing.replicas, standing.lead, target, standing)
        if len(pending):
            sequence(problem, standing, budget, log, pending, to, to_lead, by_potential, threads)
    elif cut and log.used[0] > begun:
        pass  # the next round has a target for what is left of the budget
    elif leaves_trivial(compiled):
        relieve_all(problem, standing, budget, log, by_potential)
    else:
        polish(problem, standing, budget, log, options.seed, by_potential, POLISH_STEPS, MOST_EXCHANGED)
    return written(log), standing, problem


def is_calm(compiled: Compiled, problem: Problem) -> bool:
    """Whether the middle of a band weighs little."""
    return problem.force is not compiled.problem.force


def _led_goals(problem: Problem, roles: np.ndarray) -> np.ndarray:
    """int64 [G]: goals on loads in which a leader costs another amount than a follower, which `roles` says of each column."""
    return np.array(
        [kind <= LIMIT and roles[column] > 0 for kind, column in problem.goal[:, [KIND, COLUMN]]],
        dtype=np.int64,
    )
