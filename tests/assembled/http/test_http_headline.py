"""The cluster comes before balance: what an operator sees first when a broker is dead, and what would help."""

from __future__ import annotations

from typing import Any

from tests.service_face import NOW, small
from trimtab.http.glance import GlanceView, glance
from trimtab.service.views import ClusterView, DownView

MINUTE = 60_000
AT = "2026-09-21 14:13:20 UTC"  # is NOW


def down(broker: int, life: str, lacking: int = 0, replicas: int = 40, since_ms: int | None = NOW) -> DownView:
    return DownView(id=broker, life=life, since_ms=since_ms, replicas=replicas, lacking=lacking)


def seen(*brokers: DownView, known: bool = True, state: dict[str, Any] | None = None, **cluster: Any) -> GlanceView:
    view = ClusterView(known=known, partitions=114, down=brokers, **cluster)
    face = small()
    plan = None if face.now.plan is None else face.now.plan.model_copy(update={"left_out": 0})
    goals = tuple(g.model_copy(update={"hard": False}) for g in face.now.goals)
    return glance(face.now.model_copy(update={"cluster": view, "plan": plan, "goals": goals, **(state or {})}))


def test_a_dead_broker_is_the_headline_and_balance_comes_second() -> None:
    found = seen(
        down(4, "unregistered", lacking=61, replicas=61), offline=3, under_replicated=58, last_copy=2,
        examples=("audit-0", "audit-1", "flows-7", "flows-8"), since_ms={"offline": NOW, "under_replicated": NOW},
    )  # fmt: skip
    assert (found.tone, found.label) == ("bad", "Partitions offline")
    assert found.sentence == "Broker 4 is dead and not registered; 3 partitions are offline, 58 under-replicated."
    assert found.facts == (
        f"Broker 4: unregistered since {AT}, 61 of its 61 replicas out of sync.",
        f"Offline: 3 of 114 partitions since {AT} (audit-0, audit-1, flows-7).",
        f"Under-replicated: 58 of 114 partitions since {AT}, 2 of them down to one in-sync replica.",
    )
    assert found.help == "Start broker 4 again. Where that cannot be, a plan of repairs puts its replicas elsewhere."
    assert found.balance.startswith("Unbalanced: All 12 brokers are outside their target range; a plan of ")
    assert found.remainder == "This instance decides: its node 3 is the active controller."


def test_partitions_under_min_isr_are_told_before_those_that_are_merely_under_replicated() -> None:
    found = seen(under_min_isr=4, under_replicated=61, examples=("audit-0", "audit-1"), since_ms={"under_min_isr": NOW})
    assert (found.tone, found.label) == ("bad", "Under min ISR")
    assert found.sentence == "4 partitions are under min ISR, 61 under-replicated."
    assert found.facts[0] == (
        f"Under min ISR: 4 of 114 partitions since {AT} (audit-0, audit-1, …); producers with acks=all are refused there."
    )
    assert found.facts[1] == "Under-replicated: 61 of 114 partitions."
    assert found.help.startswith("See that the brokers with replicas out of sync keep up")
    assert seen(down(4, "catching up", 9), under_min_isr=4, under_replicated=9).help.startswith("See that"), "writes are refused meanwhile"
    assert seen(under_replicated=9, min_isr_unread=2).facts[-1] == (
        "min.insync.replicas of 2 topics with replicas out of sync is not known."
    )


def test_a_plan_of_repairs_is_pointed_at() -> None:
    plan = small().now.plan
    assert plan is not None
    repairs = {"plan": plan.model_copy(update={"is_balance": False, "left_out": 2})}
    found = seen(down(4, "dead", 61), state=repairs)
    assert found.help == "Start broker 4 again, or approve the plan below, which puts its replicas elsewhere."
    assert seen(down(4, "dead"), down(5, "dead"), state={**repairs, "mode": "dry-run"}).help == (
        "Start brokers 4 and 5 again, or apply the plan below, which puts their replicas elsewhere."
    )
    assert "would repair what is lost (dry run" in seen(down(4, "dead"), state={**repairs, "mode": "dry-run"}).balance
    running = {"plan": plan.model_copy(update={"state": "running"})}
    assert seen(down(4, "dead"), state=running).help == "A plan is being carried out; broker 4 may still be started again."


def test_a_restart_is_told_and_is_no_alarm() -> None:
    found = seen(down(4, "fenced", 61), under_replicated=61, examples=("audit-0",), since_ms={"under_replicated": NOW})
    assert (found.tone, found.label) == ("some", "Cluster unwell")
    assert found.sentence == "Broker 4 is down, probably restarting; 61 partitions are under-replicated."
    assert found.facts[1] == f"Under-replicated: 61 of 114 partitions since {AT} (audit-0, …)."
    assert found.help.startswith("Start it again if this is no planned restart.")
    assert seen(down(4, "stopping")).sentence == "Broker 4 is shutting down."
    back = seen(down(4, "settling"))
    assert (back.tone, back.label, back.sentence) == ("some", "Settling", "Broker 4 is back, and loads settle.")
    assert seen(down(4, "catching up", 9)).help.startswith("Nothing needs to be done")


def test_what_is_worse_in_the_service_colours_it_too() -> None:
    found = seen(down(4, "fenced"), state={"healthy": False, "why_unhealthy": ("the planner died",)})
    assert (found.tone, found.label) == ("bad", "Cluster unwell")
    assert found.balance == "Not healthy: The planner died."


def test_silent_reporters_are_named() -> None:
    brokers = small().now.brokers
    mute = tuple(b.model_copy(update={"voice": "silent"}) if b.id == 7 else b for b in brokers)
    found = seen(state={"brokers": mute})
    assert (found.tone, found.label) == ("some", "Reporters silent")
    assert found.sentence == "The reporter of broker 7 is not heard."
    assert found.help.startswith("Start the reporter again")


def test_a_cluster_that_is_well_or_unknown_leaves_the_word_to_balance() -> None:
    assert seen().label == "Unbalanced"
    assert seen(reassigning=4, not_preferred=3).balance == ""
    assert seen(down(4, "dead"), known=False).balance == ""


def test_a_plan_says_how_many_brokers_it_brings_into_range() -> None:
    plan = small().now.plan
    assert plan is not None

    def said(left: int | None) -> str:
        return seen(state={"mode": "dry-run", "plan": plan.model_copy(update={"left_out": left})}).sentence

    assert "would bring all of them into their target range (dry run" in said(0)
    assert "would bring 9 of 12 into their target range (dry run" in said(3)
    assert "would make it better, and leave 12 brokers outside a target range (dry run" in said(12)
    assert "would make it better (dry run" in said(None)
