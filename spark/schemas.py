"""The datasets of this room, each with its columns, units and what a row says. Declared here and nowhere else.

Times are UTC instants. `metric` and `resource` are the names of docs/history.md and `cluster_model.resources`; values are
in the resource's unit.
"""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DateType, DoubleType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from spark.dataset import Dataset

CLUSTER = StructField("cluster_id", StringType())
BROKER = StructField("broker", IntegerType())
RESOURCE = StructField("resource", StringType())
START = StructField("start", TimestampType())
PARTITION = [StructField("topic", StringType()), StructField("partition", IntegerType())]
SERIES = [CLUSTER, BROKER, *PARTITION, StructField("metric", StringType())]
AVERAGED = [StructField("mean", DoubleType()), StructField("max", DoubleType()), StructField("samples", LongType())]


class Samples(Dataset):
    """One row a sample, as docs/contract.md, section 5 and docs/history.md have it; `date` is the day of `time` in UTC.

    `topic` and `partition` are null where the sample is about the whole broker.
    """

    SCHEMA = StructType([
        StructField("time", TimestampType()), *SERIES, StructField("value", DoubleType()), StructField("date", DateType())
    ])  # fmt: skip


class Rejected(Dataset):
    """Samples that do not count: the same columns, `reason` (one of the words of `spark.history.sift`), and `source`: where an
    importer found the row, null for one of a history."""

    SCHEMA = StructType([*Samples.SCHEMA.fields, StructField("reason", StringType()), StructField("source", StringType())])


class Blocks(Dataset):
    """One row per series and a dozen windows: what `spark.blocks` makes of samples. In the arrays, one value a window, null (and 0
    `samples`) where it has none. `start` is that of the first; a series is one metric of one replica, or of one whole broker
    (`topic` and `partition` null).
    """

    SCHEMA = StructType([*SERIES, START, *[StructField(one.name, ArrayType(one.dataType)) for one in AVERAGED]])


class Windows(Dataset):
    """One row per series and window: what `spark.windows` makes of samples. `metric` is the sample's own, with its prefix.

    Window `start` is a whole multiple of the window's length since the Unix epoch; a series is one metric of one replica, or
    of one whole broker (`topic` and `partition` null).
    """

    SCHEMA = StructType([*SERIES, START, *AVERAGED])


class BrokerWindows(Dataset):
    """One row per broker, resource and window: `mean` and `max` of the samples in it, and how many there were.

    `resource` is a resource, or the name of whatever else is reported about whole brokers (``capacity.disk``, a latency).
    Window `start` is a whole multiple of the window's length since the Unix epoch.
    """

    SCHEMA = StructType([CLUSTER, BROKER, RESOURCE, START, *AVERAGED])


class PartitionWindows(Dataset):
    """One row per replica, resource and window. `role` is ``leader`` or ``follower``, as the sample's metric says, or
    ``replica`` where its reporter did not know."""

    SCHEMA = StructType([CLUSTER, *PARTITION, BROKER, StructField("role", StringType()), RESOURCE, START, *AVERAGED])


class PartitionLoads(Dataset):
    """What a partition's leader costs, one row per partition and resource: what ``plan --load`` reads.

    `mean` and `p95` over the history, `last` in its newest window, `forecast` the largest hour of the coming day (null where there is too
    little history), `pattern` one of ``steady``, ``cyclic``, ``growing``, ``bursty``.
    """

    SCHEMA = StructType([
        CLUSTER, *PARTITION, RESOURCE, *[StructField(name, DoubleType()) for name in ("mean", "p95", "last", "forecast")],
        StructField("pattern", StringType()),
    ])  # fmt: skip
