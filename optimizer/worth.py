"""Plans that are worth what they copy: the better of two searches, without changes that gain too little and without detours.

Called by `optimizer.spending` and `optimizer.hard_first`. Each turn continues from the end of the last one, until a turn finds nothing. So
planning again on the result finds nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cluster_model.snapshot import BrokerState, FloatArray
from optimizer.course import Net, Placement, net_round
from optimizer.found import Found, Round
from optimizer.gain import LeftOut, distances, noise_of, noticed, parts_of
from optimizer.leaders_first import leaders_first, leaders_may_level
from optimizer.options import PlanOptions, Watch
from optimizer.placement.standing import standing_of
from optimizer.placement.state import COST, State
from optimizer.placement.states import States
from optimizer.problem import HARD, STATE, Compiled
from optimizer.search.search import search
from optimizer.threads import Threads

MOST_TURNS = 8
DETOURS = 0.01  # of what a plan moves: with fewer detours, scheduling again costs a fifth of the search and saves almost nothing


@dataclass(frozen=True)
class Turn:
    """Rounds from one placement, and what was left out of them. `settled`: planning again from their end finds nothing."""

    rounds: list[Round]
    settled: bool = True
    left_out: LeftOut | None = None
    stopped: bool = False


@dataclass(frozen=True)
class Setting:
    """What all turns share. Of these, `options` alone decide what the plan is."""

    options: PlanOptions
    watch: Watch | None
    threads: Threads


def worthwhile_search(
    compiled: Compiled, options: PlanOptions, watch: Watch | None = None, states: States | None = None, threads: Threads | None = None
) -> Found:
    """As `search`, without parts that gain less than `PlanOptions.min_gain` for what they copy; no rounds if all gains may be noise."""
    setting, start = Setting(options, watch, threads or Threads()), Placement(compiled.replicas, compiled.lead)
    states = States(compiled.problem, compiled.replicas, compiled.lead) if states is None else states
    before, by_leaders = distances(compiled.problem, states.current), leaders_may_level(compiled, states.current)
    found = search(compiled, options, watch, states, setting.threads)
    turn = _turn(compiled, setting, start, found, before, by_leaders)
    rounds, left_out = list(turn.rounds), turn.left_out
    for _ in range(MOST_TURNS - 1):
        if turn.settled or turn.stopped or not turn.rounds:
            break
        turn = _next(compiled, setting, start.after(rounds))
        rounds += turn.rounds
        left_out = turn.left_out or left_out
    rounds = straightened(compiled, options, start, rounds, None if turn.stopped else setting) or rounds
    if len(rounds) == len(found.rounds) and all(one is other for one, other in zip(rounds, found.rounds, strict=True)):
        return found
    return Found(rounds, start.after(rounds).state(compiled), turn.stopped, left_out)


def _next(compiled: Compiled, setting: Setting, start: Placement) -> Turn:
    """A turn that continues from `start`."""
    rest = replace(compiled, replicas=start.replicas, lead=start.lead)
    states = States(rest.problem, rest.replicas, rest.lead)
    before, by_leaders = distances(rest.problem, states.current), leaders_may_level(rest, states.current)
    found = search(rest, setting.options, setting.watch, states, setting.threads)
    return _turn(rest, setting, start, found, before, by_leaders)


def _turn(compiled: Compiled, setting: Setting, start: Placement, found: Found, before: FloatArray, by_leaders: bool) -> Turn:
    """The rounds that a search `found` from `start`, or a better way (looked for if `by_leaders`), without parts that gain too little.
    `compiled` starts there, too; `before` float64 [B, G] are the distances of brokers there."""
    if not found.rounds or found.stopped:
        return Turn(found.rounds, stopped=found.stopped)
    other = _better(compiled, setting, start, found) if by_leaders else None
    if other is not None and other.stopped:
        return other
    result = found if other is None else Found(other.rounds, start.after(other.rounds).state(compiled))
    rounds, left_out = without_small(compiled, setting.options, start, result, before)
    return Turn(rounds, other is None if left_out is None else not rounds, left_out)


def without_small(
    compiled: Compiled, options: PlanOptions, start: Placement, found: Found, before: FloatArray
) -> tuple[list[Round], LeftOut | None]:
    """The rounds `found` from `start`, where distances are `before`, without parts that gain too little; and these parts, None if none."""
    if not found.rounds or found.stopped:
        return found.rounds, None
    net = Net.of(found.rounds)
    after, noise = distances(compiled.problem, found.end), noise_of(compiled, options.noise)
    parts = parts_of(compiled, found.rounds, net, before, after, noise, noticed(compiled, start, found.end))
    left_out = LeftOut.of(compiled, parts, net, options.least_gain)
    if left_out is None:
        return found.rounds, None
    if len(left_out.partition) == len(net.rows):
        return [], left_out
    kept = start.after(found.rounds).with_rows(left_out.partition, start.taken(left_out.partition))
    made, left = net_round(compiled, options, start, kept)
    return (found.rounds, None) if left else ([made], left_out)


def _better(compiled: Compiled, setting: Setting, start: Placement, found: Found) -> Turn | None:
    """A way that leaves less undone than `found`, or as much for a lower cost; None if there is none."""
    cost = Net.of(found.rounds).cost(compiled)
    made = leaders_first(compiled, setting.options, start, setting.watch, setting.threads) if cost > 0.0 else None
    if made is None:
        return None
    rounds, stopped = made
    left_by_other = _undone(compiled, start.after(rounds).state(compiled))
    if stopped or (*left_by_other, Net.of(rounds).cost(compiled)) >= (*_undone(compiled, found.end), cost):
        return None
    return Turn(rounds, False)


def _undone(compiled: Compiled, state: State) -> tuple[int, int, int, int, float]:
    """Smaller is better: repairs left, hard goals missed by brokers, brokers outside, goals that they are outside of, distance in all."""
    problem = compiled.problem
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    low = state.score[active, :COST] < 1.0
    hard = int(low[:, problem.goal[:, HARD] == 1].sum())
    distance = float(distances(problem, state).sum())
    return standing_of(problem, state).undone, hard, int(low.any(axis=1).sum()), int(low.sum()), round(distance, 6)


def straightened(
    compiled: Compiled, options: PlanOptions, start: Placement, rounds: list[Round], setting: Setting | None = None
) -> list[Round] | None:
    """A way to the end of `rounds` without their detours, or a way that leaves nothing undone for no more cost. None if detours are few or
    no such way is found. With a `setting`, a search continues where only a part of the changes finds an order."""
    if not rounds or not _has_detours(rounds):
        return None
    made, left = net_round(compiled, options, start, start.after(rounds))
    if not left:
        return [made]
    way, end = [made], start.after([made])
    if setting is not None:
        rest = replace(compiled, replicas=end.replicas, lead=end.lead)
        way += search(rest, setting.options, setting.watch, threads=setting.threads).rounds
    dearer = Net.of(way).cost(compiled) > Net.of(rounds).cost(compiled)
    return None if dearer or _has_detours(way) or any(_undone(compiled, start.after(way).state(compiled))) else way


def _has_detours(rounds: list[Round]) -> bool:
    """Whether replicas and leaderships move more than once, or away and back, often enough to be worth a second schedule."""
    every = [part.log.partition[: int(part.log.used[1])] for part in rounds]
    often = np.bincount(np.concatenate(every)) > 1
    if not often.any():
        return False
    net, steps = Net.of(rounds), 0
    for partitions, lists in zip(every, (part.changes for part in rounds), strict=True):
        at = np.flatnonzero(often[partitions])
        one, other = Placement(lists.before, lists.lead_before).taken(at), Placement(lists.after, lists.lead_after).taken(at)
        steps += int(one.moved(other).sum() + one.relieved(other).sum())
    again = often[net.rows]
    return steps - int(net.moved[again].sum() + net.relieved[again].sum()) > DETOURS * int(net.moved.sum() + net.relieved.sum())
