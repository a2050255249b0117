"""Replay of a log: the scores that reports show, taken at the turn of each action, and the lists that plans show.

Called once for each round. It is also the planner's own check that each published action is acceptable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels.compiled import kernel, whole
from optimizer.parameters import SOON
from optimizer.placement.evaluate import acceptable, adopt, evaluate, prefetch_change, prefetch_counts
from optimizer.placement.log import Log, load_action
from optimizer.placement.state import Rows, State, is_active
from optimizer.problem import Compiled, Problem


class BrokenRuleError(RuntimeError):
    """The planner broke one of its own rules: a bug, which its own check found before there was a plan."""


class Record(NamedTuple):
    """Scores of A actions in G goals; N brokers touched in all, those of action a from row `first[a]` to below `first[a + 1]`."""

    score: np.ndarray  # float64 [A], of each action (`Verdict.score`)
    repairs: np.ndarray  # int64 [A], bits (`Verdict.repairs`)
    goal_score: np.ndarray  # float64 [A, G], scores of the action
    first: np.ndarray  # int64 [A + 1]
    broker: np.ndarray  # int64 [N], broker rows, ascending in each action
    earlier: np.ndarray  # int32 [N], row of `after` with the broker's scores before; a negative k is row -1 - k of `other`
    other: np.ndarray  # float64 [n, G], scores before that are in no row of `after`
    after: np.ndarray  # float64 [N, G], the broker's scores after the action

    @property
    def before(self) -> Before:
        return Before(self.earlier, self.other, self.after)


@dataclass(frozen=True)
class Before:
    """Scores of brokers before actions, float64 [N, G], made only when rows are read. Most of them are scores after an earlier action, so
    an array would take as much memory again."""

    earlier: np.ndarray
    other: np.ndarray
    after: np.ndarray

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        at = self.earlier[rows]
        scores = self.after[np.maximum(at, 0)]
        scores[at < 0] = self.other[-1 - at[at < 0]]
        return np.asarray(scores)


def joined_before(records: list[Record], after: np.ndarray) -> Before:
    """`Before` for several records; `after` is their `Record.after`, concatenated."""
    earlier, rows, others = [], 0, 0
    for one in records:
        earlier.append(np.where(one.earlier < 0, one.earlier - others, one.earlier + rows))
        rows, others = rows + len(one.after), others + len(one.other)
    if not records:
        return Before(np.zeros(0, np.int64), after, after)
    return Before(np.concatenate(earlier), np.concatenate([one.other for one in records]), after)


def record(problem: Problem, state: State, log: Log, by_potential: bool) -> Record:
    """Scores of all actions of `log`, replayed from `state`, which is changed to the placement after them.

    Raises
    ------
    BrokenRuleError
        An action is not acceptable at its turn: a bug of the search.
    """
    actions, changes = int(log.used[0]), int(log.used[1])
    goals, slots = len(problem.goal), state.replicas.shape[1]
    most = 2 * slots * changes + 1
    out = Record(
        score=np.zeros(actions),
        repairs=np.zeros(actions, np.int64),
        goal_score=np.zeros((actions, goals)),
        first=np.zeros(actions + 1, np.int64),
        broker=np.empty(most, np.int64),  # far more than is used; the rest takes no memory
        earlier=np.empty(most, np.int32),
        other=np.empty((most, goals)),
        after=np.empty((most, goals)),
    )
    refused = replay(problem, state, log, by_potential, out)
    if refused >= 0:
        raise BrokenRuleError(f"action {refused + 1} of a round is not acceptable at its turn")
    used = int(out.first[actions])
    others = max(-int(out.earlier[:used].min(initial=0)), 0)
    return out._replace(broker=out.broker[:used], earlier=out.earlier[:used], other=out.other[:others], after=out.after[:used])


@kernel
def replay(problem: Problem, state: State, log: Log, by_potential: bool, out: Record) -> int:
    """Replay the actions of `log` on `state` and fill `out`; returns the first action that is not acceptable, -1 if all are."""
    goals = len(problem.goal)
    last = np.full(len(state.hosts), -1, np.int64)  # row of `out` where each broker was touched last, -1 none
    at, others = 0, 0
    for a in range(log.used[0]):
        soon, sooner = log.first[min(a + SOON, log.used[0] - 1)], log.first[min(a + SOON // 2, log.used[0] - 1)]
        prefetch_change(problem, state, log.partition[soon], state.replicas, state.lead)
        prefetch_counts(problem, state, log.partition[sooner], log.replicas, sooner)
        n = load_action(state, log, whole(a))
        verdict = evaluate(problem, state, n)
        if not acceptable(verdict, by_potential, 0.0):
            return a
        out.score[a] = verdict.score
        out.repairs[a] = verdict.repairs
        for g in range(goals):
            out.goal_score[a, g] = state.action[g]
        start = at
        for t in range(verdict.touched):
            b = state.touched[t]
            earlier = last[b]
            for g in range(goals):
                if earlier >= 0 and out.after[earlier, g] != state.score[b, g]:
                    earlier = -1
            if earlier < 0:
                for g in range(goals):
                    out.other[others, g] = state.score[b, g]
                others += 1
                earlier = -others
            out.broker[at], out.earlier[at] = b, earlier
            for g in range(goals):
                out.after[at, g] = state.fresh[t, g]
            at += 1
        for i in range(start + 1, at):  # sort the rows of the action by broker
            j = i
            while j > start and out.broker[j - 1] > out.broker[j]:
                out.broker[j - 1], out.broker[j] = out.broker[j], out.broker[j - 1]
                out.earlier[j - 1], out.earlier[j] = out.earlier[j], out.earlier[j - 1]
                for g in range(goals):
                    out.after[j - 1, g], out.after[j, g] = out.after[j, g], out.after[j - 1, g]
                j -= 1
        for i in range(start, at):
            last[out.broker[i]] = i
        out.first[a + 1] = at
        adopt(problem, state, n, verdict.touched)
    return -1


# wide: lists and leaders before and after each change, and at the start of the plan
@kernel
def write_lists(
    problem: Problem, log: Log, replicas: np.ndarray, home: np.ndarray, home_lead: np.ndarray, previous: np.ndarray,
    before: np.ndarray, lead_before: np.ndarray, after: np.ndarray, lead_after: np.ndarray,
) -> None:  # fmt: skip
    """Write the lists of all changes of `log`, in published order. `before` and `after` come in as the lists at the start of the log.

    `previous` int32 [P] comes in as 0; `home` and `home_lead` are the lists and leader slots at the start of the plan.
    """
    slots = replicas.shape[1]
    row = np.zeros(slots, np.int64)
    for i in range(log.used[1]):
        p = log.partition[i]
        earlier = previous[p] - 1
        previous[p] = i + 1
        if earlier >= 0:
            lead_before[i] = lead_after[earlier]
            for s in range(slots):
                before[i, s] = after[earlier, s]
        for o in range(slots):
            row[o] = before[i, o]
        leader = log.replicas[i, log.lead[i]] if log.lead[i] >= 0 else -1
        front = leader >= 0 and (before[i, lead_before[i]] if lead_before[i] >= 0 else -1) != leader
        for s in range(slots):
            old = replicas[p, s] if earlier < 0 else log.replicas[earlier, s]
            new = log.replicas[i, s]
            if old != new:
                front = front or (leader >= 0 and is_active(problem, leader))
                for o in range(slots):
                    if before[i, o] == old:
                        row[o] = new
        if front:
            at = 0
            while row[at] != leader:
                at += 1
            while at > 0:
                row[at] = row[at - 1]
                at -= 1
            row[0] = leader
        kept = lead_before[i] >= 0 and before[i, lead_before[i]] == leader
        if home_lead[p] >= 0 and leader == home[p, home_lead[p]] and (home_lead[p] == 0 or kept):
            same = True
            for s in range(slots):
                known = False
                for o in range(slots):
                    if home[p, s] == row[o]:
                        known = True
                same = same and known
            if same:
                for s in range(slots):
                    row[s] = home[p, s]
        lead_after[i] = -1
        for s in range(slots):
            after[i, s] = row[s]
            if leader >= 0 and row[s] == leader:
                lead_after[i] = s


@dataclass(frozen=True)
class Lists:
    """Replica lists (int64 [n, R], broker rows) and leader positions (int64 [n]) of changes, before and after, in published order."""

    before: Rows
    lead_before: Rows
    after: Rows
    lead_after: Rows


def published_changes(compiled: Compiled, replicas: Rows, lead: Rows, log: Log) -> Lists:
    """Lists of every change of a log in published order, from the lists `replicas` and leader slots `lead` at its start.

    Brokers keep their places; a new broker takes the place of the broker that it replaces. A leader that changes, or whose list does, goes
    to the front, so that preferred leader election keeps it. A partition that is back on the brokers and leader of the start of the plan
    gets its list of then, unless its leader changes now and was not first in that list.
    """
    count = int(log.used[1])
    rows = log.partition[:count]
    before, lead_before = replicas[rows], lead[rows]
    after, lead_after = before.copy(), lead_before.copy()
    write_lists(
        compiled.problem, log, replicas, compiled.home, compiled.home_lead, np.zeros(len(lead), np.int32), before, lead_before, after,
        lead_after,
    )  # fmt: skip
    return Lists(before, lead_before, after, lead_after)
