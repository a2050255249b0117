"""Which brokers give in a cycle, how far they are beyond the detector's line, and to whom where the detector says so.

Called by `pipeline`. A broker that is to be emptied gives before all others.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cluster_model.snapshot import BoolArray, FloatArray, Snapshot
from goals.model import GoalSet
from goals.policy import PolicyDocument, UntilBelow, detectors_of
from goals.policy_detectors import AboveMean, Absolute, MinMax, Pairs, Std
from optimizer.detectors.sight import Sight
from optimizer.policies.board import Rows
from optimizer.policies.profiles import broker_scores

NEARLY = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Broker row that gives. `takers` int64 are rows it may be paired with, the idlest first: the first that got nothing in the cycle yet
    is its counterpart; empty where the placement finds one. `share` is how much of what it carries ``until_below`` gives."""

    row: int
    leaves: bool = False
    takers: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    share: float = 0.0


def sources(
    policy: PolicyDocument, snapshot: Snapshot, goals: GoalSet, scores: FloatArray, active: BoolArray, leaving: BoolArray, *,
    by_rate: bool = False,
) -> list[Source]:  # fmt: skip
    """Brokers that give, the most loaded first (ties by broker id). `by_rate`: the detector found rates of requests too far apart."""
    hosts = snapshot.broker_load("replicas")
    going = [Source(int(b), leaves=True) for b in np.flatnonzero(leaving & (hosts > 0))]
    if going:
        return going
    rows = np.flatnonzero(active)
    if len(rows) < 2:
        return []
    found: list[Source] = []
    more = policy.amount.margin if isinstance(policy.amount, UntilBelow) else 0.0
    for detector in detectors_of(policy):
        match detector:
            case Absolute(limit=limit):
                found += _beyond(snapshot, goals, rows, limit, more, absolute=True)
            case AboveMean(margin=margin, lower_boundary=lower):
                above = _beyond(snapshot, goals, rows, margin, more, absolute=False)
                found += above or (_fullest(snapshot, goals, rows, margin) if lower else [])
            case Pairs(low=low):
                found += _paired(scores, rows, low)
            case Std():
                found += _inwards(scores, rows)
            case MinMax():
                found += _ends(broker_scores("rate" if by_rate else "throughput", snapshot, goals), rows)
            case _ if isinstance(policy.amount, UntilBelow):
                found += _beyond(snapshot, goals, rows, policy.amount.target, more, absolute=True)
            case _:
                mean = float(scores[rows].mean())
                order = rows[np.lexsort((rows, -scores[rows]))]
                found += [Source(int(b)) for b in order if scores[b] > mean + NEARLY]
    seen: dict[int, Source] = {}
    for source in found:
        seen.setdefault(source.row, source)
    return list(seen.values())


def _beyond(snapshot: Snapshot, goals: GoalSet, rows: np.ndarray, line: float, more: float, *, absolute: bool) -> list[Source]:
    """Brokers whose largest utilization is at `line`, or `line` of it above the mean: they give what they are over that, and `more` points.

    Points of utilization are taken as a share of the traffic, as Pulsar does."""
    sight = Sight(snapshot, goals)
    use = sight.by_capacity() if absolute else sight.utilization()
    worst = use.worst
    if absolute:
        edge = line
    else:
        edge = float(worst.mean()) * (1.0 + line) if len(worst) else 0.0
    over = [i for i in np.lexsort((use.rows, -worst)).tolist() if worst[i] >= edge - NEARLY and use.rows[i] in rows and worst[i] > 0.0]
    return [Source(int(use.rows[i]), share=float(worst[i]) - edge + more) for i in over]


def _fullest(snapshot: Snapshot, goals: GoalSet, rows: np.ndarray, margin: float) -> list[Source]:
    """The most used broker, where another is more than `margin` below the mean: it gives half of that."""
    use = Sight(snapshot, goals).utilization()
    known = np.isin(use.rows, rows)
    found, worst = use.rows[known], use.worst[known]
    mean = float(worst.mean()) if len(worst) else 0.0
    if not len(worst) or worst.min() >= mean * (1.0 - margin) - NEARLY:
        return []
    return [Source(int(found[np.lexsort((found, -worst))][0]), share=mean * margin / 2.0)]


def _paired(scores: FloatArray, rows: np.ndarray, low: float) -> list[Source]:
    """Most loaded with least loaded, second with second, where they are at least `low` points apart."""
    order = rows[np.lexsort((rows, scores[rows]))]
    ends = [(order[i : i + 1], int(order[len(order) - 1 - i])) for i in range(len(order) // 2)]
    return [Source(busy, takers=idle) for idle, busy in ends if 100.0 * (scores[busy] - scores[idle[0]]) >= low - NEARLY]


def _inwards(scores: FloatArray, rows: np.ndarray) -> list[Source]:
    """The most loaded first, each with all that are less loaded: where one cannot give, its counterpart is the next one's."""
    order = rows[np.lexsort((rows, scores[rows]))]
    less = np.searchsorted(scores[order], scores[order] - NEARLY)
    return [Source(int(order[i]), takers=order[: less[i]]) for i in range(len(order) - 1, 0, -1) if less[i]]


def _ends(load: FloatArray, rows: np.ndarray) -> list[Source]:
    """The most loaded with the least loaded."""
    order = rows[np.lexsort((rows, load[rows]))]
    return [Source(int(order[-1]), takers=order[:1])] if load[order[-1]] > load[order[0]] + NEARLY else []
