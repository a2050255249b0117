"""What the rack rule forces: replicas that no broker of another rack can take, and racks whose share is beyond their brokers' bands.

Called by `why` for goals of kind `rack_aware`, and for bands by `why_bands`.
"""

from __future__ import annotations

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import UsageDistribution
from optimizer.placement.state import State
from optimizer.problem import HARD_RACK, MENDABLE, MOVABLE, RACK_GOAL, RACK_LIMIT, RACK_OF, RF, STATE, Compiled
from optimizer.why_hosts import belongs
from optimizer.why_totals import Totals
from optimizer.why_words import amount, counted


def rack_proof(snapshot: Snapshot, compiled: Compiled, end: State, row: int) -> str | None:
    """Proof that replicas on broker `row` stay too many in their rack in every plan; None where none is known."""
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
    fixed = hit[problem.partition[hit, MOVABLE] == 0]
    frozen = problem.partition[fixed, MENDABLE] == 0
    topic = "an excluded or frozen topic" if frozen.any() else "an excluded topic"
    topic = "a frozen topic (constraints.freeze_topics)" if len(fixed) and frozen.all() else topic
    if len(fixed) == len(hit):
        remedy = "take it off that list" if frozen.any() else "include it"
        return f"{some} {'are' if len(hit) > 1 else 'is'} of {topic} with too many replicas in a rack; {remedy}"
    for p in hit.tolist():
        lacking = lacking_room(compiled, end, p)
        if lacking:
            return (
                f"{snapshot.partition_name(p)}: its racks may hold {int(problem.partition[p, RF]) - lacking} of "
                f"{problem.partition[p, RF]}, one on a broker; add {counted(lacking, 'broker')} in other racks"
            )
    if len(fixed):
        remedy = "take the topic off that list" if frozen.any() else "include the topic"
        return f"{some}: a partition of {topic} has too many replicas in a rack; {remedy}"
    return None


def lacking_room(compiled: Compiled, end: State, p: int) -> int:
    """How many replicas of partition `p` find no place under the rack rule alone, whatever is planned; 0 where all do.

    Replicas on excluded brokers stay. A rack that holds more of them than it may has none beside.
    """
    problem = compiled.problem
    hosts = end.replicas[p][end.replicas[p] >= 0]
    racks, states = problem.broker[:, RACK_OF], problem.broker[:, STATE]
    count = int(racks.max()) + 1
    stay = hosts[states[hosts] == BrokerState.EXCLUDED]
    kept = np.bincount(racks[stay], minlength=count)
    able = (states == BrokerState.ACTIVE) & [belongs(problem, p, b) for b in range(len(states))]
    brokers = np.bincount(racks[able], minlength=count)
    limit = int(problem.partition[p, RACK_LIMIT])
    room = np.minimum(np.maximum(limit - kept, 0), brokers)
    return max(len(hosts) - len(stay) - int(room.sum()), 0) + int(np.maximum(kept - limit, 0).sum())


def rack_share(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, row: int, g: int, goal: UsageDistribution, over: bool
) -> str | None:
    """Whether the hard rack rule forces the share of the broker's rack out of its brokers' bands."""
    problem = compiled.problem
    if problem.setting[RACK_GOAL] != HARD_RACK or (problem.broker[:, STATE] == BrokerState.EXCLUDED).any():
        return None  # replicas on excluded brokers are part of each share, and stay
    rack = int(problem.broker[row, RACK_OF])
    least, most = totals.rack(rack, g)
    members, lows, highs = totals.bands(rack, g)
    name = snapshot.racks[row] or "its own"
    if over and least > highs:
        return (
            f"the rack rule forces {amount(least, goal.resource)} into rack {name}; the target ranges of its "
            f"{counted(members, 'broker')} end at {amount(highs, goal.resource)}; add brokers to that rack"
        )
    if not over and most < lows:
        return (
            f"the rack rule lets at most {amount(most, goal.resource)} into rack {name}; the target ranges of its "
            f"{counted(members, 'broker')} start at {amount(lows, goal.resource)}; even out the racks"
        )
    return None
