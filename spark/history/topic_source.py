"""Records of the internal topic in Spark, without a jar: a Python data source over the Python Kafka client.

Registered by `spark.history.follow`; batch and stream. One row a record, its value undecoded: broker, incarnation and sequence
stand in the first bytes, so that what was sent twice goes before it is decoded (`spark.history.decode`). Reading positions
belong to Spark's checkpoint; nothing is committed to Kafka.

Notes
-----
Runs on pyspark 4.0 and newer. A range of at most `RANGE` records is one task, so that one busy partition is read by several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:  # before 4.2, Spark reads what there is in a single batch

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """Stands in for Spark's."""


from metrics_reporter.codec import HEADER, MAGIC
from metrics_reporter.topic import TopicError, TopicRecord

if TYPE_CHECKING:
    import pyarrow as pa

    from metrics_reporter.kafka_topic import KafkaTopicReader

NAME = "trimtab_topic"
SCHEMA = "partition int, record_offset bigint, broker int, incarnation bigint, sequence bigint, value binary, problem string"
RANGE = 1_000  # records of a task
POLLED = 200
PATIENCE = 60  # empty polls of half a second
LOST = "records were deleted before they were read"

Options = Callable[[], Mapping[str, object]]
"""Settings of the Kafka client, made where the client is: keys and certificates do not travel."""


@dataclass
class Range(InputPartition):
    """Records of one partition of the topic from `begin` on and before `end`."""

    partition: int
    begin: int
    end: int


def topic_source(options: Options) -> type[DataSource]:
    """The data source ``trimtab_topic`` with these settings of the client; options are `bootstrap` and `topic`.

    `options` has to be an importable function or a partial of one: it is called on the driver and on every worker.
    """

    class TopicSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return NAME

        def schema(self) -> str:
            return SCHEMA

        def reader(self, schema: Any) -> DataSourceReader:
            return _Batch(self.options["bootstrap"], self.options["topic"], options)

        def streamReader(self, schema: Any) -> DataSourceStreamReader:
            return _Stream(self.options["bootstrap"], self.options["topic"], options)

    return TopicSource


def end_offsets(bootstrap: str, topic: str, options: Options) -> dict[str, int]:
    """Partition -> the offset that its next record gets: where all that is there now ends."""
    return _Topic(bootstrap, topic, options).end()


class _Topic:
    """What batch and stream share."""

    def __init__(self, bootstrap: str, topic: str, options: Options) -> None:
        self._bootstrap, self._topic, self._options = bootstrap, topic, options

    def _open(self) -> KafkaTopicReader:
        from metrics_reporter.kafka_topic import KafkaTopicReader

        return KafkaTopicReader(self._bootstrap, self._options(), self._topic)

    def _begin(self) -> dict[str, int]:
        with self._open() as reader:
            return {str(partition): offset for partition, offset in reader.begin_offsets().items()}

    def end(self) -> dict[str, int]:
        with self._open() as reader:
            return {str(partition): offset for partition, offset in reader.end_offsets().items()}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one range."""
        assert isinstance(partition, Range)
        with self._open() as reader:
            yield from read_range(reader, partition)


class _Batch(_Topic, DataSourceReader):
    def partitions(self) -> Sequence[Range]:
        return ranges(self._begin(), self.end())


class _Stream(_Topic, DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, bootstrap: str, topic: str, options: Options) -> None:
        super().__init__(bootstrap, topic, options)
        self._target: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:
        return self._begin()

    def prepareForTriggerAvailableNow(self) -> None:
        """From now on, nothing newer is read."""
        self._target = self.end()

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:
        return self.end() if self._target is None else self._target

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Range]:
        return ranges(start, end)

    def commit(self, end: dict[str, int]) -> None:
        """Positions stand in the checkpoint."""

    def stop(self) -> None:
        """Nothing is kept open."""


def ranges(start: Mapping[str, int], end: Mapping[str, int]) -> list[Range]:
    """What to read from one position to another. A partition that was not there before is read from its start, and so is one
    whose end went back: the topic was made again."""
    found = []
    for partition, stop in sorted((int(p), at) for p, at in end.items()):
        begin = start.get(str(partition), 0)
        begin = 0 if begin > stop else begin
        found += [Range(partition, at, min(at + RANGE, stop)) for at in range(begin, stop, RANGE)]
    return found


def read_range(reader: Any, wanted: Range) -> Iterator[pa.RecordBatch]:
    """The records of a range, and one row with a problem where retention was faster.

    Raises
    ------
    TopicError
        Records that should be there do not come; the task may be tried again.
    """
    at, empty = wanted.begin, 0
    oldest = reader.begin_offsets()[wanted.partition]
    if oldest > at:
        at = min(oldest, wanted.end)
        yield _rows([], wanted.partition, f"{at - wanted.begin} {LOST}")
    while at < wanted.end:
        records = reader.poll({wanted.partition: at}, POLLED)
        if not records:
            empty += 1
            if empty > PATIENCE:
                raise TopicError(f"partition {wanted.partition}: no record came from offset {at} on, expected them up to {wanted.end}")
            continue
        empty, at = 0, records[-1].offset + 1
        inside = [record for record in records if wanted.begin <= record.offset < wanted.end]
        if inside:
            yield _rows(inside, wanted.partition)


def _rows(records: Sequence[TopicRecord], partition: int, problem: str | None = None) -> pa.RecordBatch:
    import pyarrow as pa

    heads = [header_of(record.value) for record in records]
    none = 1 if problem is not None else 0
    columns = {
        "partition": pa.array([partition] * (len(records) + none), pa.int32()),
        "record_offset": pa.array([record.offset for record in records] + [None] * none, pa.int64()),
        "broker": pa.array([head[0] for head in heads] + [None] * none, pa.int32()),
        "incarnation": pa.array([head[1] for head in heads] + [None] * none, pa.int64()),
        "sequence": pa.array([head[2] for head in heads] + [None] * none, pa.int64()),
        "value": pa.array([record.value for record in records] + [None] * none, pa.binary()),
        "problem": pa.array([None] * len(records) + [problem] * none, pa.string()),
    }
    return pa.RecordBatch.from_pydict(columns)


def header_of(value: bytes) -> tuple[int | None, int | None, int | None]:
    """Broker, incarnation and sequence of our reporter's record, as signed numbers; None where it is none of them."""
    if len(value) < HEADER.size or not value.startswith(MAGIC):
        return None, None, None
    _, _, _, _, broker, _, _, incarnation, sequence, _ = HEADER.unpack_from(value)
    return broker, _signed(incarnation), _signed(sequence)


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
