"""Snapshot documents (the JSON shape of a snapshot file) to `Snapshot` and back.

Called by `cluster_model.files`, by captures of a live cluster, and by tests. Reads no files. Checks
run on whole columns; only a document in which something is wrong is walked partition by partition,
to name every problem.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, cast

import numpy as np

from cluster_model import refusals
from cluster_model.columns import Doubtful, LongArray, PartitionColumns, assemble, broker_columns
from cluster_model.directories import directory_documents
from cluster_model.errors import InputError, Problem
from cluster_model.kinds import SNAPSHOT, other_kind
from cluster_model.resources import MEASURED
from cluster_model.snapshot import BrokerState, FloatArray, Snapshot


def build_snapshot(document: Mapping[str, object], name: str = "snapshot") -> Snapshot:
    """The snapshot that a document describes.

    Parameters
    ----------
    document
        What `json.loads` gives for a snapshot file; docs/snapshot-file.md has the layout. Not changed.
    name
        What error messages call the document, such as its path.

    Raises
    ------
    InputError
        Something in the document is refused; carries every problem with its place.
    """
    given: object = document
    if not isinstance(given, Mapping):
        shape = f"expected an object with version, brokers and partitions, found {refusals.found(document)}"
        raise InputError(name, [Problem("", shape)])
    if other := other_kind(document, SNAPSHOT):
        raise InputError(name, [Problem("", other)])
    problems = refusals.head_problems(document)
    brokers, partitions = document.get("brokers"), document.get("partitions")
    if "brokers" in document:
        problems += refusals.broker_problems(brokers)
    if not problems:
        try:
            columns = _partition_columns(partitions)
            return assemble(document, broker_columns(cast(Sequence[Mapping[str, object]], brokers)), columns)
        except Doubtful:
            pass
    if "partitions" in document:
        problems += refusals.partition_problems(partitions, brokers)
    if not problems:
        raise AssertionError(f"{name}: refused by the array checks, but no problem was found in words")
    raise InputError(name, problems)


def to_document(snapshot: Snapshot) -> dict[str, object]:
    """The document of a snapshot; `build_snapshot` gives an equal snapshot back."""
    with collector_paused():
        return {
            **head_document(snapshot),
            "brokers": broker_documents(snapshot),
            "partitions": list(partition_documents(snapshot)),
        }


def head_document(snapshot: Snapshot) -> dict[str, object]:
    """The document's keys other than brokers and partitions."""
    head: dict[str, object] = {
        "version": refusals.VERSION,
        "cluster_id": snapshot.cluster_id,
        "taken_at": snapshot.taken_at,
        "storage": snapshot.storage,
    }
    if snapshot.notes:
        head["notes"] = list(snapshot.notes)
    return head


def broker_documents(snapshot: Snapshot) -> list[dict[str, object]]:
    """Brokers in order of id."""
    documents: list[dict[str, object]] = []
    for row, broker_id in enumerate(snapshot.broker_ids.tolist()):
        broker: dict[str, object] = {"id": broker_id}
        if snapshot.racks[row] is not None:
            broker["rack"] = snapshot.racks[row]
        broker["state"] = BrokerState(int(snapshot.broker_states[row])).label
        amounts = {n: float(a[row]) for n, a in snapshot.capacity.items() if not np.isnan(a[row])}
        if amounts:
            broker["capacity"] = amounts
        if broker_id in snapshot.directories:
            broker["directories"] = directory_documents(snapshot.directories[broker_id])
        documents.append(broker)
    return documents


def partition_documents(snapshot: Snapshot) -> Iterator[dict[str, object]]:
    """Partitions in canonical order, one at a time."""
    ids = np.append(snapshot.broker_ids, np.int32(-1)).astype(object)
    topics = snapshot.topics
    leader_loads = _load_documents(snapshot.leader_load, snapshot.partition_count)
    follower_loads = _load_documents(snapshot.follower_load, snapshot.partition_count)
    for topic, number, rows, factor, leader, leading, following, given, held in zip(
        snapshot.partition_topic.tolist(),
        snapshot.partition_number.tolist(),
        snapshot.replicas.tolist(),
        snapshot.replication_factor.tolist(),
        snapshot.leader.tolist(),
        leader_loads,
        follower_loads,
        snapshot.has_follower_load.tolist(),
        itertools.repeat(None, snapshot.partition_count) if snapshot.replica_directory is None else snapshot.replica_directory.tolist(),
        strict=True,
    ):
        partition: dict[str, object] = {
            "topic": topics[topic],
            "partition": number,
            "replicas": [ids[row] for row in rows[:factor]],
            "leader": ids[leader] if leader >= 0 else None,
        }
        if leading:
            partition["leader_load"] = leading
        if given:
            partition["follower_load"] = following
        if held is not None and max(held[:factor]) >= 0:
            partition["directories"] = [at if at >= 0 else None for at in held[:factor]]
        yield partition


