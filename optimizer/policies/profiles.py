"""The `score` of a policy: one number a broker out of a snapshot; and what units of movement weigh.

Called by `pipeline`, `placements` and `assign`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import FloatArray, Snapshot
from goals.model import GoalSet
from optimizer.detectors.sight import Sight
from optimizer.policies.rankings import MEGA, balanced, topic_load, weighted_load, weighted_max

BYTES, REQUESTS = ("network_in", "network_out"), ("produce_rate", "fetch_rate")


@dataclass(frozen=True, eq=False)
class Weights:
    """What a leader and a follower of each partition weigh: float64 [P] each, in `unit`."""

    leading: FloatArray
    following: FloatArray
    unit: str

    def of(self, leads: np.ndarray, partitions: np.ndarray) -> FloatArray:
        """float64 [n] of replicas of `partitions` that lead or do not."""
        return np.asarray(np.where(leads, self.leading[partitions], self.following[partitions]))


def broker_scores(kind: str, snapshot: Snapshot, goals: GoalSet) -> FloatArray:
    """float64 [B]: the score of every broker, whatever its state."""
    match kind:
        case "count":
            return snapshot.broker_load("replicas")
        case "leaders":
            return snapshot.broker_load("leaders")
        case "rate":
            return _sum(snapshot, REQUESTS)
        case "throughput":
            return _sum(snapshot, BYTES)
        case "weighted_max":
            return utilization(snapshot, goals)[0]
        case "weighted_sum":
            return _balanced(snapshot)
        case "bottleneck":
            return _bottleneck(snapshot)
    raise KeyError(kind)


def utilization(snapshot: Snapshot, goals: GoalSet) -> tuple[FloatArray, bool]:
    """float64 [B]: the largest utilization of every active broker, 0 of others; and whether it is by capacity. Else it is the share of the
    busiest broker's load, which says who has less, not how much room there is. A broker whose load is in doubt counts as the mean of the
    others, not as idle: nothing is moved to it, or off it, for a load that was not measured."""
    sight = Sight(snapshot, goals)
    use = sight.utilization()
    known = weighted_max(use.shares, np.ones(len(use.resources)))
    result = np.where(sight.active, known.mean() if len(known) else 0.0, 0.0)
    result[use.rows] = known
    return result, use.by_capacity


def weights_of(snapshot: Snapshot, *, by_rate: bool = False) -> Weights:
    """What moving a replica takes along: bytes/s (`by_rate`: requests/s) first, else the other, else one each."""
    measures = [("bytes/s", BYTES), ("requests/s", REQUESTS)]
    for unit, resources in reversed(measures) if by_rate else measures:
        known = [r for r in resources if snapshot.is_reported(r)]
        if known:
            pairs = [snapshot.vectors(r) for r in known]
            return Weights(np.sum([a for a, _ in pairs], axis=0), np.sum([b for _, b in pairs], axis=0), unit)
    ones = np.ones(snapshot.partition_count)
    return Weights(ones, ones, "replicas")


def traffic(snapshot: Snapshot) -> FloatArray:
    """float64 [B]: requests/s of every broker; bytes/s where those are unknown, replicas where both are."""
    for resources in (REQUESTS, BYTES):
        if any(map(snapshot.is_reported, resources)):
            return _sum(snapshot, resources)
    return snapshot.broker_load("replicas")


def _sum(snapshot: Snapshot, resources: tuple[str, ...]) -> FloatArray:
    known = [snapshot.broker_load(r) for r in resources if snapshot.is_reported(r)]
    return np.asarray(np.sum(known, axis=0)) if known else np.zeros(snapshot.broker_count)


def _percent(snapshot: Snapshot, resource: str) -> FloatArray:
    """float64 [B]: percent of capacity, of the busiest where there is none."""
    load = snapshot.broker_load(resource) if snapshot.is_reported(resource) else np.zeros(snapshot.broker_count)
    most = max(float(load.max(initial=0.0)), 1e-300)
    whole = snapshot.capacity.get(resource, np.full(snapshot.broker_count, np.nan))
    return np.asarray(100.0 * load / np.where(np.isnan(whole) | (whole <= 0.0), most, whole))


def _balanced(snapshot: Snapshot) -> FloatArray:
    """Danube's `balanced` on what Kafka has: replicas for topics; no connections, backlog or memory is known."""
    none = np.zeros(snapshot.broker_count)
    cpu = _percent(snapshot, "cpu") if snapshot.is_reported("cpu") else none
    return balanced(snapshot.broker_load("replicas"), _topic_load(snapshot), cpu, none)


def _topic_load(snapshot: Snapshot) -> FloatArray:
    """Danube's topic load with replicas for topics; connections and backlog are unknown."""
    none = np.zeros(snapshot.broker_count)
    return topic_load(snapshot.broker_load("replicas"), _sum(snapshot, BYTES) / MEGA, none, none)


def _bottleneck(snapshot: Snapshot) -> FloatArray:
    """Danube's `weighted_load`, by capacity where it is known."""
    parts, whole = {"topics": _topic_load(snapshot)}, {}
    for name, resource in (("cpu", "cpu"), ("network", "network_out"), ("throughput", "network_in"), ("disk", "disk")):
        if snapshot.is_reported(resource):
            unit = MEGA if name == "throughput" else 1.0
            parts[name] = snapshot.broker_load(resource) / unit
            capacity = snapshot.capacity.get(resource)
            if capacity is not None and not np.isnan(capacity).any():
                whole[name] = capacity / unit
    return weighted_load(parts, whole)
