"""What leaders send, where a history has what consumers fetch: that, and what each follower copies.

Used by the calibration job on blocks, and by `spark.backtest.packing` on a stretch. Reporters, AutoMQ's topic and the import from
Prometheus write ``consumer_out``; the live model adds (RF - 1) x ``network_in`` to it (docs/model.md), and so does this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
from pyspark import StorageLevel
from pyspark.sql import Column
from pyspark.sql import functions as F

from spark.schemas import Blocks

CONSUMER_OUT, INCOMING, OUTGOING = "consumer_out", "network_in", "network_out"
PARTS = (CONSUMER_OUT, INCOMING, OUTGOING)
PARTITION = ("cluster_id", "topic", "partition")
Series = npt.NDArray[np.float32]


def completed(measured: Blocks) -> Blocks:
    """The blocks, and beside them what leaders send, where there is anything of what consumers fetch."""
    known = measured.where(f"topic is not null and metric = '{CONSUMER_OUT}'").frame.limit(1).count()
    if not known:
        return measured
    return Blocks(measured.frame.unionByName(outgoing(measured).frame))


@contextmanager
def kept(measured: Blocks, metrics: Mapping[tuple[str, bool], int]) -> Iterator[Blocks]:
    """The same, where `metrics` (as in `spark.blocks.Tally`) say that there is something to add; that is kept on disk meanwhile."""
    if (CONSUMER_OUT, False) not in metrics:
        yield measured
        return
    made = outgoing(measured).frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield Blocks(measured.frame.unionByName(made))
    finally:
        made.unpersist()


def outgoing(measured: Blocks) -> Blocks:
    """Blocks of ``network_out`` of leaders, where none was measured.

    A partition's replicas are counted block by block, as the brokers that report anything of it; what most blocks of a day have counts for
    the day, so that a broker which was silent for an hour, or a replica on its way, makes no step. Of a leader of which no
    ``consumer_out`` is in a block, only what followers copy is known. A window without ``network_in`` has none, unless there is
    one replica.

    Notes
    -----
    One shuffle of the blocks of replicas.
    """
    replicas = measured.frame.where(F.col("topic").isNotNull() & F.col("partition").isNotNull()).repartition(*PARTITION)
    part = F.when(F.col("metric").isin(*PARTS), F.struct("broker", "metric", "mean", "max", "samples"))
    of_block = replicas.groupBy(*PARTITION, "start").agg(
        F.size(F.collect_set("broker")).alias("hosts"), F.collect_list(part).alias("parts")
    )
    of_day = of_block.groupBy(*PARTITION, F.to_date("start").alias("day")).agg(
        F.mode("hosts", deterministic=True).alias("hosts"), F.collect_list(F.struct("start", "parts")).alias("blocks")
    )
    each = of_day.select(*PARTITION, "hosts", F.explode("blocks").alias("block"))
    brokers = F.array_distinct(F.transform("block.parts", lambda one: one["broker"]))
    led = each.select("*", F.explode(brokers).alias("broker"))
    mine = led.withColumn("parts", F.filter("block.parts", lambda one: one["broker"] == F.col("broker")))
    found = mine.select(
        "cluster_id", "broker", "topic", "partition", F.lit(OUTGOING).alias("metric"), F.col("block.start").alias("start"),
        (F.col("hosts") - 1).cast("double").alias("followers"),
        *[_one(metric).alias(metric) for metric in PARTS],
    )  # fmt: skip
    wanted = found.where(f"{OUTGOING} is null and ({CONSUMER_OUT} is not null or (followers > 0 and {INCOMING} is not null))")
    made = wanted.select(
        "cluster_id", "broker", "topic", "partition", "metric", "start", _sent("mean").alias("mean"), _sent("max").alias("max"),
        _counts().alias("samples"),
    )  # fmt: skip
    return Blocks(made)


def _one(metric: str) -> Column:
    """The part of a metric; null where there is none."""
    return F.try_element_at(F.filter("parts", lambda one: one["metric"] == metric), F.lit(1))


def _sent(field: str) -> Column:
    """In each window, ``consumer_out + followers x network_in``; null where one of both is not known and needed."""
    consumers, incoming = F.col(f"{CONSUMER_OUT}.{field}"), F.col(f"{INCOMING}.{field}")
    copied = F.when(F.col("followers") > 0, F.transform(incoming, lambda one: one * F.col("followers")))
    both = F.zip_with(consumers, copied, lambda one, other: one + other)
    alone = F.when(F.col("followers") <= 0, consumers).when(consumers.isNull(), copied)
    return alone.when(copied.isNull(), _nothing(consumers)).otherwise(both)


def _nothing(like: Column) -> Column:
    return F.transform(like, lambda _: F.lit(None).cast("double"))


def _counts() -> Column:
    """Samples of each window: those of what consumers fetch, else of what came in; 0 where nothing came of them."""
    samples = F.coalesce(F.col(f"{CONSUMER_OUT}.samples"), F.col(f"{INCOMING}.samples"))
    return F.zip_with(samples, _sent("mean"), lambda count, mean: F.when(mean.isNull(), F.lit(0).cast("long")).otherwise(count))


def sent(consumers: Series, incoming: Series, followers: npt.NDArray[np.int64], measured: Series | None = None) -> Series:
    """The same for a stretch: float32 [W, P], NaN where it is not known.

    Parameters
    ----------
    consumers, incoming, measured
        float32 [W, P]: ``consumer_out``, ``network_in`` and ``network_out`` of leaders; NaN: not measured. What was measured stays.
    followers
        int64 [P], replication factor less 1.
    """
    never = np.isnan(consumers).all(axis=0)
    fetched = np.where(never & (followers > 0), np.float32(0), consumers)
    found = fetched + np.where(followers > 0, incoming * followers, np.float32(0))
    return (found if measured is None else np.where(np.isnan(measured), found, measured)).astype(np.float32)
