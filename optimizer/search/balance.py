"""Bringing brokers into band: leadership, moves to and from the best partners, swaps.

Works on the potential alone (which always falls); whether each step is acceptable by score is decided when the plan is put in
order. Nothing is done for brokers that are in band in every goal.
"""

from __future__ import annotations

import numpy as np

from cluster_model.compiled import inner, inner_as, kernel, part, whole
from optimizer.problem import (
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
    RACK_OF,
    SAME_RACK,
    SCALE,
    SPREAD,
    STATE,
    STEEP,
    STRENGTH,
    TOPIC_OF,
    TOPIC_ROW,
    Problem,
)
from optimizer.search import uncompiled
from optimizer.search.order import ascending, nth_largest
from optimizer.search.repair import scramble
from optimizer.search.state import LED, STRAY, State, commit, fits_rack, linear_cost, may_host, topic_rise

KEPT = 256  # candidates kept of a scan
SWAP_KEPT = 32
LEADERSHIPS = 16  # transfers a broker makes in a round
LEAST_GAIN = 1e-8
PATIENCE = 4  # rounds without success after which a broker is given up
LOOK_BACK = 16  # rounds, within which it has to get better ...
LEAST_FALL = 0.01  # ... by so much, or somebody has to come into band
LITTLE = 0.1  # mean over brokers of how far they are out of band, in the units of the potential
HALF_EMPTY = 0.8  # of the replicas of a typical broker: one with fewer needs many moves
ANYWAY = 10.0  # beyond that of a replica of no bytes, about 3: it costs no move either


@inner
def is_low(problem: Problem, state: State, b: int) -> bool:
    """Whether an eligible broker scores below 1 in a goal on loads."""
    if problem.broker[b, STATE] != 0:
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT and state.score[b, g] < 1.0:
            return True
    return False


@inner
def badness(problem: Problem, state: State, b: int) -> float:
    """Hinge part of the potential of a broker: 0 in band."""
    cost = 0.0
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] <= LIMIT:
            load = state.load[b, problem.goal[g, COLUMN]]
            over, under = load - problem.table[b, g, HIGH], problem.table[b, g, LOW] - load
            beyond = over if over > 0.0 else (under if under > 0.0 else 0.0)
            beyond *= problem.table[b, g, SCALE]
            cost += problem.force[g, STRENGTH] * beyond * beyond
    return cost


@inner
def watched_goals(problem: Problem, state: State, watched: np.ndarray) -> int:
    """Goals on loads that a search has to look at, into `watched` int64 [G]; returns how many.

    A hard limit that nobody exceeds stays out: targets over it are refused, so its part of the potential stays 0.
    """
    count = 0
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] > LIMIT:
            continue
        counts = problem.goal[g, KIND] == DISTRIBUTION or problem.goal[g, HARD] == 0
        for b in range(len(problem.broker)):
            if counts:
                break
            if problem.broker[b, STATE] == 0:
                counts = state.load[b, problem.goal[g, COLUMN]] > problem.table[b, g, CEILING]
        if counts:
            watched[count] = g
            count += 1
    return count


@inner_as(uncompiled.gather)
def gather(problem: Problem, state: State, b: int, thrifty: bool, block: np.ndarray) -> int:
    """Vectors of the replicas on broker `b` into `block` float64 [C + 1, n]; returns how many.

    The last row is the factor on the gain of moving each off `b`: less for large ones (the more so if `thrifty`), most for those
    that have moved anyway, 0 for those that may not.
    """
    slots = state.replicas.shape[1]
    n = state.hosts[b]
    columns = block.shape[0] - 1
    for i in range(n):
        p = state.hosted[b, i] // slots
        mark = state.mark[b, i]
        role = 0 if mark & LED else 1
        for c in range(columns + 1):
            block[c, i] = problem.compact[p, role, c]
        if mark & STRAY and block[columns, i] > 0.0:
            block[columns, i] = ANYWAY
        elif thrifty:
            block[columns, i] *= block[columns, i]
    return int(n)


