"""What a large calibration file costs to read and to write, in CPU seconds.

    python -m benchmarks.calibration_file --brokers 1000
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Literal

from cluster_model.resources import MEASURED
from goals.calibration import Calibration, CapacityEstimate, HistorySpan, calibration_text, load_calibration
from goals.yaml_source import read_carefully

CONFIDENCES: tuple[Literal["high", "medium", "low"], ...] = ("high", "medium", "low")
EVIDENCE = "no bend of latency over throughput was seen; the most ever carried, 99.9th percentile of 51,840 windows"


def large(brokers: int) -> Calibration:
    """A calibration with an estimate for each broker and measured resource."""
    capacity = [
        CapacityEstimate(
            broker=broker, resource=resource, value=1e8 / 3 * (broker + 1), confidence=CONFIDENCES[broker % 3], evidence=EVIDENCE
        )
        for broker in range(brokers)
        for resource in MEASURED
    ]  # fmt: skip
    history = HistorySpan(
        begin="2026-10-01T00:00:00Z", end="2026-11-01T00:00:00Z", window=300.0, samples=1, brokers=brokers, partitions=1, digest="sha256:0"
    )  # fmt: skip
    return Calibration(
        version=1, cluster_id="c", made_at="2026-11-02T00:00:00Z", history=history, resources={}, capacity=capacity
    )


def main() -> None:
    """Write, read, and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--brokers", type=int, default=1000)
    given = parser.parse_args()
    calibration = large(given.brokers)
    begun = time.process_time()
    text = calibration_text(calibration)
    written = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calibration.yaml"
        path.write_text(text, encoding="utf-8")
        load_calibration(path)
    read = time.process_time()
    read_carefully(text, "calibration.yaml")
    again = time.process_time()
    print(f"{len(calibration.capacity):,} estimates, {len(text):,} bytes")
    print(f"written in {written - begun:.2f} CPU s, read in {read - written:.2f}, by ruamel.yaml alone in {again - read:.2f}")


if __name__ == "__main__":
    main()
