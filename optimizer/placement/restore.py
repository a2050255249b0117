"""Moves states to another placement by undoing and redoing only what differs.

Called by `states`; there the result is what `build_state` gives, bit for bit. `align_slots` and `follow` also serve `search` and others.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import ahead, inner, kernel, whole
from optimizer.parameters import SOON
from optimizer.placement.commit import commit, empty_lists, shift
from optimizer.placement.potential import assess
from optimizer.placement.state import COST, LED, State
from optimizer.problem import Problem

LISTS = ("hosted", "mark")


def copy_state(state: State) -> State:
    """A copy of `state` with the same `home`; cheaper than building it."""
    rows = {name: column.copy() for name, column in state._asdict().items() if name not in ("home", *LISTS)}
    hosted, mark = empty_lists(*state.hosted.shape)
    copy = State(**rows, home=state.home, hosted=hosted, mark=mark)
    copy_lists(copy, state)
    return copy


def overwrite(state: State, like: State) -> None:
    """Copy all of `like` but its home into `state`, which has room for lists as long."""
    for name, column in state._asdict().items():
        if name != "home" and name not in LISTS:
            np.copyto(column, getattr(like, name))
    copy_lists(state, like)


@kernel
def copy_lists(state: State, like: State) -> None:
    """Copy the replica lists of `like`, without the room behind them: it may be most of the array, and takes no memory until it is used."""
    for b in range(len(like.hosts)):
        n = like.hosts[b]
        state.hosted[b, :n] = like.hosted[b, :n]
        state.mark[b, :n] = like.mark[b, :n]


@kernel
def which_differ(rows: np.ndarray, one: np.ndarray, one_lead: np.ndarray, other: np.ndarray, other_lead: np.ndarray) -> np.ndarray:
    """int64: those of partitions `rows` (int64, ascending, some more than once) whose lists or leaders differ, each once."""
    found = np.empty(len(rows), np.int64)
    count = 0
    for i in range(len(rows)):
        if i + SOON < len(rows):
            ahead(one, rows[i + SOON])
            ahead(other, rows[i + SOON])
            ahead(one_lead, rows[i + SOON])
            ahead(other_lead, rows[i + SOON])
        p = rows[i]
        if i > 0 and p == rows[i - 1]:
            continue
        differs = one_lead[p] != other_lead[p]
        for s in range(one.shape[1]):
            differs = differs or one[p, s] != other[p, s]
        if differs:
            found[count] = p
            count += 1
    return found[:count].copy()


@kernel
def restore(problem: Problem, state: State, rows: np.ndarray, replicas: np.ndarray, lead: np.ndarray) -> None:
    """Put partitions `rows` where `replicas` and `lead` have them, with lists in the order of partitions and caches up to date."""
    slots = state.replicas.shape[1]
    for p in rows:
        for s in range(slots):
            if state.replicas[p, s] != replicas[p, s]:
                state.dirty[state.replicas[p, s]] = 1
                state.dirty[replicas[p, s]] = 1
        shift(problem, state, p, replicas[p], lead[p])
    for b in range(len(state.dirty)):
        if state.dirty[b] == 1:
            keep_present(state, b)
    for p in rows:
        for s in range(slots):
            b = state.replicas[p, s]
            at = state.place[p, s]
            if b >= 0 and (at >= state.hosts[b] or state.hosted[b, at] != p * slots + s):
                enter(state, b, p * slots + s)
    for p in rows:
        for s in range(slots):
            b = state.replicas[p, s]
            if b >= 0:
                state.mark[b, state.place[p, s]] = LED if state.lead[p] == s else 0
    for b in range(len(state.dirty)):
        state.dirty[b] = 0
        state.score[b, COST] = assess(problem, state, b, state.score[b])


@inner
def keep_present(state: State, b: int) -> None:
    """Remove the list entries of replicas that are no longer on broker `b`."""
    slots = state.replicas.shape[1]
    kept = 0
    for i in range(state.hosts[b]):
        entry = state.hosted[b, i]
        p, s = entry // slots, entry % slots
        if state.replicas[p, s] == b:
            state.hosted[b, kept] = entry
            state.mark[b, kept] = state.mark[b, i]
            state.place[p, s] = kept
            kept += 1
    state.hosts[b] = kept


@inner
def enter(state: State, b: int, entry: int) -> None:
    """Insert `entry` into the list of broker `b`, in ascending order of entries."""
    slots = state.replicas.shape[1]
    at = state.hosts[b]
    while at > 0 and state.hosted[b, at - 1] > entry:
        other = state.hosted[b, at - 1]
        state.hosted[b, at] = other
        state.mark[b, at] = state.mark[b, at - 1]
        state.place[other // slots, other % slots] = at
        at -= 1
    state.hosted[b, at] = entry
    state.place[entry // slots, entry % slots] = at
    state.hosts[b] += 1


@kernel
def restore_from(state: State, like: State, rows: np.ndarray, touched: np.ndarray) -> None:
    """Copy placement and lists of `like` into `state`; they differ at most in partitions `rows` int64 and on brokers `touched` bool [B]."""
    slots = state.replicas.shape[1]
    for p in rows:
        state.lead[p] = like.lead[p]
        for s in range(slots):
            state.replicas[p, s] = like.replicas[p, s]
    for b in range(len(touched)):
        if touched[b]:
            shared = min(like.hosts[b], state.hosts[b])
            for i in range(shared):
                if state.hosted[b, i] != like.hosted[b, i]:
                    entry = like.hosted[b, i]
                    state.hosted[b, i] = entry
                    state.place[entry // slots, entry % slots] = i
            for i in range(shared, like.hosts[b]):
                entry = like.hosted[b, i]
                state.hosted[b, i] = entry
                state.place[entry // slots, entry % slots] = i
            for i in range(like.hosts[b]):
                state.mark[b, i] = like.mark[b, i]
            state.hosts[b] = like.hosts[b]
            state.dirty[b] = 0
    for p in rows:
        for s in range(slots):
            b = like.replicas[p, s]
            if b >= 0:
                state.mark[b, like.place[p, s]] = like.mark[b, like.place[p, s]]
    state.trail[0] = 0


@kernel
def align_slots(problem: Problem, state: State, home: np.ndarray, partitions: np.ndarray) -> None:
    """Put every broker that stays in a list of `partitions` back into its slot of `home` int64 [P, R], and the other brokers into free
    slots, the leader first. The placement stays the same.

    This is needed because slots may have traded places on the way.
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
        for turn in range(-1, slots):
            b = whole(leader if turn < 0 else state.replicas[p, turn])
            stays = b < 0 or (turn >= 0 and b == leader)
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
    """Give `partitions` in `state` the lists and leaders that they have in `other`."""
    slots = state.replicas.shape[1]
    for p in partitions:
        same = state.lead[p] == other.lead[p]
        for s in range(slots):
            if state.replicas[p, s] != other.replicas[p, s]:
                same = False
        if not same:
            commit(problem, state, p, other.replicas[p], other.lead[p])
