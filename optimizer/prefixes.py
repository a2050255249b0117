"""What every first part of a list of actions leaves undone, and what it costs: one look at a whole list.

Called by `optimizer.spending`, which looks for the best first part that a budget is enough for.

*Undone* is what an operator compares, the most important first: urgent repairs left, replicas in crowded racks, hard goals that brokers
miss, by how much their scores in these are below 1, and by how much their scores in soft goals are, by weight. Of goals on racks the
replicas count, not the brokers that hold them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BrokerState, FloatArray
from optimizer.broker_sets import outside_sets
from optimizer.course import Placement
from optimizer.found import Round
from optimizer.placement.log import Log
from optimizer.placement.record import Lists, Record
from optimizer.placement.standing import urgent
from optimizer.placement.state import COST, RACKS, Rows, State
from optimizer.problem import (
    HARD,
    KIND,
    MOVABLE,
    NO_RACK_GOAL,
    RACK,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    SETS,
    STATE,
    WEIGHT,
    Compiled,
    Problem,
)

DIGITS = 9  # of sums of scores: with more digits, the order of summing would show
MUST = 3  # the first of what is undone: repairs left, and hard goals that brokers miss
Undone = tuple[float, float, float, float, float]


def undone_of(compiled: Compiled, state: State) -> Undone:
    """What `state` leaves undone, as the module says; smaller is better. O(brokers x goals)."""
    problem = compiled.problem
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    missed, short, soft = (float(x.sum()) for x in _falls_short(problem, state.score[active, :COST]))
    return float(urgent(problem, state)), float(state.units[RACKS].sum()), missed, round(short, DIGITS), round(soft, DIGITS)


def undone_along(compiled: Compiled, begin: State, rounds: list[Round]) -> FloatArray:
    """float64 [A + 1, 5]: `undone_of` after each of the first 0 to A actions of `rounds`, which start at `begin`. O(changes x goals)."""
    problem, start = compiled.problem, np.array(undone_of(compiled, begin))
    if not rounds:
        return start[None, :]
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    broker = np.concatenate([part.record.broker for part in rounds])
    after = np.concatenate([part.record.after for part in rounds])
    actions = sum(int(part.log.used[0]) for part in rounds)
    action = np.repeat(np.arange(actions), np.concatenate([np.diff(part.record.first) for part in rounds]))
    now = np.stack(_falls_short(problem, after), axis=1) * active[broker, None]
    order = np.argsort(broker, kind="stable")
    was = np.empty_like(now)
    first = np.append(True, np.diff(broker[order]) != 0) if len(order) else np.zeros(0, np.bool_)
    was[order[~first]] = now[order[np.flatnonzero(~first) - 1]]
    met = order[first]
    was[met] = np.stack(_falls_short(problem, begin.score[broker[met], :COST]), axis=1) * active[broker[met], None]
    steps = np.zeros((actions, 5))
    waits = np.concatenate([_open(problem, part, True) - _open(problem, part, False) for part in rounds])
    np.add.at(steps[:, :2], _actions_of(rounds), waits)
    np.add.at(steps[:, 2:], action, now - was)
    return np.round(np.vstack([start, start + np.cumsum(steps, axis=0)]), DIGITS)


def spent_along(compiled: Compiled, rounds: list[Round]) -> FloatArray:
    """float64 [A + 1, 3]: moves, bytes and partitions that the first 0 to A actions of `rounds` cost, compared with their start."""
    if not rounds:
        return np.zeros((1, 3))
    start = Placement(rounds[0].replicas, rounds[0].lead)
    rows = np.concatenate([part.log.partition for part in rounds])
    home = start.taken(rows)
    led = np.maximum(home.lead, 0) == 0
    spent = []
    lists = [part.changes for part in rounds]
    before = Placement(np.concatenate([one.before for one in lists]), np.concatenate([one.lead_before for one in lists]))
    after = Placement(np.concatenate([one.after for one in lists]), np.concatenate([one.lead_after for one in lists]))
    for to, touched in ((before, ~_firsts_of(rows)), (after, np.ones(len(rows), np.bool_))):
        moves, same = home.moved(to), home.relieved(to) == 0
        free = (moves == 0) & same & (~touched | led)
        spent.append(np.stack([moves, moves * compiled.problem.size[rows], ~free], axis=1).astype(np.float64))
    steps = np.zeros((sum(int(part.log.used[0]) for part in rounds), 3))
    np.add.at(steps, _actions_of(rounds), spent[1] - spent[0])
    return np.vstack([np.zeros((1, 3)), np.cumsum(steps, axis=0)])


def first_part(rounds: list[Round], actions: int) -> list[Round]:
    """The first `actions` actions of `rounds`, as rounds."""
    kept = []
    for part in rounds:
        n = min(int(part.log.used[0]), actions)
        if n == int(part.log.used[0]):
            kept.append(part)
        elif n:
            kept.append(_cut(part, n))
        actions -= n
    return kept


def _cut(part: Round, actions: int) -> Round:
    """The first `actions` actions of a round."""
    log, record, lists = part.log, part.record, part.changes
    changes, rows = int(log.first[actions]), int(record.first[actions])
    used = np.array([actions, changes])
    return replace(
        part,
        log=Log(used, log.first[: actions + 1], log.partition[:changes], log.replicas[:changes], log.lead[:changes]),
        record=Record(
            record.score[:actions], record.repairs[:actions], record.goal_score[:actions], record.first[: actions + 1],
            record.broker[:rows], record.earlier[:rows], record.other, record.after[:rows],
        ),
        changes=Lists(lists.before[:changes], lists.lead_before[:changes], lists.after[:changes], lists.lead_after[:changes]),
    )  # fmt: skip


def _falls_short(problem: Problem, score: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Three float64 [n], of brokers with scores `score` float64 [n, G]: hard goals missed, shortfall of scores below 1 in these, and the
    shortfall in soft goals, by weight. Goals on racks are left out."""
    hard, short = problem.goal[:, HARD] == 1, np.where(problem.goal[:, KIND] != RACK, 1.0 - score, 0.0)
    missed = (short[:, hard] > 0.0).sum(axis=1).astype(np.float64)
    return missed, short[:, hard].sum(axis=1), (short * problem.force[:, WEIGHT])[:, ~hard].sum(axis=1)


