"""Slow brokers from look to look: one bad look is none, a broker that gave up its load is not well at once, and where all are slow, none
is set apart."""

from __future__ import annotations

from cluster_model.latency import KEPT, SPAN_MS, BrokerLatencies, BrokerLatency
from cluster_model.metadata.events import BrokerRegistered
from cluster_model.model import ClusterModel
from cluster_model.observed import BROKER
from cluster_model.snapshot import BrokerState
from goals.policy import SlowBrokers
from optimizer.detectors.slow import Slow, SlowMemory, set_apart, slow_among, slow_brokers
from tests.unit.cluster_model.batches import NOW, Reports, whole

LOOK = 10_000


class Looks:
    """Four brokers, each look ten seconds after the one before."""

    def __init__(self, rule: SlowBrokers) -> None:
        self.rule, self.at, self.memory = rule, NOW, SlowMemory()
        self.model, self.reports = ClusterModel("c", stale_after_ms=LOOK // 2), Reports()
        for broker in range(1, 5):
            self.model.apply(BrokerRegistered(broker, None), NOW)

    def look(self, **ms: float | None) -> Slow:
        """`b3=4000.0`: broker 3 reports 4 s, None nothing at all; others 10 ms."""
        self.at += LOOK
        for broker in range(1, 5):
            value = ms.get(f"b{broker}", 10.0)
            block = [whole(BROKER, produce_latency_ms=value)] if value is not None else []
            self.model.ingest(self.reports.of(broker, self.at, *block), self.at)
        found = slow_brokers(self.rule, self.model.snapshot(self.at), self.at, self.memory)
        self.memory = found.memory
        return found


def test_it_takes_looks_in_a_row_and_a_second_look_at_the_same_moment_is_none() -> None:
    looks = Looks(SlowBrokers(hits=3))
    assert not looks.look(b3=4000.0).brokers
    assert not looks.look(b3=4000.0).brokers
    again = slow_brokers(looks.rule, looks.model.snapshot(looks.at), looks.at, looks.memory)
    assert not again.brokers
    assert not looks.look().brokers
    assert not looks.look(b3=4000.0).brokers
    looks.look(b3=4000.0)
    found = looks.look(b3=4000.0)
    assert found.ids == (3,)
    assert found.brokers[0].why == "produce requests take 4 s there (99th percentile of its own part); the limit is 1 s"
    assert found.brokers[0].since_ms == looks.at - 2 * LOOK


def test_a_broker_that_serves_no_client_any_more_stays_slow_for_a_while() -> None:
    """Without leaders it reports no latency: it must not get them back at the next look."""
    looks = Looks(SlowBrokers(hits=1, hold=60.0))
    assert looks.look(b3=4000.0).ids == (3,)
    for _ in range(5):
        held = looks.look(b3=None)
        assert held.ids == (3,)
    assert "that was 50 s ago, and it counts as slow for 10 s more" in held.brokers[0].why
    assert not looks.look(b3=None).brokers


def test_where_many_are_slow_the_cluster_is_and_no_broker_is_set_apart() -> None:
    looks = Looks(SlowBrokers(hits=1))
    found = looks.look(b2=4000.0, b3=4000.0)
    assert not found.brokers
    assert found.notes == ("brokers 2, 3 are slow, more than the 1 that policy.slow_brokers.most allows: none is set apart",)
    assert looks.look(b3=4000.0).notes  # broker 2 is held
    one = Looks(SlowBrokers(hits=1, most=0.5))
    assert one.look(b2=4000.0, b3=4000.0).ids == (2, 3)


def test_where_no_other_broker_is_active_none_is_set_apart_and_the_reason_is_that() -> None:
    rule, told = SlowBrokers(hits=1), [BrokerLatency(1, "produce_latency_ms", 4000.0, None, 0)]
    found = slow_among(rule, told, [1], NOW)
    assert not found.brokers
    assert found.notes == ("broker 1 is slow, and no other broker is active: none is set apart",)
    assert slow_among(rule, told, [], NOW).notes == ()


def test_a_slow_broker_is_neither_target_nor_in_the_mean_and_the_snapshot_says_why() -> None:
    looks = Looks(SlowBrokers(hits=1))
    found = looks.look(b3=4000.0)
    snapshot = set_apart(looks.model.snapshot(looks.at), found)
    assert snapshot.broker_states.tolist() == [BrokerState.ACTIVE, BrokerState.ACTIVE, BrokerState.EXCLUDED, BrokerState.ACTIVE]
    assert any(note.startswith("broker 3 is slow and gets no replicas: produce requests take 4 s") for note in snapshot.notes)


def test_what_is_usual_is_known_after_an_hour_and_forgotten_after_a_day() -> None:
    kept = BrokerLatencies()
    at = 0
    for slot in range(6):
        assert kept.of([1], at)[:1] == () or kept.of([1], at)[0].usual is None
        at = slot * SPAN_MS
        kept.add(1, "produce_latency_ms", at, 100.0)
    kept.add(1, "produce_latency_ms", at + SPAN_MS, 900.0)
    (found,) = kept.of([1], at + SPAN_MS + 500)
    assert (found.value, found.usual, found.age_ms) == (900.0, 100.0, 500)
    assert not kept.add(1, "produce_latency_ms", at, 5.0), "too late"
    for slot in range(8, 8 + KEPT + 1):
        kept.add(1, "produce_latency_ms", slot * SPAN_MS, 7.0)
    assert kept.of([1], 0)[0].usual == 7.0
    kept.remove(1)
    assert kept.of([1], 0) == ()
