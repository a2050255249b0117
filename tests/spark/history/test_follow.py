"""What a batch of the topic leaves in the history, and what it sets apart; without Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from spark.history.follow import behind, put_batch
from spark.history.read import read_samples


def test_samples_that_do_not_count_and_records_that_are_none_are_set_apart(spark: SparkSession, tmp_path: Path) -> None:
    at = datetime(2026, 11, 20, tzinfo=UTC)
    rows = [
        (at, 1, "t", 0, "network_in", 5.0, None, None), (at, 1, None, None, "cpu", 0.5, None, None),
        (at, 1, "t", 1, "network_in", -1.0, None, None), (at, 1, "t", 2, "disk", float("inf"), None, None),
        (datetime(2999, 1, 1, tzinfo=UTC), 1, "t", 1, "network_in", 1.0, None, None),
        (None, None, None, None, None, None, "record cannot be decoded", "partition 0 offset 9: odd"),
    ]  # fmt: skip
    types = (pa.timestamp("us", tz="UTC"), pa.int32(), pa.string(), pa.int32(), pa.string(), pa.float64(), pa.string(), pa.string())
    names = ("time", "broker", "topic", "partition", "metric", "value", "problem", "source")
    table = pa.table({name: pa.array([r[i] for r in rows], kind) for i, (name, kind) in enumerate(zip(names, types, strict=True))})
    out, apart = tmp_path / "h", tmp_path / "apart"
    found = put_batch(spark, spark.createDataFrame(table), 0, "c", str(out), "q", str(apart))
    assert found == (2, {"negative": 1, "infinite": 1, "time in the future": 1, "record cannot be decoded": 1})
    kept = read_samples(spark, str(out)).frame.collect()
    assert {(r.cluster_id, r.broker, r.topic, r.partition, r.metric, r.value) for r in kept} == {
        ("c", 1, "t", 0, "network_in", 5.0), ("c", 1, None, None, "cpu", 0.5),
    }  # fmt: skip
    sources = {r.reason: r.source for r in spark.read.parquet(str(apart)).collect()}
    assert sources.keys() == found[1].keys()
    assert sources["record cannot be decoded"] == "partition 0 offset 9: odd"


@dataclass
class Ended:
    """What a query that ended tells of its last batch."""

    lastProgress: dict[str, list[dict[str, str]]] | None


def test_a_backfill_that_only_finished_an_interrupted_batch_goes_on() -> None:
    """Older Spark ends there, and an operator would take a part of the topic for all of it."""
    target = {"0": 100, "1": 7}
    assert behind(Ended({"sources": [{"endOffset": '{"0": 40, "1": 7}'}]}), target)  # type: ignore[arg-type]
    assert behind(Ended({"sources": [{"endOffset": '{"0": 100}'}]}), target)  # type: ignore[arg-type]
    assert not behind(Ended({"sources": [{"endOffset": '{"0": 103, "1": 7}'}]}), target)  # type: ignore[arg-type]
    assert not behind(Ended(None), target)  # type: ignore[arg-type]
