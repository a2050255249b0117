"""An image must be what the records say, however they are cut into batches, and refuse what it cannot know."""

from __future__ import annotations

import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_model.errors import ExternalError, InputError
from cluster_model.metadata import schemas as s
from cluster_model.metadata.batches import read_batch
from cluster_model.metadata.difference import difference
from cluster_model.metadata.events import Event, PartitionChanged, TopicCreated, TopicDeleted
from cluster_model.metadata.fold import RecordFold
from cluster_model.metadata.image import MetadataImage
from tests.unit.cluster_model.metadata_log import Entry, batch_of, data_batch, leader_change, value_of
from tests.unit.cluster_model.metadata_oracle import ACTIONS, UNKNOWN, Oracle, Partition, partition_fields, said_by, without_epochs

NOW = 1_767_225_600_000
ROOT = Path(__file__).parents[3]
number = st.integers(0, 10_000)
actions = st.lists(st.tuples(st.sampled_from(ACTIONS), number, number, number, number), max_size=120)


def folded(raw: bytes, fold: RecordFold, first: int = 0) -> None:
    """Fold all batches of `raw`, the first at offset `first`."""
    placed, at, expected = [], 0, first
    while at < len(raw):
        batch = read_batch(raw, at, at, expected)
        placed.append((at, batch))
        at, expected = at + batch.size, batch.next_offset
    fold.take(raw, placed, "log", NOW)


def batches(entries: list[Entry], sizes: list[int]) -> bytes:
    """The entries in batches of these sizes, over and over."""
    raw, i, turn = b"", 0, 0
    while i < len(entries):
        size = sizes[turn % len(sizes)]
        part = entries[i : i + size]
        raw += data_batch(i, 1, part)
        i, turn = i + len(part), turn + 1
    return raw


def watching() -> RecordFold:
    fold = RecordFold(MetadataImage())
    fold.events = []
    return fold


def applied(events: list[Event], image: MetadataImage) -> MetadataImage:
    for event in events:
        image.apply(event, NOW)
    return image


