"""Plans of replication factors: where replicas come and go, what is left as it is, and what a reader and Kafka's tools get of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.report import to_election, to_html, to_json, to_markdown, to_reassignment
from optimizer.report.plan_file import read_plan
from optimizer.report.verdict import verdict

GB = 1e9
BAND = "{kind: usage_distribution, resource: disk}"


def cluster(
    lists: list[list[int]], *, racks: str = "abcabc", states: dict[int, str] | None = None, leaders: list[int | None] | None = None,
    sizes: list[float] | None = None, capacity: float | None = None, topic: str = "orders",
) -> Snapshot:  # fmt: skip
    """Brokers 1 to 6, each in the rack of its letter; partitions of 10 GB."""
    brokers: list[dict[str, Any]] = [
        {"id": b, "rack": rack, "state": (states or {}).get(b, "active"), **({"capacity": {"disk": capacity}} if capacity else {})}
        for b, rack in enumerate(racks, 1)
    ]
    sizes = sizes or [10 * GB] * len(lists)
    return build_snapshot({
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local", "brokers": brokers,
        "partitions": [
            {"topic": topic, "partition": n, "replicas": row, "leader": row[0] if leaders is None else leaders[n],
             "leader_load": {"disk": sizes[n]}} for n, row in enumerate(lists)
        ],
    })  # fmt: skip


def changed(snapshot: Snapshot, factor: int, goals: str = BAND, *, pattern: str = "*", constraints: str = "{}", **options: Any) -> Plan:
    text = f"version: 1\ngoals:\n - {goals}\nconstraints: {constraints}\n"
    return plan(snapshot, parse_goals(text, "goals.yaml"), PlanOptions(replication_factor=((pattern, factor),), **options))


def lists(made: Plan) -> dict[int, tuple[int, ...]]:
    return {c.partition: c.replicas_after for c in made.proposals}


def reasons(made: Plan) -> dict[str, str]:
    return {s.what: s.reason for s in made.skipped}


def test_a_replica_goes_to_a_rack_that_has_none_and_there_to_the_emptiest_broker() -> None:
    """Broker 4 is empty, but in the rack of the leader."""
    snapshot = cluster([[1, 2], [3, 2], [2, 6]])
    made = changed(snapshot, 3, pattern="orders")
    assert made.summary.replica_moves == 3
    assert lists(made)[0] in ((1, 2, 3), (1, 2, 6))
    assert lists(made)[2] in ((2, 6, 1), (2, 6, 4))
    assert all(len({(b - 1) % 3 for b in row}) == 3 for row in lists(made).values())
    assert all(c.leader_before == c.leader_after for c in made.proposals)
    assert made.lower_bounds.bytes_to_move == made.summary.bytes_to_move == 30 * GB


def test_many_replicas_come_out_level() -> None:
    made = changed(cluster([[1 + n % 2] for n in range(30)], racks="aaaaaa"), 3)
    after = [b for row in lists(made).values() for b in row]
    assert [after.count(b) for b in range(1, 7)] == [15] * 6


@pytest.mark.parametrize(
    ("row", "states", "racks", "factor", "after"),
    [
        ([1, 2, 3], {}, "abaccc", 2, [1, 2]),  # 3 stands in the leader's rack
        ([1, 2, 3], {2: "dead"}, "abaccc", 2, [1, 3]),  # the one that is lost goes first
        ([1, 2, 3], {3: "draining", 2: "dead"}, "abcabc", 1, [1]),
        ([1, 2, 3], {1: "dead"}, "abcabc", 2, [2, 3]),  # a leader that goes hands over
        ([1, 2, 3], {2: "excluded", 3: "excluded"}, "abcabc", 2, None),  # the leader would have to go, and an excluded one to lead
        ([1, 4, 2, 5], {}, "abcabc", 2, [1, 2]),  # one in each rack stays
    ],
)
def test_which_replica_goes(row: list[int], states: dict[int, str], racks: str, factor: int, after: list[int] | None) -> None:
    made = changed(cluster([row], states=states, racks=racks), factor)
    if after is None:
        assert made.proposals == ()
        assert reasons(made) == {"partition orders-0": "excluded brokers keep what they host and lead"}
        return
    (now,) = lists(made).values()
    assert set(now) == set(after) or (row == [1, 4, 2, 5] and {(b - 1) % 3 for b in now} == {0, 1})
    assert (made.summary.replica_moves, made.summary.bytes_to_move) == (0, 0)
    (change,) = made.proposals
    assert change.leader_after == now[0]


def test_the_leader_stays_and_the_fullest_broker_is_relieved() -> None:
    made = changed(cluster([[1, 2, 3], [1, 3], [3, 2], [3, 1]], racks="aaaaaa"), 2)
    assert lists(made) == {0: (1, 2)}, "broker 3 has most"


def test_data_that_one_broker_could_take_with_it_is_told() -> None:
    """The plan took the only copy's safety away and did not say a word."""
    snapshot = cluster([[1, 2, 3], [1, 2], [3]])
    told = "2 partitions would have a single replica: the loss of one broker loses their data"
    assert changed(snapshot, 1).notes == (told,)
    assert not changed(snapshot, 2).notes
    assert told in to_html(changed(snapshot, 1))


