"""The last brokers: single acceptable steps, and exchanges of up to eight changes found by a small annealing.

Unlike `balance`, everything here is checked by `evaluate` before it is committed, so it goes straight into the log.
"""

from __future__ import annotations

import math

import numpy as np

from cluster_model.compiled import inner, kernel, part, whole
from optimizer.problem import (
    COUNTS_LEADERS,
    FOLLOWING,
    HARD_RACK,
    KIND,
    LEADING,
    MOVABLE,
    RACK_GOAL,
    RACK_LIMIT,
    SIZE,
    STATE,
    THRIFT,
    TOPIC,
    TOPIC_OF,
    UNIT_WEIGHT,
    Problem,
)
from optimizer.search.balance import (
    fits_as_leader,
    gather,
    keep_best,
    may_swap,
    rank_partners,
    scan,
    watched_goals,
)
from optimizer.search.desk import least_of, most_of
from optimizer.search.evaluate import acceptable, evaluate
from optimizer.search.order import ascending
from optimizer.search.repair import NOTHING, cost_of_gaining, crowds, rack_mates, scramble
from optimizer.search.sequence import LEAST_STEP, Budget, Log, has_room, publish, within_budget
from optimizer.search.state import (
    COST,
    MAX_CHANGES,
    State,
    assess,
    largest_share,
    may_host,
    scores_low,
    shift,
    topic_holds,
    topic_rise,
    wanted_by_all,
)
from optimizer.search.topics import lead_gain

LOOKS = 24  # candidates of one partner that are evaluated in full
MOST_PARTNERS = 12
TOPIC_LOOKS = 48  # steps for the topics of one broker that are evaluated in full
MOST_OFFERED, MOST_DONORS = 24, 1_000  # replicas looked at to find them: of the broker, and of others
TOPIC_TARGETS = 160  # brokers looked at for one of them
SPARE_STEPS = 60_000  # annealing steps without success that a call may spend
LEAST_SHARE = 0.01  # of the potential of a broker, what a step for it has to bring
BYTES_PRICE = 2e-6  # of the potential, for one more replica of typical size in an exchange


@inner
def set_move(state: State, partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray,
             p: int, s: int, target: int, lead: int) -> None:  # fmt: skip
    """The first change of an action: slot `s` of `p` to `target` (unless -1), led by slot `lead`."""
    partitions[0] = p
    for o in range(replicas.shape[1]):
        replicas[0, o] = state.replicas[p, o]
    if target >= 0:
        replicas[0, s] = target
    leads[0] = lead


@inner
def helps(state: State, v: int, scores: np.ndarray) -> bool:
    """Whether an action of these goal scores does something about what broker `v` scores low in."""
    for g in range(len(scores)):
        if scores[g] > 0.5 and state.score[v, g] < 1.0:
            return True
    return False


