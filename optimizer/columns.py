"""What partitions contribute to a problem: loads on an exact grid, sizes, rules, placement; made for all, or renewed for some rows.

Called by `optimizer.problem` and `optimizer.search_state`. Loads are put on a grid on which float64 addition is exact
(`optimizer.grid`), so that the load of a broker does not depend on the order in which replicas came and went, undoing a change
restores it bit for bit, and sums can be kept up to date by differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState, FloatArray, Snapshot
from optimizer.grid import Laid, grid_steps, lay_out, pinned
from optimizer.problem import FOLLOWING, LEADING, MENDABLE, MOVABLE, RACK_LIMIT, RF

LINE = 64  # bytes of a cache line
FIRST_LOOK = 4_096  # partitions
MOVE_COST = 3.0  # of a replica of mean size: what a move costs besides its bytes, where the operator does not say (docs/benchmarks.md)
NEAR = 1e-6  # of a bound on sums: how well it is known where it is kept up to date by differences


class Rules(NamedTuple):
    """What decides beside a partition itself whether and where it may go."""

    movable: BoolArray  # bool [T], topics whose partitions may change for balance
    mendable: BoolArray  # bool [T], topics whose partitions repairs may change: movable and excluded ones, no frozen ones
    racks: np.ndarray  # int64 [T], or [1] for all: those with active or excluded brokers


class Part(NamedTuple):
    """Columns of some partitions (n), and what they add up to (C)."""

    partition: np.ndarray  # int16 [n, 4]
    vector: FloatArray  # [n, 2, C]
    led: BoolArray  # [n], counts a leader vector
    laid: Laid


@dataclass(eq=False)
class Columns:
    """P partitions, R replicas at most, C columns of load. What brings them to another snapshot changes the arrays in place."""

    resources: tuple[str, ...]
    rules: Rules
    laid: Laid  # of all partitions, also of those on excluded brokers
    partition: np.ndarray  # int16 [P, 4]
    topic: np.ndarray  # int32 [P], read-only; the snapshot's own
    size: FloatArray  # [P], read-only; the snapshot's own where it can be
    vector: FloatArray  # [P, 2, C]
    replicas: np.ndarray  # int64 [P, R]
    lead: np.ndarray  # int64 [P], slot of the leader, -1 none
    led: BoolArray  # [P]
    topic_first: np.ndarray  # int64 [T + 1], first partition of each topic

    @property
    def nbytes(self) -> int:
        arrays = (self.partition, self.vector, self.replicas, self.lead, self.led, self.topic_first)
        return sum(array.nbytes for array in arrays)

    def replace(self, snapshot: Snapshot, rows: np.ndarray) -> None:
        """Make the placement of partitions `rows` that of `snapshot`."""
        part = snapshot.rows(rows)
        self.replicas[rows], self.lead[rows] = part.replicas, leader_slots(part)

    def renew(self, snapshot: Snapshot, rows: np.ndarray) -> bool:
        """Make all but the placement of partitions `rows` (int64) that of `snapshot`, which differs in no others. False, with nothing
        changed, where loads need another grid: then all has to be made again."""
        part, was = part_of(snapshot.rows(rows), self.resources, self.rules, self.laid.steps), self.laid
        before, vector = self.partition[rows], self.vector[rows]
        most = was.most + part.laid.most - bound_on_sums(vector, before[:, RF])
        low, high = grid_steps(most * (1.0 - NEAR)), grid_steps(most * (1.0 + NEAR))
        if not (np.array_equal(low, was.steps) and np.array_equal(high, was.steps)):
            return False
        self.laid = Laid(
            was.steps,
            most,
            was.totals - totals(vector, before[:, RF], self.led[rows]) + part.laid.totals,
            was.leading - vector[:, LEADING].sum(axis=0) + part.laid.leading,
            was.roles - ((vector[:, LEADING] != vector[:, FOLLOWING]) & (before[:, RF, None] > 1)).sum(axis=0) + part.laid.roles,
        )
        self.partition[rows], self.vector[rows], self.led[rows] = part.partition, part.vector, part.led
        self.size = sizes(snapshot)
        return True

    def reload(self, snapshot: Snapshot, rows: np.ndarray) -> None:
        """Make all but the placement of all partitions that of `snapshot`; in others than `rows` (int64) only loads differ."""
        self.partition[rows] = rules_of_partitions(snapshot.rows(rows), self.rules)
        self.led = led_partitions(snapshot)
        self.laid = lay_out(snapshot, self.resources, self.led, None, self.vector)
        self.size = sizes(snapshot)


def make_columns(snapshot: Snapshot, resources: tuple[str, ...], rules: Rules) -> Columns:
    """Columns of all partitions. O(P (R + C))."""
    part = part_of(snapshot, resources, rules, None)
    replicas = np.array(snapshot.replicas, dtype=np.int64, order="C")
    return Columns(
        resources, rules, part.laid, part.partition, topics_of(snapshot), sizes(snapshot), part.vector, replicas,
        leader_slots(snapshot), part.led, topic_starts(snapshot),
    )


def topic_starts(snapshot: Snapshot) -> np.ndarray:
    """int64 [T + 1]: first partition of each topic."""
    # Keys of the array's own type: with any other, searchsorted copies the whole array first.
    topics = np.arange(len(snapshot.topics) + 1, dtype=snapshot.partition_topic.dtype)
    return np.searchsorted(snapshot.partition_topic, topics).astype(np.int64)


def part_of(snapshot: Snapshot, resources: tuple[str, ...], rules: Rules, steps: FloatArray | None) -> Part:
    """Columns of the partitions of a snapshot; on the grid of `steps`, or on their own."""
    led, partition = led_partitions(snapshot), rules_of_partitions(snapshot, rules)
    vector = vector_room(snapshot.partition_count, max(len(resources), 1))
    laid = lay_out(snapshot, resources, led, steps, vector)
    return Part(partition, vector, led, laid)


def rules_of_partitions(snapshot: Snapshot, rules: Rules) -> np.ndarray:
    """int16 [P, 4]: whether each partition may change for balance, its replication factor, replicas allowed in one rack, whether
    repairs may change it."""
    rf = snapshot.replication_factor
    partition = np.empty((snapshot.partition_count, 4), np.int16)
    live = ~offline_partitions(snapshot)
    partition[:, MOVABLE] = rules.movable[snapshot.partition_topic] & live
    partition[:, MENDABLE] = rules.mendable[snapshot.partition_topic] & live
    partition[:, RF] = rf
    racks = np.maximum(rules.racks, 1)
    partition[:, RACK_LIMIT] = -(-rf // (racks[0] if len(racks) == 1 else racks[snapshot.partition_topic]))
    return partition


def topics_of(snapshot: Snapshot) -> np.ndarray:
    """int32 [P], read-only."""
    topic = np.ascontiguousarray(snapshot.partition_topic, np.int32).view()
    topic.flags.writeable = False
    return topic


def sizes(snapshot: Snapshot) -> FloatArray:
    """float64 [P], read-only: bytes that a new replica copies. They follow `leader_load.disk` as given; the grid only carries
    broker sums."""
    return pinned(snapshot.vectors("disk")[0] if snapshot.storage == "local" else np.zeros(snapshot.partition_count))


def cost_of_moves(size: FloatArray, move_cost: float | None) -> FloatArray:
    """float64 [P]: what moving a replica of each partition costs, its bytes `size` float64 [P] and `move_cost` (None: `MOVE_COST` replicas
    of mean size); 1 each where nothing is copied. Always an array of its own: kernels are compiled for one that is not read-only."""
    mean = float(size.mean()) if len(size) else 0.0
    if mean <= 0.0:
        return np.ones(len(size))
    return size + (MOVE_COST * mean if move_cost is None else float(move_cost))


def totals(vector: FloatArray, rf: np.ndarray, led: BoolArray) -> FloatArray:
    """float64 [C], exact: what partitions cost, those that are `led` with a leader."""
    leads = led[:, None]
    return np.asarray((leads * vector[:, LEADING] + (rf[:, None] - leads) * vector[:, FOLLOWING]).sum(axis=0))


def bound_on_sums(vector: FloatArray, rf: np.ndarray) -> FloatArray:
    """float64 [C]: no sum over replicas, whatever their roles, exceeds it."""
    return np.asarray((vector.max(axis=1) * rf[:, None]).sum(axis=0) * 1.001)


def vector_room(count: int, columns: int) -> FloatArray:
    """float64 [P, 2, C], zeros, on a boundary of cache lines, so that both vectors of a partition lie on as few as they can."""
    room = np.zeros(count * 2 * columns + LINE // 8)
    start = -(room.ctypes.data % LINE) % LINE // 8
    return room[start : start + count * 2 * columns].reshape(count, 2, columns)


def leader_slots(snapshot: Snapshot) -> np.ndarray:
    """int64 [P]: where in its list a partition's leader stands, -1 none."""
    slot = np.full(snapshot.partition_count, -1, np.int64)
    for s in range(snapshot.replicas.shape[1] - 1, -1, -1):
        slot[(snapshot.replicas[:, s] == snapshot.leader) & (snapshot.leader >= 0)] = s
    return slot


