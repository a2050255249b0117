"""Target ranges that brokers can reach, as data: what the potential aims at.

A partition larger than the target range of every broker keeps its broker outside for good, and so do replicas that may not move. `Aim`
moves the ranges of the potential to what can be reached, at the start of each round. Scores, and with them what is acceptable, stay as
they are.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState
from optimizer.conflicts import NOTHING, Conflict, conflicts
from optimizer.parameters import AMPLE, LARGE_CLUSTER, MANY_SUSPECTS, MOST_LOW, SHORT
from optimizer.placement.state import COST, LED, Rows, State
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    FOLLOWING,
    HIGH,
    HINGE,
    KIND,
    LEADING,
    LIMIT,
    LOW,
    MEAN,
    MISSED,
    MOVABLE,
    SET_OF,
    SPREAD,
    STATE,
    Problem,
)

Floats = npt.NDArray[np.float64]


class Aim:
    """What a search aims at, from any placement: the problem with ranges that can be reached."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._stays = np.flatnonzero(problem.partition[:, MOVABLE] == 0)
        self._where: tuple[Rows, Rows, Rows] | None = None  # lists and leaders that stay, leaderless partitions: conflicts depend on these
        self._without = problem

    def at(self, state: State) -> Problem:
        """The problem with the ranges that can be reached from the placement of `state`; a function of that placement alone.

        To look for conflicts in a million replicas takes a second. So this is done only if brokers are outside their ranges, and in a
        large cluster only if these are at most half of the brokers.
        """
        active = self._problem.broker[:, STATE] == BrokerState.ACTIVE
        low = int((state.score[active, :COST] < 1.0).any(axis=1).sum())
        if not low or (state.replicas.size > LARGE_CLUSTER and low > MOST_LOW * active.sum()):
            return within_reach(self._problem, state)
        where = state.replicas[self._stays], state.lead[self._stays], np.flatnonzero(state.lead < 0)  # repairs change them
        if self._where is None or not all(np.array_equal(now, then) for now, then in zip(where, self._where, strict=True)):
            self._where, self._without = where, without_conflicts(self._problem, conflicts(self._problem, state.replicas, state.lead))
        return within_reach(self._without, state)


def within_reach(problem: Problem, state: State) -> Problem:
    """`problem` itself, or one whose potential rises from what brokers can reach, judged by the placement of `state`.

    A broker that holds more than its range for good may hold that load, and what comes with the lower ends of its other ranges; beyond a
    limit, that load alone. If none of it may move, the goal counts as missed for good. The other brokers share less than their ranges ask
    for, so the lower ends of these ranges fall.

    Notes
    -----
    O(replicas on brokers above any of their ranges, or partitions).
    """
    goals = np.flatnonzero(problem.goal[:, KIND] <= LIMIT)
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    if not len(goals) or eligible.sum() < 2:
        return problem
    columns, limit = problem.goal[goals, COLUMN], problem.goal[goals, KIND] == LIMIT
    mean, bound = problem.table[:, goals, MEAN], problem.table[:, goals, BOUND]
    most = np.where(limit, problem.table[:, goals, CEILING], mean + bound)
    group = problem.broker[:, SET_OF]
    together = [eligible & (group == number) for number in np.unique(group[eligible]).tolist()]
    top = most.copy()  # the highest upper end in the broker set
    for members in together:
        top[members] = most[members].max(axis=0)
    suspect = eligible[:, None] & (state.load[:, columns] > most)
    brokers = np.flatnonzero(suspect.any(axis=1))
    if MANY_SUSPECTS * state.hosts[brokers].sum() > len(problem.partition):
        brokers = np.intersect1d(brokers, _hosts_of_stuck(problem, state, columns, top[eligible].min(axis=0)))
    least, giants, seats, loose = np.zeros((4, len(problem.broker), len(goals)))
    for b in brokers.tolist():
        least[b], giants[b], seats[b], loose[b] = _held_for_good(problem, state, b, columns, top[b])
    forced = (least > most) & (loose <= 1) & suspect  # of several giants that may move, all but one can leave
    if not forced.any():
        return problem
    table, force = problem.table.copy(), problem.force
    lacking = 0.0
    for i in np.flatnonzero(forced.any(axis=0)).tolist():
        g, at = goals[i], forced[:, i]
        table[at & (loose[:, i] == 0), g, MISSED] = 1.0
        if limit[i]:
            table[at, g, HIGH] = least[at, i]
            continue
        margin = HINGE * bound[:, i]
        for members in [m for m in together if (at & m).any()]:
            big, others, count = at & members, members & ~at, members.sum()
            rest = state.load[members][:, columns].sum(axis=0) - giants[members].sum(axis=0)
            asked = np.where(columns != columns[i], problem.table[:, goals, LOW] - giants, 0.0)[big]
            comes = (np.maximum(asked, 0.0) / np.where(rest > 0.0, rest, np.inf)).max(axis=1) * rest[i]
            table[big, g, HIGH] = least[big, i] + comes
            total, whole = np.where(members[:, None], mean, 0.0).sum(axis=0)[i], float(giants[big, i].sum())
            taken = max(int(seats[big, i].sum()), int(big.sum()))
            part = (total - whole) / (count - taken) * count / total if taken < count and total > 0.0 else 0.0
            width = bound[others, i].sum() / max(mean[others, i].sum(), 1e-300)
            lacking = max(lacking, (1.0 - part) / width if width > 0.0 else 0.0)
            if part < 1.0 - AMPLE * width:
                low = max(part, 0.0) * mean[:, i] - margin
                table[others, g, LOW] = np.minimum(table[others, g, LOW], low[others])
    if SHORT < lacking <= AMPLE:
        force = problem.force.copy()
        force[:, SPREAD] = 0.0
    return problem._replace(table=table, force=force)