def test_a_plan_that_only_removes_replicas_is_not_measured_by_bounds_of_zero() -> None:
    removed, added = changed(cluster([[1, 2, 3]]), 2), changed(cluster([[1, 2]]), 3)
    assert removed.proposals
    assert not any("at least" in remark for remark in verdict(removed).remarks)
    assert any("at least 1 move" in remark for remark in verdict(added).remarks)


def test_what_hard_limits_leave_no_room_for_stays_as_it_is_and_says_so() -> None:
    limit = "{kind: capacity, resource: disk, limit: 1.0, hard: true}"
    made = changed(cluster([[1], [2]], racks="aabb", sizes=[60 * GB, 30 * GB], capacity=70 * GB), 4, limit)
    assert lists(made) == {}
    one = reasons(made)["partition orders-0"]
    assert one.startswith("no broker may take a replica of it within hard goals")
    assert verdict(made).remainder.startswith("partition orders-0 would stay unchanged: no broker may take a replica")
    three = changed(cluster([[1], [2]], racks="aabb", sizes=[60 * GB, 30 * GB], capacity=70 * GB), 3, limit)
    assert set(lists(three)) in ({0}, {1}), "the other one has room then"


def test_frozen_offline_leaderless_and_internal_partitions_have_their_reasons() -> None:
    assert "frozen" in reasons(changed(cluster([[1]]), 2, constraints="{freeze_topics: [orders]}"))["partition orders-0"]
    assert lists(changed(cluster([[1]]), 2, constraints="{exclude_topics: [orders]}")) != {}, "who names a topic wants it changed"
    dead = changed(cluster([[1]], states={1: "dead"}), 2)
    assert "no live replica" in reasons(dead)["partition orders-0"]
    assert "no leader" in reasons(changed(cluster([[1]], leaders=[None]), 2))["partition orders-0"]
    with pytest.raises(ConfigurationError, match="no topic matches"):
        changed(cluster([[1]], topic="__consumer_offsets"), 2)
    assert lists(changed(cluster([[1]], topic="__consumer_offsets"), 2, pattern="__*")) != {}


def test_budgets_hold_and_the_rest_is_counted() -> None:
    snapshot = cluster([[1 + n % 6] for n in range(10)])
    made = changed(snapshot, 2, max_moves=4)
    assert made.summary.replica_moves == 4
    assert reasons(made)["6 partitions more"] == "the budget ends before them"
    assert verdict(made).remainder.startswith("6 partitions more would stay unchanged: the budget")
    assert not any("needs at least" in remark for remark in verdict(made).remarks), "it was called optimal, with most of the work left"
    assert "Lower bounds" not in to_markdown(made)
    assert changed(snapshot, 2, max_bytes=35 * 10**9).summary.bytes_to_move == 30 * GB


def test_factors_that_cannot_be_are_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="expected 1 to 5 replicas, one for each active broker, found 6 for orders"):
        changed(cluster([[1]], states={6: "draining"}), 6, pattern="orders")


def test_the_same_plan_again_is_empty_and_the_last_pattern_holds() -> None:
    goals = parse_goals(f"version: 1\ngoals:\n - {BAND}\n", "goals.yaml")
    made = plan(cluster([[1, 2]]), goals, PlanOptions(replication_factor=(("*", 4), ("orders", 2))))
    assert made.actions == ()
    assert verdict(made).sentence == "Replication factor 4 for * and 2 for orders. The plan is empty and nothing would change."


def test_every_form_of_it_can_be_read() -> None:
    made = changed(cluster([[1, 2], [3, 1, 2]]), 3)
    text = to_json(made)
    again = read_plan(text.encode(), "plan.json")
    assert to_json(again) == text
    (action,) = again.actions
    assert (action.type, action.repairs) == ("replication", ("replication_factor",))
    assert json.loads(text)["options"]["replication_factor"] == {"*": 3}
    (entry,) = json.loads(to_reassignment(made))["partitions"]
    assert len(entry["replicas"]) == 3
    assert json.loads(to_election(made))["partitions"] == []
    for form in (to_markdown(made), to_html(made)):
        assert "adding 1 replica (10.0 GB) brings 1 partition to 3 replicas" in form.replace("Adding", "adding")
    assert "nowhere" not in text
    assert {b.id for b in made.brokers} == {1, 2, 3, 4, 5, 6}
