"""A demoted broker leads nothing that another can lead; its replicas stay, no byte is copied, and no hard goal gets worse."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.options import AddedBroker, PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.policies.demoted import demoted, to_demote
from optimizer.report import render_text, to_election, to_html, to_json, to_markdown
from optimizer.report.verdict import verdict

GOALS = "version: 1\ngoals: [{kind: usage_distribution, resource: network_out}]\n"


def cluster(loads: list[float] | None = None, states: dict[int, str] | None = None, **capacity: float) -> Snapshot:
    """Broker 1 leads eight partitions, with followers on 2 and 3; `single-0` is on it alone."""
    brokers = [{"id": b, "state": (states or {}).get(b, "active"), "capacity": capacity} for b in (1, 2, 3)]
    partitions = [
        {"topic": "orders", "partition": n, "replicas": [1, 2, 3], "leader": 1,
         "leader_load": {"network_in": 1.0, "network_out": load}, "follower_load": {"network_in": 1.0}}
        for n, load in enumerate(loads or [10.0] * 8)
    ]  # fmt: skip
    partitions.append({"topic": "single", "partition": 0, "replicas": [1], "leader": 1, "leader_load": {"network_in": 1.0}})
    head = {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local"}
    return build_snapshot({**head, "brokers": brokers, "partitions": partitions})


def made(snapshot: Snapshot, goals: str = GOALS, **options: Any) -> Plan:
    return plan(snapshot, parse_goals(goals, "goals.yaml"), PlanOptions(demote_brokers=(1,), **options))


def heirs(of: Plan) -> Counter[int | None]:
    return Counter(c.leader_after for c in of.proposals)


def test_followers_lead_in_its_place_level_by_load_and_no_byte_is_copied() -> None:
    found = made(cluster([70.0, *[10.0] * 7]))
    assert heirs(found) == {2: 1, 3: 7}
    assert (found.summary.replica_moves, found.summary.bytes_to_move, found.summary.leadership_changes) == (0, 0, 8)
    assert all(sorted(c.replicas_after) == [1, 2, 3] and c.replicas_after[0] == c.leader_after for c in found.proposals)
    assert found.actions[0].reason.startswith("broker 2 would lead in place of broker 1: --demote-broker 1 asks for it")
    assert "1 partition keeps its leader (single-0): no other replica is on an active broker that is to lead" in found.notes
    assert found.options["demote_brokers"] == [1]
    assert found.plan_id == made(cluster([70.0, *[10.0] * 7])).plan_id


def test_heirs_are_active_and_movable() -> None:
    assert heirs(made(cluster(states={2: "draining"}))) == {3: 8}
    goals = parse_goals(GOALS + "constraints: {freeze_topics: [orders]}\n", "goals.yaml")
    assert not demoted(cluster(), goals, PlanOptions(), {1: "slow"}).proposals
    assert to_demote(cluster(), goals, (1,)) == 0
    assert to_demote(cluster(), parse_goals(GOALS, "goals.yaml"), (1,)) == 8
    assert to_demote(cluster(), parse_goals(GOALS, "goals.yaml"), (1, 2, 3)) == 0


def test_a_reason_that_all_goals_share_is_read_once() -> None:
    """The same sentence under every goal hides the one that differs."""
    kinds = ", ".join(f"{{kind: usage_distribution, resource: {r}}}" for r in ("network_out", "leaders", "leader_network_in", "replicas"))
    page = StringIO()
    render_text(made(cluster(), f"version: 1\ngoals: [{kinds}]\n"), Console(file=page, width=200))
    goals = page.getvalue().partition("\nGoals\n")[2].partition("\nBrokers\n")[0]
    assert goals.count("this plan takes leaderships off brokers") == 1
    assert "would remain" in goals


def test_no_hard_goal_gets_worse_and_budgets_hold() -> None:
    hard = "version: 1\ngoals: [{kind: capacity, resource: network_out, limit: 1.0}]\n"
    found = made(cluster(network_out=25.0), hard)
    assert heirs(found) == {2: 2, 3: 2}
    why = "hard goal capacity-network_out would get worse"
    assert f"4 partitions keep their leaders (orders-4, orders-5, orders-6 and 1 more): {why}" in found.notes
    short = made(cluster(), max_partitions=3)
    assert len(short.proposals) == 3
    assert "5 partitions keep their leaders (orders-3, orders-4, orders-5 and 2 more): the budget ends before them" in short.notes


def test_the_verdict_is_of_the_demotion_and_no_reason_is_of_a_search_that_was_not_made() -> None:
    found = made(cluster(network_out=25.0), GOALS.replace("[", "[{kind: capacity, resource: network_out, limit: 1.0}, "))
    says = verdict(found)
    start = "Broker 1 is to give up its 9 leaderships. The plan makes 4 leadership changes, which copy nothing. 5 would"
    assert says.sentence.startswith(start)
    assert not any("at least" in remark for remark in says.remarks)
    assert found.goals[0].status == "violated"
    reasons = "; ".join(b.why or "" for b in found.brokers)
    assert "a plan of the whole cluster may fix it" in reasons
    assert "acceptable action" not in reasons
    assert "Lower bounds" not in to_markdown(found)


def test_a_partition_without_a_leader_is_not_said_to_have_been_tried() -> None:
    snapshot = cluster()
    leader = snapshot.leader.copy()
    leader[snapshot.row_of_partition("orders", 0)] = -1
    found = made(replace(snapshot, leader=leader))
    assert [one.reason for one in found.skipped if one.what == "partition orders-0"] == [
        "no leader: this plan takes leaderships off brokers and does nothing else; a plan of the whole cluster may fix it"
    ]


def test_replicas_of_draining_brokers_stay_for_that_and_for_no_budget() -> None:
    found = made(cluster(states={2: "draining"}), add_brokers=(AddedBroker(4, None),))
    why = next(b.why for b in found.brokers if b.id == 2)
    assert why is not None
    assert "would still hold 8 replicas: this plan takes leaderships off brokers and does nothing else" in why
    assert "budget" not in why


def test_every_report_has_it_and_an_unknown_broker_is_refused() -> None:
    found = made(cluster())
    for text in (to_json(found), to_html(found), to_markdown(found), to_election(found)):
        assert "orders" in text
    with pytest.raises(ConfigurationError, match="no broker 7 in the snapshot"):
        plan(cluster(), parse_goals(GOALS, "goals.yaml"), PlanOptions(demote_brokers=(7,)))
