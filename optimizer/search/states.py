"""The states of a search, brought back to a placement instead of built anew.

A search changes few of a million replicas. `States` has a state where a round begins and two to work on, and brings them elsewhere by
undoing and redoing only what differs: partitions that were committed, as the states remember, and those that the caller names. What
comes out is what `build_state` gives there, bit for bit.
"""

from __future__ import annotations

import numpy as np

from optimizer.problem import Problem
from optimizer.search.commit import appraise, build_state, count_all_topics, fill, reweigh, weigh
from optimizer.search.log import Log, empty_log
from optimizer.search.parameters import FEW_LISTS
from optimizer.search.restore import copy_state, overwrite, restore, restore_from, which_differ
from optimizer.search.state import State, list_room
from optimizer.search.topic_counts import all_marked, mark_topics

Rows = np.ndarray


class States:
    """See the module.

    Notes
    -----
    Three states of about 25 bytes a replica each.
    """

    def __init__(self, problem: Problem, replicas: Rows, lead: Rows) -> None:
        self._current = build_state(problem, replicas, lead)
        self._judged_by = problem  # whose scores and potentials the first state has
        self._spare: dict[int, State] = {}
        self._behind = [_Behind(len(problem.broker)) for _ in range(2)]
        self._replicas, self._lead = replicas, lead
        self._log = empty_log(replicas.shape[1] if replicas.ndim == 2 else 1, 0)
        self._marks: np.ndarray | None = None  # of topics, where partitions `_unmarked` were elsewhere
        self._unmarked: list[Rows] = []
        self._away: list[Rows] = []  # partitions among which are all that are not where `start` put them

    @property
    def current(self) -> State:
        """The state of the last `at` or `start`; for reading."""
        return self._current

    @property
    def judged_by(self) -> Problem:
        """The problem of which `current` has the scores and potentials."""
        return self._judged_by

    @property
    def nbytes(self) -> int:
        """Memory of the states; `home` is the caller's."""
        states = (self._current, *self._spare.values())
        return sum(column.nbytes for state in states for name, column in state._asdict().items() if name != "home")

    def hosted_by(self, brokers: np.ndarray, replicas: Rows) -> Rows:
        """int64 partitions, ascending, among which are all with a replica on one of `brokers` (bool [B]) in `replicas` int64 [P, R],
        where the last `start` put them."""
        current, away = self._current, _joined(self._away)
        at = np.append(brokers, False)
        held = [current.hosted[b, : current.hosts[b]].astype(np.int64) // replicas.shape[1] for b in np.flatnonzero(brokers)]
        return _joined([*held, away[at[replicas[away]].any(axis=1)]])

    def start(self, problem: Problem, replicas: Rows, lead: Rows, moved: Rows) -> State:
        """As `at`, where `moved` are partitions that are not where the last `start` was."""
        current = self.at(problem, replicas, lead, _joined([*self._away, moved]))
        self._away = []
        return current

    def at(self, problem: Problem, replicas: Rows, lead: Rows, moved: Rows | None = None) -> State:
        """The state that `build_state` gives for this placement; for reading.

        `replicas` int64 [P, R] and `lead` int64 [P] are kept as they are. `moved` int64 are partitions among which are all that stand
        elsewhere since the last call; found out where not given. `problem` may be another one, but with the same loads, racks and
        replication factors of partitions as the last.
        """
        if moved is None:
            same = replicas is self._replicas and lead is self._lead
            moved = np.zeros(0, np.int64) if same else differing(replicas, lead, self._replicas, self._lead)
        self._replicas, self._lead = replicas, lead
        self._away.append(moved)
        self._unmarked.append(moved)
        state = self._current
        was, now = state.replicas[moved], replicas[moved]
        touched = np.zeros(len(problem.broker), np.bool_)
        touched[np.concatenate([was[was != now], now[was != now]])] = True
        for behind in self._behind:
            behind.lists |= touched
            behind.partitions.append(moved)
        hosts = state.hosts + _held(now, state) - _held(was, state)
        if list_room(problem, hosts, *state.replicas.shape) != state.hosted.shape[1]:
            self._current, self._spare = build_state(problem, replicas, lead), {}
        elif FEW_LISTS * int(touched.sum()) <= len(touched):
            restore(problem, state, moved, replicas, lead)
            self._current = state._replace(home=replicas)
        else:
            np.copyto(state.replicas, replicas)
            np.copyto(state.lead, lead)
            for column in (state.load, state.units, state.topic_count, state.hosts):
                column.fill(0)
            self._current = state._replace(home=replicas)
            fill(problem, self._current)
        if self._judged_by is not problem:
            self.appraise(problem)
        return self._current

    def spare(self, which: int) -> State:
        """State 0 or 1 to work on, which begins as that of `at`."""
        if which not in self._spare:
            self._spare[which] = copy_state(self._current)
            self._behind[which] = _Behind(len(self._current.hosts))
        state, like, behind = self._spare[which], self._current, self._behind[which]
        touched = behind.lists | (state.dirty > 0)
        if state.trail[0] < len(state.trail):
            rows = _joined([*behind.partitions, state.trail[1 : 1 + state.trail[0]]])
            restore_from(state, like, rows, touched)
            for name in ("load", "units", "topic_count", "score"):
                np.copyto(getattr(state, name), getattr(like, name))
        else:
            overwrite(state, like)
        self._spare[which] = state = state._replace(home=like.home)
        self._behind[which] = _Behind(len(touched))
        return state

    def topics_out(self, problem: Problem) -> np.ndarray:
        """uint8 [K, T]: 1 where somebody is outside the band of a topic in `current`; for reading, until the next `at` or `start`."""
        moved, self._unmarked = self._unmarked, []
        if not len(problem.topic_goal):
            return all_marked(problem)
        if self._marks is None:
            self._marks = all_marked(problem)
            topics = np.arange(self._marks.shape[1])
        else:
            topics = np.unique(problem.topic[_joined(moved)])
        mark_topics(problem, self._current, topics, self._marks)
        return self._marks

    def log(self, room: int) -> Log:
        """An empty log with room for so many changes; the same every time, so what is to stay has to be copied."""
        if len(self._log.partition) <= room:
            self._log = empty_log(self._log.replicas.shape[1], room)
        self._log.used[:] = 0
        return self._log

    def drop(self, which: int) -> None:
        """Free state `which` of `spare`, until it is asked for again."""
        self._spare.pop(which, None)

    def reload(self, problem: Problem, rows: Rows, before: np.ndarray | None) -> np.ndarray:
        """Loads of brokers, float64 [B, C], under a `problem` in which partitions `rows` have other vectors than `before`
        float64 [n, 2, C] (None: all may). `appraise` has to follow."""
        state = self._current
        if before is not None:
            reweigh(problem, state, rows, before)
        else:
            state.load.fill(0.0)
            weigh(problem, state)
        return state.load

    def recount(self, problem: Problem) -> None:
        """Count misplaced replicas by topic anew, under a `problem` that judges otherwise of topics. `appraise` has to follow."""
        count_all_topics(problem, self._current)
        self._marks = None

    def appraise(self, problem: Problem) -> None:
        """Make scores and potentials those of another `problem` with the same loads."""
        appraise(problem, self._current)
        self._judged_by = problem


class _Behind:
    """In what a spare state is not as the state where a round begins, beside what was done to it: bool [B] brokers whose lists
    differ, and partitions that stand elsewhere."""

    def __init__(self, brokers: int) -> None:
        self.lists = np.zeros(brokers, np.bool_)
        self.partitions: list[Rows] = []


def differing(one: Rows, one_lead: Rows, other: Rows, other_lead: Rows, *states: State) -> Rows:
    """int64 partitions whose lists or leaders differ, ascending.

    Where `states` are given, all differences come from commits to them since they were built or brought elsewhere.
    """
    if states and all(state.trail[0] < len(state.trail) for state in states):
        rows = np.sort(np.concatenate([state.trail[1 : 1 + state.trail[0]] for state in states]))
        return which_differ(rows, one, one_lead, other, other_lead)
    differs = one_lead != other_lead
    for s in range(one.shape[1]):
        differs |= one[:, s] != other[:, s]
    return np.flatnonzero(differs).astype(np.int64)


def _joined(rows: list[Rows]) -> Rows:
    """int64, ascending, each once."""
    return np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)


def _held(replicas: Rows, state: State) -> np.ndarray:
    return np.bincount(replicas[replicas >= 0], minlength=len(state.hosts))