@part
def best_single(
    problem: Problem, state: State, budget: Budget, watched: np.ndarray, v: int, partners: np.ndarray, found: int,
    least: float, by_potential: bool, block: np.ndarray, gains: np.ndarray, kept: np.ndarray,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> bool:  # fmt: skip
    """Leave in change 0 the acceptable single move or transfer at broker `v` with the best gain (at least `least`) for its bytes."""
    slots = state.replicas.shape[1]
    zero, one, none = whole(0), whole(1), whole(-1)
    best_p, best_s, best_target, best_lead, best_key = none, none, none, none, 0.0
    for i in range(state.hosts[v]):
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        if problem.partition[p, MOVABLE] == 0 or state.lead[p] < 0:
            continue
        giver = state.replicas[p, state.lead[p]]
        for o in range(slots):
            u = state.replicas[p, o]
            if (
                u < 0
                or o == state.lead[p]
                or (s != state.lead[p] and o != s)
                or problem.broker[giver, STATE] == 3
            ):
                continue
            if not fits_as_leader(problem, state, p, u):
                continue
            set_move(state, partitions, replicas, leads, p, zero, none, o)
            verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
            key = verdict.gain * 10.0 + (1.0 if verdict.repairs != 0 else 0.0)
            if key > best_key and helps(state, v, scores) and acceptable(verdict, by_potential, least):
                if within_budget(problem, state, budget, one, partitions, replicas, leads):
                    best_p, best_s, best_target, best_lead, best_key = p, zero, none, o, key
    for k in range(found):
        for way in range(2):
            source, target = (v, partners[k]) if way == 0 else (partners[k], v)
            n = gather(problem, state, source, False, block)
            scan(problem, state, watched, source, target, n, block, gains)
            for i in range(n):
                gains[i] = gains[i] * block[-1, i] if block[-1, i] > 0.0 else -np.inf
            count = keep_best(gains, n, -np.inf if len(problem.topic_goal) else 0.0, whole(LOOKS), kept)
            for i in range(count):
                entry = whole(state.hosted[source, kept[i]])
                p, s = entry // slots, entry % slots
                if not may_host(problem, state, p, s, target):
                    continue
                set_move(state, partitions, replicas, leads, p, s, target, state.lead[p])
                verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
                key = verdict.gain * problem.haul[p, THRIFT] + (1.0 if verdict.repairs != 0 else 0.0)
                if key > best_key and helps(state, v, scores) and acceptable(verdict, by_potential, least):
                    if within_budget(problem, state, budget, one, partitions, replicas, leads):
                        best_p, best_s, best_target, best_lead, best_key = p, s, target, state.lead[p], key
    if best_p < 0:
        return False
    set_move(state, partitions, replicas, leads, best_p, best_s, best_target, best_lead)
    return True


@part
def topic_single(
    problem: Problem, state: State, budget: Budget, v: int, by_potential: bool, best_gain: np.ndarray,
    best_entry: np.ndarray, best_target: np.ndarray,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> bool:  # fmt: skip
    """As `best_single`, for the topics that broker `v` has too many or too few of: the first acceptable of the most promising."""
    slots = state.replicas.shape[1]
    one = whole(1)
    found = whole(0)
    for k in range(len(problem.topic_goal)):
        if state.units[k, v] > 0.0:
            found = surplus(problem, state, k, v, found, best_gain, best_entry, best_target)
            found = shortage(problem, state, k, v, found, best_gain, best_entry, best_target)
    for i in range(found):
        p, s = best_entry[i] // slots, best_entry[i] % slots
        if best_target[i] < 0:
            set_move(state, partitions, replicas, leads, p, s, best_target[i], s)
        else:
            set_move(state, partitions, replicas, leads, p, s, best_target[i], state.lead[p])
        verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
        if helps(state, v, scores) and acceptable(verdict, by_potential, LEAST_STEP):
            if within_budget(problem, state, budget, one, partitions, replicas, leads):
                return True
    return False


@inner
def only_topics(problem: Problem, state: State, v: int) -> bool:
    """Whether topics are all that broker `v` scores low in."""
    if len(problem.topic_goal) == 0:
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] != TOPIC and state.score[v, g] < 1.0:
            return False
    return True


@inner
def move_gain(problem: Problem, state: State, p: int, s: int, target: int, relief: float) -> float:
    """By how much the potential falls when slot `s` of `p` goes to `target`, 0 where it may not; `relief` is what its broker saves."""
    if not may_host(problem, state, p, s, target):
        return 0.0
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    return relief - cost_of_gaining(problem, state, target, p, whole(NOTHING), role)


@inner
def relief_of(problem: Problem, state: State, p: int, s: int) -> float:
    """By how much the potential of the broker of slot `s` falls without that replica."""
    role = whole(LEADING if state.lead[p] == s else FOLLOWING)
    return -cost_of_gaining(problem, state, state.replicas[p, s], p, role, whole(NOTHING))


@inner
def note(
    best_gain: np.ndarray, best_entry: np.ndarray, best_target: np.ndarray, found: int, gain: float, entry: int, target: int
) -> int:
    """Keep the best few in descending order of gain, the earlier of equals first; returns how many there are."""
    most = len(best_gain)
    if found == most and gain <= best_gain[most - 1]:
        return found
    at = most - 1 if found == most else found
    while at > 0 and best_gain[at - 1] < gain:
        best_gain[at], best_entry[at], best_target[at] = best_gain[at - 1], best_entry[at - 1], best_target[at - 1]
        at -= 1
    best_gain[at], best_entry[at], best_target[at] = gain, entry, target
    return min(found + 1, most)


@inner
def surplus(
    problem: Problem, state: State, k: int, v: int, found: int,
    best_gain: np.ndarray, best_entry: np.ndarray, best_target: np.ndarray,
) -> int:  # fmt: skip
    """Note what `v` could give of the topics that it has too many of, by gain in potential; target -1 is a change of leader."""
    slots = state.replicas.shape[1]
    leaders = problem.topic_goal[k, COUNTS_LEADERS] == 1
    looked = 0
    for i in range(state.hosts[v]):
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        t = problem.partition[p, TOPIC_OF]
        if problem.partition[p, MOVABLE] == 0 or (leaders and state.lead[p] != s):
            continue
        if topic_holds(problem, state, k, t, v) <= most_of(problem, k, t, v):
            continue
        if leaders:
            for o in range(slots):
                if o != s and state.replicas[p, o] >= 0 and problem.broker[state.replicas[p, o], STATE] == 0:
                    gain = lead_gain(problem, state, p, whole(o), False)
                    if gain > 0.0:
                        found = note(best_gain, best_entry, best_target, found, gain, p * slots + o, whole(-1))
        if looked >= MOST_OFFERED:
            continue
        looked += 1
        relief = relief_of(problem, state, p, s)
        sampled = len(problem.broker) > 2 * TOPIC_TARGETS
        start = scramble(p * 8191 + v)
        for i in range(TOPIC_TARGETS if sampled else len(problem.broker)):
            target = scramble(start + i) % len(problem.broker) if sampled else i
            if target != v and problem.broker[target, STATE] == 0:
                if topic_rise(problem, state, k, t, target, whole(1)) > 0.0:
                    continue
                gain = move_gain(problem, state, p, s, target, relief)
                if gain > 0.0:
                    found = note(best_gain, best_entry, best_target, found, gain, entry, target)
    return found


@inner
def shortage(
    problem: Problem, state: State, k: int, v: int, found: int,
    best_gain: np.ndarray, best_entry: np.ndarray, best_target: np.ndarray,
) -> int:  # fmt: skip
    """Note what `v` could take of the topics that it has too few of, as `surplus` does."""
    slots = state.replicas.shape[1]
    leaders = problem.topic_goal[k, COUNTS_LEADERS] == 1
    most = largest_share(problem, k)
    looked = 0
    for t in range(len(problem.topic_first) - 1):
        if not wanted_by_all(problem, k, t, most):
            continue
        if topic_holds(problem, state, k, t, v) >= least_of(problem, k, t, v):
            continue
        for p in range(problem.topic_first[t], problem.topic_first[t + 1]):
            if problem.partition[p, MOVABLE] == 0 or looked >= MOST_DONORS:
                continue
            for s in range(slots):
                b = state.replicas[p, s]
                if b < 0 or problem.broker[b, STATE] == 3:
                    continue
                if b == v:
                    if leaders and state.lead[p] >= 0 and state.lead[p] != s:
                        gain = lead_gain(problem, state, p, whole(s), False)
                        if gain > 0.0:
                            found = note(best_gain, best_entry, best_target, found, gain, p * slots + s, whole(-1))
                    continue
                if leaders and state.lead[p] != s:
                    continue
                looked += 1
                gain = move_gain(problem, state, p, whole(s), v, relief_of(problem, state, p, whole(s)))
                if gain > 0.0:
                    found = note(best_gain, best_entry, best_target, found, gain, p * slots + s, v)
    return found


@inner
def draw(random: np.ndarray, below: int) -> int:
    """The next integer in [0, below)."""
    random[0] += 1
    return scramble(random[0]) % below


@part
def exchange(
    problem: Problem, state: State, budget: Budget, v: int, around: np.ndarray, members: int, steps: int,
    random: np.ndarray, by_potential: bool, typical: float, warmth: float,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> int:  # fmt: skip
    """Look for several changes among brokers `around` (first is `v`) that are acceptable together.

    Anneals on the potential with at most eight partitions away from where they stand, then judges the best found. Leaves them
    in the change arrays and returns how many, 0 if none. The state is as before.
    """
    slots = state.replicas.shape[1]
    base = np.zeros((MAX_CHANGES, slots), np.int64)
    base_lead = np.zeros(MAX_CHANGES, np.int64)
    moved = np.zeros(MAX_CHANGES, np.int64)
    size = 0
    keep = 6
    found_n = np.zeros(keep, np.int64)
    found_p = np.zeros((keep, MAX_CHANGES), np.int64)
    found_r = np.zeros((keep, MAX_CHANGES, slots), np.int64)
    found_l = np.zeros((keep, MAX_CHANGES), np.int64)
    stored = 0
    row, was = np.zeros(slots, np.int64), np.zeros(slots, np.int64)
    affected = np.zeros(2 * slots + 2, np.int64)
    least = max(LEAST_STEP, LEAST_SHARE * state.score[v, COST])
    total, best = 0.0, -least
    start = 0.0
    for i in range(members):
        start += state.score[around[i], COST]
    hot = max(warmth * start / members, 1e-7)
    for step in range(steps):
        heat = hot * (1.0 - step / steps) ** 2 + 1e-12
        b = around[0] if draw(random, whole(3)) == 0 else around[draw(random, members)]
        if state.hosts[b] == 0:
            continue
        if size > 0 and draw(random, whole(3)) == 0:
            p = moved[draw(random, size)]
            s = draw(random, slots)
            if state.replicas[p, s] < 0:
                continue
        else:
            entry = whole(state.hosted[b, draw(random, state.hosts[b])])
            p, s = entry // slots, entry % slots
        if problem.partition[p, MOVABLE] == 0 or problem.broker[state.replicas[p, s], STATE] == 3:
            continue
        at = -1
        for i in range(size):
            if moved[i] == p:
                at = i
        if at < 0 and size == MAX_CHANGES:
            continue
        old_lead = state.lead[p]
        lead = old_lead
        for o in range(slots):
            was[o] = state.replicas[p, o]
            row[o] = was[o]
        kind = draw(random, whole(4))
        if kind == 0 and slots > 1:
            o = draw(random, slots)
            if (
                row[o] < 0
                or o == lead
                or lead < 0
                or problem.broker[row[o], STATE] != 0
                or problem.broker[row[lead], STATE] == 3
            ):
                continue
            lead = o
        else:
            target = around[draw(random, members)]
            if not may_swap(problem, state, p, s, target) or problem.broker[target, STATE] != 0:
                continue
            row[s] = target
            if kind == 1 and lead >= 0 and problem.broker[row[lead], STATE] != 3 and lead != s and slots > 1:
                if problem.broker[was[lead], STATE] != 3:
                    lead = s
        n = 0
        for o in range(slots):
            if was[o] >= 0 and (was[o] != row[o] or (o == old_lead) != (o == lead)):
                affected[n] = was[o]
                n += 1
                if was[o] != row[o]:
                    affected[n] = row[o]
                    n += 1
        if n == 0:
            continue
        before = 0.0
        for i in range(n):
            before += state.score[affected[i], COST]
        rise = shift(problem, state, p, row, lead)
        delta = UNIT_WEIGHT * rise - before
        for i in range(n):
            state.score[affected[i], COST] = assess(problem, state, affected[i], state.fresh[0])
            delta += state.score[affected[i], COST]
        for o in range(slots):
            home = base[at, o] if at >= 0 else was[o]
            if row[o] != home:
                delta += BYTES_PRICE * (problem.haul[p, SIZE] / typical + 0.2)
            if was[o] != home:
                delta -= BYTES_PRICE * (problem.haul[p, SIZE] / typical + 0.2)
        if delta > 0.0 and (draw(random, whole(1 << 30)) + 1) / (1 << 30) >= math.exp(-delta / heat):
            shift(problem, state, p, was, old_lead)
            for i in range(n):
                state.score[affected[i], COST] = assess(problem, state, affected[i], state.fresh[0])
            continue
        total += delta
        if at < 0:
            at = size
            moved[at] = p
            base_lead[at] = old_lead
            for o in range(slots):
                base[at, o] = was[o]
            size += 1
        same = state.lead[p] == base_lead[at]
        for o in range(slots):
            if row[o] != base[at, o]:
                same = False
        if same:
            size -= 1
            moved[at] = moved[size]
            base_lead[at] = base_lead[size]
            for o in range(slots):
                base[at, o] = base[size, o]
        if total < best and size > 0:
            best = total
            slot = stored % keep
            stored += 1
            found_n[slot] = size
            for i in range(size):
                found_p[slot, i] = moved[i]
                found_l[slot, i] = state.lead[moved[i]]
                for o in range(slots):
                    found_r[slot, i, o] = state.replicas[moved[i], o]
    for i in range(size):
        shift(problem, state, moved[i], base[i], base_lead[i])
    for b in range(len(problem.broker)):
        state.score[b, COST] = assess(problem, state, b, state.score[b])
    for back in range(min(stored, keep)):
        slot = (stored - 1 - back) % keep
        n = found_n[slot]
        for i in range(n):
            partitions[i] = found_p[slot, i]
            leads[i] = realign(state, found_p[slot, i], found_r[slot, i], found_l[slot, i], replicas[i])
        verdict = evaluate(problem, state, n, partitions, replicas, leads, scores)
        if not helps(state, v, scores) or not acceptable(verdict, by_potential, least):
            continue
        n = drop_idle(problem, state, n, verdict.gain, by_potential, partitions, replicas, leads, scores)
        if has_room(state, n, partitions, replicas) and within_budget(
            problem, state, budget, n, partitions, replicas, leads
        ):
            return n
    return 0


@inner
def realign(state: State, p: int, row: np.ndarray, lead: int, out: np.ndarray) -> int:
    """`row` into `out` with every broker that `p` has already in its present slot; returns the leader's slot there."""
    slots = state.replicas.shape[1]
    for s in range(slots):
        out[s] = -2
        for o in range(slots):
            if row[o] == state.replicas[p, s]:
                out[s] = row[o]
    for o in range(slots):
        known = False
        for s in range(slots):
            if out[s] == row[o]:
                known = True
        if not known:
            for s in range(slots):
                if out[s] == -2:
                    out[s] = row[o]
                    break
    leader = whole(-1)
    for s in range(slots):
        if lead >= 0 and out[s] == row[lead]:
            leader = s
    return leader


@part
def drop_idle(
    problem: Problem, state: State, n: int, gain: float, by_potential: bool,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> int:  # fmt: skip
    """Leave out changes without which the action is as good; returns how many stay."""
    slots = replicas.shape[1]
    held = np.zeros(slots, np.int64)
    i = 0
    while i < n and n > 1:
        p, lead = partitions[i], leads[i]
        for o in range(slots):
            held[o] = replicas[i, o]
        last = n - 1
        partitions[i], leads[i] = partitions[last], leads[last]
        for o in range(slots):
            replicas[i, o] = replicas[last, o]
        verdict = evaluate(problem, state, last, partitions, replicas, leads, scores)
        if acceptable(verdict, by_potential, LEAST_STEP) and verdict.gain >= gain - 1e-9:
            n = last
            continue
        partitions[last], leads[last] = partitions[i], leads[i]
        for o in range(slots):
            replicas[last, o] = replicas[i, o]
        partitions[i], leads[i] = p, lead
        for o in range(slots):
            replicas[i, o] = held[o]
        i += 1
    return n


@inner
def needs_relief(problem: Problem, state: State) -> bool:
    """Whether any partition may need what `relieve` does."""
    for b in range(len(state.hosts)):
        if state.hosts[b] > 0 and (problem.broker[b, STATE] == 1 or problem.broker[b, STATE] == 2):
            return True
    for p in range(len(state.lead)):
        if state.lead[p] < 0:
            return True
    return bool(problem.setting[RACK_GOAL] == HARD_RACK and crowds(state))


@part
def relieve(
    problem: Problem, state: State, budget: Budget, log: Log, by_potential: bool, eligible: np.ndarray, count: int,
    partitions: np.ndarray, replicas: np.ndarray, leads: np.ndarray, scores: np.ndarray,
) -> int:  # fmt: skip
    """Repairs still open, one change each: replicas on dead and draining brokers, missing leaders, crowded racks."""
    slots = state.replicas.shape[1]
    one = whole(1)
    row = np.zeros(slots, np.int64)
    done = 0
    for p in range(len(state.lead)):
        if problem.partition[p, MOVABLE] == 0 or log.used[1] + 1 >= len(log.partition):
            continue
        needs = state.lead[p] < 0
        for s in range(slots):
            b = state.replicas[p, s]
            if b < 0:
                continue
            if problem.broker[b, STATE] == 1 or problem.broker[b, STATE] == 2:
                needs = True
            if problem.setting[RACK_GOAL] == HARD_RACK:
                if rack_mates(problem, state, p, b) > problem.partition[p, RACK_LIMIT]:
                    needs = True
        if not needs:
            continue
        best_key = 0.0
        best_lead = whole(-1)
        for s in range(slots):
            b = state.replicas[p, s]
            if b < 0 or problem.broker[b, STATE] == 3:
                continue
            # A replica that need not move does so only to make room for a leader that nobody else can be.
            urgency = 2.0 if problem.broker[b, STATE] != 0 else 0.0
            if problem.setting[RACK_GOAL] == HARD_RACK and rack_mates(problem, state, p, b) > problem.partition[p, RACK_LIMIT]:
                urgency = 2.0
            for i in range(-1, count):
                target = b if i < 0 else eligible[i]
                if i >= 0 and not may_swap(problem, state, p, s, target):
                    continue
                for lead in range(-1, slots):
                    if lead < 0:
                        if state.lead[p] >= 0:
                            continue
                        leader = whole(-1)
                    else:
                        if state.replicas[p, lead] < 0:
                            continue
                        leader = target if lead == s else state.replicas[p, lead]
                    if lead != state.lead[p]:
                        if problem.broker[leader, STATE] != 0:
                            continue
                        if state.lead[p] >= 0 and problem.broker[state.replicas[p, state.lead[p]], STATE] == 3:
                            continue
                    elif i < 0:
                        continue
                    partitions[0] = p
                    for o in range(slots):
                        replicas[0, o] = state.replicas[p, o]
                    replicas[0, s] = target
                    leads[0] = lead
                    verdict = evaluate(problem, state, one, partitions, replicas, leads, scores)
                    if verdict.repairs == 0 or not acceptable(verdict, by_potential, LEAST_STEP):
                        continue
                    key = max((urgency if i >= 0 else 1.0) + verdict.gain, 1e-6)
                    if key > best_key and has_room(state, one, partitions, replicas):
                        if within_budget(problem, state, budget, one, partitions, replicas, leads):
                            best_key = key
                            best_lead = whole(lead)
                            for o in range(slots):
                                row[o] = replicas[0, o]
        if best_key > 0.0:
            partitions[0] = p
            for o in range(slots):
                replicas[0, o] = row[o]
            leads[0] = best_lead
            publish(problem, state, budget, log, one, partitions, replicas, leads)
            done += 1
    return done


@kernel
def polish(
    problem: Problem,
    state: State,
    budget: Budget,
    log: Log,
    seed: int,
    by_potential: bool,
    steps: int,
    most: int,
) -> int:
    """Acceptable steps and exchanges for the brokers that score low, worst first. Returns actions published.

    `steps` annealing steps per attempt; at most `most` brokers get exchanges in one call.
    """
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    columns = problem.vector.shape[2]
    room = state.hosted.shape[1] + 1
    block, gains = np.zeros((columns + 1, room)), np.zeros(max(room, 256))
    goals = np.zeros(len(problem.goal), np.int64)
    watched = goals[: watched_goals(problem, state, goals)]
    kept = np.zeros(256, np.int64)
    partners, worth = np.zeros(MOST_PARTNERS, np.int64), np.zeros(brokers)
    partitions = np.zeros(MAX_CHANGES, np.int64)
    replicas = np.zeros((MAX_CHANGES, slots), np.int64)
    leads = np.zeros(MAX_CHANGES, np.int64)
    scores = np.zeros(len(problem.goal))
    best_gain, best_entry = np.zeros(TOPIC_LOOKS), np.zeros(TOPIC_LOOKS, np.int64)
    best_target = np.zeros(TOPIC_LOOKS, np.int64)
    around = np.zeros(brokers, np.int64)
    random = np.zeros(1, np.int64)
    random[0] = scramble(seed + 1) >> 8
    eligible = np.zeros(brokers, np.int64)
    count = 0
    size_sum, replica_sum = 0.0, 0
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible[count] = b
            count += 1
    if count == 0:
        return 0
    zero, one = whole(0), whole(1)
    for p in range(len(problem.haul)):
        size_sum += problem.haul[p, SIZE]
        replica_sum += 1
    typical = size_sum / replica_sum if size_sum > 0.0 else 1.0
    published = whole(0)
    if needs_relief(problem, state):
        published = relieve(
            problem, state, budget, log, by_potential, eligible, count, partitions, replicas, leads, scores
        )
    spare = SPARE_STEPS
    for _ in range(64):
        order = ascending(-state.score[:, COST])
        low = 0
        for b in range(brokers):
            if scores_low(problem, state, b):
                low += 1
        attempts = 12 if count <= 6 else (48 if low <= 8 else 4)
        done = 0
        tried = 0
        for i in range(brokers):
            v = order[i]
            if not scores_low(problem, state, v):
                continue
            for _ in range(256):
                if log.used[1] + MAX_CHANGES >= len(log.partition):
                    return published
                found = rank_partners(problem, state, watched, v, whole(MOST_PARTNERS), zero, partners, worth)
                for j in range(count):
                    if found >= MOST_PARTNERS or count > 2 * MOST_PARTNERS:
                        break
                    known = eligible[j] == v
                    for k in range(found):
                        if partners[k] == eligible[j]:
                            known = True
                    if not known:
                        partners[found] = eligible[j]
                        found += 1
                least = max(LEAST_STEP, LEAST_SHARE * state.score[v, COST])
                good = False
                if not only_topics(problem, state, v):
                    good = best_single(
                        problem, state, budget, watched, v, partners, found, least, by_potential, block, gains, kept,
                        partitions, replicas, leads, scores,
                    )  # fmt: skip
                if not good and len(problem.topic_goal) > 0:
                    good = topic_single(
                        problem, state, budget, v, by_potential, best_gain, best_entry, best_target,
                        partitions, replicas, leads, scores,
                    )  # fmt: skip
                if not good or not has_room(state, one, partitions, replicas):
                    break
                publish(problem, state, budget, log, one, partitions, replicas, leads)
                done += 1
                if not scores_low(problem, state, v):
                    break
            if tried >= most or not scores_low(problem, state, v):
                continue
            tried += 1
            for attempt in range(attempts):
                if spare <= 0:
                    break
                if log.used[1] + MAX_CHANGES >= len(log.partition):
                    return published
                around[0] = v
                members = 1
                found = rank_partners(problem, state, watched, v, whole(3), zero, partners, worth)
                for k in range(found):
                    around[members] = partners[k]
                    members += 1
                wanted = count if count <= 6 else 4 + attempt
                while members < wanted and members < count:
                    u = eligible[draw(random, count)]
                    known = False
                    for k in range(members):
                        if around[k] == u:
                            known = True
                    if known:
                        for j in range(count):
                            known = False
                            for k in range(members):
                                if around[k] == eligible[j]:
                                    known = True
                            if not known:
                                u = eligible[j]
                                break
                    around[members] = u
                    members += 1
                n = exchange(
                    problem, state, budget, v, around, members, steps, random, by_potential, typical, 0.02 * 8.0 ** (attempt % 6),
                    partitions, replicas, leads, scores,
                )  # fmt: skip
                if n > 0:
                    publish(problem, state, budget, log, n, partitions, replicas, leads)
                    done += 1
                    if not scores_low(problem, state, v):
                        break
                else:
                    spare -= steps
        published += done
        if done == 0:
            break
    return published
