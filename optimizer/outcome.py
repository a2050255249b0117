"""What a plan leads to: every goal before and after, and the bands that brokers should be in.

Called by `assemble`. Reads states, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import Goal, GoalSet, RackAware, UsageDistribution
from optimizer.placement.state import RACKS, State
from optimizer.plan import Band, GoalOutcome, GoalState, Status
from optimizer.problem import BOUND, CEILING, COLUMN, KIND, LIMIT, MEAN, RACK_LIMIT, RACK_OF, STATE, VAR, Compiled
from optimizer.unknown import unknown_partitions
from optimizer.why import Left
from optimizer.why_words import counted


class Picture(NamedTuple):
    """What reports read of a state, kept while the state goes on. Loads, units and scores as in `State`."""

    replicas: np.ndarray
    lead: np.ndarray
    load: np.ndarray
    units: np.ndarray
    score: np.ndarray


def picture(compiled: Compiled, state: State) -> Picture:
    """Of `state`, which is at the start of `compiled`."""
    return Picture(compiled.replicas, compiled.lead, state.load.copy(), state.units.copy(), state.score.copy())


class Bands(Mapping[int, Band]):
    """Broker id -> band in one goal, of every eligible broker; built when looked at."""

    def __init__(self, rows: dict[int, int], table: np.ndarray) -> None:
        self._rows, self._table = rows, table  # float64 [B, 3]: mean, bound, var

    def __getitem__(self, broker: int) -> Band:
        mean, bound, var = self._table[self._rows[broker]].tolist()
        return Band(mean=mean, low=mean - bound, high=mean + bound, var_low=mean - var, var_high=mean + var)

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def bands_of(snapshot: Snapshot, compiled: Compiled) -> dict[str, Bands]:
    """Band of every eligible broker in every usage distribution goal."""
    rows = _eligible(compiled)
    row_of = dict(zip(snapshot.broker_ids[rows].tolist(), rows.tolist(), strict=True))
    return {
        goal.name: Bands(row_of, compiled.problem.table[:, g, [MEAN, BOUND, VAR]])
        for g, goal in enumerate(compiled.goals)
        if isinstance(goal, UsageDistribution)
    }


def _eligible(compiled: Compiled) -> np.ndarray:
    return np.flatnonzero(compiled.problem.broker[:, STATE] == BrokerState.ACTIVE)


def judged(compiled: Compiled, g: int) -> np.ndarray:
    """Rows of the brokers a goal judges: eligible, and with a limit where the goal is one."""
    rows = _eligible(compiled)
    if compiled.problem.goal[g, KIND] == LIMIT:
        rows = rows[np.isfinite(compiled.problem.table[rows, g, CEILING])]
    return rows


def goal_state(compiled: Compiled, state: State | Picture, g: int) -> GoalState:
    """Violations (brokers that score below 1), mean over eligible brokers, spread of load over mean, share within their target range."""
    rows = judged(compiled, g)
    below = int((state.score[rows, g] < 1.0).sum())
    in_band = 1.0 - below / len(rows) if len(rows) else 1.0
    goal = compiled.goals[g]
    if not isinstance(goal, UsageDistribution):
        return GoalState(violations=below, mean=None, max_deviation=None, cv=None, in_band=in_band)
    means = compiled.problem.table[rows, g, MEAN]
    load = state.load[rows, compiled.problem.goal[g, COLUMN]]
    relative = load[means > 0] / means[means > 0]
    average = float(relative.mean()) if len(relative) else 0.0
    return GoalState(
        violations=below,
        mean=compiled.means[g],
        max_deviation=float(np.abs(relative - 1.0).max()) if len(relative) else 0.0,
        cv=float(relative.std()) / average if average > 0 else 0.0,
        in_band=in_band,
    )


def goal_outcomes(
    snapshot: Snapshot, compiled: Compiled, goals: GoalSet, start: Picture, end: State, why: dict[int, Left], cut_short: bool,
) -> tuple[GoalOutcome, ...]:  # fmt: skip
    """Every goal of the file in its order, skipped ones included. `cut_short`: a budget, doubts or a request to stop ended the search, so
    nothing that is left is called infeasible."""
    rows = {goal.name: g for g, goal in enumerate(compiled.goals)}
    reasons = {s.what: s.reason for s in compiled.skipped}
    given = goals.calibrated
    result = []
    for goal in goals.goals:
        g = rows.get(goal.name)
        origin = given.of(goal.name) if given is not None else {}
        if g is None:
            reason = reasons.get(f"goal {goal.name}", "not counted")
            result.append(_outcome(goal, "skipped", None, None, f"skipped: {reason}", origin))
            continue
        before, after = goal_state(compiled, start, g), goal_state(compiled, end, g)
        rows_judged = judged(compiled, g)
        left = snapshot.broker_ids[rows_judged[end.score[rows_judged, g] < 1.0]].tolist()
        proven = not cut_short and any(goal.name in found.proven for found in why.values())
        told = next((found.by_goal[goal.name] for found in why.values() if goal.name in found.by_goal), None)
        status = _status(
            goal, before, after, float(start.score[:, g].sum()), float(end.score[:, g].sum()),
            proven,
        )  # fmt: skip
        text = _explanation(goal, status, before, after, left, told)
        if isinstance(goal, RackAware):
            before, after = replace(before, misplaced=crowded(compiled, start)), replace(after, misplaced=crowded(compiled, end))
            text += _unjudged_conflicts(compiled, start, end)
        unknown = unknown_partitions(snapshot, goal)
        if unknown:
            known = f"{snapshot.partition_count - unknown:,} of {snapshot.partition_count:,} partitions"
            text += f"; judged by {known}, the load of the others is unknown"
        result.append(replace(_outcome(goal, status, before, after, text, origin), unknown=unknown))
    return tuple(result)


def crowded(compiled: Compiled, state: State | Picture) -> int:
    """How many partitions have more replicas in a rack than they may."""
    problem = compiled.problem
    if not state.units[RACKS].any():
        return 0
    racks = np.where(state.replicas >= 0, problem.broker[state.replicas, RACK_OF], -1)
    worst = np.zeros(len(racks), np.int64)
    for s in range(racks.shape[1]):
        same = (racks == racks[:, s : s + 1]).sum(axis=1)
        worst = np.maximum(worst, np.where(racks[:, s] >= 0, same, 0))
    return int(np.count_nonzero(worst > problem.partition[:, RACK_LIMIT]))


def _unjudged_conflicts(compiled: Compiled, start: Picture, end: State) -> str:
    """What a plan does to replicas in over-full racks on brokers that no goal judges; they are no violations, but are repaired."""
    others = np.flatnonzero(compiled.problem.broker[:, STATE] != BrokerState.ACTIVE)
    before, after = (round(float(state.units[RACKS, others].sum())) for state in (start, end))
    if not before:
        return ""
    would = "stay" if before == after else f"become {after}" if after else "be ended"
    where = f"{counted(before, 'replica')} in over-full racks on brokers that are not active would {would}"
    return f"; {where}"


def _outcome(
    goal: Goal, status: Status, before: GoalState | None, after: GoalState | None, text: str, origin: Mapping[str, str],
) -> GoalOutcome:  # fmt: skip
    return GoalOutcome(
        name=goal.name,
        kind=goal.kind,
        hard=goal.hard,
        weight=goal.weight,
        resource=getattr(goal, "resource", None),
        status=status,
        before=before,
        after=after,
        explanation=text,
        from_calibration=origin,
    )


def _within(goal: Goal) -> str:
    """What a satisfied goal keeps its brokers within; empty for goals without a limit or range."""
    return {"capacity": "the limit", "count_limit": "the limit", "usage_distribution": "the target range"}.get(goal.kind, "")


def _status(
    goal: Goal, before: GoalState, after: GoalState, score_before: float, score_after: float, proven: bool,
) -> Status:  # fmt: skip
    """`proven`: that no plan brings every broker within the goal."""
    if after.violations == 0:
        return "satisfied"
    if goal.hard:
        return "infeasible" if proven else "violated"
    if after.violations < before.violations:
        return "improved"
    if after.violations > before.violations or score_after < score_before - 1e-9:
        return "violated"
    return "improved" if score_after > score_before + 1e-9 else "unchanged"


def _explanation(
    goal: Goal, status: Status, before: GoalState, after: GoalState, left: list[int], told: str | None
) -> str:
    """`left`: ids of the brokers that would still violate the goal."""
    count, where = before.violations, _within(goal)
    if status == "satisfied":
        if count == 0:
            return f"every active broker {f'is within {where}' if where else 'meets the goal'} already"
        brokers = f"{count} broker{'s' if count != 1 else ''}"
        return f"would bring {brokers} within {where}" if where else f"{brokers} would come to meet the goal"
    ids = ", ".join(map(str, left[:8])) + (" …" if len(left) > 8 else "")
    text = f"{after.violations} would remain, {count} before (broker{'s' if len(left) != 1 else ''} {ids})"
    return f"{text}: {told}" if told else text
