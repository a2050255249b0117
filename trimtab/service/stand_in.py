"""Measures in the place of reporters that are not heard: bytes in and sizes of what their brokers lead, from log sizes and offsets.

The turn of the worker ``stand-in``. Any client may ask a broker for these, so one silent reporter stops nothing but what it alone can
see: consumers of topics that no other broker leads a part of. Nothing is asked while all reporters are heard, or too few.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import numpy as np

from cluster_model.model import ClusterModel
from metrics_reporter.columns import BatchColumns, SampleColumns
from metrics_reporter.reporter import Clock
from metrics_reporter.sample import Scope
from trimtab.capture.rates import Rates, measure
from trimtab.capture.reading import PartitionEntry, Reading, TopicPartition, Topology

log = logging.getLogger(__name__)

Leads = Mapping[int, list[TopicPartition]]


class StandIn:
    """Asks the brokers of silent reporters, and tells the model.

    Parameters
    ----------
    ask
        Log sizes of brokers, and offsets of what they lead. Raises `ExternalError`.
    may_ask
        Whether enough else is known that it is worth it.
    every
        Seconds between two readings.
    """

    def __init__(
        self, ask: Callable[[Leads], Reading], model: ClusterModel, clock: Clock, *,
        serving: Callable[[], frozenset[int]], may_ask: Callable[[], bool], every: float,
    ) -> None:  # fmt: skip
        self._ask, self._model, self._clock = ask, model, clock
        self._serving, self._may_ask, self._every = serving, may_ask, every
        self._before: tuple[int, Topology, Reading] | None = None
        self._found: frozenset[int] = frozenset()
        self._told: frozenset[int] = frozenset()

    def turn(self) -> float:
        """Read the counters of brokers whose reporters are not heard, and count what they grew by since the turn before."""
        now = self._clock.wall_ms()
        found = self._mute(now)
        mute, self._found = found & self._found, found  # one that comes back with its broker is given a moment
        for broker in sorted(mute ^ self._told):
            if broker in mute:
                log.warning("the reporter of broker %d is not heard; its logs and offsets are read by this service meanwhile", broker)
            else:
                log.info("broker %d needs no standing in any more", broker)
        self._told = mute
        if not mute:
            self._before = None
            return self._every
        leads: dict[int, list[TopicPartition]] = {broker: [] for broker in sorted(mute)}
        for topic, number, leader in self._model.led_by(mute):
            leads[leader].append((topic, number))
        topology, reading = _topology(leads), self._ask(leads)
        before, self._before = self._before, (self._clock.wall_ms(), topology, reading)
        if before is not None:
            rates = measure(before[2], reading, before[1], topology)
            for broker, led in leads.items():
                self._count(broker, led, rates, reading, round(1000 * rates.seconds))
        return self._every

    def _mute(self, now: int) -> frozenset[int]:
        if not self._may_ask():
            return frozenset()
        serving = self._serving()
        return frozenset(v.broker for v in self._model.voices(now) if v.voice in ("silent", "never") and v.broker in serving)

    def _count(self, broker: int, led: list[TopicPartition], rates: Rates, reading: Reading, window_ms: int) -> None:
        measured = [key for key in led if key in rates.of]
        part = reading[broker].sizes
        if not measured or part is None or window_ms <= 0:
            return
        topics = sorted({topic for topic, _ in measured})
        row = {topic: at for at, topic in enumerate(topics)}
        values = np.array([[rates.of[key].appended for key in measured], [part.sizes.get(key, np.nan) for key in measured]])
        columns = SampleColumns(
            Scope.LEADER, ("network_in", "disk"), np.array([row[topic] for topic, _ in measured], dtype=np.int32),
            np.array([number for _, number in measured], dtype=np.int32), values,
        )  # fmt: skip
        now = self._clock.wall_ms()
        self._model.ingest(BatchColumns(broker, now, window_ms, 0, 0, tuple(topics), (columns,)), now, stands_in=True)


def _topology(leads: Leads) -> Topology:
    entries = {key: PartitionEntry((broker,), (broker,), broker, ()) for broker, led in leads.items() for key in led}
    return Topology("", {}, entries)
