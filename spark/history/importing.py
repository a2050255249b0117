"""A history made of what an operator has: CSV files or answers of Prometheus.

Called by ``trimtab history import``. Reads, sets bad rows apart, writes whole days; wires `spark.history.csv_form`, `sift` and `write`,
or, without Spark, `answers` and `prometheus_form`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException

from cluster_model.errors import InputError, Problem
from spark.history import csv_form, prometheus_form
from spark.history.answers import Read, read_answers
from spark.history.local import LocalFolder
from spark.history.mapping import CsvMapping, PrometheusMapping
from spark.history.refused import Refused
from spark.history.sift import Sifted, sifted_rows
from spark.history.storage import Folder
from spark.history.write import require_days, require_place, write_samples, write_tables

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class Imported:
    """What was written, and what was not: reason -> rows."""

    rows: int
    days: list[str]
    rejected: Mapping[str, int]
    examples: Mapping[str, str]


def import_answers(
    files: Sequence[Path],
    mapping: PrometheusMapping,
    out: str,
    now: datetime,
    cluster_id: str | None = None,
    rejected: str | None = None,
    read: Read | None = None,
) -> Imported:
    """Write what answers of Prometheus say as a history on this machine, without Spark.

    Parameters
    ----------
    now
        Samples of more than an hour later are of a wrong clock.
    rejected
        Folder for the rows that were not taken, with reason and source, as Parquet; it must not be there.
    read
        Hears how many files were read, and of how many.

    Raises
    ------
    InputError
        Nothing in them counts, a day or a folder is there already. Nothing is written then.
    """
    folder = LocalFolder(out)
    require_place(folder)
    if rejected is not None and Path(rejected).exists():
        raise _there_already(rejected)
    place = tempfile.gettempdir() if not Path(out).exists() else out
    with tempfile.TemporaryDirectory(prefix="_import-", dir=place) as temporary:
        kept, rows = Path(temporary) / "rejected", 0
        refused = Refused(kept if rejected is not None else None)
        answers = read_answers(files, mapping, cluster_id, Path(temporary), refused, read)
        require_days(folder, [_name(day) for day in sorted(answers.days)])

        def tables() -> Iterator[tuple[str, pa.Table]]:
            nonlocal rows
            for day in prometheus_form.samples_of(answers, mapping, now, refused):
                rows += len(day.samples)
                yield _name(day.number), prometheus_form.table_of(day)

        days = write_tables(tables(), folder)
        if not rows:
            raise _nothing(", ".join(str(file) for file in files[:3]), refused.counts, refused.examples)
        if kept.exists() and rejected is not None:
            shutil.copytree(kept, rejected)
        return Imported(rows, days, dict(refused.counts), refused.examples)


def _name(day: int) -> str:
    return (EPOCH + timedelta(days=day)).isoformat()


def import_history(
    spark: SparkSession, paths: list[str], mapping: CsvMapping, out: str, cluster_id: str | None = None, rejected: str | None = None
) -> Imported:
    """Write what CSV files say as a history.

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
    require_place(Folder(spark, out))
    if rejected is not None and Folder(spark, rejected).exists():
        raise _there_already(rejected)
    try:
        rows = csv_form.csv_rows(spark, paths, mapping, cluster_id).persist(StorageLevel.DISK_ONLY)  # files are parsed once
        found = sifted_rows(rows, csv_form.REASONS)
    except (PySparkException, Py4JJavaError) as e:
        raise InputError(", ".join(paths), [Problem("", _said(str(e)))]) from e
    try:
        return _written(spark, found, out, rejected, ", ".join(paths))
    finally:
        rows.unpersist()


def _there_already(rejected: str) -> InputError:
    return InputError(rejected, [Problem("", "expected a folder that is not there yet; name another one for the rejected rows")])


def _nothing(document: str, reasons: Mapping[str, int], examples: Mapping[str, str]) -> InputError:
    whys = "; ".join(f"{number} rows: {why} ({examples.get(why)})" for why, number in reasons.items())
    return InputError(document, [Problem("", f"expected samples, found none that counts; {whys or 'there are no rows'}")])


def _written(spark: SparkSession, found: Sifted, out: str, rejected: str | None, document: str) -> Imported:
    refused = sum(found.reasons.values())
    examples = {row[0]: row[1] for row in found.rejected.frame.groupBy("reason").agg({"source": "min"}).collect()} if refused else {}
    if found.rows == refused:
        raise _nothing(document, found.reasons, examples)
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
