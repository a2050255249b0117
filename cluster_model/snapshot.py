"""The frozen picture of a cluster that everything downstream works on.

A `Snapshot` is columnar: one array per fact, indexed by broker row or partition row. Rows are
canonical (brokers by id, partitions by topic name then number), so two snapshots of the same state
are equal array by array whatever order they were given in. Nothing here reads files or clocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from cluster_model.digest import Fingerprint, fingerprint, renewed
from cluster_model.directories import Directories, DirectoryArray, followed
from cluster_model.resources import DERIVED_FROM, FOLLOWER_COPIES_LEADER, MEASURED, RESOURCES

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int32]
BoolArray = npt.NDArray[np.bool_]
Storage = Literal["local", "shared"]


class BrokerState(IntEnum):
    """What a broker may be used for; the names in lower case stand in snapshot files."""

    ACTIVE = 0
    DRAINING = 1
    DEAD = 2
    EXCLUDED = 3

    @property
    def label(self) -> str:
        return self.name.lower()


STATES_BY_LABEL: dict[str, BrokerState] = {state.label: state for state in BrokerState}


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A cluster at one moment, frozen.

    Attributes
    ----------
    broker_ids
        int32 [B], strictly ascending wire ids.
    broker_states
        int8 [B], values of `BrokerState`.
    racks
        B rack names; None where a broker has no rack.
    capacity
        resource -> float64 [B] in the resource's unit, NaN where a broker has none.
    topics
        T names, ascending.
    partition_topic, partition_number
        int32 [P]: row in `topics`, number within the topic; ascending as a pair.
    replicas
        int32 [P, R]: broker *rows*, preferred leader first, -1 beyond the replication factor.
    leader
        int32 [P]: broker row of the leader, -1 where there is none.
    leader_load, follower_load
        measured resource -> float64 [P]; NaN where the source did not give it. A resource that is
        missing everywhere has no entry.
    has_follower_load
        bool [P]: False where the follower vector follows from the leader's (`network_in` and `disk`).
    notes
        Remarks of the tool that took the snapshot, such as which rates are lower bounds.
    directories
        Log directories of brokers with several volumes, by wire id; empty where the source does not tell.
    replica_directory
        int8 [P, R]: position in those of its broker of the directory that holds each replica of `replicas`, -1 where that is not known;
        None: of no replica.
    """

    cluster_id: str
    taken_at: str
    storage: Storage
    broker_ids: IntArray
    broker_states: npt.NDArray[np.int8]
    racks: tuple[str | None, ...]
    capacity: Mapping[str, FloatArray]
    topics: tuple[str, ...]
    partition_topic: IntArray
    partition_number: IntArray
    replicas: IntArray
    leader: IntArray
    leader_load: Mapping[str, FloatArray]
    follower_load: Mapping[str, FloatArray]
    has_follower_load: BoolArray
    notes: tuple[str, ...] = field(default=())
    directories: Directories = field(default_factory=dict)
    replica_directory: DirectoryArray | None = None

    def __post_init__(self) -> None:
        for array in self._arrays():
            array.flags.writeable = False

    def _arrays(self) -> list[npt.NDArray[np.generic]]:
        arrays: list[npt.NDArray[np.generic]] = [
            self.broker_ids, self.broker_states, self.partition_topic, self.partition_number,
            self.replicas, self.leader, self.has_follower_load,
        ]  # fmt: skip
        for table in (self.capacity, self.leader_load, self.follower_load):
            arrays.extend(table.values())
        return arrays if self.replica_directory is None else [*arrays, self.replica_directory]

    @property
    def broker_count(self) -> int:
        return len(self.broker_ids)

    @property
    def partition_count(self) -> int:
        return len(self.partition_topic)

    @cached_property
    def replication_factor(self) -> IntArray:
        """int32 [P], replicas of each partition."""
        count = np.zeros(self.partition_count, np.int32)
        for slot in range(self.replicas.shape[1]):  # much cheaper than a sum over short rows
            count += self.replicas[:, slot] >= 0
        return count

    @cached_property
    def replica_count(self) -> int:
        return int(self.replication_factor.sum())

    @cached_property
    def row_of_broker(self) -> dict[int, int]:
        """Wire id -> row."""
        return {int(b): row for row, b in enumerate(self.broker_ids)}

    @cached_property
    def row_of_topic(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.topics)}

    def row_of_partition(self, topic: str, partition: int) -> int:
        """Row of a topic-partition, -1 where there is none. Binary search, O(log P)."""
        topic_row = self.row_of_topic.get(topic)
        if topic_row is None:
            return -1
        if not 0 <= partition < 2**31:
            return -1
        # Keys of the arrays' own type: with any other, searchsorted copies the whole array first.
        lo, hi = np.searchsorted(self.partition_topic, np.array([topic_row, topic_row + 1], dtype=np.int32))
        row = int(lo) + int(np.searchsorted(self.partition_number[lo:hi], np.int32(partition)))
        return row if row < hi and self.partition_number[row] == partition else -1

    def partition_name(self, row: int) -> str:
        """``topic-number`` of a partition row."""
        return f"{self.topics[self.partition_topic[row]]}-{self.partition_number[row]}"

    def is_reported(self, resource: str) -> bool:
        """Whether anything in the snapshot gives this resource (counts always are)."""
        if resource in MEASURED:
            return resource in self.leader_load or resource in self.follower_load
        source = DERIVED_FROM.get(resource)
        return source is None or self.is_reported(source)

    def vectors(self, resource: str) -> tuple[FloatArray, FloatArray]:
        """What a leader and what a follower of each partition cost: two float64 [P], absent is 0; for reading.

        Covers derived resources: `replicas` (1, 1), `leaders` (1, 0), `leader_network_in`
        (network_in, 0) and `potential_network_out` (network_out of the leader, the same).
        """
        count = self.partition_count
        if resource == "replicas":
            ones = np.ones(count)
            return ones, ones
        if resource == "leaders":
            return np.ones(count), np.zeros(count)
        if resource in DERIVED_FROM:
            leading = self.vectors(DERIVED_FROM[resource])[0]
            return leading, np.zeros(count) if resource == "leader_network_in" else leading
        if resource not in RESOURCES:
            raise KeyError(resource)
        leading = _known(self.leader_load.get(resource), count)
        implied = leading if resource in FOLLOWER_COPIES_LEADER else np.zeros(count)
        if not self.has_follower_load.any():
            return leading, implied
        given = _known(self.follower_load.get(resource), count)
        return leading, given if self.has_follower_load.all() else np.where(self.has_follower_load, given, implied)

    def broker_load(self, resource: str) -> FloatArray:
        """Load of every broker: float64 [B], in the resource's unit, whatever the broker's state."""
        leading, following = self.vectors(resource)
        hosts = self.replicas
        leads = hosts == self.leader[:, None]
        amount = np.where(leads, leading[:, None], following[:, None])
        present = hosts >= 0
        load = np.bincount(hosts[present], weights=amount[present], minlength=self.broker_count)
        return np.asarray(load, dtype=np.float64)

    def with_placement(self, replicas: IntArray, leader: IntArray) -> Snapshot:
        """The same cluster with other replica lists and leaders (broker rows); arrays are taken over. In which directory a replica is that
        came to a broker is not known."""
        held = self.replica_directory
        held = None if held is None else followed(self.replicas, held, replicas)
        return replace(self, replicas=replicas, leader=leader, replica_directory=held)

    def rows(self, rows: npt.NDArray[np.int64]) -> Snapshot:
        """A snapshot of some of the partitions on the same brokers."""
        return Snapshot(
            self.cluster_id, self.taken_at, self.storage, self.broker_ids, self.broker_states, self.racks, self.capacity,
            self.topics, self.partition_topic[rows], self.partition_number[rows], self.replicas[rows], self.leader[rows],
            {name: values[rows] for name, values in self.leader_load.items()},
            {name: values[rows] for name, values in self.follower_load.items()},
            self.has_follower_load[rows], directories=self.directories,
            replica_directory=None if self.replica_directory is None else self.replica_directory[rows],
        )  # fmt: skip

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What `digest` is made of."""
        return fingerprint(self)

    def renew_fingerprint(self, before: Fingerprint, rows: npt.NDArray[np.int64]) -> None:
        """Make `fingerprint` from that of a snapshot that differs in no other partitions than `rows`: O(rows), and the same."""
        if "fingerprint" not in vars(self):
            vars(self)["fingerprint"] = renewed(before, self, rows)

    @property
    def digest(self) -> str:
        """``sha256:…`` over everything but `notes`; equal for equal content, whatever file it came from (`cluster_model.digest`)."""
        return self.fingerprint.digest


def _known(values: FloatArray | None, count: int) -> FloatArray:
    """The same with 0 for what is absent."""
    if values is None:
        return np.zeros(count)
    absent = np.isnan(values)
    return np.where(absent, 0.0, values) if absent.any() else values
