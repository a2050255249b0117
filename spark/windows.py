"""Samples averaged over windows: loads of replicas and of brokers, as the service would have seen them.

Called by the jobs, the backtest and tests. Windows are those of the live model: whole multiples of their length since the
Unix epoch, a sample belongs to the one that its time is in. Knows nothing of what is noise or load.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cluster_model.resources import MEASURED
from spark.blocks import PER_BLOCK, SERIES, blocks_of, packed, unpacked
from spark.history.sift import REASON
from spark.schemas import Blocks, BrokerWindows, PartitionWindows, Samples, Windows

# What stands before a metric's name says about whom it is (docs/history.md); none: a leader, or the whole broker.
FOLLOWER, UNKNOWN_ROLE = "follower.", "replica."


def blocks(samples: Samples, window_seconds: float) -> Blocks:
    """`samples`, those that count (`spark.history.sift`), packed by windows of `window_seconds`; NaN and null are passed over."""
    counted = samples.frame.where(F.col("value").isNotNull() & ~F.isnan("value"))
    return blocks_of(packed(counted.withColumn(REASON, F.lit(None).cast("string")), window_seconds, by_moments=False))


def windows(samples: Samples, window_seconds: float) -> Windows:
    """Mean and maximum of every series in every window, one row each.

    A sample that is there twice weighs twice in its window's mean, no more; out-of-order and late ones count where they belong.
    """
    return unpacked(blocks(samples, window_seconds), window_seconds)


def brokers_of(measured: Blocks, window_seconds: float) -> BrokerWindows:
    """Loads of brokers: as the broker itself reports it, else the sum over its replicas.

    Which of the two is decided for each broker and resource once, not window by window, so that a lost sample makes no jump.
    Whatever is reported about a whole broker is here under its metric's own name, such as ``capacity.network_in`` or
    ``produce_latency_ms``; sums are made of measured resources only. In a sum, `max` is the sum of the replicas' maxima and
    `samples` the most that one replica has.
    """
    whole = unpacked(measured.where("topic is null"), window_seconds).frame.withColumnRenamed("metric", "resource")
    reported = F.broadcast(broker_sources(measured))
    named = _each_replica_once(_of_replicas(measured).join(reported, ["cluster_id", "broker", "resource"], "left_anti"))
    parts = partitions_of(named, window_seconds)
    summed = parts.frame.groupBy("cluster_id", "broker", "resource", "start").agg(
        F.sum("mean").alias("mean"), F.sum("max").alias("max"), F.max("samples").alias("samples")
    )
    names = BrokerWindows.SCHEMA.names
    return BrokerWindows(whole.select(*names).unionByName(summed.select(*names)))


def broker_sources(measured: Blocks) -> DataFrame:
    """Which brokers report which resource of themselves: ``cluster_id``, ``broker``, ``resource``, each once."""
    whole = measured.frame.where(F.col("topic").isNull()).withColumnRenamed("metric", "resource")
    return whole.select("cluster_id", "broker", "resource").distinct()


def partitions_of(measured: Blocks, window_seconds: float) -> PartitionWindows:
    """Loads of replicas in measured resources, with the role that the metric's name says."""
    rows = unpacked(Blocks(_of_replicas(measured)), window_seconds).frame
    metric = F.col("metric")
    prefixes = {FOLLOWER: "follower", UNKNOWN_ROLE: "replica"}
    role = F.coalesce(*[F.when(metric.startswith(prefix), role) for prefix, role in prefixes.items()], F.lit("leader"))
    return PartitionWindows(rows.withColumn("role", role).withColumn("resource", F.expr(RESOURCE)))


RESOURCE = "substring_index(metric, '.', -1)"


def _each_replica_once(named: DataFrame) -> Blocks:
    """One block for each replica, resource and time, whatever its role is called in them: means weighed by samples.

    Else a replica whose role was not known for one sample, or that became leader within a window, would count twice there.
    """
    parts = named.groupBy("cluster_id", "broker", "topic", "partition", F.col("resource").alias("metric"), "start").agg(
        F.collect_list(F.struct("mean", "max", "samples")).alias("parts")
    )
    none = F.array_repeat(F.lit(0).cast("long"), PER_BLOCK)
    nothing = F.array_repeat(F.lit(0.0), PER_BLOCK)
    samples = F.aggregate("parts", none, lambda all_, one: F.zip_with(all_, one["samples"], lambda a, b: a + b))
    sums = F.aggregate(
        "parts", nothing,
        lambda all_, one: F.zip_with(
            all_, F.zip_with(one["mean"], one["samples"], lambda mean, n: F.coalesce(mean * n, F.lit(0.0))), lambda a, b: a + b
        ),
    )  # fmt: skip
    largest = F.aggregate(
        "parts", F.array_repeat(F.lit(None).cast("double"), PER_BLOCK),
        lambda all_, one: F.zip_with(all_, one["max"], lambda a, b: F.greatest(a, b)),
    )  # fmt: skip
    alone = F.size("parts") == 1
    first = F.element_at("parts", 1)
    return Blocks(parts.select(
        *[name for name in SERIES if name != "metric"], "metric", "start",
        F.when(alone, first["mean"]).otherwise(F.zip_with(sums, samples, F.try_divide)).alias("mean"),
        F.when(alone, first["max"]).otherwise(largest).alias("max"),
        F.when(alone, first["samples"]).otherwise(samples).alias("samples"),
    ))  # fmt: skip


def _of_replicas(measured: Blocks) -> DataFrame:
    """The blocks of replicas in measured resources, with a column of that."""
    metrics = [prefix + resource for prefix in ("", FOLLOWER, UNKNOWN_ROLE) for resource in MEASURED]
    replicas = measured.frame.where(F.col("topic").isNotNull() & F.col("partition").isNotNull() & F.col("metric").isin(*metrics))
    return replicas.withColumn("resource", F.expr(RESOURCE))
