"""Imagined brokers for a plan of replication factors: dead, in racks and a broker set of their own, and never in the plan.

A replica that a partition lacks stands on one of them. Called by `optimizer.policies.replication`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import BrokerSet, GoalSet
from optimizer.options import AddedBroker, PlanOptions
from optimizer.plan import Change
from optimizer.policies.board import Rows
from optimizer.whatif import apply_whatifs

NOWHERE = "\0nowhere"  # racks of imagined brokers, and their broker set
NO_TOPIC = "/"  # a pattern that no name matches: Kafka's have none of it


def with_imagined(
    given: Snapshot, goals: GoalSet, options: PlanOptions, wanted: Rows
) -> tuple[Snapshot, frozenset[int], np.ndarray]:
    """The cluster with the factors that are wanted, replicas that are missing on imagined dead brokers; their ids; and int32 [P, R], where
    replicas stand now: those that are too many where they are."""
    plain = apply_whatifs(given, goals, options)
    rf = plain.replication_factor.astype(np.int64)
    change = np.where(wanted > 0, wanted - rf, 0)
    most = int(np.abs(change).max(initial=0))
    taken = {int(b) for b in plain.broker_ids}
    free = [b for b in range(2**31 - 1, 2**31 - 2 - len(taken) - most, -1) if b not in taken][:most]
    added = tuple(AddedBroker(b, f"{NOWHERE} {i}") for i, b in enumerate(free))
    snapshot = apply_whatifs(given, goals, replace(options, add_brokers=(*options.add_brokers, *added)))
    states = snapshot.broker_states.copy()
    nowhere = np.array([snapshot.row_of_broker[b] for b in free], np.int32)
    states[nowhere] = BrokerState.DEAD
    slots = max(snapshot.replicas.shape[1], int((rf + np.maximum(change, 0)).max(initial=0)))
    start = np.full((len(rf), slots), -1, np.int32)
    start[:, : snapshot.replicas.shape[1]] = snapshot.replicas
    for p in np.flatnonzero(change > 0).tolist():
        start[p, rf[p] : wanted[p]] = nowhere[: change[p]]
    end = start.copy()
    excluded = snapshot.broker_states == BrokerState.EXCLUDED
    for p in np.flatnonzero(change < 0).tolist():  # which ones go is decided later; means depend on how many alone
        row = [int(b) for b in start[p, : rf[p]]]
        kept = sorted(row, key=lambda b: (b != snapshot.leader[p], not excluded[b]))[: wanted[p]]
        end[p] = -1
        end[p, : wanted[p]] = kept
    return replace(snapshot, broker_states=states, replicas=end), frozenset(free), start


def with_set_of(goals: GoalSet, imagined: frozenset[int]) -> GoalSet:
    """The same with a broker set for imagined brokers and no topic, where there are sets: as brokers of no set they would take topics."""
    sets = goals.constraints.broker_sets
    if not sets or not imagined:
        return goals
    apart = BrokerSet(NOWHERE, tuple(sorted(imagined)), (NO_TOPIC,))
    return replace(goals, constraints=replace(goals.constraints, broker_sets=(*sets, apart)))


def real(change: Change, imagined: frozenset[int]) -> Change:
    """The change without brokers that are not there."""
    before, after = (tuple(b for b in row if b not in imagined) for row in (change.replicas_before, change.replicas_after))
    return replace(change, replicas_before=before, replicas_after=after)
