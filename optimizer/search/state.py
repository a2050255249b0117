"""The one mutable state of a search: placement, broker loads, replica lists, cached scores.

`shift` changes placement and sums only and is its own inverse with the old values, bit for bit, because loads lie on a grid on
which addition is exact. `commit` also keeps the replica lists and caches. Every kernel that changes anything goes through these.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cluster_model.compiled import inner, inner_as, kernel, kernel_as, whole
from goals.score import distribution_score, limit_score, units_score
from optimizer.problem import (
    ABSOLUTE,
    BOUND,
    CEILING,
    COLUMN,
    COUNTS_LEADERS,
    DISTRIBUTION,
    FOLLOWING,
    HARD,
    HIGH,
    KIND,
    LEADING,
    LIMIT,
    LOW,
    MEAN,
    MIN_LOAD,
    NO_RACK_GOAL,
    RACK,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    SCALE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    TOPIC_BOUND,
    TOPIC_GAP,
    TOPIC_OF,
    TOPIC_ROW,
    VAR,
    Problem,
)
from optimizer.search import uncompiled


class State(NamedTuple):
    """B brokers, P partitions, R replica slots, C columns, G goals, K topic goals.

    A slot keeps its place in the list while brokers change; the published order of a list is made from slots at the end. An
    entry of `hosted` is ``partition * R + slot``.
    """

    replicas: np.ndarray  # int64 [P, R], broker row or -1
    lead: np.ndarray  # int64 [P], slot, -1 none
    home: np.ndarray  # int64 [P, R], where the replicas were when the state was built
    place: np.ndarray  # int32 [P, R], index in `hosted`
    hosted: np.ndarray  # int32 [B, n], first `hosts[b]` of each row
    mark: np.ndarray  # uint8 [B, n], of each entry of `hosted`: LED, STRAY
    hosts: np.ndarray  # int64 [B]
    load: np.ndarray  # float64 [B, C]
    units: (
        np.ndarray
    )  # float64 [K + 1, B], misplaced replicas by topic goal; last row: replicas in over-full racks
    topic_count: np.ndarray  # uint16 [n, B, K], of the topics that are counted: replicas or leaders on each broker, by topic goal
    score: np.ndarray  # float64 [B, G + 1], broker scores; last: the broker's part of the potential
    stamp: np.ndarray  # int64 [B + 1], marks; the last counts
    touched: np.ndarray  # int64 [n], scratch
    old: np.ndarray  # int64 [8, R + 1], scratch: replicas and leader slot
    fresh: np.ndarray  # float64 [n, G + 1], scratch: as `score`
    dirty: np.ndarray  # uint8 [B], 1 where a commit changed the replica list of the broker since the state was built
    trail: np.ndarray  # int64 [n], first how many commits there were since, then their partitions as far as there is room


MAX_CHANGES = 8
LIST_STEP = 512  # entries
TRAIL = 16_384  # commits
LED, STRAY = 1, 2  # the replica leads its partition; it is not where it was when the state was built
COST, RACKS, LEAD = (
    -1,
    -1,
    -1,
)  # last column of `score` and `fresh`, last row of `units`, last column of `old`


def build_state(problem: Problem, replicas: np.ndarray, lead: np.ndarray) -> State:
    """A state at the given placement. Lists are in partition order, so equal placements give equal states.

    O(B + P R). `replicas` int64 [P, R] and `lead` int64 [P] are copied, and `replicas` kept as `home`: it must not change.
    """
    brokers, partitions = len(problem.broker), len(replicas)
    slots = replicas.shape[1] if replicas.ndim == 2 else 1
    counts = (
        np.bincount(replicas[replicas >= 0], minlength=brokers) if partitions else np.zeros(brokers, np.int64)
    )
    room = list_room(problem, counts, partitions, slots)
    goals, topic_goals = len(problem.goal), len(problem.topic_goal)
    scratch = 2 * slots * MAX_CHANGES + 2
    topics = int(problem.topic_counted.max(initial=-1)) + 1 if topic_goals else 0
    state = State(
        replicas=np.array(replicas, dtype=np.int64, order="C"),
        lead=np.array(lead, dtype=np.int64),
        home=np.ascontiguousarray(replicas, dtype=np.int64),
        place=np.zeros((partitions, slots), np.int32),
        hosted=np.zeros((brokers, max(room, 1)), np.int32),
        mark=np.zeros((brokers, max(room, 1)), np.uint8),
        hosts=np.zeros(brokers, np.int64),
        load=np.zeros((brokers, problem.vector.shape[2])),
        units=np.zeros((topic_goals + 1, brokers)),
        topic_count=np.zeros((topics, brokers, topic_goals), np.uint16),
        score=np.ones((brokers, goals + 1)),
        stamp=np.zeros(brokers + 1, np.int64),
        touched=np.zeros(scratch, np.int64),
        old=np.zeros((MAX_CHANGES, slots + 1), np.int64),
        fresh=np.ones((scratch, goals + 1)),
        dirty=np.zeros(brokers, np.uint8),
        trail=np.zeros(TRAIL + 1, np.int64),
    )
    fill(problem, state)
    return state


def list_room(problem: Problem, hosts: np.ndarray, partitions: int, slots: int) -> int:
    """How long replica lists can get; `hosts` int64 [B] is how long they are. Rounded, so that it seldom changes with them."""
    eligible = max(int((problem.broker[:, STATE] == 0).sum()), 1)
    most = int(hosts.max(initial=0))
    roomy = max(most + most // 4, 3 * int(hosts.sum()) // eligible) + 64
    roomy = -(-roomy // LIST_STEP) * LIST_STEP
    room = min(partitions, roomy) if len(hosts) * partitions > 4_000_000 else partitions
    return room + slots  # while slots trade places, a list holds a partition more than once


def copy_state(state: State) -> State:
    """The same state to go on from elsewhere; cheaper than building it."""
    return State(*[column if name == "home" else column.copy() for name, column in state._asdict().items()])


@kernel_as(uncompiled.fill)
def fill(problem: Problem, state: State) -> None:
    """Replica lists, loads, counts and caches of a state whose placement is set."""
    partitions, slots = state.replicas.shape
    for p in range(partitions):
        for s in range(slots):
            b = state.replicas[p, s]
            if b >= 0:
                role = 0 if state.lead[p] == s else 1
                for c in range(state.load.shape[1]):
                    state.load[b, c] += problem.vector[p, role, c]
                state.place[p, s] = state.hosts[b]
                state.hosted[b, state.hosts[b]] = p * slots + s
                state.mark[b, state.hosts[b]] = LED if state.lead[p] == s else 0
                state.hosts[b] += 1
        if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
            rack_units(problem, state, p, 1.0)
    for k in range(len(problem.topic_goal)):
        count_topics(problem, state, k)
    for b in range(len(state.hosts)):
        state.score[b, COST] = assess(problem, state, b, state.score[b])


@inner
def count_topics(problem: Problem, state: State, k: int) -> None:
    """Counts of the counted topics, and units of all brokers, of topic goal `k`. O(P R), and O(B) for a topic that all must hold."""
    brokers, slots = len(state.hosts), state.replicas.shape[1]
    count, holders = np.zeros(brokers, np.int64), np.zeros(brokers, np.int64)
    most = largest_share(problem, k)
    for t in range(len(problem.topic_first) - 1):
        found = 0
        for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
            for s in range(slots):
                b = state.replicas[p, s]
                if b >= 0 and (problem.topic_goal[k, COUNTS_LEADERS] == 0 or state.lead[p] == s):
                    if count[b] == 0:
                        holders[found] = b
                        found += 1
                    count[b] += 1
        column = problem.topic_counted[t]
        for i in range(found):
            b = holders[i]
            if column >= 0:
                state.topic_count[column, b, k] = count[b]
            if problem.broker[b, STATE] == 0:
                state.units[k, b] += outside(problem, k, t, b, count[b])
        if wanted_by_all(problem, k, t, most):
            for b in range(brokers):
                if problem.broker[b, STATE] == 0 and count[b] == 0:
                    state.units[k, b] += outside(problem, k, t, b, whole(0))
        for i in range(found):
            count[holders[i]] = 0


@inner
def largest_share(problem: Problem, k: int) -> float:
    """The largest part of a topic that a broker should have, in the units of `topic_share`."""
    most = 0.0
    for b in range(len(problem.broker)):
        most = max(most, problem.topic_share[k, b])
    return most


@inner
def wanted_by_all(problem: Problem, k: int, t: int, most: float) -> bool:
    """Whether a broker of share `most`, the largest, misses topic `t` when it holds none of it."""
    level = problem.topic_total[k, t] * most / problem.topic_share[k, -1]
    row = problem.topic_goal[k, TOPIC_ROW]
    return bool(level * (1.0 - problem.force[row, TOPIC_BOUND]) >= 1.0 and level - problem.force[row, TOPIC_GAP] >= 1.0)


@inner
def topic_holds(problem: Problem, state: State, k: int, t: int, b: int) -> int:
    """Replicas (or leaders) of topic `t` on broker `b`, as topic goal `k` counts them."""
    column = problem.topic_counted[t]
    if column >= 0:
        return int(state.topic_count[column, b, k])
    count = whole(0)
    if problem.topic_goal[k, COUNTS_LEADERS] == 1:
        for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
            if state.lead[p] >= 0 and state.replicas[p, state.lead[p]] == b:
                count += 1
    else:
        for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
            for s in range(state.replicas.shape[1]):
                if state.replicas[p, s] == b:
                    count += 1
    return int(count)


@inner
def topic_rise(problem: Problem, state: State, k: int, t: int, b: int, by: int) -> float:
    """By how much the misplaced replicas (or leaders) of broker `b` rise with `by` more of topic `t`; 0 where it is not judged."""
    if problem.broker[b, STATE] != 0:
        return 0.0
    count = topic_holds(problem, state, k, t, b)
    low, high = topic_band(problem, k, t, b)
    return float(max(low - count - by, 0, count + by - high) - max(low - count, 0, count - high))


@inner_as(uncompiled.rack_units)
def rack_units(problem: Problem, state: State, p: int, sign: float) -> int:
    """Excess of the partition over its racks; adds `sign` to each broker that holds it in an over-full rack."""
    slots = state.replicas.shape[1]
    excess = 0
    for s in range(slots):
        b = state.replicas[p, s]
        if b < 0:
            continue
        same, first = 0, True
        for o in range(slots):
            other = state.replicas[p, o]
            if other >= 0 and problem.broker[other, RACK_OF] == problem.broker[b, RACK_OF]:
                same += 1
                if o < s:
                    first = False
        if same > problem.partition[p, RACK_LIMIT]:
            state.units[RACKS, b] += sign
            if first:
                excess += same - problem.partition[p, RACK_LIMIT]
    return excess


@inner
def topic_level(problem: Problem, k: int, t: int, b: int) -> float:
    """Replicas (or leaders) of topic `t` that broker `b` should have; in this order of operations, which decides edges."""
    return float(problem.topic_total[k, t] * problem.topic_share[k, b] / problem.topic_share[k, -1])


@inner
def topic_band(problem: Problem, k: int, t: int, b: int) -> tuple[int, int]:
    """The fewest and the most replicas (or leaders) of topic `t` with which broker `b` scores 1; the fewest may be below 0."""
    mean, row = topic_level(problem, k, t, b), problem.topic_goal[k, TOPIC_ROW]
    bound, gap = problem.force[row, TOPIC_BOUND], int(problem.force[row, TOPIC_GAP])
    low = min(math.floor(mean * (1.0 - bound)), math.floor(mean) - gap)
    high = max(math.ceil(mean * (1.0 + bound)), math.ceil(mean) + gap)
    return low, high


@inner
def outside(problem: Problem, k: int, t: int, b: int, count: int) -> float:
    """Replicas (or leaders) of topic `t` on broker `b` beyond its band."""
    low, high = topic_band(problem, k, t, b)
    return float(max(low - count, 0, count - high))


@inner_as(uncompiled.assess)
def assess(problem: Problem, state: State, b: int, score: np.ndarray) -> float:
    """Scores of broker `b` in every goal into `score`; returns its part of the potential."""
    cost = 0.0
    eligible = problem.broker[b, STATE] == 0
    for g in range(len(problem.goal)):
        kind = problem.goal[g, KIND]
        if kind == DISTRIBUTION:
            if not eligible:
                score[g] = 1.0
                continue
            load = state.load[b, problem.goal[g, COLUMN]]
            score[g] = distribution_score(
                load, problem.table[b, g, MEAN], problem.table[b, g, BOUND], problem.table[b, g, VAR],
                problem.goal[g, ABSOLUTE] == 1, problem.force[g, MIN_LOAD],
            )  # fmt: skip
            cost += linear_cost(problem, b, g, load)
        elif kind == LIMIT:
            load = state.load[b, problem.goal[g, COLUMN]]
            score[g] = limit_score(load, problem.table[b, g, CEILING])
            cost += linear_cost(problem, b, g, load)
        elif kind == RACK:
            score[g] = units_score(state.units[RACKS, b])
        else:
            units = state.units[problem.goal[g, COLUMN], b]
            score[g] = units_score(units)
            if eligible:
                cost += problem.force[g, STRENGTH] * units
    return cost


@inner_as(uncompiled.linear_cost)
def linear_cost(problem: Problem, b: int, g: int, load: float) -> float:
    """Part of the potential that broker `b` has in the linear goal `g` at `load`."""
    over = load - problem.table[b, g, HIGH]
    under = problem.table[b, g, LOW] - load
    beyond = over if over > 0.0 else (under if under > 0.0 else 0.0)
    scale = problem.table[b, g, SCALE]
    beyond *= scale
    off = (load - problem.table[b, g, MEAN]) * scale
    square = beyond * beyond
    return float(
        problem.force[g, STRENGTH] * square * (1.0 + STEEP * square) + problem.force[g, SPREAD] * off * off
    )


@inner
def shift(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> int:
    """Put partition `p` on `replicas` (int64 [R]) led by slot `lead`: placement, counts and sums only.

    Returns by how much the partition's rack excess changes. Calling it again with the old values undoes it exactly.
    """
    for k in range(len(problem.topic_goal)):
        recount(problem, state, k, p, replicas, lead, 1.0, True)
    return carry(problem, state, p, replicas, lead)


@inner_as(uncompiled.carry)
def carry(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> int:
    """As `shift`, without what topic goals count."""
    slots = state.replicas.shape[1]
    old_lead = state.lead[p]
    columns = state.load.shape[1]
    excess = 0
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        excess -= rack_units(problem, state, p, -1.0)
    for s in range(slots):
        old, new = state.replicas[p, s], replicas[s]
        if old < 0 or (old == new and (s == old_lead) == (s == lead)):
            continue
        for c in range(columns):
            state.load[old, c] -= (
                problem.vector[p, LEADING, c] if s == old_lead else problem.vector[p, FOLLOWING, c]
            )
            state.load[new, c] += (
                problem.vector[p, LEADING, c] if s == lead else problem.vector[p, FOLLOWING, c]
            )
    for s in range(slots):
        state.replicas[p, s] = replicas[s]
    state.lead[p] = lead
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        excess += rack_units(problem, state, p, 1.0)
    return excess


@inner
def recount(
    problem: Problem, state: State, k: int, p: int, replicas: np.ndarray, lead: int, sign: float, counts: bool
) -> None:
    """Units, and `counts`, of topic goal `k` for partition `p`, which still stands where it did, at `replicas` led by `lead`.

    Without counts, a second call with `sign` -1 takes the units back; one partition's change meets each count only once, so they
    come out the same.
    """
    slots = state.replicas.shape[1]
    if problem.topic_goal[k, COUNTS_LEADERS] == 1:
        giver = state.replicas[p, state.lead[p]] if state.lead[p] >= 0 else -1
        taker = replicas[lead] if lead >= 0 else -1
        if giver != taker:
            if giver >= 0:
                count_one(problem, state, k, p, giver, whole(-1), sign, counts)
            if taker >= 0:
                count_one(problem, state, k, p, taker, whole(1), sign, counts)
        return
    for s in range(slots):
        old, new = state.replicas[p, s], replicas[s]
        if old < 0 or old == new:
            continue
        stays, was = False, False
        for o in range(slots):
            if replicas[o] == old:
                stays = True
            if state.replicas[p, o] == new:
                was = True
        if not stays:
            count_one(problem, state, k, p, old, whole(-1), sign, counts)
        if not was:
            count_one(problem, state, k, p, new, whole(1), sign, counts)


@inner
def count_one(
    problem: Problem, state: State, k: int, p: int, b: int, by: int, sign: float, counts: bool
) -> None:
    """One replica (or leader) of the partition's topic more or less on broker `b`; see `recount`."""
    t = problem.partition[p, TOPIC_OF]
    state.units[k, b] += sign * topic_rise(problem, state, k, t, b, by)
    column = problem.topic_counted[t]
    if counts and column >= 0:
        state.topic_count[column, b, k] = int(state.topic_count[column, b, k]) + by


