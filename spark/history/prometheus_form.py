"""Answers of Prometheus to range queries (``/api/v1/query_range``) as samples.

Called by `spark.history.importing`. A file is one answer, as curl saves it; a mapping says which series is what. Counters become
rates (`spark.history.counters`), series that are summed up count where all of them are there, and what brokers count for a
topic is split among the partitions that they lead by how their logs grew.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark.history.counters import rates
from spark.history.mapping import PrometheusMapping, Source
from spark.history.repeats import KEY, spacing_ms
from spark.history.sift import REASON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOT_AN_ANSWER = "file is no answer to a range query"
NOT_MAPPED = "series is not in the mapping"
NO_BROKER = "broker is not in the labels"
NO_PARTITION = "partition is no number"
NO_NUMBER = "value is no number"
NOT_SPLIT = "topic cannot be split among partitions"
REASONS = (NOT_AN_ANSWER, NOT_MAPPED, NO_BROKER, NO_PARTITION, NO_NUMBER, NOT_SPLIT)
# A value is [seconds, "text"]; read as texts, so that nothing is guessed.
ANSWER = """
status string, error string,
data struct<resultType: string, result: array<struct<metric: map<string, string>, values: array<array<string>>>>>,
damaged string
"""
PLACE = ("cluster_id", "broker", "topic", "time")
FOLLOWER, UNKNOWN_ROLE = "follower.", "replica."


def prometheus_rows(spark: SparkSession, paths: list[str], mapping: PrometheusMapping, cluster_id: str | None) -> DataFrame:
    """Rows with the columns of `Samples`, `reason` (null where nothing is wrong so far) and `source` (file and labels).

    Notes
    -----
    One task reads one file, which has to fit into its memory a few times; Prometheus gives at most 11,000 points a series.
    """
    answers = (
        spark.read.schema(ANSWER).option("multiLine", True).option("columnNameOfCorruptRecord", "damaged").json(paths)
        .select("*", F.col("_metadata.file_path").alias("file"))
    )  # fmt: skip
    sources = list(mapping.sources())
    points = _points(answers, mapping, sources, cluster_id).persist(StorageLevel.DISK_ONLY)  # every file is parsed once
    good = points.where(F.col(REASON).isNull())
    bad = points.where(F.col(REASON).isNotNull()).withColumn("metric", F.col("name"))
    measured = _measured(good, sources).persist(StorageLevel.DISK_ONLY)  # read for roles, weights and each kind of metric
    helpers = {about: measured.where(F.col("about") == about) for about in ("leads", "growth")}
    found = [
        _summed(measured.where("about = 'broker'")),
        _with_roles(_summed(measured.where("about = 'partition'")), helpers["leads"]),
        _split(_summed(measured.where("about = 'topic'")), helpers["growth"], helpers["leads"]),
        bad.select(*_columns()),
    ]
    return reduce(DataFrame.unionByName, found).withColumn("date", F.to_date("time"))


def _columns() -> list[str]:
    return ["time", *KEY, "value", REASON, "source"]


# -- from answers to points ------------------------------------------------------------------------------------


def _points(answers: DataFrame, mapping: PrometheusMapping, sources: list[Source], cluster_id: str | None) -> DataFrame:
    """One row a value: where it belongs, `origin` (place in `sources`), `labels` as text; a file that is none gives one row."""
    is_answer = (F.col("status") == "success") & (F.col("data.resultType") == "matrix") & F.col("data.result").isNotNull()
    whole = answers.withColumn("fine", F.coalesce(is_answer, F.lit(False)))
    series = whole.where("fine").select("file", F.explode("data.result").alias("series"))
    labelled = series.select("file", F.col("series.metric").alias("label"), F.col("series.values").alias("values"))
    placed = labelled.select(
        "file", "values", F.to_json("label").alias("labels"), F.lower(_label("__name__")).alias("name"),
        _broker(mapping).alias("broker"),
        (F.coalesce(_label(mapping.cluster_label), F.lit(cluster_id)) if mapping.cluster_label else F.lit(cluster_id)).alias("cluster_id"),
        _label(mapping.topic_label).alias("topic"), _label(mapping.partition_label).alias("number"),
        _origin(mapping, sources).alias("origin"),
    )  # fmt: skip
    values = placed.select("*", F.explode("values").alias("point")).withColumn("partition", F.col("number").try_cast("int"))
    seconds, value = F.try_element_at("point", F.lit(1)).try_cast("double"), F.try_element_at("point", F.lit(2)).try_cast("double")
    points = values.select(
        F.timestamp_micros(F.round(seconds * 1e6).cast("long")).alias("time"), *KEY[:-1], "name", "labels", "origin",
        value.alias("value"), F.concat_ws(" ", "file", "labels").alias("source"),
        F.coalesce(
            F.when(F.col("origin").isNull(), F.lit(NOT_MAPPED)), F.when(F.col("broker").isNull(), F.lit(NO_BROKER)),
            F.when(F.col("number").isNotNull() & F.col("partition").isNull(), F.lit(NO_PARTITION)),
            F.when(value.isNull(), F.lit(NO_NUMBER)),
        ).alias(REASON),
    )  # fmt: skip
    told = F.concat_ws(" ", "file", "error", F.substring("damaged", 1, 200))
    wrong = whole.where("not fine").select(told.alias("source"), F.lit(NOT_AN_ANSWER).alias(REASON))
    return points.unionByName(wrong, allowMissingColumns=True)


def _label(name: str) -> Column:
    return F.try_element_at(F.col("label"), F.lit(name))


def _broker(mapping: PrometheusMapping) -> Column:
    """Id by the list, else by the pattern; null where neither says."""
    label, known = _label(mapping.broker_id.label), mapping.broker_id.ids
    by_pattern = F.nullif(F.regexp_extract(label, mapping.broker_id.pattern, 1), F.lit("")).try_cast("int")
    if not known:
        return by_pattern
    pairs = [F.lit(part) for pair in known.items() for part in pair]
    return F.coalesce(F.try_element_at(F.create_map(*pairs), label), by_pattern)


def _origin(mapping: PrometheusMapping, sources: list[Source]) -> Column:
    """Place in `sources` of the first that a series is; null where it is none."""
    topic, partition = _label(mapping.topic_label).isNotNull(), _label(mapping.partition_label).isNotNull()
    shape = {"broker": ~topic & ~partition, "topic": topic & ~partition}
    found = []
    for place, (about, _, wanted, _) in enumerate(sources):
        fits = shape.get(about, topic & partition)
        if wanted.name is not None:
            fits = fits & (F.lower(_label("__name__")) == wanted.name.lower())
        if wanted.file is not None:
            pattern = wanted.file.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_").replace("*", "%")
            fits = fits & F.element_at(F.split("file", "/"), -1).like(pattern)
        for key, value in wanted.labels.items():
            fits = fits & (_label(key) == value)
        found.append(F.when(fits, F.lit(place)))
    return F.coalesce(*found, F.lit(None).cast("int"))


# -- from points to samples ------------------------------------------------------------------------------------


def _measured(good: DataFrame, sources: list[Source]) -> DataFrame:
    """Gauges as they are and counters as rates, with `about`, `metric` and `summands` of their source."""

    def of_source(what: list[object]) -> Column:
        return F.element_at(F.array(*[F.lit(value) for value in what]), F.col("origin") + 1)

    known = good.withColumn("about", of_source([s.about for s in sources])).withColumn("metric", of_source([s.metric for s in sources]))
    known = known.withColumn("summands", of_source([s.summands for s in sources]))
    scaled = known.withColumn("value", F.col("value") * of_source([s.series.scale for s in sources]))
    counts = of_source([s.series.is_counter or s.about == "growth" for s in sources])
    counters = scaled.where(counts)
    return scaled.where(~counts).unionByName(rates(counters, ("origin", "labels", *KEY), spacing_ms(counters)))


def _summed(measured: DataFrame) -> DataFrame:
    """One row per sample: a metric that is the sum of series, where all of them are there; others one by one, repeated ones too."""
    alone = measured.where("summands = 1")
    parts = measured.where("summands > 1").groupBy(*KEY, "time", REASON, "summands").agg(
        F.sum("value").alias("value"), F.count_distinct("origin").alias("there"), F.min("source").alias("source")
    )
    return alone.select(*_columns()).unionByName(parts.where("there = summands").select(*_columns()))


def _leading(leads: DataFrame) -> DataFrame:
    """Per time and replica, whether the broker leads it."""
    return leads.groupBy(*PLACE, "partition").agg((F.max("value") > 0).alias("leads"))


def _with_roles(replicas: DataFrame, leads: DataFrame) -> DataFrame:
    """Names of metrics say which role the replica had at the time."""
    joined = replicas.join(_leading(leads), [*PLACE, "partition"], "left")
    prefix = F.when(F.col("leads"), "").when(~F.col("leads"), FOLLOWER).otherwise(UNKNOWN_ROLE)
    return joined.withColumn("metric", F.concat(prefix, "metric")).select(*_columns())


def _split(topics: DataFrame, growth: DataFrame, leads: DataFrame) -> DataFrame:
    """What a broker counted for a topic, split among the partitions that it leads by how their logs grew; equally where none did.

    Without knowing who leads, nothing is split: a follower's log grows as the leader's does.
    """
    led = _leading(leads).where("leads").drop("leads")
    grown = growth.groupBy(*PLACE, "partition").agg(F.max("value").alias("growth"))
    weighed = led.join(grown, [*PLACE, "partition"], "left").withColumn("growth", F.coalesce("growth", F.lit(0.0)))
    of_topic = Window.partitionBy(*PLACE)
    even = F.lit(1.0) / F.count("*").over(of_topic)
    part = F.coalesce(F.try_divide(F.col("growth"), F.sum("growth").over(of_topic)), even)
    parts = weighed.select(*PLACE, F.col("partition").alias("part"), part.alias("share"))
    split = topics.join(parts, list(PLACE), "left").where("part is not null or value > 0").withColumn("partition", F.col("part"))
    split = split.withColumn("value", F.col("value") * F.coalesce("share", F.lit(1.0)))
    return split.withColumn(REASON, F.when(F.col("part").isNull(), F.lit(NOT_SPLIT))).select(*_columns())
