"""What carrying out a plan takes: bytes that brokers copy, for how long at a throttle, and the traffic that it makes meanwhile. Pure.

Called by the replay. Each new replica is copied from the partition's leader; brokers copy side by side, each at the throttle.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from cluster_model.snapshot import FloatArray, IntArray, Snapshot


@dataclass(frozen=True)
class Copying:
    """Bytes into and out of each broker, float64 [B], and seconds that the busiest of them takes."""

    into: FloatArray
    out_of: FloatArray
    seconds: float

    def windows(self, length: float) -> int:
        """Whole windows of `length` seconds; less than half a window is none."""
        return round(self.seconds / length)

    def rates(self, length: float) -> dict[str, FloatArray]:
        """Resource -> float64 [B], bytes/s that copying adds in each window while it runs."""
        time = max(self.windows(length), 1) * length
        return {"network_in": self.into / time, "network_out": self.out_of / time}


def copying(before: Snapshot, after: Snapshot, throttle: float = inf) -> Copying:
    """What it takes to get from one placement to another.

    Parameters
    ----------
    before, after
        The same partitions in the same order.
    throttle
        Bytes/s into, and out of, each broker.

    Notes
    -----
    O(changed partitions x replicas). Where replicas hold no data of their own (``storage: shared``), or sizes are unknown, nothing is
    copied.
    """
    into, out_of = np.zeros(len(before.broker_ids)), np.zeros(len(before.broker_ids))
    size = before.leader_load.get("disk")
    if size is not None and before.storage == "local":
        for row in np.flatnonzero((after.replicas != before.replicas).any(axis=1)).tolist():
            added = _new(before.replicas[row], after.replicas[row])
            source = int(before.leader[row]) if before.leader[row] >= 0 else int(before.replicas[row][0])
            into[added] += size[row]
            out_of[source] += size[row] * len(added)
    most = float(max(into.max(initial=0.0), out_of.max(initial=0.0)))
    return Copying(into, out_of, most / throttle)


def _new(before: IntArray, after: IntArray) -> IntArray:
    """Rows of brokers that were not among the replicas."""
    return np.setdiff1d(after[after >= 0], before[before >= 0])
