"""Finished days are packed once: else each night's calibration reads months of samples again."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cluster_model.errors import InputError
from spark.blocks import Tally, counted, unpacked
from spark.history.read import read_samples
from spark.history.sift import REASON, reason
from spark.kept import Place, kept_rows
from tests.spark.test_windows import NOON, samples

WINDOW = 1800.0
FIRST = NOON.date()


def day_of(spark: SparkSession, folder: Path, day: int, value: float = 1.0) -> None:
    """A day of a history: a sample every ten minutes of two brokers, and one that does not count."""
    rows = [(24 * 60 * day + 10 * n, broker, None, None, "cpu", value + broker * n) for n in range(72) for broker in (1, 2)]
    wrong = [(24 * 60 * day, 1, "t", 0, "disk", -1.0)]
    samples(spark, [*rows, *wrong]).frame.coalesce(1).write.partitionBy("date").mode("append").parquet(str(folder))


def judged(spark: SparkSession, folder: Path) -> DataFrame:
    return read_samples(spark, str(folder)).frame.withColumn(REASON, reason(F.lit(NOON + timedelta(days=30))))


def told(spark: SparkSession, folder: Path, frame: DataFrame, today: int | None) -> tuple[set[Any], Tally]:
    """Windows and tally; of blocks that are kept where `today` is given."""
    rows = None
    if today is not None:
        place = Place(str(folder.parent / "blocks"), str(folder), None, FIRST + timedelta(days=today))
        rows = kept_rows(spark, frame, WINDOW, True, place)
    with counted(frame, WINDOW, rows=rows) as (found, seen):
        return {tuple(row) for row in unpacked(found, WINDOW).frame.collect()}, seen


def test_tomorrow_reads_one_day(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "history"
    for day in range(3):
        day_of(spark, folder, day)
    frame = judged(spark, folder)
    plain = told(spark, folder, frame, None)
    assert told(spark, folder, frame, 2) == plain
    names = {one.name for one in next((tmp_path / "blocks").iterdir()).iterdir()}
    assert names == {f"date={FIRST + timedelta(days=n)}" for n in range(2)}  # the third is not over
    last = frame.where(F.col("date") >= F.lit(FIRST + timedelta(days=2)))
    assert told(spark, folder, last, 2) == plain  # samples of the two days before are not there to be read


def test_a_day_that_got_another_file_is_packed_again_and_one_that_is_gone_goes(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "history"
    for day in range(2):
        day_of(spark, folder, day)
    told(spark, folder, judged(spark, folder), 5)
    day_of(spark, folder, 1, value=7.0)
    assert told(spark, folder, judged(spark, folder), 5) == told(spark, folder, judged(spark, folder), None)
    for file in (folder / f"date={FIRST}").iterdir():
        file.unlink()
    (folder / f"date={FIRST}").rmdir()
    assert told(spark, folder, judged(spark, folder), 5) == told(spark, folder, judged(spark, folder), None)


def test_a_history_that_is_not_by_day_says_so(spark: SparkSession, tmp_path: Path) -> None:
    samples(spark, [(0, 1, None, None, "cpu", 1.0)]).frame.write.parquet(str(tmp_path / "flat"))
    with pytest.raises(InputError, match="expected a history by day"):
        kept_rows(spark, judged(spark, tmp_path / "flat"), WINDOW, True, Place(str(tmp_path / "b"), str(tmp_path / "flat"), None, date.max))
