"""A plan with a calibration: capacities it fills, loads it replaces, and what the plan says of both."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from cluster_model.build import build_snapshot
from cluster_model.partition_loads import PartitionLoads
from cluster_model.snapshot import Snapshot
from goals.document import load_goals
from goals.model import GoalSet
from optimizer.capacity import capacity_notes, with_capacity
from optimizer.detectors.sight import Sight
from optimizer.options import AddedBroker, PlanOptions
from optimizer.planner import plan
from optimizer.report import render_text, to_html, to_json, to_markdown
from optimizer.whatif import apply_whatifs

CALIBRATION = """version: 1
cluster_id: test
made_at: 2026-11-02T00:00:00Z
history: {begin: 2026-10-01T00:00:00Z, end: 2026-11-01T00:00:00Z, window: 300, samples: 1, brokers: 1, partitions: 1, digest: x}
resources:
  network_in: {mean: 1, noise: 0.03, bound: 0.14, var: 0.56, min_load: 0}
capacity:
  - {broker: 1, resource: network_in, value: 5, confidence: high, evidence: a}
  - {broker: 2, resource: network_in, value: 40, confidence: medium, evidence: b}
  - {broker: 3, resource: network_in, value: 7, confidence: low, evidence: c}
  - {broker: 9, resource: network_in, value: 7, confidence: high, evidence: gone}
