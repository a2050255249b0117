"""What a rack can hold at all: an operator who is told that the rack rule forces it must be able to believe that."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.problem import COLUMN, FOLLOWING, KIND, LEADING, LIMIT, MOVABLE, RACK_LIMIT, RACK_OF, RF, STATE
from optimizer.why_totals import Totals
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


@pytest.mark.parametrize("variant", ["even", "rf-mixed", "everything", "racks"])
def test_a_rack_holds_what_its_partitions_have_to_have_there_and_may_have(variant: str) -> None:
    compiled = compile_problem(cluster(10, 1000, "b", 0, variant), parse_goals(goals_text(variant, 0.1), "test"), PlanOptions())
    problem, totals = compiled.problem, Totals(compiled)
    racks = problem.broker[:, RACK_OF]
    sizes = np.bincount(racks[problem.broker[:, STATE] == 0], minlength=racks.max() + 1)
    for g in np.flatnonzero(problem.goal[:, KIND] <= LIMIT).tolist():
        for rack in range(len(sizes)):
            least = most = 0.0
            for (limit, rf), vector in zip(problem.partition[:, [RACK_LIMIT, RF]].tolist(), problem.vector, strict=True):
                room = np.minimum(limit, sizes)
                low, high = max(rf - (room.sum() - room[rack]), 0), min(room[rack], rf)
                follows = vector[FOLLOWING, problem.goal[g, COLUMN]]
                more = vector[LEADING, problem.goal[g, COLUMN]] - follows
                whole = low >= rf > 0
                least += low * follows + (more if whole else min(more, 0.0) if low > 0 else 0.0)
                most += high * follows + (more if whole else max(more, 0.0) if high > 0 else 0.0)
            assert totals.rack(rack, g) == (least, most)
        largest = problem.vector[:, :, problem.goal[g, COLUMN]].max(axis=1)
        assert totals.movable(g) == largest[problem.partition[:, MOVABLE] == 1].sum()


def test_lists_of_hundreds_of_replicas_in_one_rack_are_added_up() -> None:
    """Limit and replication factor are small numbers each, and their product is not."""
    count = 200
    document = {
        "version": 1, "cluster_id": "wide", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": b, "rack": "r"} for b in range(count + 1)],
        "partitions": [{
            "topic": "t", "partition": 0, "replicas": list(range(count)), "leader": 0,
            "leader_load": {"network_in": 3.0}, "follower_load": {"network_in": 1.0},
        }],
    }  # fmt: skip
    goals = "{version: 1, goals: [{kind: usage_distribution, resource: network_in, bound: 0.1}]}"
    compiled = compile_problem(build_snapshot(document), parse_goals(goals, "test"), PlanOptions())
    assert Totals(compiled).rack(0, 0) == (count + 2.0, count + 2.0)


def test_what_excluded_brokers_lead_is_no_load_of_the_others() -> None:
    """"Partitions larger than a target range leave -9.06 MB/s for each other broker": excluded brokers led most of them, for good."""
    loads = [(1, 50.0), (4, 60.0), *((b, 10.0) for b in (2, 2, 3, 3))]
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4, "state": "excluded"}],
        "partitions": [
            {"topic": "t", "partition": n, "replicas": [b], "leader": b, "leader_load": {"network_in": load}}
            for n, (b, load) in enumerate(loads)
        ],
    }  # fmt: skip
    goals = "{version: 1, goals: [{kind: usage_distribution, resource: network_in, bound: 0.1}]}"
    compiled = compile_problem(build_snapshot(document), parse_goals(goals, "test"), PlanOptions())
    rows, held = Totals(compiled).giants(0, 1)
    assert (rows.tolist(), held) == ([0], 50.0)
