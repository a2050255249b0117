"""The sentence at the top of the page: the most important thing, in words that an operator can act on."""

from __future__ import annotations

import pytest

from tests.service_face import FakeFace, large, small
from trimtab.http.glance import glance
from trimtab.service.views import StateView


def level() -> FakeFace:
    face = small()
    brokers = tuple(b.model_copy(update={"violates": ()}) for b in face.now.brokers)
    goals = tuple(g.model_copy(update={"violations": 0}) for g in face.now.goals)
    face.now = face.now.model_copy(update={"brokers": brokers, "goals": goals, "plan": None})
    return face


def said(state: StateView, **changes: object) -> tuple[str, str, str]:
    found = glance(state.model_copy(update=changes))
    return found.tone, found.label, found.sentence


def test_what_is_broken_comes_before_all_else() -> None:
    state = small().now
    assert said(state, healthy=False, why_unhealthy=("the planner died",), ready=False) == ("bad", "Not healthy", "The planner died.")
    assert said(state, ready=False, why_not_ready=("No samples for 10 s.",)) == ("plain", "Not ready", "No samples for 10 s.")
    assert said(state, ready=False, why_not_ready=("Does it run?",))[2] == "Does it run?"
    assert said(state, ready=False)[2] == "Not enough is known to decide."
    assert said(state, goals=())[1] == "Nothing to judge"


def test_a_cluster_that_has_not_answered_yet_is_not_one_without_a_controller() -> None:
    """With `leader: always` the page looked for a controller for half a minute, while Kafka was away."""
    state = small().now
    silent = state.leadership.model_copy(update={"leads": False, "controller": None, "checked_ms": None})
    found = glance(state.model_copy(update={"ready": False, "leadership": silent}))
    assert found.remainder == "The cluster has not answered yet, so this instance decides nothing."


def test_level() -> None:
    assert said(level().now) == ("good", "Level", "All 12 brokers are within their target range.")


def test_brokers_that_are_to_hold_nothing_and_do() -> None:
    first, second, *others = level().now.brokers
    drained = first.model_copy(update={"state": "draining", "loads": {"replicas": 38.0}})
    gone = second.model_copy(update={"state": "dead", "loads": {"replicas": 0.0}})
    now = level().now
    assert said(now, brokers=(drained, gone, *others)) == (
        "some", "Not empty", f"38 replicas are still on broker {first.id}, which is draining."
    )  # fmt: skip
    empty = drained.model_copy(update={"loads": {"replicas": 0.0}})
    assert said(now, brokers=(empty, gone, *others)) == ("good", "Level", "All 10 brokers are within their target range.")
    dead = gone.model_copy(update={"loads": {"replicas": 1.0}})
    assert said(now, brokers=(drained, dead, *others))[2] == (
        f"39 replicas are still on brokers {first.id}, which is draining and {second.id}, which is dead."
    )


def test_who_is_out() -> None:
    face = level()
    brokers = list(face.now.brokers)
    brokers[2] = brokers[2].model_copy(update={"violates": ("cpu",)})
    sentence = f"1 of 12 brokers is outside its target range ({brokers[2].id})."
    assert said(face.now, brokers=tuple(brokers)) == ("some", "Unbalanced", sentence)
    assert " of 1,000 brokers are outside their target range (" in said(large().now)[2]


@pytest.mark.parametrize(
    ("mode", "fields", "words"),
    [
        ("approve", {}, "waits for approval."),
        ("dry-run", {}, "would make it better (dry run: it is not carried out)."),
        ("auto", {"state": "running", "progress": 0.4}, "is running, 40% done."),
        ("auto", {"state": "approved"}, "is approved and about to start."),
        ("auto", {"state": "failed", "note": "Broker 3 went."}, "has failed: Broker 3 went."),
    ],
)
def test_what_becomes_of_the_plan(mode: str, fields: dict[str, object], words: str) -> None:
    state = small().now
    assert state.plan is not None
    assert said(state, mode=mode, plan=state.plan.model_copy(update=fields))[2].endswith(words)


@pytest.mark.parametrize("mode", ["approve", "auto"])
def test_a_plan_that_nothing_can_carry_out_waits_for_no_approval(mode: str) -> None:
    """An operator would look for the person who has to approve, while nothing can ever come of it."""
    sentence = said(small().now, mode=mode, has_executor=False)[2]
    assert "waits for approval" not in sentence
    assert sentence.endswith("cannot be carried out: there is no executor for this cluster; apply it with Kafka's own tools.")


def test_who_decides() -> None:
    state = small().now
    it = state.leadership
    assert glance(state).remainder == "This instance decides: its node 3 is the active controller."
    other = state.model_copy(update={"leadership": it.model_copy(update={"leads": False, "controller": 1}), "paused": True})
    assert glance(other).remainder == (
        "Node 1 is the active controller; this instance keeps its model warm and decides nothing. "
        "Paused: no plan is made or started until an operator resumes."
    )
    lost = state.model_copy(update={"leadership": it.model_copy(update={"error": "timed out."})})
    assert glance(lost).remainder == "It is not known which controller is active: timed out."
