"""`infeasible` needs a proof, and so does exit code 4: an operator who reads it buys brokers."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from optimizer.plan import Plan
from tests.unit.optimizer.scenarios import DISK, FULL, IN, LEADERS, RACK, REPLICAS, cluster, planned, told

Document = dict[str, Any]


def status(result: Plan, name: str) -> str:
    return next(g.status for g in result.goals if g.name == name)


def tight(seed: int) -> Document:
    """Three to five brokers of about as much disk as their replicas take, with racks for some seeds."""
    r = Random(seed)
    count = r.randint(3, 5)
    sizes = [float(r.randint(5, 40)) for _ in range(r.randint(4, 9))]
    factor = r.choice((1, 1, 2))
    room = sum(sizes) * factor / count * r.choice((0.97, 1.15, 1.4, 1.8))
    brokers = [{"id": b, "rack": f"r{b % 3}", "capacity": {"disk": room * r.choice((1.0, 1.0, 0.7))}} for b in range(1, count + 1)]
    ids = list(range(1, count + 1))
    return cluster(brokers, [(r.sample(ids[:2] if factor == 1 else ids, factor), {"disk": size}) for size in sizes])


def can_be_met(snapshot: Document) -> bool:
    """Whether some placement keeps the disk limit of every broker and the rack rule: by an exact solver."""
    brokers, parts = snapshot["brokers"], snapshot["partitions"]
    b, p = len(brokers), len(parts)
    racks = sorted({x["rack"] for x in brokers})
    rows, low, high = [], [], []

    def add(entries: dict[int, float], least: float, most: float) -> None:
        row = np.zeros(b * p)
        for i, value in entries.items():
            row[i] = value
        rows.append(row)
        low.append(least)
        high.append(most)

    for j, part in enumerate(parts):
        factor = len(part["replicas"])
        add({j * b + i: 1.0 for i in range(b)}, factor, factor)
        for rack in racks:
            add({j * b + i: 1.0 for i in range(b) if brokers[i]["rack"] == rack}, 0, -(-factor // len(racks)))
    for i, broker in enumerate(brokers):
        add({j * b + i: parts[j]["leader_load"]["disk"] for j in range(p)}, 0, broker["capacity"]["disk"])
    bounds = Bounds(np.zeros(b * p), np.ones(b * p))
    found = milp(np.zeros(b * p), constraints=LinearConstraint(np.array(rows), low, high), integrality=np.ones(b * p), bounds=bounds)
    return bool(found.success)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_called_infeasible_that_a_placement_meets(seed: int) -> None:
    snapshot = tight(seed)
    result = planned(snapshot, RACK, FULL)
    if can_be_met(snapshot):
        assert not result.infeasible
    left = [g for g in result.goals if g.after is not None and g.after.violations]
    assert all(g.status in ("infeasible", "violated") for g in left)
    assert all("no acceptable action was found" in g.explanation for g in left if g.status == "violated")


def test_the_clusters_of_the_test_above_are_of_both_kinds() -> None:
    met = [can_be_met(tight(seed)) for seed in range(40)]
    assert 8 < sum(met) < 38


def test_more_than_all_disks_hold_is_infeasible_and_not_where_a_budget_ended_the_search() -> None:
    brokers = [{"id": b, "capacity": {"disk": 100.0}} for b in (1, 2)]
    snapshot = cluster(brokers, [([1], {"disk": 50.0})] * 6)
    assert status(planned(snapshot, FULL), "capacity-disk") == "infeasible"
    budgeted = planned(snapshot, FULL, max_moves=1)
    assert status(budgeted, "capacity-disk") == "violated"
    assert not budgeted.infeasible


def test_a_rack_rule_that_brokers_cannot_keep_is_proven_and_one_that_a_limit_hinders_is_not() -> None:
    brokers = [{"id": b, "rack": "a"} for b in (1, 2, 3)] + [{"id": 4, "rack": "b"}]
    proven = planned(cluster(brokers, [([1, 2, 3, 4], {})]), RACK)
    assert status(proven, "rack_aware") == "infeasible"
    assert "its racks may hold 3 of 4" in told(proven)
    small = [{"id": b, "rack": "a" if b < 3 else "b", "capacity": {"disk": 100.0 if b < 3 else 5.0}} for b in (1, 2, 3)]
    hindered = planned(cluster(small, [([1, 2], {"disk": 10.0})]), RACK, FULL)
    assert status(hindered, "rack_aware") == "violated"
    assert not hindered.infeasible


def test_a_budget_with_room_left_is_no_reason() -> None:
    brokers = [{"id": b, "capacity": {"disk": 100.0}} for b in (1, 2, 3)]
    snapshot = cluster(brokers, [([1], {"disk": 70.0}), ([1], {"disk": 70.0}), ([2], {"disk": 70.0}), ([3], {"disk": 70.0})])
    enough = planned(snapshot, FULL, max_moves=50, max_bytes=10**6)
    assert "is used up" not in told(enough)
    none = planned(snapshot, FULL, max_moves=0)
    assert "the budget of 0 replica moves is used up" in told(none)


@pytest.mark.parametrize(
    ("snapshot", "goals", "proven"),
    [
        (cluster([1, {"id": 2, "state": "draining"}], [([1, 2], {})]), [REPLICAS], True),  # needs two brokers
        (cluster([1, {"id": 2, "state": "dead"}], [([2], {})]), [REPLICAS], True),  # nothing to copy from
        (cluster([{"id": 1, "capacity": {"disk": 10.0}}, {"id": 2, "state": "draining"}], [([2], {"disk": 20.0})]), [FULL], True),
        # broker 1 has no room while its own replica stays; with a swap of places it might
        (cluster([{"id": 1, "capacity": {"disk": 30.0}}, {"id": 3, "capacity": {"disk": 19.0}}, {"id": 2, "state": "draining"}],
                 [([2], {"disk": 20.0}), ([1], {"disk": 12.0})]), [FULL], None),
    ],
)  # fmt: skip
def test_a_broker_that_cannot_be_emptied_is_named_only_with_a_proof(
    snapshot: Document, goals: list[Document], proven: bool | None
) -> None:
    result = planned(snapshot, *goals)
    if proven is None:
        assert result.cannot_be_emptied == ()
    else:
        assert result.cannot_be_emptied == ((2,) if proven else ())
    assert planned(snapshot, *goals, max_moves=0).cannot_be_emptied == ()


def test_with_no_active_broker_nothing_is_called_satisfied() -> None:
    snapshot = cluster([{"id": b, "state": "excluded"} for b in (1, 2)], [([1, 2], {"disk": 1.0, "network_in": 1.0})])
    result = planned(snapshot, RACK, DISK, IN, LEADERS)
    assert {g.status for g in result.goals} == {"skipped"}
    assert "no broker is active" in told(result)


@pytest.mark.parametrize("goals", [[REPLICAS], [LEADERS], [IN, LEADERS, REPLICAS], [{**LEADERS, "bound": 0.01}]])
@pytest.mark.parametrize("brokers", [2, 3, 5])
@pytest.mark.parametrize("factor", [1, 2])
def test_a_partition_without_a_leader_gets_one_though_that_breaks_a_band(goals: list[Document], brokers: int, factor: int) -> None:
    ids = list(range(1, brokers + 1))
    lists = [([ids[(n + k) % brokers] for k in range(factor)], {"network_in": 1.0}) for n in range(brokers)]
    snapshot = cluster(ids, [*lists, (ids[:factor], {"network_in": 40.0})])
    snapshot["partitions"][-1]["leader"] = None
    result = planned(snapshot, *goals)
    assert [c.leader_after for c in result.proposals if c.partition == brokers] != []
    assert "without a leader" not in told(result)


def test_a_hard_goal_that_keeps_a_partition_without_a_leader_is_named() -> None:
    """"No active replica that may lead" was said of one that has two."""
    snapshot = cluster([1, 2], [([1, 2], {}), ([2, 1], {}), ([1, 2], {})])
    snapshot["partitions"][2]["leader"] = None
    result = planned(snapshot, {"kind": "count_limit", "resource": "leaders", "max": 1})
    assert "t-2 no leader, and each active replica that may lead would break a hard goal (count_limit-leaders)" in told(result)


@pytest.mark.parametrize(("most", "moved"), [(55, 0), (56, 1)])
def test_the_band_of_a_topic_ends_where_its_product_does_and_not_a_rounding_later(most: int, moved: int) -> None:
    """m 50, bound 0.1: 55 is the last count within it; 50 x 1.1 is a little above 55 in floating point."""
    snapshot = cluster([1, 2], [([1], {})] * most + [([2], {})] * (100 - most))
    result = planned(snapshot, {"kind": "topic_distribution", "resource": "replicas", "bound": 0.1})
    assert result.summary.replica_moves == moved
