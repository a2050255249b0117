"""What `trimtab calibrate` costs, by the size of the history: CPU, memory, shuffled bytes, and whether any task is the last by far.

    flock LOCK python -m benchmarks.spark --samples 10M,100M,300M --dir /tmp/histories

Histories are those of `benchmarks.histories` (200 brokers, 20,000 partitions of skewed size, a sample a minute, 5% missing, 1%
corrupt), written to --dir where they are not there yet, and removed afterwards unless --keep. Each size runs in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psutil

from tests.histories.synthetic import Truth, spanning, write

UNITS = {"k": 10**3, "M": 10**6, "G": 10**9}
FEWEST_TASKS = 4
SHORT_MS = 500  # tasks below this are mostly start-up
INTERVAL = 0.5


@dataclass
class Stage:
    """Tasks of one stage, by Spark's own account: milliseconds (of the clock, and of the JVM's CPU) and rows read of each, bytes in all."""

    name: str
    ms: list[int]
    cpu_ms: list[float]
    records: list[int]
    shuffled: int = 0
    spilled: int = 0

    @property
    def skew(self) -> float:
        """The task with the most to do over the median: by CPU in the JVM."""
        return max(self.cpu_ms) / max(statistics.median(self.cpu_ms), 1)

    @property
    def rows_skew(self) -> float:
        """The most rows that a task read over the median."""
        return max(self.records) / max(statistics.median(self.records), 1)


def count(text: str) -> int:
    """``10M`` as a number."""
    return int(float(text[:-1]) * UNITS[text[-1]]) if text[-1] in UNITS else int(text)


def truth(samples: int, brokers: int, partitions: int) -> Truth:
    """A history of about so many samples."""
    whole = Truth(brokers=brokers, partitions=partitions, imbalance=0.2, growth=0.02, bursty=0.05, growing=0.05, missing=0.05, corrupt=0.01)
    return spanning(whole, samples)


def calibrated(history: Path, logs: Path, cores: int, memory: str, once: bool) -> None:
    """One calibration in this process; prints a line of JSON with what it cost."""
    from spark.jobs.calibrate import Request, calibrate
    from spark.jobs.resources import Detection
    from spark.session import session

    me = psutil.Process()
    peaks = {"all": 0, "jvm": 0}
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(INTERVAL):
            sizes = []
            for process in me.children(recursive=True):
                try:
                    sizes.append((process.name(), process.memory_info().rss - process.memory_info().shared))
                except psutil.Error:
                    continue
            own = me.memory_info()
            peaks["all"] = max(peaks["all"], sum(size for _, size in sizes) + own.rss - own.shared)
            peaks["jvm"] = max([peaks["jvm"], *[size for name, size in sizes if name == "java"]])

    threading.Thread(target=watch, daemon=True).start()
    begun = time.perf_counter()
    settings = {
        "spark__driver__memory": memory, "spark__eventLog__enabled": "true",
        "spark__eventLog__dir": logs.as_uri(), "spark__eventLog__compress": "false", "spark__eventLog__rolling__enabled": "false",
    }  # fmt: skip
    spark = session("benchmark", f"local[{cores}]", short=False, **settings)
    spark.sparkContext.setLogLevel("ERROR")
    told: list[tuple[float, str]] = []

    def tell(sentence: str) -> None:
        told.append((time.perf_counter() - begun, sentence))
        print(f"  {told[-1][0]:7.1f} s  {sentence}", file=sys.stderr)

    with tempfile.TemporaryDirectory() as out:
        made = calibrate(spark, Request(str(history), Detection(300, 1, 1), f"{out}/loads", once=once), datetime.now(UTC), tell)
        wall = time.perf_counter() - begun
        cpu = sum(_cpu(process) for process in [me, *me.children(recursive=True)])
        spark.stop()
    ended.set()
    calibration = made.calibration
    samples = calibration.history.samples + sum(calibration.history.rejected.values())
    print(json.dumps({"samples": samples, "wall": wall, "cpu": cpu, "memory": peaks["all"], "jvm": peaks["jvm"]}))


def _cpu(process: psutil.Process) -> float:
    """Seconds of a process and of those of its children that have ended."""
    try:
        times = process.cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system + times.children_user + times.children_system)


def stages(log: Path) -> list[Stage]:
    """What Spark's event log says of each stage."""
    found: dict[int, Stage] = defaultdict(lambda: Stage("", [], [], []))
    for line in log.open():
        event = json.loads(line)
        match event["Event"]:
            case "SparkListenerStageCompleted":
                found[event["Stage Info"]["Stage ID"]].name = event["Stage Info"]["Stage Name"]
            case "SparkListenerTaskEnd" if event.get("Task Metrics"):
                stage, metrics = found[event["Stage ID"]], event["Task Metrics"]
                stage.ms.append(metrics["Executor Run Time"])
                stage.cpu_ms.append(metrics["Executor CPU Time"] / 1e6)
                read = metrics["Shuffle Read Metrics"]["Total Records Read"] + metrics["Input Metrics"]["Records Read"]
                stage.records.append(read)
                stage.shuffled += metrics["Shuffle Write Metrics"]["Shuffle Bytes Written"]
                stage.spilled += metrics["Disk Bytes Spilled"]
    return [stage for _, stage in sorted(found.items()) if stage.ms]


