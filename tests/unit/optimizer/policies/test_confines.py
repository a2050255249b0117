"""Topics stay with the brokers that are theirs, and topics of one group stand apart, whatever part of a policy moves or places them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from goals.policy import Placement
from goals.policy_presets import POLICY_PRESETS
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.policies.assign import InfeasibleError, NewTopic, assign
from optimizer.policies.placed_anew import placed_anew
from trimtab.service.standing import after

PRESETS = sorted(n for n, parts in POLICY_PRESETS.items() if "amount" in parts and n != "wix-minimal")
ISOLATION = "isolation: [{topics: ['a*'], primary: [1, 2], secondary: [3], min_primary: 2}]"


def cluster(topics: dict[str, list[list[int]]], brokers: int = 6, states: dict[int, str] | None = None, load: float = 1e6) -> Snapshot:
    """Replica lists by topic; brokers of two racks in turn."""
    document: dict[str, Any] = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
        "brokers": [
            {"id": b, "rack": "ab"[b % 2], "capacity": {"network_in": 1e8}, "state": (states or {}).get(b, "active")}
            for b in range(1, brokers + 1)
        ],
        "partitions": [
            {"topic": topic, "partition": n, "replicas": row, "leader": row[0], "leader_load": {"network_in": load, "disk": 1e9}}
            for topic, rows in topics.items() for n, row in enumerate(rows)
        ],
    }  # fmt: skip
    return build_snapshot(document)


def goals(filters: str, policy: str = "amount: {kind: one}, accept: detector, detector: {kind: cv, threshold: 0.05}") -> GoalSet:
    return parse_goals(
        "version: 1\ngoals:\n - {kind: usage_distribution, resource: network_in}\n - {kind: usage_distribution, resource: replicas}\n"
        f"policy: {{{policy}, filters: {{{filters}}}}}\n", "goals.yaml",
    )  # fmt: skip


def hosts(snapshot: Snapshot, made: Plan, glob: str) -> set[int]:
    """Brokers that got a replica of topics whose names start so."""
    return {b for c in made.proposals if c.topic.startswith(glob) for b in c.added}


def test_topics_go_to_their_primary_brokers_and_others_to_none_of_them() -> None:
    crowded = cluster({"a1": [[1]] * 8, "b1": [[4]] * 12})
    free, kept = plan(crowded, goals("once: true")), plan(crowded, goals(ISOLATION))
    assert hosts(crowded, free, "a") - {1, 2}, "without the filter they go anywhere"
    assert hosts(crowded, kept, "a") == {2}
    assert hosts(crowded, kept, "b") == {3, 5, 6}
    assert "policy: filter isolation: 1 topic of a* may go to brokers 1, 2 (primary)" in kept.notes


def test_secondary_brokers_help_while_too_few_primary_ones_are_active() -> None:
    short = cluster({"a1": [[1]] * 8, "b1": [[4]] * 4}, states={2: "dead"})
    made = plan(short, goals(ISOLATION))
    assert hosts(short, made, "a") == {3}
    assert any("may go to brokers 1, 3 (primary and secondary, fewer than 2 primary ones are active)" in note for note in made.notes)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_keeps_to_it(preset: str) -> None:
    uneven = cluster({"a1": [[1]] * 30, "a2": [[3]] * 3, "b1": [[4]] * 40, "b2": [[5]] * 2}, load=2e6)
    made = plan(uneven, goals(ISOLATION, f"preset: {preset}, score: {{kind: throughput}}"))
    assert hosts(uneven, made, "a") <= {1, 2}
    assert not hosts(uneven, made, "b") & {1, 2}


def test_what_isolation_leaves_no_broker_for_stays_and_is_counted() -> None:
    alone = cluster({"a1": [[1]] * 8, "b1": [[4], [5]]})
    made = plan(alone, goals("isolation: [{topics: ['a*'], primary: [1]}]"))
    assert not hosts(alone, made, "a")
    assert "policy: placement within isolation: no broker may take it: 8 replicas passed over" in made.notes


def test_what_stands_elsewhere_is_counted() -> None:
    made = plan(cluster({"a1": [[1], [2], [5]], "b1": [[4], [1]]}), goals(ISOLATION))
    told = [note for note in made.notes if "filter isolation" in note]
    assert "1 replica elsewhere" in told[0]
    assert told[1] == "policy: filter isolation: other topics may go to brokers that are primary in no rule; 1 replica elsewhere"


def test_a_drained_broker_gives_its_replicas_to_those_that_may_have_them() -> None:
    draining = cluster({"a1": [[1]] * 3, "b1": [[1]] * 3}, states={1: "draining"})
    made = plan(draining, goals(ISOLATION))
    assert hosts(draining, made, "a") == {2, 3}
    assert hosts(draining, made, "b") <= {3, 4, 5, 6}


def test_racks_and_globs_of_ids_name_brokers() -> None:
    by_rack = "isolation: [{topics: ['a*'], primary: ['rack:a']}]"
    crowded = cluster({"a1": [[2]] * 9, "b1": [[1]] * 9})
    made = plan(crowded, goals(by_rack))
    assert (hosts(crowded, made, "a"), hosts(crowded, made, "b")) == ({4, 6}, {3, 5})
    many = cluster({"a1": [[1]] * 9, "b1": [[2]] * 9}, brokers=12)
    assert hosts(many, plan(many, goals("isolation: [{topics: ['a*'], primary: ['1*']}]")), "a") <= {10, 11, 12}


def test_the_first_rule_that_matches_a_topic_holds() -> None:
    crowded = cluster({"a1": [[1]] * 4, "a2": [[3]] * 4, "b": [[5]] * 4})
    made = plan(crowded, goals("isolation: [{topics: [a1], primary: [1, 2]}, {topics: ['a*'], primary: [3, 4]}]"))
    assert hosts(crowded, made, "a1") == {2}
    assert hosts(crowded, made, "a2") == {4}
    assert hosts(crowded, made, "b") == {6}


def test_a_new_topic_is_placed_within_isolation_or_not_at_all() -> None:
    there = cluster({"a1": [[1, 2]], "b1": [[4, 5]]})
    found = assign(there, goals(ISOLATION), NewTopic("a9", 6, 2))
    assert {b for row in found.replicas for b in row} == {1, 2}
    other = assign(there, goals(ISOLATION), NewTopic("b9", 6, 2))
    assert {b for row in other.replicas for b in row} == {3, 4, 5, 6}
    with pytest.raises(InfeasibleError, match=r"policy\.filters\.isolation \(brokers 3, 4, 5, 6\)"):
        assign(there, goals(ISOLATION), NewTopic("a9", 6, 3))


def test_a_topic_that_kafka_placed_is_brought_within_isolation() -> None:
    there = cluster({"a1": [[5, 6], [1, 4], [2, 1]], "b1": [[4, 5]] * 4})
    made = placed_anew(there, goals(ISOLATION), ["a1"])
    assert {b for c in made.proposals for b in c.replicas_after} == {1, 2}
    again = placed_anew(after(there, made), goals(ISOLATION), ["a1"])
    assert not again.proposals


def test_more_replicas_keep_to_isolation() -> None:
    there = cluster({"a1": [[1]] * 3, "b1": [[4]] * 3})
    made = plan(there, goals(ISOLATION), PlanOptions(replication_factor=(("*1", 2),)))
    assert hosts(there, made, "a") == {2}
    assert hosts(there, made, "b") <= {3, 5, 6}
    more = plan(there, goals(ISOLATION), PlanOptions(replication_factor=(("a1", 3),)))
    assert not more.proposals
    assert any("within hard goals and policy.filters.isolation" in s.reason for s in more.skipped)


APART = "anti_affinity: [{topics: [pay, refund, audit]}]"


def stands(snapshot: Snapshot, topic: str) -> set[int]:
    rows = snapshot.replicas[snapshot.partition_topic == snapshot.row_of_topic[topic]]
    return {int(snapshot.broker_ids[b]) for b in rows[rows >= 0]}


def test_topics_of_one_group_are_not_brought_together() -> None:
    """Of six brokers two have others of the group: the others take what a third one gives."""
    crowded = cluster({"pay": [[1]] * 5, "refund": [[2]], "audit": [[3]], "else": [[4], [5], [6]]})
    free, kept = plan(crowded, goals("once: true")), plan(crowded, goals(APART))
    assert hosts(crowded, free, "pay") & {2, 3}
    assert hosts(crowded, kept, "pay")
    assert not hosts(crowded, kept, "pay") & {2, 3}
    assert "policy: filter anti_affinity: 3 topics of pay, refund, audit are kept apart" in kept.notes


def test_racks_keep_them_apart_before_brokers_do() -> None:
    """Rack a (2, 4, 6) has both of the others, rack b none but what gives."""
    crowded = cluster({"pay": [[1]] * 6, "refund": [[2]], "audit": [[4]], "else": [[1], [2]]})
    assert hosts(crowded, plan(crowded, goals(APART)), "pay") == {3, 5}


def test_new_topics_stand_apart_as_far_as_possible() -> None:
    there = cluster({"refund": [[1], [2]], "else": [[3], [4], [5]]})
    found = assign(there, goals(APART), NewTopic("pay", 4, 1), Placement(kind="least"))
    assert {b for row in found.replicas for b in row} == {3, 4, 5, 6}
    full = cluster({"refund": [[b] for b in range(1, 7)], "audit": [[1]]})
    last = assign(full, goals(APART), NewTopic("pay", 3, 1), Placement(kind="least"))
    assert 1 not in {b for row in last.replicas for b in row}, "broker 1 has two of the group, the others one"


@pytest.mark.parametrize("seed", range(6))
def test_no_plan_brings_two_topics_of_a_group_onto_a_broker_that_had_one(seed: int) -> None:
    chance = np.random.default_rng(seed)
    names = ["pay", "refund", "audit", "x", "y"]
    crowded = cluster({name: [[int(chance.integers(1, 4))] for _ in range(6)] for name in names}, brokers=8)
    made = plan(crowded, goals(APART))
    then = after(crowded, made)

    def together(snapshot: Snapshot) -> int:
        standing = [stands(snapshot, name) for name in names[:3]]
        return sum(max(sum(b in s for s in standing) - 1, 0) for b in range(1, 9))

    assert made.proposals
    assert together(then) <= together(crowded)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (f"filters: {{{ISOLATION}}}", "the search knows no isolation and no anti_affinity: expected amount beside those filters"),
        (f"preset: wix-minimal, filters: {{{APART}}}", "amount to_target_counts goes by counts alone"),
        ("amount: {kind: one}, filters: {isolation: [{topics: [a], primary: []}]}", "policy.filters.isolation[0].primary"),
        ("amount: {kind: one}, filters: {isolation: [{topics: [a], primaries: [1]}]}", "did you mean 'primary'"),
        ("amount: {kind: one}, filters: {anti_affinity: [{topics: []}]}", "policy.filters.anti_affinity[0].topics"),
    ],
)
def test_what_cannot_be_honoured_is_refused(policy: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        parse_goals(f"version: 1\ngoals: [{{kind: rack_aware}}]\npolicy: {{{policy}}}\n", "goals.yaml")


def test_a_dry_run_is_the_same_again() -> None:
    crowded = cluster({"a1": [[1]] * 8, "pay": [[4]] * 6, "refund": [[5]] * 3})
    both = goals(f"{ISOLATION}, {APART}")
    assert plan(crowded, both, PlanOptions()).plan_id == plan(crowded, both, PlanOptions()).plan_id
