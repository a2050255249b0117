"""How long a large snapshot takes to read, in each of its forms.

`python -m benchmarks.loading [--replicas 1000000] [--brokers 1000] [--json FILE]`. Builds a snapshot in
memory, writes every form into a temporary folder and reads each one in a process of its own, so that CPU
seconds and peak memory are those of reading that form alone, with interpreter and imports in the memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from cluster_model.files import read_snapshot, write_snapshot
from cluster_model.snapshot import Snapshot

FORMS = {"Parquet folder": "cluster", "JSON": "cluster.json", "JSON, gzip": "cluster.json.gz"}
TARGETS = {"Parquet folder": 2.0, "JSON": 15.0}  # CPU seconds at a million replicas
RACKS = 3
PARTITIONS_PER_TOPIC = 40


def big_snapshot(replicas: int, brokers: int, seed: int = 0) -> Snapshot:
    """About `replicas` replicas at a replication factor of 3, every load with all the digits a double has."""
    random = np.random.default_rng(seed)
    count = -(-replicas // RACKS)
    per_rack = brokers // RACKS
    hosts = random.integers(0, per_rack, (count, RACKS)) * RACKS + np.arange(RACKS)
    rate = random.lognormal(12.0, 1.5, count)
    disk = rate * random.lognormal(10.0, 0.5, count)
    topic = np.arange(count) // PARTITIONS_PER_TOPIC
    return Snapshot(
        cluster_id="benchmark",
        taken_at="2026-11-20T12:00:00Z",
        storage="local",
        broker_ids=np.arange(per_rack * RACKS, dtype=np.int32),
        broker_states=np.zeros(per_rack * RACKS, dtype=np.int8),
        racks=tuple("abc"[broker % RACKS] for broker in range(per_rack * RACKS)),
        capacity={"disk": np.full(per_rack * RACKS, 2.0e12), "network_in": np.full(per_rack * RACKS, 1.25e8)},
        topics=tuple(f"team.events-{row:06d}" for row in range(int(topic[-1]) + 1)),
        partition_topic=topic.astype(np.int32),
        partition_number=(np.arange(count) % PARTITIONS_PER_TOPIC).astype(np.int32),
        replicas=hosts.astype(np.int32),
        leader=hosts[:, 0].astype(np.int32),
        leader_load={
            "cpu": rate * 3.1e-8,
            "disk": disk,
            "fetch_rate": rate / 777.0,
            "network_in": rate,
            "network_out": rate * 3.7,
            "produce_rate": rate / 333.0,
        },
        follower_load={"cpu": rate * 1.1e-8, "disk": disk.copy(), "network_in": rate.copy()},
        has_follower_load=np.ones(count, dtype=np.bool_),
    )


def read_once(path: str) -> dict[str, Any]:
    """Seconds, peak memory and digest of one read in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    snapshot = read_snapshot(path)
    spent = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
    return {**spent, "peak_bytes": peak_bytes(), "digest": snapshot.digest}


def peak_bytes() -> int:
    """Most memory this process ever had; on Linux without what it took over from the one that started it."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def size_of(path: Path) -> int:
    return sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size


def measure(replicas: int, brokers: int) -> dict[str, Any]:
    snapshot = big_snapshot(replicas, brokers)
    rows: list[dict[str, Any]] = []
    root = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as home:
        for form, name in FORMS.items():
            path = Path(home) / name
            started = time.process_time()
            write_snapshot(snapshot, path)
            written = time.process_time() - started
            command = [sys.executable, "-m", "benchmarks.loading", "--read", str(path)]
            done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True)
            read = json.loads(done.stdout)
            if read.pop("digest") != snapshot.digest:
                raise SystemExit(f"{form}: what was read is not what was written")
            rows.append({"form": form, "bytes": size_of(path), "write_cpu_s": written, **read})
    return {
        "replicas": snapshot.replica_count,
        "brokers": snapshot.broker_count,
        "cores": os.cpu_count(),
        "rows": rows,
    }


def table(result: dict[str, Any]) -> str:
    head = f"{result['replicas']:,} replicas on {result['brokers']:,} brokers, {result['cores']} cores"
    lines = [
        head,
        f"{'form':<16}{'size':>9}{'write CPU':>11}{'read CPU':>10}{'read wall':>11}{'peak':>9}  target",
    ]
    for row in result["rows"]:
        target = TARGETS.get(row["form"])
        aim = f"{target:g} s" if target else "-"
        lines.append(
            f"{row['form']:<16}{row['bytes'] / 1e6:>6.0f} MB{row['write_cpu_s']:>9.2f} s"
            f"{row['cpu_s']:>8.2f} s{row['wall_s']:>9.2f} s{row['peak_bytes'] / 1e6:>6.0f} MB  {aim}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--replicas", type=int, default=1_000_000)
    parser.add_argument("--brokers", type=int, default=1_000)
    parser.add_argument("--json", metavar="FILE", type=Path, help="also write the figures as JSON")
    parser.add_argument("--read", metavar="PATH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(read_once(options.read)))
        return
    result = measure(options.replicas, options.brokers)
    print(table(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
