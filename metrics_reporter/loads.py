"""From readings of one broker to samples: what each of its replicas cost, and the broker as a whole.

Owned by `metrics_reporter.reporter`, one meter a broker; no I/O, and time comes in by parameter. docs/reporter.md
states the method. Every byte is counted in exactly one interval: a source that failed in a round is read over a
longer interval in the next, and what one interval covered no other covers again. Growth is divided by the time between the starts of
rounds, which is what the interval is told to be: so rates times intervals are what grew, however late a source answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from metrics_reporter.growth import CounterRates, appended, counter_rates, grown_record
from metrics_reporter.reading import (
    BYTES_IN,
    BYTES_OUT,
    CPU_SECONDS,
    FETCH_REQUESTS,
    METADATA_TOPIC,
    NIC_IN,
    NIC_OUT,
    PRODUCE_REQUESTS,
    REPLICATION_IN,
    REPLICATION_OUT,
    Counters,
    LogReading,
    Logs,
    Partition,
)
from metrics_reporter.sample import Sample, Scope

LATENCY_OF = {"produce_latency_ms": PRODUCE_REQUESTS, "fetch_latency_ms": FETCH_REQUESTS}
SHARED = {"consumer_out": BYTES_OUT, "produce_rate": PRODUCE_REQUESTS, "fetch_rate": FETCH_REQUESTS}


@dataclass(frozen=True, slots=True)
class Round:
    """What all collectors read in one round; `at` is its start on the monotonic clock. A part is None where
    its collector failed or there is none."""

    at: float
    logs: Logs | None = None
    counters: Counters | None = None  # of the broker's process
    host: Counters | None = None
    capacity: Mapping[str, float] | None = None
    disk: float | None = None
    latencies: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """Samples over one interval; `seconds` is its length, 0 where the values are instantaneous."""

    seconds: float
    samples: tuple[Sample, ...]


@dataclass(slots=True)
class _Flow:
    """Rates of one replica; None is not measured."""

    scope: Scope
    network_in: float | None = None
    consumer_out: float | None = None
    produce_rate: float | None = None
    fetch_rate: float | None = None
    cpu: float | None = None


class LoadMeter:
    """Remembers the readings that the next ones are compared with; memory is one reading of each source."""

    def __init__(self) -> None:
        self._logs: tuple[float, Logs] | None = None
        self._counters: tuple[float, Counters] | None = None
        self._host: tuple[float, Counters] | None = None
        self._both: tuple[float, Logs, Counters] | None = None
        self._last_in: dict[Partition, float] = {}  # newest rate above 0 of each led partition
        self._a_record: dict[Partition, float] = {}  # bytes of a record as each log grew

    def take(self, now: Round) -> list[Measured]:
        """Samples of the time since the readings before; one entry for each interval that they cover."""
        found: dict[float, list[Sample]] = {}
        served = self._served(now.counters)
        cpu = self._of_broker(now, found)
        if now.logs is not None:
            logs = _without_metadata(now.logs)
            self._of_replicas(now, logs, cpu, found)
            self._remember_records(logs)
            newest = max(found, default=now.at)
            found.setdefault(newest, []).extend(_disks(logs))
            self._logs = (now.at, logs)
            self._last_in = {p: rate for p, rate in self._last_in.items() if p in logs.of}
        newest = max(found, default=now.at)
        capacity = (now.capacity or {}).items()
        found.setdefault(newest, []).extend(Sample(Scope.CAPACITY, None, None, m, v) for m, v in capacity)
        found[newest].extend(Sample(Scope.BROKER, None, None, m, v) for m, v in (now.latencies or {}).items() if m in served)
        if now.logs is None and now.disk is not None:
            found[newest].append(Sample(Scope.BROKER, None, None, "disk", now.disk))
        return [Measured(now.at - since, tuple(samples)) for since, samples in sorted(found.items()) if samples]

    def _served(self, counters: Counters | None) -> set[str]:
        """Latencies that are of now: without requests Kafka goes on telling the last ones."""
        if counters is None or self._counters is None:
            return set()
        before = self._counters[1].broker
        return {m for m, counter in LATENCY_OF.items() if counters.broker.get(counter, 0.0) != before.get(counter, 0.0)}

    # -- the whole broker ------------------------------------------------------------------------------------

    def _of_broker(self, now: Round, found: dict[float, list[Sample]]) -> float | None:
        """Add the use of the whole broker; its CPU in cores, None where that was not measured."""
        use: dict[str, tuple[float, float]] = {}
        # What the broker counts itself goes before what its host counts.
        for counters, before in ((now.host, self._host), (now.counters, self._counters)):
            if counters is not None and before is not None:
                grown = counter_rates(before[1], counters, now.at - before[0])
                if grown is not None:
                    use |= {metric: (before[0], rate) for metric, rate in _broker_use(grown).items()}
        for metric, (since, rate) in use.items():
            found.setdefault(since, []).append(Sample(Scope.BROKER, None, None, metric, rate))
        self._host = self._host if now.host is None else (now.at, now.host)
        self._counters = self._counters if now.counters is None else (now.at, now.counters)
        return use["cpu"][1] if "cpu" in use else None

    # -- replicas ----------------------------------------------------------------------------------------------

    def _remember_records(self, logs: Logs) -> None:
        before = {} if self._logs is None else self._logs[1].of
        known, self._a_record = self._a_record, {}
        for p, log in logs.of.items():
            size = grown_record(before[p], log, known.get(p)) if p in before else None
            if size is not None:
                self._a_record[p] = size

    def _of_replicas(self, now: Round, logs: Logs, cpu: float | None, found: dict[float, list[Sample]]) -> None:
        """Add the rates of replicas since the logs before and, where the counters were read as well, since both."""
        both, before = self._both, self._logs
        rates = None
        if now.counters is not None:
            rates = counter_rates(both[2], now.counters, now.at - both[0]) if both is not None else None
            self._both = (now.at, logs, now.counters)
        if both is not None and rates is not None and (before is None or before[0] != both[0]):
            # Counters were missing for a while: bytes appended were told meanwhile, the rest was not.
            flows = self._flows(both[1], logs, now.at - both[0], rates, cpu)
            found.setdefault(both[0], []).extend(_samples(flows, without="network_in"))
            rates = None
        if before is not None:
            flows = self._flows(before[1], logs, now.at - before[0], rates, cpu if rates is not None or self._both is None else None)
            found.setdefault(before[0], []).extend(_samples(flows))

    def _flows(
        self, before: Logs, after: Logs, seconds: float, rates: CounterRates | None, cpu: float | None
    ) -> dict[Partition, _Flow]:
        """Rates of every replica; `cpu` is the broker's, in cores, where its process does not count that itself."""
        if seconds <= 0:
            return {}
        flows = dict(self._hosted_flows(before, after, seconds))
        led: dict[str, set[int]] = {}
        for topic, number in [p for logs in (before, after) for p, log in logs.of.items() if log.leads]:
            led.setdefault(topic, set()).add(number)
        for topic, numbers in led.items():
            flows |= self._led_flows(topic, sorted(numbers), before, after, seconds, rates)
        counted = {} if rates is None else rates.broker
        cpu = counted.get(CPU_SECONDS, cpu)
        if cpu is not None:
            _attribute(cpu, flows, counted.get(REPLICATION_OUT, 0.0))
        return flows

    def _hosted_flows(self, before: Logs, after: Logs, seconds: float) -> Iterable[tuple[Partition, _Flow]]:
        """Rates of replicas that the broker does not lead, or of which it is not known; a follower that was not in
        sync copies what is old, so it is left out."""
        for p, now in after.of.items():
            then = before.of.get(p)
            if then is None or now.leads is not then.leads or now.leads or now.in_sync is False or then.in_sync is False:
                continue
            bytes_in, _ = appended(then, now, self._a_record.get(p))
            if bytes_in is not None:
                yield p, _Flow(Scope.REPLICA if now.leads is None else Scope.FOLLOWER, bytes_in / seconds)

    def _led_flows(
        self, topic: str, numbers: Iterable[int], before: Logs, after: Logs, seconds: float, rates: CounterRates | None
    ) -> dict[Partition, _Flow]:
        """Rates of the partitions of a topic that the broker leads, of those that it led at one end as well.

        What the broker counted for the topic is split by what each partition was appended to meanwhile.
        """
        members = [(topic, n) for n in numbers]
        led_before = [(log := before.of.get(p)) is not None and log.leads is True for p in members]
        leads_now = [(log := after.of.get(p)) is not None and log.leads is True for p in members]
        settled = all(led_before) and all(leads_now)
        begun = not any(led_before)  # so all that was counted belongs to those that it leads now
        came = [_came(before.of.get(p), after.of.get(p), begun, self._a_record.get(p)) for p in members]
        weights = self._weights(members, [w for w, _ in came], seconds)
        total_in = None if rates is None else rates.of_topic(BYTES_IN, topic)
        flows: dict[Partition, _Flow] = {}
        for i, p in enumerate(members):
            if not leads_now[i] or not (led_before[i] or (begun and rates is not None)):
                continue
            share = self._share(i, weights, members, after)
            flow = flows[p] = _Flow(Scope.LEADER)
            bytes_in, exact = came[i]
            by_count = _part(total_in, share)
            if by_count is not None and (settled or begun or not exact):
                flow.network_in = by_count
            elif bytes_in is not None and not begun:
                flow.network_in = bytes_in / seconds
            if rates is not None:
                for metric, counter in SHARED.items():
                    setattr(flow, metric, _part(rates.of_topic(counter, topic), share))
            if flow.network_in:
                self._last_in[p] = flow.network_in
        return flows

    def _weights(self, members: list[Partition], came: list[float | None], seconds: float) -> list[float]:
        """Bytes a second each member was appended to; for one of which that is not known what it was last,
        else as much as the others on average."""
        known = [bytes_in / seconds for bytes_in in came if bytes_in is not None]
        otherwise = sum(known) / len(known) if known else 0.0
        return [
            self._last_in.get(p, otherwise) if bytes_in is None else bytes_in / seconds
            for p, bytes_in in zip(members, came, strict=True)
        ]

    def _share(self, index: int, weights: list[float], members: list[Partition], after: Logs) -> float | None:
        """Share of one member; where nothing was appended, by what last was, else by what the logs hold."""
        hosted = [after.of.get(p) for p in members]
        bases = (
            weights,
            [self._last_in.get(p, 0.0) for p in members],
            [float(log.size) if log is not None and log.leads else 0.0 for log in hosted],
        )
        for basis in bases:
            total = sum(basis)
            if total > 0:
                return basis[index] / total
        return None