@given(actions, st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_the_image_and_the_events_are_what_plain_dictionaries_say(steps: list[Any], sizes: list[int]) -> None:
    oracle = Oracle()
    entries = [e for step in steps if (e := oracle.act(*step)) is not None]
    raw = batches(entries, sizes)
    silent, watched = RecordFold(MetadataImage()), watching()
    folded(raw, silent)
    folded(raw, watched)
    assert said_by(silent.image) == oracle.said()
    assert said_by(watched.image) == oracle.said()
    assert watched.events is not None
    other = applied(watched.events, MetadataImage())
    assert without_epochs(said_by(other)) == without_epochs(oracle.said())
    assert silent.counts.unknown[UNKNOWN] == sum(e.key == UNKNOWN for e in entries)
    assert silent.counts.records == len(entries)


@given(actions, st.integers(0, 120))
def test_a_checkpoint_and_the_rest_are_the_whole(steps: list[Any], cut: int) -> None:
    oracle = Oracle()
    entries: list[Entry] = []
    checkpoint: list[Entry] = []
    rest: list[Entry] = []
    for i, step in enumerate(steps):
        if i == cut:
            checkpoint, rest = oracle.checkpoint(), []
        entry = oracle.act(*step)
        if entry is not None:
            entries.append(entry)
            rest.append(entry)
    whole, resumed = RecordFold(MetadataImage()), RecordFold(MetadataImage())
    folded(batches(entries, [7]), whole)
    folded(batches([*checkpoint, *rest], [7]), resumed)
    assert said_by(whole.image) == said_by(resumed.image)


@given(actions, actions)
def test_the_difference_of_two_images_brings_one_to_the_other(first: list[Any], second: list[Any]) -> None:
    """Also where they have nothing in common, as after a long outage."""
    oracle = Oracle()
    one, two = RecordFold(MetadataImage()), RecordFold(MetadataImage())
    folded(batches([e for step in first if (e := oracle.act(*step)) is not None], [50]), one)
    folded(batches(oracle.checkpoint(), [50]), two)
    if len(second) % 2:
        oracle = Oracle(created=1000)
        two = RecordFold(MetadataImage())
    folded(batches([e for step in second if (e := oracle.act(*step)) is not None], [50]), two)
    events = list(difference(one.image, two.image))
    assert without_epochs(said_by(applied(events, one.image))) == without_epochs(oracle.said())
    assert list(difference(one.image, two.image)) == []


@given(actions, actions)
def test_an_image_that_is_replaced_says_what_the_other_says_and_keeps_the_slots(first: list[Any], second: list[Any]) -> None:
    oracle = Oracle()
    one, two = RecordFold(MetadataImage()), RecordFold(MetadataImage())
    folded(batches([e for step in first if (e := oracle.act(*step)) is not None], [50]), one)
    folded(batches(oracle.checkpoint(), [50]), two)
    folded(batches([e for step in second if (e := oracle.act(*step)) is not None], [50]), two)
    before = {(p.topic, p.partition): slot for slot in one.image.live_slots().tolist() for p in [one.image.partition(slot)]}
    ids = dict(one.image.topic_ids)
    structure = one.image.structure
    freed = set(one.image.replace(two.image, NOW).tolist())
    assert said_by(one.image) == oracle.said()
    after = {(p.topic, p.partition): slot for slot in one.image.live_slots().tolist() for p in [one.image.partition(slot)]}
    for name, slot in before.items():
        if one.image.topic_ids.get(name[0]) == ids[name[0]]:
            assert after[name] == slot
        else:
            assert slot in freed
    assert before.keys() == after.keys() or one.image.structure > structure


# -- one by one --------------------------------------------------------------------------------------------

ID = bytes(range(16))
TOPIC = Entry(s.TOPIC, 0, {"name": "orders", "topicId": ID})


def partition(number: int, replicas: list[int], **rest: Any) -> Entry:
    fields = partition_fields(number, ID, Partition(replicas, replicas, replicas[0]), 2)
    return Entry(s.PARTITION, 2, {**fields, **rest})


def change(number: int, **fields: Any) -> Entry:
    return Entry(s.PARTITION_CHANGE, 2, {"partitionId": number, "topicId": ID, **fields})


def test_every_state_in_between_is_an_event() -> None:
    """Two leaders within one batch: a watcher must see both."""
    fold = watching()
    folded(data_batch(0, 1, [TOPIC, partition(0, [1, 2]), change(0, leader=2), change(0, leader=-1)]), fold)
    assert fold.events is not None
    assert [e.leader for e in fold.events if isinstance(e, PartitionChanged)] == [1, 2, None]


def test_what_no_one_sees_is_no_event_but_counts_in_the_epoch() -> None:
    fold = watching()
    folded(data_batch(0, 1, [TOPIC, partition(0, [1, 2]), change(0, directories=[ID, ID]), change(0, isr=[1])]), fold)
    assert fold.events is not None
    assert [e.isr for e in fold.events if isinstance(e, PartitionChanged)] == [(1, 2), (1,)]
    assert fold.image.partition(0).epoch == 2


def test_a_topic_of_the_same_name_again_is_another_topic() -> None:
    fold = watching()
    again = Entry(s.TOPIC, 0, {"name": "orders", "topicId": bytes(16)})
    folded(data_batch(0, 1, [TOPIC, partition(0, [1]), Entry(s.REMOVE_TOPIC, 0, {"topicId": ID}), again]), fold)
    assert fold.events is not None
    assert [type(e) for e in fold.events] == [TopicCreated, PartitionChanged, TopicDeleted, TopicCreated]
    assert fold.image.partition_count == 0


def test_a_wide_partition_and_a_far_number_find_room() -> None:
    fold = RecordFold(MetadataImage())
    folded(data_batch(0, 1, [TOPIC, partition(50_000, list(range(11))), partition(3, [5])]), fold)
    assert [p.replicas for slot in fold.image.slots_of_topic("orders").tolist() for p in [fold.image.partition(slot)]] == [
        (5,), tuple(range(11)),
    ]  # fmt: skip


def test_thousands_of_topics_come_and_go() -> None:
    """Rows, slots and the table of ids are used again; a lookup must never find the wrong topic."""
    fold = RecordFold(MetadataImage())
    ids = [struct.pack(">QQ", i * 0x9E3779B97F4A7C15 % 2**64, i * 0xC2B2AE3D27D4EB4F % 2**64) for i in range(3000)]
    offset = 0
    for i, topic_id in enumerate(ids):
        entries = [Entry(s.TOPIC, 0, {"name": f"t{i}", "topicId": topic_id})]
        entries += [
            Entry(s.PARTITION, 0, {**partition_fields(n, topic_id, Partition([i % 7], [i % 7], i % 7), 0)}) for n in range(i % 6)
        ]
        if i >= 500:
            entries.append(Entry(s.REMOVE_TOPIC, 0, {"topicId": ids[i - 500]}))
        folded(data_batch(offset, 1, entries), fold, offset)
        offset += len(entries)
    assert sorted(fold.image.topic_ids) == sorted(f"t{i}" for i in range(2500, 3000))
    for i in range(2500, 3000):
        slots = fold.image.slots_of_topic(f"t{i}").tolist()
        assert [fold.image.partition(slot).replicas for slot in slots] == [(i % 7,)] * (i % 6)


def test_many_topics_at_once_find_room_from_records_and_from_events() -> None:
    ids = [i.to_bytes(16, "big") for i in range(1, 2001)]
    fold = watching()
    for i, topic_id in enumerate(ids):
        entries = [Entry(s.TOPIC, 0, {"name": f"t{i}", "topicId": topic_id})]
        entries += [
            Entry(s.PARTITION, 0, partition_fields(n, topic_id, Partition([i % 7, 8], [8], 8), 0)) for n in range(2)
        ]
        folded(data_batch(3 * i, 1, entries), fold, 3 * i)
    assert fold.image.partition_count == 4000
    assert fold.events is not None
    assert said_by(applied(fold.events, MetadataImage())) == said_by(fold.image)
    assert fold.image.partitions(fold.image.slots_of_topic("t1999"))[1] == PartitionChanged("t1999", 1, (4, 8), (8,), 8)


def test_a_partition_number_that_no_topic_has_is_damage_and_takes_no_memory() -> None:
    with pytest.raises(InputError, match="offset 1: a partition record that is not whole"):
        folded(data_batch(0, 1, [TOPIC, partition(2**30, [1])]), RecordFold(MetadataImage()))
    image = applied([TopicCreated("orders", "x")], MetadataImage())
    with pytest.raises(ExternalError, match="the metadata is damaged"):
        image.apply(PartitionChanged("orders", 2**30, (1,), (1,), 1), NOW)


def test_a_transaction_counts_when_it_ends_and_not_before() -> None:
    fold = watching()
    begin, end = Entry(s.BEGIN_TRANSACTION, 0, {"name": "many"}), Entry(s.END_TRANSACTION, 0)
    folded(data_batch(0, 1, [TOPIC, begin, partition(0, [1])]), fold)
    assert fold.image.partition_count == 0
    folded(data_batch(3, 1, [change(0, leader=-1), end]), fold, 3)
    assert fold.image.partition(0).leader is None
    assert fold.events is not None
    assert len(fold.events) == 3


def test_a_transaction_within_another_is_refused() -> None:
    begin = Entry(s.BEGIN_TRANSACTION, 0)
    with pytest.raises(InputError, match="offset 1: a transaction starts within another"):
        folded(data_batch(0, 1, [begin, begin]), RecordFold(MetadataImage()))


def test_an_aborted_transaction_never_was() -> None:
    fold = watching()
    begin, abort = Entry(s.BEGIN_TRANSACTION, 0), Entry(s.ABORT_TRANSACTION, 0, {"reason": "failover"})
    folded(data_batch(0, 1, [begin, TOPIC, partition(0, [1]), abort]), fold)
    assert fold.events == []
    assert fold.counts.aborted == 2


def test_the_controller_is_the_one_elected_last() -> None:
    fold = watching()
    folded(leader_change(0, 1, 100) + data_batch(1, 1, [TOPIC]) + leader_change(2, 2, 102), fold)
    assert fold.image.controller is not None
    assert (fold.image.controller.id, fold.image.controller.epoch) == (102, 2)
    fold.elected(100, 1)
    assert fold.image.controller.id == 102, "older news"


# -- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\x01\x03\x03\x00", r"offset 4: PartitionRecord version 3, this release reads 0 to 2"),
        (b"\x01\x02\x07\x00", r"offset 4: TopicRecord version 7, this release reads 0 to 1"),
        (b"\x01\x09\x00" + bytes(17), r"offset 4: a record removes a topic that no record before it brought"),
        (b"\x01\x07\x00" + bytes(13), r"offset 4: a record of broker 0, which no record before it brought"),
        (b"\x01\x19\x00\x00", r"offset 4: a transaction ends that never started"),
        (b"\x01\x03\x00" + bytes(19), r"offset 4: a partition record that is not whole"),
        (b"\x02\x19\x00\x00", r"offset 4: a record that is not whole"),
        (b"\x01\x09\x00" + bytes(9), r"offset 4: RemoveTopicRecord: "),
    ],
)
def test_what_cannot_be_folded_is_refused_with_its_offset(value: bytes, said: str) -> None:
    fold = RecordFold(MetadataImage())
    with pytest.raises(InputError, match=said):
        folded(data_batch(0, 1, [TOPIC] * 4) + batch_of(4, 1, [(None, value)]), fold)


