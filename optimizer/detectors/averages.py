"""Loads of brokers averaged over checks, for detectors with a `history_weight`.

Source: Pulsar's threshold and transfer shedders. Theirs keep the average of a broker after a move, so that it goes on giving what it no
longer has; here a broker that took or gave a replica or a leadership starts again from its load.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from cluster_model.snapshot import FloatArray, Snapshot
from optimizer.detectors.values import Average


@dataclass(eq=False)
class Averages:
    """Averages of one check: made from those of the check before, which `again` is a second look at."""

    before: dict[str, Average]
    snapshot: Snapshot
    again: bool = False
    made: dict[str, Average] = field(default_factory=dict)
    _contents: dict[int, int] = field(default_factory=dict)

    def of(self, subject: str, brokers: np.ndarray, loads: FloatArray, weight: float) -> FloatArray:
        """float64 [n], in the unit of `loads`: `weight` of the average before and the rest of the load now, of brokers by wire id."""
        if not weight:
            return loads
        if not self._contents:
            self._contents = dict(zip(self.snapshot.broker_ids.tolist(), contents(self.snapshot).tolist(), strict=True))
        found = np.asarray(loads, dtype=np.float64).copy()
        for row, broker in enumerate(brokers.tolist()):
            key, holds = f"{weight:g}/{broker}/{subject}", self._contents[broker]
            last = self.before.get(key)
            if last is not None and last.holds == holds:
                found[row] = last.load if self.again else weight * last.load + (1.0 - weight) * found[row]
            self.made[key] = Average(key, float(found[row]), holds)
        return found


def contents(snapshot: Snapshot) -> np.ndarray:
    """int64 [B]: a hash of the replicas and leaderships of each broker, whatever else there is in the cluster. O(replicas)."""
    names = np.array([zlib.crc32(topic.encode("utf-8", "surrogatepass")) for topic in snapshot.topics], dtype=np.uint64)
    partitions = _mixed(names[snapshot.partition_topic] << np.uint64(32) | snapshot.partition_number.astype(np.uint64))
    found = np.zeros(snapshot.broker_count, dtype=np.uint64)
    there = snapshot.replicas >= 0
    np.add.at(found, snapshot.replicas[there], np.broadcast_to(partitions[:, None], there.shape)[there])
    led = snapshot.leader >= 0
    np.add.at(found, snapshot.leader[led], _mixed(partitions[led]))
    return found.view(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """uint64: the finalizer of splitmix64, a public-domain hash."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))