@inner_as(uncompiled.scan)
def scan(
    problem: Problem, state: State, watched: np.ndarray, source: int, target: int, n: int, block: np.ndarray,
    gains: np.ndarray,
) -> None:  # fmt: skip
    """Gain in potential of moving each of the `n` vectors of `block` from `source` to `target`."""
    for i in range(n):
        gains[i] = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        w, e = problem.force[g, STRENGTH], problem.force[g, SPREAD]
        ls, hs, os, ms, ss = (
            state.load[source, c], problem.table[source, g, HIGH], problem.table[source, g, LOW], problem.table[source, g, MEAN],
            problem.table[source, g, SCALE],
        )  # fmt: skip
        lt, ht, ot, mt, st = (
            state.load[target, c], problem.table[target, g, HIGH], problem.table[target, g, LOW], problem.table[target, g, MEAN],
            problem.table[target, g, SCALE],
        )  # fmt: skip
        if ss == 0.0 and st == 0.0:
            continue
        now = linear_cost(problem, source, g, ls) + linear_cost(problem, target, g, lt)
        column = block[c]
        for i in range(n):
            x = column[i]
            a, b = ls - x, lt + x
            over, under = a - hs, os - a
            over = over if over > 0.0 else 0.0
            under = under if under > 0.0 else 0.0
            beyond, off = (over + under) * ss, (a - ms) * ss
            over, under = b - ht, ot - b
            over = over if over > 0.0 else 0.0
            under = under if under > 0.0 else 0.0
            beyond2, off2 = (over + under) * st, (b - mt) * st
            beyond *= beyond
            beyond2 *= beyond2
            cost = beyond * (1.0 + STEEP * beyond) + beyond2 * (1.0 + STEEP * beyond2)
            gains[i] += now - w * cost - e * (off * off + off2 * off2)


@inner_as(uncompiled.keep_best)
def keep_best(keys: np.ndarray, n: int, floor: float, most: int, kept: np.ndarray) -> int:
    """Indices of the (at most) `most` largest keys above `floor` into `kept`, in index order; returns how many."""
    count = 0
    for i in range(n):
        if keys[i] > floor:
            count += 1
    cut = floor
    if count > most:
        above = np.empty(count)
        j = 0
        for i in range(n):
            if keys[i] > floor:
                above[j] = keys[i]
                j += 1
        cut = nth_largest(above, most)
    found = 0
    if count > most:
        for i in range(n):
            if keys[i] > cut and found < most:
                kept[found] = i
                found += 1
        for i in range(n):
            if keys[i] == cut and found < most:
                kept[found] = i
                found += 1
    else:
        for i in range(n):
            if keys[i] > cut:
                kept[found] = i
                found += 1
    return found


@inner_as(uncompiled.best_key)
def best_key(gains: np.ndarray, factors: np.ndarray, entries: np.ndarray, found: int, least: float) -> int:
    """Index of the largest gain times its factor among the first `found` gains above `least`, lower entry first; -1 if none."""
    best, top = whole(-1), 0.0
    for i in range(found):
        if gains[i] > least:
            key = gains[i] * factors[i]
            if key > top or (key == top and best >= 0 and entries[i] < entries[best]):
                best, top = whole(i), key
    return best


@inner_as(uncompiled.take)
def take(block: np.ndarray, kept: np.ndarray, found: int, small: np.ndarray) -> None:
    """The first `found` columns of `block` that `kept` names, into `small`."""
    for i in range(found):
        for c in range(block.shape[0]):
            small[c, i] = block[c, kept[i]]


@inner
def topic_burden(problem: Problem, state: State, p: int, replica: bool, leads: bool, source: int, target: int) -> float:
    """By how much topic goals raise the potential when a replica and/or the leadership of `p` goes from `source` to `target`."""
    burden = 0.0
    t = problem.partition[p, TOPIC_OF]
    for k in range(len(problem.topic_goal)):
        if leads if problem.topic_goal[k, COUNTS_LEADERS] == 1 else replica:
            rise = topic_rise(problem, state, k, t, source, whole(-1)) + topic_rise(problem, state, k, t, target, whole(1))
            burden += problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH] * rise
    return burden


