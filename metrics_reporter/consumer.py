"""From the internal topic to batches: positions, decoding, and a count of what could not be decoded.

Used by whoever keeps a model warm. Knows nothing of models; needs numpy through `metrics_reporter.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping

from metrics_reporter.codec import DecodeError
from metrics_reporter.columns import BatchColumns, decode
from metrics_reporter.topic import MetricTopic

POLL_LIMIT = 500


class SampleConsumer:
    """Reads a topic from the given positions on (default: its oldest records), each record once.

    Attributes
    ----------
    records, decode_errors
        Records read, and those among them that no batch came from.
    lost
        Records that retention deleted before they were read.
    last_error
        What was wrong with the newest bad record, and where it stands.
    """

    def __init__(self, topic: MetricTopic, positions: Mapping[int, int] | None = None) -> None:
        self._topic = topic
        self.positions = dict(topic.begin_offsets() if positions is None else positions)
        self.records = 0
        self.decode_errors = 0
        self.lost = 0
        self.last_error: str | None = None

    def poll(self, limit: int = POLL_LIMIT) -> list[BatchColumns]:
        """The next batches, at most `limit` a partition, in the order of each partition; empty at the end."""
        batches = []
        for record in self._topic.poll(self.positions, limit):
            self.lost += record.offset - self.positions[record.partition]
            self.positions[record.partition] = record.offset + 1
            self.records += 1
            try:
                batches.append(decode(record.value))
            except DecodeError as e:
                self.decode_errors += 1
                self.last_error = f"partition {record.partition} offset {record.offset}: {e}"
        return batches

    @property
    def lag(self) -> int:
        """Records not read yet."""
        ends = self._topic.end_offsets()
        return sum(ends[partition] - at for partition, at in self.positions.items())
