"""The samples of a history, as docs/history.md lays it out, wherever Spark can read: a folder here, ``s3a://``, ``hdfs://``.

Called by every job. Types are compared with those of `Samples` before anything is read, never guessed; what is wrong with
single rows is for `spark.history.sift`.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, StringType, StructField, StructType

from cluster_model.errors import ExternalError, InputError, Problem
from spark.schemas import Samples

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = "date"
LAYOUT = "expected Parquet as docs/history.md has it"
REMEDY = "name the folder that the service, `trimtab history import` or `trimtab history backfill` wrote"
OF_FILES = StructType([field for field in Samples.SCHEMA.fields if field.name != DAY])


def read_samples(
    spark: SparkSession,
    path: str,
    cluster_id: str | None = None,
    begin: datetime | None = None,
    end: datetime | None = None,
) -> Samples:
    """The samples of one cluster from `begin` on and before `end`; whole days outside of that are not even opened.

    Parameters
    ----------
    path
        The history's folder, or a part of it (a day, a file): any URI that Spark takes.
    cluster_id
        Which cluster; needed only where the history has samples of several.
    begin, end
        Aware times; None: as far as the history goes.

    Raises
    ------
    InputError
        There is nothing at `path`, it is empty or no Parquet, lacks columns or has them with other types (all of them
        at once), has no such samples, or has those of several clusters and `cluster_id` is None.
    ExternalError
        The storage says no, or Spark has no driver for it.

    Notes
    -----
    Before the frame is returned, footers are read: of one file for the columns, and of all for the cluster ids.
    """
    samples = Samples(_between(_frame(spark, path), begin, end))
    try:
        return _of_cluster(samples, path, cluster_id)
    except InputError:
        raise
    except Exception as e:
        raise _said(e, path) from e


def _frame(spark: SparkSession, path: str) -> DataFrame:
    """All rows with the columns of `Samples`; a folder that is not split by day gets the day of each row's time."""
    try:
        found = spark.read.option("mergeSchema", "false").parquet(path).schema
    except Exception as e:
        raise _said(e, path) from e
    _require_columns(found, path)
    if DAY in found.names and isinstance(found[DAY].dataType, DateType):
        return spark.read.schema(Samples.SCHEMA).parquet(path)
    return spark.read.schema(OF_FILES).parquet(path).withColumn(DAY, F.to_date("time"))


def _require_columns(found: StructType, path: str) -> None:
    """Refuse files whose columns are not those of the history; columns beyond them do no harm."""
    have = {field.name: field.dataType for field in found}
    problems = [
        Problem(f"column {field.name}", f"expected {field.dataType.simpleString()}, found {_told(have.get(field.name))}")
        for field in OF_FILES
        if have.get(field.name) != field.dataType and not _is_text(field, have.get(field.name))
    ]
    if DAY in have and not isinstance(have[DAY], DateType):
        problems.append(Problem(f"column {DAY}", f"expected folders such as date=2026-11-20, found {_told(have[DAY])}"))
    if problems:
        raise InputError(path, problems)


def _is_text(field: StructField, found: DataType | None) -> bool:
    """Whether both are text, be it of bounded length."""
    return isinstance(field.dataType, StringType) and isinstance(found, StringType)


def _told(found: DataType | None) -> str:
    return "no such column" if found is None else found.simpleString()


def _between(frame: DataFrame, begin: datetime | None, end: datetime | None) -> DataFrame:
    for moment, names in ((begin, "begin"), (end, "end")):
        if moment is not None and moment.tzinfo is None:
            raise ValueError(f"{names} needs a time zone")
    if begin is not None:
        frame = frame.where((F.col(DAY) >= F.to_date(F.lit(begin))) & (F.col("time") >= F.lit(begin)))
    if end is not None:
        frame = frame.where((F.col(DAY) <= F.to_date(F.lit(end))) & (F.col("time") < F.lit(end)))
    return frame


def _of_cluster(samples: Samples, path: str, cluster_id: str | None) -> Samples:
    """Those of one cluster. Files say in their footers which ids they hold, so that looking for others reads no rows."""
    ids = samples.frame.select("cluster_id").where("cluster_id is not null")
    if cluster_id is None:
        first = ids.first()
        if first is None:
            if samples.frame.isEmpty():
                raise InputError(path, [Problem("", f"there are no samples (in the time asked for); {LAYOUT}; {REMEDY}")])
            raise InputError(path, [Problem("column cluster_id", "expected the id of a cluster, found none in any row")])
        other = ids.where(F.col("cluster_id") != first[0]).agg(F.min("cluster_id")).collect()[0]  # one job; first() looks again and again
        if other[0] is not None:
            found = f"found samples of several clusters, {first[0]} and {other[0]} among them"
            raise InputError(path, [Problem("column cluster_id", f"{found}; say which with --cluster-id")])
        return samples
    if ids.where(F.col("cluster_id") == cluster_id).isEmpty():
        first = ids.first()
        found = "no samples at all" if first is None else f"those of {first[0]}"
        raise InputError(path, [Problem("", f"expected samples of cluster {cluster_id} (in the time asked for), found {found}")])
    return Samples(samples.frame.where(F.col("cluster_id") == cluster_id))


def _said(error: Exception, path: str) -> InputError | ExternalError:
    """What Spark's error means to a person."""
    condition = (error.getCondition() or "") if isinstance(error, AnalysisException) else ""
    text = str(error)
    if condition == "PATH_NOT_FOUND":
        return nothing_at(path)
    if condition == "UNABLE_TO_INFER_SCHEMA":
        return no_parquet_in(path)
    if "CANNOT_READ_FILE_FOOTER" in text or "is not a Parquet file" in text:
        named = re.search(r"(?:while reading file|RuntimeException:) (\S+)", text)
        return InputError(path, [Problem("", f"{LAYOUT}, found a file that is none: {named[1] if named else _first_line(text)}")])
    if "ClassNotFoundException" in text and "FileSystem" in text:
        return ExternalError(f"{path}: Spark has no driver for this storage ({_first_line(text)}); add its jar with --packages")
    return ExternalError(f"{path}: cannot be read: {_first_line(text)}", retriable=True)


def nothing_at(path: str) -> InputError:
    """That there is no history."""
    return InputError(path, [Problem("", f"there is nothing at this path; {LAYOUT}; {REMEDY}")])


def no_parquet_in(path: str) -> InputError:
    """That there are no samples in a folder."""
    return InputError(path, [Problem("", f"there is no Parquet file in it; {LAYOUT}; {REMEDY}")])


def unreadable(error: Exception) -> InputError | None:
    """What a file is that Spark met in the middle of a job and could not read; None where the error is another."""
    text = str(error)
    where = re.search(r"FAILED_READ_FILE[\w.]*\].*? file (\S+?)\.? ", text)
    if where is None:
        return None
    column = re.search(r"Parquet column \[(\w+)\]\. Expected Spark type (\w+), actual Parquet type (\w+)", text)
    if column is None:
        return InputError(where[1], [Problem("", f"{LAYOUT}, found a file that cannot be read: it is damaged, or not there any more")])
    found = f"expected {column[2]} as in the other files, found Parquet's {column[3]}; write the file again, or take it out"
    return InputError(where[1], [Problem(f"column {column[1]}", found)])


def _first_line(text: str) -> str:
    """What happened, without where in py4j it did."""
    lines = [line.removeprefix(":").strip() for line in text.splitlines() if not line.startswith("An error occurred while calling")]
    return lines[0] if lines else "no reason given"
