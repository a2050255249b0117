"""What a broken planner would do to an operator, tried on random clusters and judged by the oracle.

The oracle (tests/oracle) is written from docs/contract.md alone; a failing example names its seed, and
``python -m tests.oracle.stress --seed SEED --count 1 --shrink`` makes it small.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from tests.oracle.clusters import Case, case_of, cases
from tests.oracle.leftovers import undone
from tests.oracle.runs import BUDGETS, after, deviations, is_budgeted, plan_document, plan_text, rack_excesses, same_bands

Document = dict[str, Any]

thorough = settings(
    max_examples=30, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
brief = settings(thorough, max_examples=12)


def with_acceptance(case: Case, acceptance: str) -> Case:
    return case.without(acceptance=acceptance)


def plain(case: Case) -> Case:
    """The case without budgets: what ends only when there is nothing left to do."""
    return case.without(options={k: v for k, v in case.options.items() if k not in BUDGETS})


@pytest.mark.parametrize("acceptance", ["score", "potential"])
@thorough
@given(case=cases())
def test_a_plan_never_promises_a_score_or_load_that_its_actions_do_not_give(
    acceptance: str, case: Case
) -> None:
    case = with_acceptance(case, acceptance)
    assert deviations(case, plan_document(case)) == []


@pytest.mark.parametrize("acceptance", ["score", "potential"])
@thorough
@given(case=cases())
def test_an_executed_plan_is_not_followed_by_another_one_that_shuffles_on(
    acceptance: str, case: Case
) -> None:
    case = plain(with_acceptance(case, acceptance))
    then = after(case, plan_document(case))
    assume(same_bands(case, then))
    second = plan_document(then)
    assert second["actions"] == []
    assert second["proposals"] == []


@thorough
@given(case=cases())
def test_no_replica_is_forgotten_on_a_dead_or_draining_broker_that_could_be_emptied(case: Case) -> None:
    case = plain(case)
    assert undone(case.snapshot, case.goals, plan_document(case), case.options) == []


@brief
@given(case=cases())
def test_the_plan_approved_yesterday_is_the_plan_made_again_today(case: Case) -> None:
    assert plan_text(case) == plan_text(case)


@brief
@given(case=cases(), seed=st.randoms(use_true_random=False))
def test_the_order_of_the_snapshot_file_does_not_change_the_plan(case: Case, seed: Any) -> None:
    shuffled = {**case.snapshot, "brokers": list(case.snapshot["brokers"]),
                "partitions": list(case.snapshot["partitions"])}  # fmt: skip
    seed.shuffle(shuffled["brokers"])
    seed.shuffle(shuffled["partitions"])
    assert plan_text(case.without(snapshot=shuffled)) == plan_text(case)


@brief
@given(case=cases())
def test_more_threads_do_not_make_another_plan(case: Case) -> None:
    assert plan_text(case, threads=2) == plan_text(case, threads=1)


@brief
@given(case=cases())
def test_a_cluster_with_higher_broker_ids_is_not_balanced_differently(case: Case) -> None:
    def renamed(broker: int) -> int:
        return 10 * broker + 7

    there = plan_document(renamed_case(case, renamed))
    here = plan_document(case)
    assert [net(p, renamed) for p in here["proposals"]] == [net(p, int) for p in there["proposals"]]
    assert [[net(ch, renamed) for ch in a["changes"]] for a in here["actions"]] == [
        [net(ch, int) for ch in a["changes"]] for a in there["actions"]
    ]
    assert [a["score"] for a in here["actions"]] == [a["score"] for a in there["actions"]]


@thorough
@given(case=cases())
@example(case=case_of(1200, most_brokers=10, per_broker=10))
@example(case=case_of(100001, most_brokers=8, per_broker=8))  # repairs first, then brokers that can shed no more
def test_a_broken_hard_goal_is_never_broken_further(case: Case) -> None:
    """Of racks, the partitions: a replica that leaves a dead broker for one of the same over-full rack breaks nothing, and that broker
    counts as a violation where the dead one, which is not judged, did not."""
    document = plan_document(case)
    for goal in document["goals"]:
        if goal["hard"] and goal["status"] != "skipped":
            if goal["kind"] == "rack_aware":
                here, then = rack_excesses(case), rack_excesses(after(case, document))
                assert not [key for key in here if then[key] > here[key]]
            else:
                assert goal["after"]["violations"] <= goal["before"]["violations"]


@brief
@given(
    case=cases(),
    moves=st.integers(0, 12),
    partitions=st.integers(0, 6),
    size=st.sampled_from([0, 10**9, 10**11]),
)
def test_no_more_is_moved_than_the_operator_allowed(
    case: Case, moves: int, partitions: int, size: int
) -> None:
    budgets = {"max_moves": moves, "max_partitions": partitions, "max_bytes": size}
    case = case.without(options={**plain(case).options, **budgets})
    document = plan_document(case)
    assert deviations(case, document) == []
    assert document["summary"]["replica_moves"] <= moves
    assert document["summary"]["partitions"] <= partitions
    assert document["summary"]["bytes_to_move"] <= size


@thorough
@given(case=cases(), topics=st.sampled_from([["orders"], ["*s"], ["__*", "c*"], ["*"]]))
def test_topics_that_must_not_move_do_not_and_frozen_brokers_stay_as_they_are(
    case: Case, topics: list[str]
) -> None:
    first = case.snapshot["brokers"][0]["id"]
    options = {**case.options, "exclude_topics": topics, "exclude_brokers": [first]}
    case = case.without(options=options)
    document = plan_document(case)
    assert deviations(case, document) == []
    for proposal in document["proposals"]:
        before, now = proposal["replicas_before"], proposal["replicas_after"]
        assert (first in before) == (first in now)
        assert (proposal["leader_before"] == first) == (proposal["leader_after"] == first)


@brief
@given(case=cases(), heavier=st.sampled_from([0.25, 4.0, 20.0]), glob=st.sampled_from(["*", "o*", "?*s"]))
def test_what_if_a_broker_came_another_went_and_topics_grew(case: Case, heavier: float, glob: str) -> None:
    ids = [b["id"] for b in case.snapshot["brokers"]]
    rack = case.snapshot["brokers"][0]["rack"]
    options: Document = {"add_brokers": [(max(ids) + 3, rack)], "remove_brokers": [ids[-1]]}
    if any(p["topic"] for p in case.snapshot["partitions"]) and glob == "*":
        options["scale_load"] = [(glob, heavier)]
    case = case.without(options=options)
    document = plan_document(case)
    assert deviations(case, document) == []
    assert undone(case.snapshot, case.goals, document, options) == []


def test_slots_of_a_repair_are_kept_by_what_a_budget_does_next() -> None:
    """A leader goes on from where a repair put it: its action named a broker that kept its replica."""
    case = case_of(5828)
    assert deviations(case, plan_document(case)) == []


@pytest.mark.parametrize("seed", range(12))
def test_clusters_of_up_to_sixty_brokers(seed: int) -> None:
    case = case_of(seed + 1_000_000, most_brokers=60, per_broker=25)
    document = plan_document(case)
    assert deviations(case, document) == []
    if not is_budgeted(case):
        assert undone(case.snapshot, case.goals, document, case.options) == []
        assert plan_document(after(case, document))["actions"] == []


def renamed_case(case: Case, renamed: Any) -> Case:
    """The same cluster with other broker ids in the same order."""
    snapshot = json.loads(json.dumps(case.snapshot))
    for broker in snapshot["brokers"]:
        broker["id"] = renamed(broker["id"])
    for p in snapshot["partitions"]:
        p["replicas"] = [renamed(b) for b in p["replicas"]]
        p["leader"] = None if p["leader"] is None else renamed(p["leader"])
    goals = json.loads(json.dumps(case.goals))
    frozen = goals.get("constraints", {}).get("exclude_brokers", [])
    frozen[:] = [renamed(b) for b in frozen]
    for one in goals.get("constraints", {}).get("broker_sets", []):
        one["brokers"] = [renamed(b) for b in one["brokers"]]
    options = dict(case.options)
    for name in ("remove_brokers", "exclude_brokers"):
        if name in options:
            options[name] = [renamed(b) for b in options[name]]
    if "add_brokers" in options:
        options["add_brokers"] = [(renamed(b), rack) for b, rack in options["add_brokers"]]
    return case.without(snapshot=snapshot, goals=goals, options=options)


def net(change: Document, renamed: Any) -> tuple[Any, ...]:
    """A change of one partition with its brokers renamed."""

    def leader(broker: int | None) -> int | None:
        return None if broker is None else renamed(broker)

    return (
        change["topic"], change["partition"],
        [renamed(b) for b in change["replicas_before"]], [renamed(b) for b in change["replicas_after"]],
        leader(change["leader_before"]), leader(change["leader_after"]),
    )  # fmt: skip
