"""A plan must not rest on numbers that were not measured lately: what is in doubt stays, except for repairs that need no numbers."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.loops import ESTIMATED, STALE, UNKNOWN
from cluster_model.snapshot import Snapshot
from cluster_model.trust import LiveSnapshot, LoadTrust
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.detectors import detect
from optimizer.explain import explain_partition
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.policies.profiles import broker_scores

Document = dict[str, Any]
LEVEL: Document = {"kind": "usage_distribution", "resource": "network_in"}
COUNTS: Document = {"kind": "usage_distribution", "resource": "replicas"}
RACK: Document = {"kind": "rack_aware"}
FULL: Document = {"kind": "capacity", "resource": "network_in", "limit": 1.0}


def goals(*listed: Mapping[str, Any], policy: Mapping[str, Any] | None = None) -> GoalSet:
    return parse_goals(json.dumps({"version": 1, "goals": [dict(g) for g in listed], "policy": policy or {}}), "goals.yaml")


def cluster(hosts: list[list[int]], brokers: list[Document], loads: list[float] | None = None, leader: bool = True) -> Snapshot:
    """Partitions "t-0", "t-1" … with their replicas, led by the first."""
    given = loads or [10.0] * len(hosts)
    partitions = [
        {"topic": "t", "partition": n, "replicas": replicas, "leader_load": {"network_in": given[n]},
         **({"leader": replicas[0]} if leader else {})}
        for n, replicas in enumerate(hosts)
    ]  # fmt: skip
    return build_snapshot(
        {"version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local", "brokers": brokers,
         "partitions": partitions}, "cluster.json",
    )  # fmt: skip


def live(snapshot: Snapshot, stale: Collection[int] = (), unknown: Collection[int] = (), estimated: Collection[int] = ()) -> LiveSnapshot:
    """The same as the live model gives it, with doubts about every load of some partitions (rows)."""
    flags = np.zeros(snapshot.partition_count, dtype=np.uint8)
    for rows, bit in ((stale, STALE), (unknown, UNKNOWN), (estimated, ESTIMATED)):
        flags[list(rows)] |= bit
    loads: dict[str, np.ndarray] = {}
    for name, values in snapshot.leader_load.items():
        loads[name] = np.where(flags & UNKNOWN, 0.0, values)
    given = {f.name: getattr(snapshot, f.name) for f in fields(Snapshot)} | {"leader_load": loads}
    trust = LoadTrust("long", 1_800_000, 90_000, {name: flags.copy() for name in loads}, {}, ())
    return LiveSnapshot(**given, trust=trust)


def planned(snapshot: LiveSnapshot, *listed: Mapping[str, Any], **options: Any) -> Plan:
    """The plan; without a budget, planning again on its result must be empty."""
    wanted = goals(*listed)
    made = plan(snapshot, wanted, PlanOptions(**options))
    if not any(name.startswith("max_") for name in options):
        assert list(plan(after(snapshot, made), wanted, PlanOptions(**options)).actions) == []
    return made


def after(snapshot: LiveSnapshot, made: Plan) -> LiveSnapshot:
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for change in made.proposals:
        row = snapshot.row_of_partition(change.topic, change.partition)
        replicas[row, : len(change.replicas_after)] = [snapshot.row_of_broker[b] for b in change.replicas_after]
        leader[row] = -1 if change.leader_after is None else snapshot.row_of_broker[change.leader_after]
    return replace(snapshot, replicas=replicas, leader=leader)


def test_a_broker_in_doubt_is_not_idle_to_a_policy() -> None:
    """It would get replicas for a load that was not measured. A broker that is not active stays at 0."""
    brokers = [{"id": b, "capacity": {"network_in": 100.0}} for b in (1, 2, 3)] + [{"id": 4, "state": "draining"}]
    doubted = live(cluster([[1], [2], [3], [4]], brokers, [20.0, 60.0, 80.0, 10.0]), unknown=[2])
    level = goals({"kind": "usage_distribution", "resource": "network_in"})
    assert broker_scores("weighted_max", doubted, level).tolist() == [0.2, 0.6, 0.4, 0.0]


def held(made: Plan, broker: int) -> int:
    return int(next(b for b in made.brokers if b.id == broker).after["replicas"])


def changed(made: Plan) -> set[int]:
    return {c.partition for c in made.proposals}


def told(made: Plan) -> dict[str, str]:
    return {s.what: s.reason for s in made.skipped}


FOUR: list[Document] = [{"id": b} for b in (1, 2, 3, 4)]
SKEWED = [[1], [1], [1], [1], [1], [1], [2], [2], [3], [3]]


def test_a_stale_partition_stays_and_the_others_make_up_for_it() -> None:
    made = planned(live(cluster(SKEWED, FOUR), stale=[0]), {**LEVEL, "bound": 0.25})
    assert 0 not in changed(made)
    assert [held(made, b) for b in (1, 2, 3, 4)] == [6, 1, 2, 1]
    assert told(made) == {
        "partition t-0": "not moved for balance; older than 90 s: network_in",
        "broker 1": "neither gets nor gives load for balance; 17% of the network_in of broker 1 is stale or unknown (limit 10%)",
    }


def test_a_broker_in_doubt_neither_gains_nor_gives() -> None:
    hosts = [[1]] * 20 + [[2]] * 4 + [[3]] * 8 + [[4]] * 8
    made = planned(live(cluster(hosts, FOUR), stale=[20]), LEVEL)  # one of four on broker 2
    assert held(made, 2) == 4
    assert held(made, 1) < 20
    assert "broker 2" in told(made)
    why = next(b.why for b in made.brokers if b.id == 2)
    assert why == (
        "usage_distribution-network_in: too much of its network_in is stale or unknown, so it would neither get nor give load for balance "
        "until it is measured"
    )


def test_what_is_stale_in_a_resource_that_no_goal_uses_moves() -> None:
    snapshot = live(cluster(SKEWED, FOUR), stale=range(10))
    assert changed(planned(snapshot, COUNTS)) == changed(plan_of(cluster(SKEWED, FOUR), COUNTS))
    assert told(planned(snapshot, COUNTS)) == {}
    assert changed(planned(snapshot, LEVEL)) == set()


def plan_of(snapshot: Snapshot, *listed: Mapping[str, Any]) -> Plan:
    return plan(snapshot, goals(*listed))


def test_what_only_a_follower_costs_counts_where_there_are_followers() -> None:
    hosts = [[1, 2]] * 6 + [[1]] * 6 + [[3, 4]] * 2
    snapshot = live(cluster(hosts, FOUR))
    flags = np.zeros(len(hosts), dtype=np.uint8)
    flags[[0, 6]] = STALE  # the second has no follower
    made = planned(replace(snapshot, trust=replace(snapshot.trust, follower={"network_in": flags})), LEVEL)
    assert 0 not in changed(made)
    assert told(made)["partition t-0"] == "not moved for balance; older than 90 s: network_in"
    assert "partition t-6" not in told(made)


def test_derived_resources_rest_on_what_they_are_made_of() -> None:
    made = planned(live(cluster(SKEWED, FOUR), stale=range(10)), {"kind": "usage_distribution", "resource": "leader_network_in"})
    assert changed(made) == set()


@pytest.mark.parametrize("state", ["dead", "draining"])
@pytest.mark.parametrize("doubt", ["stale", "unknown"])
def test_what_must_leave_leaves_however_little_is_known(state: str, doubt: str) -> None:
    hosts = [[1, 2], [1, 3], [1, 4], [2, 3], [3, 4], [4, 2]]
    brokers: list[Document] = [{"id": 1, "state": state}, *FOUR[1:]]
    made = planned(live(cluster(hosts, brokers), **{doubt: range(6)}), LEVEL)
    assert held(made, 1) == 0
    assert changed(made) == {0, 1, 2}
    assert all(set(c.replicas_before) - set(c.replicas_after) == {1} for c in made.proposals)


def test_a_crowded_rack_is_mended_however_little_is_known() -> None:
    brokers: list[Document] = [{"id": b, "rack": "ab"[b // 3]} for b in (1, 2, 3, 4)]
    made = planned(live(cluster([[1, 2], [3, 1], [4, 2]], brokers), unknown=range(3)), RACK, LEVEL)
    assert changed(made) == {0}
    assert made.actions[0].repairs == ("rack_aware",)


def test_the_leaderless_get_a_leader_even_where_no_other_is_left() -> None:
    made = planned(live(cluster([[1, 2], [2, 1], [3, 4]], FOUR, leader=False), unknown=[0, 1]), LEVEL)
    assert changed(made) == {0, 1, 2}
    assert all(a.repairs == ("leaderless",) for a in made.actions)


def test_a_broker_that_looks_idle_because_it_was_not_measured_is_not_flooded() -> None:
    """Broker 4 holds as much as the others, but its replicas count as nothing."""
    hosts = [[1]] * 6 + [[2]] * 6 + [[3]] * 6 + [[4]] * 6
    brokers: list[Document] = [{"id": 1, "state": "draining"}, *FOUR[1:]]
    made = planned(live(cluster(hosts, brokers), unknown=range(18, 24)), LEVEL)
    assert [held(made, b) for b in (1, 2, 3, 4)] == [0, 9, 9, 6]


def test_it_takes_what_no_other_broker_can() -> None:
    brokers: list[Document] = [{"id": 1, "state": "draining"}, *FOUR[1:]]
    made = planned(live(cluster([[1, 2, 3], [4], [4]], brokers), unknown=[1, 2]), LEVEL)
    assert (held(made, 1), held(made, 4)) == (0, 3)


def test_where_most_look_idle_the_few_others_are_not_flooded_either() -> None:
    """Just after a start only broker 2 has reported."""
    hosts = [[1]] * 6 + [[2]] * 2 + [[3]] * 2 + [[4]] * 2
    brokers: list[Document] = [{"id": 1, "state": "dead"}, *FOUR[1:]]
    hosts = [[1, 2 + n % 3] for n in range(6)] + hosts[6:]
    made = planned(live(cluster(hosts, brokers), unknown=[*range(6), *range(8, 12)]), LEVEL, COUNTS)
    assert held(made, 1) == 0
    assert max(held(made, b) for b in (2, 3, 4)) - min(held(made, b) for b in (2, 3, 4)) <= 1


def test_many_are_told_together() -> None:
    hosts = [[1 + n % 4] for n in range(200)]
    made = planned(live(cluster(hosts, FOUR), stale=range(30), unknown=range(30, 40)), LEVEL)
    assert told(made)["40 partitions"] == (
        "not moved for balance; older than 90 s: network_in of 30; never measured: network_in of 10 (t-0, t-1, t-2 …)"
    )
    many: list[Document] = [{"id": b} for b in range(1, 41)]
    made = planned(live(cluster([[b] for b in range(1, 41)], many), stale=range(40)), LEVEL)
    assert told(made)["20 more brokers"] == "neither get nor give load for balance; too much of their network_in is stale or unknown"
    assert len(made.skipped) == 22


def test_a_hard_goal_that_doubts_keep_broken_is_not_called_infeasible() -> None:
    brokers: list[Document] = [{"id": b, "capacity": {"network_in": 50.0}} for b in (1, 2, 3, 4)]
    made = planned(live(cluster(SKEWED, brokers), stale=range(6)), FULL)
    assert made.goals[0].status == "violated"
    assert changed(made) == set()


def test_a_band_that_only_doubts_keep_broken_says_so() -> None:
    hosts = [[1]] * 40 + [[2]] * 4 + [[3]] * 30
    made = planned(live(cluster(hosts, FOUR[:3]), stale=[40]), {**LEVEL, "bound": 0.01})
    whys = [b.why for b in made.brokers if b.id != 2 and b.why]
    assert whys
    assert all("left alone are 1 other broker whose network_in is stale or unknown" in why for why in whys)


def test_explain_says_why_it_stays() -> None:
    snapshot = live(cluster(SKEWED, FOUR), unknown=[0])
    text = explain_partition(snapshot, goals(LEVEL), PlanOptions(), "t", 0)
    assert "Its network_in is stale or was never measured, so it would not be moved for balance." in text


def test_a_budget_holds_over_repairs_and_balance_together() -> None:
    hosts = [[1]] * 12 + [[2]] * 12 + [[3]] * 2 + [[4]] * 2
    brokers: list[Document] = [{"id": 1, "state": "draining"}, *FOUR[1:]]
    made = planned(live(cluster(hosts, brokers), stale=[0, 1]), LEVEL, max_moves=14)
    assert held(made, 1) == 0
    assert made.summary.replica_moves <= 14
    less = planned(live(cluster(hosts, brokers), stale=[0, 1]), LEVEL, max_moves=5)
    assert less.summary.replica_moves == 5
    assert held(less, 1) == 7


# --- detectors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["goal_band", "cv", "above_mean", "minmax", "std", "pairs"])
def test_a_detector_does_not_fire_for_a_broker_whose_load_is_a_guess(kind: str) -> None:
    """Broker 4 looks idle because it was not measured."""
    hosts = [[1]] * 6 + [[2]] * 6 + [[3]] * 6 + [[4]] * 6
    policy = goals(LEVEL, policy={"detector": {"kind": kind, **({"lower_boundary": True} if kind == "above_mean" else {})}})
    unknown = live(cluster(hosts, FOUR), unknown=range(18, 24))
    found = detect(policy, unknown, policy)
    if kind != "goal_band":  # there the others are above a mean in which broker 4 counts as nothing
        assert not found.fired
    assert 4 not in {f.broker for f in found.findings}
    assert found.notes == ("network_in is not judged on brokers 4: too much of it is stale or unknown",)


def test_what_gains_too_little_among_what_can_be_trusted_is_said() -> None:
    """The reason said that nothing acceptable was found."""
    snapshot = cluster([[1], [1], [2], [2], [3], [3], [3]], [{"id": b} for b in (1, 2, 3)], [60.0, 60.0, 40.0, 40.0, 50.0, 49.0, 1.0])
    trusted = live(snapshot, stale=[6])
    assert planned(trusted, LEVEL, min_gain=0.01).summary.replica_moves == 2
    made = planned(trusted, LEVEL, min_gain=5.0)
    assert not made.actions
    assert any("policy.min_gain asks for 5" in skipped.reason for skipped in made.skipped)
    assert all("policy.min_gain" in (b.why or "") for b in made.brokers if b.violates)


def test_a_partition_that_was_moved_lately_is_left_alone_by_balance_and_by_nothing_else() -> None:
    brokers: list[Document] = [{"id": b, "rack": None} for b in (1, 2, 3)]
    snapshot = cluster([[1], [1], [1], [1], [1], [1], [2]], brokers)
    for known in (snapshot, live(snapshot), live(snapshot, stale=[6])):
        assert {c.partition for c in plan(known, goals(LEVEL), PlanOptions()).proposals} & {0, 1, 2, 3}
        rests = tuple(("t", n) for n in range(4))
        made = plan(known, goals(LEVEL), PlanOptions(resting=(*rests, ("gone", 7))))
        assert {c.partition for c in made.proposals} <= {4, 5, 6}
        assert len(made.proposals) > 0
        (left,) = [s for s in made.skipped if s.what == "partition t-0"]
        assert left.reason == "not moved for balance; moved lately (policy.partition_cooldown)"
        assert left.doubt is None, "its numbers are as good as others"
        assert "were moved lately; more could be done once their cooldown is over" in (made.brokers[0].why or "")


def test_repairs_move_what_was_moved_lately() -> None:
    brokers: list[Document] = [{"id": 1, "rack": "a", "state": "draining"}, {"id": 2, "rack": "a"}, {"id": 3, "rack": "b"}]
    everything = (("t", 0), ("t", 1))
    made = plan(cluster([[1], [2]], brokers), goals(LEVEL), PlanOptions(resting=everything))
    assert [(c.partition, c.replicas_before) for c in made.proposals] == [(0, (1,))]
    brokers[0]["state"] = "active"
    made = plan(cluster([[1, 2], [2, 3]], brokers), goals(RACK), PlanOptions(resting=everything))
    assert [c.partition for c in made.proposals] == [0]


def test_what_rests_is_of_the_plans_identity_and_is_explained() -> None:
    snapshot = cluster([[1], [1], [2]], [{"id": b, "rack": None} for b in (1, 2)])
    one, other = (plan(snapshot, goals(LEVEL), PlanOptions(resting=(("t", n),))) for n in (0, 1))
    assert one.options["resting"] != other.options["resting"]
    assert one.plan_id != other.plan_id
    text = explain_partition(snapshot, goals(LEVEL), PlanOptions(resting=(("t", 0),)), "t", 0)
    assert "It was moved lately, so it would not be moved for balance until its cooldown is over" in text
