"""What the rack rule forces: replicas that no broker of another rack can take, and racks whose share is beyond their brokers' bands.

Called by `why` for goals of kind `rack_aware`, and for bands by `why_bands`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import UsageDistribution
from optimizer.problem import HARD_RACK, MOVABLE, RACK_GOAL, RACK_LIMIT, RACK_OF, STATE, Compiled
from optimizer.search.state import State
from optimizer.why_totals import Totals
from optimizer.why_words import amount, counted


def rack_proof(snapshot: Snapshot, compiled: Compiled, end: State, row: int) -> str | None:
    """What keeps replicas on broker `row` that are too many in its rack."""
    problem = compiled.problem
    slots = end.replicas.shape[1]
    partitions = end.hosted[row, : end.hosts[row]] // slots
    racks = np.where(
        end.replicas[partitions] >= 0, problem.broker[np.maximum(end.replicas[partitions], 0), RACK_OF], -1
    )
    crowded = (racks == problem.broker[row, RACK_OF]).sum(axis=1) > problem.partition[partitions, RACK_LIMIT]
    hit = partitions[crowded]
    if not len(hit):
        return None
    name = snapshot.partition_name(int(hit[0]))
    some = f"{name}{f' and {len(hit) - 1} more' if len(hit) > 1 else ''}"
    if (problem.partition[hit, MOVABLE] == 0).all():
        return f"{some} {'are' if len(hit) > 1 else 'is'} of an excluded topic with too many replicas in a rack; include it"
    states = problem.broker[np.maximum(end.replicas[hit], 0), STATE]
    if ((states == BrokerState.EXCLUDED) & (end.replicas[hit] >= 0)).any():
        return f"{some}: a replica on an excluded broker crowds the rack"
    return f"{some}: no broker of another rack can take a replica; add brokers there, or make room under their hard limits"


def rack_share(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, row: int, g: int, goal: UsageDistribution, over: bool
) -> str | None:
    """Whether the hard rack rule forces the share of the broker's rack out of its brokers' bands."""
    problem = compiled.problem
    if problem.setting[RACK_GOAL] != HARD_RACK:
        return None
    rack = int(problem.broker[row, RACK_OF])
    least, most = totals.rack(rack, g)
    members, lows, highs = totals.bands(rack, g)
    name = snapshot.racks[row] or "its own"
    if over and least > highs:
        return (
            f"the rack rule forces {amount(least, goal.resource)} into rack {name}; the bands of its "
            f"{counted(members, 'broker')} end at {amount(highs, goal.resource)}; add brokers to that rack"
        )
    if not over and most < lows:
        return (
            f"the rack rule lets at most {amount(most, goal.resource)} into rack {name}; the bands of its "
            f"{counted(members, 'broker')} begin at {amount(lows, goal.resource)}; even out the racks"
        )
    return None
