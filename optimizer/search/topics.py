"""Spreading topics: the replicas (or leaders) of every topic over brokers, as topic goals ask.

Each topic is a small transport problem: brokers that hold too many of it give, brokers that hold too few take. Among the many
choices that serve the topic alike, the one is made that is best for the potential, and so for loads. Called by `rounds`, before
and after `balance`; like it, it works on a target and publishes nothing.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, part, whole
from optimizer.problem import (
    COLUMN,
    COUNTS_LEADERS,
    FOLLOWING,
    LEADING,
    MOVABLE,
    SCALE,
    STATE,
    STRENGTH,
    TOPIC_ROW,
    Problem,
)
from optimizer.search.chance import scramble
from optimizer.search.desk import Desk, least_of, make_leader, make_move, most_of, new_desk, room_of
from optimizer.search.feasible import fits_as_leader, leaves_band, may_host
from optimizer.search.potential import NOTHING, cost_of_gaining, linear_cost
from optimizer.search.state import State
from optimizer.search.topic_counts import largest_share, topic_rise, wanted_by_all
from optimizer.search.trade import trade

OFFERED = 4  # replicas of a broker looked at for one that it gives
TARGETS = 10  # brokers looked at for one replica
DONORS, MOST_DONORS = 24, 400  # replicas looked at for one that a broker takes
LEAST_GAIN = 1e-9


@kernel
def spread_topics(problem: Problem, state: State, seed: int, strict: bool, marks: np.ndarray) -> int:
    """Bring topics into their bands as far as the potential falls; returns how many replicas moved and leaders changed.

    `marks` uint8 [K, T] are 0 where nobody was outside the band of a topic when the state was built or brought elsewhere: of those, the
    ones with a commit since are looked at.

    `strict`: no broker may leave the band of a goal on loads, and where samples find nothing, every broker is looked at.
    O(P R), and some hundred brokers looked at for each replica out of place.
    """
    desk = new_desk(problem, state)
    if len(desk.eligible) < 2:
        return 0
    touched, seen, known = np.zeros(len(problem.topic_first), np.uint8), whole(0), True
    done = 0
    for turn in range(2):  # replicas first: leaders can only be where replicas are
        for k in range(len(problem.topic_goal)):
            if problem.topic_goal[k, COUNTS_LEADERS] != turn:
                continue
            misplaced = 0.0
            for b in desk.eligible:
                misplaced += state.units[k, b]
            if misplaced == 0.0:
                continue
            most = largest_share(problem, k)
            for t in range(len(problem.topic_first) - 1):
                known = state.trail[0] < len(state.trail)
                while known and seen < state.trail[0]:
                    seen += 1
                    touched[problem.topic[state.trail[seen]]] = 1
                if problem.topic_first[t + 1] > problem.topic_first[t] and not (known and touched[t] == 0 and marks[k, t] == 0):
                    done += spread_one(problem, state, desk, k, t, wanted_by_all(problem, k, t, most), seed, strict)
    return done


@inner
def spread_one(
    problem: Problem, state: State, desk: Desk, k: int, t: int, all_need: bool, seed: int, strict: bool
) -> int:
    """Bring topic `t` into the bands of goal `k`; returns changes made."""
    first, slots = problem.topic_first[t], state.replicas.shape[1]
    leaders = problem.topic_goal[k, COUNTS_LEADERS] == 1
    found = 0
    for p in range(first, problem.topic_first[t + 1]):
        for s in range(slots):
            b = state.replicas[p, s]
            if b < 0 or problem.broker[b, STATE] != 0 or (leaders and state.lead[p] != s):
                continue
            if desk.held[b] == 0:
                desk.holders[found] = b
                found += 1
            desk.held[b] += 1
            entry = (p - first) * slots + s
            desk.following[entry] = desk.head[b]
            desk.head[b] = entry
    members = desk.eligible if all_need else desk.holders[:found]
    over, under = 0, 0
    for b in members:
        desk.low[b], desk.high[b] = least_of(problem, k, t, b), most_of(problem, k, t, b)
        if desk.held[b] > desk.high[b]:
            desk.over[over] = b
            over += 1
        elif desk.held[b] < desk.low[b]:
            desk.under[under] = b
            under += 1
    done = 0
    if over > 0 or under > 0:
        done = settle(problem, state, desk, k, t, leaders, over, under, seed, strict)
    for b in members:
        desk.held[b] = 0
        desk.head[b] = -1
    for p in range(first, problem.topic_first[t + 1] if done > 0 else first):  # brokers that came to hold some
        for s in range(slots):
            if state.replicas[p, s] >= 0:
                desk.held[state.replicas[p, s]] = 0
                desk.head[state.replicas[p, s]] = -1
    return done


@part
def settle(
    problem: Problem, state: State, desk: Desk, k: int, t: int, leaders: bool, over: int, under: int, seed: int, strict: bool
) -> int:
    """Let the brokers in `desk.over` give and those in `desk.under` take."""
    done = 0
    short = under
    for i in range(over):
        v = desk.over[i]
        while desk.held[v] > desk.high[v]:
            made = leaders and hand_over(problem, state, desk, t, k, v, strict)
            if not made:
                while short > 0 and desk.held[desk.under[short - 1]] >= desk.low[desk.under[short - 1]]:
                    short -= 1
                made = give(problem, state, desk, t, k, v, short, seed, strict)
            if not made and strict:
                made = trade(problem, state, desk, t, k, v, True, leaders, seed)
            if not made:
                break
            done += 1
    for i in range(under):
        u = desk.under[i]
        while desk.held[u] < desk.low[u]:
            made = leaders and take_over(problem, state, desk, t, k, u, strict)
            if not made:
                made = take(problem, state, desk, t, k, u, leaders, seed, strict)
            if not made and strict:
                made = trade(problem, state, desk, t, k, u, False, leaders, seed)
            if not made:
                break
            done += 1
    return done


@inner
def linear_rise(problem: Problem, state: State, watched: np.ndarray, b: int, p: int, role: int, sign: float) -> float:
    """By how much goals on loads raise the potential of broker `b` with a replica of `p` more (`sign` 1) or less (-1)."""
    rise = 0.0
    for g in watched:
        c = problem.goal[g, COLUMN]
        x = problem.vector[p, role, c]
        if x != 0.0 and problem.table[b, g, SCALE] > 0.0:
            load = state.load[b, c]
            rise += linear_cost(problem, b, g, load + sign * x) - linear_cost(problem, b, g, load)
    return rise


@inner
def best_target(
    problem: Problem, state: State, desk: Desk, t: int, k: int, v: int, offered: int, among: int, strict: bool
) -> tuple[int, int, float]:
    """Of the first `offered` of the topic on `v`, the entry and the target of `desk.among` with the largest gain."""
    first, slots = problem.topic_first[t], state.replicas.shape[1]
    worth = problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]
    best_entry, best, best_gain = whole(-1), whole(-1), LEAST_GAIN
    entry, looked = desk.head[v], 0
    while entry >= 0 and looked < offered:
        here = whole(entry)
        p, s = first + entry // slots, entry % slots
        entry = desk.following[entry]
        if problem.partition[p, MOVABLE] == 0:
            continue
        looked += 1
        role = whole(LEADING if state.lead[p] == s else FOLLOWING)
        if strict and leaves_band(problem, state, v, p, role, whole(NOTHING)):
            continue
        relief = worth - linear_rise(problem, state, desk.watched, v, p, role, -1.0)
        for i in range(among):
            u = desk.among[i]
            gain = relief - linear_rise(problem, state, desk.watched, u, p, role, 1.0)
            if desk.held[u] < least_of(problem, k, t, u):
                gain += worth
            if gain <= best_gain or not may_host(problem, state, p, s, u):
                continue
            gain -= other_burden(problem, state, k, p, role == LEADING, v, u)
            if gain > best_gain and not (strict and leaves_band(problem, state, u, p, whole(NOTHING), role)):
                best_entry, best, best_gain = here, u, gain
    return best_entry, best, best_gain


@inner
def other_burden(problem: Problem, state: State, k: int, p: int, leads: bool, source: int, target: int) -> float:
    """By how much topic goals other than `k` raise the potential when a replica of `p` goes from `source` to `target`."""
    burden = 0.0
    t = whole(problem.topic[p])
    for o in range(len(problem.topic_goal)):
        if o != k and (leads or problem.topic_goal[o, COUNTS_LEADERS] == 0):
            rise = topic_rise(problem, state, o, t, source, whole(-1)) + topic_rise(problem, state, o, t, target, whole(1))
            burden += problem.force[problem.topic_goal[o, TOPIC_ROW], STRENGTH] * rise
    return burden


@inner
def give(
    problem: Problem, state: State, desk: Desk, t: int, k: int, v: int, short: int, seed: int, strict: bool
) -> bool:
    """Move one of the topic from `v` to the broker where the potential falls most: one of the `short` that lack it, or one with room."""
    first, slots = problem.topic_first[t], state.replicas.shape[1]
    count = len(desk.eligible)
    start = scramble(seed * 1000003 + t * 8191 + v * 131 + desk.held[v])
    found = 0
    for i in range(min(short, TARGETS)):
        u = desk.under[(start + i) % short]
        if desk.held[u] < desk.low[u]:
            desk.among[found] = u
            found += 1
    if found == 0:
        tries = count if count <= 2 * TARGETS else 2 * TARGETS
        for i in range(tries):
            u = desk.eligible[i if tries == count else scramble(start + i) % count]
            if u != v and found < TARGETS and room_of(problem, desk, k, t, u):
                desk.among[found] = u
                found += 1
    entry, target, _ = best_target(problem, state, desk, t, k, v, whole(OFFERED), whole(found), strict)
    if target < 0 and strict:
        found = 0
        for u in desk.eligible:
            if u != v and room_of(problem, desk, k, t, u):
                desk.among[found] = u
                found += 1
        entry, target, _ = best_target(problem, state, desk, t, k, v, whole(4 * OFFERED), whole(found), strict)
    if target < 0:
        return False
    make_move(problem, state, desk, first, first + entry // slots, entry % slots, target)
    return True


@inner
def take(
    problem: Problem, state: State, desk: Desk, t: int, k: int, u: int, leaders: bool, seed: int, strict: bool
) -> bool:
    """Move one of the topic to `u`, from a broker that holds more than it needs."""
    first, slots = problem.topic_first[t], state.replicas.shape[1]
    entries = (problem.topic_first[t + 1] - first) * slots
    worth = problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]
    best_p, best_s, best_gain = whole(-1), whole(-1), LEAST_GAIN
    start = scramble(seed * 1000211 + t * 8191 + u * 1009 + desk.held[u])
    for attempt in range(2):
        everyone = entries <= 2 * DONORS
        tries = whole(entries if everyone else (DONORS if attempt == 0 else MOST_DONORS))
        for i in range(tries):
            entry = i if everyone else scramble(start + i + attempt) % entries
            p, s = first + entry // slots, whole(entry % slots)
            b = state.replicas[p, s]
            if b < 0 or b == u or problem.broker[b, STATE] != 0 or problem.partition[p, MOVABLE] == 0:
                continue
            if (leaders and state.lead[p] != s) or desk.held[b] <= least_of(problem, k, t, b):
                continue
            role = whole(LEADING if state.lead[p] == s else FOLLOWING)
            gain = worth - linear_rise(problem, state, desk.watched, b, p, role, -1.0)
            gain -= linear_rise(problem, state, desk.watched, u, p, role, 1.0)
            if desk.held[b] > most_of(problem, k, t, b):
                gain += worth
            if gain <= best_gain or not may_host(problem, state, p, s, u):
                continue
            gain -= other_burden(problem, state, k, p, role == LEADING, b, u)
            if gain <= best_gain:
                continue
            if strict and leaves_band(problem, state, b, p, role, whole(NOTHING)):
                continue
            if strict and leaves_band(problem, state, u, p, whole(NOTHING), role):
                continue
            best_p, best_s, best_gain = p, s, gain
        if best_p >= 0 or not strict or everyone:
            break
    if best_p < 0:
        return False
    make_move(problem, state, desk, first, best_p, best_s, u)
    return True


@inner
def lead_gain(problem: Problem, state: State, p: int, o: int, strict: bool) -> float:
    """By how much the potential falls when slot `o` leads `p`; 0 where it may not."""
    giver, taker = state.replicas[p, state.lead[p]], state.replicas[p, o]
    if problem.broker[giver, STATE] == 3 or not fits_as_leader(problem, state, p, taker):
        return 0.0
    lead, follow = whole(LEADING), whole(FOLLOWING)
    gain = -cost_of_gaining(problem, state, giver, p, lead, follow) - cost_of_gaining(problem, state, taker, p, follow, lead)
    if gain > LEAST_GAIN and strict:
        if leaves_band(problem, state, giver, p, lead, follow) or leaves_band(problem, state, taker, p, follow, lead):
            return 0.0
    return float(gain)


@inner
def hand_over(problem: Problem, state: State, desk: Desk, t: int, k: int, v: int, strict: bool) -> bool:
    """Give one leadership of the topic from `v` to a follower's broker with room for it."""
    first, slots = problem.topic_first[t], state.replicas.shape[1]
    best_p, best_o, best_gain = whole(-1), whole(-1), LEAST_GAIN
    entry = desk.head[v]
    while entry >= 0:
        p = first + entry // slots
        entry = desk.following[entry]
        if problem.partition[p, MOVABLE] == 0:
            continue
        for o in range(slots):
            u = state.replicas[p, o]
            if u < 0 or o == state.lead[p] or problem.broker[u, STATE] != 0 or not room_of(problem, desk, k, t, u):
                continue
            gain = lead_gain(problem, state, p, o, strict)
            if gain > best_gain:
                best_p, best_o, best_gain = p, o, gain
    if best_p < 0:
        return False
    make_leader(problem, state, desk, first, best_p, best_o)
    return True


@inner
def take_over(problem: Problem, state: State, desk: Desk, t: int, k: int, u: int, strict: bool) -> bool:
    """Give `u` one leadership of the topic, of a partition that it follows."""
    slots = state.replicas.shape[1]
    first, last = problem.topic_first[t], problem.topic_first[t + 1]
    best_p, best_o, best_gain = whole(-1), whole(-1), LEAST_GAIN
    for i in range(state.hosts[u]):
        p, o = state.hosted[u, i] // slots, whole(state.hosted[u, i] % slots)
        if p < first or p >= last or state.lead[p] < 0 or state.lead[p] == o or problem.partition[p, MOVABLE] == 0:
            continue
        giver = state.replicas[p, state.lead[p]]
        if problem.broker[giver, STATE] != 0 or desk.held[giver] <= least_of(problem, k, t, giver):
            continue
        gain = lead_gain(problem, state, p, o, strict)
        if gain > best_gain:
            best_p, best_o, best_gain = whole(p), o, gain
    if best_p < 0:
        return False
    make_leader(problem, state, desk, first, best_p, best_o)
    return True
