"""`Snapshot`: what its arrays say about a cluster, and when two of them are the same."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from tests.unit.cluster_model.documents import Document, document

# Rows of `document()` in canonical order: clicks-0, orders-0, orders-1; brokers 1, 5, 9.


@pytest.fixture
def snapshot() -> Snapshot:
    return build_snapshot(document())


def test_rows_are_in_canonical_order(snapshot: Snapshot) -> None:
    assert snapshot.broker_ids.tolist() == [1, 5, 9]
    assert snapshot.racks == ("a", "b", None)
    assert snapshot.topics == ("clicks", "orders")
    assert [snapshot.partition_name(row) for row in range(3)] == ["clicks-0", "orders-0", "orders-1"]
    assert snapshot.replicas.tolist() == [[2, -1, -1], [0, 1, 2], [1, 0, -1]]
    assert snapshot.leader.tolist() == [-1, 0, 1]
    assert snapshot.replication_factor.tolist() == [1, 3, 2]
    assert (snapshot.broker_count, snapshot.partition_count, snapshot.replica_count) == (3, 3, 6)
    assert snapshot.row_of_broker == {1: 0, 5: 1, 9: 2}


def test_states_have_the_names_of_the_file(snapshot: Snapshot) -> None:
    given = document()
    for broker, state in zip(given["brokers"], ("draining", "excluded", "dead"), strict=True):
        broker["state"] = state
    assert build_snapshot(given).broker_states.tolist() == [3, 1, 2]
    assert snapshot.broker_states.tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("resource", "leading", "following"),
    [
        ("network_in", [0, 10, 100], [0, 10, 90]),  # copies the leader where no follower load is given
        ("disk", [0, 500, 7000], [0, 500, 0]),  # missing in a given follower load: 0
        ("cpu", [0, 0.25, 0.5], [0, 0, 0.125]),  # never copied
        ("network_out", [0, 0, 300], [0, 0, 0]),
        ("fetch_rate", [0, 0, 0], [0, 0, 0]),
        ("replicas", [1, 1, 1], [1, 1, 1]),
        ("leaders", [1, 1, 1], [0, 0, 0]),
        ("leader_network_in", [0, 10, 100], [0, 0, 0]),
        ("potential_network_out", [0, 0, 300], [0, 0, 300]),
    ],
)
def test_vectors(snapshot: Snapshot, resource: str, leading: list[float], following: list[float]) -> None:
    leader, follower = snapshot.vectors(resource)
    assert leader.tolist() == leading
    assert follower.tolist() == following


def test_an_unknown_resource_is_a_key_error(snapshot: Snapshot) -> None:
    with pytest.raises(KeyError, match="netwrok_in"):
        snapshot.vectors("netwrok_in")


@pytest.mark.parametrize(
    ("resource", "loads"),
    [
        ("network_in", [10 + 90, 10 + 100, 10]),
        ("disk", [500, 7000 + 500, 500]),
        ("replicas", [2, 2, 2]),
        ("leaders", [1, 1, 0]),
        ("leader_network_in", [10, 100, 0]),
        ("potential_network_out", [300, 300, 0]),
    ],
)
def test_broker_load(snapshot: Snapshot, resource: str, loads: list[float]) -> None:
    assert snapshot.broker_load(resource).tolist() == loads


def test_a_snapshot_without_partitions_has_zero_loads() -> None:
    empty = build_snapshot({**document(), "partitions": []})
    assert empty.broker_load("replicas").tolist() == [0, 0, 0]
    assert empty.broker_load("network_in").dtype == np.float64
    assert empty.replica_count == 0
    assert empty.row_of_partition("orders", 0) == -1
    assert empty.digest.startswith("sha256:")


def test_what_is_reported(snapshot: Snapshot) -> None:
    reported = {"network_in", "network_out", "cpu", "disk", "leader_network_in", "potential_network_out"}
    assert all(snapshot.is_reported(name) for name in reported | {"replicas", "leaders"})
    assert not snapshot.is_reported("fetch_rate")
    bare = {**document(), "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}
    assert not any(build_snapshot(bare).is_reported(name) for name in reported)


def test_row_of_partition(snapshot: Snapshot) -> None:
    names = [("clicks", 0), ("orders", 0), ("orders", 1)]
    assert [snapshot.row_of_partition(*name) for name in names] == [0, 1, 2]
    assert snapshot.row_of_partition("clicks", 1) == -1
    assert snapshot.row_of_partition("orders", 2) == -1
    assert snapshot.row_of_partition("order", 0) == -1
    assert snapshot.row_of_partition("orders", -1) == -1
    assert snapshot.row_of_partition("orders", 2**31) == -1


def test_arrays_cannot_be_written_to(snapshot: Snapshot) -> None:
    tables = (snapshot.capacity, snapshot.leader_load, snapshot.follower_load)
    arrays: list[Any] = [array for table in tables for array in table.values()]
    arrays += [
        snapshot.broker_ids,
        snapshot.broker_states,
        snapshot.partition_topic,
        snapshot.partition_number,
        snapshot.replicas,
        snapshot.leader,
        snapshot.has_follower_load,
    ]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_with_placement_changes_placement_only(snapshot: Snapshot) -> None:
    replicas = np.array([[2, -1, -1], [1, 0, 2], [1, 0, -1]], dtype=np.int32)
    leader = np.array([-1, 1, 1], dtype=np.int32)
    moved = snapshot.with_placement(replicas, leader)
    assert moved.broker_load("leaders").tolist() == [0, 2, 0]
    assert snapshot.broker_load("leaders").tolist() == [1, 1, 0]
    assert moved.digest != snapshot.digest
    assert not moved.replicas.flags.writeable


def test_the_digest_does_not_depend_on_the_order_of_the_file(snapshot: Snapshot) -> None:
    turned = document()
    turned["brokers"].reverse()
    turned["partitions"].reverse()
    for partition in turned["partitions"]:
        partition["leader_load"] = dict(reversed(partition.get("leader_load", {}).items()))
    assert build_snapshot(turned).digest == snapshot.digest


def test_the_digest_does_not_depend_on_what_no_file_can_say(snapshot: Snapshot) -> None:
    padding = np.full((3, 2), -1, dtype=np.int32)
    unknown = np.full(3, np.nan)
    follower = {name: amounts.copy() for name, amounts in snapshot.follower_load.items()}
    follower["cpu"][1] = 4.0  # clicks-0 and orders-0 have no follower load
    same = replace(
        snapshot,
        replicas=np.hstack([snapshot.replicas, padding]),
        leader_load={
            **snapshot.leader_load,
            "produce_rate": unknown,
            "cpu": -np.negative(snapshot.leader_load["cpu"]),
        },
        follower_load=follower,
        notes=("fetch rates are lower bounds",),
    )
    assert same.digest == snapshot.digest
    zero, negative = (replace(snapshot, leader_load={"cpu": np.array([z, 1.0, 1.0])}) for z in (0.0, -0.0))
    assert zero.digest == negative.digest


def _set(place: str, value: object) -> Any:
    def change(given: Document) -> None:
        at: Any = given
        *path, last = place.split(".")
        for step in path:
            at = at[int(step)] if step.isdigit() else at[step]
        at[int(last) if last.isdigit() else last] = value

    return pytest.param(change, id=place)


@pytest.mark.parametrize(
    "change",
    [
        _set("cluster_id", "abd"),
        _set("taken_at", "2026-11-20T12:00:01Z"),
        _set("storage", "shared"),
        _set("brokers.0.rack", "c"),
        _set("brokers.2.rack", "None"),
        _set("brokers.0.state", "draining"),
        _set("brokers.0.capacity.network_in", 1.0e8 + 1),
        _set("brokers.1.capacity.replicas", 10),
        _set("brokers.2.id", 10),
        _set("partitions.0.topic", "order"),
        _set("partitions.0.partition", 2),
        _set("partitions.0.replicas", [1, 5]),
        _set("partitions.0.replicas", [5, 1, 9]),
        _set("partitions.0.leader", 1),
        _set("partitions.0.leader", None),
        _set("partitions.0.leader_load.cpu", 0.5000000000000001),
        _set("partitions.0.leader_load.fetch_rate", 0.0),
        _set("partitions.0.follower_load", {}),
        _set("partitions.1.follower_load", {}),
        _set("partitions.1.follower_load", {"network_in": 10.0, "disk": 500.0}),
    ],
)
def test_the_digest_depends_on_everything_else(snapshot: Snapshot, change: Any) -> None:
    changed = copy.deepcopy(document())
    change(changed)
    if changed["brokers"][2]["id"] == 10:
        for partition in changed["partitions"]:
            partition["replicas"] = [10 if b == 9 else b for b in partition["replicas"]]
    assert build_snapshot(changed).digest != snapshot.digest


def long(seed: int = 0, partitions: int = 1_000) -> Snapshot:
    """Several blocks of partitions, the last one short; what some blocks give, others do not."""
    r = np.random.default_rng(seed)
    replicas = np.stack([r.permutation(5)[:3] for _ in range(partitions)]).astype(np.int32)
    replicas[:600, 2] = -1
    load = r.random(partitions)
    load[300:700] = np.nan
    return Snapshot(
        "long", "2026-11-20T12:00:00Z", "local", np.arange(5, dtype=np.int32), np.zeros(5, np.int8), ("a",) * 5, {}, ("t",),
        np.zeros(partitions, np.int32), np.arange(partitions, dtype=np.int32), replicas, replicas[:, 0].copy(),
        {"disk": load, "cpu": r.random(partitions)}, {}, np.zeros(partitions, np.bool_),
    )  # fmt: skip


def with_disk(snapshot: Snapshot, rows: list[int], value: float) -> Snapshot:
    disk = snapshot.leader_load["disk"].copy()
    disk[rows] = value
    return replace(snapshot, leader_load={**snapshot.leader_load, "disk": disk})


@pytest.mark.parametrize("rows", [[], [0], [999], [63, 64], [255, 256], [400], list(range(0, 1_000, 7))])
@pytest.mark.parametrize("value", [3.0, np.nan])
def test_a_digest_renewed_where_a_snapshot_differs_is_that_of_the_whole(rows: list[int], value: float) -> None:
    before = long()
    changed = with_disk(replace(before, taken_at="2026-11-20T12:01:00Z"), rows, value)
    whole = replace(changed).digest
    changed.renew_fingerprint(before.fingerprint, np.array(rows, dtype=np.int64))
    assert changed.digest == whole != before.digest


def test_every_row_of_a_long_snapshot_counts_in_its_digest() -> None:
    before = long()
    assert len({before.digest, *(with_disk(before, [row], 9.0).digest for row in (0, 255, 256, 511, 512, 999))}) == 7
