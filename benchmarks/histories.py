"""A synthetic history of any size as a Parquet folder: what the other benchmarks of Spark read.

    python -m benchmarks.histories --out DIR --samples 100000000 --brokers 200 --partitions 20000

`tests.histories` makes it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from tests.histories.rows import metrics
from tests.histories.synthetic import spanning, write
from tests.histories.truth import DAY, Truth, drawn


def main() -> None:
    """Write a history and tell what it holds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--samples", type=int, default=0, help="about so many rows; the span follows")
    parser.add_argument("--days", type=float, default=1.0, help="span, where --samples is not given")
    parser.add_argument("--brokers", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=20_000)
    parser.add_argument("--interval", type=int, default=60, help="seconds between samples")
    parser.add_argument("--capacity", type=float, help="over the mean broker's network_in; brokers saturate near it")
    parser.add_argument("--imbalance", type=float, default=0.2)
    parser.add_argument("--missing", type=float, default=0.05)
    parser.add_argument("--corrupt", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    truth = Truth(
        brokers=given.brokers, partitions=given.partitions, interval=given.interval, span=int(given.days * DAY),
        capacity=given.capacity, imbalance=given.imbalance, growth=0.02, growing=0.05, bursty=0.05, steady=0.1,
        missing=given.missing, corrupt=given.corrupt, seed=given.seed,
    )  # fmt: skip
    if given.samples:
        truth = spanning(truth, given.samples)
    begun = time.perf_counter()
    counts = write(truth, given.out, given.workers)
    size = sum(path.stat().st_size for path in given.out.rglob("*.parquet"))
    print(
        f"{counts['rows']:,} rows over {truth.span / DAY:.2f} days of {', '.join(metrics(drawn(truth)))}; "
        f"{size / 1e6:,.0f} MB in {time.perf_counter() - begun:.0f} s; {dict(counts)}"
    )


if __name__ == "__main__":
    main()
