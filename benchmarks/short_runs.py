"""What `trimtab calibrate` costs on a small history, where hardly any of it is samples: CPU seconds of all its processes, and Spark jobs.

    python -m benchmarks.short_runs --against CHECKOUT --rounds 3

Each round runs this tree and then the other checkout, the whole command each time, start of Spark included. The history is made up:
3 brokers and 6 partitions over 4 days, a sample a minute. Jobs are counted in Spark's event log, of a run that is not timed. Linux
only: processes that outlive their parents are counted, too.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.apart import ROOT
from tests.histories.synthetic import write
from tests.histories.truth import DAY, Truth

REPORTED = ("network_in", "consumer_out", "follower.network_in", "disk", "follower.disk")
TRUTH = Truth(
    brokers=3, partitions=6, span=4 * DAY, capacity=3.0, reports_capacity=0.25, missing=0.02, corrupt=0.01, partition_metrics=REPORTED
)
SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
JOB = '{"Event":"SparkListenerJobStart"'


def calibrated(tree: Path, history: Path, out: Path, logs: Path | None = None) -> float:
    """CPU seconds of one calibration by the code in `tree`, of all of its processes; with `logs`, Spark writes its event log there."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    if logs is not None:
        events = f"--conf spark.eventLog.enabled=true --conf spark.eventLog.dir={logs.as_uri()} --conf spark.eventLog.compress=false"
        environment["PYSPARK_SUBMIT_ARGS"] = f"{events} --conf spark.eventLog.rolling.enabled=false pyspark-shell"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "trimtab", "-q", "calibrate", "--history", str(history), "--out", str(out / "calibration.yaml")]
    subprocess.run(command, cwd=tree, env=environment, check=True, stderr=subprocess.DEVNULL)
    while True:  # Java ends after its parent, and comes to us
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            break
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def jobs(tree: Path, history: Path, out: Path) -> int:
    """Spark jobs of one calibration."""
    with tempfile.TemporaryDirectory() as logs:
        calibrated(tree, history, out, Path(logs))
        return sum(line.startswith(JOB) for log in Path(logs).iterdir() if log.is_file() for line in log.open())


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--against", type=Path, help="another checkout of Trimtab")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    trees = {"this tree": ROOT, **({"the other": given.against.resolve()} if given.against is not None else {})}
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder) / "history"
        rows = write(TRUTH, history)["rows"]
        spent: dict[str, list[float]] = {name: [] for name in trees}
        for _ in range(given.rounds):
            for name, tree in trees.items():
                spent[name].append(calibrated(tree, history, Path(folder)))
        print(f"{rows:,} samples\n\n| | CPU s, median | least | most | Spark jobs |\n|---|---|---|---|---|")
        for name, tree in trees.items():
            middle, count = statistics.median(spent[name]), jobs(tree, history, Path(folder))
            print(f"| {name} | {middle:.1f} | {min(spent[name]):.1f} | {max(spent[name]):.1f} | {count} |")


if __name__ == "__main__":
    main()