def _broker_use(rates: CounterRates) -> dict[str, float]:
    """Use of the whole broker by metric, of whatever was counted."""
    broker = rates.broker
    use: dict[str, float] = {}
    for metric, parts in (
        ("network_in", (BYTES_IN, REPLICATION_IN)), ("network_out", (BYTES_OUT, REPLICATION_OUT)),
        ("network_in", (NIC_IN,)), ("network_out", (NIC_OUT,)),
        ("cpu", (CPU_SECONDS,)), ("produce_rate", (PRODUCE_REQUESTS,)), ("fetch_rate", (FETCH_REQUESTS,)),
    ):  # fmt: skip
        if all(part in broker for part in parts):
            use[metric] = sum(broker[part] for part in parts)
    return use


def _came(
    before: LogReading | None, after: LogReading | None, begun: bool, a_record: float | None
) -> tuple[float | None, bool]:
    """Bytes that came to a partition, and whether they are exact; of a log that is new here only its size is
    known, which tells how partitions compare where all of them are new."""
    if before is None or after is None:
        return (float(after.size), False) if after is not None and begun else (None, False)
    return appended(before, after, a_record)


def _part(total: float | None, share: float | None) -> float | None:
    if not total:
        return total
    return None if share is None else total * share


def _attribute(cpu: float, flows: Mapping[Partition, _Flow], replication_out: float) -> None:
    """Give each replica its part of the broker's CPU, in proportion to the bytes it handled."""
    led_in = sum(f.network_in or 0.0 for f in flows.values() if f.scope is Scope.LEADER)
    handled: dict[Partition, float] = {}
    for p, flow in flows.items():
        handled[p] = (flow.network_in or 0.0) + (flow.consumer_out or 0.0)
        if flow.scope is Scope.LEADER and led_in > 0:
            handled[p] += replication_out * (flow.network_in or 0.0) / led_in
    total = sum(handled.values())
    for p, flow in flows.items():
        if flow.scope is not Scope.REPLICA:
            flow.cpu = cpu * handled[p] / total if total > 0 else 0.0


def _samples(flows: Mapping[Partition, _Flow], without: str = "") -> Iterable[Sample]:
    for (topic, number), flow in flows.items():
        for metric in ("network_in", "consumer_out", "produce_rate", "fetch_rate", "cpu"):
            value: float | None = getattr(flow, metric)
            if value is not None and metric != without:
                yield Sample(flow.scope, topic, number, metric, value)


def _disks(logs: Logs) -> Iterable[Sample]:
    """What every log holds; the broker's logs together."""
    scopes = {True: Scope.LEADER, False: Scope.FOLLOWER, None: Scope.REPLICA}
    for (topic, number), log in logs.of.items():
        if log.leads or log.in_sync is not False:
            yield Sample(scopes[log.leads], topic, number, "disk", float(log.size))
    yield Sample(Scope.BROKER, None, None, "disk", float(sum(log.size for log in logs.of.values())))


def _without_metadata(logs: Logs) -> Logs:
    return Logs({p: log for p, log in logs.of.items() if p[0] != METADATA_TOPIC})
