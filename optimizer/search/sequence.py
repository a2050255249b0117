"""From a target placement to an order of acceptable actions.

`send_home` takes back moves that turned out not to be needed. `sequence` then carries the net changes out one partition at a
time, most balance for its bytes first, each only when it is acceptable at its turn; changes that are acceptable only together
are bundled into one action. What cannot be made acceptable is left undone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cluster_model.compiled import inner, inner_as, kernel, part, whole
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    COUNTS_LEADERS,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MEAN,
    MIN_LOAD,
    SIZE,
    STATE,
    THRIFT,
    TOPIC_OF,
    Problem,
)
from optimizer.search import uncompiled
from optimizer.search.evaluate import REPAIRS_DEAD, acceptable, evaluate
from optimizer.search.order import ascending
from optimizer.search.repair import NOTHING
from optimizer.search.state import MAX_CHANGES, State, commit, may_host, scores_low, topic_rise

LEAST_STEP = 1e-6  # the potential falls by at least this with every published action
BUNDLE_LOOKS = 16
VAIN_LOOKS, VAIN_LOOKS_EACH = 1_000, 2  # in a row without a bundle, after which there is none: so many, and for each change waiting


class Log(NamedTuple):
    """Actions as they were committed; `used` holds [actions, changes]. `first` int64 [A + 1] indexes the changes."""

    used: np.ndarray  # int64 [2]
    first: np.ndarray  # int64 [A + 1]
    partition: np.ndarray  # int64 [changes]
    replicas: np.ndarray  # int64 [changes, R]
    lead: np.ndarray  # int64 [changes]


class Budget(NamedTuple):
    """What may still be spent; negative entries of `limits` have no limit. Order: moves, bytes, partitions."""

    limits: np.ndarray  # float64 [3]
    spent: np.ndarray  # float64 [3]
    home: np.ndarray  # int64 [P, R], start of the plan
    home_lead: np.ndarray  # int64 [P]
    touched: np.ndarray  # int64 [P], 1 where an action changed the partition


def empty_log(slots: int, room: int) -> Log:
    """A log with room for `room` changes."""
    log = Log(
        used=np.zeros(2, np.int64),
        first=np.empty(room + 2, np.int64),  # far more than is used, and not touched beyond that
        partition=np.empty(room + 1, np.int64),
        replicas=np.empty((room + 1, slots), np.int64),
        lead=np.empty(room + 1, np.int64),
    )
    log.first[0] = 0
    return log


def written(log: Log) -> Log:
    """The same without the room that is left."""
    actions, changes = log.used.tolist()
    return Log(
        log.used.copy(), log.first[: actions + 1].copy(), log.partition[:changes].copy(), log.replicas[:changes].copy(),
        log.lead[:changes].copy(),
    )  # fmt: skip


@kernel
def align_slots(problem: Problem, state: State, home: np.ndarray, partitions: np.ndarray) -> None:
    """Put every broker that stays in a list of `partitions` back into its slot of `home` int64 [P, R]; the placement is the same.

    Needed because two slots may have traded places on the way.
    """
    slots = state.replicas.shape[1]
    row = np.zeros(slots, np.int64)
    for p in partitions:
        same = True
        for s in range(slots):
            if state.replicas[p, s] != home[p, s]:
                same = False
        if same:
            continue
        leader = state.replicas[p, state.lead[p]] if state.lead[p] >= 0 else -1
        for s in range(slots):
            row[s] = -2
            for o in range(slots):
                if home[p, s] == state.replicas[p, o]:
                    row[s] = home[p, s]
        at = 0
        for o in range(slots):
            b = state.replicas[p, o]
            stays = b < 0
            for s in range(slots):
                if home[p, s] == b:
                    stays = True
            if not stays:
                while row[at] != -2:
                    at += 1
                row[at] = b
        lead = whole(-1)
        moved = False
        for s in range(slots):
            if leader >= 0 and row[s] == leader:
                lead = whole(s)
            if row[s] != state.replicas[p, s]:
                moved = True
        if moved:
            commit(problem, state, p, row, lead)


@kernel
def follow(problem: Problem, state: State, other: State, partitions: np.ndarray) -> None:
    """Make the lists of `partitions` in `state` those of `other`."""
    slots = state.replicas.shape[1]
    for p in partitions:
        same = state.lead[p] == other.lead[p]
        for s in range(slots):
            if state.replicas[p, s] != other.replicas[p, s]:
                same = False
        if not same:
            commit(problem, state, p, other.replicas[p], other.lead[p])


@inner
def misplaces(problem: Problem, state: State, p: int, s: int, row: np.ndarray, lead: int) -> bool:
    """Whether the topic goals of any broker suffer when `p` comes to `row`, led by `lead`: slot `s` moves, if there is such a slot."""
    t = problem.partition[p, TOPIC_OF]
    for k in range(len(problem.topic_goal)):
        if problem.topic_goal[k, COUNTS_LEADERS] == 1:
            source = state.replicas[p, state.lead[p]] if state.lead[p] >= 0 else -1
            target = row[lead] if lead >= 0 else -1
        else:
            source, target = (state.replicas[p, s], row[s]) if s < len(row) else (-1, -1)
        if source == target:
            continue
        if source >= 0 and topic_rise(problem, state, k, t, source, whole(-1)) > 0.0:
            return True
        if target >= 0 and topic_rise(problem, state, k, t, target, whole(1)) > 0.0:
            return True
    return False


@inner
def scores_hold(state: State, brokers: np.ndarray, n: int, before: np.ndarray) -> bool:
    """Whether none of the `n` brokers scores lower in any goal than `before` float64 [n, G] says."""
    for i in range(n):
        for g in range(before.shape[1]):
            if state.score[brokers[i], g] < before[i, g] - 1e-12:
                return False
    return True


@inner_as(uncompiled.leaves_band)
def leaves_band(problem: Problem, state: State, b: int, p: int, held: int, role: int) -> bool:
    """Whether broker `b` would leave the band of a goal in which it scores 1, when its replica of `p` goes from `held` to `role`.

    Roles are `NOTHING`, `LEADING` and `FOLLOWING`.
    """
    if problem.broker[b, STATE] != 0:
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] > LIMIT or state.score[b, g] < 1.0:
            continue
        c = problem.goal[g, COLUMN]
        load = state.load[b, c]
        if role != NOTHING:
            load += problem.vector[p, role, c]
        if held != NOTHING:
            load -= problem.vector[p, held, c]
        if problem.goal[g, KIND] == LIMIT:
            if load > problem.table[b, g, CEILING]:
                return True
        elif abs(load - problem.table[b, g, MEAN]) > problem.table[b, g, BOUND] * (1.0 + 1e-9):
            if load > problem.force[g, MIN_LOAD] and problem.table[b, g, MEAN] > 0.0:
                return True
    return False


@kernel
def send_home(
    problem: Problem, state: State, home: np.ndarray, home_lead: np.ndarray, order: np.ndarray
) -> int:
    """Take moved replicas (`order`: partitions, largest first) and leaderships home where no broker is worse for it."""
    slots = state.replicas.shape[1]
    goals = state.score.shape[1] - 1
    row, was = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    brokers = np.zeros(2 * slots, np.int64)
    before = np.zeros((2 * slots, goals))
    done = 0
    for _ in range(3):
        taken = 0
        for p in order:
            for s in range(slots + 1):
                lead = state.lead[p]
                for o in range(slots):
                    was[o] = state.replicas[p, o]
                    row[o] = was[o]
                n = 0
                if s < slots:
                    back = home[p, s]
                    if back < 0 or back == was[s] or not may_host(problem, state, p, s, back):
                        continue
                    held = whole(LEADING if lead == s else FOLLOWING)
                    if leaves_band(problem, state, was[s], p, held, whole(NOTHING)):
                        continue
                    role = held
                    if home_lead[p] == s and problem.broker[back, STATE] == 0:
                        lead = s
                        role = whole(LEADING)
                    if leaves_band(problem, state, back, p, whole(NOTHING), role):
                        continue
                    row[s] = back
                    brokers[0], brokers[1] = was[s], back
                    n = 2
                    if lead != state.lead[p]:
                        brokers[2] = was[state.lead[p]]
                        n = 3
                else:
                    want = home_lead[p]
                    if want < 0 or want == lead or lead < 0 or home[p, want] != was[want]:
                        continue
                    if problem.broker[was[want], STATE] != 0:
                        continue
                    if leaves_band(problem, state, was[want], p, whole(FOLLOWING), whole(LEADING)):
                        continue
                    brokers[0], brokers[1] = was[want], was[lead]
                    lead = want
                    n = 2
                if len(problem.topic_goal) > 0 and misplaces(problem, state, p, s, row, lead):
                    continue
                for i in range(n):
                    for g in range(goals):
                        before[i, g] = state.score[brokers[i], g]
                old_lead = state.lead[p]
                commit(problem, state, p, row, lead)
                if scores_hold(state, brokers, n, before):
                    taken += 1
                else:
                    commit(problem, state, p, was, old_lead)
        done += taken
        if taken == 0:
            break
    return done


@inner
def price(
    problem: Problem, budget: Budget, p: int, replicas: np.ndarray, lead: int, touched: int, out: np.ndarray
) -> None:
    """What partition `p` at `replicas` costs against its start: moves, bytes, partitions, into `out` float64 [3].

    Where it was `touched`, coming back may leave its list in another order, which counts as a partition.
    """
    slots = len(replicas)
    moves = 0
    for s in range(slots):
        b = replicas[s]
        if b < 0:
            continue
        there = False
        for o in range(slots):
            if budget.home[p, o] == b:
                there = True
        if not there:
            moves += 1
    out[0] = moves
    out[1] = moves * problem.haul[p, SIZE]
    home_lead = budget.home_lead[p]
    same_leader = (home_lead < 0 and lead < 0) or (
        home_lead >= 0 and lead >= 0 and budget.home[p, home_lead] == replicas[lead]
    )
    out[2] = 0.0 if moves == 0 and same_leader and (touched == 0 or home_lead == 0) else 1.0


@inner
def within_budget(
    problem: Problem,
    state: State,
    budget: Budget,
    n: int,
    partitions: np.ndarray,
    replicas: np.ndarray,
    leads: np.ndarray,
) -> bool:
    """Whether the action fits what is left."""
    if budget.limits[0] < 0 and budget.limits[1] < 0 and budget.limits[2] < 0:
        return True
    extra, before, after = np.zeros(3), np.zeros(3), np.zeros(3)
    for i in range(n):
        p = partitions[i]
        price(problem, budget, p, state.replicas[p], state.lead[p], budget.touched[p], before)
        price(problem, budget, p, replicas[i], leads[i], whole(1), after)
        for d in range(3):
            extra[d] += after[d] - before[d]
    for d in range(3):
        if (
            budget.limits[d] >= 0
            and extra[d] > 0
            and budget.spent[d] + extra[d] > budget.limits[d] * (1 + 1e-12)
        ):
            return False
    return True


@inner
def publish(
    problem: Problem, state: State, budget: Budget, log: Log,
    n: int, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray,
) -> None:  # fmt: skip
    """Commit an action and write it down."""
    before, after = np.zeros(3), np.zeros(3)
    at = log.used[1]
    for i in range(n):
        p = partitions[i]
        price(problem, budget, p, state.replicas[p], state.lead[p], budget.touched[p], before)
        price(problem, budget, p, replicas[i], leads[i], whole(1), after)
        for d in range(3):
            budget.spent[d] += after[d] - before[d]
        budget.touched[p] = 1
        commit(problem, state, p, replicas[i], leads[i])
        log.partition[at] = p
        for s in range(replicas.shape[1]):
            log.replicas[at, s] = replicas[i, s]
        log.lead[at] = leads[i]
        at += 1
    log.used[0] += 1
    log.used[1] = at
    log.first[log.used[0]] = at


@inner
def has_room(state: State, n: int, partitions: np.ndarray, replicas: np.ndarray) -> bool:
    """Whether every target has room in its replica list (a storage bound of the search, far above any load)."""
    for i in range(n):
        for s in range(replicas.shape[1]):
            b = replicas[i, s]
            if b >= 0 and b != state.replicas[partitions[i], s]:
                if (
                    state.hosts[b] + n > state.hosted.shape[1]
                    and state.hosted.shape[1] < state.replicas.shape[0]
                ):
                    return False
    return True


@inner
def key_of(problem: Problem, gain: float, repairs: int, moved: int, p: int) -> float:
    """Order of actions: dead brokers first, then other repairs, then gain in potential for the bytes."""
    thrift = problem.haul[p, THRIFT] * problem.haul[p, THRIFT]
    worth = gain * thrift / moved if moved > 0 else gain * 10.0
    if repairs != 0:
        urgent = 1e12 if (repairs >> REPAIRS_DEAD) & 1 else 1e9
        return urgent + max(worth, 0.0)
    return worth


@kernel
def sequence(
    problem: Problem, state: State, budget: Budget, log: Log, pending: np.ndarray, to: np.ndarray, to_lead: np.ndarray,
    by_potential: bool,
) -> int:  # fmt: skip
    """Carry out the net changes of partitions `pending` (int64) towards `to` int64 [P, R], `to_lead`; returns changes left.

    The budget, where there is one, is spent on the most gain per byte first.
    """
    slots = state.replicas.shape[1]
    goals = len(problem.goal)
    partitions = np.zeros(MAX_CHANGES, np.int64)
    replicas = np.zeros((MAX_CHANGES, slots), np.int64)
    leads = np.zeros(MAX_CHANGES, np.int64)
    scores = np.zeros(goals)
    left, item = pending.copy(), np.arange(len(pending))
    count = len(left)
    # What is known of each item, and since when; a broker changed last at its `seen`. What no touched broker made stale still holds.
    gains, repairs = np.zeros(count), np.zeros(count, np.int64)
    good, known = np.zeros(count, np.uint8), np.full(count, -1, np.int64)
    seen = np.zeros(len(problem.broker), np.int64)
    zero, one = whole(0), whole(1)
    limited = budget.limits[0] >= 0 or budget.limits[1] >= 0 or budget.limits[2] >= 0
    while count > 0:
        keys = np.zeros(count)
        for i in range(count):
            p, n = left[i], item[i]
            if last_change(state, p, to, to_lead, seen) > known[n]:
                load_change(state, partitions, replicas, leads, zero, p, to, to_lead)
                verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
                gains[n], repairs[n], known[n] = verdict.gain, verdict.repairs, log.used[0]
                good[n] = 1 if acceptable(verdict, by_potential, LEAST_STEP) else 0
            keys[i] = -key_of(problem, gains[n], repairs[n], moved_slots(state, p, to), p)
        order = ascending(keys)
        kept = whole(0)
        done = 0
        waiting, numbers = left.copy(), item.copy()
        for i in range(count):
            p, n = waiting[order[i]], numbers[order[i]]
            load_change(state, partitions, replicas, leads, zero, p, to, to_lead)
            if last_change(state, p, to, to_lead, seen) > known[n]:
                verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
                gains[n], repairs[n], known[n] = verdict.gain, verdict.repairs, log.used[0]
                good[n] = 1 if acceptable(verdict, by_potential, LEAST_STEP) else 0
            late = False
            if limited and done > 0:
                late = key_of(problem, gains[n], repairs[n], moved_slots(state, p, to), p) < -0.8 * keys[order[i]]
            if (
                not late
                and good[n] == 1
                and has_room(state, one, partitions, replicas)
                and within_budget(problem, state, budget, one, partitions, replicas, leads)
            ):
                note_change(state, p, to, to_lead, seen, log.used[0] + 1)
                publish(problem, state, budget, log, one, partitions, replicas, leads)
                done += 1
            else:
                left[kept], item[kept] = p, n
                kept += 1
        count = kept
        if done == 0:
            bundled = bundle(
                problem,
                state,
                budget,
                log,
                left,
                count,
                to,
                to_lead,
                by_potential,
                partitions,
                replicas,
                leads,
                scores,
                seen,
            )
            if bundled == 0:
                break
            kept = whole(0)
            for i in range(count):
                if left[i] >= 0:
                    left[kept], item[kept] = left[i], item[i]
                    kept += 1
            count = kept
    return count


@inner
def last_change(state: State, p: int, to: np.ndarray, to_lead: np.ndarray, seen: np.ndarray) -> int:
    """When a broker that the change of `p` to its target touches changed last, by what was `seen` int64 [B]."""
    last = 0
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and differs(state, p, s, to, to_lead):
            last = max(last, seen[old], seen[to[p, s]])
    return last


@inner
def note_change(state: State, p: int, to: np.ndarray, to_lead: np.ndarray, seen: np.ndarray, now: int) -> None:
    """Every broker that the change of `p` to its target touches changes `now`."""
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and differs(state, p, s, to, to_lead):
            seen[old], seen[to[p, s]] = now, now


@inner
def load_change(
    state: State, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, at: int,
    p: int, to: np.ndarray, to_lead: np.ndarray,
) -> None:  # fmt: skip
    """Write the change of `p` to its target as change `at` of an action."""
    partitions[at] = p
    for s in range(to.shape[1]):
        replicas[at, s] = to[p, s]
    leads[at] = to_lead[p]


@inner
def moved_slots(state: State, p: int, to: np.ndarray) -> int:
    """How many replicas of `p` are not yet where `to` wants them."""
    moved = 0
    for s in range(to.shape[1]):
        if state.replicas[p, s] != to[p, s]:
            moved += 1
    return moved


@part
def bundle(
    problem: Problem, state: State, budget: Budget, log: Log, left: np.ndarray, count: int,
    to: np.ndarray, to_lead: np.ndarray, by_potential: bool,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray, seen: np.ndarray,
) -> int:  # fmt: skip
    """Make exchanges of changes that are acceptable only together; used ones become -1 in `left`. Returns how many actions."""
    slots = state.replicas.shape[1]
    brokers = len(problem.broker)
    # CSR: for every broker, the waiting changes that touch it.
    starts = np.zeros(brokers + 1, np.int64)
    for i in range(count):
        p = left[i]
        for s in range(slots):
            if state.replicas[p, s] >= 0 and differs(state, p, s, to, to_lead):
                starts[state.replicas[p, s] + 1] += 1
                starts[to[p, s] + 1] += 1
    for b in range(brokers):
        starts[b + 1] += starts[b]
    fill = starts.copy()
    touching = np.zeros(starts[brokers], np.int64)
    for i in range(count):
        p = left[i]
        for s in range(slots):
            if state.replicas[p, s] >= 0 and differs(state, p, s, to, to_lead):
                for b in (state.replicas[p, s], to[p, s]):
                    touching[fill[b]] = i
                    fill[b] += 1
    done = 0
    zero, one = whole(0), whole(1)
    members = np.zeros(MAX_CHANGES, np.int64)
    vain, most = 0, VAIN_LOOKS + VAIN_LOOKS_EACH * count
    for first in range(count):
        if left[first] < 0 or vain > most:
            continue
        if not helps_someone(problem, state, left[first], to, to_lead):
            continue
        members[0] = first
        load_change(state, partitions, replicas, leads, zero, left[first], to, to_lead)
        size = one
        accepted = False
        while size < MAX_CHANGES:
            best, best_key = -1, -np.inf
            best_accepted = False
            looks = 0
            for m in range(size):
                p = left[members[m]]
                for s in range(slots):
                    if state.replicas[p, s] < 0 or not differs(state, p, s, to, to_lead):
                        continue
                    for b in (state.replicas[p, s], to[p, s]):
                        for j in range(starts[b], starts[b + 1]):
                            if looks >= BUNDLE_LOOKS:
                                break
                            other = touching[j]
                            if left[other] < 0 or (other <= first and size == 1):
                                continue
                            known = False
                            for q in range(size):
                                if members[q] == other:
                                    known = True
                            if known:
                                continue
                            looks += 1
                            vain += 1
                            load_change(state, partitions, replicas, leads, size, left[other], to, to_lead)
                            verdict = evaluate(problem, state, size + 1, partitions, replicas, leads, scores)
                            good = acceptable(verdict, by_potential, LEAST_STEP)
                            key = verdict.gain + (verdict.score - 0.5 if not by_potential else 0.0)
                            if not verdict.allowed:
                                key -= 1e6
                            if (good and not best_accepted) or (good == best_accepted and key > best_key):
                                best, best_key, best_accepted = other, key, good
            if best < 0:
                break
            members[size] = best
            load_change(state, partitions, replicas, leads, size, left[best], to, to_lead)
            size += 1
            if best_accepted:
                accepted = True
                break
        if not accepted:
            continue
        if not has_room(state, size, partitions, replicas):
            continue
        if not within_budget(problem, state, budget, size, partitions, replicas, leads):
            continue
        for m in range(size):
            note_change(state, left[members[m]], to, to_lead, seen, log.used[0] + 1)
        publish(problem, state, budget, log, size, partitions, replicas, leads)
        for m in range(size):
            left[members[m]] = -1
        done += 1
        vain = 0
    return done


@inner
def helps_someone(problem: Problem, state: State, p: int, to: np.ndarray, to_lead: np.ndarray) -> bool:
    """Whether the change touches a broker that scores low; one that does not cannot be acceptable without repairing."""
    for s in range(to.shape[1]):
        old = state.replicas[p, s]
        if old >= 0 and differs(state, p, s, to, to_lead):
            if problem.broker[old, STATE] != 0:
                return True
            if scores_low(problem, state, old) or scores_low(problem, state, to[p, s]):
                return True
    return False


@inner
def differs(state: State, p: int, s: int, to: np.ndarray, to_lead: np.ndarray) -> bool:
    """Whether slot `s` changes broker or role on the way to the target."""
    return bool(state.replicas[p, s] != to[p, s] or (state.lead[p] == s) != (to_lead[p] == s))
