"""Snapshot documents of any content: all forms round trip, and a broken one is refused where it broke."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_model.build import build_snapshot, to_document
from cluster_model.errors import InputError
from cluster_model.files import read_snapshot, write_snapshot
from cluster_model.resources import MEASURED, RESOURCES
from cluster_model.snapshot import STATES_BY_LABEL
from tests.unit.cluster_model.documents import assert_same

Document = dict[str, Any]

ids = st.integers(0, 2**31 - 1)
topics = st.text("abcXYZ019._-", min_size=1, max_size=12).filter(lambda t: t not in (".", ".."))
amounts = st.just(0.0) | st.floats(1e-300, 1e30) | st.integers(0, 2**70)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
measured = st.dictionaries(st.sampled_from(sorted(MEASURED)), amounts)
paths = texts.filter(bool)
sizes = st.floats(1.0, 1e30) | st.integers(1, 2**70)
capacities = st.dictionaries(st.sampled_from(sorted(RESOURCES)), amounts)


def _objects(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[Document]:
    return st.fixed_dictionaries(required, optional=optional)


def _directory() -> st.SearchStrategy[Document]:
    return _objects({"path": paths, "size": sizes, "used": amounts}, volume=st.none() | st.integers(0, 2))


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A valid document of up to 6 brokers and 8 partitions."""
    brokers = draw(
        st.lists(
            _objects(
                {"id": st.one_of(ids, st.integers(0, 9))},
                rack=st.none() | texts.filter(bool),
                state=st.sampled_from(sorted(STATES_BY_LABEL)),
                capacity=capacities,
                directories=st.none() | st.lists(_directory(), max_size=3, unique_by=lambda d: d["path"]),
            ),
            min_size=1,
            max_size=6,
            unique_by=lambda b: b["id"],
        )
    )
    names = draw(st.lists(st.tuples(topics, st.one_of(ids, st.integers(0, 5))), max_size=8, unique=True))
    partitions = []
    for topic, number in names:
        hosts = st.lists(st.sampled_from([b["id"] for b in brokers]), min_size=1, max_size=4, unique=True)
        replicas = draw(hosts)
        partition = {"topic": topic, "partition": number, "replicas": replicas}
        leader = st.sampled_from([*replicas, None])
        rest = _objects({}, leader=leader, leader_load=measured, follower_load=measured)
        partitions.append({**partition, **draw(rest)})
        if draw(st.booleans()):
            counts = [len(next(b for b in brokers if b["id"] == host).get("directories") or ()) for host in replicas]
            held = [draw(st.none() | st.integers(0, count - 1)) if count else None for count in counts]
            partitions[-1]["directories"] = draw(st.sampled_from([held, None]))
    head = {"version": 1, "cluster_id": draw(texts), "taken_at": draw(st.datetimes()).isoformat()}
    storage = draw(st.sampled_from(["local", "shared"]))
    document = {**head, "storage": storage, "brokers": brokers, "partitions": partitions}
    if draw(st.booleans()):
        document["notes"] = draw(st.lists(texts, max_size=3))
    return document


@given(documents(), st.randoms(use_true_random=False))
@settings(max_examples=80)
def test_every_document_round_trips_through_every_form(document: Document, random: Any) -> None:
    snapshot = build_snapshot(document)
    assert_same(build_snapshot(to_document(snapshot)), snapshot)
    turned = copy.deepcopy(document)
    random.shuffle(turned["brokers"])
    random.shuffle(turned["partitions"])
    assert_same(build_snapshot(turned), snapshot)
    with tempfile.TemporaryDirectory() as home:
        forms = ["s.json", "s.json.gz", "s"]
        random.shuffle(forms)
        told = snapshot
        for form in forms:
            write_snapshot(told, Path(home) / form)
            told = read_snapshot(Path(home) / form)
            assert_same(told, snapshot)


@given(documents())
@settings(max_examples=100)
def test_a_snapshot_says_what_its_document_says(document: Document) -> None:
    snapshot = build_snapshot(document)
    ids_of_rows = snapshot.broker_ids.tolist()
    assert snapshot.partition_count == len(document["partitions"])
    for partition in document["partitions"]:
        row = snapshot.row_of_partition(partition["topic"], partition["partition"])
        hosts = [ids_of_rows[b] for b in snapshot.replicas[row] if b >= 0]
        assert hosts == partition["replicas"]
        leader = snapshot.leader[row]
        assert (ids_of_rows[leader] if leader >= 0 else None) == partition.get("leader")
        assert snapshot.has_follower_load[row] == ("follower_load" in partition)
        for key, table in (("leader_load", snapshot.leader_load), ("follower_load", snapshot.follower_load)):
            load = partition.get(key, {})
            for resource in MEASURED:
                amount = table[resource][row] if resource in table else math.nan
                assert amount == float(load[resource]) if resource in load else math.isnan(amount)
        held = [-1] * len(hosts) if snapshot.replica_directory is None else snapshot.replica_directory[row][: len(hosts)].tolist()
        assert [at if at >= 0 else None for at in held] == (partition.get("directories") or [None] * len(hosts))
    told = {b["id"]: [d["path"] for d in b["directories"]] for b in document["brokers"] if b.get("directories")}
    assert {broker: [d.path for d in of] for broker, of in snapshot.directories.items()} == told


# What no place in a document takes. Objects and lists are left out: some places take those.
junk = st.sampled_from(
    [math.nan, math.inf, -math.inf, -1, -0.5, 2**31 + 7, 10**400, True, False, "", "x y", "\ud800", b"1", 1j]
)


