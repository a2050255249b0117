"""The digest of a snapshot: one hash over hashes of blocks of partitions, so that a few changed rows cost a few blocks.

Called by `Snapshot` only. Content is what a snapshot file can say: the width of the padding in `replicas`, the sign of a zero, the bits
of a NaN, resources without any value and follower loads that are not given do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from cluster_model.snapshot import BoolArray, FloatArray, Snapshot

BLOCK = 256  # partitions
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
    blocks = np.unique(rows // BLOCK)
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
    """uint8 [n, 32]: a hash of each block."""
    if not len(blocks):
        return np.zeros((0, 32), np.uint8)
    total = snapshot.partition_count
    whole = len(blocks) == -(-total // BLOCK)
    rows = (blocks[:, None] * BLOCK + np.arange(BLOCK)).ravel()
    part: slice | npt.NDArray[np.int64] = slice(None) if whole else rows[rows < total]
    starts = np.arange(len(blocks)) * BLOCK
    given = snapshot.has_follower_load[part]
    always = [
        _bytes(column[part])
        for column in (snapshot.partition_topic, snapshot.partition_number, snapshot.leader, snapshot.has_follower_load)
    ]
    lists = np.ascontiguousarray(snapshot.replicas[part])
    width = np.zeros(len(blocks), np.int64)
    for s in range(lists.shape[1]):
        width[_any(lists[:, s] >= 0, starts)] = s + 1
    loads = [
        (label + kind, _bytes(values), _any(present, starts).tolist())
        for kind, table, where in ((b"leader", snapshot.leader_load, np.True_), (b"follower", snapshot.follower_load, given))
        for label, values, present in _tables({name: values[part] for name, values in table.items()}, where)
    ]
    leaves = bytearray()
    for n, (start, wide) in enumerate(zip(starts.tolist(), width.tolist(), strict=True)):
        end = start + BLOCK
        h = hashlib.sha256(b"%d" % wide)
        h.update(lists[start:end, :wide].tobytes())
        for column in always:
            h.update(column[start:end])
        for label, values, present in loads:
            if present[n]:
                h.update(label)
                h.update(values[start:end])
        leaves += h.digest()
    return np.frombuffer(bytes(leaves), np.uint8).reshape(-1, 32)


def _any(flags: BoolArray, starts: npt.NDArray[np.int64]) -> BoolArray:
    """bool [n]: whether any flag of each block is set."""
    if flags.all():
        return np.ones(len(starts), np.bool_)
    return np.asarray(np.logical_or.reduceat(flags, starts), np.bool_)


def _bytes(column: npt.NDArray[np.generic]) -> memoryview:
    """The bytes of a column, sliced by row."""
    values = np.ascontiguousarray(column)
    return values.view(np.uint8).reshape(len(values), -1).data
