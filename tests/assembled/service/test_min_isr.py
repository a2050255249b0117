"""Partitions under min ISR refuse writes: an operator must hear of them before producers complain, and never of ones that are none."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from cluster_model.errors import ExternalError
from cluster_model.metadata.events import BrokerRegistered, Event, PartitionChanged, TopicCreated
from cluster_model.metadata.image import MetadataImage
from metrics_reporter.reporter import Clock
from tests.assembled.service.beside import LEVEL, Service, World
from trimtab.http.glance import glance
from trimtab.service.health import HealthWatch, health_of
from trimtab.service.min_isr import KEPT_MS, MOST_AT_ONCE, MinIsr

NOW, DEAD_AFTER = 1_790_000_000_000, 300_000


def image(*partitions: PartitionChanged) -> MetadataImage:
    found = MetadataImage()
    topics = dict.fromkeys(p.topic for p in partitions)
    events: list[Event] = [BrokerRegistered(b, None) for b in (1, 2, 3)]
    for event in (*events, *(TopicCreated(t, t) for t in topics), *partitions):
        found.apply(event, NOW)
    return found


def test_a_partition_is_under_min_isr_where_fewer_replicas_are_in_sync_than_its_topic_asks_for() -> None:
    cluster = image(
        PartitionChanged("a", 0, (1, 2, 3), (1, 2), 1), PartitionChanged("a", 1, (1, 2, 3), (1,), 1),
        PartitionChanged("b", 0, (1, 2, 3), (1,), 1), PartitionChanged("c", 0, (1, 2, 3), (1, 2, 3), 1),
    )  # fmt: skip
    found = health_of(cluster, NOW, DEAD_AFTER, {"a": 2, "b": 1, "c": 3})
    assert (found.under_replicated, found.under_min_isr, found.unread, found.short_topics) == (3, 1, 0, ("a", "b"))
    assert found.examples[0] == "a-1", "the worst is named first"


def test_a_topic_that_asks_for_more_replicas_than_it_has_is_well_while_all_are_in_sync() -> None:
    cluster = image(PartitionChanged("a", 0, (1,), (1,), 1), PartitionChanged("a", 1, (1, 2), (1,), 1))
    assert health_of(cluster, NOW, DEAD_AFTER, {"a": 3}).under_min_isr == 1


def test_what_is_not_known_is_counted_apart() -> None:
    cluster = image(PartitionChanged("a", 0, (1, 2), (1,), 1), PartitionChanged("b", 0, (1, 2), (1,), 1))
    found = health_of(cluster, NOW, DEAD_AFTER, {"a": 2})
    assert (found.under_min_isr, found.unread) == (1, 1)


def test_a_value_that_is_learned_is_looked_at_without_other_news() -> None:
    known: list[dict[str, int]] = [{}]
    watch, cluster = HealthWatch(DEAD_AFTER, min_isr=lambda: known[-1]), image(PartitionChanged("a", 0, (1, 2), (1,), 1))
    watch.look(cluster, True, NOW)
    assert not watch.look(cluster, False, NOW + 5000)
    known.append({"a": 2})
    assert watch.look(cluster, False, NOW + 6000)
    assert (watch.condition.health.under_min_isr, watch.condition.since["under_min_isr"]) == (1, NOW + 6000)


class Asked:
    """A cluster that is asked for configurations."""

    def __init__(self, values: dict[str, int]) -> None:
        self.values, self.now = values, NOW
        self.calls: list[list[str]] = []
        self.wanted: tuple[str, ...] = ()
        self.news = 0
        self.part = MinIsr(self.answer, lambda: self.wanted, Clock(lambda: self.now / 1000, lambda: self.now), self.learned)

    def answer(self, topics: Collection[str]) -> dict[str, int]:
        self.calls.append(sorted(topics))
        return {t: self.values[t] for t in topics if t in self.values}

    def learned(self) -> None:
        self.news += 1


def test_only_topics_out_of_sync_are_asked_for_and_again_after_a_minute() -> None:
    asked = Asked({"a": 2, "b": 1})
    asked.part.turn()
    assert asked.calls == [], "a cluster that is well is left in peace"
    asked.wanted = ("a",)
    asked.part.turn()
    asked.part.turn()
    assert (asked.calls, asked.part.known, asked.news) == ([["a"]], {"a": 2}, 1)
    asked.wanted = ("a", "b")
    asked.now += KEPT_MS - 1
    asked.part.turn()
    assert asked.calls[1:] == [["b"]]
    asked.values["a"] = 1
    asked.now += 1
    asked.part.turn()
    assert (asked.calls[2:], asked.part.known) == ([["a"]], {"a": 1, "b": 1})
    asked.wanted = ()
    asked.part.turn()
    assert asked.part.known == {}


def test_thousands_of_topics_are_asked_for_in_parts() -> None:
    names = tuple(f"t{n:05}" for n in range(MOST_AT_ONCE + 1))
    asked = Asked(dict.fromkeys(names, 2))
    asked.wanted = names
    asked.part.turn()
    assert [len(call) for call in asked.calls] == [MOST_AT_ONCE, 1]


def test_a_topic_that_may_not_be_described_is_told_and_keeps_no_other_from_being_known() -> None:
    asked = Asked({"b": 2})
    asked.wanted = ("a", "b", "c")
    with pytest.raises(ExternalError, match=r"min\.insync\.replicas of a and 1 more topics cannot be read.* DescribeConfigs") as refused:
        asked.part.turn()
    assert refused.value.retriable, "the service itself is well"
    assert asked.part.known == {"b": 2}


def test_a_restart_that_leaves_too_few_in_sync_is_the_headline_of_a_running_service(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.cluster.min_isr["orders"] = 2
    service = Service(world, goals=LEVEL)
    assert service.run(40).cluster.under_min_isr == 0
    world.cluster.faults.kill(2)
    state = service.run(20)
    assert (state.cluster.under_replicated, state.cluster.under_min_isr, state.cluster.min_isr_unread) == (12, 12, 0)
    assert "12 partitions are under-replicated, 12 under min ISR, for" in " ".join(state.why_nothing)
    shown = glance(state)
    assert (shown.tone, shown.label) == ("bad", "Under min ISR")
    world.cluster.faults.restart(2)
    state = service.run(60)
    assert (state.cluster.under_min_isr, "under_min_isr" in state.cluster.since_ms) == (0, False)
    service.stop()


def test_a_service_that_may_not_read_it_says_so_and_is_healthy(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.hidden = {"orders"}
    service = Service(world, goals=LEVEL)
    service.run(40)
    world.cluster.faults.kill(2)
    state = service.run(20)
    assert (state.cluster.under_min_isr, state.cluster.min_isr_unread, state.healthy) == (0, 1, True)
    assert "min.insync.replicas of 1 topic with replicas out of sync is not known." in glance(state).facts
    assert {w.name: w.error for w in state.workers}["min-isr"] is not None
    service.stop()
