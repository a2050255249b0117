"""A planner takes snapshots while samples flow: each must be of one moment, and no thread may wait for ever."""

from __future__ import annotations

import threading

import numpy as np

from cluster_model.metadata.events import BrokerRegistered, PartitionChanged, TopicCreated
from cluster_model.model import ClusterModel
from cluster_model.observed import LEADER
from cluster_model.windows import Horizon
from tests.unit.cluster_model.batches import NOW, Batch, rows

PARTITIONS, BATCHES, INTERVAL_MS = 2000, 400, 1000
CHANGED = PartitionChanged("orders", 0, (1,), (1,), 1)


def batch(sequence: int) -> Batch:
    """Every partition has the sequence as its size and as its rate."""
    blocks = tuple(
        rows(LEADER, metric, [(0, number, float(sequence)) for number in range(PARTITIONS)])
        for metric in ("disk", "network_in")
    )
    return Batch(1, NOW + sequence * INTERVAL_MS, sequence, blocks=blocks, window_ms=INTERVAL_MS)


def test_a_snapshot_has_a_batch_whole_or_not_at_all_while_another_thread_writes() -> None:
    model = ClusterModel("c", short=Horizon(INTERVAL_MS, 1), long=Horizon(7 * INTERVAL_MS, 3))
    model.apply(BrokerRegistered(1, None), NOW)
    model.apply(TopicCreated("orders", "id"), NOW)
    for number in range(PARTITIONS):
        model.apply(PartitionChanged("orders", number, (1,), (1,), 1), NOW)
    model.ingest(batch(0), NOW)
    batches = [batch(sequence) for sequence in range(1, BATCHES)]
    seen: list[tuple[float, float]] = []
    failed: list[BaseException] = []

    def write() -> None:
        try:
            for one in batches:
                model.ingest(one, one.time_ms)
                model.apply(CHANGED, one.time_ms)
        except BaseException as e:
            failed.append(e)

    writer = threading.Thread(target=write)
    writer.start()
    kept = []
    while writer.is_alive() or not seen:
        snapshot = model.snapshot(NOW + BATCHES * INTERVAL_MS, horizon="short")
        disk, rate = snapshot.leader_load["disk"], snapshot.leader_load["network_in"]
        assert (disk == disk[0]).all()
        assert (rate == disk[0]).all()
        seen.append((float(disk[0]), float(rate[0])))
        kept.append((snapshot, disk.copy()))
    writer.join()
    assert not failed
    assert seen == sorted(seen)
    assert all(np.array_equal(snapshot.leader_load["disk"], disk) for snapshot, disk in kept)
    assert model.snapshot(NOW).leader_load["disk"][0] == BATCHES - 1
    assert model.counts.batches == BATCHES