def _crowded(problem: Problem, lists: Rows, rows: Rows) -> npt.NDArray[np.bool_]:
    """bool [n, R]: which replicas of partitions `rows` int64 [n] are in over-full racks, if they stand at `lists` int64 [n, R]."""
    at = np.append(problem.broker[:, RACK_OF], -1)[lists]
    mates = (at[:, :, None] == at[:, None, :]).sum(axis=2)
    return np.asarray((mates > problem.partition[rows, RACK_LIMIT][:, None]) & (lists >= 0))


def _open(problem: Problem, part: Round, after: bool) -> npt.NDArray[np.int64]:
    """int64 [n, 2]: open repairs of the partition of each change, before it or `after` it: urgent ones (as `standing.urgent` counts
    them), and replicas in crowded racks."""
    lists, lead = (part.changes.after, part.changes.lead_after) if after else (part.changes.before, part.changes.lead_before)
    states, rows = problem.broker[:, STATE], part.log.partition
    leaving = np.append((states == BrokerState.DEAD) | (states == BrokerState.DRAINING), False)
    leaders = Placement(lists, lead).leaders()
    waits = leaving[lists].sum(axis=1) + leaving[leaders] + (lead < 0)
    if problem.setting[SETS]:
        active = np.append(states == BrokerState.ACTIVE, False)
        astray = outside_sets(problem, lists, rows) & active[lists]
        waits = waits + astray.sum(axis=1) * (problem.partition[rows, MOVABLE] == 1)
    crowded = _crowded(problem, lists, rows) if problem.setting[RACK_GOAL] != NO_RACK_GOAL else np.zeros(lists.shape)
    return np.stack([waits, crowded.sum(axis=1)], axis=1).astype(np.int64)


def _firsts_of(rows: Rows) -> npt.NDArray[np.bool_]:
    """bool [n]: whether an entry of `rows` is the first of its partition."""
    first = np.zeros(len(rows), np.bool_)
    first[np.unique(rows, return_index=True)[1]] = True
    return first


def _actions_of(rounds: list[Round]) -> Rows:
    """int64 [changes]: number of the action that each change belongs to, counted over all rounds."""
    sizes = np.concatenate([np.diff(part.log.first) for part in rounds])
    return np.repeat(np.arange(len(sizes)), sizes)