@inner
def pour(
    problem: Problem, state: State, watched: np.ndarray, source: int, target: int, most: int, thrifty: bool,
    block: np.ndarray, gains: np.ndarray, small: np.ndarray, kept: np.ndarray,
) -> int:  # fmt: skip
    """Move up to `most` replicas from `source` to `target`, best gain for its bytes first. Returns how many."""
    slots = state.replicas.shape[1]
    factor = block.shape[0] - 1
    n = gather(problem, state, source, thrifty, block)
    scan(problem, state, watched, source, target, n, block, gains)
    for i in range(n):
        gains[i] = gains[i] * block[factor, i] if gains[i] > LEAST_GAIN else 0.0
    found = keep_best(gains, n, 0.0, whole(KEPT), kept)
    if found == 0:
        return 0
    entries = np.empty(found, np.int64)
    take(block, kept, found, small)
    for i in range(found):
        entries[i] = state.hosted[source, kept[i]]
    row = np.zeros(slots, np.int64)
    burdens = np.zeros(found if len(problem.topic_goal) > 0 else 0)  # as far as they are known
    moved = 0
    keys = gains
    while moved < most and found > 0:
        scan(problem, state, watched, source, target, found, small, keys)
        if len(burdens) > 0:
            for i in range(found):
                keys[i] -= burdens[i]
        legal = False
        while not legal and found > 0:
            best = best_key(keys, small[factor], entries, found, LEAST_GAIN)
            if best < 0:
                return moved
            p, s = entries[best] // slots, entries[best] % slots
            if len(burdens) > 0:  # looked up when it would decide; others of the topic move meanwhile
                burden = topic_burden(problem, state, p, True, state.lead[p] == s, source, target)
                if burden != burdens[best]:
                    keys[best] += burdens[best] - burden
                    burdens[best] = burden
                    continue
            legal = may_host(problem, state, p, s, target)
            if legal:
                for o in range(slots):
                    row[o] = state.replicas[p, o]
                row[s] = target
                commit(problem, state, p, row, state.lead[p])
                moved += 1
            found -= 1
            entries[best] = entries[found]
            keys[best] = keys[found]
            if len(burdens) > 0:
                burdens[best] = burdens[found]
            for c in range(small.shape[0]):
                small[c, best] = small[c, found]
    return moved


@inner_as(uncompiled.rank_partners)
def rank_partners(
    problem: Problem, state: State, watched: np.ndarray, v: int, most: int, noise: int, partners: np.ndarray,
    worth: np.ndarray,
) -> int:  # fmt: skip
    """The brokers with which `v` could best meet half-way, best first, into `partners`; returns how many.

    `noise` seeds a disturbance of up to 30 % that keeps equal brokers from all choosing the same partner; 0 for none.
    """
    brokers = len(problem.broker)
    for u in range(brokers):
        worth[u] = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        w, e = problem.force[g, STRENGTH], problem.force[g, SPREAD]
        shared = problem.goal[g, KIND] == DISTRIBUTION
        lv, mv, hv, ov, sv = (
            state.load[v, c], problem.table[v, g, MEAN], problem.table[v, g, HIGH], problem.table[v, g, LOW],
            problem.table[v, g, SCALE],
        )  # fmt: skip
        now = linear_cost(problem, v, g, lv)
        for u in range(brokers):
            lu, mu, hu, ou, su = (
                state.load[u, c], problem.table[u, g, MEAN], problem.table[u, g, HIGH], problem.table[u, g, LOW],
                problem.table[u, g, SCALE],
            )  # fmt: skip
            both = mv + mu
            share = mv / both if shared and both > 0.0 else 0.5
            mid = (lv + lu) * share
            rest = lv + lu - mid
            x, y, z = max(lu - hu, ou - lu, 0.0) * su, max(mid - hv, ov - mid, 0.0) * sv, max(rest - hu, ou - rest, 0.0) * su
            x *= x
            y *= y
            z *= z
            cost = x * (1.0 + STEEP * x) - y * (1.0 + STEEP * y) - z * (1.0 + STEEP * z)
            x, y, z = (lu - mu) * su, (mid - mv) * sv, (rest - mu) * su
            worth[u] += now + w * cost + e * (x * x - y * y - z * z)
    for u in range(brokers):
        far = problem.setting[SAME_RACK] == 1 and problem.broker[u, RACK_OF] != problem.broker[v, RACK_OF]
        if u == v or far or problem.broker[u, STATE] != 0 or worth[u] <= 0.0:
            worth[u] = -1.0
        elif noise != 0:
            worth[u] *= 1.0 - 0.3 * ((scramble(noise + v * 1000003 + u) & 0xFFFF) / 65536.0)
    found = 0
    while found < most:
        best, best_worth = -1, 0.0
        for u in range(brokers):
            if worth[u] > best_worth:
                best, best_worth = u, worth[u]
        if best < 0:
            break
        partners[found] = best
        worth[best] = -1.0
        found += 1
    return found


