"""The live model in plain Python: dictionaries and lists, no array, no cache, everything worked out again when asked.

Used by `tests.property.test_model`. Written from docs/model.md, not from the code.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from cluster_model.observed import BROKER, CAPACITY, FOLLOWER, LEADER, REPLICA
from cluster_model.windows import Horizon
from tests.unit.cluster_model.remembered import Remembered

Name = tuple[str, int]
Load = tuple[float, bool, bool]
"""Amount, estimated, stale."""

RATES = ("network_in", "network_out", "cpu", "consumer_out")


@dataclass
class Sample:
    """One value of one batch; `about` is a topic-partition, or None for the broker itself."""

    broker: int
    time_ms: int
    window_ms: int
    arrived_ms: int
    scope: int
    about: Name | None
    metric: str
    value: float


@dataclass
class Partition:
    replicas: list[int]
    isr: list[int]
    leader: int | None
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)


@dataclass
class Broker:
    rack: str | None
    fenced_ms: int | None = None
    stopping: bool = False


class Metric:
    """One metric of one scope: both horizons of a rate, or newest values of a gauge, and when samples were of."""

    def __init__(self, horizons: dict[str, Horizon], is_gauge: bool) -> None:
        self.horizons = {name: Remembered(h) for name, h in horizons.items()}
        self.is_gauge = is_gauge
        self.newest: dict[Hashable, tuple[int, float]] = {}

    def advance(self, time_ms: int) -> None:
        if not self.is_gauge:
            for horizon in self.horizons.values():
                horizon.advance(time_ms)

    def add(self, of: Hashable, sample: Sample) -> None:
        if not self.is_gauge:
            for horizon in self.horizons.values():
                horizon.add(sample.time_ms, of, sample.value, sample.window_ms)
        if of not in self.newest or sample.time_ms >= self.newest[of][0]:
            self.newest[of] = (sample.time_ms, sample.value)

    def forget(self, of: Hashable) -> None:
        self.newest.pop(of, None)
        for horizon in self.horizons.values():
            horizon.forget(of)

    def load(self, of: Hashable, horizon: str, oldest_ms: int) -> Load | None:
        if of not in self.newest:
            return None
        time_ms, value = self.newest[of]
        mean = value if self.is_gauge else self.horizons[horizon].mean(of)
        assert mean is not None
        return mean, False, time_ms < oldest_ms


class Oracle:
    """As `ClusterModel`; times in ms."""

    def __init__(self, short: Horizon, long: Horizon, stale_after: int, dead_after: int, max_wait: int) -> None:
        self.spans = {"short": short, "long": long}
        self.stale_after, self.dead_after, self.max_wait = stale_after, dead_after, max_wait
        self.brokers: dict[int, Broker] = {}
        self.topics: dict[str, str] = {}
        self.partitions: dict[Name, Partition] = {}
        self.deleted: dict[str, int] = {}
        self.metrics: dict[tuple[int, str], Metric] = {}
        self.capacity: dict[tuple[int, str], tuple[int, float]] = {}
        self.waiting: list[Sample] = []
        self.delivered: set[tuple[int, int, int]] = set()

    # -- metadata ----------------------------------------------------------------------------------------

    def delete_topic(self, topic: str, now: int) -> None:
        del self.topics[topic]
        self.deleted[topic] = now
        for name in [n for n in self.partitions if n[0] == topic]:
            del self.partitions[name]
            for (scope, _), metric in self.metrics.items():
                if scope in (LEADER, FOLLOWER):
                    metric.forget(name)

    def remove_broker(self, broker: int) -> None:
        del self.brokers[broker]
        for (scope, _), metric in self.metrics.items():
            if scope == BROKER:
                metric.forget(broker)
        for key in [key for key in self.capacity if key[0] == broker]:
            del self.capacity[key]

    # -- samples -----------------------------------------------------------------------------------------

    def metric(self, scope: int, name: str) -> Metric:
        return self.metrics.setdefault((scope, name), Metric(self.spans, name == "disk"))

    def ingest(
        self, key: tuple[int, int, int], time_ms: int, samples: list[Sample], metrics: set[tuple[int, str]], now: int
    ) -> bool:
        """`metrics` are those the batch has columns of, whatever stands in them."""
        if key in self.delivered:
            return False
        self.delivered.add(key)
        self.settle(now)
        for scope, name in metrics:
            for role in (LEADER, FOLLOWER) if scope == REPLICA else (scope,):
                if role in (LEADER, FOLLOWER):
                    self.metric(role, name).advance(time_ms)
        for sample in samples:
            self.take(sample)
        return True

    def settle(self, now: int) -> None:
        waiting, self.waiting = self.waiting, []
        for sample in waiting:
            self.take(sample)
        self.waiting = [s for s in self.waiting if s.arrived_ms >= now - self.max_wait]

    def take(self, sample: Sample) -> None:
        if sample.broker not in self.brokers:
            self.waiting.append(sample)
        elif sample.scope == CAPACITY:
            known = self.capacity.get((sample.broker, sample.metric))
            if known is None or known[0] <= sample.time_ms:
                self.capacity[sample.broker, sample.metric] = (sample.time_ms, sample.value)
        elif sample.scope == BROKER:
            self.metric(BROKER, sample.metric).add(sample.broker, sample)
        else:
            self.take_replica(sample)

    def take_replica(self, sample: Sample) -> None:
        assert sample.about is not None
        if sample.time_ms - sample.window_ms < self.deleted.get(sample.about[0], -1):
            return
        partition = self.partitions.get(sample.about)
        if partition is None or sample.broker not in partition.replicas:
            self.waiting.append(sample)
            return
        role = sample.scope
        if role == REPLICA:
            role = LEADER if partition.leader == sample.broker else FOLLOWER
        self.metric(role, sample.metric).add(sample.about, sample)

    # -- what a snapshot says ------------------------------------------------------------------------------

    def target(self, name: Name) -> tuple[list[int], int | None]:
        """Replicas and leader when what is in progress is done."""
        p = self.partitions[name]
        kept = [b for b in p.replicas if b not in p.removing]
        leader = p.leader
        if leader is not None and leader in p.removing:
            leader = next((b for b in kept if b in p.isr), kept[0])
        return kept, leader

    def state(self, broker: int, now: int) -> str:
        entry = self.brokers.get(broker)
        if entry is None:
            return "dead"
        if entry.fenced_ms is not None:
            return "dead" if now - entry.fenced_ms > self.dead_after else "excluded"
        return "excluded" if entry.stopping else "active"

    def broker_ids(self) -> list[int]:
        return sorted({*self.brokers, *(b for p in self.partitions.values() for b in p.replicas)})

    def loads(self, horizon: str, now: int) -> tuple[dict[Name, dict[str, Load]], dict[Name, dict[str, Load]]]:
        """Leader and follower loads by topic-partition; absent where nothing is known."""
        oldest = now - self.stale_after
        leading: dict[Name, dict[str, Load]] = {}
        following: dict[Name, dict[str, Load]] = {}
        for name in self.partitions:
            lead, follow = self._of(LEADER, name, horizon, oldest), self._of(FOLLOWER, name, horizon, oldest)
            for resource in ("network_in", "disk"):
                fresher = resource in follow and resource in lead and lead[resource][2] and not follow[resource][2]
                if resource in follow and (resource not in lead or fresher):
                    amount, _, stale = follow[resource]
                    lead[resource] = (amount, True, stale)
                follow.pop(resource, None)
            leading[name], following[name] = lead, follow
        for loads in (leading, following):
            for resource in ("network_out", "consumer_out"):
                self._stand_in(loads, leading, resource)
        consumers_measured = any(key == (LEADER, "consumer_out") for key in self.metrics)
        for name in self.partitions:
            lead, follow = leading[name], following[name]
            followers = len(self.target(name)[0]) - 1
            consumers = lead.pop("consumer_out", None)
            follow.pop("consumer_out", None)
            if "network_out" not in lead and "network_in" in lead and consumers_measured:
                taken, estimated, stale = lead["network_in"]
                if consumers is not None:
                    lead["network_out"] = (consumers[0] + followers * taken, estimated, stale or consumers[2])
                elif followers > 0:
                    lead["network_out"] = (followers * taken, True, stale)
        self._divide_cpu(leading, following, horizon, oldest)
        for loads in (leading, following):
            self._stand_in(loads, leading, "cpu", across=True)
        return leading, following

    def _stand_in(
        self, loads: dict[Name, dict[str, Load]], leading: dict[Name, dict[str, Load]], resource: str, across: bool = False
    ) -> None:
        """What is old while the bytes in are not: as much a byte as fresh partitions of the topic have."""
        fresh = {
            name: (leading[name]["network_in"][0], found[resource][0])
            for name, found in loads.items()
            if resource in found and not found[resource][2] and "network_in" in leading[name] and not leading[name]["network_in"][2]
        }
        for name, found in loads.items():
            taken = leading[name].get("network_in")
            if resource not in found or not found[resource][2] or taken is None or taken[2]:
                continue
            alike = [pair for other, pair in fresh.items() if other[0] == name[0]]
            if not alike and across:
                alike = list(fresh.values())
            produced, there = sum(one for one, _ in alike), sum(other for _, other in alike)
            if alike and produced > 0.0:
                found[resource] = (taken[0] * (there / produced), True, False)
            elif alike and taken[0] == 0.0:
                found[resource] = (there / len(alike), True, False)

    def _of(self, scope: int, name: Name, horizon: str, oldest: int) -> dict[str, Load]:
        found = {}
        for (about, metric), values in self.metrics.items():
            load = values.load(name, horizon, oldest) if about == scope else None
            if load is not None:
                found[metric] = load
        return found

    def _divide_cpu(
        self, leading: dict[Name, dict[str, Load]], following: dict[Name, dict[str, Load]], horizon: str, oldest: int
    ) -> None:
        measured = self.metrics.get((BROKER, "cpu"))
        if measured is None:
            return
        each: dict[int, tuple[float, bool]] = {}
        for broker in self.broker_ids():
            use = measured.load(broker, horizon, oldest) if broker in self.brokers else None
            if use is None:
                continue
            known, handled = 0.0, 0.0
            for name in self.partitions:
                replicas, leader = self.target(name)
                if broker not in replicas:
                    continue
                own = leading[name] if broker == leader else following[name]
                if "cpu" in own:
                    known += own["cpu"][0]
                else:
                    handled += self._handled(leading[name], broker == leader)
            left = max(use[0] - known, 0.0)
            each[broker] = (left / handled if handled > 0.0 else 0.0, use[2])
        for name in self.partitions:
            replicas, leader = self.target(name)
            lead, follow = leading[name], following[name]
            if "network_in" not in lead:
                continue
            taken, _, stale = lead["network_in"]
            if "cpu" not in lead and leader in each:
                share, old = each[leader]
                lead["cpu"] = (share * self._handled(lead, True), True, stale or old)
            others = [each[b] for b in replicas if b != leader and b in each]
            if "cpu" not in follow and others:
                mean = sum(share for share, _ in others) / len(others)
                follow["cpu"] = (mean * taken, True, stale or any(old for _, old in others))

    def _handled(self, lead: dict[str, Load], leads: bool) -> float:
        if "network_in" not in lead:
            return 0.0
        return lead["network_in"][0] + (lead["network_out"][0] if leads and "network_out" in lead else 0.0)
