"""Averages of loads over checks keep to one unit."""

from __future__ import annotations

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.detectors import detect

GOALS = parse_goals(
    "version: 1\ngoals: [{kind: usage_distribution, resource: cpu}]\n"
    "policy: {detector: {kind: std, target: 0.1, history_weight: 0.9}}\n", "g",
)


def cores(minute: int, loads: list[float], capacity: float | None) -> Snapshot:
    known = {} if capacity is None else {"capacity": {"cpu": capacity}}
    return build_snapshot({
        "version": 1, "cluster_id": "c", "taken_at": f"2026-01-01T00:0{minute}:00Z", "storage": "shared",
        "brokers": [{"id": b, **known} for b in range(len(loads))],
        "partitions": [
            {"topic": "t", "partition": b, "replicas": [b], "leader": b, "leader_load": {"cpu": load}} for b, load in enumerate(loads)
        ],
    })  # fmt: skip


def test_shares_of_the_busiest_are_no_history_of_utilization() -> None:
    """Or a cluster whose capacities become known would be balanced for a spread that it never had in this unit."""
    before = detect(GOALS, cores(0, [0.9, 0.1, 0.5], None), GOALS)
    fresh = detect(GOALS, cores(1, [0.9, 0.1, 0.5], 100.0), GOALS)
    after = detect(GOALS, cores(1, [0.9, 0.1, 0.5], 100.0), GOALS, before.memory)
    assert before.fired
    assert not after.fired
    assert after.severity == fresh.severity
