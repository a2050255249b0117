"""Counters into rates, as PromQL's ``rate`` has it: a counter that went down started again at 0.

Used by the importers, where what an operator has are counters; our own reporter sends rates. Column expressions over rows in
the order of time.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

MOST_STEPS = 5  # over a silence of more usual distances than this, nothing is said


def increase(before: Column, now: Column) -> Column:
    """Growth of a counter between two readings; after a reset, all that it says came since."""
    return F.when(now < before, now).otherwise(now - before)


def rates(frame: DataFrame, series: Sequence[str], spacing_ms: int) -> DataFrame:
    """`value` of each reading as growth per second since the one before of its series.

    The first reading of a series, and one after a long silence, say nothing; they are left out. So does one that is at the same
    time as another, and one that is no number at all is not a reading.

    Parameters
    ----------
    frame
        `time`, `value` and the columns of `series`.
    spacing_ms
        How far apart readings usually are.

    Notes
    -----
    Moves and sorts all rows once. The rate is the mean since the reading before, without PromQL's extrapolation to the ends
    of a window, so rates times intervals add up to the increase.
    """
    order = Window.partitionBy(*series).orderBy("time", "value")
    seconds = (F.unix_millis("time") - F.unix_millis("since")) / F.lit(1000.0)
    told = frame.where("value is not null and not isnan(value)")
    return (
        told.withColumn("since", F.lag("time").over(order))
        .withColumn("before", F.lag("value").over(order))
        .where(F.col("since").isNotNull() & (seconds > 0) & (seconds <= MOST_STEPS * spacing_ms / 1000))
        .withColumn("value", increase(F.col("before"), F.col("value")) / seconds)
        .drop("since", "before")
    )
