"""What an execution sees of a cluster, with the same work for each look however large the cluster is.

Made by the engine, which looks every second. The whole cluster is described at the start, when a broker comes or goes, and now and
then for new topics. Between that a look describes the partitions that something happens to, whatever is not in sync, and some other
topics in turn. Of partitions that are in sync and not in the plan nothing is kept: no step depends on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from metrics_reporter.reporter import Clock
from trimtab.execution.port import ClusterPort
from trimtab.execution.state import Observed, Partition, SeenBroker, SeenPartition, Task

PARTITIONS = 5_000
BROKERS = 30
WHOLE_MS = 600_000  # so often the whole cluster is described where no broker came or went, for new topics
SHARE = 20  # a whole look is not taken again before so many times its own duration


@dataclass(eq=False)
class View:
    """See the module. `look` starts a turn, `also` looks closer within it.

    Attributes
    ----------
    partitions
        Described in one look, beside those that something happens to; a cluster of so many is described whole every time.
    ask
        Brokers asked for their room in one look, beside those that are being copied to.
    """

    port: ClusterPort
    clock: Clock
    partitions: int = PARTITIONS
    ask: int = BROKERS
    _seen: Observed | None = None
    _kept: dict[str, dict[Partition, SeenPartition]] = field(default_factory=dict)  # by topic
    _counts: dict[str, int] = field(default_factory=dict)  # partitions of each topic, in the order in which they take turns
    _turn: list[str] = field(default_factory=list)  # topics that were not described in this round yet, last one first
    _whole_ms: int | None = None
    _whole_took_ms: int = 0
    _looked: set[str] = field(default_factory=set)  # topics described since `look` was called
    _rooms: dict[int, float | None] = field(default_factory=dict)  # in the order in which they were asked
    _brokers: dict[int, SeenBroker] = field(default_factory=dict)
    _down_since: dict[int, int] = field(default_factory=dict)

    def look(self, tasks: Mapping[Partition, Task], near: Collection[Partition], brokers: Collection[int]) -> Observed:
        """The cluster as far as it bears on `tasks`.

        Parameters
        ----------
        near
            Partitions that something happens to: described now, with what their adding replicas have.
        brokers
            Of which the room counts. Those that something of `near` is copied to are asked now, others in turn.

        Raises
        ------
        ExternalError
            The cluster does not answer.
        """
        self._looked = set()
        into = {b for n in near if n in tasks for b in tasks[n].adding}
        into |= {b for of in self._kept.values() for n, p in of.items() if n in tasks for b in p.adding}
        moving = {*near, *(n for of in self._kept.values() for n, p in of.items() if n in tasks and p.reassigning)}
        asked = self._to_ask(into, brokers)
        alive = self._alive()
        if self._whole_due():
            return self._describe(tasks, None, moving, asked)
        seen = self._describe(tasks, {*(n.topic for n in moving), *self._unwell(), *self._slice()}, moving, asked)
        return seen if self._alive() == alive or not self._may_be_whole() else self._describe(tasks, None)

    def also(self, tasks: Mapping[Partition, Task], names: Iterable[Partition]) -> Observed:
        """The same with these partitions described now, where `look` did not describe them."""
        assert self._seen is not None
        topics = {n.topic for n in names} - self._looked
        return self._describe(tasks, topics) if topics else self._seen

    # -- what is described -----------------------------------------------------------------------------------

    def _alive(self) -> set[int]:
        return {b for b, known in self._brokers.items() if known.alive}

    def _whole_due(self) -> bool:
        if self._whole_ms is None or sum(self._counts.values()) <= self.partitions:
            return True
        return self.clock.wall_ms() - self._whole_ms >= WHOLE_MS and self._may_be_whole()

    def _may_be_whole(self) -> bool:
        return self._whole_ms is None or self.clock.wall_ms() - self._whole_ms >= SHARE * self._whole_took_ms

    def _unwell(self) -> list[str]:
        """Topics with replicas that are not in sync, as many as one look takes."""
        found, count = [], 0
        for topic, of in self._kept.items():
            if any(len(p.isr) < len(p.replicas) for p in of.values()):
                found.append(topic)
                count += self._counts.get(topic, 1)
                if count >= self.partitions:
                    break
        return found

    def _slice(self) -> list[str]:
        """The topics whose turn it is."""
        if not self._turn:
            self._turn = list(reversed(self._counts))
        found, count = [], 0
        while self._turn and count < self.partitions:
            found.append(self._turn.pop())
            count += self._counts.get(found[-1], 1)
        return found

    def _to_ask(self, into: Collection[int], brokers: Collection[int]) -> set[int]:
        """Those that are copied to, and of the others those that were asked longest ago."""
        longest = sorted(set(brokers) - set(into) - self._rooms.keys()) + [b for b in self._rooms if b in brokers and b not in into]
        return {*into, *longest[: max(self.ask - len(into), 1)]}

    # -- what is made of it ----------------------------------------------------------------------------------

    def _describe(
        self,
        tasks: Mapping[Partition, Task],
        topics: set[str] | None,
        near: Collection[Partition] | None = None,
        asked: Collection[int] = (),
    ) -> Observed:
        """What is known with these topics described now, all of them where that is None; without `near` copies are as they were."""
        began = self.clock.monotonic()
        found = self.port.look(near or (), asked, topics)
        if topics is None:
            self._kept, self._counts = {}, {}
            self._whole_ms, self._whole_took_ms = self.clock.wall_ms(), round(1000 * (self.clock.monotonic() - began))
        described: dict[str, dict[Partition, SeenPartition]] = {t: {} for t in topics or ()}
        for name, there in found.partitions.items():
            described.setdefault(name.topic, {})[name] = there
        for topic, of in described.items():
            self._counts[topic] = len(of)
            self._kept[topic] = {n: p for n, p in of.items() if n in tasks or p.reassigning or len(p.isr) < len(p.replicas)}
            if not self._kept[topic]:
                del self._kept[topic]
        self._looked |= described.keys()
        copied = self._seen.copied if near is None and self._seen is not None else found.copied
        partitions = {n: p for of in self._kept.values() for n, p in of.items()}
        min_isr = {**({} if self._seen is None else self._seen.min_isr), **found.min_isr}
        self._seen = replace(found, brokers=self._with_absent(found, asked), partitions=partitions, copied=copied, min_isr=min_isr)
        return self._seen

    def _with_absent(self, found: Observed, asked: Collection[int]) -> dict[int, SeenBroker]:
        """Brokers with their room as it was told last, and for how long they have been down. Before Kafka 4.0 a broker that is down is
        not described at all: one that was there before is taken for down, and not for unregistered."""
        now = self.clock.wall_ms()
        for broker in asked:
            self._rooms.pop(broker, None)
            known = found.brokers.get(broker)
            if known is not None and known.alive:
                self._rooms[broker] = known.free
        absent = {b: replace(known, alive=False) for b, known in self._brokers.items() if b not in found.brokers}
        brokers = {**absent, **found.brokers}
        self._down_since = {b: self._down_since.get(b, now) for b, known in brokers.items() if not known.alive}
        self._brokers = {
            b: replace(known, free=self._rooms.get(b) if known.alive else None, down_ms=now - self._down_since.get(b, now))
            for b, known in brokers.items()
        }
        return self._brokers
