"""Broker sets on random clusters: no plan takes a replica out of its set, and what stands outside comes home where it can."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings

from tests.oracle.cluster import Cluster
from tests.oracle.clusters import Case, cases, with_sets
from tests.oracle.goal_files import constraints_of
from tests.oracle.leftovers import undone
from tests.oracle.runs import BUDGETS, after, deviations, plan_document, plan_text, same_bands

thorough = settings(
    max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
clusters = cases(most_brokers=10, per_broker=10).map(with_sets)


def plain(case: Case) -> Case:
    return case.without(options={k: v for k, v in case.options.items() if k not in BUDGETS})


@thorough
@given(case=clusters)
def test_no_plan_takes_a_replica_out_of_its_set(case: Case) -> None:
    document = plan_document(case)
    cluster = Cluster(case.snapshot, constraints_of(case.goals), case.options)
    for action in document["actions"]:
        for change in action["changes"]:
            for broker in set(change["replicas_after"]) - set(change["replicas_before"]):
                assert cluster.may_host((change["topic"], change["partition"]), broker)
    assert deviations(case, document) == []


@thorough
@given(case=clusters)
def test_what_stands_outside_its_set_comes_home_where_a_broker_of_it_may_take_it(case: Case) -> None:
    case = plain(case)
    assert undone(case.snapshot, case.goals, plan_document(case), case.options) == []


@settings(thorough, max_examples=15)
@given(case=clusters)
def test_an_executed_plan_is_not_followed_by_another(case: Case) -> None:
    case = plain(case)
    then = after(case, plan_document(case))
    assume(same_bands(case, then))
    assert plan_document(then)["actions"] == []


@settings(thorough, max_examples=10)
@given(case=clusters)
def test_the_same_plan_is_made_again(case: Case) -> None:
    assert plan_text(case) == plan_text(case)
