"""A record must be read as it was written, in every version, and damage must never be taken for data."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import Any

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_model.metadata.batches import TornError, decoded, read_batch
from cluster_model.metadata.records import Record, decode_fields, decode_record
from cluster_model.metadata.schemas import RECORDS, TOPIC, Field, Schema
from cluster_model.metadata.wire import MalformedError, Reader, uuid_text
from tests.unit.cluster_model.metadata_log import Entry, data_batch, fields_of, leader_change, uvarint, value_of

ids = st.binary(min_size=16, max_size=16)
scalars: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(), "int8": st.integers(-128, 127), "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1), "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1), "float64": st.floats(allow_nan=False), "uuid": ids,
    "string": st.text(max_size=200), "bytes": st.binary(max_size=20),
}  # fmt: skip


def values_of(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Values of the fields that a version has."""
    return st.fixed_dictionaries({f.name: _value(f, version) for f in fields if f.since <= version})


def _value(f: Field, version: int) -> st.SearchStrategy[Any]:
    one = values_of(f.fields, version) if f.kind == "struct" else scalars[f.kind]
    many = st.lists(one, max_size=4) if f.array else one
    return st.none() | many if f.nullable else many


def records() -> st.SearchStrategy[Entry]:
    def of_schema(schema: Schema) -> st.SearchStrategy[Entry]:
        return st.integers(0, schema.newest).flatmap(
            lambda version: values_of(schema.fields, version).map(lambda fields: Entry(schema.key, version, fields))
        )

    return st.sampled_from(list(RECORDS.values())).flatmap(of_schema)


def read(value: bytes) -> Record:
    return decode_record(value, 0, len(value))


@given(records())
def test_a_record_is_read_as_it_was_written(entry: Entry) -> None:
    record = read(value_of(entry))
    assert record.fields is not None
    assert (record.key, record.version) == (entry.key, entry.version)
    assert record.fields == {**defaults(entry.key), **entry.fields}


def defaults(key: int) -> dict[str, Any]:
    return {f.name: list(f.default) if f.array and f.default is not None else f.default for f in RECORDS[key].fields}


@given(records(), st.data())
def test_a_record_that_is_cut_or_too_long_is_refused(entry: Entry, data: st.DataObject) -> None:
    value = value_of(entry)
    cut = value[: data.draw(st.integers(0, len(value) - 1))]
    for wrong in (cut, value + b"\0"):
        with pytest.raises(MalformedError):
            read(wrong)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_record_or_refused(value: bytes) -> None:
    with suppress(MalformedError):
        read(b"\x01" + value)


def test_tags_of_a_later_release_are_skipped() -> None:
    value = value_of(Entry(TOPIC, 0, {"name": "orders", "topicId": bytes(range(16))}))
    newer = value[:-1] + uvarint(1) + uvarint(77) + uvarint(3) + b"abc"
    assert read(newer).fields == read(value).fields


def test_what_is_not_known_is_named_by_its_number_only() -> None:
    assert read(uvarint(1) + uvarint(501) + uvarint(0) + b"\0") == Record(501, 0, None, None)
    assert read(uvarint(1) + uvarint(TOPIC) + uvarint(2) + b"\0") == Record(TOPIC, 2, "TopicRecord", None)


def test_the_frame_of_the_preview_release_is_refused() -> None:
    with pytest.raises(MalformedError, match="frame version 0"):
        read(b"\0\x02\0")


def test_ids_are_written_as_kafka_writes_them() -> None:
    raw = bytes.fromhex("749e5d611d2b468f9a2949706ec337f4")
    assert uuid_text(raw) == "dJ5dYR0rRo-aKUlwbsM39A"


# -- batches -----------------------------------------------------------------------------------------------

BATCH = data_batch(7, 3, [Entry(TOPIC, 0, {"name": f"t{i}", "topicId": bytes(16)}) for i in range(3)])


def test_a_batch_gives_its_records_with_their_offsets() -> None:
    batch = read_batch(BATCH, 0, 0, 7)
    assert (batch.base_offset, batch.last_offset, batch.epoch, batch.size) == (7, 9, 3, len(BATCH))
    assert [(offset, record.fields and record.fields["name"]) for offset, record in decoded(BATCH, 0, batch)] == [
        (7, "t0"), (8, "t1"), (9, "t2"),
    ]  # fmt: skip


def test_a_control_record_says_its_type_in_its_key() -> None:
    raw = leader_change(0, 5, 101)
    ((_, record),) = decoded(raw, 0, read_batch(raw, 0, 0, 0))
    assert record.name == "LeaderChange"
    assert record.fields is not None
    assert record.fields["leaderId"] == 101


@given(st.integers(0, len(BATCH) - 1))
def test_a_batch_that_is_not_all_there_yet_is_torn(length: int) -> None:
    with pytest.raises(TornError):
        read_batch(BATCH[:length], 0, 0, 7)


@given(st.integers(0, 8 * len(BATCH) - 1))
def test_a_flipped_bit_never_goes_unseen(bit: int) -> None:
    raw = bytearray(BATCH)
    raw[bit // 8] ^= 1 << bit % 8
    try:
        batch = read_batch(bytes(raw), 0, 0, 7)
    except (MalformedError, TornError):
        return
    assert 12 <= bit // 8 < 16, "only the epoch is not under the checksum"
    assert batch.epoch != 3


def test_a_compressed_batch_is_refused() -> None:
    raw = bytearray(BATCH)
    raw[22] |= 4
    raw[17:21] = struct.pack(">I", crc32c.crc32c(bytes(raw[21:])))
    with pytest.raises(MalformedError, match="compressed"):
        read_batch(bytes(raw), 0, 0, 7)


def test_structures_in_lists_have_tags_of_their_own() -> None:
    inner = (Field("name", "string"), Field("extra", "int32", tag=0, default=0))
    raw = fields_of((Field("all", "struct", array=True, fields=inner),), 0, {"all": [{"name": "a", "extra": 7}, {"name": "b"}]})
    found = decode_fields((Field("all", "struct", array=True, fields=inner),), 0, Reader(raw, 0, len(raw)))
    assert found == {"all": [{"name": "a", "extra": 7}, {"name": "b", "extra": 0}]}
