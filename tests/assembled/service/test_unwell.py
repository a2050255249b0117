"""How well the cluster is, and what balance waits for: a rolling upgrade must move no byte, and a lost broker must not be overlooked."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from pydantic import ValidationError

from cluster_model.metadata.events import (
    BrokerFenced,
    BrokerRegistered,
    BrokerRemoved,
    BrokerStopping,
    BrokerUnfenced,
    Event,
    PartitionChanged,
    TopicCreated,
)
from cluster_model.metadata.image import MetadataImage
from goals.model import Constraints
from goals.waiting import Wait, quiet_hours
from trimtab.service.health import Condition, HealthWatch, health_of
from trimtab.service.unwell import astray, sentence, waits

DEAD_AFTER = 300_000
T0 = 1_790_000_000_000  # a Monday, 14:13:20 UTC


class Cluster:
    """Three brokers, six partitions of two replicas, each broker preferred for two."""

    def __init__(self) -> None:
        self.image, self.now = MetadataImage(), T0
        self.watch = HealthWatch(DEAD_AFTER, every_ms=0)
        self.lists: dict[int, tuple[int, ...]] = {n: (1 + n % 3, 1 + (n + 1) % 3) for n in range(6)}
        self.tell(*(BrokerRegistered(b, None) for b in (1, 2, 3)), TopicCreated("orders", "id"))
        self.tell(*(self.partition(n) for n in self.lists))

    def partition(
        self, n: int, isr: Iterable[int] | None = None, leader: int | None = -1, adding: tuple[int, ...] = (),
        removing: tuple[int, ...] = (),
    ) -> PartitionChanged:  # fmt: skip
        hosts = self.lists[n]
        synced = hosts if isr is None else tuple(isr)
        return PartitionChanged("orders", n, hosts, synced, hosts[0] if leader == -1 else leader, adding, removing)

    def tell(self, *events: Event) -> Condition:
        for event in events:
            self.image.apply(event, self.now)
        self.watch.look(self.image, bool(events), self.now)
        return self.watch.condition

    def after(self, seconds: float, *events: Event) -> Condition:
        self.now += round(1000 * seconds)
        return self.tell(*events)

    def lose(self, broker: int) -> Condition:
        """Fenced, with what the controller does about it."""
        hit = [n for n, hosts in self.lists.items() if broker in hosts]
        return self.after(
            2, BrokerFenced(broker),
            *(self.partition(n, [b for b in self.lists[n] if b != broker], next(b for b in self.lists[n] if b != broker)) for n in hit),
        )  # fmt: skip

    def waits(self, **policy: object) -> list[str]:
        return [w.kind for w in waits(self.watch.condition, Wait.model_validate(policy), self.now, DEAD_AFTER)]

    def says(self, **policy: object) -> str:
        return sentence(waits(self.watch.condition, Wait.model_validate(policy), self.now, DEAD_AFTER))


def test_a_cluster_that_is_well() -> None:
    cluster = Cluster()
    health = cluster.watch.condition.health
    assert (health.partitions, health.offline, health.under_replicated, health.reassigning, health.astray) == (6, 0, 0, 0, ())
    assert [(b.id, b.life, b.replicas, b.preferred) for b in health.brokers] == [(b, "serving", 4, 2) for b in (1, 2, 3)]
    assert cluster.says() == ""


def test_a_restart_from_the_shutdown_until_loads_have_settled() -> None:
    cluster = Cluster()
    cluster.after(5, BrokerStopping(3))
    assert cluster.says() == "Balance waits: broker 3 is shutting down."
    cluster.lose(3)
    cluster.after(40)
    assert cluster.says() == (
        "Balance waits: broker 3 has been down for 42 s and probably restarts; it counts as lost, and its replicas are planned away, "
        "once it is down for 5 min; 4 partitions are under-replicated for 40 s (replicas out of sync: 4 on broker 3, which is fenced)."
    )
    cluster.after(10, BrokerUnfenced(3), BrokerRegistered(3, None))
    assert "broker 3 came back and catches up: 4 of its replicas are not in sync" in cluster.says()
    cluster.after(20, *(cluster.partition(n, leader=next(b for b in h if b != 3)) for n, h in cluster.lists.items() if 3 in h))
    assert cluster.waits() == ["settling", "leaders"]
    assert "broker 3 is back and in sync since 14:14:37 UTC, and loads settle for 5 min more" in cluster.says()
    assert "4 partitions are not led" not in cluster.says()
    assert "2 partitions are not led by the preferred leader, though it is in sync. The first thing to do, which copies nothing: kaf" in (
        cluster.says()
    )
    cluster.after(30, *(cluster.partition(n) for n in cluster.lists))
    assert cluster.waits() == ["settling"]
    assert cluster.waits(settle=0) == []
    cluster.after(270)
    assert cluster.waits() == []


def test_leaders_that_nothing_restores_come_before_moves_and_stop_nothing_for_ever() -> None:
    cluster = Cluster()
    policy = Wait(leaders=60)
    cluster.after(2, cluster.partition(0, leader=2))
    assert cluster.waits(leaders=60) == ["leaders"]
    cluster.after(61)
    assert cluster.waits(leaders=60) == []
    assert astray(cluster.watch.condition, policy)
    assert not astray(cluster.watch.condition, Wait(leaders=0))
    cluster.after(5, cluster.partition(0))
    assert not astray(cluster.watch.condition, policy)


def test_leaders_of_topics_that_goals_hold_fast_are_counted_and_not_waited_for() -> None:
    cluster = Cluster()
    found = cluster.after(2, TopicCreated("__own", "id2"), cluster.partition(0, leader=2), PartitionChanged("__own", 0, (1, 2), (1, 2), 2))
    assert (found.health.not_preferred, found.health.astray, [b.astray for b in found.health.brokers]) == (
        2, (("orders", 0), ("__own", 0)), [2, 0, 0],
    )  # fmt: skip
    bound = [Constraints(exclude_topics=("__*",))]
    cluster.watch = HealthWatch(DEAD_AFTER, every_ms=0, constraints=lambda: bound[-1])
    found = cluster.tell()
    assert (found.health.not_preferred, found.health.astray, [b.astray for b in found.health.brokers]) == (2, (("orders", 0),), [1, 0, 0])
    bound.append(Constraints(exclude_topics=("__*",), freeze_topics=("orders",)))
    cluster.now += 1
    found = cluster.tell()
    assert (found.health.not_preferred, found.health.astray, cluster.waits()) == (2, (), [])
    assert set(found.since) == {"not_preferred"}


def test_a_leader_that_cannot_lead_is_not_astray() -> None:
    cluster = Cluster()
    health = cluster.after(2, cluster.partition(0, isr=(2,), leader=2)).health
    assert (health.astray, health.under_replicated, health.last_copy) == ((), 1, 1)
    assert cluster.lose(1).health.astray == ()


def test_own_and_foreign_reassignments_are_no_under_replication() -> None:
    cluster = Cluster()
    cluster.lists[0] = (1, 2, 3)
    health = cluster.after(2, cluster.partition(0, isr=(1, 2), adding=(3,), removing=(2,))).health
    assert (health.under_replicated, health.reassigning) == (0, 1)
    assert cluster.says() == "Balance waits: 1 reassignment is in progress that this service did not start."
    assert cluster.waits(foreign=False) == []
    health = cluster.after(2, cluster.partition(0, isr=(1,), adding=(3,), removing=())).health
    assert health.under_replicated == 1, "2 is to stay and is out of sync"


def test_a_lost_broker_is_no_restart_and_what_it_held_is_told() -> None:
    cluster = Cluster()
    cluster.lose(3)
    health = cluster.after(DEAD_AFTER / 1000 + 1).health
    assert [b.id for b in health.living("dead")] == [3]
    assert cluster.waits() == ["under_replicated"]
    assert cluster.waits(under_replicated=4) == []
    assert cluster.waits(under_replicated=None) == []
    health = cluster.after(1, BrokerRemoved(3)).health
    assert [(b.id, b.replicas) for b in health.living("unregistered")] == [(3, 4)]
    assert "4 on broker 3, which is not registered" in cluster.says()


def test_partitions_without_a_leader_are_offline_and_named() -> None:
    cluster = Cluster()
    health = cluster.after(2, cluster.partition(4, isr=(2,), leader=None)).health
    assert (health.offline, health.examples) == (1, ("orders-4",))
    assert cluster.watch.condition.since["offline"] == cluster.now
    cluster.after(9)
    assert cluster.watch.condition.since["offline"] == cluster.now - 9000
    assert "offline" not in cluster.after(2, cluster.partition(4)).since


def test_a_broker_that_comes_for_the_first_time_has_nothing_to_settle() -> None:
    cluster = Cluster()
    cluster.after(2, BrokerRegistered(4, None))
    assert cluster.waits() == []


def test_a_cluster_that_changes_all_the_time_is_looked_at_once_a_second_and_brokers_at_once() -> None:
    cluster = Cluster()
    watch = HealthWatch(DEAD_AFTER)
    assert watch.look(cluster.image, True, cluster.now)
    assert not watch.look(cluster.image, True, cluster.now + 900)
    assert watch.look(cluster.image, False, cluster.now + 1000), "what was put off is looked at"
    assert not watch.look(cluster.image, False, cluster.now + 5000)
    cluster.image.apply(BrokerFenced(2), cluster.now + 5000)
    assert watch.look(cluster.image, True, cluster.now + 5001)
    assert watch.condition.health.living("fenced")
    assert watch.look(cluster.image, False, cluster.now + 5001 + DEAD_AFTER), "time alone makes it dead"


def test_an_empty_cluster() -> None:
    assert health_of(MetadataImage(), T0, DEAD_AFTER).partitions == 0


@pytest.mark.parametrize(
    ("hours", "at", "until"),
    [
        ("08:00-18:00", "2026-09-21T14:13:20", "2026-09-21T18:00:00"),
        ("08:00-14:00", "2026-09-21T14:13:20", None),
        ("00:00-24:00", "2026-09-21T14:13:20", "2026-09-22T00:00:00"),
        ("22:00-06:00", "2026-09-21T23:00:00", "2026-09-22T06:00:00"),
        ("22:00-06:00", "2026-09-22T05:59:00", "2026-09-22T06:00:00"),
        ("22:00-06:00", "2026-09-22T06:00:00", None),
        ("sat-sun 00:00-24:00", "2026-09-21T14:13:20", None),
        ("fri-mon 00:00-24:00", "2026-09-21T14:13:20", "2026-09-22T00:00:00"),
        ("sun 22:00-06:00", "2026-09-21T05:00:00", "2026-09-21T06:00:00"),
        ("sun 22:00-06:00", "2026-09-21T23:00:00", None),
        ("mon-fri 16:00-17:00 Europe/Berlin", "2026-09-21T14:13:20", "2026-09-21T15:00:00"),
    ],
)
def test_quiet_hours(hours: str, at: str, until: str | None) -> None:
    from datetime import UTC, datetime

    def ms(text: str) -> int:
        return round(1000 * datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())

    assert quiet_hours(hours).until(ms(at)) == (None if until is None else ms(until))


@pytest.mark.parametrize("hours", ["8-18", "25:00-26:00", "08:70-09:00", "mo 08:00-09:00", "08:00-09:00 Mars/Base", "mon-xyz 08:00-09:00"])
def test_wrong_quiet_hours_are_refused(hours: str) -> None:
    with pytest.raises(ValidationError):
        Wait(quiet_hours=[hours])


def test_quiet_hours_hold_balance_back_and_say_until_when() -> None:
    cluster = Cluster()
    assert cluster.says(quiet_hours=["14:00-15:00"]) == "Balance waits: these are quiet hours (14:00-15:00), until 15:00:00 UTC."