"""
NAME = "usage_distribution-network_in"


def partition(number: int, replicas: list[int], load: float, follower: dict[str, float] | None = None) -> dict[str, Any]:
    vectors = {"leader_load": {"network_in": load, "disk": 10.0}}
    return {"topic": "t", "partition": number, "replicas": replicas, "leader": replicas[0], **vectors} | (
        {"follower_load": follower} if follower is not None else {}
    )


def cluster(capacity: dict[int, float] | None = None, cluster_id: str = "test", partitions: list[dict[str, Any]] | None = None) -> Snapshot:
    brokers = [
        {"id": b, "capacity": {"network_in": capacity[b]}} if capacity is not None and b in capacity else {"id": b} for b in (1, 2, 3)
    ]
    rows = partitions if partitions is not None else [partition(n, [1], 1.0) for n in range(8)]
    return build_snapshot(
        {
            "version": 1, "cluster_id": cluster_id, "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
            "brokers": brokers, "partitions": rows,
        }
    )  # fmt: skip


@pytest.fixture
def goals(tmp_path: Path) -> GoalSet:
    (tmp_path / "c.yaml").write_text(CALIBRATION)
    path = tmp_path / "goals.yaml"
    levelled = "{kind: usage_distribution, resource: network_in}"
    path.write_text(f"version: 1\ngoals: [{{kind: capacity, resource: network_in, limit: 0.8}}, {levelled}]\ncalibration: c.yaml\n")
    return load_goals(path)


def test_capacities_that_a_snapshot_leaves_out_are_filled_and_no_lower_bounds(goals: GoalSet) -> None:
    filled = with_capacity(cluster({2: 10.0}), goals).capacity["network_in"]
    assert filled.tolist()[:2] == [5.0, 10.0]
    assert np.isnan(filled[2])


def test_a_plan_keeps_to_a_calibrated_capacity_and_says_where_it_is_from(goals: GoalSet) -> None:
    """Broker 1 may carry 4 (80 % of 5), which only the calibration knows."""
    made = plan(cluster(), goals)
    limit = made.goals[0]
    assert limit.before is not None
    assert limit.before.violations == 1
    assert limit.status == "satisfied"
    assert "capacity from c.yaml (2026-10-01 to 2026-11-01): network_in of 2 brokers" in made.notes
    low = "no capacity for network_in of 1 broker: in c.yaml, estimates of low confidence are lower bounds and not used"
    assert low in made.notes
    assert plan(cluster(), replace(goals, calibrated=None)).goals[0].status == "skipped"


def test_a_snapshot_that_has_every_capacity_takes_none(goals: GoalSet) -> None:
    full = cluster({1: 1e3, 2: 1e3, 3: 1e3})
    assert with_capacity(full, goals) is full
    assert capacity_notes(full, goals) == ()


def test_broker_ids_of_another_cluster_mean_nothing(goals: GoalSet) -> None:
    other = cluster(cluster_id="other")
    assert with_capacity(other, goals) is other
    assert capacity_notes(other, goals) == ("c.yaml is of cluster test, the snapshot of other: the capacities in it are not used",)
    assert with_capacity(cluster(cluster_id=""), goals).capacity["network_in"][0] == 5.0


def test_an_imagined_broker_takes_the_median_with_calibrated_capacities(goals: GoalSet) -> None:
    seen = apply_whatifs(cluster(), goals, PlanOptions(add_brokers=(AddedBroker(7),)))
    assert seen.capacity["network_in"][seen.row_of_broker[7]] == 5.0


def test_detectors_see_calibrated_capacities_too(goals: GoalSet) -> None:
    """Else the service would plan by utilization and never notice that a broker is full."""
    assert Sight(cluster(), goals).by_capacity().shares[0, 0] == pytest.approx(8 / 5)


def test_each_filled_value_stands_in_the_plan_with_its_origin(goals: GoalSet) -> None:
    made = plan(cluster(), goals)
    written = json.loads(to_json(made))
    assert written["goals"][1]["from_calibration"] == {
        "bound": "c.yaml: resources.network_in.bound 0.14, from 2026-10-01 to 2026-11-01",
        "var": "c.yaml: resources.network_in.var 0.56, from 2026-10-01 to 2026-11-01",
        "min_load": "c.yaml: resources.network_in.min_load 0, from 2026-10-01 to 2026-11-01",
    }
    assert "from_calibration" not in written["goals"][0]
    line = f"from c.yaml (2026-10-01 to 2026-11-01): {NAME} bound 0.14, var 0.56, min_load 0 B"
    assert line in written["notes"]
    page = StringIO()
    render_text(made, Console(width=200, file=page))
    named = line.replace(NAME, "network_in")  # one name for a goal in everything that people read
    assert named in " ".join(page.getvalue().split())
    assert "bound 0.14, var 0.56" in to_html(made)
    assert "bound 0.14, var 0.56" in to_markdown(made)


def loads(**amounts: list[float]) -> PartitionLoads:
    return PartitionLoads("p95", "c.yaml (2026-10-01 to 2026-11-01)", {name: np.array(of) for name, of in amounts.items()})


NAN = float("nan")


def test_leaders_take_the_amount_and_followers_the_same_ratio() -> None:
    given = cluster(
        partitions=[
            partition(0, [1, 2], 10.0),  # follower copies
            partition(1, [1, 2], 10.0, {"network_in": 5.0, "disk": 10.0}),
            partition(2, [1, 2], 0.0, {"network_in": 5.0}),  # no ratio
            partition(3, [1, 2], 10.0, {"disk": 10.0}),  # follower takes no traffic
            partition(4, [1, 2], 10.0),  # not in the loads
        ]
    )
    table = loads(network_in=[30.0, 30.0, 30.0, 30.0, NAN], cpu=[1.0, 1.0, 1.0, 1.0, NAN])
    seen = table.applied(given)
    leader, follower = seen.vectors("network_in")
    assert leader.tolist() == [30.0, 30.0, 30.0, 30.0, 10.0]
    assert follower.tolist() == [30.0, 15.0, 30.0, 0.0, 10.0]
    assert seen.vectors("cpu")[0].tolist() == [1.0, 1.0, 1.0, 1.0, 0.0]
    assert seen.vectors("cpu")[1].tolist() == [0.0] * 5
    assert seen.vectors("disk")[0].tolist() == [10.0] * 5
    assert table.applied(seen).vectors("network_in")[1].tolist() == follower.tolist()
    assert table.note(given) == (
        "loads are the p95 of c.yaml (2026-10-01 to 2026-11-01): network_in of 4, cpu of 4 of 5 partitions; the others keep the "
        "snapshot's; followers of 1 take network_in of their leader and nothing else, as the snapshot has no load of their leader "
        "that would give a ratio"
    )


def test_a_plan_for_the_peak_is_another_plan_and_records_it(goals: GoalSet) -> None:
    """Partitions that are equal now but not at their peak: planned for now nothing moves, planned for the peak one does."""
    rows = [partition(n, [1 + n % 3], 1.0) for n in range(6)]
    given, wanted = cluster(partitions=rows), replace(goals, calibrated=None)
    peak = loads(network_in=[3.0, 1.0, 1.0, 3.0, 1.0, 1.0])
    assert not plan(given, wanted).proposals
    options = PlanOptions(loads=peak)
    made = plan(given, wanted, options)
    assert made.proposals
    assert made.options["load"] == "p95"
    assert made.options["loads_digest"] == peak.digest
    assert made.snapshot_digest == given.digest
    assert made.notes[-1].startswith("loads are the p95 of c.yaml")
    other = plan(given, wanted, PlanOptions(loads=loads(network_in=[3.0, 1.0, 1.0, 3.0, 1.0, 1.01])))
    assert other.options["loads_digest"] != peak.digest


def test_a_second_plan_after_the_first_is_empty(goals: GoalSet) -> None:
    """With capacities and loads from a calibration as without: else a service would move the same things for ever."""
    rows = [partition(n, [1, 2], 1.0 + n % 3, {"network_in": 0.5, "disk": 10.0}) for n in range(12)]
    given = cluster(partitions=rows)
    options = PlanOptions(loads=loads(network_in=[1.0 + n % 5 for n in range(11)] + [NAN]))
    made = plan(given, goals, options)
    assert made.proposals
    lists, leaders = given.replicas.copy(), given.leader.copy()
    for change in made.proposals:
        row = given.row_of_partition(change.topic, change.partition)
        lists[row] = [given.row_of_broker[b] for b in change.replicas_after]
        assert change.leader_after is not None
        leaders[row] = given.row_of_broker[change.leader_after]
    assert not plan(given.with_placement(lists, leaders), goals, options).proposals


def test_loads_are_scaled_after_they_are_replaced() -> None:
    given = cluster(partitions=[partition(0, [1], 1.0)])
    seen = apply_whatifs(given, GoalSet(()), PlanOptions(loads=loads(network_in=[4.0]), scale_load=(("t", 2.0),)))
    assert seen.vectors("network_in")[0].tolist() == [8.0]
