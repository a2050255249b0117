"""Compiled kernels that find records in batches and fold partition records straight into an image's columns.

Called by `fold` alone. They read bytes that others wrote: every read is checked against the end of its record. What
they cannot do (grow an array, a reassignment, anything but a partition) they leave to the caller, who goes on from there.
"""

from __future__ import annotations

from typing import Any

from cluster_model.metadata.batches import HEADER
from cluster_model.metadata.partition_table import FIRST_ROOM, FREE, MAX_PARTITIONS, POOL_END, STRUCTURE, USED
from cluster_model.metadata.schemas import PARTITION
from cluster_model.metadata.wire import UUID_BYTES
from kernels.compiled import inner, kernel, whole

# Why `fold_partitions` stopped.
DONE, OTHER, NO_ROOM, NO_SLOT, TOO_WIDE, REPEATED, MALFORMED, NO_TOPIC, NO_PARTITION = range(9)

# Bits of the `elr` column: whether the eligible and the last known leaders are any.
ELIGIBLE, LAST_KNOWN = 1, 2

_HEADER_BYTES = HEADER.size

Bytes = Any
"""uint8 [N] where kernels are compiled, `bytes` where not (which spares Python from numbers that overflow)."""


@inner
def _uvarint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    """Value and next place; place -1 where it does not end in time."""
    value = whole(0)
    shift = whole(0)
    while shift < 63:
        if at >= end:
            return value, whole(-1)
        byte = whole(data[at])
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    return value, whole(-1)


@inner
def _varint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    value, at = _uvarint(data, at, end)
    return (value >> 1) ^ -(value & 1), at


@inner
def _int32(data: Bytes, at: int) -> int:
    """Of four bytes that are known to be there."""
    value = whole(data[at]) << 24 | whole(data[at + 1]) << 16 | whole(data[at + 2]) << 8 | whole(data[at + 3])
    return value - (whole(1) << 32) if value >= whole(1) << 31 else value


@inner
def _int64(data: Bytes, at: int) -> int:
    return _int32(data, at) << 32 | (_int32(data, at + 4) & 0xFFFFFFFF)


@inner
def _list(data: Bytes, at: int, end: int, width: int) -> tuple[int, int, int]:
    """Length (-1 for null), start and next place of a list of elements of `width` bytes; place -1 where it is
    longer than its record."""
    length, at = _uvarint(data, at, end)
    if at < 0:
        return whole(0), at, at
    length -= 1
    after = at + max(length, 0) * width
    if length > end or after > end:
        return whole(0), at, whole(-1)
    return length, at, after


@kernel
def index_records(
    data: Bytes,
    starts: Any,
    ends: Any,
    counts: Any,
    bases: Any,
    offsets: Any,
    begins: Any,
    stops: Any,
    keys: Any,
    versions: Any,
) -> int:
    """Number of records found in the data batches at ``starts[b]:ends[b]``; ``-1 - n`` where record n is not one.

    For each record its log offset, where its fields start and stop, its api key and its version are written.
    """
    found = 0
    for b in range(len(starts)):
        at = starts[b] + _HEADER_BYTES
        end = ends[b]
        for _ in range(counts[b]):
            length, at = _varint(data, at, end)
            if at < 0 or length < 0 or at + length > end:
                return -1 - found
            stop = at + length
            at += 1  # attributes
            _, at = _varint(data, at, stop)  # time
            if at < 0:
                return -1 - found
            delta, at = _varint(data, at, stop)
            if at < 0:
                return -1 - found
            size, at = _varint(data, at, stop)
            if at < 0 or at + max(size, 0) > stop:
                return -1 - found
            at += max(size, 0)
            size, at = _varint(data, at, stop)
            if at < 0 or size < 0 or at + size > stop:
                return -1 - found
            finish = at + size
            frame, at = _uvarint(data, at, finish)
            if at < 0 or frame != 1:
                return -1 - found
            key, at = _uvarint(data, at, finish)
            if at < 0 or key > 0x7FFF:
                return -1 - found
            version, at = _uvarint(data, at, finish)
            if at < 0 or version > 0x7FFF:
                return -1 - found
            offsets[found] = bases[b] + delta
            begins[found] = at
            stops[found] = finish
            keys[found] = key
            versions[found] = version
            found += 1
            at = stop  # headers, of which this log has none
        if at != end:
            return -1 - found
    return found


