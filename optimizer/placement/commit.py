"""Building a state, and every way to change one.

`shift` changes only placement and sums. A second `shift` with the old values undoes it bit for bit, because loads lie on a grid on
which addition is exact. `commit` also updates replica lists and caches. Operators change the placement through these functions only.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, kernel
from optimizer.parameters import TRAIL
from optimizer.placement.potential import assess, assess_racks, rack_units
from optimizer.placement.state import COST, LED, MAX_CHANGES, STRAY, State, list_room
from optimizer.placement.topic_counts import count_topics, recount
from optimizer.problem import FOLLOWING, LEADING, NO_RACK_GOAL, RACK_GOAL, Problem


def build_state(problem: Problem, replicas: np.ndarray, lead: np.ndarray) -> State:
    """A new state with the given placement. Its lists are in partition order, so equal placements give equal states.

    O(B + P R). `replicas` int64 [P, R] and `lead` int64 [P] are copied. `replicas` also becomes `home`, so it must not change.
    """
    brokers, partitions = len(problem.broker), len(replicas)
    slots = replicas.shape[1] if replicas.ndim == 2 else 1
    counts = np.bincount(replicas[replicas >= 0], minlength=brokers) if partitions else np.zeros(brokers, np.int64)
    room = list_room(problem, counts, partitions, slots)
    goals, topic_goals = len(problem.goal), len(problem.topic_goal)
    scratch = 2 * slots * MAX_CHANGES + 2
    topics = int(problem.topic_counted.max(initial=-1)) + 1 if topic_goals else 0
    hosted, mark = empty_lists(brokers, max(room, 1))
    state = State(
        replicas=np.array(replicas, dtype=np.int64, order="C"),
        lead=np.array(lead, dtype=np.int64),
        home=np.ascontiguousarray(replicas, dtype=np.int64),
        place=np.zeros((partitions, slots), np.int32),
        hosted=hosted,
        mark=mark,
        hosts=np.zeros(brokers, np.int64),
        load=np.zeros((brokers, problem.vector.shape[2])),
        units=np.zeros((topic_goals + 1, brokers)),
        topic_count=np.zeros((topics, brokers, topic_goals), np.uint16),
        score=np.ones((brokers, goals + 1)),
        stamp=np.zeros(brokers + 1, np.int64),
        touched=np.zeros(scratch, np.int64),
        row=np.zeros(slots, np.int64),
        change=np.zeros((MAX_CHANGES, slots + 2), np.int64),
        action=np.zeros(goals),
        old=np.zeros((MAX_CHANGES, slots + 1), np.int64),
        units_before=np.zeros((scratch, topic_goals)),
        fresh=np.ones((scratch, goals + 1)),
        dirty=np.zeros(brokers, np.uint8),
        trail=np.zeros(TRAIL + 1, np.int64),
    )
    fill(problem, state)
    return state


def fill(problem: Problem, state: State) -> None:
    """Compute replica lists, loads, counts and caches of a state from its placement."""
    enlist(problem, state)
    count_all_topics(problem, state)
    appraise(problem, state)


@kernel
def empty_lists(brokers: int, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Arrays for entries and marks of replica lists, [brokers, room]. Arrays of a kernel take memory only as far as they are used; numpy
    asks for large pages, and one entry takes a whole page."""
    return np.empty((brokers, room), np.int32), np.empty((brokers, room), np.uint8)


@kernel
def enlist(problem: Problem, state: State) -> None:
    """Compute replica lists, loads and counts of replicas in over-full racks from the placement."""
    partitions, slots = state.replicas.shape
    for p in range(partitions):
        for s in range(slots):
            b = state.replicas[p, s]
            if b >= 0:
                state.place[p, s] = state.hosts[b]
                state.hosted[b, state.hosts[b]] = p * slots + s
                state.mark[b, state.hosts[b]] = LED if state.lead[p] == s else 0
                state.hosts[b] += 1
        add_loads(problem, state, p)
        if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
            rack_units(problem, state, p, 1.0)


@inner
def add_loads(problem: Problem, state: State, p: int) -> None:
    """Add the loads of the replicas of `p` to the loads of their brokers."""
    for s in range(state.replicas.shape[1]):
        b, role = state.replicas[p, s], LEADING if state.lead[p] == s else FOLLOWING
        for c in range(state.load.shape[1] if b >= 0 else 0):
            state.load[b, c] += problem.vector[p, role, c]


