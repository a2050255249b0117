"""No metadata log, however damaged, may crash or stall the follower, or take memory that its bytes do not account for.

The long run is tests/fuzz/codecs.py.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_model.errors import InputError
from cluster_model.metadata import schemas as s
from cluster_model.metadata.batches import read_batch
from cluster_model.metadata.fold import RecordFold
from cluster_model.metadata.image import MetadataImage
from cluster_model.metadata.partition_table import MAX_REPLICAS
from cluster_model.metadata.wire import MalformedError
from tests.fuzz import metadata
from tests.fuzz.metadata import TOPIC_ID, batch_head, batches_in, preamble
from tests.unit.cluster_model.metadata_log import Entry, data_batch

PROPERTIES: dict[str, Callable[[bytes], None]] = {
    "record": metadata.record, "control": metadata.control, "batch": metadata.batch, "fold": metadata.fold,
}  # fmt: skip
SEEDS = metadata.seeds()
PIECES = [b"\xff\xff\xff\xff", b"\x00", b"\x7f\xff\xff\xff", b"\x80", b"\x01", b"", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"]


def nearly_right(name: str) -> st.SearchStrategy[bytes]:
    """A record as Kafka writes it, or several, with some of their bytes replaced."""
    changes = st.lists(st.tuples(st.integers(0, 300), st.sampled_from(PIECES)), max_size=4)
    some = st.lists(st.sampled_from(SEEDS[name]), min_size=1, max_size=3 if name == "fold" else 1)
    return st.builds(lambda parts, edits: _changed(b"".join(parts), edits), some, changes)


def _changed(data: bytes, edits: list[tuple[int, bytes]]) -> bytes:
    for at, new in edits:
        at %= len(data) or 1
        data = data[:at] + new + data[at + max(len(new), 1) :]
    return data


@pytest.mark.parametrize("name", PROPERTIES)
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_no_bytes_crash_a_decoder(name: str, data: st.DataObject) -> None:
    PROPERTIES[name](data.draw(st.binary(max_size=200) | nearly_right(name)))


@pytest.mark.parametrize("name", PROPERTIES)
def test_what_kafka_writes_is_read(name: str) -> None:
    for seed in SEEDS[name]:
        PROPERTIES[name](seed)


@pytest.mark.parametrize(("count", "last"), [(1, 0), (2**31 - 1, 2**31 - 2), (10**8, 2**31 - 1)])
def test_a_batch_that_announces_more_records_than_fit_is_refused_before_room_is_made(count: int, last: int) -> None:
    """Found by atheris: the places of two billion records were asked for, for 61 bytes."""
    with pytest.raises(MalformedError, match="records in 0 bytes"):
        read_batch(batch_head(count, last), 0, 0, None)


def test_a_count_that_is_a_lie_takes_no_memory() -> None:
    for data in (b"\x02\x00" + b"\xff" * 8 + b"\x01", b"\x03\x01" + b"\x00" * 24 + b"\xff\xff\xff\xff\x0f"):
        tracemalloc.start()
        try:
            metadata.record(data)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 100_000


@pytest.mark.parametrize("adding", [[], [1]])
@pytest.mark.parametrize("replicas", [[-1], [1, -7]])
def test_a_broker_below_0_is_no_replica(replicas: list[int], adding: list[int]) -> None:
    """Found by atheris: the partition was left without any replica, which nothing downstream expects."""
    fold = RecordFold(MetadataImage())
    bad = Entry(s.PARTITION, 0, {
        "topicId": TOPIC_ID, "partitionId": 1, "replicas": replicas, "isr": [1], "leader": 1, "removingReplicas": [],
        "addingReplicas": adding, "leaderEpoch": 0, "partitionEpoch": 0,
    })  # fmt: skip
    raw = data_batch(0, 1, [*preamble(), bad])
    with pytest.raises(InputError, match="names a broker below 0"):
        fold.take(raw, batches_in(raw), "log", 0)


@pytest.mark.parametrize("adding", [[], [1]])
def test_more_replicas_than_any_partition_has_are_refused(adding: list[int]) -> None:
    """Every partition would get room for as many."""
    fold = RecordFold(MetadataImage())
    many = list(range(MAX_REPLICAS + 1))
    wide = Entry(s.PARTITION, 0, {
        "topicId": TOPIC_ID, "partitionId": 1, "replicas": many, "isr": [1], "leader": 1, "removingReplicas": [],
        "addingReplicas": adding, "leaderEpoch": 0, "partitionEpoch": 0,
    })  # fmt: skip
    raw = data_batch(0, 1, [*preamble(), wide])
    with pytest.raises(InputError, match=f"a partition of {MAX_REPLICAS + 1} replicas"):
        fold.take(raw, batches_in(raw), "log", 0)