@inner
def _topic_row(high: int, low: int, id_high: Any, id_low: Any, id_row: Any) -> int:
    """Row of a topic id in the open-addressed table; -1 where it is not there."""
    mask = len(id_row) - 1
    place = (low ^ (high >> 7)) & mask
    while id_row[place] != -1:
        if id_row[place] >= 0 and id_low[place] == low and id_high[place] == high:
            return whole(id_row[place])
        place = (place + 1) & mask
    return whole(-1)


@inner
def _is_in(data: Bytes, at: int, count: int, broker: int) -> bool:
    for i in range(count):  # noqa: SIM110
        if _int32(data, at + 4 * i) == broker:
            return True
    return False


@inner
def _tags(
    data: Bytes, at: int, end: int, eligible_tag: int, last_tag: int, found: Any
) -> bool:
    """Walk a record's tags, and leave what they say in `found`; False where they are not whole.

    `found` is int64 [9]: length and place of the ISR, length and place of the replicas (tags 0 and 2 of a
    change), whether a leader is there and which (tag 1), whether adding or removing replicas are (tags 3, 4),
    lengths of the eligible and the last known leaders; a length is -1 where the tag is absent or null.
    """
    changes = eligible_tag == 6
    for i in range(9):
        found[i] = -1
    found[4] = 0
    found[6] = 0
    count, at = _uvarint(data, at, end)
    if at < 0:
        return False
    for _ in range(count):
        tag, at = _uvarint(data, at, end)
        if at < 0:
            return False
        size, at = _uvarint(data, at, end)
        if at < 0 or size > end - at:
            return False
        stop = at + size
        if changes and tag == 1:
            if size != 4:
                return False
            found[4] = 1
            found[5] = _int32(data, at)
        elif tag in (eligible_tag, last_tag) or (changes and tag in (0, 2, 3, 4)):
            length, begin, after = _list(data, at, stop, 4)
            if after != stop:
                return False
            if tag == eligible_tag:
                found[7] = length
            elif tag == last_tag:
                found[8] = length
            elif tag == 0:
                found[0] = length
                found[1] = begin
            elif tag == 2:
                found[2] = length
                found[3] = begin
            elif length >= 0:
                found[6] = 1
        at = stop
    return at == end


@inner
def _take_slot(row: int, partition: int, topic_start: Any, topic_room: Any, pool: Any, counters: Any, columns: int, free: Any) -> int:
    """A slot for a new partition; ``-2 - NO_ROOM`` or ``-2 - NO_SLOT`` where the caller must make room first."""
    room = whole(topic_room[row])
    if partition >= room:
        wanted = max(room * 2, FIRST_ROOM)
        while wanted <= partition:
            wanted *= 2
        start = counters[POOL_END]
        if start + wanted > len(pool):
            return whole(-2 - NO_ROOM)
        for i in range(room):
            pool[start + i] = pool[topic_start[row] + i]
        for i in range(room, wanted):
            pool[start + i] = -1
        counters[POOL_END] = start + wanted
        topic_start[row] = start
        topic_room[row] = wanted
    if counters[FREE] > 0:
        counters[FREE] -= 1
        slot = whole(free[counters[FREE]])
    else:
        if counters[USED] >= columns:
            return whole(-2 - NO_SLOT)
        slot = counters[USED]
        counters[USED] += 1
    pool[topic_start[row] + partition] = slot
    counters[STRUCTURE] += 1
    return slot