@inner
def leans(problem: Problem, state: State, watched: np.ndarray, b: int) -> tuple[bool, bool]:
    """Whether the broker is over, and whether it is under, its hinge in some of the goals."""
    over, under = False, False
    for g in watched:
        if problem.table[b, g, SCALE] > 0.0:
            load = state.load[b, problem.goal[g, COLUMN]]
            if load > problem.table[b, g, HIGH]:
                over = True
            if load < problem.table[b, g, LOW]:
                under = True
    return over, under


@inner_as(uncompiled.transfer_gain)
def transfer_gain(
    problem: Problem, state: State, watched: np.ndarray, p: int, giver: int, taker: int
) -> float:
    """Gain in potential when leadership of `p` goes from broker `giver` to broker `taker`."""
    gain = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        x = float(problem.compact[p, LEADING, c]) - float(problem.compact[p, FOLLOWING, c])
        if x != 0.0:
            a, b = state.load[giver, c], state.load[taker, c]
            gain += (
                linear_cost(problem, giver, g, a) + linear_cost(problem, taker, g, b)
                - linear_cost(problem, giver, g, a - x) - linear_cost(problem, taker, g, b + x)
            )  # fmt: skip
    if gain > 0.0 and len(problem.topic_goal) > 0:
        gain -= topic_burden(problem, state, p, False, True, giver, taker)
    return gain


@inner
def fits_as_leader(problem: Problem, state: State, p: int, b: int) -> bool:
    """Whether leading `p` keeps broker `b`, which holds a follower, under its hard limits."""
    if problem.broker[b, STATE] != 0:
        return False
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD] == 1:
            c = problem.goal[g, COLUMN]
            x = problem.vector[p, LEADING, c] - problem.vector[p, FOLLOWING, c]
            if x > 0.0 and state.load[b, c] + x > problem.table[b, g, CEILING]:
                return False
    return True


