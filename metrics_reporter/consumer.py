"""From the internal topic to batches: positions, decoding, and a count of what could not be decoded.

Used by services that keep a model warm. Knows nothing of models; needs numpy through `metrics_reporter.columns`.
"""

from __future__ import annotations

from collections.abc import Mapping

from metrics_reporter.codec import DecodeError
from metrics_reporter.columns import BatchColumns
from metrics_reporter.formats import OwnFormat, RecordFormat
from metrics_reporter.topic import RecordSource

POLL_LIMIT = 500


class SampleConsumer:
    """Reads a topic from the given positions on (default: its oldest records), each record once.

    Partitions that the topic gets while it is read are read from their start.

    Parameters
    ----------
    form
        How records are decoded; by default as our own reporter writes them.

    Attributes
    ----------
    records, decode_errors
        Records read, and those among them that no batch came from.
    lost
        Records that retention deleted before they were read; never less than before.
    last_error
        What was wrong with the newest bad record, and where it stands.
    """

    def __init__(
        self, topic: RecordSource, positions: Mapping[int, int] | None = None, form: RecordFormat | None = None
    ) -> None:
        self._topic = topic
        self._form = OwnFormat() if form is None else form
        self.positions = dict(topic.begin_offsets() if positions is None else positions)
        self.records = 0
        self.decode_errors = 0
        self.lost = 0
        self.last_error: str | None = None

    def poll(self, limit: int = POLL_LIMIT) -> list[BatchColumns]:
        """The next batches, at most `limit` records a partition, in the order of each partition; empty at the
        end."""
        for partition in range(self._topic.partitions):
            self.positions.setdefault(partition, 0)
        for record in self._topic.poll(self.positions, limit):
            # Below the position: the topic was deleted and made again, and what it had is gone without anyone knowing how much.
            self.lost += max(record.offset - self.positions[record.partition], 0)
            self.positions[record.partition] = record.offset + 1
            self.records += 1
            try:
                self._form.add(record.value)
            except DecodeError as e:
                self.decode_errors += 1
                self.last_error = f"partition {record.partition} offset {record.offset}: {e}"
        return self._form.take()

    @property
    def lag(self) -> int:
        """Records not read yet."""
        ends = self._topic.end_offsets()
        return sum(ends[partition] - at for partition, at in self.positions.items())