def measured(history: Path, cores: int, memory: str, once: bool) -> str:
    """A row of the table: one calibration in a process of its own."""
    with tempfile.TemporaryDirectory() as logs:
        arguments = ["--one", str(history), "--logs", logs, "--cores", str(cores), "--memory", memory, *(["--once"] if once else [])]
        ended = subprocess.run([sys.executable, "-m", "benchmarks.spark", *arguments], stdout=subprocess.PIPE, text=True, check=True)
        cost = json.loads(ended.stdout.splitlines()[-1])
        of_stages = stages(next(path for path in Path(logs).iterdir() if path.is_file()))
    longest = [stage for stage in of_stages if len(stage.ms) >= FEWEST_TASKS and max(stage.cpu_ms) >= SHORT_MS]
    for stage in sorted(of_stages, key=lambda stage: -sum(stage.ms))[:12]:
        print(
            f"  {len(stage.ms):5} tasks {sum(stage.ms) / 1e3:8.1f} s, CPU {sum(stage.cpu_ms) / 1e3:7.1f} s, "
            f"most {stage.skew:4.1f} x median, rows {stage.rows_skew:4.1f} x, shuffled {stage.shuffled / 1e6:8.1f} MB, "
            f"spilled {stage.spilled / 1e6:8.1f} MB  {stage.name[:60]}",
            file=sys.stderr,
        )
    size = sum(path.stat().st_size for path in history.rglob("*.parquet"))
    shuffled = sum(stage.shuffled for stage in of_stages)
    return (
        f"| {cost['samples'] / 1e6:,.1f} M | {size / 1e6:,.0f} | {cost['cpu']:.0f} | {1e6 * cost['cpu'] / cost['samples']:.2f} "
        f"| {cost['wall']:.0f} "
        f"| {cost['memory'] / 1e9:.1f} | {shuffled / 1e6:,.0f} | {shuffled / cost['samples']:.1f} "
        f"| {max((stage.skew for stage in longest), default=1.0):.1f} |"
    )


def main() -> None:
    """Write, measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--samples", default="10M", help="sizes, with commas")
    parser.add_argument("--brokers", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "trimtab-histories")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="2g", help="heap of the JVM")
    parser.add_argument("--once", action="store_true", help="count samples once that are there twice")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--logs", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        calibrated(given.one, given.logs, given.cores, given.memory, given.once)
        return
    print("| samples | MB | CPU s | us a sample | wall s | GB | shuffled MB | bytes a sample | skew |")
    print("|---|---|---|---|---|---|---|---|---|")
    for text in given.samples.split(","):
        history = given.dir / text
        if not history.exists():
            history.mkdir(parents=True)
            write(truth(count(text), given.brokers, given.partitions), history, given.cores)
        print(measured(history, given.cores, given.memory, given.once), flush=True)
        if not given.keep:
            shutil.rmtree(history)


if __name__ == "__main__":
    main()
