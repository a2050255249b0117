"""Bad and repeated rows of a history set apart, and what it costs beside moving every row.

    python -m benchmarks.histories --out DIR --samples 20000000 --brokers 200 --partitions 20000
    python -m benchmarks.sifting --history DIR

CPU is that of this process and everything below it.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.metric_topic import cpu_seconds
from spark.backtest.reading import read_series
from spark.history.read import read_samples
from spark.history.repeats import KEY
from spark.history.sift import sifted
from spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", required=True)
    arguments = parser.parse_args()
    spark = session("sifting", "local[2]", spark__driver__memory="4g", spark__sql__shuffle__partitions="16")
    spark.sparkContext.setLogLevel("ERROR")
    samples = read_samples(spark, arguments.history)

    def means(frame: DataFrame) -> None:
        frame.groupBy(*KEY).agg(F.avg("value")).write.format("noop").mode("overwrite").save()

    def told(name: str, began: float, cpu: float) -> None:
        print(f"{name}: {time.monotonic() - began:.1f} s, {cpu_seconds(set()) - cpu:.1f} CPU s")

    began, cpu = time.monotonic(), cpu_seconds(set())
    means(samples.frame)
    told("warm-up", began, cpu)
    began, cpu = time.monotonic(), cpu_seconds(set())
    means(samples.frame)
    told("means of all rows", began, cpu)
    began, cpu = time.monotonic(), cpu_seconds(set())
    found = sifted(samples)
    told(f"sifted {found.rows} rows, {dict(found.reasons)}", began, cpu)
    began, cpu = time.monotonic(), cpu_seconds(set())
    means(found.samples.frame)
    told("means of those that count", began, cpu)
    began, cpu = time.monotonic(), cpu_seconds(set())
    means(samples.frame.dropDuplicates([*KEY, "time"]))
    told("means with every row moved to find repeated ones", began, cpu)
    for once in (False, True):
        began, cpu = time.monotonic(), cpu_seconds(set())
        now = datetime.now(UTC)
        with read_series(samples, 300.0, 6 * 3600.0, 1800.0, arguments.history, now, once, lambda _: None) as read:
            read.series.count()
        told(f"series of a backtest, {'each sample once' if once else 'as they are'}", began, cpu)
    spark.stop()


if __name__ == "__main__":
    main()