@part
def transfer_leaders(
    problem: Problem, state: State, led: np.ndarray, v: int, best_gain: np.ndarray, best_entry: np.ndarray
) -> int:
    """Up to `LEADERSHIPS` transfers from or to broker `v` that lower the potential. Costs no bytes.

    `led` are the goals that tell a leader from a follower.
    """
    slots = state.replicas.shape[1]
    factor = problem.vector.shape[2]
    over, under = leans(problem, state, led, v)
    found = whole(0)
    for i in range(state.hosts[v]):
        leads = (state.mark[v, i] & LED) != 0
        if not (over if leads else under):
            continue
        entry = whole(state.hosted[v, i])
        p, s = entry // slots, entry % slots
        if problem.compact[p, LEADING, factor] == 0.0 or state.lead[p] < 0:
            continue
        if leads:
            for o in range(slots):
                u = state.replicas[p, o]
                if u < 0 or o == s or problem.broker[u, STATE] != 0:
                    continue
                gain = transfer_gain(problem, state, led, p, v, u)
                if gain > LEAST_GAIN:
                    found = insert(best_gain, best_entry, found, gain, p * slots + o)
        else:
            giver = state.replicas[p, state.lead[p]]
            if problem.broker[giver, STATE] == 3:
                continue
            gain = transfer_gain(problem, state, led, p, giver, v)
            if gain > LEAST_GAIN:
                found = insert(best_gain, best_entry, found, gain, entry)
    done = 0
    row = np.zeros(slots, np.int64)
    for i in range(found):
        p, o = best_entry[i] // slots, best_entry[i] % slots
        s = state.lead[p]
        if s == o:
            continue
        giver, taker = state.replicas[p, s], state.replicas[p, o]
        if giver != v and taker != v:
            continue
        gain = transfer_gain(problem, state, led, p, giver, taker)
        if gain > LEAST_GAIN and fits_as_leader(problem, state, p, taker):
            for q in range(slots):
                row[q] = state.replicas[p, q]
            commit(problem, state, p, row, o)
            done += 1
    return done


@inner
def insert(best_gain: np.ndarray, best_entry: np.ndarray, found: int, gain: float, entry: int) -> int:
    """Keep the best few in descending order of gain (lower entry first among equals); returns how many there are."""
    most = len(best_gain)
    if found == most:
        last = most - 1
        if gain < best_gain[last] or (gain == best_gain[last] and entry > best_entry[last]):
            return found
        at = last
    else:
        at = found
        found += 1
    while at > 0 and (best_gain[at - 1] < gain or (best_gain[at - 1] == gain and best_entry[at - 1] > entry)):
        best_gain[at] = best_gain[at - 1]
        best_entry[at] = best_entry[at - 1]
        at -= 1
    best_gain[at] = gain
    best_entry[at] = entry
    return found


@inner
def pair_gain(
    problem: Problem, state: State, watched: np.ndarray, v: int, u: int, x: np.ndarray, i: int, y: np.ndarray, j: int
) -> float:
    """Gain when vector `i` of `x` goes from `v` to `u` and vector `j` of `y` from `u` to `v`; below 0 if a hard limit breaks."""
    for g in range(len(problem.goal)):
        if problem.goal[g, KIND] == LIMIT and problem.goal[g, HARD] == 1:
            c = problem.goal[g, COLUMN]
            d = x[c, i] - y[c, j]
            if d > 0.0 and state.load[u, c] + d > problem.table[u, g, CEILING]:
                return -1.0
            if d < 0.0 and state.load[v, c] - d > problem.table[v, g, CEILING]:
                return -1.0
    gain = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        d = x[c, i] - y[c, j]
        if d == 0.0:
            continue
        a, b = state.load[v, c], state.load[u, c]
        gain += (
            linear_cost(problem, v, g, a) + linear_cost(problem, u, g, b)
            - linear_cost(problem, v, g, a - d) - linear_cost(problem, u, g, b + d)
        )  # fmt: skip
    return gain


@inner
def may_swap(problem: Problem, state: State, p: int, s: int, target: int) -> bool:
    """`may_host` without the hard limits, which a swap meets by its difference."""
    for o in range(state.replicas.shape[1]):
        if state.replicas[p, o] == target:
            return False
    return fits_rack(problem, state, p, s, target)


@inner
def shortlist(
    problem: Problem, state: State, watched: np.ndarray, source: int, target: int, block: np.ndarray,
    gains: np.ndarray, kept: np.ndarray, small: np.ndarray, entries: np.ndarray,
) -> int:  # fmt: skip
    """The replicas of `source` that do best (or least harm) on `target`, into `small` and `entries`; returns how many."""
    factor = block.shape[0] - 1
    n = gather(problem, state, source, False, block)
    scan(problem, state, watched, source, target, n, block, gains)
    for i in range(n):
        if block[factor, i] == 0.0:
            gains[i] = -np.inf
    found = keep_best(gains, n, -np.inf, whole(SWAP_KEPT), kept)
    take(block, kept, found, small)
    for i in range(found):
        entries[i] = state.hosted[source, kept[i]]
    return found


