"""Captures a live cluster as a `Snapshot`, through Kafka's admin interface; changes nothing on it.

Called by the commands `snapshot` and `plan`. `properties`, `tls` and `client` read client settings,
`gateway` talks to Kafka, `placement` reads a metadata log where one is given, `rates`, `capacity` and
`assemble` are pure; here they are put together.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from trimtab.capture.reading import Reading

log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
"""Told what is being done, and which share of it is done (0..1)."""

STEPS = 5  # of the interval, between which logs of compacted topics are read
TICK = 0.2  # seconds between two reports of progress while the interval passes


@dataclass(frozen=True, slots=True)
class Clock:
    """Where time comes from; `now` is the wall clock in UTC."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


def capture(
    bootstrap_server: str,
    *,
    command_config: Path | None = None,
    interval: float = 10.0,
    capacity: Path | None = None,
    kraft_log: Path | None = None,
    progress: Progress = lambda what, share: None,
    clock: Clock = Clock(),
) -> Snapshot:
    """The cluster behind `bootstrap_server` as it is now, with rates measured over `interval`.

    Parameters
    ----------
    bootstrap_server
        ``HOST:PORT``, several with commas.
    command_config
        Properties file of Kafka's own tools, for TLS and SASL.
    interval
        Seconds between the two readings that rates come from; 0 measures none.
    capacity
        YAML file with what brokers can carry.
    kraft_log
        Metadata log directory on this machine; brokers, replica lists and leaders are read from it then.

    Raises
    ------
    ConfigurationError
        An address, the properties file or the capacity file is wrong, or the log is another cluster's.
    InputError
        The metadata log cannot be read.
    ExternalError
        No cluster answers there, or it refuses; the message says what to check.

    Notes
    -----
    What could not be read is in the result with its state and in `Snapshot.notes`, and is logged as a
    warning. docs/snapshot-command.md says how rates are measured and how exact they are.
    """
    from trimtab.capture.capacity import read_capacities
    from trimtab.capture.client import client_settings

    settings = client_settings(command_config)
    capacities = read_capacities(capacity)
    for warning in settings.warnings:
        log.warning("%s", warning)

    from cluster_model.build import build_snapshot
    from trimtab.capture.assemble import Notes, assemble
    from trimtab.capture.gateway import Gateway, require_broker
    from trimtab.capture.rates import measure
    from trimtab.capture.reading import led

    progress("connecting", 0.0)
    with Gateway(bootstrap_server, settings, clock.monotonic) as gateway:
        progress("describing the cluster", 0.0)
        describe = gateway.topology
        if kraft_log is not None:
            from trimtab.capture.placement import LogPlacement

            describe = LogPlacement(kraft_log, gateway, gateway.cluster_id(), clock).topology
        earlier = describe()
        before = gateway.read(earlier, rates=interval > 0, done=lambda share: progress("reading logs and offsets", share))
        require_broker(earlier, before, bootstrap_server)
        topology, after, rates = earlier, before, None
        if interval > 0:
            topics = {topic for topic, _ in earlier.partitions}
            policies = gateway.compacted(topics)
            compacted = frozenset(topic for topic, is_compacted in policies.items() if is_compacted)
            between = _pass(interval, clock, progress, partial(gateway.counters, led(earlier, compacted)) if compacted else None)
            topology = describe()
            after = gateway.read(topology, rates=True, done=lambda share: progress("reading logs and offsets again", share))
            rates = measure(before, after, earlier, topology, between)
            rates = replace(rates, compacted=compacted, unread=tuple(sorted(topics - policies.keys())))
    taken_at = clock.now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    notes = Notes()
    document = assemble(topology, before, after, rates, capacities, taken_at, notes)
    for warning in notes.warnings:
        log.warning("%s", warning)
    return build_snapshot(document, f"capture of {bootstrap_server}")


def _pass(interval: float, clock: Clock, progress: Progress, read: Callable[[], Reading] | None) -> list[Reading]:
    """Let `interval` seconds pass; what `read` said meanwhile, some times, fewer where it takes long."""
    begun, due, found = clock.monotonic(), interval / STEPS, []
    while (gone := clock.monotonic() - begun) < interval:
        progress("measuring rates", gone / interval)
        if read is not None and gone >= due:
            found.append(read())
            due = max(due, clock.monotonic() - begun) + interval / STEPS
        else:
            clock.sleep(min(TICK, interval - gone))
    progress("measuring rates", 1.0)
    return found
