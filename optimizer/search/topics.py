"""Spread the replicas (or leaders) of each topic over brokers, as topic goals ask.

Each topic is a small transport problem: brokers that hold too many replicas of it give, brokers that hold too few take. Many moves help
the topic equally; the move that lowers the potential most is made, so loads gain, too. Called by `search`, before and after
`balance`. Like `balance`, it works on a target and publishes nothing.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel, part, whole
from kernels.order import scramble
from optimizer.parameters import DONORS, LEAST_TOPIC_GAIN, MOST_DONORS, MOST_OFFERED, OFFERED, TOPIC_TARGETS
from optimizer.placement.feasible import fits_as_leader, keeps_scores, may_host
from optimizer.placement.potential import NOTHING, cost_of_gaining, rise_by_loads
from optimizer.placement.state import State, is_active
from optimizer.placement.topic_counts import largest_share, misplaced_rise, wanted_by_all
from optimizer.problem import COUNTS_LEADERS, EXCLUDED, FOLLOWING, LEADING, MOVABLE, STATE, STRENGTH, TOPIC_ROW, Problem
from optimizer.search.one_topic import (
    TopicView,
    clear,
    lay_out_topic,
    list_offers,
    list_requests,
    list_room,
    make_leader,
    make_move,
    new_view,
    note_bands,
)


@kernel
def spread_topics(problem: Problem, state: State, seed: int, strict: bool, marks: np.ndarray) -> int:
    """Move replicas and leaderships so that brokers get within their ranges of topics; returns how many moves and transfers were made.

    Each has to lower the potential. `marks` uint8 [K, T] is 0 where no broker was outside its range of a topic when the state was built or
    restored. Such a topic is looked at only if one of its partitions was committed since.

    If `strict`, no broker may lose score in a goal on loads, and where a sample finds nothing, a larger one is tried, or all brokers.
    O(P R), and some hundred brokers looked at for each misplaced replica.
    """
    view = new_view(problem, state)
    if len(view.eligible) < 2:
        return 0
    touched, seen, known = np.zeros(len(problem.topic_first), np.uint8), whole(0), True
    done = 0
    for turn in range(2):  # replicas first, since only a broker with a replica can lead
        for k in range(len(problem.topic_goal)):
            if problem.topic_goal[k, COUNTS_LEADERS] != turn:
                continue
            misplaced = 0.0
            for b in view.eligible:
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
                    done += spread_one(problem, state, view, k, t, wanted_by_all(problem, k, t, most), seed, strict)
    return done


@inner
def spread_one(problem: Problem, state: State, view: TopicView, k: int, t: int, all_need: bool, seed: int, strict: bool) -> int:
    """Get brokers within their ranges of topic `t` in topic goal `k`; returns the number of changes made."""
    found = lay_out_topic(problem, state, view, t, problem.topic_goal[k, COUNTS_LEADERS] == 1)
    members = view.eligible if all_need else view.holders[:found]
    note_bands(problem, view, k, t, members)
    over, under = 0, 0
    for b in members:
        if view.held[b] > view.high[b]:
            view.over[over] = b
            over += 1
        elif view.held[b] < view.low[b]:
            view.under[under] = b
            under += 1
    done = 0
    if over > 0 or under > 0:
        note_bands(problem, view, k, t, view.eligible)
        done = settle(problem, state, view, k, over, under, seed + t * 8191, strict)
    clear(state, view, members, done > 0)
    return done


@part
def settle(problem: Problem, state: State, view: TopicView, k: int, over: int, under: int, seed: int, strict: bool) -> int:
    """Let the first `over` of `view.over` give and the first `under` of `view.under` take; `seed` is the topic's. Returns changes made."""
    done, short, leaders = 0, under, problem.topic_goal[k, COUNTS_LEADERS] == 1
    for i in range(over + under):
        gives = i < over
        b = view.over[i] if gives else view.under[i - over]
        while view.held[b] > view.high[b] if gives else view.held[b] < view.low[b]:
            made = leaders and hand_over(problem, state, view, b, gives, strict)
            if not made and gives:
                while short > 0 and view.held[view.under[short - 1]] >= view.low[view.under[short - 1]]:
                    short -= 1
                made = give(problem, state, view, k, b, short, seed, strict)
            elif not made:
                made = take(problem, state, view, k, b, seed, strict)
            if not made:
                break
            done += 1
    return done


@inner
def give(problem: Problem, state: State, view: TopicView, k: int, v: int, short: int, seed: int, strict: bool) -> bool:
    """Make the best move of the topic from `v` to one of the first `short` of `view.under`, else to one with room; False if none."""
    start, found = scramble(seed * 1000003 + v * 131 + view.held[v]), whole(0)
    for i in range(min(short, TOPIC_TARGETS)):
        u = view.under[(start + i) % short]
        if view.held[u] < view.low[u]:
            view.among[found] = u
            found += 1
    if found == 0:
        found = list_room(view, v, whole(2 * TOPIC_TARGETS), whole(TOPIC_TARGETS), start)
    if make_best(problem, state, view, k, list_offers(problem, state, view, v, whole(OFFERED), found), strict):
        return True
    if not strict:
        return False
    found = list_room(view, v, len(view.eligible), len(view.eligible), start)
    return make_best(problem, state, view, k, list_offers(problem, state, view, v, whole(MOST_OFFERED), found), strict)


