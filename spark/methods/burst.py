"""How far loads of partitions and topics rise above their means: percentiles by KLL sketches, which add up over machines.

Column expressions over partition windows, called by the calibration job. A sketch's 95th percentile is within about 1% in rank.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark.schemas import PartitionWindows

PERCENTILE = 0.95
ACCURACY = 100  # of percentile_approx, in pyspark 4.0, which has no sketches


def percentile(values: Column, share: float = PERCENTILE) -> Column:
    """An aggregate: the value that `share` of a group's are below."""
    if not hasattr(F, "kll_sketch_agg_float"):
        return F.percentile_approx(values, share, ACCURACY)
    sketch = F.kll_sketch_agg_float(values.cast("float"))
    return F.kll_sketch_get_quantile_float(sketch, F.lit(share)).cast("double")


def leader_loads(windows: PartitionWindows) -> DataFrame:
    """`mean`, `p95` and `last` of what each partition's leader carries, one row a partition and resource.

    Whichever broker led it in a window. The percentile is at least 0 and at most the largest window.
    """
    led = windows.frame.where("role = 'leader'")
    return led.groupBy("cluster_id", "topic", "partition", "resource").agg(
        F.avg("mean").alias("mean"), percentile(F.col("mean")).alias("p95"), F.max_by("mean", "start").alias("last")
    )


def topic_loads(windows: PartitionWindows) -> DataFrame:
    """What the leaders of each topic carry together, one row a topic, resource and window."""
    led = windows.frame.where("role = 'leader'")
    return led.groupBy("cluster_id", "topic", "resource", "start").agg(F.sum("mean").alias("mean"))


def topic_bursts(loads: DataFrame) -> DataFrame:
    """`mean` and `p95` of each topic's load; without topics that carry nothing."""
    found = loads.groupBy("cluster_id", "topic", "resource").agg(F.avg("mean").alias("mean"), percentile(F.col("mean")).alias("p95"))
    return found.where(F.try_divide("p95", "mean").isNotNull())
