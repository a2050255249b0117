"""The states of a search, moved to another placement instead of built again.

A search changes few of a million replicas. `States` has a state at the start of a round and two to work on. It moves them to another
placement by undoing and redoing only what differs: partitions that were committed, which the states remember, and partitions that the
caller names. The result is what `build_state` gives there, bit for bit.
"""

from __future__ import annotations

import numpy as np

from optimizer.parameters import FEW_LISTS
from optimizer.placement.commit import appraise, build_state, count_all_topics, fill, reweigh, weigh
from optimizer.placement.log import Log, empty_log
from optimizer.placement.restore import copy_state, overwrite, restore, restore_from, which_differ
from optimizer.placement.state import State, list_room
from optimizer.placement.topic_counts import all_marked, mark_topics
from optimizer.problem import Problem

Rows = np.ndarray


class States:
    """The states of a search, as the module says.

    Notes
    -----
    Three states of about 25 bytes a replica each.
    """

    def __init__(self, problem: Problem, replicas: Rows, lead: Rows) -> None:
        self._current = build_state(problem, replicas, lead)
        self._judged_by = problem  # whose scores and potentials `_current` has
        self._spare: dict[int, State] = {}
        self._behind = [_Behind(len(problem.broker)) for _ in range(2)]
        self._replicas, self._lead = replicas, lead
        self._log = empty_log(replicas.shape[1] if replicas.ndim == 2 else 1, 0)
        self._marks: np.ndarray | None = None  # of topics, before partitions `_unmarked` moved
        self._unmarked: list[Rows] = []
        self._away: list[Rows] = []  # partitions; among them are all that left the placement of the last `start`

    @property
    def current(self) -> State:
        """The state at the placement of the last `at` or `start`; callers only read it."""
        return self._current

    @property
    def judged_by(self) -> Problem:
        """The problem whose scores and potentials `current` has."""
        return self._judged_by

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the states, without `home`, which is the caller's."""
        states = (self._current, *self._spare.values())
        return sum(column.nbytes for state in states for name, column in state._asdict().items() if name != "home")

    def hosted_by(self, brokers: np.ndarray, replicas: Rows) -> Rows:
        """int64 partitions, ascending; among them are all with a replica on one of `brokers` (bool [B]) in `replicas` int64 [P, R], the
        placement of the last `start`."""
        current, away = self._current, _joined(self._away)
        at = np.append(brokers, False)
        held = [current.hosted[b, : current.hosts[b]].astype(np.int64) // replicas.shape[1] for b in np.flatnonzero(brokers)]
        return _joined([*held, away[at[replicas[away]].any(axis=1)]])

    def start(self, problem: Problem, replicas: Rows, lead: Rows, moved: Rows) -> State:
        """As `at`, for a new start; `moved` int64 are partitions, among them all that differ from the placement of the last `start`."""
        current = self.at(problem, replicas, lead, _joined([*self._away, moved]))
        self._away = []
        return current

    def at(self, problem: Problem, replicas: Rows, lead: Rows, moved: Rows | None = None) -> State:
        """The state that `build_state` gives for this placement; callers only read it.

        `replicas` int64 [P, R] and `lead` int64 [P] are kept, not copied. `moved` int64 are partitions; among them are all that differ
        from the last call. If it is not given, they are found by comparison. `problem` may be another one, with the same loads, racks
        and replication factors of partitions as the last.
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
        """State 0 or 1 to work on, equal to `current` at first."""
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
        """uint8 [K, T]: 1 if a broker is outside the target range of a topic in `current`; to read until the next `at` or `start`."""
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
        """An empty log with room for `room` changes. Each call returns the same log, so a caller copies what is to stay."""
        if len(self._log.partition) <= room:
            self._log = empty_log(self._log.replicas.shape[1], room)
        self._log.used[:] = 0
        return self._log

    def drop(self, which: int) -> None:
        """Free the memory of state `which` of `spare`, until it is asked for again."""
        self._spare.pop(which, None)

    def reload(self, problem: Problem, rows: Rows, before: np.ndarray | None) -> np.ndarray:
        """Loads of brokers, float64 [B, C], under a `problem` in which partitions `rows` have other vectors than `before`
        float64 [n, 2, C] (None: all vectors may differ). `appraise` has to follow."""
        state = self._current
        if before is not None:
            reweigh(problem, state, rows, before)
        else:
            state.load.fill(0.0)
            weigh(problem, state)
        return state.load

    def recount(self, problem: Problem) -> None:
        """Count misplaced replicas by topic again, under a `problem` that judges topics differently. `appraise` has to follow."""
        count_all_topics(problem, self._current)
        self._marks = None

    def appraise(self, problem: Problem) -> None:
        """Set scores and potentials to those of another `problem` with the same loads."""
        appraise(problem, self._current)
        self._judged_by = problem


class _Behind:
    """How a spare state differs from the state at the start of the round, apart from commits to the spare state: bool [B] brokers whose
    lists differ, and partitions that differ."""

    def __init__(self, brokers: int) -> None:
        self.lists = np.zeros(brokers, np.bool_)
        self.partitions: list[Rows] = []


def differing(one: Rows, one_lead: Rows, other: Rows, other_lead: Rows, *states: State) -> Rows:
    """int64 partitions whose lists or leaders differ, ascending.

    If `states` are given, all differences come from commits to them since they were built or moved to another placement.
    """
    if states and all(state.trail[0] < len(state.trail) for state in states):
        rows = np.sort(np.concatenate([state.trail[1 : 1 + state.trail[0]] for state in states]))
        return which_differ(rows, one, one_lead, other, other_lead)
    differs = one_lead != other_lead
    for s in range(one.shape[1]):
        differs |= one[:, s] != other[:, s]
    return np.flatnonzero(differs).astype(np.int64)


def _joined(rows: list[Rows]) -> Rows:
    """int64: all entries of `rows`, ascending, each once."""
    return np.unique(np.concatenate(rows)) if rows else np.zeros(0, np.int64)


def _held(replicas: Rows, state: State) -> np.ndarray:
    return np.bincount(replicas[replicas >= 0], minlength=len(state.hosts))
