"""Files for Kafka's own tools: what they accept, and nothing that the plan does not say."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from cluster_model.errors import InputError
from cluster_model.snapshot import Snapshot
from optimizer.plan import Change, Plan
from optimizer.report import to_election, to_reassignment, topic_files
from tests.unit.optimizer import plans

CHANGES = (
    Change("clicks", 0, (1, 2), (3, 2), 1, 3),  # another broker, which leads
    Change("clicks", 1, (1, 2), (1, 3), 1, 1),  # another follower
    Change("orders", 0, (1, 2), (2, 1), 1, 2),  # the same brokers, another preferred leader
    Change("orders", 1, (2, 1), (2, 1), 1, 2),  # a leadership transfer to the preferred leader
    Change("orders", 2, (2, 4), (2, 3), None, None),  # no leader before and after
)


def small_plan(changes: tuple[Change, ...] = CHANGES) -> Plan:
    return replace(plans.example_plan(), proposals=changes)


def small_snapshot(topics: tuple[str, ...] = ("clicks", "orders"), numbers: tuple[int, ...] = (2, 3)) -> Snapshot:
    """The cluster that `CHANGES` is about: clicks 0-1, orders 0-2 on brokers 1 to 4."""
    rows = [[0, 1], [0, 1], [0, 1], [1, 0], [1, 3]]
    leaders = [0, 0, 0, 0, -1]
    return Snapshot(
        cluster_id="c",
        taken_at="2026-11-20T12:00:00Z",
        storage="local",
        broker_ids=np.array([1, 2, 3, 4], np.int32),
        broker_states=np.zeros(4, np.int8),
        racks=(None,) * 4,
        capacity={},
        topics=topics,
        partition_topic=np.repeat(np.arange(len(topics), dtype=np.int32), numbers),
        partition_number=np.concatenate([np.arange(n, dtype=np.int32) for n in numbers]),
        replicas=np.array(rows, np.int32),
        leader=np.array(leaders, np.int32),
        leader_load={},
        follower_load={},
        has_follower_load=np.zeros(5, np.bool_),
    )


def test_reassignment_has_the_changed_lists_and_a_mere_new_order_too() -> None:
    assert json.loads(to_reassignment(small_plan())) == {
        "version": 1,
        "partitions": [
            {"topic": "clicks", "partition": 0, "replicas": [3, 2]},
            {"topic": "clicks", "partition": 1, "replicas": [1, 3]},
            {"topic": "orders", "partition": 0, "replicas": [2, 1]},
            {"topic": "orders", "partition": 2, "replicas": [2, 3]},
        ],
    }


def test_election_lists_every_partition_whose_leader_would_be_another() -> None:
    assert json.loads(to_election(small_plan())) == {
        "partitions": [
            {"topic": "clicks", "partition": 0},
            {"topic": "orders", "partition": 0},
            {"topic": "orders", "partition": 1},
        ]
    }


def test_leaders_that_would_be_elected_stand_first() -> None:
    plan = plans.example_plan()
    elected = {(p["topic"], p["partition"]) for p in json.loads(to_election(plan))["partitions"]}
    assert elected
    for c in plan.proposals:
        if (c.topic, c.partition) in elected:
            assert c.replicas_after[0] == c.leader_after


def test_an_empty_plan_gives_files_that_change_nothing() -> None:
    assert json.loads(to_reassignment(plans.empty_plan())) == {"version": 1, "partitions": []}
    assert json.loads(to_election(plans.empty_plan())) == {"partitions": []}


def test_each_topic_has_its_complete_assignment_before_and_after() -> None:
    files = topic_files(small_plan(), small_snapshot())
    assert set(files) == {f"{folder}/{topic}.json" for folder in ("original", "migrated") for topic in ("clicks", "orders")}
    before, after = (
        {p["partition"]: p["replicas"] for p in json.loads(files[f"{folder}/orders.json"])["partitions"]}
        for folder in ("original", "migrated")
    )
    assert before == {0: [1, 2], 1: [2, 1], 2: [2, 4]}
    assert after == {0: [2, 1], 1: [2, 1], 2: [2, 3]}


def test_untouched_topics_are_the_same_in_both_folders() -> None:
    files = topic_files(small_plan(CHANGES[:2]), small_snapshot())
    assert files["original/orders.json"] == files["migrated/orders.json"]
    assert files["original/clicks.json"] != files["migrated/clicks.json"]


def test_a_plan_of_another_snapshot_is_refused_with_every_place() -> None:
    stale = (
        Change("clicks", 0, (4, 2), (3, 2), 4, 3),
        Change("orders", 1, (2, 1), (2, 3), 2, 2),
        Change("payments", 7, (1, 2), (3, 2), 1, 3),
    )
    with pytest.raises(InputError) as refused:
        topic_files(small_plan(stale), small_snapshot())
    assert [p.place for p in refused.value.problems] == ["clicks-0", "payments-7"]
    assert "expects replicas [4, 2], the snapshot has replicas [1, 2]" in str(refused.value)


@pytest.mark.parametrize("name", ["../../etc/cron.d/x", "a/b", "..", "", "a\\b", "nul\0"])
def test_a_topic_name_cannot_lead_out_of_the_folder(name: str) -> None:
    with pytest.raises(InputError):
        topic_files(small_plan(()), small_snapshot(topics=("clicks", name)))


def test_topics_that_differ_in_case_only_have_files_on_any_disk() -> None:
    files = topic_files(small_plan(()), small_snapshot(topics=("Orders", "orders")))
    names = [name for name in files if name.startswith("migrated/")]
    assert names == ["migrated/Orders.json", "migrated/orders~2.json"]
    assert len({name.casefold() for name in files}) == len(files)
    for name, topic in zip(names, ("Orders", "orders"), strict=True):
        assert {p["topic"] for p in json.loads(files[name])["partitions"]} == {topic}
