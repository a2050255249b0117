"""Without Kafka: what is read, what records become, and batches that are put in place once however often they are tried."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from metrics_reporter.codec import encode
from metrics_reporter.sample import BatchHeader, Sample, SampleBatch, Scope
from metrics_reporter.topic import TopicError, TopicRecord
from spark.history.decode import Form, decoded
from spark.history.once import put_once, query_of
from spark.history.read import read_samples
from spark.history.topic_source import RANGE, Range, ranges, read_range
from spark.history.write import COMPLETE
from tests.spark.history.rows import row, samples


def record(sequence: int, *measured: Sample, incarnation: int = 1) -> bytes:
    return encode(SampleBatch(BatchHeader(3, 1_795_132_800_000, 1000, incarnation, sequence), measured))


class Records:
    """A partition's records; the oldest of them are gone."""

    def __init__(self, values: list[bytes], begin: int = 0, missing: int | None = None) -> None:
        self._found = [TopicRecord(0, begin + i, 5, v) for i, v in enumerate(values) if begin + i != missing]
        self._begin = begin

    def begin_offsets(self) -> dict[int, int]:
        return {0: self._begin}

    def poll(self, positions: dict[int, int], limit: int) -> list[TopicRecord]:
        return [r for r in self._found if r.offset >= positions[0]][:2]


def test_one_partition_is_read_by_several_tasks_and_new_ones_from_their_start() -> None:
    found = ranges({"0": 10, "2": 7}, {"0": RANGE + 11, "1": 5, "2": 7})
    assert found == [Range(0, 10, RANGE + 10), Range(0, RANGE + 10, RANGE + 11), Range(1, 0, 5)]


def test_a_topic_that_was_made_again_is_read_from_its_start() -> None:
    assert ranges({"0": 900}, {"0": 30}) == [Range(0, 0, 30)]


def offsets(batches: Iterator[pa.RecordBatch]) -> list[tuple[int | None, str | None]]:
    return [(r["record_offset"], r["problem"]) for batch in batches for r in batch.to_pylist()]


def test_a_range_is_read_to_its_end_and_no_further() -> None:
    values = [record(i) for i in range(10)]
    assert [o for o, _ in offsets(read_range(Records(values), Range(0, 3, 8)))] == [3, 4, 5, 6, 7]
    # A gap, as transactions and compaction leave them, is no reason to wait.
    assert [o for o, _ in offsets(read_range(Records(values, missing=4), Range(0, 3, 6)))] == [3, 5]


def test_records_that_retention_took_are_told() -> None:
    found = offsets(read_range(Records([record(1)] * 4, begin=20), Range(0, 15, 22)))
    assert found == [(None, "5 records were deleted before they were read"), (20, None), (21, None)]


def test_records_that_do_not_come_are_no_end_of_the_topic() -> None:
    with pytest.raises(TopicError, match="expected them up to 9"):
        list(read_range(Records([record(1)] * 4), Range(0, 0, 9)))


def decode(values: list[bytes | None], problems: list[str | None] | None = None, form: Form = "own") -> list[dict[str, object]]:
    rows = len(values)
    batch = pa.RecordBatch.from_pydict({
        "partition": pa.array([0] * rows, pa.int32()), "record_offset": pa.array(range(rows), pa.int64()),
        "value": pa.array(values, pa.binary()), "problem": pa.array(problems or [None] * rows, pa.string()),
    })  # fmt: skip
    return [row for found in decoded(iter([batch]), form) for row in found.to_pylist()]