@pytest.mark.parametrize("entry", [partition(0, [1]), change(0, leader=1), partition(0, [1, 2], addingReplicas=[2])])
def test_a_partition_of_an_unknown_topic_is_refused(entry: Entry) -> None:
    with pytest.raises(InputError, match="topic that no record before it brought"):
        folded(data_batch(0, 1, [entry]), RecordFold(MetadataImage()))


@pytest.mark.parametrize("entry", [change(0, leader=1), change(0, addingReplicas=[2])])
def test_a_change_of_an_unknown_partition_is_refused(entry: Entry) -> None:
    with pytest.raises(InputError, match="offset 1: a partition record of a partition that no record before it brought"):
        folded(data_batch(0, 1, [TOPIC, entry]), RecordFold(MetadataImage()))


def test_newer_versions_of_what_does_not_concern_the_image_are_skipped() -> None:
    fold = RecordFold(MetadataImage())
    folded(data_batch(0, 1, [TOPIC]) + batch_of(1, 1, [(None, b"\x01\x0c\x63anything")]), fold)
    assert fold.counts.records == 2


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 255)), min_size=1, max_size=3), st.booleans())
def test_damaged_partition_records_with_a_right_checksum_never_crash_or_hang(damage: list[tuple[int, int]], changes: bool) -> None:
    """Kernels check no bounds by themselves: whatever the bytes, the answer is an image or a refusal."""
    entry = change(0, isr=[1, 2], leader=2, replicas=[1, 2, 3]) if changes else partition(1, [1, 2, 3])
    value = bytearray(value_of(entry))
    for at, byte in damage:
        value[3 + at % (len(value) - 3)] = byte
    fold = RecordFold(MetadataImage())
    folded(data_batch(0, 1, [TOPIC, partition(0, [1, 2])]), fold)
    with suppress(InputError):
        folded(batch_of(2, 1, [(None, bytes(value))]), fold, 2)
        said_by(fold.image)


@given(st.integers(61, 400), st.integers(0, 255))
def test_damaged_framing_with_a_right_checksum_is_refused(at: int, byte: int) -> None:
    raw = bytearray(data_batch(0, 1, [TOPIC, partition(0, [1, 2, 3]), partition(1, [2, 3, 1])]))
    raw[61 + (at - 61) % (len(raw) - 61)] = byte
    raw[17:21] = struct.pack(">I", crc32c.crc32c(bytes(raw[21:])))
    fold = RecordFold(MetadataImage())
    with suppress(InputError):
        folded(bytes(raw), fold)
        said_by(fold.image)


def test_without_a_compiler_the_image_is_the_same() -> None:
    """numba is an extra: a machine without it reads the log too, slower."""
    program = """
import random
from tests.unit.cluster_model.test_metadata_fold import *
from kernels.compiled import COMPILED
assert not COMPILED
choice = random.Random(5)
oracle, fold = Oracle(), RecordFold(MetadataImage())
steps = [(choice.choice(ACTIONS), *(choice.randrange(10_000) for _ in range(4))) for _ in range(2000)]
folded(batches([e for step in steps if (e := oracle.act(*step)) is not None], [30]), fold)
assert said_by(fold.image) == oracle.said()
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
