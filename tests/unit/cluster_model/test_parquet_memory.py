"""What reading a snapshot folder leaves in memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cluster_model.files import write_snapshot
from cluster_model.snapshot import Snapshot

pytest.importorskip("pyarrow")
STATM = Path("/proc/self/statm")
ROOT = Path(__file__).parents[3]
READ = """
import sys
from pathlib import Path
import pyarrow, pyarrow.parquet
from cluster_model.files import read_snapshot

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

snapshot = read_snapshot(sys.argv[1])
before = held()
pyarrow.default_memory_pool().release_unused()
print(before - held())
"""


def large() -> Snapshot:
    """400,000 partitions of two replicas on ten brokers, each with another load."""
    count, loads = 400_000, ("cpu", "disk", "network_in", "network_out")
    hosts = np.stack([np.arange(count) % 10, (np.arange(count) + 1) % 10], axis=1).astype(np.int32)
    load = np.random.default_rng(1).random(count)
    return Snapshot(
        cluster_id="large", taken_at="2026-11-20T12:00:00Z", storage="local",
        broker_ids=np.arange(10, dtype=np.int32), broker_states=np.zeros(10, dtype=np.int8), racks=tuple("abababcdcd"), capacity={},
        topics=("t",), partition_topic=np.zeros(count, np.int32), partition_number=np.arange(count, dtype=np.int32),
        replicas=hosts, leader=hosts[:, 0].copy(),
        leader_load={x: load * n for n, x in enumerate(loads, 1)}, follower_load={x: load / n for n, x in enumerate(loads, 1)},
        has_follower_load=np.ones(count, np.bool_),
    )  # fmt: skip


@pytest.mark.skipif(not STATM.exists(), reason="no such figures here")
def test_reading_a_folder_keeps_no_memory_of_its_tables(tmp_path: Path) -> None:
    """85 MB of a million replicas stayed with the process that planned them."""
    write_snapshot(large(), tmp_path / "large")
    ended = subprocess.run(
        [sys.executable, "-c", READ, str(tmp_path / "large")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) < 5e6
