"""Searches within a budget: the best first part, that the budget is enough for, of lists of actions that do not depend on the budget.

Called by the planner and by `optimizer.careful`. The lists are the same for every budget, so a larger budget can choose from more first
parts, and the best one never leaves more undone. Free actions from its end follow. Without a budget the plan is that of `optimizer.worth`,
or in small clusters that of the lists, if that leaves fewer repairs or hard goals undone.

The lists are the plan without a budget; free actions first (leadership transfers, if moves or bytes are limited), then everything, in the
order of searches with a budget: repairs, hard limits, the rest; the same up to the repairs, then single steps; what hard goals alone need,
then single steps (not in large clusters, where it takes as long as a second plan); and the second list in stages. Each stage is a search
within a fixed share of all that could be moved, so that small budgets have lists that are made for about as much. A stage that starts
beyond the budget is left out. Single steps end with the budget; parts of them that gain too little are left out after that, so a larger
budget may leave out more of them.
If partitions are limited besides moves or bytes, the lists without that limit are made, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cluster_model.snapshot import FloatArray
from optimizer.bounds import lower_bounds
from optimizer.course import Placement, step_round
from optimizer.found import Found, Round
from optimizer.gain import LeftOut, distances
from optimizer.hard_first import hard_round
from optimizer.options import PlanOptions, Watch
from optimizer.parameters import ENDLESS, MOST_ESCAPED, UNIT_SHARE
from optimizer.placement.log import budget_for
from optimizer.placement.state import State
from optimizer.placement.states import States
from optimizer.prefixes import MUST, first_part, spent_along, undone_along, undone_of
from optimizer.problem import RF, Compiled
from optimizer.search.search import search
from optimizer.threads import Threads
from optimizer.worth import straightened, without_small, worthwhile_search

PART = 0.5  # of the lower bounds: with a smaller budget, no plan without a budget is made
STAGED = 2_000  # replicas: with more, stages, and lists beside a plan without a budget, take several times as long as that plan
SHARES = tuple(2.0**-k for k in range(8, 1, -1))  # of all replicas, bytes and partitions: where stages end


@dataclass(frozen=True)
class Way:
    """A list of actions from the start of the plan: its rounds, and what was left out of it."""

    rounds: list[Round]
    left_out: LeftOut | None = None
    stopped: bool = False


@dataclass(frozen=True)
class Setting:
    """What all lists share. Searches use `states` one after the other."""

    compiled: Compiled
    options: PlanOptions
    start: Placement
    watch: Watch | None
    threads: Threads
    states: States

    @property
    def limits(self) -> FloatArray:
        """float64 [3]: limits of moves, bytes and partitions; infinite if there is none."""
        limits = budget_for(self.compiled, self.options).limits
        return np.where(limits < 0, np.inf, limits)

    @property
    def unlimited(self) -> PlanOptions:
        """The options without budgets."""
        return replace(self.options, max_moves=None, max_bytes=None, max_partitions=None)

    def stage(self, share: float) -> FloatArray:
        """float64 [3]: `share` of all replicas, of their bytes and of all partitions; infinite where there is no limit."""
        problem = self.compiled.problem
        factor = problem.partition[:, RF].astype(np.float64)
        every = np.array([factor.sum(), (problem.size * factor).sum(), len(factor)])
        return np.where(np.isinf(self.limits), np.inf, np.ceil(share * every) if share < np.inf else ENDLESS)

    def within(self, limits: FloatArray) -> PlanOptions:
        """The options with `limits` float64 [3] in place of the limits that they set."""
        asked = [self.options.max_moves, self.options.max_bytes, self.options.max_partitions]
        moves, data, partitions = (
            None if one is None else int(min(limit, ENDLESS)) for one, limit in zip(asked, limits.tolist(), strict=True)
        )
        return replace(self.options, max_moves=moves, max_bytes=data, max_partitions=partitions)


class _Choice:
    """The best affordable first part of the lists that were looked at; `begin` is the state at the start of the plan."""

    def __init__(self, setting: Setting, begin: State) -> None:
        self._setting, self._begin = setting, begin
        self.key: tuple[float, ...] = (np.inf,)
        self.rounds: list[Round] = []
        self.is_all = False  # whether it leaves nothing undone

    def look(self, way: Way) -> None:
        """Compare the first parts of `way` with the best so far: what they leave undone, then moves and bytes."""
        compiled = self._setting.compiled
        undone, spent = undone_along(compiled, self._begin, way.rounds), spent_along(compiled, way.rounds)
        affordable = np.flatnonzero((spent < self._setting.limits + UNIT_SHARE).all(axis=1))
        last = int(affordable[np.lexsort((*spent[affordable, 1::-1].T, *undone[affordable, ::-1].T))[0]])
        key = (*undone[last].tolist(), *spent[last, :2].tolist())
        if key < self.key:
            self.key, self.rounds, self.is_all = key, first_part(way.rounds, last), not undone[last].any()


def affordable_search(
    compiled: Compiled, options: PlanOptions, watch: Watch | None = None, states: States | None = None, threads: Threads | None = None
) -> Found:
    """The plan within the budgets of `options`: the best first part that they are enough for, then what is free from its end. Without a
    budget that of `_endless_search`."""
    if not len(compiled.replicas):
        return worthwhile_search(compiled, options, watch, states, threads)
    start = Placement(compiled.replicas, compiled.lead)
    states = States(compiled.problem, compiled.replicas, compiled.lead) if states is None else states
    setting = Setting(compiled, options, start, watch, threads or Threads(), states)
    if not options.budgeted:
        return _endless_search(setting)
    begin = start.state(compiled)
    choices: list[_Choice] = []
    left_out, stopped = None, False
    # If partitions are limited too, leadership transfers are not free; yet the budget may be enough for all of them.
    free = replace(setting, options=replace(options, max_partitions=None))
    for one in [free, setting] if free.options.budgeted and options.max_partitions is not None else [setting]:
        choices.append(_Choice(setting, begin))
        for way in _ways(one, begin, whole=len(choices) == 1):
            choices[-1].look(way)
            left_out, stopped = left_out or way.left_out, way.stopped
            if stopped or choices[-1].is_all:
                break
        if free.options.budgeted and not (stopped or choices[-1].is_all):
            way = _continued(free, Way(choices[-1].rounds), free.stage(0.0))
            choices[-1].look(way)
            stopped = way.stopped
        if stopped or choices[-1].is_all:
            break
    choice = min(choices, key=lambda one: one.key)
    rounds = straightened(compiled, setting.unlimited, start, choice.rounds) or choice.rounds
    end = start.after(rounds)
    setting.threads.settle()
    return Found(rounds, states.at(compiled.problem, end.replicas, end.lead), stopped, left_out)


def _endless_search(setting: Setting) -> Found:
    """The plan without a budget. If it leaves repairs or hard goals undone in a small cluster, the lists for an endless budget of moves are
    looked at too. If the best one leaves fewer undone, it is taken, and the search goes on from its end."""
    compiled, options, start = setting.compiled, setting.options, setting.start
    found = worthwhile_search(compiled, options, setting.watch, setting.states, setting.threads)

    def undone(rounds: list[Round]) -> tuple[float, ...]:
        return undone_of(compiled, start.after(rounds).state(compiled))[:MUST]

    if compiled.replicas.size > STAGED or found.stopped or not found.rounds or not any(least := undone(found.rounds)):
        return found
    begin, stopped = start.state(compiled), False
    choice = _Choice(setting, begin)
    for way in _ways(replace(setting, options=replace(options, max_moves=ENDLESS)), begin, whole=False):
        choice.look(way)
        stopped = way.stopped
        if stopped or choice.is_all:
            break
    made = Found(choice.rounds, start.after(choice.rounds).state(compiled), stopped)
    rounds, left_out = without_small(compiled, options, start, made, distances(compiled.problem, begin))
    if not stopped and undone(rounds) < least:
        at = start.after(rounds)
        rest = worthwhile_search(replace(compiled, replicas=at.replicas, lead=at.lead), options, setting.watch, threads=setting.threads)
        rounds, left_out, stopped = [*rounds, *rest.rounds], rest.left_out or left_out, rest.stopped
        rounds = straightened(compiled, options, start, rounds) or rounds
    if undone(rounds) >= least:
        rounds, left_out = found.rounds, found.left_out
    return Found(rounds, start.after(rounds).state(compiled), stopped, left_out)


def _ways(one: Setting, begin: State, whole: bool) -> Iterator[Way]:
    """Lists of actions, with the `whole` plan or without. None depends on how large the budgets are; a larger budget only has more lists,
    or more of a list."""
    if whole and _is_near(one, begin):
        found = worthwhile_search(one.compiled, one.unlimited, one.watch, one.states, one.threads)
        yield Way(found.rounds, found.left_out, found.stopped)
    free = _continued(one, Way([]), one.stage(0.0))
    yield free
    if not one.limits.any():
        return
    rest = _continued(one, free, one.stage(np.inf))
    yield rest
    yield _with_steps(one, _repaired(one, begin, rest, len(spent_along(one.compiled, free.rounds)) - 1))
    hard = _hard_alone(one) if one.compiled.replicas.size <= MOST_ESCAPED else Way([])
    if hard.stopped:
        yield hard
    if hard.rounds:
        yield _with_steps(one, _continued(one, hard, one.stage(0.0)))
    if one.compiled.replicas.size <= STAGED:
        yield _in_stages(one, free)


def _repaired(setting: Setting, begin: State, way: Way, least: int) -> Way:
    """The first part of `way`, of at least `least` actions, that leaves the fewest urgent repairs and replicas in crowded racks."""
    urgent, crowded = undone_along(setting.compiled, begin, way.rounds)[least:, :2].T
    return Way(first_part(way.rounds, least + int(np.lexsort((crowded, urgent))[0])))


def _with_steps(setting: Setting, way: Way) -> Way:
    """`way`, continued by single steps, without parts of them that gain too little."""
    left = setting.limits - spent_along(setting.compiled, way.rounds)[-1]
    if (left < 0.0).any():
        return way
    at = setting.start.after(way.rounds)
    made = step_round(setting.compiled, setting.within(left), at)
    if not made.log.used[0]:
        return way
    setting.threads.settle()
    before = distances(setting.compiled.problem, setting.states.at(setting.compiled.problem, at.replicas, at.lead))
    found = Found([made], at.after([made]).state(setting.compiled))
    rounds, left_out = without_small(setting.compiled, setting.unlimited, at, found, before)
    return Way([*way.rounds, *rounds], left_out or way.left_out)


def _is_near(setting: Setting, begin: State) -> bool:
    """Whether the budget may be enough for a large part of the plan without one: for at least `PART` of what any plan needs."""
    least = lower_bounds(setting.compiled.problem, begin)
    partitions = least.replica_moves / setting.compiled.replicas.shape[1]
    return bool((PART * np.array([least.replica_moves, least.bytes_to_move, partitions]) <= setting.limits).all())


def _in_stages(setting: Setting, way: Way) -> Way:
    """`way`, continued in stages as long as the next stage starts within the budget."""
    for share in (*SHARES, np.inf):
        spent = spent_along(setting.compiled, way.rounds).max(axis=0)
        left = setting.stage(share) - spent
        if way.stopped or (spent > setting.limits).any():
            break
        if (left >= 1.0).all():
            way = _continued(setting, way, left)
    return way


def _hard_alone(setting: Setting) -> Way:
    """The list of what hard goals alone need, from the start of the plan."""
    setting.threads.settle()
    made, stopped = hard_round(setting.compiled, setting.options, setting.watch, setting.threads)
    return Way([] if made is None else [made], stopped=stopped)


def _continued(setting: Setting, way: Way, limits: FloatArray) -> Way:
    """`way`, continued by what a search with `limits` float64 [3] finds from its end."""
    at = setting.start.after(way.rounds)
    compiled = replace(setting.compiled, replicas=at.replicas, lead=at.lead)
    setting.threads.settle()
    before = distances(compiled.problem, setting.states.at(compiled.problem, at.replicas, at.lead))
    found = search(compiled, setting.within(limits), setting.watch, setting.states, setting.threads)
    rounds, left_out = without_small(compiled, setting.unlimited, at, found, before)
    return Way([*way.rounds, *rounds], left_out or way.left_out, found.stopped)
