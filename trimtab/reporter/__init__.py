"""Puts a reporter together from its configuration, and runs it until it is told to stop.

Called by the command `reporter`. `config` reads the file; the parts themselves live in `metrics_reporter`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from metrics_reporter.kafka_topic import KafkaTopicReader, KafkaTopicWriter, TopicSettings
from metrics_reporter.publisher import SamplePublisher
from metrics_reporter.reporter import SYSTEM_CLOCK, Clock, Reporter, RoundResult, Sources
from metrics_reporter.sender import IncarnationGuard, Sender, newest_incarnation
from metrics_reporter.spool import Spool
from trimtab.capture.client import ClientSettings, client_settings
from trimtab.reporter.config import EndpointPart, ReporterConfig

if TYPE_CHECKING:
    from metrics_reporter.collectors.http import Endpoint
    from metrics_reporter.reading import Collector

log = logging.getLogger(__name__)

LAST_ROUND_SECONDS, FLUSH_SECONDS = 2.0, 3.0
WATCH_SECONDS = 0.5
REMIND_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: records that reached the topic, that were left, and that there was no room for."""

    sent: int
    unsent: int
    dropped: int


def run(config: ReporterConfig, stop: Event, clock: Clock = SYSTEM_CLOCK) -> Ended:
    """Report until `stop` is set, then measure once more, send what is left, and return within seconds.

    Raises
    ------
    ConfigurationError
        The properties file that the configuration names is wrong.
    Exception
        A bug ended one of the threads; nothing goes on silently without it.
    """
    settings = _settings(config)
    spool = Spool(config.spool)
    writer = KafkaTopicWriter(config.kafka.bootstrap_servers, settings.options, topic_settings(config))
    incarnation = clock.wall_ms()
    guard = IncarnationGuard(writer, incarnation, lambda broker: _newest_incarnation(config, settings, broker))
    sender = Sender(spool, guard)
    publisher = SamplePublisher(spool, config.broker, incarnation)
    reporter = _reporter(config, settings, publisher, clock)
    problems: list[BaseException] = []

    def rounds() -> None:
        try:
            reporter.run(stop)
        except BaseException as error:
            problems.append(error)

    thread = Thread(target=rounds, name="rounds", daemon=True)
    log.info("reporting broker %d to %s every %g s", config.broker, config.topic.name, config.interval)
    sender.start()
    thread.start()
    told, told_at = 0, clock.monotonic() - REMIND_SECONDS
    while not stop.wait(WATCH_SECONDS):
        if not thread.is_alive() or not sender.alive:
            break
        if spool.dropped > told and clock.monotonic() - told_at >= REMIND_SECONDS:
            told, told_at = spool.dropped, clock.monotonic()
            log.warning("the spool is full: %d records dropped so far, oldest first; see spool in the configuration", told)
    stop.set()
    thread.join(LAST_ROUND_SECONDS)
    if problems:
        raise problems[0]
    everything = sender.stop(FLUSH_SECONDS)
    if not thread.is_alive():
        reporter.close()
    writer.close()
    ended = Ended(sender.sent, len(spool), spool.dropped)
    lost = "".join(
        f", {count} {what}"
        for count, what in ((ended.dropped, "dropped because the spool was full"), (sender.refused, "refused by the topic"))
        if count
    )
    if everything:
        log.info("stopped: %d records sent%s", ended.sent, lost)
    else:
        why = f": {sender.problem}" if sender.problem else ""
        log.warning("stopped: %d records sent, %d could not be sent%s%s", ended.sent, ended.unsent, lost, why)
    return ended


def measure_once(config: ReporterConfig, stop: Event, clock: Clock = SYSTEM_CLOCK) -> tuple[RoundResult, int]:
    """What one round measures, and the broker's incarnation that it would carry; nothing is sent anywhere.

    Rates need two readings, so it takes one interval. Raises as `run`.
    """
    incarnation = clock.wall_ms()
    publisher = SamplePublisher(Spool(config.spool), config.broker, incarnation)
    reporter = _reporter(config, _settings(config), publisher, clock)
    try:
        result = reporter.round()
        if not stop.wait(config.interval):
            result = reporter.round()
    finally:
        reporter.close()
    return result, incarnation


def topic_settings(config: ReporterConfig) -> TopicSettings:
    """The internal topic as the configuration wants it."""
    part = config.topic
    return TopicSettings(
        name=part.name,
        create=part.create,
        partitions=part.partitions,
        grow=part.grow,
        replication_factor=part.replication_factor,
        retention_ms=round(part.retention * 1000),
        compression=None if part.compression == "none" else part.compression,
    )


def _settings(config: ReporterConfig) -> ClientSettings:
    path = config.kafka.command_config
    settings = client_settings(None if path is None else Path(path))
    for warning in settings.warnings:
        log.warning("%s", warning)
    return settings


def _newest_incarnation(config: ReporterConfig, settings: ClientSettings, broker: int) -> int | None:
    with KafkaTopicReader(config.kafka.bootstrap_servers, settings.options, config.topic.name, wait=2.0) as reader:
        return newest_incarnation(reader, broker)


def _reporter(config: ReporterConfig, settings: ClientSettings, publisher: SamplePublisher, clock: Clock) -> Reporter:
    sources = _sources(config, settings)
    capacity = {metric: float(value) for metric, value in config.capacity.model_dump(exclude_none=True).items()}
    return Reporter(sources, publisher, interval=config.interval, capacity=capacity, clock=clock)


def _sources(config: ReporterConfig, settings: ClientSettings) -> Sources:
    """The collectors that the configuration names. Logs come from Kafka's admin interface where it is asked, since it
    knows who is in sync; from the agent otherwise."""
    parts = config.collectors
    found: list[Collector] = []
    agent = None
    if parts.prometheus is not None:
        from metrics_reporter.collectors.prometheus import PrometheusCollector

        found.append(PrometheusCollector(_endpoint(parts.prometheus)))
        agent = "prometheus"
    elif parts.jolokia is not None:
        from metrics_reporter.collectors.jolokia import JolokiaCollector

        found.append(JolokiaCollector(_endpoint(parts.jolokia)))
        agent = "jolokia"
    if parts.kafka is not None:
        from metrics_reporter.collectors.kafka_admin import KafkaAdminCollector

        found.append(
            KafkaAdminCollector(
                config.broker,
                config.kafka.bootstrap_servers,
                settings.options,
                timeout=parts.kafka.timeout,
            )
        )
    if parts.host is not None:
        from metrics_reporter.collectors.host import HostCollector

        found.append(
            HostCollector(
                log_dirs=[Path(path) for path in parts.host.log_dirs],
                interfaces=parts.host.interfaces,
                pid_file=None if parts.host.pid_file is None else Path(parts.host.pid_file),
            )
        )
    return Sources(
        tuple(found),
        logs="kafka" if parts.kafka is not None else agent,
        counters=agent,
        host="host" if parts.host is not None else None,
    )


def _endpoint(part: EndpointPart) -> Endpoint:
    from metrics_reporter.collectors.http import Endpoint

    password = None if part.password_file is None else Path(part.password_file)
    return Endpoint(part.url, part.timeout, part.user, password)
