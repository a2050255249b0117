"""Plans that are worth what they copy: the better of two searches, without what gains too little and without detours.

Called by the planner, and by `optimizer.careful` on what can be trusted. Each turn goes on from where the last one led, until one finds
nothing, so planning again on the result finds nothing either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cluster_model.snapshot import BrokerState
from optimizer.course import Placement, net_round
from optimizer.gain import LeftOut, distances, noise_of, parts_of
from optimizer.leaders_first import is_lopsided, leaders_first
from optimizer.options import PlanOptions, Watch
from optimizer.problem import HARD, STATE, Compiled
from optimizer.search.bench import Bench
from optimizer.search.search import Found, Round, search
from optimizer.search.standing import standing_of
from optimizer.search.state import COST, State
from optimizer.threads import Threads

MOST_TURNS = 8
ROUNDING = 1e-9


@dataclass(frozen=True)
class Turn:
    """Rounds from one placement, where they lead, and what was left out of them.

    `settled`: the search would find nothing from there.
    """

    rounds: list[Round]
    end: Placement
    settled: bool
    stopped: bool = False
    left_out: LeftOut | None = None


def worthwhile_search(
    compiled: Compiled, options: PlanOptions, watch: Watch | None = None, bench: Bench | None = None, threads: Threads | None = None
) -> Found:
    """As `search`, without parts that gain less than `PlanOptions.min_gain` for what they copy, or no more than noise."""
    threads = threads or Threads()
    start = here = Placement(compiled.replicas, compiled.lead)
    found = search(compiled, options, watch, bench, threads)
    turn = _turn(compiled, options, here, found, watch, threads)
    rounds, left_out = list(turn.rounds), turn.left_out
    for _ in range(0 if options.budgeted else MOST_TURNS - 1):
        here = turn.end
        if turn.settled or turn.stopped or not turn.rounds:
            break
        rest = replace(compiled, replicas=here.replicas, lead=here.lead)
        turn = _turn(rest, options, here, search(rest, options, watch, threads=threads), watch, threads)
        rounds += turn.rounds
        left_out = turn.left_out or left_out
    here = turn.end
    straight = _straight(compiled, options, rounds, start, here)
    if straight is not None:
        rounds, here = [straight], start.after([straight])
    elif len(rounds) == len(found.rounds) and all(one is other for one, other in zip(rounds, found.rounds, strict=True)):
        return found
    return Found(rounds, here.state(compiled), turn.stopped, left_out)


def _turn(compiled: Compiled, options: PlanOptions, start: Placement, found: Found, watch: Watch | None, threads: Threads) -> Turn:
    """What a search `found` from `start`, where `compiled` starts, or a better way, without parts that gain too little."""
    rounds, end = found.rounds, start.after(found.rounds)
    if not rounds or found.stopped:
        return Turn(rounds, end, True, found.stopped)
    other = _better(compiled, options, start, rounds, end, watch, threads)
    if other is not None:
        rounds, end = other.rounds, other.end
        if other.stopped:
            return other
    kept = _without_small_parts(compiled, options, start, rounds, end)
    if kept is not None:
        return kept
    return Turn(rounds, end, other is None)


def _better(
    compiled: Compiled, options: PlanOptions, start: Placement, rounds: list[Round], end: Placement, watch: Watch | None, threads: Threads
) -> Turn | None:
    """A way that leaves no more undone for less; None where there is none."""
    moved = start.moved(end)
    if options.budgeted or not moved.any() or not is_lopsided(compiled, start):
        return None
    made = leaders_first(compiled, options, start, watch, threads)
    if made is None:
        return None
    other = start.after(made[0])
    cost = [float((m * compiled.problem.cost).sum()) for m in (moved, start.moved(other))]
    left, left_by_other = _undone(compiled, end.state(compiled)), _undone(compiled, other.state(compiled))
    if made[1] or (*left_by_other, cost[1]) >= (*left, cost[0]):
        return None
    return Turn(made[0], other, False)


def _undone(compiled: Compiled, state: State) -> tuple[int, int, int, int, float]:
    """Smaller is better: repairs left, hard goals missed by brokers, brokers outside, goals they are outside of, and by how much in all."""
    problem = compiled.problem
    active = problem.broker[:, STATE] == BrokerState.ACTIVE
    low = state.score[active, :COST] < 1.0
    hard = int(low[:, problem.goal[:, HARD] == 1].sum())
    distance = float(distances(problem, state).sum())
    return standing_of(problem, state).undone, hard, int(low.any(axis=1).sum()), int(low.sum()), round(distance, 6)


def _without_small_parts(compiled: Compiled, options: PlanOptions, start: Placement, rounds: list[Round], end: Placement) -> Turn | None:
    """The turn without parts that gain too little; None where there are none, or the rest finds no order without them."""
    problem = compiled.problem
    before, after = (distances(problem, place.state(compiled)) for place in (start, end))
    parts = parts_of(compiled, rounds, before, after, start.moved(end), noise_of(compiled, options.noise))
    small = parts.too_small(options.least_gain)
    if not len(small):
        return None
    left_out = LeftOut.of(compiled, parts, start, end, small)
    if len(small) == len(parts.partition):
        return Turn([], start, True, left_out=left_out)
    rest = end.with_rows(small, start)
    made, left = net_round(compiled, options, start, rest)
    return None if left else Turn([made], rest, False, left_out=left_out)


def _straight(compiled: Compiled, options: PlanOptions, rounds: list[Round], start: Placement, end: Placement) -> Round | None:
    """A way from `start` to `end` without detours of `rounds`, or one that is shorter and leaves nothing undone; None where they have none,
    or no such way is found."""
    if not _has_detours(rounds, start, end):
        return None
    made, left = net_round(compiled, options, start, end)
    if not left:
        return made
    return None if any(_undone(compiled, start.after([made]).state(compiled))) else made


def _has_detours(rounds: list[Round], start: Placement, end: Placement) -> bool:
    """Whether rounds that lead from `start` to `end` move a replica or a leadership that is where it was, or more than once."""
    changes = sum(int(part.log.used[1]) for part in rounds)
    rows = np.concatenate([part.log.partition[: int(part.log.used[1])] for part in rounds]) if rounds else np.zeros(0, np.int64)
    if len(np.unique(rows)) == changes:
        return False
    moves = sum(_moves(part) for part in rounds)
    led = sum(_transfers(part) for part in rounds)
    return moves > int(start.moved(end).sum()) or led > int((start.leaders() != end.leaders()).sum())


def _moves(part: Round) -> int:
    one, other = part.changes.before, part.changes.after
    return int(((other[:, :, None] != one[:, None, :]).all(axis=2) & (other >= 0)).sum())


def _transfers(part: Round) -> int:
    lists = part.changes
    one, other = Placement(lists.before, lists.lead_before), Placement(lists.after, lists.lead_after)
    return int((one.leaders() != other.leaders()).sum())
