"""Samples averaged over windows: the only step that looks at every sample; everything else starts from what it gives.

Called by the jobs, the backtest and tests. Windows are those of the live model: whole multiples of their length since the
Unix epoch, a sample belongs to the one that its time is in. Knows nothing of what is noise or load.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from cluster_model.resources import MEASURED
from spark.schemas import BrokerWindows, PartitionWindows, Samples, Windows

# What stands before a metric's name says about whom it is (docs/history.md); none: a leader, or the whole broker.
FOLLOWER, UNKNOWN_ROLE = "follower.", "replica."


def windows(samples: Samples, window_seconds: float) -> Windows:
    """Mean and maximum of every series in every window, one row each.

    A sample that is there twice weighs twice in its window's mean, no more; out-of-order and late ones count where they belong.

    Parameters
    ----------
    samples
        Those that count (`spark.history.sift`); values that are null or NaN are passed over.
    window_seconds
        Length of a window, seconds, above 0.

    Notes
    -----
    One grouping of the raw rows with partial sums, so a sample crosses the network at most once and mostly not at all. No
    sorting.
    """
    counted = samples.frame.where(F.col("value").isNotNull() & ~F.isnan("value"))
    grouped = counted.groupBy(
        "cluster_id", "broker", "topic", "partition", "metric", _start(window_seconds).alias("start")
    ).agg(F.avg("value").alias("mean"), F.max("value").alias("max"), F.count("value").alias("samples"))
    return Windows(grouped)


def broker_windows(samples: Samples, window_seconds: float) -> BrokerWindows:
    """Loads of brokers: `brokers_of` the windows of `samples`."""
    return brokers_of(windows(samples, window_seconds))


def partition_windows(samples: Samples, window_seconds: float) -> PartitionWindows:
    """Loads of replicas: `partitions_of` the windows of `samples`."""
    return partitions_of(windows(samples, window_seconds))


def brokers_of(measured: Windows) -> BrokerWindows:
    """Loads of brokers: as the broker itself reports it, else the sum over its replicas.

    Which of the two is decided for each broker and resource once, not window by window, so that a lost sample makes no jump.
    Whatever is reported about a whole broker is here under its metric's own name, such as ``capacity.network_in`` or
    ``produce_latency_ms``; sums are made of measured resources only. In a sum, `max` is the sum of the replicas' maxima and
    `samples` the most that one replica has.
    """
    whole = measured.frame.where(F.col("topic").isNull()).withColumnRenamed("metric", "resource")
    reported = whole.select("cluster_id", "broker", "resource").distinct()
    parts = partitions_of(measured).frame.join(
        F.broadcast(reported), ["cluster_id", "broker", "resource"], "left_anti"
    )
    summed = parts.groupBy("cluster_id", "broker", "resource", "start").agg(
        F.sum("mean").alias("mean"), F.sum("max").alias("max"), F.max("samples").alias("samples")
    )
    names = BrokerWindows.SCHEMA.names
    return BrokerWindows(whole.select(*names).unionByName(summed.select(*names)))


def partitions_of(measured: Windows) -> PartitionWindows:
    """Loads of replicas in measured resources, with the role that the metric's name says."""
    replicas = measured.frame.where(F.col("topic").isNotNull() & F.col("partition").isNotNull())
    metric = F.col("metric")
    role = F.when(metric.startswith(FOLLOWER), "follower").when(metric.startswith(UNKNOWN_ROLE), "replica").otherwise("leader")
    resource = F.regexp_replace(metric, f"^({FOLLOWER}|{UNKNOWN_ROLE})".replace(".", r"\."), "")
    named = replicas.withColumn("role", role).withColumn("resource", resource)
    return PartitionWindows(named.where(F.col("resource").isin(*MEASURED)))


def _start(window_seconds: float) -> Column:
    """The window that a row's `time` is in: the instant it begins."""
    length = round(window_seconds * 1e6)
    micros = F.unix_micros(F.col("time"))
    return F.timestamp_micros(micros - F.pmod(micros, F.lit(length)))
