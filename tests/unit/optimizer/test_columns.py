"""What partitions contribute to a problem: a search should not look for leaderships that no other broker can have."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.optimizer.actions import Trial, partition, usage


@pytest.mark.parametrize(("replicas", "count"), [([1], 0), ([1, 2], 3)])
def test_only_partitions_of_several_replicas_have_leaderships_to_transfer(replicas: list[int], count: int) -> None:
    made = Trial([1, 2], [partition(replicas, network_out=10.0) for _ in range(3)], usage("network_out"))
    assert made.compiled.roles.tolist() == [count]


def test_sizes_are_read_where_the_snapshot_has_them() -> None:
    made = Trial([1, 2], [partition([1], network_in=10.0, disk=x) for x in (1.0, 2.0, 6.0)], usage())
    assert np.shares_memory(made.compiled.problem.size, made.snapshot.leader_load["disk"])