def test_names_of_metrics_say_whom_a_sample_is_about() -> None:
    found = decode([record(
        1, Sample(Scope.BROKER, None, None, "cpu", 1.5), Sample(Scope.CAPACITY, None, None, "disk", 9.0),
        Sample(Scope.LEADER, "t", 4, "network_in", 2.0), Sample(Scope.FOLLOWER, "u", 5, "network_in", 3.0),
        Sample(Scope.LEADER, "t", 5, "disk", 8.0), Sample(Scope.REPLICA, "t", 6, "disk", float("inf")),
    )])  # fmt: skip
    assert {(r["topic"], r["partition"], r["metric"], r["value"]) for r in found} == {
        (None, None, "cpu", 1.5), (None, None, "capacity.disk", 9.0), ("t", 4, "network_in", 2.0),
        ("u", 5, "follower.network_in", 3.0), ("t", 5, "disk", 8.0), ("t", 6, "replica.disk", float("inf")),
    }  # fmt: skip
    assert {(r["broker"], str(r["time"])) for r in found} == {(3, "2026-11-20 00:00:00+00:00")}


def test_a_record_that_is_none_costs_no_other() -> None:
    found = decode([b"odd", record(1, Sample(Scope.BROKER, None, None, "cpu", 1.0)), None], [None, None, "gone"])
    assert [(r["metric"], r["problem"], r["source"]) for r in found] == [
        ("cpu", None, None),
        (None, "record cannot be decoded", "partition 0 offset 0: 3 bytes, expected at least 48"),
        (None, "gone", "partition 0 offset 2"),
    ]


def test_the_reporter_of_automq_is_read() -> None:
    name = b"orders"
    head = struct.pack(">bbqi", 0, 0, 1_795_132_800_000, 2) + struct.pack(">i", 0)
    automq = head + struct.pack(">i", len(name)) + name + struct.pack(">ii", 7, 1) + struct.pack(">bd", 0, 55.0)
    found = decode([automq], form="automq")
    assert [(r["broker"], r["topic"], r["partition"], r["metric"], r["value"]) for r in found] == [(2, "orders", 7, "network_in", 55.0)]


def count(spark: SparkSession, out: Path) -> int:
    return read_samples(spark, str(out)).frame.count()


def test_a_batch_that_is_tried_again_is_not_there_twice(spark: SparkSession, tmp_path: Path) -> None:
    """Killed after the batch was put in place, before Spark noted it: the same batch comes again."""
    out, batch = tmp_path / "h", samples(spark, [row(0), row(60)])
    assert put_once(spark, batch, str(out), "abc", 0)
    assert not put_once(spark, batch, str(out), "abc", 0)
    assert put_once(spark, samples(spark, [row(1)]), str(out), "abc", 1)
    assert not put_once(spark, batch, str(out), "abc", 0)
    assert count(spark, out) == 3
    assert put_once(spark, samples(spark, [row(2)]), str(out), "def", 0)  # another query
    assert count(spark, out) == 4


def test_a_batch_killed_while_it_was_put_in_place_is_finished(spark: SparkSession, tmp_path: Path) -> None:
    out, batch = tmp_path / "h", samples(spark, [row(0), row(60)])
    put_once(spark, batch, str(out), "abc", 0)
    # As it stood after the first of its two days: the second is still in the batch's folder, which is complete.
    left = out / "_batch-abc-0" / "date=2026-11-20"
    left.mkdir(parents=True)
    (moved,) = (out / "date=2026-11-20").glob("*.parquet")
    moved.rename(left / moved.name.removeprefix("topic-abc-000000-"))
    (left.parent / COMPLETE).touch()
    (out / "_put-abc-0").unlink()
    assert put_once(spark, batch, str(out), "abc", 0)
    assert count(spark, out) == 2


def test_a_batch_killed_while_it_was_written_is_written_again(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "h"
    half = out / "_batch-abc-0" / "date=2026-11-19"
    half.mkdir(parents=True)
    (half / "part-1.parquet").write_bytes(b"half a file")
    assert put_once(spark, samples(spark, [row(0)]), str(out), "abc", 0)
    assert count(spark, out) == 1


def test_a_checkpoint_made_again_is_another_query(spark: SparkSession, tmp_path: Path) -> None:
    """Its batches are numbered from 0 again; taken for those that are there already, they would be lost."""
    (tmp_path / "metadata").write_text(json.dumps({"id": "0f6b2c1e-1111-2222-3333-444455556666"}))
    assert query_of(spark, str(tmp_path)) == "0f6b2c1e1111"