@inner
def shift(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> int:
    """Put partition `p` on `replicas` int64 [R], led by slot `lead`, in placement, counts and sums; returns the change of its rack excess.

    A second call with the old values undoes it exactly. Lists and scores stay as they were.
    """
    for k in range(len(problem.topic_goal)):
        recount(problem, state, k, p, replicas, lead, True)
    return carry(problem, state, p, replicas, lead)


@inner
def carry(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> int:
    """`shift` without the counts and units of topic goals."""
    old_lead, excess = state.lead[p], 0
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        excess -= rack_units(problem, state, p, -1.0)
    for s in range(state.replicas.shape[1]):
        old, new = state.replicas[p, s], replicas[s]
        held, role = LEADING if s == old_lead else FOLLOWING, LEADING if s == lead else FOLLOWING
        for c in range(0 if old < 0 or (old == new and held == role) else state.load.shape[1]):
            state.load[old, c] -= problem.vector[p, held, c]
            state.load[new, c] += problem.vector[p, role, c]
        state.replicas[p, s] = new
    state.lead[p] = lead
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        excess += rack_units(problem, state, p, 1.0)
    return excess


@inner
def relist(state: State, p: int, s: int, old: int, new: int) -> None:
    """Move the list entry of slot `s` of `p` from broker `old` to `new`: swap-remove and append, O(1)."""
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
def put(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> None:
    """`commit` without scores and potential: the caller has to `assess` the brokers before it reads these."""
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


@inner
def commit(problem: Problem, state: State, p: int, replicas: np.ndarray, lead: int) -> None:
    """Put partition `p` on `replicas` int64 [R], led by slot `lead`, and update everything that depends on it."""
    slots = state.replicas.shape[1]
    old_lead = state.lead[p]
    put(problem, state, p, replicas, lead)
    for s in range(slots):
        old, new = state.old[0, s], replicas[s]
        if old < 0:
            continue
        if old != new or (s == old_lead) != (s == lead):
            state.score[old, COST] = assess(problem, state, old, state.score[old])
            if new != old:
                state.score[new, COST] = assess(problem, state, new, state.score[new])
        elif problem.setting[RACK_GOAL] != NO_RACK_GOAL:
            assess_racks(problem, state, old)


@inner
def write_row(state: State, p: int, s: int, target: int) -> None:
    """Write the replicas of `p`, with slot `s` on broker `target`, into `state.row`."""
    for o in range(state.replicas.shape[1]):
        state.row[o] = state.replicas[p, o]
    state.row[s] = target


@inner
def relocate(problem: Problem, state: State, p: int, s: int, target: int, lead: int) -> None:
    """Commit a move of slot `s` of `p` to broker `target`, with slot `lead` as leader."""
    write_row(state, p, s, target)
    commit(problem, state, p, state.row, lead)


@inner
def send(problem: Problem, state: State, entry: int, target: int) -> None:
    """Commit a move of replica `entry` (as in `State.hosted`) to broker `target`; it keeps its role."""
    slots = state.replicas.shape[1]
    relocate(problem, state, entry // slots, entry % slots, target, state.lead[entry // slots])


@inner
def transfer(problem: Problem, state: State, p: int, lead: int) -> None:
    """Commit a leadership transfer of `p` to slot `lead`."""
    commit(problem, state, p, state.replicas[p], lead)


@kernel
def reweigh(problem: Problem, state: State, rows: np.ndarray, before: np.ndarray) -> None:
    """Update the loads of brokers after the vectors of partitions `rows` changed; `before` float64 [n, 2, C] are the old ones."""
    for i in range(len(rows)):
        p = rows[i]
        for s in range(state.replicas.shape[1]):
            b = state.replicas[p, s]
            if b >= 0:
                role = LEADING if state.lead[p] == s else FOLLOWING
                for c in range(state.load.shape[1]):
                    state.load[b, c] -= before[i, role, c]
                    state.load[b, c] += problem.vector[p, role, c]


@kernel
def weigh(problem: Problem, state: State) -> None:
    """Sum up the loads of all brokers, which have to be 0 before."""
    for p in range(len(state.lead)):
        add_loads(problem, state, p)


@kernel
def count_all_topics(problem: Problem, state: State) -> None:
    """Compute the counts and units of all topic goals from the placement."""
    state.topic_count[:] = 0
    for k in range(len(problem.topic_goal)):
        state.units[k] = 0.0
        count_topics(problem, state, k)


@kernel
def appraise(problem: Problem, state: State) -> None:
    """Compute the scores and the potential of all brokers."""
    for b in range(len(state.dirty)):
        state.score[b, COST] = assess(problem, state, b, state.score[b])
