"""Clusters of one replica a partition, goals with a policy, and where a plan by it leads. Used by the tests of policies in this folder."""

from __future__ import annotations

from typing import Any

import numpy as np

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.plan import Plan

MB = 1e6


def cluster(loads: list[list[float]], capacity: float = 100 * MB, racks: bool = False) -> Snapshot:
    """One replica a partition: broker i leads partitions of `loads[i]` bytes/s in."""
    listed = [(b, load) for b, own in enumerate(loads) for load in own]
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
        "brokers": [{"id": b, "capacity": {"network_in": capacity}, **({"rack": str(b)} if racks else {})} for b in range(len(loads))],
        "partitions": [
            {"topic": f"t{p % 7}", "partition": p // 7, "replicas": [b], "leader": b, "leader_load": {"network_in": load, "disk": 1e9}}
            for p, (b, load) in enumerate(listed)
        ],
    }  # fmt: skip
    return build_snapshot(document)


def goals_with(policy: str) -> Any:
    return parse_goals(
        "version: 1\ngoals:\n - {kind: usage_distribution, resource: network_in}\n - {kind: usage_distribution, resource: replicas}\n"
        f"policy: {policy}\n", "goals.yaml",
    )  # fmt: skip


def loads_after(snapshot: Snapshot, made: Plan, resource: str = "network_in") -> np.ndarray:
    lists, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for c in made.proposals:
        row = snapshot.row_of_partition(c.topic, c.partition)
        lists[row] = [snapshot.row_of_broker[b] for b in c.replicas_after]
        leader[row] = snapshot.row_of_broker[c.leader_after] if c.leader_after is not None else -1
    return snapshot.with_placement(lists, leader).broker_load(resource)