@inner
def take(problem: Problem, state: State, view: TopicView, k: int, u: int, seed: int, strict: bool) -> bool:
    """Make the best move of the topic to `u` from a broker that holds more than it needs; False if there is none."""
    start, leaders = scramble(seed * 1000211 + u * 1009 + view.held[u]), problem.topic_goal[k, COUNTS_LEADERS] == 1
    few = (view.first[1] - view.first[0]) * state.replicas.shape[1] <= 2 * DONORS
    offers = list_requests(problem, state, view, u, whole(2 * DONORS if few else DONORS), start, leaders)
    if make_best(problem, state, view, k, offers, strict):
        return True
    if few or not strict:
        return False
    return make_best(problem, state, view, k, list_requests(problem, state, view, u, whole(MOST_DONORS), start, leaders), strict)


@inner
def make_best(problem: Problem, state: State, view: TopicView, k: int, offers: int, strict: bool) -> bool:
    """Make the move of the first `offers` in `view.offer` that lowers the potential most; False if none lowers it."""
    slots, worth = state.replicas.shape[1], problem.force[problem.topic_goal[k, TOPIC_ROW], STRENGTH]
    best, most, before, relief = whole(-1), LEAST_TOPIC_GAIN, whole(-1), 0.0
    for i in range(offers):
        entry, target = view.offer[i, 0], view.offer[i, 1]
        p, s = view.first[0] + entry // slots, entry % slots
        source, role = state.replicas[p, s], whole(LEADING if state.lead[p] == s else FOLLOWING)
        gain = worth * ((1.0 if view.held[source] > view.high[source] else 0.0) + (1.0 if view.held[target] < view.low[target] else 0.0))
        if entry != before:
            before, relief = entry, rise_by_loads(problem, state, source, p, whole(NOTHING), p, role)
        gain -= relief + rise_by_loads(problem, state, target, p, role, p, whole(NOTHING))
        if gain <= most or not may_host(problem, state, p, s, target):
            continue
        gain -= other_burden(problem, state, k, p, role == LEADING, source, target)
        if gain <= most:
            continue
        if strict and not keeps_scores(problem, state, source, p, whole(NOTHING), p, role):
            continue
        if not strict or keeps_scores(problem, state, target, p, role, p, whole(NOTHING)):
            best, most = whole(i), gain
    if best >= 0:
        make_move(problem, state, view, view.offer[best, 0], view.offer[best, 1])
    return best >= 0


@inner
def other_burden(problem: Problem, state: State, k: int, p: int, leads: bool, source: int, target: int) -> float:
    """By how much topic goals other than `k` raise the potential when a replica of `p` moves from broker `source` to `target`."""
    burden = 0.0
    t = whole(problem.topic[p])
    for o in range(len(problem.topic_goal)):
        if o != k and (leads or problem.topic_goal[o, COUNTS_LEADERS] == 0):
            rise = misplaced_rise(problem, state, o, t, source, whole(-1)) + misplaced_rise(problem, state, o, t, target, whole(1))
            burden += problem.force[problem.topic_goal[o, TOPIC_ROW], STRENGTH] * rise
    return burden


@inner
def lead_gain(problem: Problem, state: State, p: int, o: int, strict: bool) -> float:
    """By how much the potential falls when slot `o` leads `p` instead of its leader; 0 if it may not (if `strict`, also for scores)."""
    giver, taker = state.replicas[p, state.lead[p]], state.replicas[p, o]
    if problem.broker[giver, STATE] == EXCLUDED or not fits_as_leader(problem, state, p, taker):
        return 0.0
    lead, follow = whole(LEADING), whole(FOLLOWING)
    gain = -cost_of_gaining(problem, state, giver, p, lead, follow) - cost_of_gaining(problem, state, taker, p, follow, lead)
    if gain > LEAST_TOPIC_GAIN and strict:
        if not keeps_scores(problem, state, giver, p, follow, p, lead) or not keeps_scores(problem, state, taker, p, lead, p, follow):
            return 0.0
    return float(gain)


@inner
def hand_over(problem: Problem, state: State, view: TopicView, b: int, gives: bool, strict: bool) -> bool:
    """Make the best leadership transfer of the topic from broker `b` (if `gives`) to a broker with room, else to `b` from a broker that
    leads more than it needs; False if none lowers the potential."""
    slots = state.replicas.shape[1]
    best_p, best_o, most = whole(-1), whole(-1), LEAST_TOPIC_GAIN
    for i in range(state.hosts[b]):
        p, s = whole(state.hosted[b, i] // slots), whole(state.hosted[b, i] % slots)
        lead = state.lead[p]
        if p < view.first[0] or p >= view.first[1] or lead < 0 or (lead == s) != gives or problem.partition[p, MOVABLE] == 0:
            continue
        for o in range(slots):
            giver, taker = state.replicas[p, lead], state.replicas[p, o]
            if taker < 0 or o == lead or (not gives and o != s) or not is_active(problem, taker):
                continue
            if view.held[taker] >= view.high[taker] if gives else not is_active(problem, giver) or view.held[giver] <= view.low[giver]:
                continue
            gain = lead_gain(problem, state, p, whole(o), strict)
            if gain > most:
                best_p, best_o, most = p, whole(o), gain
    if best_p >= 0:
        make_leader(problem, state, view, best_p, best_o)
    return best_p >= 0
