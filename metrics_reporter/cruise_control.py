"""Records of Cruise Control's metrics reporter (topic `__CruiseControlMetrics`), so that clusters which have it need
no other.

One record holds one metric of a broker, a topic or a partition; all of a round carry the same time. Its byte rates
are a topic's on a broker, so they are split to partitions by how the partitions' sizes grew, as our own reporter
does it (`metrics_reporter.loads`). Who leads, and how many cores a broker has, these records do not say: that comes
in by parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from metrics_reporter.codec import DecodeError
from metrics_reporter.columns import BatchColumns
from metrics_reporter.formats import Assembler, BigEndian
from metrics_reporter.loads import LoadMeter, Round
from metrics_reporter.reading import (
    BYTES_IN,
    BYTES_OUT,
    CPU_SECONDS,
    FETCH_REQUESTS,
    PRODUCE_REQUESTS,
    REPLICATION_IN,
    REPLICATION_OUT,
    Counters,
    LogReading,
    Logs,
    Partition,
)

TOPIC = "__CruiseControlMetrics"
BROKER_METRIC, TOPIC_METRIC, PARTITION_METRIC = 0, 1, 2
FORMAT_VERSION = 0
# Its metric types that are loads; the others are of requests' times and queues, and are passed over.
BROKER_RATES = {
    0: BYTES_IN, 1: BYTES_OUT, 6: REPLICATION_IN, 7: REPLICATION_OUT, 8: PRODUCE_REQUESTS, 9: FETCH_REQUESTS,
}  # fmt: skip
CPU_UTILIZATION = 5  # of the broker's process, 0 to 1 of all cores
TOPIC_RATES = {2: BYTES_IN, 3: BYTES_OUT, 13: PRODUCE_REQUESTS, 14: FETCH_REQUESTS}
PARTITION_SIZE = 4
MAX_BROKERS = 10_000  # remembered; more than any cluster has
MAX_VALUE = 2.0**63
STRAGGLER_MS = 120_000  # a round so much older than the newest is late; an older one is of a clock that was set
SILENCE_MS = 3_600_000  # after so long a broker is measured again; perhaps only its clock was set

Leads = Callable[[int, str, int], bool | None]
"""Whether a broker leads a partition, given by topic and number; None where the metadata does not know."""
Cores = Callable[[int], float | None]
"""How many cores a broker has; None where that is not known."""


@dataclass(slots=True)
class _OpenRound:
    """What has come of one round of one broker."""

    sizes: dict[Partition, float] = field(default_factory=dict)
    broker: dict[str, float] = field(default_factory=dict)
    topics: dict[str, dict[str, float]] = field(default_factory=dict)
    utilization: float | None = None
    quiet: bool = False  # the poll before brought nothing of it


@dataclass(slots=True)
class _Broker:
    """What is remembered of a broker between its rounds; rates are summed up to counters."""

    meter: LoadMeter = field(default_factory=LoadMeter)
    time_ms: int | None = None
    broker: dict[str, float] = field(default_factory=dict)
    topics: dict[str, dict[str, float]] = field(default_factory=dict)


class CruiseControlFormat:
    """A `RecordFormat`; a round is given out when a poll brought nothing more of it, since its records stand in
    several partitions of the topic.

    Parameters
    ----------
    leads, cores
        What the records do not say.
    incarnation
        When reading started, Unix ms.
    """

    def __init__(self, leads: Leads, cores: Cores = lambda broker: None, *, incarnation: int = 0) -> None:
        self._leads, self._cores = leads, cores
        self._assembler = Assembler(incarnation)
        self._open: dict[tuple[int, int], _OpenRound] = {}
        self._brokers: dict[int, _Broker] = {}

    def add(self, record: bytes) -> None:
        """Take one record; see `RecordFormat.add`."""
        reader = BigEndian(record)
        level, version, kind = reader.integer(1), reader.integer(1), reader.integer(1)
        if level not in (BROKER_METRIC, TOPIC_METRIC, PARTITION_METRIC):
            raise DecodeError(f"metric class {level}, expected {BROKER_METRIC}, {TOPIC_METRIC} or {PARTITION_METRIC}")
        if version != FORMAT_VERSION:
            raise DecodeError(f"format version {version}, this release reads version {FORMAT_VERSION}")
        time_ms, broker = reader.time_and_broker()
        topic = reader.topic() if level != BROKER_METRIC else ""
        number = reader.partition() if level == PARTITION_METRIC else 0
        value = reader.number()
        reader.end()
        if not 0 <= value < MAX_VALUE:
            raise DecodeError(f"metric type {kind} has the value {value}")
        entry = self._open.setdefault((time_ms, broker), _OpenRound())
        entry.quiet = False
        if level == BROKER_METRIC and kind in BROKER_RATES:
            entry.broker[BROKER_RATES[kind]] = value
        elif level == BROKER_METRIC and kind == CPU_UTILIZATION:
            entry.utilization = value
        elif level == TOPIC_METRIC and kind in TOPIC_RATES:
            entry.topics.setdefault(TOPIC_RATES[kind], {})[topic] = value
        elif level == PARTITION_METRIC and kind == PARTITION_SIZE:
            entry.sizes[topic, number] = value

    def take(self) -> list[BatchColumns]:
        """Batches of the rounds that are complete, oldest first."""
        complete = sorted(key for key, entry in self._open.items() if entry.quiet)
        found: list[BatchColumns] = []
        for time_ms, broker in complete:
            found.extend(self._batches(time_ms, broker, self._open.pop((time_ms, broker))))
        for entry in self._open.values():
            entry.quiet = True
        return found

    def _batches(self, time_ms: int, broker: int, entry: _OpenRound) -> list[BatchColumns]:
        known = self._brokers.pop(broker, None) or _Broker()
        passed = time_ms - (known.time_ms if known.time_ms is not None else time_ms - 1)
        if not -STRAGGLER_MS < passed <= SILENCE_MS:
            known = _Broker()
        self._brokers[broker] = known  # the newest last
        while len(self._brokers) > MAX_BROKERS:
            del self._brokers[next(iter(self._brokers))]
        if known.time_ms is not None and passed <= 0:
            return []
        seconds = 0.0 if known.time_ms is None else (time_ms - known.time_ms) / 1000
        known.time_ms = time_ms
        cores = self._cores(broker)
        rates = dict(entry.broker)
        if entry.utilization is not None and cores is not None:
            rates[CPU_SECONDS] = entry.utilization * cores
        known.broker = _summed(known.broker, rates, seconds)
        known.topics = {c: _summed(known.topics.get(c, {}), of, seconds) for c, of in entry.topics.items()}
        logs = {
            (topic, number): LogReading(int(size), leads=self._leads(broker, topic, number))
            for (topic, number), size in entry.sizes.items()
        }
        counters = Counters(None, known.broker, known.topics) if known.broker else None
        measured = known.meter.take(Round(time_ms / 1000, Logs(logs) if logs else None, counters))
        return [
            self._assembler.batch(broker, time_ms, round(part.seconds * 1000), part.samples) for part in measured
        ] or [self._assembler.batch(broker, time_ms, 0, ())]


def _summed(before: dict[str, float], rates: dict[str, float], seconds: float) -> dict[str, float]:
    """Counters of the names that `rates` has, grown by these rates for so long."""
    return {name: before.get(name, 0.0) + rate * seconds for name, rate in rates.items()}
