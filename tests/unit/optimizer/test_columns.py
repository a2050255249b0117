"""What partitions contribute to a problem: a search should not look for leaderships that nobody else can have."""

from __future__ import annotations

import pytest

from tests.unit.optimizer.actions import Trial, partition, usage


@pytest.mark.parametrize(("replicas", "count"), [([1], 0), ([1, 2], 3)])
def test_only_partitions_of_several_replicas_have_leaderships_to_transfer(replicas: list[int], count: int) -> None:
    made = Trial([1, 2], [partition(replicas, network_out=10.0) for _ in range(3)], usage("network_out"))
    assert made.compiled.roles.tolist() == [count]
