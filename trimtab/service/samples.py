"""Brings the samples of the internal topic to the model and to the history, each once to each.

The turn of one worker. At a start the model is warmed with the last horizon of the topic, which the history of an earlier run
mostly has already: so the records before the history's position go to the model alone, and from there on to both.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from cluster_model.model import ClusterModel
from metrics_reporter.columns import BatchColumns
from metrics_reporter.consumer import SampleConsumer
from metrics_reporter.formats import RecordFormat
from metrics_reporter.reporter import Clock
from metrics_reporter.topic import TopicError, TopicRecord
from trimtab.service.coverage import Coverage
from trimtab.service.reach import ClosableSource

log = logging.getLogger(__name__)

IDLE = 0.2  # seconds between two polls that brought nothing
LAG_EVERY_MS = 5_000
MARGIN = 1.25  # of the horizon that the model is warmed with
FLUSHES = 3  # takes that empty a format which waits for what belongs together

Keep = Callable[[list[BatchColumns], Mapping[int, int]], None]
"""Takes batches for the history, and how far the topic was read with them."""


class Until:
    """A topic as it is before given offsets."""

    def __init__(self, topic: ClosableSource, ends: Mapping[int, int]) -> None:
        self._topic, self.ends = topic, dict(ends)

    @property
    def partitions(self) -> int:
        return self._topic.partitions

    def poll(self, positions: Mapping[int, int], limit: int) -> list[TopicRecord]:
        open_ones = {p: at for p, at in positions.items() if at < self.ends.get(p, 0)}
        if not open_ones:
            return []
        return [r for r in self._topic.poll(open_ones, limit) if r.offset < self.ends[r.partition]]

    def begin_offsets(self) -> dict[int, int]:
        return self._topic.begin_offsets()

    def end_offsets(self) -> dict[int, int]:
        return self._topic.end_offsets() | self.ends

    def offsets_at(self, time_ms: int) -> dict[int, int]:
        return self._topic.offsets_at(time_ms)


class SampleFeed:
    """Reads the topic on and on.

    Parameters
    ----------
    open_topic
        A new reader. Raises `TopicError`.
    form
        How records are decoded; outlives readers.
    keep
        None where no history of samples is kept.
    kept_from
        From where on the history needs the topic; None where it has nothing yet.
    may_begin
        Whether the metadata is there that places samples.
    """

    def __init__(
        self,
        open_topic: Callable[[], ClosableSource],
        model: ClusterModel,
        form: RecordFormat,
        clock: Clock,
        *,
        coverage: Coverage,
        warm_ms: int,
        keep: Keep | None,
        kept_from: Callable[[], Mapping[int, int] | None],
        may_begin: Callable[[], bool],
    ) -> None:
        self._open_topic, self._model, self._form, self._clock = open_topic, model, form, clock
        self._coverage, self._warm_ms = coverage, warm_ms
        self._keep, self._kept_from, self._may_begin = keep, kept_from, may_begin
        self._topic: ClosableSource | None = None
        self._consumer: SampleConsumer | None = None
        self._warming: Until | None = None
        self._goal: dict[int, int] | None = None  # ends of the topic when reading started
        self._lag_ms = -LAG_EVERY_MS
        self._totals = [0, 0, 0]  # records, decode errors, lost of consumers that are gone
        self.lag: int | None = None
        self.caught_up = False  # with what was there when reading started
        self._last_error: str | None = None

    # -- what is said of it --------------------------------------------------------------------------------

    @property
    def records(self) -> int:
        return self._totals[0] + (self._consumer.records if self._consumer is not None else 0)

    @property
    def decode_errors(self) -> int:
        return self._totals[1] + (self._consumer.decode_errors if self._consumer is not None else 0)

    @property
    def lost(self) -> int:
        return self._totals[2] + (self._consumer.lost if self._consumer is not None else 0)

    @property
    def last_error(self) -> str | None:
        return (self._consumer.last_error if self._consumer is not None else None) or self._last_error

    # -- turns ---------------------------------------------------------------------------------------------

    def turn(self) -> float:
        """Read what there is."""
        if not self._may_begin():
            return IDLE
        if self._topic is None:
            self._open()
        try:
            return self._read()
        except TopicError:
            self._drop_topic()
            raise

    def close(self) -> None:
        self._drop_topic()

    def _open(self) -> None:
        topic = self._topic = self._open_topic()
        try:
            if self._consumer is None:
                self._begin(topic)
            else:
                self._go_on(topic, self._consumer.positions, topic)
                if self._warming is not None:
                    self._warming = Until(topic, self._warming.ends)
                    self._go_on(topic, self._consumer.positions, self._warming)
        except TopicError:
            self._drop_topic()
            raise

    def _begin(self, topic: ClosableSource) -> None:
        """Find out from where to read, and up to where the history has it already."""
        now = self._clock.wall_ms()
        begins, ends = topic.begin_offsets(), topic.end_offsets()
        start = topic.offsets_at(now - round(self._warm_ms * MARGIN))
        kept = self._kept_from() if self._keep is not None else None
        if kept is not None:
            anew = sorted(p for p, at in kept.items() if at > ends.get(p, 0))
            if anew:
                log.warning("the topic was made again: partitions %s end before the history's position; all of it counts", anew)
            kept = {p: begins.get(p, 0) if p in anew else max(at, begins.get(p, 0)) for p, at in kept.items() if p in ends}
            missed = sum(max(begins.get(p, 0) - at, 0) for p, at in (self._kept_from() or {}).items() if p not in anew)
            if missed:
                log.warning("%d records were deleted before they came into the history; the topic keeps too little", missed)
            start = {p: min(at, kept.get(p, begins.get(p, 0))) for p, at in start.items()}
        self._goal = ends
        if kept is not None and any(start[p] < kept.get(p, 0) for p in start):
            self._warming = Until(topic, {p: kept.get(p, begins.get(p, 0)) for p in ends})
            self._consumer = SampleConsumer(self._warming, start, self._form)
        else:
            self._consumer = SampleConsumer(topic, start, self._form)

    def _go_on(self, topic: ClosableSource, positions: Mapping[int, int], source: ClosableSource | Until) -> None:
        before = self._consumer
        assert before is not None
        self._totals = [self.records, self.decode_errors, self.lost]
        self._last_error = before.last_error or self._last_error
        self._consumer = SampleConsumer(source, positions, self._form)

    def _read(self) -> float:
        consumer, topic = self._consumer, self._topic
        assert consumer is not None
        assert topic is not None
        records = consumer.records
        batches = consumer.poll()
        read = consumer.records > records
        if self._warming is not None:
            self._take(batches)
            if all(consumer.positions.get(p, 0) >= end for p, end in self._warming.ends.items()):
                for _ in range(FLUSHES):
                    self._take(self._form.take())
                self._warming = None
                self._go_on(topic, consumer.positions, topic)
            return 0.0
        counted = self._take(batches)
        if self._keep is not None and (counted or read):
            self._keep(counted, dict(consumer.positions))
        self._look_behind(consumer)
        return 0.0 if read else IDLE

    def _take(self, batches: list[BatchColumns]) -> list[BatchColumns]:
        """Those that the model counted."""
        now, counted = self._clock.wall_ms(), []
        for batch in batches:
            if self._model.ingest(batch, now):
                counted.append(batch)
                self._coverage.add(batch.time_ms, batch.window_ms)
        return counted

    def _look_behind(self, consumer: SampleConsumer) -> None:
        if not self.caught_up and self._goal is not None:
            self.caught_up = all(consumer.positions.get(p, 0) >= end for p, end in self._goal.items())
        now = self._clock.wall_ms()
        if now - self._lag_ms >= LAG_EVERY_MS:
            self._lag_ms = now
            self.lag = max(consumer.lag, 0)

    def _drop_topic(self) -> None:
        topic, self._topic = self._topic, None
        if topic is not None:
            topic.close()
