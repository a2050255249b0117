"""Snapshot folders as other tools write them: which columns are taken, and how wrong ones are refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import InputError
from cluster_model.files import read_snapshot, write_snapshot
from cluster_model.snapshot import Snapshot
from tests.unit.cluster_model.documents import Document, assert_same, document

Columns = dict[str, Any]


def brokers() -> Columns:
    return {
        "id": pa.array([5, 1, 9], pa.int64()),
        "rack": pa.array(["b", "a", None]),
        "state": pa.array([None, "active", "dead"]),
        "capacity.network_in": pa.array([1.0e8, 0.5e8, None]),
        "capacity.replicas": pa.array([10, None, None], pa.int32()),
    }


def partitions() -> Columns:
    return {
        "topic": pa.array(["orders", "orders", "clicks"]),
        "partition": pa.array([1, 0, 0], pa.int64()),
        "replicas": pa.array([[5, 1], [1, 5, 9], [9]], pa.list_(pa.int64())),
        "leader": pa.array([5, 1, None], pa.int64()),
        "leader_load.network_in": pa.array([100.0, 10.0, None]),
        "leader_load.network_out": pa.array([300.0, None, None]),
        "leader_load.disk": pa.array([7000, 500, None], pa.int64()),
        "leader_load.cpu": pa.array([0.5, 0.25, None], pa.float32()),
        "follower_load.network_in": pa.array([90.0, None, None]),
        "follower_load.cpu": pa.array([0.125, None, None]),
    }


def folder(home: Path, *, of_brokers: Columns | None = None, of_partitions: Columns | None = None) -> Path:
    """A snapshot folder as a person would write it."""
    home.mkdir(exist_ok=True)
    pq.write_table(pa.table(of_brokers or brokers()), home / "brokers.parquet")
    pq.write_table(pa.table(of_partitions or partitions()), home / "partitions.parquet")
    head = {key: document()[key] for key in ("version", "cluster_id", "taken_at", "storage")}
    (home / "meta.json").write_text(json.dumps(head))
    return home


def problems_in(home: Path) -> dict[str, str]:
    with pytest.raises(InputError) as caught:
        read_snapshot(home)
    assert caught.value.document == str(home)
    return {p.place: p.message for p in caught.value.problems}


def with_follower_load(*loads: dict[str, float] | None) -> Document:
    given = document()
    for partition, load in zip(given["partitions"], loads, strict=True):
        partition["follower_load"] = load
    return given


def test_a_folder_written_by_hand_is_the_same_snapshot(tmp_path: Path) -> None:
    assert_same(read_snapshot(folder(tmp_path / "west")), build_snapshot(document()))


def test_the_columns_are_those_of_the_contract(tmp_path: Path) -> None:
    write_snapshot(build_snapshot(document()), tmp_path / "west")
    schema = pq.read_schema(tmp_path / "west" / "partitions.parquet")
    assert schema.names == [
        "topic",
        "partition",
        "replicas",
        "leader",
        "leader_load.cpu",
        "leader_load.disk",
        "leader_load.network_in",
        "leader_load.network_out",
        "follower_load.cpu",
        "follower_load.network_in",
    ]
    assert schema.field("replicas").type.value_type == pa.int32()
    assert schema.field("leader").type == schema.field("partition").type == pa.int32()
    assert schema.field("leader_load.disk").type == pa.float64()
    names = pq.read_schema(tmp_path / "west" / "brokers.parquet").names
    assert names == ["id", "rack", "state", "capacity.network_in", "capacity.replicas"]


@pytest.mark.parametrize(
    "columns",
    [
        {"topic": pa.array(["orders", "orders", "clicks"], pa.large_string())},
        {"topic": pa.array(["orders", "orders", "clicks"]).dictionary_encode()},
        {"partition": pa.array([1, 0, 0], pa.uint64())},
        {"replicas": pa.array([[5, 1], [1, 5, 9], [9]], pa.large_list(pa.int16()))},
        {"leader": pa.array([5, 1, None], pa.int8())},
        {"leader_load.fetch_rate": pa.nulls(3)},
        {"has_follower_load": pa.array([True, None, False])},
        {"has_follower_load": pa.nulls(3)},
    ],
)
def test_types_that_other_tools_write_are_taken(tmp_path: Path, columns: Columns) -> None:
    home = folder(tmp_path / "west", of_partitions={**partitions(), **columns})
    assert_same(read_snapshot(home), build_snapshot(document()))


def test_lists_of_fixed_size(tmp_path: Path) -> None:
    pairs = pa.array([[5, 1], [1, 5], [9, 1]], pa.list_(pa.int32(), 2))
    given = document()
    given["partitions"][1]["replicas"], given["partitions"][2]["replicas"] = [1, 5], [9, 1]
    home = folder(tmp_path / "west", of_partitions={**partitions(), "replicas": pairs})
    assert_same(read_snapshot(home), build_snapshot(given))


def test_only_the_required_columns(tmp_path: Path) -> None:
    least = {name: partitions()[name] for name in ("topic", "partition", "replicas")}
    snapshot = read_snapshot(
        folder(tmp_path / "west", of_brokers={"id": brokers()["id"]}, of_partitions=least)
    )
    assert snapshot.leader.tolist() == [-1, -1, -1]
    assert snapshot.racks == (None, None, None)
    assert snapshot.leader_load == snapshot.capacity == {}


def test_several_row_groups(tmp_path: Path) -> None:
    home = folder(tmp_path / "west")
    pq.write_table(pa.table(partitions()), home / "partitions.parquet", row_group_size=1)
    assert_same(read_snapshot(home), build_snapshot(document()))


def test_byte_counts_beyond_the_whole_numbers_of_a_double(tmp_path: Path) -> None:
    disk = pa.array([2**60 + 1, 500, None], pa.int64())
    home = folder(tmp_path / "west", of_partitions={**partitions(), "leader_load.disk": disk})
    assert read_snapshot(home).leader_load["disk"][2] == 2.0**60


@pytest.mark.parametrize(
    "loads",
    [
        ({}, None, None),
        ({}, {}, {}),
        (None, {}, None),
        ({"cpu": 0.0}, {}, None),
        (None, None, None),
        ({"cpu": 1.0}, {"disk": 2.0}, {"fetch_rate": 3.0}),
    ],
)
def test_an_absent_follower_load_stays_absent_and_a_given_one_given(
    tmp_path: Path, loads: tuple[dict[str, float] | None, ...]
) -> None:
    snapshot = build_snapshot(with_follower_load(*loads))
    write_snapshot(snapshot, tmp_path / "west")
    assert_same(read_snapshot(tmp_path / "west"), snapshot)


@pytest.mark.parametrize("partitions_given", [[], [{"topic": "t", "partition": 0, "replicas": [1]}]])
def test_nearly_nothing(tmp_path: Path, partitions_given: list[Any]) -> None:
    given = {**document(), "brokers": [{"id": 1}], "partitions": partitions_given}
    snapshot = build_snapshot(given)
    write_snapshot(snapshot, tmp_path / "west")
    assert_same(read_snapshot(tmp_path / "west"), snapshot)


WRONG_TYPES: list[tuple[str, Any, str]] = [
    ("topic", pa.array([1, 2, 3]), "expected strings, found type int64"),
    ("partition", pa.array([1.0, 0.0, 0.0]), "expected whole numbers, found type double"),
    ("replicas", pa.array(["5,1", "1", "9"]), "expected lists of whole numbers, found type string"),
    ("replicas", pa.array([["5"], ["1"], ["9"]]), "expected lists of whole numbers"),
    ("replicas", pa.nulls(3), "expected lists of whole numbers, found type null"),
    ("leader", pa.array([5.0, 1.0, None]), "(null where there is no leader), found type double"),
    ("leader_load.cpu", pa.array(["1", "2", "3"]), "expected numbers, found type string"),
    ("leader_load.cpu", pa.array([True, False, None]), "expected numbers, found type bool"),
    ("has_follower_load", pa.array([1, 0, 0]), "expected true and false, found type int64"),
    ("leader_load.gpu", pa.array([1, 0, 0]), "unknown column; did you mean 'leader_load.cpu'?"),
    ("leader_network_in_load", pa.array([1, 0, 0]), "unknown column; did you mean 'leader_load.network_in'?"),
    ("leader_load.leaders", pa.array([1, 0, 0]), "unknown column"),
]


@pytest.mark.parametrize(("column", "values", "words"), WRONG_TYPES)
def test_wrong_columns(tmp_path: Path, column: str, values: Any, words: str) -> None:
    problems = problems_in(folder(tmp_path / "west", of_partitions={**partitions(), column: values}))
    assert list(problems) == [f"partitions.parquet, column {column}"]
    assert words in problems[f"partitions.parquet, column {column}"]


@pytest.mark.parametrize("column", ["topic", "partition", "replicas"])
def test_a_missing_column(tmp_path: Path, column: str) -> None:
    least = partitions()
    del least[column]
    problems = problems_in(folder(tmp_path / "west", of_partitions=least))
    assert "add it" in problems[f"partitions.parquet, column {column}"]


def test_a_column_given_twice(tmp_path: Path) -> None:
    home = folder(tmp_path / "west")
    names = ["id", "id"]
    pq.write_table(
        pa.table([pa.array([1, 5, 9]), pa.array([1, 5, 9])], names=names), home / "brokers.parquet"
    )
    assert "more often" in problems_in(home)["brokers.parquet, column id"]


WRONG_VALUES: list[tuple[str, Any, str, str]] = [
    ("topic", pa.array(["orders", None, "clicks"]), "partitions[1].topic", "found null"),
    ("topic", pa.array(["orders", "a/b", "clicks"]), "partitions[1].topic", "found 'a/b'"),
    ("topic", pa.array(["orders", "orders", "orders"]), "partitions[2]", "orders-0 is already given by"),
    ("partition", pa.array([1, None, 0]), "partitions[1].partition", "found null"),
    ("partition", pa.array([1, -1, 0]), "partitions[1].partition", "found -1"),
    (
        "partition",
        pa.array([1, 2**64 - 1, 0], pa.uint64()),
        "partitions[1].partition",
        "from 0 to 2147483647",
    ),
    ("replicas", pa.array([[5, 1], None, [9]]), "partitions[1].replicas", "found null"),
    ("replicas", pa.array([[5, 1], [1, None], [9]]), "partitions[1].replicas", "found null"),
    (
        "replicas",
        pa.array([[5, 1], [], [9]], pa.list_(pa.int32())),
        "partitions[1].replicas",
        "an empty list",
    ),
    ("replicas", pa.array([[5, 1], [1, 8], [9]]), "partitions[1].replicas", "broker 8 is not in brokers"),
    ("replicas", pa.array([[5, 1], [1, 1], [9]]), "partitions[1].replicas", "stands in the list twice"),
    (
        "replicas",
        pa.array([[5, 1], [1, 2**64 - 1], [9]], pa.list_(pa.uint64())),
        "partitions[1].replicas",
        "not in",
    ),
    ("leader", pa.array([5, 9, 5]), "partitions[2].leader", "expected one of the replicas"),
    ("leader", pa.array([5, -1, None]), "partitions[1].leader", "null where there is no leader, found -1"),
    ("leader_load.disk", pa.array([1.0, float("nan"), None]), "partitions[1].leader_load.disk", "found NaN"),
    ("leader_load.disk", pa.array([1.0, float("inf"), None]), "partitions[1].leader_load.disk", "infinite"),
    ("leader_load.disk", pa.array([1, -5, None]), "partitions[1].leader_load.disk", "found -5"),
    ("has_follower_load", pa.array([False, False, True]), "partitions[0].has_follower_load", "expected true"),
]


@pytest.mark.parametrize(("column", "values", "place", "words"), WRONG_VALUES)
def test_wrong_values(tmp_path: Path, column: str, values: Any, place: str, words: str) -> None:
    problems = problems_in(folder(tmp_path / "west", of_partitions={**partitions(), column: values}))
    assert list(problems) == [place]
    assert words in problems[place]


def test_problems_of_all_three_files_at_once(tmp_path: Path) -> None:
    wrong = {**brokers(), "state": pa.array(["activ", None, None]), "capacity.disk": pa.array([-1, 2, 3])}
    home = folder(
        tmp_path / "west", of_brokers=wrong, of_partitions={**partitions(), "leader": pa.array([1, 9, 1])}
    )
    (home / "meta.json").write_text('{"version": 1, "cluster_id": "c", "taken_at": "now"}')
    assert list(problems_in(home)) == [
        "storage",
        "taken_at",
        "brokers[0].state",
        "brokers[0].capacity.disk",
        "partitions[2].leader",
    ]


@pytest.mark.parametrize("name", ["brokers.parquet", "partitions.parquet"])
def test_files_that_are_no_parquet(tmp_path: Path, name: str) -> None:
    home = folder(tmp_path / "west")
    whole = (home / name).read_bytes()
    for content in (b"", b"id,rack\n1,a\n", whole[:-20], whole[:4] + b"\0" * (len(whole) - 12) + whole[-8:]):
        (home / name).write_bytes(content)
        assert "expected a Parquet file, found one that cannot be read" in problems_in(home)[name]


def test_a_changed_byte_in_the_data_is_noticed(tmp_path: Path) -> None:
    one = {"topic": "t", "replicas": [1]}
    loads = [{**one, "partition": n, "leader_load": {"cpu": n / 7}} for n in range(99)]
    home = tmp_path / "west"
    write_snapshot(build_snapshot({**document(), "partitions": loads}), home)
    content = bytearray((home / "partitions.parquet").read_bytes())
    pages = pq.ParquetFile(home / "partitions.parquet").metadata.row_group(0).column(4)
    assert pages.path_in_schema == "leader_load.cpu"
    content[pages.data_page_offset + pages.total_compressed_size - 2] ^= 1
    (home / "partitions.parquet").write_bytes(content)
    assert "cannot be read" in problems_in(home)["partitions.parquet"]


def test_text_that_is_not_unicode(tmp_path: Path) -> None:
    raw = pa.array([b"orders", b"or\xffders", b"clicks"]).view(pa.string())
    home = folder(tmp_path / "west", of_partitions={**partitions(), "topic": raw})
    assert "cannot be read" in problems_in(home)["partitions.parquet"]


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    home = folder(tmp_path / "west")
    (home / "brokers.parquet").unlink()
    (home / "brokers.parquet").mkdir()
    assert "cannot be read" in problems_in(home)["brokers.parquet"]


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None  # as on a machine where it is not installed
from cluster_model.errors import InputError
from cluster_model.files import read_snapshot, write_snapshot
snapshot = read_snapshot(sys.argv[1] + ".json")
for use in (lambda: read_snapshot(sys.argv[1]), lambda: write_snapshot(snapshot, sys.argv[1] + "-2")):
    try:
        use()
    except InputError as error:
        print(error)
"""


def test_without_pyarrow_json_works_and_folders_say_what_to_install(tmp_path: Path) -> None:
    snapshot: Snapshot = build_snapshot(document())
    write_snapshot(snapshot, tmp_path / "west")
    write_snapshot(snapshot, tmp_path / "west.json")
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW, str(tmp_path / "west")],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("needs pyarrow, which is not installed: pip install 'trimtab[parquet]'") == 2
    assert sorted(p.name for p in tmp_path.iterdir()) == ["west", "west.json"]
