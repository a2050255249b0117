"""A log replayed without a compiler, all actions at once, as `optimizer.search.record.replay` does; and many changes carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import Problem
from optimizer.search.state import COST, LED, STRAY, State
from optimizer.search.uncompiled.changes import relist_all
from optimizer.search.uncompiled.trains import Train, Verdicts, is_simple

if TYPE_CHECKING:
    from optimizer.search.ledger import Log
    from optimizer.search.record import Record


def replay(problem: Problem, state: State, log: Log, by_potential: bool, out: Record) -> int | None:
    """As `optimizer.search.record.replay`; None where it has to be done one by one, and nothing was changed."""
    actions, changes = log.used.tolist()
    if not actions or not is_simple(problem, state):
        return None
    action = np.repeat(np.arange(actions), np.diff(log.first[: actions + 1]))
    train = Train(problem, state, action, log.partition[:changes], log.replicas[:changes], log.lead[:changes])
    if not train.is_plain:
        return None
    every = np.ones(actions, np.bool_)
    verdicts = train.verdicts(every)
    bad = np.flatnonzero(~verdicts.acceptable(by_potential, 0.0))
    if len(bad):
        return int(bad[0])
    out.score[:], out.repairs[:], out.goal_score[:] = verdicts.score, verdicts.repairs, verdicts.goal_score
    out.first[:] = train.first
    rows = len(train.broker)
    ascending = np.lexsort((train.broker, train.action))
    broker = train.broker[ascending]
    out.broker[:rows], out.after[:rows] = broker, verdicts.after[ascending, :COST]
    # Where each broker was touched before; what it scored before its first touch is kept beside, in the order of touch.
    order = np.argsort(broker, kind="stable")
    same = np.flatnonzero(broker[order][1:] == broker[order][:-1])
    earlier = np.full(rows, -1, np.int64)
    earlier[order[same + 1]] = order[same]
    fresh = np.zeros(rows, np.bool_)
    fresh[ascending[earlier < 0]] = True
    number: np.ndarray = np.cumsum(fresh)
    out.other[: int(fresh.sum())] = state.score[train.broker[fresh], :COST]
    out.earlier[:rows] = np.where(earlier < 0, 0 - number[ascending], earlier)
    carry_out(state, train, verdicts, every)
    return -1


def carry_out(state: State, train: Train, verdicts: Verdicts, done: np.ndarray) -> None:
    """Commit the actions `done` bool [A] of a train, as they were judged: `optimizer.search.commit.commit`, one after the other."""
    mine = np.flatnonzero(done[train.change_action])
    if not len(mine):
        return
    partition, old, new = train.partition[mine], train.old[mine], train.new[mine]
    was, lead = train.was[mine], train.lead[mine]
    used = int(state.trail[0])
    room = state.trail[1 + used : 1 + used + len(mine)]
    room[:] = partition[: len(room)]
    state.trail[0] = used + len(mine)
    moved = np.argwhere((old != new) & (old >= 0))
    i, s = moved.T
    relist_all(state, partition[i], s, old[i, s], new[i, s])
    last = np.flatnonzero(np.append(np.sort(partition)[1:] != np.sort(partition)[:-1], True))
    last = np.argsort(partition, kind="stable")[last]
    state.replicas[partition[last]], state.lead[partition[last]] = new[last], lead[last]
    state.dirty[old[i, s]] = state.dirty[new[i, s]] = 1
    turned = np.flatnonzero(was != lead)
    for slot in (was, lead):
        k = turned[slot[turned] >= 0]
        state.dirty[old[k, slot[k]]] = 1
    _mark(state, np.unique(partition), partition[i], s)
    row = np.flatnonzero(done[train.action])
    row = row[np.argsort(train.broker[row], kind="stable")]
    ends = row[np.append(train.broker[row][1:] != train.broker[row][:-1], True)]
    state.score[train.broker[ends]] = verdicts.after[ends]
    np.add.at(state.load, train.broker[row], train.delta[row])


def _mark(state: State, partition: np.ndarray, moved: np.ndarray, slot: np.ndarray) -> None:
    """Marks of the entries of `partition`, and of replicas that `moved`."""
    now, place = state.replicas[partition], state.place[partition]
    for s in range(now.shape[1]):
        there = np.flatnonzero(now[:, s] >= 0)
        b, at = now[there, s], place[there, s]
        led = np.where(state.lead[partition[there]] == s, LED, 0)
        state.mark[b, at] = (state.mark[b, at] & STRAY) | led
    b = state.replicas[moved, slot]
    led = np.where(state.lead[moved] == slot, LED, 0)
    state.mark[b, state.place[moved, slot]] = led | np.where(state.home[moved, slot] != b, STRAY, 0)