def without_conflicts(problem: Problem, found: tuple[Conflict, ...]) -> Problem:
    """`problem` with ranges of the potential that the brokers of the conflicts `found` can reach; itself if there are none.

    A hard limit counts more than a range: the lower end of the range falls. Of two ranges, the upper end that is in the way rises.
    """
    if not found:
        return problem
    table = problem.table.copy()
    for one in found:
        b = one.broker
        if one.caps == NOTHING or problem.goal[one.caps, KIND] == LIMIT or not np.isfinite(one.least):
            table[b, one.needs, LOW] = -np.inf
        else:  # and by half a range more, since replicas do not come in every size
            top = problem.table[b, one.caps, MEAN] + 2.0 * problem.table[b, one.caps, BOUND]
            table[b, one.caps, HIGH] = max(table[b, one.caps, HIGH], top + one.least - one.room)
    return problem._replace(table=table)


def _hosts_of_stuck(problem: Problem, state: State, columns: npt.NDArray[np.int64], top: Floats) -> npt.NDArray[np.int64]:
    """int64: brokers with a partition that may not move, or that is larger than `top` (by goal), so that in some set no range takes it."""
    stuck = problem.partition[:, MOVABLE] == 0
    most = np.full(problem.vector.shape[2], np.inf)
    np.minimum.at(most, columns, top)
    giant = problem.vector.reshape(len(stuck), -1) > np.tile(most, 2)
    if giant.any():
        stuck |= giant.any(axis=1)
    return np.unique(state.replicas[np.flatnonzero(stuck)])


def _held_for_good(
    problem: Problem, state: State, b: int, columns: npt.NDArray[np.int64], top: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """By goal: the least load that broker `b` can have, all its load that no other broker can take within its range, the number of its
    partitions that are too large for that, and the number of these that may move."""
    entries = state.hosted[b, : state.hosts[b]]
    partitions = entries // state.replicas.shape[1]
    role = np.where(state.mark[b, : state.hosts[b]] & LED, LEADING, FOLLOWING)
    vector = problem.vector[partitions, role][:, columns]
    fixed = problem.partition[partitions, MOVABLE] == 0
    giant = vector > top
    fixed_load = vector[fixed].sum(axis=0)
    least = np.maximum(fixed_load, np.where(giant, vector, 0.0).max(axis=0, initial=0.0))
    kept = np.where(giant | fixed[:, None], vector, 0.0).sum(axis=0)
    return least, kept, giant.sum(axis=0).astype(np.float64), giant[~fixed].sum(axis=0).astype(np.float64)
