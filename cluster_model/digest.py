"""The digest of a snapshot: one hash over hashes of blocks of partitions, so that a few changed rows cost a few blocks.

Called by `Snapshot` only. Content is what a snapshot file can say: the width of the padding in `replicas`, the sign of a zero, the bits
of a NaN, resources without any value and follower loads that are not given do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from cluster_model.snapshot import BoolArray, FloatArray, Snapshot

BLOCK = 64  # partitions: where some hundreds are changed, hardly more than those are hashed again
TOGETHER = 256  # blocks: their columns stay in the cache
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """A snapshot's `digest` (``sha256:…``), and what it is made of."""

    digest: str
    topics: tuple[str, ...]
    names: bytes  # hash of `topics`
    leaves: Bytes  # uint8 [blocks, 32]


def fingerprint(snapshot: Snapshot) -> Fingerprint:
    """Of everything in a snapshot but `notes`. O(partitions)."""
    blocks = np.arange(-(-snapshot.partition_count // BLOCK))
    return _fingerprint(snapshot, snapshot.topics, _hashed_names(snapshot.topics), _leaves(snapshot, blocks))


def renewed(before: Fingerprint, snapshot: Snapshot, rows: npt.NDArray[np.int64]) -> Fingerprint:
    """`fingerprint(snapshot)`, where only partitions `rows` differ from the one that `before` is of."""
    leaves = before.leaves.copy()
    changed = np.zeros(len(leaves), np.bool_)
    changed[rows // BLOCK] = True
    blocks = np.flatnonzero(changed)
    leaves[blocks] = _leaves(snapshot, blocks)
    same = snapshot.topics is before.topics or snapshot.topics == before.topics
    return _fingerprint(snapshot, snapshot.topics, before.names if same else _hashed_names(snapshot.topics), leaves)


def _fingerprint(snapshot: Snapshot, topics: tuple[str, ...], names: bytes, leaves: Bytes) -> Fingerprint:
    h = hashlib.sha256()
    head = (snapshot.cluster_id, snapshot.taken_at, snapshot.storage, snapshot.racks, snapshot.partition_count)
    h.update(repr(head).encode())
    h.update(names)
    h.update(snapshot.broker_ids.tobytes())
    h.update(snapshot.broker_states.tobytes())
    for label, values, present in _tables(snapshot.capacity, np.True_):
        if present.any():
            h.update(label + values.tobytes())
    if snapshot.directories:
        h.update(repr([(broker, *snapshot.directories[broker]) for broker in sorted(snapshot.directories)]).encode())
    h.update(leaves.tobytes())
    return Fingerprint("sha256:" + h.hexdigest(), topics, names, leaves)


def _hashed_names(topics: tuple[str, ...]) -> bytes:
    lengths = np.fromiter(map(len, topics), np.int64, len(topics))
    return hashlib.sha256(lengths.tobytes() + "".join(topics).encode("utf-8", "surrogatepass")).digest()


def _tables(table: Mapping[str, FloatArray], given: BoolArray | np.bool_) -> list[tuple[bytes, FloatArray, BoolArray]]:
    """Label, canonical values and what is present of each resource, by name."""
    found = []
    for name in sorted(table):
        present = ~np.isnan(table[name]) & given
        values = table[name] + 0.0
        found.append((name.encode() + b"\0", values if present.all() else np.where(present, values, np.nan), present))
    return found


def _leaves(snapshot: Snapshot, blocks: npt.NDArray[np.int64]) -> Bytes:
    """uint8 [n, 32]: a hash of each block; `blocks` ascend."""
    leaves = np.empty((len(blocks), 32), np.uint8)
    whole = snapshot.partition_count // BLOCK
    for at in range(0, len(blocks), TOGETHER):
        some = blocks[at : at + TOGETHER]
        full = some[some < whole]
        leaves[at : at + len(full)] = _hashed(snapshot, whole, full)
        if len(full) < len(some):
            leaves[at + len(full)] = _hashed(snapshot, whole, None)
    return leaves


def _hashed(snapshot: Snapshot, whole: int, blocks: npt.NDArray[np.int64] | None) -> Bytes:
    """uint8 [n, 32]: a hash of each of `blocks`, which are full, or of the last (None), which is not; `whole` blocks are."""
    if blocks is not None and not len(blocks):
        return np.zeros((0, 32), np.uint8)

    def taken(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """[n, rows in a block, …]"""
        if blocks is None:
            return column[None, whole * BLOCK :]
        first, last = int(blocks[0]), int(blocks[-1])
        if last - first + 1 == len(blocks):
            return column[first * BLOCK : (last + 1) * BLOCK].reshape(-1, BLOCK, *column.shape[1:])
        return column[: whole * BLOCK].reshape(whole, BLOCK, *column.shape[1:])[blocks]

    lists = taken(snapshot.replicas)
    count, slots = len(lists), lists.shape[2]
    width = np.zeros(count, np.int64)
    for s in range(slots):
        width[(lists[:, :, s] >= 0).any(axis=1)] = s + 1
    given = taken(snapshot.has_follower_load)
    always = [_bytes(taken(column)) for column in (snapshot.partition_topic, snapshot.partition_number, snapshot.leader)]
    always.append(_bytes(given))
    loads = [
        (label + kind, _bytes(values), present.any(axis=1))
        for kind, table, where in ((b"leader", snapshot.leader_load, np.True_), (b"follower", snapshot.follower_load, given))
        for label, values, present in _tables({name: taken(values) for name, values in table.items()}, where)
    ]
    held = None if snapshot.replica_directory is None else taken(snapshot.replica_directory)
    told = np.zeros(count, np.bool_) if held is None else (held >= 0).any(axis=(1, 2))
    leaves = np.empty((count, 32), np.uint8)
    shapes = np.stack([width, told, *(present for _, _, present in loads)], axis=1)  # blocks of one shape are put together at once
    for shape in np.unique(shapes, axis=0) if (shapes != shapes[0]).any() else shapes[:1]:
        rows = np.flatnonzero((shapes == shape).all(axis=1))
        wide, in_directories, *there = shape.tolist()
        parts = [_label(b"%d" % wide, count), _bytes(lists[:, :, :wide]), *always]
        if held is not None and in_directories:
            parts += [_label(b"directories", count), _bytes(held[:, :, :wide])]
        for (label, values, _), present in zip(loads, there, strict=True):
            if present:
                parts += [_label(label, count), values]
        texts = np.concatenate(parts if len(rows) == count else [part[rows] for part in parts], axis=1)
        leaves[rows] = np.frombuffer(b"".join([hashlib.sha256(text).digest() for text in texts]), np.uint8).reshape(-1, 32)
    return leaves


def _label(label: bytes, count: int) -> Bytes:
    """uint8 [count, n]: the same in every row."""
    return np.frombuffer(label * count, np.uint8).reshape(count, len(label))


def _bytes(column: npt.NDArray[Any]) -> Bytes:
    """uint8 [n, bytes of a block]."""
    return np.ascontiguousarray(column).view(np.uint8).reshape(len(column), -1)
