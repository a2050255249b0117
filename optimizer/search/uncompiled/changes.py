"""A partition's change without a compiler: sums, lists and scores of the few brokers that it touches.

The forms of `optimizer.search.commit`. Brokers whose sums stay as they are keep their scores, too.
"""

from __future__ import annotations

import numpy as np

from goals.score import units_score
from optimizer.problem import FOLLOWING, LEADING, NO_RACK_GOAL, RACK_GOAL, RACK_LIMIT, Problem
from optimizer.search.state import LED, RACKS, STRAY, State
from optimizer.search.uncompiled.sheets import Sheet, sheet_of

Crowd = tuple[int, list[int]]


def crowd_of(sheet: Sheet, problem: Problem, p: int, brokers: list[int]) -> Crowd:
    """By how many replicas racks are over-full with `p` on `brokers`, and the brokers in these racks."""
    racks = [sheet.rack[b] if b >= 0 else -1 - s for s, b in enumerate(brokers)]
    if len(set(racks)) == len(racks):
        return 0, []
    limit = int(problem.partition[p, RACK_LIMIT])
    excess, crowded = 0, []
    for s, b in enumerate(brokers):
        same = racks.count(racks[s])
        if b >= 0 and same > limit:
            crowded.append(b)
            if racks.index(racks[s]) == s:
                excess += same - limit
    return excess, crowded


def loads_after(
    problem: Problem, state: State, p: int, old: list[int], was: int, new: list[int], lead: int
) -> dict[int, list[float]]:
    """Loads of the brokers that `p` touches when it goes from `old`, led by slot `was`, to `new`, led by `lead`."""
    loads: dict[int, list[float]] = {}
    vectors = problem.vector[p].tolist()
    for s, b in enumerate(old):
        u = new[s]
        if b < 0 or (b == u and (s == was) == (s == lead)):
            continue
        gone, come = vectors[LEADING if s == was else FOLLOWING], vectors[LEADING if s == lead else FOLLOWING]
        if b == u:
            loads[b] = [x - y + z for x, y, z in zip(loads.get(b) or state.load[b].tolist(), gone, come, strict=True)]
        else:
            loads[b] = [x - y for x, y in zip(loads.get(b) or state.load[b].tolist(), gone, strict=True)]
            loads[u] = [x + y for x, y in zip(loads.get(u) or state.load[u].tolist(), come, strict=True)]
    return loads


def carry(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> int:
    """`optimizer.search.commit.carry`."""
    old, new, was, lead = state.replicas[p].tolist(), replicas[: state.replicas.shape[1]].tolist(), int(state.lead[p]), int(lead)
    for b, loads in loads_after(problem, state, p, old, was, new, lead).items():
        state.load[b] = loads
    return _place(problem, state, p, old, new, lead)[0]


def _place(problem: Problem, state: State, p: int, old: list[int], new: list[int], lead: int) -> tuple[int, set[int]]:
    """Put `p` there, and count who is in over-full racks; returns by how much the excess rises, and whose count may change."""
    state.lead[p] = lead
    if old == new:
        return 0, set()
    state.replicas[p] = new
    if problem.setting[RACK_GOAL] == NO_RACK_GOAL:
        return 0, set()
    sheet = sheet_of(problem)
    excess, crowded = crowd_of(sheet, problem, p, old)
    excess2, crowded2 = crowd_of(sheet, problem, p, new)
    for b in crowded:
        state.units[RACKS, b] -= 1.0
    for b in crowded2:
        state.units[RACKS, b] += 1.0
    return excess2 - excess, {*crowded, *crowded2}


def put(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> None:
    """`optimizer.search.commit.put`."""
    _put(problem, state, int(p), replicas, int(lead))


def _put(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> tuple[dict[int, list[float]], set[int]]:
    """As `put`; loads of the brokers whose loads change, as they are after it, and brokers of which other racks are over-full."""
    old, new, was = state.replicas[p].tolist(), replicas.tolist(), int(state.lead[p])
    used = state.trail[0] = state.trail[0] + 1
    if used < len(state.trail):
        state.trail[used] = p
    state.old[0, : len(old)] = old
    if len(problem.topic_goal):
        from optimizer.search.topic_counts import recount

        for k in range(len(problem.topic_goal)):
            recount(problem, state, k, p, replicas, lead, True)
    touched = loads_after(problem, state, p, old, was, new, lead)
    for b, loads in touched.items():
        state.load[b] = loads
    crowded = _place(problem, state, p, old, new, lead)[1]
    for s, b in enumerate(old):
        if b >= 0 and b != new[s]:
            relist(state, p, s, b, new[s])
            state.dirty[b] = state.dirty[new[s]] = 1
        elif b >= 0 and (s == was) != (s == lead):
            state.mark[b, state.place[p, s]] ^= LED
            state.dirty[b] = 1
    return touched, crowded


def relist(state: State, p: int, s: int, old: int, new: int) -> None:
    """`optimizer.search.commit.relist`."""
    slots = state.replicas.shape[1]
    at, last = int(state.place[p, s]), int(state.hosts[old]) - 1
    moved = int(state.hosted[old, last])
    state.hosted[old, at] = moved
    state.mark[old, at] = state.mark[old, last]
    state.place[moved // slots, moved % slots] = at
    state.hosts[old] = last
    end = int(state.hosts[new])
    state.hosted[new, end] = p * slots + s
    state.mark[new, end] = (LED if state.lead[p] == s else 0) | (STRAY if state.home[p, s] != new else 0)
    state.place[p, s] = end
    state.hosts[new] = end + 1


def relist_all(state: State, p: np.ndarray, s: np.ndarray, old: np.ndarray, new: np.ndarray) -> None:
    """`relist` slots `s` of partitions `p` from brokers `old` to `new` (each int64 [n]), one after the other."""
    slots = state.replicas.shape[1]
    place, hosted, mark = state.place.data, state.hosted.data, state.mark.data  # read several times as fast
    hosts = state.hosts.tolist()
    marks = np.where(state.lead[p] == s, LED, 0) | np.where(state.home[p, s] != new, STRAY, 0)
    for i, j, b, u, m in zip(p.tolist(), s.tolist(), old.tolist(), new.tolist(), marks.tolist(), strict=True):
        at, last = place[i, j], hosts[b] - 1
        moved = hosted[b, last]
        hosted[b, at], mark[b, at] = moved, mark[b, last]
        place[moved // slots, moved % slots] = at
        hosts[b] = last
        end = hosts[u]
        hosted[u, end], mark[u, end] = i * slots + j, m
        place[i, j] = end
        hosts[u] = end + 1
    state.hosts[:] = hosts


def commit(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> None:
    """`optimizer.search.commit.commit`."""
    sheet, p, lead = sheet_of(problem), int(p), int(lead)
    topics = len(problem.topic_goal) > 0
    units: list[float] = []
    touched, crowded = _put(problem, state, p, replicas, lead)
    for b in crowded:
        if b not in touched:  # a problem may weigh topics otherwise than the one by which it was assessed before
            state.score[b, sheet.racks_goal] = units_score(float(state.units[RACKS, b]))
    for b, loads in touched.items():
        if topics:
            units = state.units[:RACKS, b].tolist()
        cost, scores = sheet.judge(b, loads, float(state.units[RACKS, b]), units)
        scores.append(cost)
        state.score[b] = scores