@part
def swap_with(
    problem: Problem, state: State, watched: np.ndarray, v: int, u: int, block: np.ndarray, gains: np.ndarray,
    small: np.ndarray, small2: np.ndarray, kept: np.ndarray, mine: np.ndarray, theirs: np.ndarray,
) -> int:  # fmt: skip
    """The best swap between `v` and `u` among their most promising replicas; returns 1 if one was made."""
    slots = state.replicas.shape[1]
    factor = block.shape[0] - 1
    found = shortlist(problem, state, watched, v, u, block, gains, kept, small, mine)
    found2 = shortlist(problem, state, watched, u, v, block, gains, kept, small2, theirs)
    best_i, best_j, best_key = -1, -1, 0.0
    given = np.zeros(found if len(problem.topic_goal) > 0 else 0)
    got = np.zeros(found2 if len(problem.topic_goal) > 0 else 0)
    for i in range(len(given)):
        p = mine[i] // slots
        given[i] = topic_burden(problem, state, p, True, state.lead[p] == mine[i] % slots, v, u)
    for j in range(len(got)):
        q = theirs[j] // slots
        got[j] = topic_burden(problem, state, q, True, state.lead[q] == theirs[j] % slots, u, v)
    for i in range(found):
        p, s = mine[i] // slots, mine[i] % slots
        if not may_swap(problem, state, p, s, u):
            continue
        for j in range(found2):
            gain = pair_gain(problem, state, watched, v, u, small, i, small2, j)
            if gain <= LEAST_GAIN:
                continue
            q = theirs[j] // slots
            if len(given) > 0 and problem.partition[p, TOPIC_OF] != problem.partition[q, TOPIC_OF]:
                gain -= given[i] + got[j]
                if gain <= LEAST_GAIN:
                    continue
            key = gain * min(small[factor, i], small2[factor, j])
            if key > best_key and q != p and may_swap(problem, state, q, theirs[j] % slots, v):
                best_i, best_j, best_key = i, j, key
    if best_i < 0:
        return 0
    row = np.zeros(slots, np.int64)
    p, s = mine[best_i] // slots, mine[best_i] % slots
    for o in range(slots):
        row[o] = state.replicas[p, o]
    row[s] = u
    commit(problem, state, p, row, state.lead[p])
    q, t = theirs[best_j] // slots, theirs[best_j] % slots
    for o in range(slots):
        row[o] = state.replicas[q, o]
    row[t] = v
    commit(problem, state, q, row, state.lead[q])
    return 1


