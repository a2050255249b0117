"""What stands at a path is a history with one cluster's samples, or the operator is told what it is instead."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from cluster_model.errors import ExternalError, InputError
from metrics_reporter.codec import encode
from metrics_reporter.columns import decode
from metrics_reporter.sample import BatchHeader, Sample, SampleBatch, Scope
from spark.history.read import read_samples, unreadable
from tests.spark.history.rows import BEGIN, row, written
from trimtab.history.samples import SampleHistory


def refusal(spark: SparkSession, path: Path, cluster_id: str | None = None) -> str:
    with pytest.raises(InputError) as error:
        read_samples(spark, str(path), cluster_id)
    return str(error.value)


def test_what_the_service_wrote_is_read(spark: SparkSession, tmp_path: Path) -> None:
    """The service writes dictionary columns, hidden files and no Arrow schema; none of that may be in the way."""
    at = int(BEGIN.timestamp() * 1000)
    measured = (Sample(Scope.BROKER, None, None, "cpu", 0.5), Sample(Scope.FOLLOWER, "t", 3, "network_in", 7.0))
    batch = SampleBatch(BatchHeader(4, at, 60_000, 1, 1), measured)
    with SampleHistory(tmp_path, "c") as history:
        history.append([decode(encode(batch))], {0: 1}, at)
        assert history.flush(at)
    (tmp_path / "date=2026-11-19" / ".part-9.parquet.tmp").write_bytes(b"half a file")
    found = {tuple(r) for r in read_samples(spark, str(tmp_path)).frame.drop("time").collect()}
    day = BEGIN.date()
    assert found == {("c", 4, None, None, "cpu", 0.5, day), ("c", 4, "t", 3, "follower.network_in", 7.0, day)}


def test_days_outside_the_time_asked_for_are_not_opened(spark: SparkSession, tmp_path: Path) -> None:
    history = written(spark, [row(0), row(60), row(60 + 1440), row(90 + 1440)], tmp_path / "h")
    for damaged in (history / "date=2026-11-20").iterdir():
        damaged.write_bytes(b"")
    begin, end = BEGIN + timedelta(minutes=1440), BEGIN + timedelta(minutes=90 + 1440)
    assert [r.date.day for r in read_samples(spark, str(history), begin=begin, end=end).frame.collect()] == [21]


@pytest.mark.parametrize(
    ("name", "said"),
    [("nowhere", "there is nothing at this path"), ("empty", "there is no Parquet file in it"), ("text", "found a file that is none")],
)
def test_a_path_without_a_history_is_told(spark: SparkSession, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "samples.csv").write_text("time,value\n" * 5)
    assert said in refusal(spark, tmp_path / name)


def test_a_storage_without_a_driver_is_no_fault_of_the_history(spark: SparkSession) -> None:
    with pytest.raises(ExternalError, match=r"s3a://bucket/history.*driver for this storage"):
        read_samples(spark, "s3a://bucket/history")


def test_all_columns_that_are_missing_or_of_another_type_are_told_at_once(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"time": ["2026-11-20"], "cluster_id": ["c"], "broker": [1], "topic": ["t"], "value": [1.0]})
    pq.write_table(table, tmp_path / "x.parquet")
    told = refusal(spark, tmp_path)
    assert "column time: expected timestamp, found string" in told
    assert "column broker: expected int, found bigint" in told
    assert "column metric: expected string, found no such column" in told


def test_a_file_with_another_type_than_the_rest_is_named_though_it_is_met_in_the_middle(spark: SparkSession, tmp_path: Path) -> None:
    """A script of the operator's own wrote one day: what came was a page of Java."""
    history = written(spark, [row(0), row(45)], tmp_path / "h")
    table = pq.read_table(next(history.rglob("*.parquet")), partitioning=None)
    odd = history / "date=2026-11-20" / "zz.parquet"
    pq.write_table(table.set_column(table.schema.get_field_index("broker"), "broker", table["broker"].cast("int64")), odd)
    rows = read_samples(spark, str(history)).frame
    with pytest.raises(Exception, match="FAILED_READ_FILE") as met:
        rows.collect()
    told = unreadable(met.value)
    assert told is not None
    assert f"{odd}: 1 problem" in str(told)
    assert "column broker: expected int as in the other files, found Parquet's INT64" in str(told)
    assert unreadable(ValueError("something else")) is None


def test_a_file_without_days_gets_them_from_the_times(spark: SparkSession, tmp_path: Path) -> None:
    history = written(spark, [row(0), row(45)], tmp_path / "h")
    found = read_samples(spark, str(history / "date=2026-11-20")).frame.collect()
    assert [str(r.date) for r in found] == ["2026-11-20"]


def test_samples_of_several_clusters_are_not_mixed(spark: SparkSession, tmp_path: Path) -> None:
    history = written(spark, [row(0, cluster_id="a"), row(1, cluster_id="b"), row(2, cluster_id=None)], tmp_path / "h")
    told = refusal(spark, history)
    assert "several clusters, " in told
    assert "--cluster-id" in told
    assert "expected samples of cluster x" in refusal(spark, history, cluster_id="x")
    assert [r.cluster_id for r in read_samples(spark, str(history), cluster_id="b").frame.collect()] == ["b"]


def test_a_time_without_samples_is_told(spark: SparkSession, tmp_path: Path) -> None:
    history = written(spark, [row(0)], tmp_path / "h")
    with pytest.raises(InputError, match="there are no samples"):
        read_samples(spark, str(history), begin=BEGIN + timedelta(days=9))
