"""What a plan leads to: every goal and every broker before and after, and why a broker would stay out of band.

Called by `assemble`. Reads states, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from cluster_model.resources import MEASURED
from cluster_model.snapshot import BrokerState, FloatArray, Snapshot
from goals.model import Goal, GoalSet, RackAware, UsageDistribution
from optimizer.columns import offline_partitions
from optimizer.plan import Band, BrokerOutcome, GoalOutcome, GoalState, Skipped, Status
from optimizer.problem import BOUND, CEILING, COLUMN, KIND, LIMIT, MEAN, STATE, VAR, Compiled
from optimizer.search.state import RACKS, State
from optimizer.why import Left, counted

MOST_NAMED = 20


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
    """Violations (brokers that score below 1), mean over eligible brokers, spread of load over mean, share in band."""
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
    """Every goal of the file in its order, skipped ones included. `cut_short`: something kept the search from doing all it could."""
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
        told = next((found.by_goal[goal.name] for found in why.values() if goal.name in found.by_goal), None)
        status = _status(
            goal, before, after, float(start.score[:, g].sum()), float(end.score[:, g].sum()),
            cut_short,
        )  # fmt: skip
        text = _explanation(status, before, after, left, told)
        if isinstance(goal, RackAware):
            text += _unjudged_conflicts(compiled, start, end)
        result.append(_outcome(goal, status, before, after, text, origin))
    return tuple(result)


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


def _status(
    goal: Goal, before: GoalState, after: GoalState, score_before: float, score_after: float, cut_short: bool,
) -> Status:  # fmt: skip
    """`cut_short`: by a budget, doubts or a request to stop, so what is left is not infeasible."""
    if after.violations == 0:
        return "satisfied"
    if goal.hard:
        return "violated" if cut_short else "infeasible"
    if after.violations < before.violations:
        return "improved"
    if after.violations > before.violations:
        return "violated"
    return "improved" if score_after > score_before + 1e-9 else "unchanged"


def _explanation(
    status: Status, before: GoalState, after: GoalState, left: list[int], told: str | None
) -> str:
    """`left`: ids of the brokers that would still violate the goal."""
    count = before.violations
    if status == "satisfied":
        if count == 0:
            return "every active broker is within it already"
        return f"would bring {count} broker{'s' if count != 1 else ''} within it"
    ids = ", ".join(map(str, left[:8])) + (" …" if len(left) > 8 else "")
    text = f"{after.violations} would be left out, {count} before (broker{'s' if len(left) != 1 else ''} {ids})"
    return f"{text}: {told}" if told else text


class BrokerOutcomes(Sequence[BrokerOutcome]):
    """Every broker: loads of all known resources before and after, scores, what it still violates and why; built when looked at."""

    def __init__(self, snapshot: Snapshot, compiled: Compiled, start: Picture, end: State, left: dict[int, Left]) -> None:
        self._names = [goal.name for goal in compiled.goals]
        self._judges = np.zeros((snapshot.broker_count, len(self._names)), np.bool_)
        for g in range(len(self._names)):
            self._judges[judged(compiled, g), g] = True
        self._ids, self._racks, self._states = snapshot.broker_ids, snapshot.racks, compiled.problem.broker[:, STATE]
        self._before, self._after = _loads(snapshot, compiled, start), _loads(snapshot, compiled, end)
        self._scores, self._scores_after = start.score, end.score.copy()  # the state goes on
        self._left = left

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> BrokerOutcome: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[BrokerOutcome]: ...
    def __getitem__(self, index: int | slice) -> BrokerOutcome | Sequence[BrokerOutcome]:
        return self._built[index]

    @cached_property
    def _built(self) -> tuple[BrokerOutcome, ...]:
        names = self._names
        by_all = np.asarray(self._judges.all(axis=1)).tolist()
        labels = {int(state): state.label for state in BrokerState}
        columns = (
            self._ids.tolist(), self._racks, self._states.tolist(), _by_row(self._before), _by_row(self._after),
            self._scores[:, : len(names)].tolist(), self._scores_after[:, : len(names)].tolist(),
        )  # fmt: skip
        result = []
        for row, (broker, rack, state, loads, loads_after, scores, scores_after) in enumerate(zip(*columns, strict=True)):
            by = range(len(names)) if by_all[row] else np.flatnonzero(self._judges[row]).tolist()
            violates = tuple([names[g] for g in by if scores_after[g] < 1.0])
            result.append(
                BrokerOutcome(
                    id=broker,
                    rack=rack,
                    state=labels[state],
                    before=dict(zip(self._before, loads, strict=True)),
                    after=dict(zip(self._after, loads_after, strict=True)),
                    scores_before={names[g]: scores[g] for g in by},
                    scores_after={names[g]: scores_after[g] for g in by},
                    violates=violates,
                    why=_why(self._left, row, violates),
                )
            )
        return tuple(result)


def _by_row(loads: dict[str, FloatArray]) -> list[list[float]]:
    """Of each broker, its loads in the order of `loads`."""
    rows: list[list[float]] = np.stack(list(loads.values()), axis=1).tolist()
    return rows


def _why(left: dict[int, Left], row: int, violates: tuple[str, ...]) -> str | None:
    found = left.get(row)
    return found.text if found is not None and (violates or found.always) else None


def _loads(snapshot: Snapshot, compiled: Compiled, state: State | Picture) -> dict[str, FloatArray]:
    """resource -> float64 [B] for every measured resource that is known, and every derived one a goal uses, and counts."""
    names = [r for r in MEASURED if snapshot.is_reported(r)]
    names += [r for r in ("replicas", "leaders", *compiled.columns) if r not in names]
    known = {name: state.load[:, c].copy() for c, name in enumerate(compiled.columns)}
    if any(name not in known for name in names):
        lead = state.lead
        leaders = np.where(lead >= 0, state.replicas[np.arange(len(lead)), np.maximum(lead, 0)], -1).astype(np.int32)
        snapshot = snapshot.with_placement(state.replicas.astype(np.int32), leaders)
    return {name: known[name] if name in known else snapshot.broker_load(name) for name in dict.fromkeys(names)}


def offline_notes(snapshot: Snapshot, compiled: Compiled, end: State) -> tuple[Skipped, ...]:
    """What could not be helped: partitions without a live replica, excluded topics on dead or draining brokers."""
    if not snapshot.partition_count:
        return ()
    states = compiled.problem.broker[:, STATE]
    offline = offline_partitions(snapshot)
    cause = "offline: every replica is on a dead broker"
    result = [
        Skipped(f"partition {snapshot.partition_name(int(p))}", f"{cause}; it would stay there")
        for p in np.flatnonzero(offline)[:MOST_NAMED]
    ]
    if offline.sum() > MOST_NAMED:
        result.append(Skipped(counted(int(offline.sum()), "partition"), cause))
    fixed = compiled.problem.partition[:, 0] == 0
    for kind, word in ((BrokerState.DEAD, "dead"), (BrokerState.DRAINING, "draining")):
        held = [end.hosted[b, : end.hosts[b]] // end.replicas.shape[1] for b in np.flatnonzero(states == kind)]
        stuck = np.unique(np.concatenate(held)) if held else np.zeros(0, np.int64)
        stuck = stuck[fixed[stuck] & ~offline[stuck]]
        if len(stuck):
            topics = sorted({snapshot.topics[t] for t in snapshot.partition_topic[stuck]})
            result.append(
                Skipped(
                    f"{counted(len(stuck), 'partition')} of excluded topics on {word} brokers",
                    f"excluded topics never change ({', '.join(topics[:5])}{' …' if len(topics) > 5 else ''}); include them to move them",
                )
            )
    leaderless = (end.lead < 0) & ~offline
    for p in np.flatnonzero(leaderless)[:MOST_NAMED]:
        result.append(
            Skipped(
                f"partition {snapshot.partition_name(int(p))}",
                "no leader, and no active replica that may lead",
            )
        )
    return tuple(result)
