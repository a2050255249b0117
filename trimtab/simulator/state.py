"""The columns of a simulated cluster: what is on every broker's disk and in every broker's counters.

Partition rows are never reused; each has `width` physical places for replicas, whose order means nothing (the
controller keeps the replica lists). Written by `physics` and `controller` only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BoolArray, FloatArray, IntArray
from trimtab.simulator.spec import BrokerSpec

LongArray = npt.NDArray[np.int64]


def _float() -> FloatArray:
    return np.empty(0)


def _bool() -> BoolArray:
    return np.empty(0, dtype=np.bool_)


@dataclass(eq=False)
class BrokerColumns:
    """By broker row, in order of registration: [B]. Rates in bytes/s, sizes in bytes; counters only rise."""

    ids: list[int] = field(default_factory=list)
    specs: list[BrokerSpec] = field(default_factory=list)
    up: BoolArray = field(default_factory=_bool)
    fenced: BoolArray = field(default_factory=_bool)
    gone: BoolArray = field(default_factory=_bool)  # unregistered; the row stays
    down_since_ms: LongArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    slow_network: FloatArray = field(default_factory=_float)  # factors 0..1 that faults set
    slow_disk: FloatArray = field(default_factory=_float)
    network_in: FloatArray = field(default_factory=_float)
    network_out: FloatArray = field(default_factory=_float)
    disk_write: FloatArray = field(default_factory=_float)
    disk: FloatArray = field(default_factory=_float)
    received: FloatArray = field(default_factory=_float)  # counters, bytes
    sent: FloatArray = field(default_factory=_float)
    cpu_seconds: FloatArray = field(default_factory=_float)

    def add(self, spec: BrokerSpec) -> int:
        """A row for a new broker, up and not fenced."""
        self.ids.append(spec.id)
        self.specs.append(spec)
        self.up = np.append(self.up, True)
        self.fenced = np.append(self.fenced, False)
        self.gone = np.append(self.gone, False)
        self.down_since_ms = np.append(self.down_since_ms, np.int64(-1))
        self.slow_network = np.append(self.slow_network, 1.0)
        self.slow_disk = np.append(self.slow_disk, 1.0)
        self.network_in = np.append(self.network_in, spec.network_in)
        self.network_out = np.append(self.network_out, spec.network_out)
        self.disk_write = np.append(self.disk_write, spec.disk_write)
        self.disk = np.append(self.disk, spec.disk)
        self.received = np.append(self.received, 0.0)
        self.sent = np.append(self.sent, 0.0)
        self.cpu_seconds = np.append(self.cpu_seconds, 0.0)
        return len(self.ids) - 1


@dataclass(eq=False)
class LogColumns:
    """By partition row [P], and by replica place [P, K].

    Positions are bytes since the topic was created. A place's position is always
    ``base + received + skipped - truncated``.
    """

    live: BoolArray = field(default_factory=_bool)
    produce: FloatArray = field(default_factory=_float)  # bytes/s on average
    consumers: FloatArray = field(default_factory=_float)
    retention: FloatArray = field(default_factory=_float)
    start: FloatArray = field(default_factory=_float)
    end: FloatArray = field(default_factory=_float)
    leader: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32))  # place, -1: none
    host: IntArray = field(default_factory=lambda: np.empty((0, 6), dtype=np.int32))  # broker row, -1: place is free
    in_sync: BoolArray = field(default_factory=lambda: np.empty((0, 6), dtype=np.bool_))
    adding: BoolArray = field(default_factory=lambda: np.empty((0, 6), dtype=np.bool_))
    stalled: BoolArray = field(default_factory=lambda: np.empty((0, 6), dtype=np.bool_))  # a fault: copies nothing
    position: FloatArray = field(default_factory=lambda: np.empty((0, 6)))
    base: FloatArray = field(default_factory=lambda: np.empty((0, 6)))
    skipped: FloatArray = field(default_factory=lambda: np.empty((0, 6)))
    truncated: FloatArray = field(default_factory=lambda: np.empty((0, 6)))
    received: FloatArray = field(default_factory=lambda: np.empty((0, 6)))  # counters, bytes
    consumed: FloatArray = field(default_factory=lambda: np.empty((0, 6)))
    replicated: FloatArray = field(default_factory=lambda: np.empty((0, 6)))  # sent to followers
    caught_up_ms: LongArray = field(default_factory=lambda: np.empty((0, 6), dtype=np.int64))
    role: LongArray = field(default_factory=lambda: np.empty((0, 6), dtype=np.int64))  # rises when counters start again

    @property
    def count(self) -> int:
        return len(self.live)

    def add(self, partitions: int) -> int:
        """First row of that many new partitions, empty and without replicas."""
        first = self.count
        for name, fill in (("live", True), ("produce", 0.0), ("consumers", 0.0), ("retention", 0.0),
                           ("start", 0.0), ("end", 0.0), ("leader", -1)):  # fmt: skip
            column = getattr(self, name)
            setattr(self, name, np.pad(column, (0, partitions), constant_values=fill))
        for name, fill in PLACES:
            column = getattr(self, name)
            setattr(self, name, np.pad(column, ((0, partitions), (0, 0)), constant_values=fill))
        return first

    def take_place(self, row: int, broker: int, *, base: float, adding: bool) -> int:
        """Put an empty replica on a broker row; the place it took."""
        free = np.flatnonzero(self.host[row] < 0)
        if not len(free):
            self._widen()
            return self.take_place(row, broker, base=base, adding=adding)
        place = int(free[0])
        self.host[row, place] = broker
        self.in_sync[row, place] = False
        self.adding[row, place] = adding
        self.stalled[row, place] = False
        self.position[row, place] = self.base[row, place] = base
        for column in (self.skipped, self.truncated, self.received, self.consumed, self.replicated):
            column[row, place] = 0.0
        self.caught_up_ms[row, place] = -1
        self.role[row, place] += 1
        return place

    def leave_place(self, row: int, place: int) -> None:
        """Drop a replica and its bytes."""
        self.host[row, place] = -1
        self.in_sync[row, place] = False
        self.adding[row, place] = False
        self.role[row, place] += 1

    def sizes(self) -> FloatArray:
        """float64 [P, K]: bytes on disk of every replica, 0 where a place is free."""
        return np.where(self.host >= 0, np.maximum(self.position - self.start[:, None], 0.0), 0.0)

    def disk_used(self, brokers: int) -> FloatArray:
        """float64 [B]: bytes on every broker's disk."""
        placed = self.host >= 0
        used = np.bincount(self.host[placed], weights=self.sizes()[placed], minlength=brokers)
        return np.asarray(used, dtype=np.float64)

    def _widen(self) -> None:
        width = self.host.shape[1]
        for name, fill in PLACES:
            column = getattr(self, name)
            setattr(self, name, np.pad(column, ((0, 0), (0, width)), constant_values=fill))


PLACES: tuple[tuple[str, float | bool], ...] = (
    ("host", -1), ("in_sync", False), ("adding", False), ("stalled", False), ("position", 0.0), ("base", 0.0),
    ("skipped", 0.0), ("truncated", 0.0), ("received", 0.0), ("consumed", 0.0), ("replicated", 0.0),
    ("caught_up_ms", -1), ("role", 0),
)  # fmt: skip
