"""Which brokers give in a cycle, how far they are beyond the detector's line, and to whom where the detector says so.

Called by `pipeline`. A broker that is to be emptied gives before all others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import BoolArray, FloatArray, Snapshot
from goals.model import GoalSet
from goals.policy import AboveMean, Absolute, MinMax, Pairs, PolicyDocument, Std, UntilBelow, detectors_of
from optimizer.detectors.sight import Sight
from optimizer.policies.profiles import broker_scores

NEARLY = 1e-9


@dataclass(frozen=True, slots=True)
class Source:
    """Broker row that gives; `target` row where it is paired. `usage` and `line` are utilizations or shares of the busiest; `load` and
    `least` what it and the least loaded carry of what is moved."""

    row: int
    leaves: bool = False
    target: int | None = None
    usage: float = 0.0
    line: float | None = None
    load: float = 0.0
    least: float = 0.0


def sources(
    policy: PolicyDocument, snapshot: Snapshot, goals: GoalSet, scores: FloatArray, active: BoolArray, leaving: BoolArray
) -> list[Source]:
    """Brokers that give, the most loaded first (ties by broker id)."""
    hosts = snapshot.broker_load("replicas")
    going = [Source(int(b), leaves=True) for b in np.flatnonzero(leaving & (hosts > 0))]
    if going:
        return going
    rows = np.flatnonzero(active)
    if len(rows) < 2:
        return []
    found: list[Source] = []
    for detector in detectors_of(policy):
        match detector:
            case Absolute(limit=limit):
                found += _beyond(snapshot, goals, rows, limit, absolute=True)
            case AboveMean(margin=margin, lower_boundary=lower):
                above = _beyond(snapshot, goals, rows, margin, absolute=False)
                found += above or (_fullest(scores, rows) if lower else [])
            case Pairs(low=low):
                found += _paired(snapshot, goals, scores, rows, low)
            case Std() | MinMax():
                found += _ends(snapshot, scores, rows)
            case _ if isinstance(policy.amount, UntilBelow):
                found += _beyond(snapshot, goals, rows, policy.amount.target, absolute=True)
            case _:
                mean = float(scores[rows].mean())
                order = rows[np.lexsort((rows, -scores[rows]))]
                found += [Source(int(b)) for b in order if scores[b] > mean + NEARLY]
    seen: dict[int, Source] = {}
    for source in found:
        seen.setdefault(source.row, source)
    return list(seen.values())


def _beyond(snapshot: Snapshot, goals: GoalSet, rows: np.ndarray, line: float, *, absolute: bool) -> list[Source]:
    """Brokers whose largest utilization is at `line`, or `line` of it above the mean."""
    sight = Sight(snapshot, goals)
    use = sight.by_capacity() if absolute else sight.utilization()
    worst = use.worst
    if absolute:
        edge = line
    else:
        edge = float(worst.mean()) * (1.0 + line) if len(worst) else 0.0
    over = [i for i in np.lexsort((use.rows, -worst)).tolist() if worst[i] >= edge - NEARLY and use.rows[i] in rows and worst[i] > 0.0]
    return [Source(int(use.rows[i]), usage=float(worst[i]), line=edge) for i in over]


def _fullest(scores: FloatArray, rows: np.ndarray) -> list[Source]:
    top = rows[np.lexsort((rows, -scores[rows]))][0]
    mean = float(scores[rows].mean())
    return [Source(int(top), usage=float(scores[top]), line=mean)] if scores[top] > mean + NEARLY else []


def _carried(snapshot: Snapshot, scores: FloatArray) -> FloatArray:
    load = broker_scores("throughput", snapshot, GoalSet(()))
    if load.any():
        return load
    load = broker_scores("rate", snapshot, GoalSet(()))
    return load if load.any() else snapshot.broker_load("replicas")


def _paired(snapshot: Snapshot, goals: GoalSet, scores: FloatArray, rows: np.ndarray, low: float) -> list[Source]:
    """Most loaded with least loaded, second with second, where they are at least `low` points apart."""
    order = rows[np.lexsort((rows, scores[rows]))]
    load = _carried(snapshot, scores)
    found = []
    for i in range(len(order) // 2):
        idle, busy = int(order[i]), int(order[len(order) - 1 - i])
        if 100.0 * (scores[busy] - scores[idle]) >= low - NEARLY:
            found.append(Source(busy, target=idle, load=float(load[busy]), least=float(load[idle])))
    return found


def _ends(snapshot: Snapshot, scores: FloatArray, rows: np.ndarray) -> list[Source]:
    """Most loaded with least loaded, then inwards."""
    order = rows[np.lexsort((rows, scores[rows]))]
    load = _carried(snapshot, scores)
    pairs = [(int(order[len(order) - 1 - i]), int(order[i])) for i in range(len(order) // 2)]
    apart = [(busy, idle) for busy, idle in pairs if scores[busy] > scores[idle] + NEARLY]
    return [Source(busy, target=idle, load=float(load[busy]), least=float(load[idle])) for busy, idle in apart]