@kernel
def fold_partitions(
    data: Bytes,
    begins: Any,
    stops: Any,
    keys: Any,
    versions: Any,
    first: int,
    last: int,
    id_high: Any,
    id_low: Any,
    id_row: Any,
    topic_start: Any,
    topic_room: Any,
    pool: Any,
    counters: Any,
    topic_row: Any,
    number: Any,
    leader: Any,
    replicas: Any,
    in_sync: Any,
    epoch: Any,
    elr: Any,
    free: Any,
    stamp: Any,
    run: int,
    touched: Any,
    found: Any,
    kept: Any,
) -> tuple[int, int]:
    """Fold partition records ``first:last`` into the columns; why it stopped, and before which record.

    Parameters
    ----------
    stamp, run
        A slot whose stamp is `run` already was changed in this run: the kernel stops there (`REPEATED`), so that
        no state in between is lost. `run` 0 does not look.
    touched
        int32 [N]: receives the slot of record i at place i, -1 where only its epoch, directories or eligible
        leaders changed.
    found, kept
        int64 [9] and int32 [W]: scratch space.

    Notes
    -----
    A record is either folded whole or not at all.
    """
    width = replicas.shape[1]
    for i in range(first, last):
        at = whole(begins[i])
        end = whole(stops[i])
        if at + 4 + UUID_BYTES > end:
            return MALFORMED, i
        partition = _int32(data, at)
        row = _topic_row(_int64(data, at + 4), _int64(data, at + 12), id_high, id_low, id_row)
        at += 4 + UUID_BYTES
        if partition < 0 or partition >= MAX_PARTITIONS:
            return MALFORMED, i
        slot = whole(-1)
        if row >= 0 and partition < topic_room[row]:
            slot = whole(pool[topic_start[row] + partition])

        if keys[i] == PARTITION:
            replica_count, replica_at, at = _list(data, at, end, 4)
            if at < 0 or replica_count < 1:
                return MALFORMED, i
            sync_count, sync_at, at = _list(data, at, end, 4)
            if at < 0:
                return MALFORMED, i
            removing_count, _, at = _list(data, at, end, 4)
            if at < 0:
                return MALFORMED, i
            adding_count, _, at = _list(data, at, end, 4)
            if at < 0 or at + 12 > end:
                return MALFORMED, i
            new_leader = _int32(data, at)
            new_epoch = _int32(data, at + 8)
            at += 12
            if versions[i] >= 1:
                _, _, at = _list(data, at, end, UUID_BYTES)
                if at < 0:
                    return MALFORMED, i
            if not _tags(data, at, end, 1, 2, found):
                return MALFORMED, i
            if removing_count > 0 or adding_count > 0:
                return OTHER, i
            if row < 0:
                return NO_TOPIC, i
        else:
            if not _tags(data, at, end, 6, 7, found):
                return MALFORMED, i
            if found[6] == 1:
                return OTHER, i
            if row < 0:
                return NO_TOPIC, i
            if slot < 0:
                return NO_PARTITION, i
            sync_count, sync_at = found[0], found[1]
            replica_count, replica_at = found[2], found[3]
            if replica_count == 0:
                return MALFORMED, i
            new_leader = found[5] if found[4] == 1 else whole(leader[slot])
            new_epoch = whole(epoch[slot]) + 1
        if replica_count > width:
            return TOO_WIDE, i
        for j in range(replica_count):
            if _int32(data, replica_at + 4 * j) < 0:
                return MALFORMED, i
        visible = keys[i] == PARTITION or sync_count >= 0 or replica_count >= 0 or found[4] == 1
        if run > 0 and slot >= 0 and visible and stamp[slot] == run:
            return REPEATED, i

        if keys[i] == PARTITION:
            if slot < 0:
                slot = _take_slot(row, partition, topic_start, topic_room, pool, counters, len(topic_row), free)
                if slot < 0:
                    return -2 - slot, i
                topic_row[slot] = row
                number[slot] = partition
            elr[slot] = 0
        elif sync_count < 0 and replica_count >= 0:  # the ISR stays, the replicas around it change
            for j in range(width):
                kept[j] = replicas[slot, j] if in_sync[slot, j] else -1
        if replica_count >= 0:
            for j in range(width):
                replicas[slot, j] = _int32(data, replica_at + 4 * j) if j < replica_count else -1
        if sync_count >= 0:
            for j in range(width):
                broker = whole(replicas[slot, j])
                in_sync[slot, j] = broker >= 0 and _is_in(data, sync_at, sync_count, broker)
        elif replica_count >= 0:
            for j in range(width):
                stays = False
                for k in range(width):
                    if kept[k] >= 0 and kept[k] == replicas[slot, j]:
                        stays = True
                in_sync[slot, j] = stays
        leader[slot] = new_leader
        epoch[slot] = new_epoch
        if found[7] >= 0:
            elr[slot] = (elr[slot] | ELIGIBLE) if found[7] > 0 else (elr[slot] & ~ELIGIBLE)
        if found[8] >= 0:
            elr[slot] = (elr[slot] | LAST_KNOWN) if found[8] > 0 else (elr[slot] & ~LAST_KNOWN)
        touched[i] = -1
        if visible:
            stamp[slot] = run
            touched[i] = slot
    return DONE, last
