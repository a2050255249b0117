"""Partitions and brokers as loose columns, and the one way from them to a `Snapshot`.

Both file forms end here: `cluster_model.build` (documents) and `cluster_model.parquet` (tables) turn
what they read into columns, and `assemble` checks them as arrays, sorts them and freezes them. It
only sees *that* something is wrong (`Doubtful`); `cluster_model.refusals` then says what and where.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from cluster_model.directories import Directories, DirectoryArray, directories_in
from cluster_model.refusals import MAX_ID, is_topic_name
from cluster_model.resources import LARGEST_AMOUNT, LEAST_AMOUNT
from cluster_model.snapshot import STATES_BY_LABEL, BoolArray, BrokerState, FloatArray, IntArray, Snapshot, Storage

LongArray = npt.NDArray[np.int64]


class Doubtful(Exception):
    """The array checks found something wrong; only the slow walk can say what. Never shown to a person."""


@dataclass(frozen=True, slots=True)
class BrokerColumns:
    """Brokers by id: `ids` int32 [B] ascending, `states` int8 [B], B `racks`, `capacity` float64 [B] each; log `directories`."""

    ids: IntArray
    states: npt.NDArray[np.int8]
    racks: tuple[str | None, ...]
    capacity: dict[str, FloatArray]
    directories: Directories


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """Partitions in the order of the file.

    Attributes
    ----------
    topics
        Names, ascending, each used by some partition.
    topic, number
        int64 [P]: row in `topics`, number within the topic.
    hosts, factor
        int64 [replicas] wire ids, list after list; int64 [P] length of each list.
    leader
        int64 [P] wire id, -1 where there is none.
    leader_load, follower_load
        resource -> float64 [P], NaN where absent.
    has_follower_load
        bool [P].
    directory
        int64 [replicas], as `hosts`: position of the log directory in those of its broker, -1 where it is not known; None: of none.
    """

    topics: tuple[str, ...]
    topic: LongArray
    number: LongArray
    hosts: LongArray
    factor: LongArray
    leader: LongArray
    leader_load: dict[str, FloatArray]
    follower_load: dict[str, FloatArray]
    has_follower_load: BoolArray
    directory: LongArray | None = None


def broker_columns(brokers: Sequence[Mapping[str, object]]) -> BrokerColumns:
    """Columns of broker documents that were found to be without problems."""
    rows = sorted(brokers, key=lambda b: cast(int, b["id"]))
    states = [cast(str | None, b.get("state")) for b in rows]
    given = [cast(Mapping[str, float], b.get("capacity") or {}) for b in rows]
    names = sorted({name for amounts in given for name in amounts})
    return BrokerColumns(
        ids=np.array([b["id"] for b in rows], dtype=np.int32),
        states=np.array([STATES_BY_LABEL[s] if s else BrokerState.ACTIVE for s in states], dtype=np.int8),
        racks=tuple(cast(str | None, b.get("rack")) for b in rows),
        capacity=_reported({n: _amounts([amounts.get(n) for amounts in given]) for n in names}),
        directories=directories_in(rows),
    )


def _amounts(values: Sequence[float | None]) -> FloatArray:
    return _plain(np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64))


def _plain(amounts: FloatArray) -> FloatArray:
    """One bit pattern for zero, also for what is too small to be an amount, and one for NaN: equal amounts are equal bytes."""
    return np.where(np.isnan(amounts), np.nan, np.where(amounts < LEAST_AMOUNT, 0.0, amounts))


def assemble(head: Mapping[str, object], brokers: BrokerColumns, columns: PartitionColumns) -> Snapshot:
    """The snapshot of a checked head, checked brokers and columns.

    Raises
    ------
    Doubtful
        A rule about partitions is broken somewhere.

    Notes
    -----
    O(replicas log RF + P log P), no Python loop over partitions.
    """
    order = _order(columns)
    hosts = _rows_of(columns.hosts, brokers.ids)
    replicas = _matrix(hosts, columns.factor)
    leader = np.full(len(columns.leader), -1, dtype=np.int32)
    led = columns.leader != -1
    leader[led] = _rows_of(columns.leader[led], brokers.ids)
    _check_replicas(replicas, leader)
    for table in (columns.leader_load, columns.follower_load):
        for amounts in table.values():
            if bool(((amounts < 0) | (amounts > LARGEST_AMOUNT)).any()):
                raise Doubtful
    return Snapshot(
        cluster_id=cast(str, head["cluster_id"]),
        taken_at=cast(str, head["taken_at"]),
        storage=cast(Storage, head["storage"]),
        broker_ids=brokers.ids,
        broker_states=brokers.states,
        racks=brokers.racks,
        capacity=brokers.capacity,
        topics=columns.topics,
        partition_topic=columns.topic[order].astype(np.int32),
        partition_number=columns.number[order].astype(np.int32),
        replicas=replicas[order],
        leader=leader[order],
        leader_load=_reported({n: _plain(a[order]) for n, a in columns.leader_load.items()}),
        follower_load=_reported({n: _plain(a[order]) for n, a in columns.follower_load.items()}),
        has_follower_load=columns.has_follower_load[order],
        notes=tuple(cast(Sequence[str], head.get("notes") or ())),
        directories=brokers.directories,
        replica_directory=_held(brokers, columns, hosts, order),
    )


def _held(brokers: BrokerColumns, columns: PartitionColumns, hosts: IntArray, order: LongArray) -> DirectoryArray | None:
    """int8 [P, R] in canonical order; None where no replica's directory is known."""
    if columns.directory is None or not bool((columns.directory >= 0).any()):
        return None
    known = np.array([len(brokers.directories.get(int(b), ())) for b in brokers.ids])
    if bool((columns.directory >= known[hosts]).any()):
        raise Doubtful
    return _matrix(columns.directory.astype(np.int32), columns.factor)[order].astype(np.int8)


def _order(columns: PartitionColumns) -> LongArray:
    """Rows in canonical order, after topics and numbers were checked."""
    if not all(map(is_topic_name, columns.topics)):
        raise Doubtful
    if bool(((columns.number < 0) | (columns.number > MAX_ID)).any()):
        raise Doubtful
    key = columns.topic * (MAX_ID + 1) + columns.number
    order = np.argsort(key, kind="stable")
    if bool((np.diff(key[order]) == 0).any()):
        raise Doubtful
    return order


def _rows_of(ids: LongArray, broker_ids: IntArray) -> IntArray:
    """Broker rows, int32, of wire ids."""
    wide = broker_ids.astype(np.int64)
    rows = np.minimum(np.searchsorted(wide, ids), len(wide) - 1)
    if not np.array_equal(wide[rows], ids):
        raise Doubtful
    return rows.astype(np.int32)


def _matrix(hosts: IntArray, factor: LongArray) -> IntArray:
    """Replica lists as int32 [P, R], -1 beyond each list's length."""
    if bool((factor == 0).any()):
        raise Doubtful
    width = int(factor.max()) if len(factor) else 1
    matrix = np.full((len(factor), width), -1, dtype=np.int32)
    matrix[np.arange(width) < factor[:, None]] = hosts
    return matrix


def _check_replicas(replicas: IntArray, leader: IntArray) -> None:
    ordered = np.sort(replicas, axis=1)
    if bool(((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any()):
        raise Doubtful
    if not bool(((replicas == leader[:, None]).any(axis=1) | (leader < 0)).all()):
        raise Doubtful


def _reported(table: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """The table without resources that nothing gives, in order of name."""
    return {name: table[name] for name in sorted(table) if not bool(np.isnan(table[name]).all())}