@kernel
def balance(problem: Problem, state: State, seed: int, rounds: int, roles: np.ndarray) -> int:
    """Rounds over the brokers out of band until none is left or nothing helps. Returns rounds used.

    `roles` int64 [G] marks goals that a leadership transfer can help.
    """
    brokers = len(problem.broker)
    columns = problem.vector.shape[2]
    room = state.hosted.shape[1] + 1
    block = np.zeros((columns + 1, room))
    small, small2 = np.zeros((columns + 1, KEPT)), np.zeros((columns + 1, KEPT))
    mine, theirs = np.zeros(SWAP_KEPT, np.int64), np.zeros(SWAP_KEPT, np.int64)
    goals, led = np.zeros(len(problem.goal), np.int64), np.zeros(len(problem.goal), np.int64)
    gains = np.zeros(max(room, KEPT))
    kept = np.zeros(KEPT, np.int64)
    partners = np.zeros(16, np.int64)
    worth = np.zeros(brokers)
    best_gain, best_entry = np.zeros(LEADERSHIPS), np.zeros(LEADERSHIPS, np.int64)
    eligible, total = 0, 0
    for b in range(brokers):
        if problem.broker[b, STATE] == 0:
            eligible += 1
            total += state.hosts[b]
    if eligible < 2:
        return 0
    typical = total / eligible
    rest = np.zeros(brokers, np.int64)  # rounds to leave a broker alone after it found nothing
    failed = np.zeros(brokers, np.int64)
    with_swaps = False
    thrifty = False  # where little is out of band but for leadership, time is spent on fewer bytes
    past_low, past_badness = np.inf, np.inf
    for turn in range(rounds):
        if turn % LOOK_BACK == 0:
            now_low, now_badness = 0.0, 0.0
            for b in range(brokers):
                if is_low(problem, state, b):
                    now_low += 1.0
                    now_badness += badness(problem, state, b)
            if now_low >= past_low and now_badness >= (1.0 - LEAST_FALL) * past_badness:
                return turn
            past_low, past_badness = now_low, now_badness
        low = np.zeros(brokers, np.int64)
        keys = np.zeros(brokers)
        count = 0
        for b in range(brokers):
            if is_low(problem, state, b):
                if rest[b] > 0:
                    rest[b] -= 1
                    continue
                low[count] = b
                keys[count] = -badness(problem, state, b)
                count += 1
        if count == 0:
            waiting = False
            for b in range(brokers):
                if failed[b] < PATIENCE and is_low(problem, state, b):
                    waiting = True
            if not waiting:
                return turn
            continue
        order = ascending(keys[:count])
        accepted = 0
        watched = goals[: watched_goals(problem, state, goals)]
        leading = whole(0)
        for g in watched:
            if roles[g] == 1:
                led[leading] = g
                leading += 1
        for i in range(count):
            v = low[order[i]]
            helps = False
            for g in led[:leading]:
                if state.score[v, g] < 1.0:
                    helps = True
            if helps:
                done = transfer_leaders(problem, state, led[:leading], v, best_gain, best_entry)
                accepted += done
                if done > 0:
                    failed[v] = 0
        if turn == 0:
            strain = 0.0
            for b in range(brokers):
                strain += np.sqrt(badness(problem, state, b))
            thrifty = strain < LITTLE * eligible
            for i in range(count if len(problem.topic_goal) > 0 else 0):  # topics may have filled new brokers half
                if state.hosts[low[i]] < HALF_EMPTY * typical:
                    thrifty = False
        for i in range(count):
            v = low[order[i]]
            if not is_low(problem, state, v):
                continue
            worst = np.sqrt(badness(problem, state, v))
            most = min(max(int(0.032 * typical), 2), 64)
            if thrifty:
                most = 1
            elif worst < 0.1:
                most = max(1, most // 4)
            stars = 2 if worst < 0.2 else (4 if worst < 0.5 else 8)
            done = 0
            found = rank_partners(problem, state, watched, v, stars, seed * 7919 + turn + 1, partners, worth)
            for k in range(found):
                u = partners[k]
                over, under = leans(problem, state, watched, v)
                over2, under2 = leans(problem, state, watched, u)
                if over or under2:
                    done += pour(problem, state, watched, v, u, most, thrifty, block, gains, small, kept)
                if under or over2:
                    done += pour(problem, state, watched, u, v, most, thrifty, block, gains, small, kept)
                if not is_low(problem, state, v):
                    break
            if done == 0 and (with_swaps or failed[v] > 0):
                found = rank_partners(
                    problem, state, watched, v, 12 if failed[v] > 1 else 4, seed * 7919 + turn + 1, partners, worth
                )
                for k in range(found):
                    done += swap_with(
                        problem, state, watched, v, partners[k], block, gains, small, small2, kept, mine, theirs
                    )
                    if not is_low(problem, state, v):
                        break
            if done == 0:
                failed[v] += 1
                rest[v] = min(failed[v], 4)
            else:
                failed[v] = 0
            accepted += done
        stuck = 0
        for i in range(count):
            if failed[low[order[i]]] >= PATIENCE:
                stuck += 1
        if accepted == 0 and stuck == count and with_swaps:
            return turn + 1
        if accepted * 20 < count:
            with_swaps = True
    return rounds
