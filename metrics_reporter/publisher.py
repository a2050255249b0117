"""From samples to records on the internal topic: numbering, and splitting what would be too large for one
record.

One publisher a reporter process. Standard library only; time comes in by parameter.
"""

from __future__ import annotations

from collections.abc import Sequence

from metrics_reporter.codec import encode
from metrics_reporter.sample import BatchHeader, Sample, SampleBatch
from metrics_reporter.topic import RecordSink

MAX_RECORD_BYTES = 900_000  # below the 1 MiB that Kafka topics accept by default


class SamplePublisher:
    """Publishes the samples of one broker.

    Parameters
    ----------
    incarnation
        Rises from start to start of the reporter; its start time in Unix milliseconds will do.
    """

    def __init__(
        self, topic: RecordSink, broker: int, incarnation: int, *, max_record_bytes: int = MAX_RECORD_BYTES
    ) -> None:
        self._topic, self._broker, self._incarnation = topic, broker, incarnation
        self._max, self._sequence = max_record_bytes, 0

    def publish(self, samples: Sequence[Sample], *, time_ms: int, window_ms: int) -> int:
        """Append the samples of one interval; how many records they took."""
        if not samples:
            return 0
        sequence = self._sequence
        records = []
        waiting = [tuple(samples)]
        while waiting:
            part = waiting.pop()
            header = BatchHeader(self._broker, time_ms, window_ms, self._incarnation, sequence)
            record = encode(SampleBatch(header, part))
            if len(record) > self._max and len(part) > 1:
                half = len(part) // 2
                waiting += [part[half:], part[:half]]
                continue
            records.append(record)
            sequence += 1
        self._topic.publish(records, broker=self._broker, time_ms=time_ms)
        self._sequence = sequence
        return len(records)
