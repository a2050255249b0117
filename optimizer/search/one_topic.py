"""A view of one topic while it is spread: which of its replicas or leaders each broker holds, and which of them could go where.

Called by `topics`, which changes the placement through this module, so that the view stays up to date.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernels.compiled import inner, whole
from kernels.order import scramble
from optimizer.parameters import MOST_OFFERED, MOST_OFFERS
from optimizer.placement.commit import relocate, transfer
from optimizer.placement.feasible import active_brokers
from optimizer.placement.state import State, is_active
from optimizer.placement.topic_counts import topic_band
from optimizer.problem import MOVABLE, Problem


class TopicView(NamedTuple):
    """Arrays for one topic at a time. B brokers, n slots of the largest topic; an entry is a slot, counted from the first of the topic."""

    first: np.ndarray  # int64 [2], first partition of the topic, and of the next topic
    held: np.ndarray  # int64 [B], number of replicas (or leaders) of the topic
    low: np.ndarray  # int64 [B], the fewest of them with which the broker scores 1
    high: np.ndarray  # int64 [B], the most of them with which it does
    head: np.ndarray  # int64 [B], first counted entry on the broker, -1 none
    next_entry: np.ndarray  # int64 [n], next counted entry on the same broker, -1 none
    holders: np.ndarray  # int64 [B], eligible brokers that hold some of the topic
    over: np.ndarray  # int64 [B], brokers above their range
    under: np.ndarray  # int64 [B], brokers below their range
    eligible: np.ndarray  # int64, active brokers, ascending
    among: np.ndarray  # int64 [B], brokers to which an entry may go
    offer: np.ndarray  # int64 [m, 2], possible moves: entry and target broker


@inner
def new_view(problem: Problem, state: State) -> TopicView:
    brokers, slots = len(problem.broker), state.replicas.shape[1]
    largest = 0
    for t in range(len(problem.topic_first) - 1):
        largest = max(largest, problem.topic_first[t + 1] - problem.topic_first[t])
    return TopicView(
        np.zeros(2, np.int64), np.zeros(brokers, np.int64), np.zeros(brokers, np.int64), np.zeros(brokers, np.int64),
        np.full(brokers, -1, np.int64), np.zeros(largest * slots + 1, np.int64), np.zeros(brokers, np.int64),
        np.zeros(brokers, np.int64), np.zeros(brokers, np.int64), active_brokers(problem), np.zeros(brokers, np.int64),
        np.zeros((MOST_OFFERS + MOST_OFFERED * brokers, 2), np.int64),
    )  # fmt: skip


@inner
def lay_out_topic(problem: Problem, state: State, view: TopicView, t: int, leaders: bool) -> int:
    """Enter topic `t` (only leaders, if `leaders`) in the view; returns how many brokers hold some, listed in `view.holders`."""
    slots, found = state.replicas.shape[1], 0
    view.first[0], view.first[1] = problem.topic_first[t], problem.topic_first[t + 1]
    for p in range(view.first[0], view.first[1]):
        for s in range(slots):
            b = state.replicas[p, s]
            if b < 0 or not is_active(problem, b) or (leaders and state.lead[p] != s):
                continue
            if view.held[b] == 0:
                view.holders[found] = b
                found += 1
            view.held[b] += 1
            entry = (p - view.first[0]) * slots + s
            view.next_entry[entry] = view.head[b]
            view.head[b] = entry
    return found


@inner
def clear(state: State, view: TopicView, members: np.ndarray, changed: bool) -> None:
    """Remove the topic from the view: from brokers `members` and, if it `changed`, from all that hold it now."""
    for b in members:
        view.held[b], view.head[b] = 0, -1
    for p in range(view.first[0], view.first[1] if changed else view.first[0]):
        for s in range(state.replicas.shape[1]):
            if state.replicas[p, s] >= 0:
                view.held[state.replicas[p, s]], view.head[state.replicas[p, s]] = 0, -1


@inner
def note_bands(problem: Problem, view: TopicView, k: int, t: int, brokers: np.ndarray) -> None:
    """Write the ranges of topic `t` in topic goal `k` into `view.low` and `view.high` for `brokers`."""
    for b in brokers:
        view.low[b], view.high[b] = topic_band(problem, k, t, b)


@inner
def recount_entry(view: TopicView, entry: int, to: int, source: int, target: int) -> None:
    """Update the view: `entry` is no longer counted on broker `source`, and entry `to` is on `target`."""
    at, before = view.head[source], whole(-1)
    while at != entry:
        before = at
        at = view.next_entry[at]
    if before < 0:
        view.head[source] = view.next_entry[entry]
    else:
        view.next_entry[before] = view.next_entry[entry]
    view.next_entry[to] = view.head[target]
    view.head[target] = to
    view.held[source] -= 1
    view.held[target] += 1


@inner
def make_move(problem: Problem, state: State, view: TopicView, entry: int, target: int) -> None:
    """Commit a move of `entry` to broker `target`, and update the view."""
    slots = state.replicas.shape[1]
    p, s = view.first[0] + entry // slots, entry % slots
    recount_entry(view, entry, entry, state.replicas[p, s], target)
    relocate(problem, state, p, s, target, state.lead[p])


@inner
def make_leader(problem: Problem, state: State, view: TopicView, p: int, o: int) -> None:
    """Commit a leadership transfer of `p` to slot `o`, and update the view."""
    base = (p - view.first[0]) * state.replicas.shape[1]
    recount_entry(view, base + state.lead[p], base + o, state.replicas[p, state.lead[p]], state.replicas[p, o])
    transfer(problem, state, p, o)


@inner
def list_offers(problem: Problem, state: State, view: TopicView, v: int, most: int, among: int) -> int:
    """Write moves of the first `most` movable entries on broker `v` to each of the first `among` brokers of `view.among` into `view.offer`;
    returns how many."""
    slots, found, looked = state.replicas.shape[1], whole(0), 0
    entry = view.head[v]
    while entry >= 0 and looked < most:
        if problem.partition[view.first[0] + entry // slots, MOVABLE] == 1:
            looked += 1
            for i in range(among):
                view.offer[found, 0], view.offer[found, 1] = entry, view.among[i]
                found += 1
        entry = view.next_entry[entry]
    return found


@inner
def list_requests(problem: Problem, state: State, view: TopicView, u: int, most: int, start: int, leaders: bool) -> int:
    """Write moves to broker `u` from brokers that hold more than they need into `view.offer`; returns how many. Looks at all entries, or at
    `most` random ones (`start` is their seed) if there are more."""
    slots, found = state.replicas.shape[1], whole(0)
    entries = (view.first[1] - view.first[0]) * slots
    for i in range(min(most, entries)):
        entry = whole(i if entries <= most else scramble(start + i) % entries)
        p, s = view.first[0] + entry // slots, entry % slots
        b = state.replicas[p, s]
        if b < 0 or b == u or not is_active(problem, b) or problem.partition[p, MOVABLE] == 0:
            continue
        if (not leaders or state.lead[p] == s) and view.held[b] > view.low[b]:
            view.offer[found, 0], view.offer[found, 1] = entry, u
            found += 1
    return found


@inner
def list_room(view: TopicView, v: int, tries: int, most: int, start: int) -> int:
    """Write up to `most` brokers other than `v` with room for one more of the topic into `view.among`; returns how many. Looks at all
    eligible brokers, or at `tries` random ones (`start` is their seed) if there are more."""
    count, found = len(view.eligible), whole(0)
    for i in range(min(tries, count)):
        u = view.eligible[i if count <= tries else scramble(start + i) % count]
        if u != v and found < most and view.held[u] < view.high[u]:
            view.among[found] = u
            found += 1
    return found
