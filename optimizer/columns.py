"""What partitions contribute to a problem: loads on an exact grid, sizes, rules, placement; made for all, or renewed for some rows.

Called by `optimizer.problem` and `optimizer.search_state`. Loads are put on a grid on which float64 addition is exact (every sum stays
below 2**53 grid steps), so that the load of a broker does not depend on the order in which replicas came and went, undoing a change
restores it bit for bit, and sums can be kept up to date by differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState, FloatArray, Snapshot

LINE = 64  # bytes of a cache line
NEAR = 1e-6  # of a bound on sums: how well it is known where it is kept up to date by differences

# Columns of the tables of a `Problem` that have a row for each partition.
MOVABLE, RF, RACK_LIMIT, TOPIC_OF = 0, 1, 2, 3  # partition
SIZE, THRIFT = 0, 1  # haul
LEADING, FOLLOWING = 0, 1  # vector


class Rules(NamedTuple):
    """What decides beside a partition itself whether and where it may go."""

    movable: BoolArray  # bool [T], topics whose partitions may change
    racks: int  # with eligible brokers


class Part(NamedTuple):
    """Columns of some partitions (n), and what they add up to (C)."""

    partition: np.ndarray  # int64 [n, 4]
    size: FloatArray  # [n]
    vector: FloatArray  # [n, 2, C]
    replicas: np.ndarray  # int64 [n, R]
    lead: np.ndarray  # int64 [n]
    led: BoolArray  # [n], counts a leader vector
    most: FloatArray  # [C], no sum of any roles exceeds it
    totals: FloatArray  # [C], exact
    leading: FloatArray  # [C], of all leaders; exact
    roles: np.ndarray  # int64 [C], partitions whose leader costs another amount than a follower


@dataclass(eq=False)
class Columns:
    """P partitions, R replicas at most, C columns of load. `renew` changes the arrays in place."""

    resources: tuple[str, ...]
    rules: Rules
    steps: FloatArray  # [C], of the grid; 0 where a column needs none
    most: FloatArray  # [C]
    totals: FloatArray  # [C], what all replicas together cost, those on excluded brokers included; exact
    leading: FloatArray  # [C], what a leader of every partition would cost; exact
    roles: np.ndarray  # int64 [C], partitions whose leader costs another amount than a follower
    partition: np.ndarray  # int64 [P, 4]
    haul: FloatArray  # [P, 2]
    vector: FloatArray  # [P, 2, C]
    compact: np.ndarray  # float32 [P, 2, C + 1 and padding]
    replicas: np.ndarray  # int64 [P, R]
    lead: np.ndarray  # int64 [P], slot of the leader, -1 none
    led: BoolArray  # [P]

    @property
    def nbytes(self) -> int:
        arrays = (self.partition, self.haul, self.vector, self.compact, self.replicas, self.lead, self.led)
        return sum(array.nbytes for array in arrays)

    def replace(self, snapshot: Snapshot, rows: np.ndarray) -> None:
        """Make the placement of partitions `rows` that of `snapshot`."""
        part = snapshot.rows(rows)
        self.replicas[rows], self.lead[rows] = part.replicas, leader_slots(part)

    def renew(self, snapshot: Snapshot, rows: np.ndarray) -> bool:
        """Make all but the placement of partitions `rows` (int64) that of `snapshot`, which differs in no others. False, with nothing
        changed, where loads need another grid: then all has to be made anew."""
        part = part_of(snapshot.rows(rows), self.resources, self.rules, self.steps)
        before, vector = self.partition[rows], self.vector[rows]
        most = self.most + part.most - bound_on_sums(vector, before[:, RF])
        low, high = grid_steps(most * (1.0 - NEAR)), grid_steps(most * (1.0 + NEAR))
        if not (np.array_equal(low, self.steps) and np.array_equal(high, self.steps)):
            return False
        self.most = most
        self.leading = self.leading - vector[:, LEADING].sum(axis=0) + part.leading
        self.roles = self.roles - (vector[:, LEADING] != vector[:, FOLLOWING]).sum(axis=0) + part.roles
        self.totals = self.totals - totals(vector, before[:, RF], self.led[rows]) + part.totals
        resized = not np.array_equal(self.haul[rows, SIZE], part.size)
        self.partition[rows], self.vector[rows], self.led[rows] = part.partition, part.vector, part.led
        self.haul[rows, SIZE] = part.size
        width = len(self.resources)
        self.compact[rows, :, :width] = part.vector[:, :, :width]
        if resized:
            self.haul[:, THRIFT] = thrift(np.ascontiguousarray(self.haul[:, SIZE]))
            rows = np.arange(len(self.lead))
        self.compact[rows, :, max(width, 1)] = np.where(self.partition[rows, MOVABLE] == 1, self.haul[rows, THRIFT], 0.0)[:, None]
        return True


def make_columns(snapshot: Snapshot, resources: tuple[str, ...], rules: Rules) -> Columns:
    """Columns of all partitions. O(P (R + C))."""
    part = part_of(snapshot, resources, rules, None)
    haul = np.stack([part.size, thrift(part.size)], axis=1)
    compact = compact_vectors(part.vector, np.where(part.partition[:, MOVABLE] == 1, haul[:, THRIFT], 0.0))
    return Columns(
        resources, rules, grid_steps(part.most), part.most, part.totals, part.leading, part.roles, part.partition, haul,
        part.vector, compact, part.replicas, part.lead, part.led,
    )  # fmt: skip


def part_of(snapshot: Snapshot, resources: tuple[str, ...], rules: Rules, steps: FloatArray | None) -> Part:
    """Columns of the partitions of a snapshot; on the grid of `steps`, or on their own."""
    count, width = snapshot.partition_count, max(len(resources), 1)
    rf, led = snapshot.replication_factor, led_partitions(snapshot)
    vector = np.zeros((count, 2, width))
    most, sums, leads, roles = np.zeros(width), np.zeros(width), np.zeros(width), np.zeros(width, np.int64)
    for c, resource in enumerate(resources):
        leading, following = snapshot.vectors(resource)
        most[c] = float((np.maximum(leading, following) * rf).sum()) * 1.001
        step = grid_step(most[c]) if steps is None else float(steps[c])
        leading, following = on_grid(leading, step), on_grid(following, step)
        vector[:, LEADING, c], vector[:, FOLLOWING, c] = leading, following
        leads[c] = leading.sum()
        roles[c] = (leading != following).sum()
        sums[c] = (leading if led.all() else leading[led]).sum() + ((rf - led) * following).sum()
    partition = np.empty((count, 4), np.int64)
    partition[:, MOVABLE] = rules.movable[snapshot.partition_topic] & ~offline_partitions(snapshot)
    partition[:, RF] = rf
    partition[:, RACK_LIMIT] = -(-rf // max(rules.racks, 1))
    partition[:, TOPIC_OF] = snapshot.partition_topic
    # What is copied follows `leader_load.disk` as given; the grid only carries broker sums.
    size = snapshot.vectors("disk")[0] if snapshot.storage == "local" else np.zeros(count)
    replicas = np.array(snapshot.replicas, dtype=np.int64, order="C")
    return Part(partition, size, vector, replicas, leader_slots(snapshot), led, most, sums, leads, roles)


def totals(vector: FloatArray, rf: np.ndarray, led: BoolArray) -> FloatArray:
    """float64 [C], exact: what partitions cost, those that are `led` with a leader."""
    leads = led[:, None]
    return np.asarray((leads * vector[:, LEADING] + (rf[:, None] - leads) * vector[:, FOLLOWING]).sum(axis=0))


def bound_on_sums(vector: FloatArray, rf: np.ndarray) -> FloatArray:
    """float64 [C]: no sum over replicas, whatever their roles, exceeds it."""
    return np.asarray((vector.max(axis=1) * rf[:, None]).sum(axis=0) * 1.001)


def grid_step(most: float) -> float:
    """The power of two on whose multiples any sum up to `most` is exact in float64; 0 where none is needed."""
    return math.ldexp(1.0, math.frexp(most)[1] - 52) if most > 0.0 else 0.0


def grid_steps(most: FloatArray) -> FloatArray:
    return np.array([grid_step(float(m)) for m in most])


def on_grid(values: FloatArray, step: float) -> FloatArray:
    """`values` rounded to multiples of `step`."""
    return np.rint(values / step) * step if step > 0.0 else values


def thrift(size: FloatArray) -> FloatArray:
    """float64 [P]: factor on the gain of a move, less for partitions of many bytes."""
    typical = size.mean() if len(size) and size.sum() > 0 else 1.0
    return np.asarray(1.0 / np.sqrt(0.1 + 0.9 * size / typical))


def compact_vectors(vector: FloatArray, thrift: FloatArray) -> np.ndarray:
    """float32 [P, 2, W]: vectors and thrift of a partition in as few cache lines as they fit, on their boundary."""
    count, _, columns = vector.shape
    width = -(-(columns + 1) // 8) * 8
    room = np.zeros(count * 2 * width + LINE // 4, np.float32)
    start = -(room.ctypes.data % LINE) % LINE // 4
    compact = room[start : start + count * 2 * width].reshape(count, 2, width)
    compact[:, :, :columns] = vector
    compact[:, :, columns] = thrift[:, None]
    return compact


def leader_slots(snapshot: Snapshot) -> np.ndarray:
    """int64 [P]: where in its list a partition's leader stands, -1 none."""
    slot = np.full(snapshot.partition_count, -1, np.int64)
    for s in range(snapshot.replicas.shape[1] - 1, -1, -1):
        slot[(snapshot.replicas[:, s] == snapshot.leader) & (snapshot.leader >= 0)] = s
    return slot


def offline_partitions(snapshot: Snapshot) -> BoolArray:
    """bool [P]: partitions whose every replica is on a dead broker; they have nothing to copy from and stay."""
    dead = snapshot.broker_states == BrokerState.DEAD
    offline = np.ones(snapshot.partition_count, np.bool_)
    if not dead.any() and snapshot.replicas.shape[1]:
        return np.asarray(snapshot.replicas[:, 0] < 0)
    alive = np.append(~dead, False)
    for s in range(snapshot.replicas.shape[1]):
        offline &= ~alive[snapshot.replicas[:, s]]
    return offline


def led_partitions(snapshot: Snapshot) -> BoolArray:
    """bool [P]: partitions that count a leader vector: they have a leader, or a replica that may become one."""
    led = snapshot.leader >= 0
    rows = np.flatnonzero(~led)
    usable = np.append(np.isin(snapshot.broker_states, (BrokerState.ACTIVE, BrokerState.DRAINING)), False)
    led[rows] = usable[snapshot.replicas[rows]].any(axis=1)
    return led
