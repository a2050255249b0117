"""Where brokers can get at all: bands of the potential that a search may aim at.

A partition larger than every broker's band keeps its broker out of band for good, and leaves the others less than their band wants;
so do replicas that may not move, which may break a limit, too. `reachable` moves the hinges of the potential there, so that a search
looks for what can be had and ends when it has it. Scores, and with them what is acceptable, stay as they are. Called by `rounds` once
a round, and for limits again when a target has taken off such brokers what may leave them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState
from optimizer.problem import (
    BOUND,
    CEILING,
    COLUMN,
    DISTRIBUTION,
    FOLLOWING,
    HARD,
    HIGH,
    HINGE,
    KIND,
    LEADING,
    LIMIT,
    LOW,
    MEAN,
    MOVABLE,
    RF,
    STATE,
    STRENGTH,
    TOPIC_ROW,
    Problem,
)
from optimizer.search.state import LED, State

Floats = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]
AMPLE = 0.9  # of the band: where what is left for a typical broker is above its lower end by the rest, all can get into it
SHORT = 0.25  # of the band: where it is below the middle by more, and all can still get into the band, the middle is nobody's aim
CALM = 1000.0  # times what is out of band weighs more against the middle of a band, once that keeps brokers out of it
ROUNDING = 1e-9  # of a load
MANY = 8  # where suspects hold one of so many replicas, all partitions are looked at first


def reachable(problem: Problem, state: State) -> Problem:
    """`problem` itself, or one whose potential has its hinges at what brokers can reach from the placement of `state`.

    Notes
    -----
    O(replicas on brokers above every band, or partitions).
    """
    problem = beyond_limits(problem, state)
    goals = np.flatnonzero(problem.goal[:, KIND] == DISTRIBUTION)
    eligible = problem.broker[:, STATE] == BrokerState.ACTIVE
    if not len(goals) or eligible.sum() < 2:
        return problem
    columns = problem.goal[goals, COLUMN]
    mean, bound = problem.table[:, goals, MEAN], problem.table[:, goals, BOUND]
    most = mean + bound
    top = most[eligible].max(axis=0)
    suspect = eligible[:, None] & (state.load[:, columns] > most)
    brokers = np.flatnonzero(suspect.any(axis=1))
    if MANY * state.hosts[brokers].sum() > len(problem.partition):
        brokers = np.intersect1d(brokers, _hosts_of_stuck(problem, state, columns, top))
    held, giants, seats = np.zeros((3, len(problem.broker), len(goals)))
    for b in brokers.tolist():
        held[b], giants[b], seats[b] = _stuck(problem, state, b, columns, top)
    forced = (held > most) & suspect
    if not forced.any():
        return problem
    table, lacking = problem.table.copy(), np.zeros(len(goals))
    total = mean.sum(axis=0)
    for i, g in enumerate(goals.tolist()):
        at = forced[:, i]
        if not at.any():
            continue
        margin = HINGE * bound[:, i]
        table[at, g, HIGH] = np.inf  # it is out anyway; what brings it into its other bands may add to it
        others = eligible & ~at
        whole = float(giants[at, i].sum())
        taken = max(int(seats[at, i].sum()), int(at.sum()))
        part = (total[i] - whole) / (eligible.sum() - taken) * eligible.sum() / total[i] if taken < eligible.sum() else 0.0
        width = bound[others, i].sum() / max(mean[others, i].sum(), 1e-300)
        lacking[i] = (1.0 - part) / width if width > 0.0 else 0.0
        if part < 1.0 - AMPLE * width:
            low = max(part, 0.0) * mean[:, i] - margin
            table[others, g, LOW] = np.minimum(table[others, g, LOW], low[others])
    problem = problem._replace(table=table)
    return calmed(problem) if SHORT < lacking.max() <= AMPLE else problem


def calmed(problem: Problem) -> Problem:
    """The same, where the middle of a band weighs little against its ends."""
    force = problem.force.copy()
    force[:, STRENGTH] *= CALM
    return problem._replace(force=force)


def with_firm_topics(problem: Problem, firmness: float) -> Problem:
    """The problem with topics weighing more: a topic has few ways to be spread, loads have many others to be balanced."""
    if not len(problem.topic_goal):
        return problem
    force = problem.force.copy()
    force[problem.topic_goal[:, TOPIC_ROW], STRENGTH] *= firmness
    return problem._replace(force=force)


def is_overloaded(problem: Problem, state: State) -> bool:
    """Whether active brokers hold more of a load than the hard limits of all of them together allow."""
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    limits = np.flatnonzero((problem.goal[:, KIND] == LIMIT) & (problem.goal[:, HARD] == 1))
    held = state.load[active][:, problem.goal[limits, COLUMN]].sum(axis=0)
    return bool((held > problem.table[active][:, limits, CEILING].sum(axis=0) * (1.0 + ROUNDING)).any())


def keeps_a_limit_broken(problem: Problem, state: State) -> bool:
    """Whether what may not move breaks a limit on some broker, whatever else leaves it."""
    return bool(_over_for_good(problem, state)[0])


def beyond_limits(problem: Problem, state: State) -> Problem:
    """The same, where limits are met as well as can be on brokers on which only what may not move is left of a load beyond its limit.

    What adds to a broker beyond a hard limit may not come there, so no band asks for more than what adds nothing to it can bring.
    """
    brokers, limits = _over_for_good(problem, state)
    table, harmless = None, dict[bytes, Floats]()
    for b, forced, fixed in brokers:
        least = fixed * (1.0 + ROUNDING)
        columns = problem.goal[limits, COLUMN]
        done = forced & (state.load[b, columns] <= least[columns])
        if not done.any():
            continue
        table = problem.table.copy() if table is None else table
        table[b, limits[done], HIGH] = least[columns[done]]
        shut = columns[done & (problem.goal[limits, HARD] == 1)]
        if len(shut):
            bands = np.flatnonzero(problem.goal[:, KIND] == DISTRIBUTION)
            key = shut.tobytes()
            if key not in harmless:
                harmless[key] = _harmless(problem, shut)
            come = fixed[problem.goal[bands, COLUMN]] + harmless[key][problem.goal[bands, COLUMN]]
            bands = bands[come < table[b, bands, LOW]]
            table[b, bands, LOW] = np.minimum(table[b, bands, LOW], fixed[problem.goal[bands, COLUMN]] * (1.0 - ROUNDING))
    return problem if table is None else problem._replace(table=table)


def _harmless(problem: Problem, shut: npt.NDArray[np.int64]) -> Floats:
    """float64 [C]: all that replicas which may move amount to on a broker where they add nothing to the columns `shut`."""
    may = problem.partition[:, MOVABLE] == 1
    parts = []
    for role in (LEADING, FOLLOWING):
        vector = problem.vector[may, role]
        free = (vector[:, shut] <= 0.0).all(axis=1) & ((role == LEADING) | (problem.partition[may, RF] > 1))
        parts.append(np.where(free[:, None], vector, 0.0))
    total: Floats = np.maximum(*parts).sum(axis=0)
    return total


def _over_for_good(problem: Problem, state: State) -> tuple[list[tuple[int, Marks, Floats]], npt.NDArray[np.int64]]:
    """Brokers whose immovable load [C] is beyond some limits, and which of the limits; and the limits (goals)."""
    limits = np.flatnonzero(problem.goal[:, KIND] == LIMIT)
    columns = problem.goal[limits, COLUMN]
    over = state.load[:, columns] > problem.table[:, limits, CEILING]
    over[problem.broker[:, STATE] != BrokerState.ACTIVE] = False
    found = []
    for b in np.flatnonzero(over.any(axis=1)).tolist():
        partitions = state.hosted[b, : state.hosts[b]] // state.replicas.shape[1]
        role = np.where(state.mark[b, : state.hosts[b]] & LED, LEADING, FOLLOWING)
        stays = problem.partition[partitions, MOVABLE] == 0
        fixed: Floats = problem.vector[partitions[stays], role[stays]].sum(axis=0)
        forced = over[b] & (fixed[columns] > problem.table[b, limits, CEILING])
        if forced.any():
            found.append((b, forced, fixed))
    return found, limits


def _hosts_of_stuck(problem: Problem, state: State, columns: npt.NDArray[np.int64], top: Floats) -> npt.NDArray[np.int64]:
    """Brokers with anything that may not move, or that is too large for every broker's band."""
    stuck = problem.partition[:, MOVABLE] == 0
    most = np.full(problem.vector.shape[2], np.inf)
    np.minimum.at(most, columns, top)
    giant = problem.vector.reshape(len(stuck), -1) > np.tile(most, 2)
    if giant.any():
        stuck |= giant.any(axis=1)
    return np.unique(state.replicas[np.flatnonzero(stuck)])


def _stuck(
    problem: Problem, state: State, b: int, columns: npt.NDArray[np.int64], top: Floats
) -> tuple[Floats, Floats, Floats]:
    """By goal: the least load that broker `b` can have, all of it that no other can take within its band, and its largest parts' number."""
    entries = state.hosted[b, : state.hosts[b]]
    partitions = entries // state.replicas.shape[1]
    role = np.where(state.mark[b, : state.hosts[b]] & LED, LEADING, FOLLOWING)
    vector = problem.vector[partitions, role][:, columns]
    fixed = problem.partition[partitions, MOVABLE] == 0
    giant = vector > top
    stays = fixed[:, None] & ~giant
    fixed_load = np.where(fixed[:, None], vector, 0.0).sum(axis=0)
    giant_load = np.where(giant, vector, 0.0)
    least = np.maximum(fixed_load, giant_load.max(axis=0, initial=0.0))
    return least, giant_load.sum(axis=0) + np.where(stays, vector, 0.0).sum(axis=0), giant.sum(axis=0).astype(np.float64)
