"""Compiled loops over slots and partitions of the live model: counting samples, rolling windows, reading loads.

Called by `cluster_model.windows`, `placement` and `loads` alone, which say what the arrays mean. A *total* is
float32 [slots, 2]: time-weighted sum and weight in ms of the windows of a horizon. Weight 0: nothing is known;
below 0: sum and weight are of the newest window that had samples, which is not within the horizon any more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import FloatArray, IntArray
from kernels.compiled import kernel, part, whole

LongArray = npt.NDArray[np.int64]
Totals = npt.NDArray[np.float32]
Flags = npt.NDArray[np.uint8]

# What is said of one load, bits.
ESTIMATED, STALE, UNKNOWN = 1, 2, 4

LARGEST = 1e18  # no rate or size of one replica is; larger values are a reporter's mistake


@part
def _count(ring: Totals, total: Totals, row: int, slot: int, amount: float, weight: float) -> None:
    if total[slot, 1] < 0.0:
        total[slot, 0] = 0.0
        total[slot, 1] = 0.0
    ring[row, slot, 0] += amount
    ring[row, slot, 1] += weight
    total[slot, 0] += amount
    total[slot, 1] += weight


@kernel
def count_rates(
    slots: IntArray,
    values: FloatArray,
    time_ms: int,
    times: LongArray,
    ring_a: Totals,
    total_a: Totals,
    row_a: int,
    weight_a: float,
    ring_b: Totals,
    total_b: Totals,
    row_b: int,
    weight_b: float,
) -> tuple[int, int, int]:
    """Count values, float64 [N], for slots, int32 [N] (-1: pass over), into two horizons; how many were counted,
    made no sense, and were too old for both.

    `row_*` is the window's row in the ring, -1 where the ring has gone on; then the value is only the last known
    one of a slot of which nothing newer is known.
    """
    counted, senseless, old = 0, 0, 0
    for i in range(len(slots)):
        slot = slots[i]
        value = values[i]
        if slot < 0 or value != value:
            continue
        if value < 0.0 or value >= LARGEST:
            senseless += 1
            continue
        newest = time_ms >= times[slot]
        taken = False
        if row_a >= 0:
            _count(ring_a, total_a, row_a, slot, value * weight_a, weight_a)
            taken = True
        elif newest and total_a[slot, 1] <= 0.0:
            total_a[slot, 0] = -value
            total_a[slot, 1] = -1.0
            taken = True
        if row_b >= 0:
            _count(ring_b, total_b, row_b, slot, value * weight_b, weight_b)
            taken = True
        elif newest and total_b[slot, 1] <= 0.0:
            total_b[slot, 0] = -value
            total_b[slot, 1] = -1.0
            taken = True
        if newest:
            times[slot] = time_ms
        if taken:
            counted += 1
        else:
            old += 1
    return counted, senseless, old


@kernel
def keep_newest(
    slots: IntArray, values: FloatArray, time_ms: int, times: LongArray, total: Totals
) -> tuple[int, int, int]:
    """As `count_rates`, for a gauge: the newest value is kept."""
    counted, senseless, old = 0, 0, 0
    for i in range(len(slots)):
        slot = slots[i]
        value = values[i]
        if slot < 0 or value != value:
            continue
        if value < 0.0 or value >= LARGEST:
            senseless += 1
        elif time_ms >= times[slot]:
            times[slot] = time_ms
            total[slot, 0] = value
            total[slot, 1] = 1.0
            counted += 1
        else:
            old += 1
    return counted, senseless, old


@kernel
def roll(ring: Totals, total: Totals, gone: LongArray) -> None:
    """Clear the windows in rows `gone`, int64 [N], oldest first, and take them out of the totals."""
    rows = ring.shape[0]
    for slot in range(ring.shape[1]):
        last = -1
        for i in range(len(gone)):
            if ring[gone[i], slot, 1] > 0.0:
                last = gone[i]
        if last < 0:
            continue
        amount, weight = ring[last, slot, 0], ring[last, slot, 1]
        for i in range(len(gone)):
            ring[gone[i], slot, 0] = 0.0
            ring[gone[i], slot, 1] = 0.0
        total[slot, 0] = 0.0
        total[slot, 1] = 0.0
        for row in range(rows):
            total[slot, 0] += ring[row, slot, 0]
            total[slot, 1] += ring[row, slot, 1]
        if total[slot, 1] == 0.0:
            total[slot, 0] = -amount
            total[slot, 1] = -weight


@kernel
def read(
    total: Totals, times: LongArray, slots: IntArray, oldest_ms: int, out: FloatArray, flags: Flags
) -> None:
    """Means, float64 [N], of slots, int32 [N], and what is said of them, uint8 [N]; both written to.

    NaN and `UNKNOWN` where nothing is known, `STALE` where the newest sample is older than `oldest_ms`.
    """
    for i in range(len(slots)):
        slot = slots[i]
        out[i] = np.nan
        flags[i] = UNKNOWN
        if slot < len(times):
            weight = np.float64(total[slot, 1])
            if weight != 0.0:
                out[i] = np.float64(total[slot, 0]) / weight
                flags[i] = STALE if times[slot] < oldest_ms else 0


@part
def _row_of(id: int, keys: LongArray, rows: LongArray) -> int:
    """Row of a wire id in a table with open addressing, -1 where it is not in it."""
    mask = len(keys) - 1
    at = (id * 40503) & mask
    while keys[at] >= 0 and keys[at] != id:
        at = (at + 1) & mask
    return int(rows[at]) if keys[at] == id else -1


@kernel
def place(
    replicas: IntArray,
    leader: IntArray,
    slots: IntArray,
    keys: LongArray,
    rows: LongArray,
    hosts: IntArray,
    leads: IntArray,
    factor: IntArray,
) -> tuple[int, int]:
    """Broker rows of replica lists and leaders: into `hosts`, int32 [N, width], `leads` and `factor`, int32 [N].

    Returns the longest list and how many ids are not in the table. Where the list is longer than `hosts` is wide,
    what is in `hosts` is of no use. A leader that is not in its list is none.
    """
    longest, missing = 0, 0
    width = hosts.shape[1]
    for i in range(len(slots)):
        slot = slots[i]
        count = 0
        leads[i] = -1
        for place in range(replicas.shape[1]):
            id = whole(replicas[slot, place])
            if id < 0:
                break
            row = _row_of(id, keys, rows)
            if row < 0:
                missing += 1
            if id == leader[slot]:
                leads[i] = row
            if place < width:
                hosts[i, place] = row
            count += 1
        for place in range(count, width):
            hosts[i, place] = -1
        factor[i] = count
        longest = max(longest, count)
    return longest, missing


@kernel
def attribute(
    hosts: IntArray,
    leads: IntArray,
    bytes_in: FloatArray,
    bytes_out: FloatArray,
    said: Flags,
    use: FloatArray,
    use_said: Flags,
    lead: FloatArray,
    lead_flags: Flags,
    follow: FloatArray,
    follow_flags: Flags,
) -> None:
    """Fill what is `UNKNOWN` in `lead` and `follow`, float64 [N], from the brokers' use, float64 [B]: what known
    replicas leave of it is divided in proportion to the bytes that replicas handle. `said`, uint8 [N], of the bytes and
    `use_said`, uint8 [B], pass on to what comes of them."""
    brokers = len(use)
    known = np.zeros(brokers)
    handled = np.zeros(brokers)
    for i in range(len(leads)):
        for place in range(hosts.shape[1]):
            broker = hosts[i, place]
            if broker < 0:
                break
            if broker == leads[i]:
                flags, amount, moved = lead_flags[i], lead[i], bytes_in[i] + bytes_out[i]
            else:
                flags, amount, moved = follow_flags[i], follow[i], bytes_in[i]
            if flags & UNKNOWN == 0:
                known[broker] += amount
            elif moved == moved:
                handled[broker] += moved
    each = np.full(brokers, np.nan)
    for broker in range(brokers):
        if use[broker] == use[broker]:
            left = max(use[broker] - known[broker], 0.0)
            each[broker] = left / handled[broker] if handled[broker] > 0.0 else 0.0
    for i in range(len(leads)):
        if bytes_in[i] != bytes_in[i]:
            continue
        if lead_flags[i] & UNKNOWN and leads[i] >= 0:
            amount = each[leads[i]] * (bytes_in[i] + bytes_out[i])
            if amount == amount:
                lead[i] = amount
                lead_flags[i] = ESTIMATED | said[i] | use_said[leads[i]]
        if follow_flags[i] & UNKNOWN:
            total, count = 0.0, 0
            together = ESTIMATED | said[i]
            for place in range(hosts.shape[1]):
                broker = hosts[i, place]
                if broker >= 0 and broker != leads[i] and each[broker] == each[broker]:
                    total += each[broker] * bytes_in[i]
                    together |= use_said[broker]
                    count += 1
            if count > 0:
                follow[i] = total / count
                follow_flags[i] = together
