"""What `trimtab plan --load` costs before the planner starts: reading loads of partitions from Parquet and putting them on a snapshot.

`python -m benchmarks.partition_loads [--replicas 1000000]`. Rows stand in no order, as Spark writes them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.loading import big_snapshot
from cluster_model.partition_loads_file import read_partition_loads
from cluster_model.snapshot import Snapshot

RESOURCES = ("network_in", "network_out", "cpu", "produce_rate", "fetch_rate")
FILES = 8


def write_loads(snapshot: Snapshot, folder: Path, seed: int = 0) -> int:
    """Loads of every partition and resource; the number of rows."""
    random = np.random.default_rng(seed)
    count = snapshot.partition_count
    order = random.permutation(count * len(RESOURCES))
    names = np.array(snapshot.topics)[snapshot.partition_topic]
    amount = np.concatenate([snapshot.vectors(name)[0] for name in RESOURCES])
    columns = {
        "cluster_id": np.full(len(order), snapshot.cluster_id), "topic": np.tile(names, len(RESOURCES))[order],
        "partition": np.tile(snapshot.partition_number, len(RESOURCES))[order],
        "resource": np.repeat(np.array(RESOURCES), count)[order],
        "mean": amount[order], "p95": amount[order] * 1.6, "last": amount[order], "forecast": amount[order] * 1.1,
        "pattern": np.full(len(order), "steady"),
    }  # fmt: skip
    table = pa.table(columns)
    size = -(-len(order) // FILES)
    for number in range(FILES):
        pq.write_table(table.slice(number * size, size), folder / f"part-{number:05d}.snappy.parquet")
    return len(order)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=1_000_000)
    snapshot = big_snapshot(parser.parse_args().replicas, 1_000)
    with tempfile.TemporaryDirectory() as name:
        rows = write_loads(snapshot, Path(name))
        start = time.process_time()
        loads = read_partition_loads(name, "p95", snapshot, snapshot.cluster_id, "loads")
        read = time.process_time()
        loads.applied(snapshot)
        end = time.process_time()
    print(f"{snapshot.replica_count:,} replicas, {rows:,} rows in {FILES} files")
    print(f"read and joined {read - start:.2f} CPU s, put on the snapshot {end - read:.3f} CPU s")


if __name__ == "__main__":
    main()
