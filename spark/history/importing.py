"""A history made of what an operator has: CSV files or answers of Prometheus.

Called by ``trimtab history import``. Reads, sets bad rows apart, writes whole days; wires `spark.history.csv_form` or
`prometheus_form`, `sift` and `write`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException

from cluster_model.errors import InputError, Problem
from spark.history import csv_form, prometheus_form
from spark.history.mapping import CsvMapping, PrometheusMapping
from spark.history.sift import Sifted, sifted_rows
from spark.history.storage import Folder
from spark.history.write import require_place, write_samples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Imported:
    """What was written, and what was not: reason -> rows."""

    rows: int
    days: list[str]
    rejected: Mapping[str, int]
    examples: Mapping[str, str]


def import_history(
    spark: SparkSession,
    paths: list[str],
    mapping: CsvMapping | PrometheusMapping,
    out: str,
    cluster_id: str | None = None,
    rejected: str | None = None,
) -> Imported:
    """Write what the files say as a history.

    Parameters
    ----------
    paths
        Files, folders or patterns, as Spark takes them.
    rejected
        Folder for the rows that were not taken, with reason and source, as Parquet; it must not be there.

    Raises
    ------
    InputError
        There is nothing to read or nothing in it counts, a column is missing, a day or a folder is there already. Nothing is
        written then.
    """
    require_place(spark, out)
    if rejected is not None and Folder(spark, rejected).exists():
        raise InputError(rejected, [Problem("", "expected a folder that is not there yet; name another one for the rejected rows")])
    try:
        if isinstance(mapping, CsvMapping):
            rows = csv_form.csv_rows(spark, paths, mapping, cluster_id)
            known: tuple[str, ...] = csv_form.REASONS
        else:
            rows = prometheus_form.prometheus_rows(spark, paths, mapping, cluster_id)
            known = prometheus_form.REASONS
        rows = rows.persist(StorageLevel.DISK_ONLY)  # files are parsed once
        found = sifted_rows(rows, known)
    except (PySparkException, Py4JJavaError) as e:
        raise InputError(", ".join(paths), [Problem("", _said(str(e)))]) from e
    try:
        return _written(spark, found, out, rejected, ", ".join(paths))
    finally:
        rows.unpersist()


def _written(spark: SparkSession, found: Sifted, out: str, rejected: str | None, document: str) -> Imported:
    refused = sum(found.reasons.values())
    examples = {row[0]: row[1] for row in found.rejected.frame.groupBy("reason").agg({"source": "min"}).collect()} if refused else {}
    if found.rows == refused:
        whys = "; ".join(f"{number} rows: {why} ({examples.get(why)})" for why, number in found.reasons.items())
        raise InputError(document, [Problem("", f"expected samples, found none that counts; {whys or 'there are no rows'}")])
    days = write_samples(spark, found.samples, out)
    if rejected is not None and refused:
        found.rejected.frame.write.option("compression", "zstd").parquet(rejected)
    return Imported(found.rows - refused, days, found.reasons, examples)


def _said(text: str) -> str:
    """What Spark's error means to a person."""
    header = re.search(r"CSV header does not conform.*?Header: ([^\n]*).*?CSV file: (\S+)", text, re.DOTALL)
    if header is not None:
        return f"expected one header in all files, found {header[1]} in {header[2]}; import files of each header by themselves"
    lines = [line for line in text.splitlines() if "error occurred while calling" not in line]
    return f"cannot be read: {lines[0].removeprefix(':').strip() if lines else 'no reason given'}"
