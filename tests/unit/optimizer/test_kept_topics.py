"""Excluded topics move for repairs only, frozen topics never: a drain that leaves `__consumer_offsets` behind loses it with the broker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.optimizer.scenarios import LEADERS, RACK, REPLICAS, cluster, placed, planned, told

Document = dict[str, Any]
KEPT: list[tuple[Document, Document]] = [
    ({"exclude_topics": ["__*"]}, {}),
    ({"include_topics": ["orders"]}, {}),
    ({}, {"exclude_topics": ("__*",)}),
]  # constraints and options that exclude topic __x


def troubled(state: str, lists: list[list[int]], brokers: int = 5) -> Document:
    """Broker 2 in `state`; topic __x has the replica `lists`; racks in turn."""
    entries = [{"id": b, "rack": f"r{b % 3}", "state": state if b == 2 else "active"} for b in range(1, brokers + 1)]
    return cluster(entries, [(on, {}) for on in lists], "__x")


@pytest.mark.parametrize("state", ["dead", "draining"])
@pytest.mark.parametrize(("constraints", "options"), KEPT)
@pytest.mark.parametrize("lists", [[[2, 1]], [[1, 2, 3], [2, 3, 4], [3, 4, 2]], [[2, 1], [1, 3], [4, 2], [1, 5]]])
def test_repairs_take_excluded_topics_off_brokers_that_go_and_say_so(
    state: str, constraints: Document, options: Document, lists: list[list[int]]
) -> None:
    snapshot = troubled(state, lists)
    result = planned(snapshot, RACK, REPLICAS, LEADERS, constraints=constraints, **options)
    after = placed(snapshot, result)
    assert all(2 not in on for on in after.values())
    gone = [n for n, on in enumerate(lists) if 2 in on]
    assert {c.partition for c in result.proposals} == set(gone)  # the others stay where they are
    assert all(len(c.added) == 1 for c in result.proposals)
    many = f"{len(gone)} partition{'s' if len(gone) > 1 else ''} of excluded topics would change (__x)"
    assert many in told(result)


@pytest.mark.parametrize(("constraints", "options"), KEPT)
def test_an_excluded_partition_without_a_leader_gets_one(constraints: Document, options: Document) -> None:
    snapshot = cluster([1, 2, 3], [([1, 2], {}), ([1, 3], {})], "__x")
    snapshot["partitions"][0]["leader"] = None
    result = planned(snapshot, REPLICAS, constraints=constraints, **options)
    (change,) = result.proposals
    assert (change.partition, set(change.replicas_after)) == (0, {1, 2})
    assert change.leader_after in (1, 2)


@pytest.mark.parametrize("state", ["dead", "draining"])
def test_frozen_topics_stay_on_a_broker_that_goes_and_the_plan_says_so(state: str) -> None:
    snapshot = troubled(state, [[2, 1], [1, 2], [3, 4]])
    result = planned(snapshot, RACK, REPLICAS, constraints={"freeze_topics": ["__*"]})
    assert not result.proposals
    assert f"2 partitions of frozen topics on {state} brokers" in told(result)
    assert "still hold 2 replicas: they are of frozen topics (constraints.freeze_topics)" in told(result)


def test_a_frozen_partition_without_a_leader_stays_without_one() -> None:
    snapshot = cluster([1, 2], [([1, 2], {})], "__x")
    snapshot["partitions"][0]["leader"] = None
    result = planned(snapshot, REPLICAS, constraints={"freeze_topics": ["__x"], "exclude_topics": ["__*"]})
    assert not result.proposals
    assert "partition __x-0 no leader, and its topic is frozen" in told(result)


def test_excluded_topics_are_not_moved_for_balance_nor_out_of_crowded_racks() -> None:
    brokers = [{"id": 1, "rack": "a"}, {"id": 2, "rack": "a"}, {"id": 3, "rack": "b"}]
    snapshot = cluster(brokers, [([1, 2], {})] * 4, "__x")
    result = planned(snapshot, RACK, REPLICAS, constraints={"exclude_topics": ["__*"]})
    assert not result.proposals


def test_a_frozen_topic_that_matches_nothing_is_noted() -> None:
    result = planned(cluster([1, 2], [([1], {}), ([2], {})]), REPLICAS, constraints={"freeze_topics": ["odrers"]})
    assert "constraints.freeze_topics: no topic matches 'odrers'" in told(result)