def offline_partitions(snapshot: Snapshot) -> BoolArray:
    """bool [P]: partitions whose every replica is on a dead broker; they have nothing to copy from and stay."""
    lists = snapshot.replicas
    if not lists.shape[1]:
        return np.ones(snapshot.partition_count, np.bool_)
    dead = snapshot.broker_states == BrokerState.DEAD
    if not dead.any():
        return np.asarray(lists[:, 0] < 0)
    gone = np.append(dead, True)
    offline = np.asarray(gone[lists[:, 0]])
    rows = np.flatnonzero(offline)
    offline[rows] = gone[lists[rows]].all(axis=1)
    return offline


def led_partitions(snapshot: Snapshot) -> BoolArray:
    """bool [P]: partitions that count a leader vector: they have a leader, or a replica that may become one."""
    led = snapshot.leader >= 0
    rows = np.flatnonzero(~led)
    usable = np.append(np.isin(snapshot.broker_states, (BrokerState.ACTIVE, BrokerState.DRAINING)), False)
    led[rows] = usable[snapshot.replicas[rows]].any(axis=1)
    return led


def any_differs(column: np.ndarray, other: np.ndarray | int) -> bool:
    """Whether a column differs from another one, or from a number, anywhere; where it does, it mostly does at once."""
    other = np.broadcast_to(other, column.shape)
    return bool((column[:FIRST_LOOK] != other[:FIRST_LOOK]).any() or (column[FIRST_LOOK:] != other[FIRST_LOOK:]).any())
