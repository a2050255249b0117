"""Small clusters and what detectors make of them, check after check. Used by the tests of detectors in this folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.detectors import Detection, Memory, detect

IN = {"kind": "usage_distribution", "resource": "network_in"}
REPLICAS = {"kind": "usage_distribution", "resource": "replicas"}
def goals(detector: str, *kinds: Mapping[str, Any], accept: str = "both") -> GoalSet:
    listed = [dict(kind) for kind in kinds or (IN,)]
    text = f"version: 1\ngoals: {json.dumps(listed)}\npolicy: {{detector: {detector}, accept: {accept}}}"
    return parse_goals(text, "goals.yaml")


def cluster(
    loads: Mapping[str, Sequence[float]], capacity: Mapping[str, Sequence[float]] | None = None, moment: int = 0,
    states: Mapping[str, str] | None = None,
) -> Snapshot:  # fmt: skip
    """Broker 1, 2 … with one partition each that carries the loads in their order; `{"b2": "dead"}` says how broker 2 is."""
    count = len(next(iter(loads.values())))
    brokers = [
        {"id": b + 1, "state": (states or {}).get(f"b{b + 1}", "active"), "capacity": {k: v[b] for k, v in (capacity or {}).items()}}
        for b in range(count)
    ]
    partitions = [
        {"topic": "t", "partition": b, "replicas": [b + 1], "leader": b + 1, "leader_load": {k: v[b] for k, v in loads.items()}}
        for b in range(count)
    ]
    return build_snapshot(
        {"version": 1, "cluster_id": "c", "taken_at": f"2026-11-20T12:00:{moment:02d}Z", "storage": "local",
         "brokers": brokers, "partitions": partitions}, "cluster.json",
    )  # fmt: skip


def use(*percents: float, moment: int = 0, throughput: Sequence[float] | None = None) -> Snapshot:
    """Brokers of 100 cores each at so many percent; traffic in proportion unless given."""
    traffic = list(throughput or percents)
    return cluster({"cpu": percents, "network_in": traffic}, {"cpu": [100.0] * len(percents)}, moment)


def counts(numbers: Sequence[int], moment: int = 0) -> Snapshot:
    """Brokers with so many replicas each."""
    hosts = np.repeat(np.arange(len(numbers)), numbers)
    return build_snapshot(
        {"version": 1, "cluster_id": "c", "taken_at": f"2026-11-20T12:00:{moment:02d}Z", "storage": "local",
         "brokers": [{"id": b} for b in range(len(numbers))],
         "partitions": [{"topic": "t", "partition": n, "replicas": [int(b)], "leader": int(b)} for n, b in enumerate(hosts)]},
        "cluster.json",
    )  # fmt: skip


def run(policy: GoalSet, snapshots: Sequence[Snapshot], memory: Memory | None = None) -> list[Detection]:
    """Check after check, each with the memory of the one before."""
    found = []
    for snapshot in snapshots:
        found.append(detect(policy, snapshot, policy, memory))
        memory = found[-1].memory
    return found


def brokers(found: Detection) -> set[int | None]:
    return {f.broker for f in found.findings}


CPU = {"kind": "capacity", "resource": "cpu", "limit": 5.0}
