"""CSV files as samples: every field read as text and turned into what its column is, or the row set apart with a reason.

Called by `spark.history.importing`. No types are guessed; files whose headers differ are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cluster_model.errors import InputError, Problem
from spark.history.counters import rates
from spark.history.mapping import CsvMapping
from spark.history.repeats import KEY, spacing_ms
from spark.history.sift import REASON

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REASONS = ("time cannot be read", "broker is no number", "partition is no number", "value is no number")
SECONDS_PATTERN = r"^-?\d{1,11}(\.\d+)?$"
MILLISECONDS_PATTERN = r"^-?\d{1,14}$"


def csv_rows(spark: SparkSession, paths: list[str], mapping: CsvMapping, cluster_id: str | None) -> DataFrame:
    """Rows with the columns of `Samples`, `reason` (null where nothing is wrong so far) and `source` (file and text).

    Raises
    ------
    InputError
        A column that the mapping names is not in the header, or the cluster is not named.
    """
    frame = spark.read.csv(paths, header=True, sep=mapping.delimiter, inferSchema=False, enforceSchema=False, mode="PERMISSIVE")
    _require(frame.columns, mapping, cluster_id, ", ".join(paths))
    fields = F.concat_ws(mapping.delimiter, *[_field(name) for name in frame.columns])
    text = frame.select("*", F.concat(F.col("_metadata.file_path"), F.lit(": "), fields).alias("source"))
    named = text.select(
        "source",
        *_parsed("time", _field(mapping.time), time_of(_field(mapping.time), mapping.time_form), REASONS[0]),
        *_parsed("broker", _field(mapping.broker), _field(mapping.broker).try_cast("int"), REASONS[1]),
        *_parsed("partition", _optional(mapping.partition, frame), _optional(mapping.partition, frame).try_cast("int"), REASONS[2]),
        (_field(mapping.cluster_id) if mapping.cluster_id else F.lit(cluster_id)).alias("cluster_id"),
        _optional(mapping.topic, frame).alias("topic"),
        F.explode(_measured(mapping)).alias("measured"),
    )
    value, digits = F.col("measured.digits").try_cast("double"), F.col("measured.digits")
    rows = named.select(
        "*", "measured.metric", (value * F.col("measured.scale")).alias("value"), F.col("measured.counter").alias("counter"),
        F.when(digits.isNotNull() & value.isNull(), F.lit(REASONS[3])).alias("value_reason"),
    )  # fmt: skip
    whys = ("time_reason", "broker_reason", "partition_reason", "value_reason")
    judged = rows.withColumn(REASON, F.coalesce(*whys)).withColumn("date", F.to_date("time")).drop("measured", *whys)
    return _with_rates(judged, mapping)


def time_of(text: Column, form: str) -> Column:
    """A time in UTC of a text; null where it is none."""
    if form == "iso":
        return text.try_cast("timestamp")
    if form in ("seconds", "milliseconds"):
        pattern, unit = (SECONDS_PATTERN, 1e6) if form == "seconds" else (MILLISECONDS_PATTERN, 1e3)
        return F.timestamp_micros(F.when(text.rlike(pattern), F.round(text.try_cast("double") * unit)).cast("long"))
    return F.try_to_timestamp(text, F.lit(form))


def _field(name: str) -> Column:
    """A column by the name that stands in the header, whatever signs are in it; blanks around a field do not count."""
    return F.trim(F.col(f"`{name.replace('`', '``')}`"))


def _optional(name: str | None, frame: DataFrame) -> Column:
    """Text of a column that need not be there; an empty field is none."""
    if name is None or name not in frame.columns:
        return F.lit(None).cast("string")
    return F.nullif(_field(name), F.lit(""))


def _parsed(name: str, text: Column, value: Column, reason: str) -> list[Column]:
    """The value, and the reason where there is a text that is none."""
    present = text.isNotNull() & (text != "")
    return [value.alias(name), F.when(present & value.isNull(), F.lit(reason)).alias(f"{name}_reason")]


def _measured(mapping: CsvMapping) -> Column:
    """Metric, text of the value, scale and whether it counts up: one for each value of a row."""

    def entry(metric: Column, column: str, scale: float, counter: bool) -> Column:
        digits = F.nullif(_field(column), F.lit(""))
        return F.struct(metric.alias("metric"), digits.alias("digits"), F.lit(scale).alias("scale"), F.lit(counter).alias("counter"))

    if mapping.values:
        found = [entry(F.lit(metric), c.column, c.scale, c.kind == "counter") for metric, c in mapping.values.items()]
        return F.filter(F.array(*found), lambda one: one["digits"].isNotNull())  # an empty cell was not measured
    metric = _field(mapping.metric)
    if mapping.names:
        pairs = [F.lit(text) for pair in mapping.names.items() for text in pair]
        metric = F.coalesce(F.try_element_at(F.create_map(*pairs), metric), metric)
    return F.array(entry(metric, mapping.value, 1.0, False))


def _with_rates(judged: DataFrame, mapping: CsvMapping) -> DataFrame:
    """Counters turned into rates; all else unchanged."""
    if not any(column.kind == "counter" for column in mapping.values.values()):
        return judged.drop("counter")
    counts = F.col("counter") & F.col(REASON).isNull() & F.col("time").isNotNull()
    counted = judged.where(counts)
    grown = rates(counted, KEY, spacing_ms(counted))
    return judged.where(~counts).unionByName(grown).drop("counter")


def _require(columns: list[str], mapping: CsvMapping, cluster_id: str | None, document: str) -> None:
    needed = {"time": mapping.time, "broker": mapping.broker}
    if mapping.cluster_id is not None:
        needed["cluster_id"] = mapping.cluster_id
    if mapping.values:
        needed |= {f"values.{metric}": column.column for metric, column in mapping.values.items()}
    else:
        needed |= {"metric": mapping.metric, "value": mapping.value}
    problems = [
        Problem(key, f"expected a column {name!r} in the header, found {', '.join(columns)}; a mapping can name another")
        for key, name in needed.items()
        if name not in columns
    ]
    if mapping.cluster_id is None and cluster_id is None:
        problems.append(Problem("cluster_id", "the cluster of these samples is not known; give --cluster-id"))
    if problems:
        raise InputError(document, problems)
