"""A synthetic history enters Spark as the samples that every step takes, from memory and from a folder alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.schemas import Samples
from tests.histories.synthetic import Truth, samples, synthetic, write

TRUTH = Truth(brokers=4, partitions=20, interval=300, span=86_400, missing=0.05, corrupt=0.01)


def test_from_memory_and_from_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    history = synthetic(TRUTH)
    write(TRUTH, tmp_path)
    telling = ("count(*)", "count(topic)", "count_if(isnan(value))", "count(distinct date)", "sum(nanvl(value, 0))")
    memory, folder = (
        list(found.frame.selectExpr(*telling).collect()[0])
        for found in (samples(spark, history), Samples(spark.read.parquet(str(tmp_path))))
    )
    assert memory == pytest.approx(folder)
    assert memory[0] == history.table.num_rows
    assert memory[2:4] == [history.damaged["nan"], 2]  # the day, and that of the wrong clock