@inner
def relist(state: State, p: int, s: int, old: int, new: int) -> None:
    """Move the list entry of a replica from broker `old` to `new`: swap-remove and append, O(1)."""
    slots = state.replicas.shape[1]
    at, last = state.place[p, s], state.hosts[old] - 1
    moved = state.hosted[old, last]
    state.hosted[old, at] = moved
    state.mark[old, at] = state.mark[old, last]
    state.place[moved // slots, moved % slots] = at
    state.hosts[old] = last
    end = state.hosts[new]
    state.hosted[new, end] = p * slots + s
    state.mark[new, end] = (LED if state.lead[p] == s else 0) | (STRAY if state.home[p, s] != new else 0)
    state.place[p, s] = end
    state.hosts[new] = end + 1


@inner
def commit(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> None:
    """Put partition `p` on `replicas` led by slot `lead`, lists and caches included."""
    slots = state.replicas.shape[1]
    old_lead = state.lead[p]
    state.trail[0] += 1
    if state.trail[0] < len(state.trail):
        state.trail[state.trail[0]] = p
    for s in range(slots):
        state.old[0, s] = state.replicas[p, s]
    shift(problem, state, p, replicas, lead)
    for s in range(slots):
        old, new = state.old[0, s], replicas[s]
        if old >= 0 and old != new:
            relist(state, p, s, old, new)
            state.dirty[old], state.dirty[new] = 1, 1
        elif old >= 0 and (s == old_lead) != (s == lead):
            state.mark[old, state.place[p, s]] ^= LED
            state.dirty[old] = 1
    for s in range(slots):
        old, new = state.old[0, s], replicas[s]
        if old < 0:
            continue
        if old != new or s == old_lead or s == lead or problem.setting[RACK_GOAL] != NO_RACK_GOAL:
            state.score[old, COST] = assess(problem, state, old, state.score[old])
            if new != old:
                state.score[new, COST] = assess(problem, state, new, state.score[new])


@inner
def is_out(problem: Problem, state: State, b: int, g: int) -> bool:
    """Whether broker `b` scores below 1 in goal `g` and something could be done: it is not where the best it can reach is."""
    if state.score[b, g] >= 1.0:
        return False
    if problem.goal[g, KIND] > LIMIT:
        return True
    load = state.load[b, problem.goal[g, COLUMN]]
    return bool(load > problem.table[b, g, HIGH] or load < problem.table[b, g, LOW])


@inner
def scores_low(problem: Problem, state: State, b: int) -> bool:
    """Whether an eligible broker is out of any goal."""
    if problem.broker[b, STATE] != 0:
        return False
    for g in range(len(problem.goal)):
        if is_out(problem, state, b, g):
            return True
    return False


@inner_as(uncompiled.fits_rack)
def fits_rack(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """Whether putting slot `s` on `target` leaves the partition's rack excess as it is or lower (where the rule is hard)."""
    if problem.setting[RACK_GOAL] != 2:
        return True
    old, new = problem.broker[state.replicas[p, s], RACK_OF], problem.broker[target, RACK_OF]
    if old == new:
        return True
    left, came = 0, 1
    for o in range(state.replicas.shape[1]):
        other = state.replicas[p, o]
        if other >= 0:
            if problem.broker[other, RACK_OF] == old:
                left += 1
            elif problem.broker[other, RACK_OF] == new:
                came += 1
    return bool(came <= problem.partition[p, RACK_LIMIT] or left > problem.partition[p, RACK_LIMIT])


@inner_as(uncompiled.may_host)
def may_host(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """Whether broker `target` may take the place of slot `s`: active, not in the list, room in the rack and under hard limits."""
    if problem.broker[target, STATE] != 0 or state.hosts[target] >= state.hosted.shape[1]:
        return False
    slots = state.replicas.shape[1]
    for o in range(slots):
        if state.replicas[p, o] == target:
            return False
    if not fits_rack(problem, state, p, s, target):
        return False
    leads = state.lead[p] == s
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD] == 1:
            c = problem.goal[g, COLUMN]
            amount = problem.vector[p, LEADING, c] if leads else problem.vector[p, FOLLOWING, c]
            if amount > 0.0 and state.load[target, c] + amount > problem.table[target, g, CEILING]:
                return False
    return True


@kernel
def hosts_legally(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`may_host` for callers in Python."""
    return may_host(problem, state, p, s, target)
