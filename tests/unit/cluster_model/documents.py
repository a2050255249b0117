"""Snapshot documents that the tests of this room start from, and how two snapshots are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import InputError
from cluster_model.snapshot import Snapshot

Document = dict[str, Any]


def document() -> Document:
    """Three brokers, three partitions: one without a leader, one with its own follower load."""
    return {
        "version": 1,
        "cluster_id": "abc",
        "taken_at": "2026-11-20T12:00:00Z",
        "storage": "local",
        "brokers": [
            {"id": 5, "rack": "b", "capacity": {"network_in": 1.0e8, "replicas": 10}},
            {"id": 1, "rack": "a", "state": "active", "capacity": {"network_in": 0.5e8}},
            {"id": 9, "state": "dead"},
        ],
        "partitions": [
            {
                "topic": "orders",
                "partition": 1,
                "replicas": [5, 1],
                "leader": 5,
                "leader_load": {"network_in": 100.0, "network_out": 300.0, "disk": 7000, "cpu": 0.5},
                "follower_load": {"network_in": 90.0, "cpu": 0.125},
            },
            {
                "topic": "orders",
                "partition": 0,
                "replicas": [1, 5, 9],
                "leader": 1,
                "leader_load": {"network_in": 10.0, "disk": 500.0, "cpu": 0.25},
            },
            {"topic": "clicks", "partition": 0, "replicas": [9], "leader": None},
        ],
    }


def problems_of(broken: object) -> dict[str, str]:
    """Place -> message of everything that is refused in a document."""
    with pytest.raises(InputError) as caught:
        build_snapshot(broken)  # type: ignore[arg-type]
    problems = {p.place: p.message for p in caught.value.problems}
    assert len(problems) == len(caught.value.problems), "one place twice"
    return problems


def assert_same(left: Snapshot, right: Snapshot) -> None:
    """Equal in every field, arrays bit for bit."""
    assert (left.cluster_id, left.taken_at, left.storage) == (right.cluster_id, right.taken_at, right.storage)
    assert (left.racks, left.topics, left.notes) == (right.racks, right.topics, right.notes)
    for name in ("broker_ids", "broker_states", "partition_topic", "partition_number", "replicas", "leader"):
        assert_identical(getattr(left, name), getattr(right, name))
    assert_identical(left.has_follower_load, right.has_follower_load)
    for name in ("capacity", "leader_load", "follower_load"):
        ours, theirs = getattr(left, name), getattr(right, name)
        assert list(ours) == list(theirs)
        for resource in ours:
            assert_identical(ours[resource], theirs[resource])
    assert left.directories == right.directories
    assert (left.replica_directory is None) == (right.replica_directory is None)
    if left.replica_directory is not None and right.replica_directory is not None:
        assert_identical(left.replica_directory, right.replica_directory)
    assert left.digest == right.digest


def assert_identical(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> None:
    assert left.dtype == right.dtype
    assert left.shape == right.shape
    assert left.tobytes() == right.tobytes()
