"""Level clusters, and hot partitions on them: where a service stands after its last plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import Snapshot
from tests.clusters.synthetic import SIZES, cluster


def level_cluster(size: str, variant: str = "even") -> Snapshot:
    """Dealt out evenly, all brokers active."""
    snapshot = cluster(*SIZES[size], "c", 0, variant)
    return replace(snapshot, broker_states=np.zeros_like(snapshot.broker_states))


def heated(snapshot: Snapshot, rows: npt.NDArray[np.int64], factor: float | npt.NDArray[np.float64]) -> Snapshot:
    """Bytes and cpu of some partitions (int64 [N], rows) times `factor` (one, or [N]); what they store stays."""
    tables = []
    for table in (snapshot.leader_load, snapshot.follower_load):
        changed = {name: values.copy() for name, values in table.items()}
        for name, values in changed.items():
            if name != "disk":
                values[rows] *= factor
        tables.append(changed)
    return replace(snapshot, leader_load=tables[0], follower_load=tables[1])
