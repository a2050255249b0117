"""How much of a history is there: samples that came, of those that should have.

Called by jobs that state how far their numbers can be believed. Column expressions and one aggregation; bounded by brokers and
metrics.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.history.repeats import KEY
from spark.schemas import Samples


def expected(begin: Column, end: Column, spacing_ms: int) -> Column:
    """How many samples a series has from `begin` to `end`, both times of samples, where none is missing."""
    return F.floor((F.unix_millis(end) - F.unix_millis(begin)) / F.lit(spacing_ms) + F.lit(0.5)) + 1


def share(present: Column, due: Column) -> Column:
    """Present over expected, 0 to 1; null where nothing is expected."""
    return F.try_divide(F.least(present, due), due)


def presence(samples: Samples, spacing_ms: int) -> DataFrame:
    """Per cluster, broker and metric: `series`, samples `present` and `expected`, and `share`.

    Each series counts from its first sample to its last, so a topic that was made late misses nothing. `spacing_ms` is
    `spark.history.repeats.spacing_ms` of the samples.
    """
    of_series = samples.frame.groupBy(*KEY).agg(
        F.count("*").alias("present"), expected(F.min("time"), F.max("time"), spacing_ms).alias("expected")
    )
    present, due = F.sum(F.least("present", "expected")), F.sum("expected")
    return of_series.groupBy("cluster_id", "broker", "metric").agg(
        F.count("*").alias("series"), present.alias("present"), due.alias("expected"), share(present, due).alias("share")
    )
