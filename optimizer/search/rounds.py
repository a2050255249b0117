"""Rounds of search: from a compiled problem to logs of acceptable actions.

A round looks for a target placement by potential, takes back what is not needed, puts the net changes into an order of acceptable
actions, and polishes. Rounds repeat until one finds nothing, and each is a function of the published placement alone, so planning
again on the result finds nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState
from goals.model import UsageDistribution
from optimizer.options import PlanOptions
from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    NO_RACK_GOAL,
    RACK_GOAL,
    SAME_RACK,
    SIZE,
    STATE,
    Compiled,
    Problem,
    same_rack_only,
)  # fmt: skip
from optimizer.search.balance import balance
from optimizer.search.polish import polish
from optimizer.search.record import Record, record
from optimizer.search.repair import drain, lead_leaderless, mend_racks
from optimizer.search.sequence import Budget, Log, align_slots, empty_log, send_home, sequence
from optimizer.search.state import COST, RACKS, State, build_state

Rows = npt.NDArray[np.int64]

ROUNDS_OF_BALANCE = 400
MOST_ROUNDS = 200
SEARCHES = ((400, 6), (1_200, 3))  # up to so many replicas: so many seeds while somebody is out of band
SEED_STEP = 1_000_003
LEAST_PROGRESS = 0.01  # of the potential of the brokers it changes: a round that brings less is not worth its moves
POLISH_ROOM = 20_000  # changes
POLISH_STEPS = 1500  # of annealing, for one attempt
MOST_EXCHANGED = 24  # brokers


@dataclass(frozen=True)
class Lists:
    """Replica lists (int64 [n, R], broker rows) and leader positions of changes, before and after, in published order."""

    before: Rows
    lead_before: Rows
    after: Rows
    lead_after: Rows


@dataclass(frozen=True)
class Round:
    """Actions of one round of search, on the lists of its start (broker rows, slots in published order)."""

    replicas: Rows
    lead: Rows
    log: Log
    record: Record
    changes: Lists
    after: Rows
    lead_after: Rows


@dataclass(frozen=True)
class Chain:
    """Rounds from one placement until one was empty, where they lead, and how good that is (smaller is better)."""

    rounds: list[Round]
    replicas: Rows
    lead: Rows
    budget: Budget
    undone: int  # replicas on dead and draining brokers, and in crowded racks
    low: int  # eligible brokers that score below 1 in some goal
    potential: float


def search(compiled: Compiled, options: PlanOptions) -> list[Round]:
    """Rounds of actions until none of a few differently seeded searches finds any (or the budget is spent).

    Where the first search leaves nobody out of band there is no second; large problems get one only.
    """
    problem = compiled.problem
    if not len(compiled.replicas) or not (problem.broker[:, STATE] == BrokerState.ACTIVE).any():
        return []
    replicas, lead, budget = compiled.replicas, compiled.lead, _budget(compiled, options)
    size = compiled.replicas.size
    tries = 1 if options.budgeted else next((n for most, n in SEARCHES if size <= most), 1)
    rounds: list[Round] = []
    exhausted = -1  # the attempt that led here and finds nothing more
    for _ in range(MOST_ROUNDS):
        best: Chain | None = None
        for attempt in range(tries):
            if attempt == exhausted:
                continue
            seed = options.seed + attempt * SEED_STEP
            chain = _chain(compiled, replicas, lead, replace(options, seed=seed), budget)
            if best is None or (chain.undone, chain.low, chain.potential) < (best.undone, best.low, best.potential):
                best, found = chain, attempt
            if chain.undone == chain.low == 0:
                break
        if best is None or not best.rounds:
            break
        exhausted = found
        rounds.extend(best.rounds)
        replicas, lead, budget = best.replicas, best.lead, best.budget
        if tries == 1 or best.undone == best.low == 0:
            break
    return rounds


def _chain(compiled: Compiled, replicas: Rows, lead: Rows, options: PlanOptions, budget: Budget) -> Chain:
    """Rounds with one seed from the given lists."""
    problem = compiled.problem
    budget = budget._replace(spent=budget.spent.copy(), touched=budget.touched.copy())
    rounds: list[Round] = []
    for _ in range(MOST_ROUNDS):
        setting = problem.setting.copy()
        setting[SAME_RACK] = same_rack_only(problem, replicas)
        problem = problem._replace(setting=setting)
        spent = budget._replace(spent=budget.spent.copy(), touched=budget.touched.copy())
        log = _round(compiled, problem, replicas, lead, options, spent)
        state = build_state(problem, replicas, lead)
        if log.used[0] == 0:
            break
        start = _standing(problem, state)
        scores = record(problem, state, log, options.acceptance == "potential")
        if not _is_progress(start, _standing(problem, state)):
            state = build_state(problem, replicas, lead)
            break
        budget = spent
        changes = published_changes(compiled, replicas, lead, log)
        after, lead_after = replicas.copy(), lead.copy()
        rows = log.partition[: log.used[1]]
        after[rows], lead_after[rows] = changes.after, changes.lead_after  # of a partition's several, the last stays
        rounds.append(Round(replicas, lead, log, scores, changes, after, lead_after))
        replicas, lead = after, lead_after
    end = _standing(problem, state)
    return Chain(rounds, replicas, lead, budget, end.undone, end.low, float(end.potential.sum()))


class Standing(NamedTuple):
    """How good a placement is: repairs left, eligible brokers that score low, and float64 [n] their potential."""

    undone: int
    low: int
    potential: npt.NDArray[np.float64]


def _standing(problem: Problem, state: State) -> Standing:
    states = problem.broker[:, STATE]
    active = states == BrokerState.ACTIVE
    leaving = (states == BrokerState.DEAD) | (states == BrokerState.DRAINING)
    return Standing(
        undone=int(state.hosts[leaving].sum()) + int(state.units[RACKS].sum()) + int((state.lead < 0).sum()),
        low=int((state.score[active, :COST] < 1.0).any(axis=1).sum()),
        potential=state.score[active, COST].copy(),
    )


def _is_progress(before: Standing, after: Standing) -> bool:
    """Whether a round is worth its moves: it repairs, brings brokers into band, or clearly lowers the potential."""
    if after.undone < before.undone or after.low < before.low:
        return True
    changed = before.potential != after.potential
    least = LEAST_PROGRESS * float(before.potential[changed].sum())
    return float((before.potential - after.potential)[changed].sum()) > least


def published_changes(compiled: Compiled, replicas: Rows, lead: Rows, log: Log) -> Lists:
    """Lists of every change of a log in the order they are published, from the lists `replicas` and `lead` of its start.

    Brokers keep their places, a new one takes the place of the one it replaces, and a new leader goes to the front. A partition
    that comes back to the brokers and the leader it had when the plan began gets the list it had then.
    """
    count = int(log.used[1])
    rows, slots, slot_leads = log.partition[:count], log.replicas[:count], log.lead[:count]
    before, lead_before = replicas[rows], lead[rows]
    after, lead_after = before.copy(), lead_before.copy()
    previous: dict[int, int] = {}
    for i in range(count):
        p = int(rows[i])
        earlier = previous.get(p)
        old_slots = replicas[p] if earlier is None else slots[earlier]
        if earlier is not None:
            before[i], lead_before[i] = after[earlier], lead_after[earlier]
        previous[p] = i
        current = before[i]
        moved = old_slots != slots[i]
        if moved.any():
            replaced = dict(zip(old_slots[moved].tolist(), slots[i][moved].tolist(), strict=True))
            current = np.array([replaced.get(b, b) for b in current.tolist()])
        leader = slots[i][slot_leads[i]] if slot_leads[i] >= 0 else -1
        old_leader = before[i][lead_before[i]] if lead_before[i] >= 0 else -1
        if leader >= 0 and leader != old_leader:
            current = np.concatenate([[leader], current[current != leader]])
        home, home_lead = compiled.replicas[p], int(compiled.lead[p])
        if home_lead >= 0 and leader == home[home_lead] and (home_lead == 0 or leader == old_leader):
            current = home if set(home.tolist()) == set(current.tolist()) else current
        after[i] = current
        lead_after[i] = int(np.flatnonzero(current == leader)[0]) if leader >= 0 else -1
    return Lists(before, lead_before, after, lead_after)


def _round(
    compiled: Compiled, problem: Problem, replicas: Rows, lead: Rows, options: PlanOptions, budget: Budget
) -> Log:
    """One search from the given lists: a target by potential, sent home where possible, put in acceptable order, polished."""
    by_potential = options.acceptance == "potential"
    state = build_state(problem, replicas, lead)
    lead_leaderless(problem, state)
    drain(problem, state, _to_drain(problem, replicas), options.seed)
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        mend_racks(problem, state)
    balance(problem, state, options.seed, ROUNDS_OF_BALANCE, _roles(problem))
    target, target_lead = align_slots(replicas, state.replicas, state.lead)
    state = build_state(problem, target, target_lead)
    moved = np.flatnonzero((target != replicas).any(axis=1) | (target_lead != lead)).astype(np.int64)
    order = moved[np.argsort(-problem.haul[moved, SIZE], kind="stable")]
    send_home(problem, state, replicas, lead, order)
    target, target_lead = align_slots(replicas, state.replicas, state.lead)
    target, target_lead = _without_trivial(compiled, problem, replicas, lead, target, target_lead)
    pending = np.flatnonzero((target != replicas).any(axis=1) | (target_lead != lead)).astype(np.int64)
    state = build_state(problem, replicas, lead)
    log = empty_log(replicas.shape[1], len(pending) + POLISH_ROOM)
    if len(pending):
        sequence(problem, state, budget, log, pending, target, target_lead, by_potential)
    if not any(isinstance(g, UsageDistribution) and g.trivial_change > 0 for g in compiled.goals):
        polish(problem, state, budget, log, options.seed, by_potential, POLISH_STEPS, MOST_EXCHANGED)
    return log


def _to_drain(problem: Problem, replicas: Rows) -> np.ndarray:
    """int64 entries of replicas on dead, then draining brokers, largest single component first."""
    states = np.where(replicas >= 0, problem.broker[np.maximum(replicas, 0), STATE], -1)
    total = problem.vector.max(axis=1).sum(axis=0)
    share = (problem.vector[:, LEADING] / np.where(total > 0, total, 1.0)).max(axis=1)
    entries = []
    for kind in (BrokerState.DEAD, BrokerState.DRAINING):
        p, s = np.nonzero(states == kind)
        order = np.argsort(-share[p], kind="stable")
        entries.append((p * replicas.shape[1] + s)[order])
    return np.concatenate(entries).astype(np.int64)


def _roles(problem: Problem) -> np.ndarray:
    """int64 [G]: goals on loads in which a leader costs another amount than a follower."""
    differs = (problem.vector[:, LEADING] != problem.vector[:, FOLLOWING]).any(axis=0)
    return np.array(
        [kind <= LIMIT and bool(differs[column]) for kind, column in problem.goal[:, [KIND, COLUMN]]],
        dtype=np.int64,
    )


def _without_trivial(
    compiled: Compiled, problem: Problem, replicas: Rows, lead: Rows, target: Rows, target_lead: Rows
) -> tuple[Rows, Rows]:
    """The target without the changes of brokers whose net change is below `trivial_change` in every goal that has one."""
    limits = [
        (g, goal.trivial_change)
        for g, goal in enumerate(compiled.goals)
        if isinstance(goal, UsageDistribution) and goal.trivial_change > 0
    ]
    if not limits:
        return target, target_lead
    target, target_lead = target.copy(), target_lead.copy()
    for _ in range(replicas.shape[0] + 1):
        changed = np.flatnonzero((target != replicas).any(axis=1) | (target_lead != lead))
        before = build_state(problem, replicas, lead).load
        after = build_state(problem, target, target_lead).load
        net = np.abs(after - before)
        trivial = problem.broker[:, STATE] == BrokerState.ACTIVE
        for g, share in limits:
            trivial &= net[:, problem.goal[g, COLUMN]] < share * problem.table[:, g, MEAN]
        dropped = [
            p
            for p in changed
            if _is_trivial(problem, trivial, replicas[p], lead[p], target[p], target_lead[p])
        ]
        if not dropped:
            break
        target[dropped], target_lead[dropped] = replicas[dropped], lead[dropped]
    return target, target_lead


def _is_trivial(
    problem: Problem, trivial: np.ndarray, before: Rows, lead: int, after: Rows, lead_after: int
) -> bool:
    """Whether a change touches a trivially changed broker and takes nothing off a dead or draining one."""
    touched = {int(b) for b in np.concatenate([before[before != after], after[before != after]])}
    if lead != lead_after:
        touched |= {int(before[lead]) if lead >= 0 else -1, int(after[lead_after])}
    touched.discard(-1)
    if lead < 0 or any(problem.broker[b, STATE] in (BrokerState.DEAD, BrokerState.DRAINING) for b in touched):
        return False
    return any(trivial[b] for b in touched)


def _budget(compiled: Compiled, options: PlanOptions) -> Budget:
    limits = [
        -1.0 if x is None else float(x)
        for x in (options.max_moves, options.max_bytes, options.max_partitions)
    ]
    return Budget(
        limits=np.array(limits),
        spent=np.zeros(3),
        home=compiled.replicas.copy(),
        home_lead=compiled.lead.copy(),
        touched=np.zeros(len(compiled.lead), np.int64),
    )