def _places(value: object, place: str = "", path: tuple[Any, ...] = ()) -> list[tuple[str, tuple[Any, ...]]]:
    """Every scalar of a document: its place as messages have it, and the way there."""
    if isinstance(value, dict):
        inner = [(f"{place}.{key}" if place else key, key, child) for key, child in value.items()]
    elif isinstance(value, list) and place.endswith("replicas"):
        inner = [(place, index, child) for index, child in enumerate(value)]
    elif isinstance(value, list):
        inner = [(f"{place}[{index}]", index, child) for index, child in enumerate(value)]
    else:
        return [(place, path)]
    return [found for name, step, child in inner for found in _places(child, name, (*path, step))]


def _acceptable(place: str, value: object) -> bool:
    """Whether a junk value is legal after all in this place."""
    if place == "cluster_id" or place.startswith("notes["):
        return isinstance(value, str) and value != "\ud800"
    if place.endswith((".rack", ".path")):
        return value == "x y"
    if "load." in place or "capacity." in place or place.endswith((".size", ".used")):
        return value == 2**31 + 7 and not isinstance(value, bool)
    return False


def _set(document: Document, path: tuple[Any, ...], value: object) -> None:
    at: Any = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value


@given(documents(), junk, st.data())
@settings(max_examples=200)
def test_a_wrong_value_is_refused_in_its_place(
    document: Document, value: object, data: st.DataObject
) -> None:
    place, path = data.draw(st.sampled_from(_places(document)))
    _set(document, path, value)
    if _acceptable(place, value):
        build_snapshot(document)
        return
    with pytest.raises(InputError) as caught:
        build_snapshot(document)
    assert place in {problem.place for problem in caught.value.problems}


@given(documents(), st.sampled_from([None, 5, "x", True, [], {}, [[]], [5.5], {"x": 1}]), st.data())
@settings(max_examples=200)
def test_any_shape_anywhere_is_taken_or_refused_near_its_place(
    document: Document, value: object, data: st.DataObject
) -> None:
    """The value may be legal where it lands (null, an empty load); if not, its place is named."""
    place, path = data.draw(st.sampled_from(_all_places(document)))
    _set(document, path, copy.deepcopy(value))
    problems = _refused(document)
    # A new id orphans replicas elsewhere, a new topic or number may double a partition elsewhere.
    if problems and not place.endswith((".id", ".topic", ".partition")):
        assert any(p.startswith(place.rpartition(".")[0]) for p in problems)


def _refused(document: Document) -> list[str]:
    """Places of the problems; none for a legal document."""
    try:
        build_snapshot(document)
    except InputError as error:
        return [problem.place for problem in error.problems]
    return []


def _all_places(
    value: object, place: str = "", path: tuple[Any, ...] = ()
) -> list[tuple[str, tuple[Any, ...]]]:
    found = [(place, path)] if path else []
    if isinstance(value, dict):
        for key, child in value.items():
            found += _all_places(child, f"{place}.{key}" if place else key, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            found += _all_places(child, f"{place}[{index}]", (*path, index))
    return found


@given(documents(), st.text(max_size=10), st.data())
@settings(max_examples=100)
def test_an_unknown_key_is_refused_in_its_place(document: Document, key: str, data: st.DataObject) -> None:
    objects = [
        (place, path) for place, path in _all_places(document) if isinstance(_get(document, path), dict)
    ]
    place, path = data.draw(st.sampled_from([("", ()), *objects]))
    target = _get(document, path)
    known = {*RESOURCES, "version", "cluster_id", "taken_at", "storage", "notes", "brokers", "partitions"}
    known |= {"id", "rack", "state", "capacity", "topic", "partition", "replicas", "leader"}
    known |= {"leader_load", "follower_load", "directories", "path", "size", "used", "volume"}
    if key in known:
        return
    target[key] = 1
    with pytest.raises(InputError) as caught:
        build_snapshot(document)
    (problem,) = caught.value.problems
    assert problem.place.startswith(f"{place}." if place else "")
    assert problem.message.startswith("unknown ")


def _get(document: Document, path: tuple[Any, ...]) -> Any:
    at: Any = document
    for step in path:
        at = at[step]
    return at


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | texts, lambda x: st.lists(x) | st.dictionaries(texts, x)
    )
)
@settings(max_examples=200)
def test_any_json_is_refused_in_words(junk: Any) -> None:
    with pytest.raises(InputError):
        build_snapshot(junk)


@given(documents(), st.data())
@settings(max_examples=100)
def test_damaged_files_are_read_or_refused_never_worse(document: Document, data: st.DataObject) -> None:
    """One byte of a file is another, or its end is missing: no exception but InputError."""
    with tempfile.TemporaryDirectory() as home:
        form = data.draw(st.sampled_from(["s.json", "s.json.gz", "s"]))
        write_snapshot(build_snapshot(document), Path(home) / form)
        file = Path(home) / form
        if file.is_dir():
            file /= data.draw(st.sampled_from(["brokers.parquet", "partitions.parquet", "meta.json"]))
        content = bytearray(file.read_bytes())
        where = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[where] ^= data.draw(st.integers(1, 255))
        else:
            del content[where:]
        file.write_bytes(content)
        with contextlib.suppress(InputError):
            read_snapshot(Path(home) / form)


@given(documents())
@settings(max_examples=50)
def test_the_file_is_plain_json_of_the_document(document: Document) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "s.json"
        snapshot = build_snapshot(document)
        write_snapshot(snapshot, path)
        assert json.loads(path.read_text()) == to_document(snapshot)
