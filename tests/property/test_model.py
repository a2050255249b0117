"""The live model against an oracle in plain Python, through any interleaving of samples, metadata, time and readers."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cluster_model.loops import ESTIMATED, STALE, UNKNOWN
from cluster_model.metadata.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerStopping,
    BrokerUnfenced,
    Event,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from cluster_model.metadata.image import MetadataImage
from cluster_model.model import ClusterModel
from cluster_model.observed import BROKER, CAPACITY, FOLLOWER, LEADER, REPLICA
from cluster_model.snapshot import BrokerState
from cluster_model.trust import LiveSnapshot
from cluster_model.windows import Horizon, HorizonName
from tests.property.live_oracle import Broker, Oracle, Partition, Sample
from tests.unit.cluster_model.batches import NOW, Batch, Block

BROKERS = st.integers(1, 3)
TOPICS = st.sampled_from(["a", "b"])
NUMBERS = st.integers(0, 1)
METRICS = {
    LEADER: ["network_in", "consumer_out", "cpu", "disk", "network_out"],
    FOLLOWER: ["network_in", "cpu", "disk"],
    REPLICA: ["network_in", "disk"],
    BROKER: ["cpu", "disk"],
    CAPACITY: ["disk"],
}
SHORT, LONG = Horizon(100, 2), Horizon(150, 3)
STALE_AFTER, DEAD_AFTER, MAX_WAIT, MAX_AHEAD = 250, 400, 300, 150


@st.composite
def blocks(draw: st.DrawFn) -> tuple[int, list[str], list[tuple[str, int]], list[list[float]]]:
    """Scope, metrics, topic-partitions, and a column of values for each metric; whole numbers, so that sums are exact."""
    scope = draw(st.sampled_from(list(METRICS)))
    metrics = draw(st.lists(st.sampled_from(METRICS[scope]), min_size=1, max_size=4, unique=True))
    names = [("", 0)]
    if scope in (LEADER, FOLLOWER, REPLICA):
        names = draw(st.lists(st.tuples(TOPICS, NUMBERS), min_size=1, max_size=4, unique=True))
    value = st.one_of(st.integers(0, 60).map(float), st.just(float("nan")))
    columns = [draw(st.lists(value, min_size=len(names), max_size=len(names))) for _ in metrics]
    return scope, metrics, names, columns


class LiveModel(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.now = NOW
        self.model = ClusterModel(
            "c", short=SHORT, long=LONG, stale_after_ms=STALE_AFTER, dead_after_ms=DEAD_AFTER,
            max_ahead_ms=MAX_AHEAD, max_wait_ms=MAX_WAIT,
        )  # fmt: skip
        self.oracle = Oracle(SHORT, LONG, STALE_AFTER, DEAD_AFTER, MAX_WAIT)
        self.kept: list[tuple[LiveSnapshot, dict[str, Any]]] = []
        self.ids = 0
        for broker in (1, 2, 3):
            self.register(broker, None, False)
        self.create("a")
        self.change("a", 0, [1, 2], 1, 0)

    def both(self, event: Event) -> None:
        self.model.apply(event, self.now)

    # -- time and metadata ---------------------------------------------------------------------------------

    @rule(ms=st.one_of(st.integers(1, 60), st.integers(1, 350)))
    def wait(self, ms: int) -> None:
        self.now += ms

    @rule(broker=BROKERS, rack=st.sampled_from([None, "x"]), fenced=st.booleans())
    def register(self, broker: int, rack: str | None, fenced: bool) -> None:
        self.both(BrokerRegistered(broker, rack, fenced))
        old = self.oracle.brokers.get(broker)
        since = old.fenced_ms if old is not None and old.fenced_ms is not None else self.now
        self.oracle.brokers[broker] = Broker(rack, since if fenced else None)

    @precondition(lambda self: self.oracle.brokers)
    @rule(data=st.data(), what=st.sampled_from(["fence", "unfence", "stop", "remove"]))
    def change_broker(self, data: st.DataObject, what: str) -> None:
        broker = data.draw(st.sampled_from(sorted(self.oracle.brokers)))
        entry = self.oracle.brokers[broker]
        if what == "fence":
            self.both(BrokerFenced(broker))
            entry.fenced_ms = self.now if entry.fenced_ms is None else entry.fenced_ms
        elif what == "unfence":
            self.both(BrokerUnfenced(broker))
            entry.fenced_ms = None
        elif what == "stop":
            self.both(BrokerStopping(broker))
            entry.stopping = True
        else:
            self.both(BrokerRemoved(broker))
            self.oracle.remove_broker(broker)

    @rule(topic=TOPICS)
    def create(self, topic: str) -> None:
        """Also where there is one of that name: then with another id."""
        self.ids += 1
        self.both(TopicCreated(topic, str(self.ids)))
        if topic in self.oracle.topics:
            self.oracle.delete_topic(topic, self.now)
        self.oracle.topics[topic] = str(self.ids)

    @precondition(lambda self: self.oracle.topics)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        topic = data.draw(st.sampled_from(sorted(self.oracle.topics)))
        self.both(TopicDeleted(topic))
        self.oracle.delete_topic(topic, self.now)

    @precondition(lambda self: self.oracle.topics)
    @rule(
        data=st.data(), number=NUMBERS, replicas=st.lists(BROKERS, min_size=1, max_size=3, unique=True),
        leader=st.integers(0, 3), moving=st.sampled_from([0, 0, 0, 1, 2]),
    )  # fmt: skip
    def change_partition(self, data: st.DataObject, number: int, replicas: list[int], leader: int, moving: int) -> None:
        topic = data.draw(st.sampled_from(sorted(self.oracle.topics)))
        self.change(topic, number, replicas, leader, moving)

    def change(self, topic: str, number: int, replicas: list[int], leader: int, moving: int) -> None:
        removing = replicas[1:][:moving] if moving < len(replicas) else replicas[: len(replicas) - 1]
        leads = replicas[leader - 1] if 0 < leader <= len(replicas) else None
        isr = [leads] if leads is not None else replicas[-1:]
        self.both(
            PartitionChanged(topic, number, tuple(replicas), tuple(isr), leads, (), tuple(removing))
        )
        self.oracle.partitions[topic, number] = Partition(list(replicas), isr, leads, [], list(removing))

    @rule(dropped=st.lists(TOPICS, max_size=1), broker=BROKERS)
    def load_a_checkpoint(self, dropped: list[str], broker: int) -> None:
        """The same metadata less a topic and a broker; slots come in another order."""
        image = MetadataImage()
        brokers = {b: e for b, e in self.oracle.brokers.items() if b != broker or len(self.oracle.brokers) == 1}
        for id, entry in brokers.items():
            image.apply(BrokerRegistered(id, entry.rack, entry.fenced_ms is not None, entry.stopping), self.now)
        for topic in sorted(self.oracle.topics, reverse=True):
            if topic not in dropped:
                image.apply(TopicCreated(topic, self.oracle.topics[topic]), self.now)
        for (topic, number), p in sorted(self.oracle.partitions.items(), reverse=True):
            if topic not in dropped:
                parts = tuple(p.replicas), tuple(p.isr), p.leader, (), tuple(p.removing)
                image.apply(PartitionChanged(topic, number, *parts), self.now)
        self.model.replace(image, self.now)
        for topic in set(dropped) & set(self.oracle.topics):
            self.oracle.delete_topic(topic, self.now)
        for id in [b for b in self.oracle.brokers if b not in brokers]:
            self.oracle.remove_broker(id)

    # -- samples -------------------------------------------------------------------------------------------

    @rule(
        broker=BROKERS,
        ago=st.one_of(st.just(0), st.integers(0, 100), st.integers(-MAX_AHEAD, 700)),
        window=st.integers(0, 120),
        sequence=st.integers(0, 80),
        incarnation=st.integers(1, 2),
        given=st.lists(blocks(), min_size=1, max_size=3),
    )
    def report(
        self, broker: int, ago: int, window: int, sequence: int, incarnation: int,
        given: list[tuple[int, list[str], list[tuple[str, int]], list[list[float]]]],
    ) -> None:  # fmt: skip
        """Now, late, out of order, ahead, or a sequence that came before."""
        time_ms = self.now - ago
        topics = ("a", "b")
        made, samples, metrics = [], [], set()
        for scope, names, partitions, columns in given:
            of_broker = scope in (BROKER, CAPACITY)
            rows = [] if of_broker else partitions
            topic = np.array([topics.index(t) for t, _ in rows], dtype=np.int32)
            number = np.array([n for _, n in rows], dtype=np.int32)
            made.append(Block(scope, tuple(names), topic, number, np.array(columns)))
            for metric, column in zip(names, columns, strict=True):
                metrics.add((scope, metric))
                for about, value in zip([None] if of_broker else partitions, column, strict=True):
                    if value == value:
                        samples.append(Sample(broker, time_ms, window, self.now, scope, about, metric, value))
        batch = Batch(broker, time_ms, sequence, topics, tuple(made), window, incarnation)
        taken = self.model.ingest(batch, self.now)
        assert taken == self.oracle.ingest((broker, incarnation, sequence), time_ms, samples, metrics, self.now)

    # -- readers -------------------------------------------------------------------------------------------

    @rule(horizon=st.sampled_from(["short", "long"]))
    def keep_a_snapshot(self, horizon: HorizonName) -> None:
        snapshot = self.model.snapshot(self.now, horizon=horizon)
        self.oracle.settle(self.now)
        self.kept.append((snapshot, copy.deepcopy(picture(snapshot))))

    @invariant()
    def equals_the_oracle(self) -> None:
        if not hasattr(self, "model"):
            return
        self.oracle.settle(self.now)
        horizons: tuple[HorizonName, ...] = ("short", "long")
        for horizon in horizons:
            snapshot = self.model.snapshot(self.now, horizon=horizon)
            same(picture(snapshot), self.expected(horizon))
        assert self.model.state().partitions == len(self.oracle.partitions)

    def expected(self, horizon: str) -> dict[str, Any]:
        oracle, now = self.oracle, self.now
        leading, following = oracle.loads(horizon, now)
        capacity = {b: oracle.capacity[b, "disk"][1] for b in oracle.broker_ids() if (b, "disk") in oracle.capacity}
        targets = {name: oracle.target(name) for name in sorted(oracle.partitions)}
        return {
            "brokers": {
                b: (oracle.state(b, now), oracle.brokers[b].rack if b in oracle.brokers else None)
                for b in oracle.broker_ids()
            },
            "capacity": capacity,
            "replicas": {name: replicas for name, (replicas, _) in targets.items()},
            "leader": {name: leader for name, (_, leader) in targets.items()},
            "leader_load": leading,
            "follower_load": following,
        }

    def teardown(self) -> None:
        for snapshot, before in getattr(self, "kept", []):
            same(picture(snapshot), before)


def picture(snapshot: LiveSnapshot) -> dict[str, Any]:
    """What a snapshot says, in plain values."""
    ids = snapshot.broker_ids.tolist()
    names = [
        (snapshot.topics[t], n)
        for t, n in zip(snapshot.partition_topic.tolist(), snapshot.partition_number.tolist(), strict=True)
    ]
    assert names == sorted(names)
    disk = snapshot.capacity.get("disk", np.full(len(ids), np.nan))
    own = [r for r in snapshot.follower_load if r not in ("network_in", "disk")]
    for resource in set(snapshot.follower_load) & {"network_in", "disk"}:
        assert np.array_equal(snapshot.follower_load[resource], snapshot.leader_load[resource], equal_nan=True)
    assert set(snapshot.has_follower_load.tolist()) <= {bool(snapshot.follower_load)}
    return {
        "brokers": {
            b: (BrokerState(state).label, rack)
            for b, state, rack in zip(ids, snapshot.broker_states.tolist(), snapshot.racks, strict=True)
        },
        "capacity": {b: float(v) for b, v in zip(ids, disk, strict=True) if v == v},
        "replicas": {n: [ids[r] for r in row if r >= 0] for n, row in zip(names, snapshot.replicas.tolist(), strict=True)},
        "leader": {n: ids[r] if r >= 0 else None for n, r in zip(names, snapshot.leader.tolist(), strict=True)},
        "leader_load": loads(names, snapshot.leader_load, snapshot.trust.leader, list(snapshot.leader_load)),
        "follower_load": loads(names, snapshot.follower_load, snapshot.trust.follower, own),
    }


def loads(names: list[tuple[str, int]], values: Any, flags: Any, resources: list[str]) -> dict[tuple[str, int], Any]:
    found: dict[tuple[str, int], dict[str, tuple[float, bool, bool]]] = {name: {} for name in names}
    for resource in resources:
        for name, value, said in zip(names, values[resource].tolist(), flags[resource].tolist(), strict=True):
            assert (value != value) == bool(said & UNKNOWN) == (said == UNKNOWN)
            if value == value:
                found[name][resource] = (value, bool(said & ESTIMATED), bool(said & STALE))
    return found


def same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Equal, amounts within rounding."""
    assert {k: v for k, v in found.items() if "load" not in k} == {k: v for k, v in wanted.items() if "load" not in k}
    for table in ("leader_load", "follower_load"):
        assert found[table].keys() == wanted[table].keys()
        for name, of in wanted[table].items():
            mine = found[table][name]
            assert {r: said for r, (_, *said) in mine.items()} == {r: said for r, (_, *said) in of.items()}, name
            for resource, (amount, *_) in of.items():
                assert mine[resource][0] == pytest.approx(amount, rel=1e-5, abs=1e-4), (name, resource)


TestLiveModel = LiveModel.TestCase
TestLiveModel.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)
