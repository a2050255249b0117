"""Log directories in a snapshot: said where they are known, without a trace where they are not, and refused where they make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from cluster_model.build import build_snapshot, to_document
from cluster_model.files import snapshot_json
from tests.unit.cluster_model.documents import document, problems_of


def with_directories() -> dict[str, Any]:
    """Broker 5 has three directories on two volumes; of orders-1 its replica is in the last one."""
    made = document()
    made["brokers"][0]["directories"] = [
        {"path": "/d1", "size": 1e12, "used": 4e11},
        {"path": "/d2", "size": 2e12, "used": 1e12, "volume": 7},
        {"path": "/d2/more", "size": 2e12, "used": 1e12, "volume": 7},
    ]
    made["partitions"][0]["directories"] = [2, None]
    return made


def test_what_is_told_comes_back_and_is_part_of_the_digest() -> None:
    snapshot = build_snapshot(with_directories())
    again = to_document(snapshot)
    assert again["brokers"][1]["directories"] == with_directories()["brokers"][0]["directories"]  # type: ignore[index]
    assert [p.get("directories") for p in again["partitions"]] == [None, None, [2, None]]  # type: ignore[attr-defined]
    digests = {snapshot.digest, build_snapshot(document()).digest}
    for place in (("brokers", 0, "directories", 0, "used"), ("partitions", 0, "directories", 0)):
        changed: Any = with_directories()
        at = changed
        for step in place[:-1]:
            at = at[step]
        at[place[-1]] = 1
        digests.add(build_snapshot(changed).digest)
    assert len(digests) == 4


def test_without_directories_a_file_says_nothing_of_them() -> None:
    assert "directories" not in snapshot_json(build_snapshot(document()))
    nothing = document()
    nothing["brokers"][0]["directories"] = []
    nothing["partitions"][0]["directories"] = [None, None]
    assert snapshot_json(build_snapshot(nothing)) == snapshot_json(build_snapshot(document()))
    assert build_snapshot(nothing).digest == build_snapshot(document()).digest


def test_a_replica_keeps_its_directory_in_another_list_and_one_that_comes_has_none() -> None:
    snapshot = build_snapshot(with_directories())
    row = snapshot.row_of_partition("orders", 1)
    replicas = snapshot.replicas.copy()
    replicas[row, :2] = replicas[row, 1::-1].copy()
    turned = snapshot.with_placement(replicas, snapshot.leader)
    assert turned.replica_directory is not None
    assert turned.replica_directory[row].tolist() == [-1, 2, -1]
    replicas = replicas.copy()
    replicas[row, 1] = snapshot.row_of_broker[9]
    assert snapshot.with_placement(replicas, snapshot.leader).replica_directory is None


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        ({"partitions": [3, None]}, "partitions[0].directories[0]", "a position from 0 to 2 in the directories of broker 5, found 3"),
        ({"partitions": [2, 0]}, "partitions[0].directories[1]", "expected null, since no directories of broker 1 are given, found 0"),
        ({"partitions": [-1, None]}, "partitions[0].directories[0]", "found -1"),
        ({"partitions": [2]}, "partitions[0].directories", "expected as many entries as replicas (null where one is not known), found 1"),
        ({"path": "/d2"}, "brokers[0].directories[1].path", "expected each directory once"),
        ({"path": ""}, "brokers[0].directories[0].path", "expected a path, found ''"),
        ({"size": 0}, "brokers[0].directories[0].size", "expected more than 0 (bytes)"),
        ({"used": -1}, "brokers[0].directories[0].used", "expected 0 or more (bytes), found -1"),
        ({"volume": 1.5}, "brokers[0].directories[0].volume", "expected a number that directories of one volume share"),
        ({"free": 1}, "brokers[0].directories[0].free", "unknown key"),
    ],
)
def test_refused_with_its_place(change: dict[str, Any], place: str, words: str) -> None:
    made = with_directories()
    if "partitions" in change:
        made["partitions"][0]["directories"] = change["partitions"]
    else:
        made["brokers"][0]["directories"][0] |= change
    assert words in problems_of(made)[place]