def _load_documents(table: Mapping[str, FloatArray], count: int) -> Iterator[dict[str, float]]:
    """One object of resource to amount a partition, without what is absent."""
    names = [name for name in MEASURED if name in table]
    if not names:
        return iter([{} for _ in range(count)])
    rows = zip(*(table[name].tolist() for name in names), strict=True)
    return ({n: v for n, v in zip(names, row, strict=True) if v == v} for row in rows)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Halves the time of building millions of small objects; nothing in here makes cycles."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


_ALLOWED = {*refusals.PARTITION_KEYS, *refusals.OPTIONAL_PARTITION_KEYS}


def _partition_columns(partitions: object) -> PartitionColumns:
    """Columns of partition documents; `Doubtful` where a value is not of its kind."""
    _kinds([partitions], (list, tuple))
    rows = cast(Sequence[Mapping[str, Any]], partitions)
    _kinds(rows, Mapping)
    if not _ALLOWED.issuperset(chain.from_iterable(rows)):
        raise Doubtful
    try:
        names = [row["topic"] for row in rows]
        numbers = [row["partition"] for row in rows]
        lists = [row["replicas"] for row in rows]
    except KeyError:
        raise Doubtful from None
    _kinds(names, str)
    topics = tuple(sorted(set(names)))
    row_of = {name: row for row, name in enumerate(topics)}
    _kinds(lists, (list, tuple))
    leader = [row.get("leader") for row in rows]
    absent = leader.count(None)
    wires = _whole([-1 if v is None else v for v in leader]) if absent else _whole(leader)
    if int((wires == -1).sum()) != absent:
        raise Doubtful
    following = [row.get("follower_load") for row in rows]
    return PartitionColumns(
        topics=topics,
        topic=np.fromiter(map(row_of.__getitem__, names), np.int64, len(names)),
        number=_whole(numbers),
        hosts=_whole(list(chain.from_iterable(lists))),
        factor=np.fromiter(map(len, lists), np.int64, len(lists)),
        leader=wires,
        leader_load=_loads([row.get("leader_load") for row in rows]),
        follower_load=_loads(following),
        has_follower_load=np.fromiter((load is not None for load in following), np.bool_, len(following)),
        directory=_directories([row.get("directories") for row in rows], list(map(len, lists))),
    )


def _directories(held: list[Sequence[Any] | None], factor: list[int]) -> LongArray | None:
    """int64 [replicas], list after list: positions of directories, -1 where one is not told; None where none is."""
    if held.count(None) == len(held):
        return None
    _kinds(held, (list, tuple, type(None)))
    if any(of is not None and len(of) != count for of, count in zip(held, factor, strict=True)):
        raise Doubtful
    flat = list(chain.from_iterable([None] * count if of is None else of for of, count in zip(held, factor, strict=True)))
    found = _whole([-1 if at is None else at for at in flat])
    if int((found < 0).sum()) != flat.count(None):
        raise Doubtful
    return found


def _kinds(values: Sequence[object], accepted: type | tuple[type, ...]) -> set[type]:
    """The types of the values, all of which must be of an accepted kind."""
    kinds: set[type] = set(map(type, values))
    if not all(refusals.is_kind(kind, accepted) for kind in kinds):
        raise Doubtful
    return kinds


def _whole(values: Sequence[Any]) -> LongArray:
    _kinds(values, int)
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        raise Doubtful from None


def _loads(loads: list[Mapping[str, Any] | None]) -> dict[str, FloatArray]:
    """Resource to float64 [P], NaN where a load does not give it."""
    _kinds(loads, (Mapping, type(None)))
    empty: dict[str, Any] = {}
    given = [empty if load is None else load for load in loads]
    names = set(chain.from_iterable(given))
    if not MEASURED.keys() >= names:
        raise Doubtful
    return {name: _column([load.get(name) for load in given]) for name in sorted(names)}


def _column(values: list[Any]) -> FloatArray:
    """float64 of numbers and None; `Doubtful` also for a NaN that stands in the document."""
    kinds = _kinds(values, (int, float, type(None)))
    absent = 0
    if type(None) in kinds:
        absent = values.count(None)
        values = [np.nan if v is None else v for v in values]
    try:
        column = np.fromiter(values, np.float64, len(values))
    except OverflowError:
        raise Doubtful from None
    if int(np.isnan(column).sum()) != absent:
        raise Doubtful
    return column
