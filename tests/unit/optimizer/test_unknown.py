"""Unknown is not zero: a load that partitions lack is said, with the goals that it weakens, and a budget in bytes is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.report.verdict import verdict
from optimizer.whatif import check_whatifs
from tests.unit.optimizer.scenarios import DISK, FULL, IN, REPLICAS, cluster, planned, told

Document = dict[str, Any]
BROKERS = [{"id": b, "capacity": {"disk": 1e12}} for b in (1, 2, 3)]


def some_known(known: int, **more: Any) -> Document:
    """Ten partitions of 200 GB on broker 1, of which the first `known` say so."""
    return cluster(BROKERS, [([1], {"network_in": 1e6} | ({"disk": 2e11} if n < known else {})) for n in range(10)], **more)


def test_a_load_that_some_partitions_lack_is_said_with_the_goals_that_it_weakens() -> None:
    result = planned(some_known(4), FULL, DISK, IN)
    words = told(result)
    assert "disk is unknown for 6 of 10 partitions: capacity-disk, usage_distribution-disk judge the others only" in words
    assert {g.name: g.unknown for g in result.goals} == {
        "capacity-disk": 6, "usage_distribution-disk": 6, "usage_distribution-network_in": 0,
    }  # fmt: skip
    assert "judged by 4 of 10 partitions, the load of the others is unknown" in result.goals[0].explanation
    assert "capacity-disk judged without 6 partitions whose load is unknown" in verdict(result).sentence
    assert result.summary.unsized_moves + round(result.summary.bytes_to_move / 2e11) == result.summary.replica_moves


def test_where_no_partition_has_a_size_no_byte_is_told() -> None:
    result = planned(some_known(0), FULL, REPLICAS)
    assert result.summary.unsized_moves == result.summary.replica_moves > 0
    assert "the size of 10 of 10 partitions is unknown" in told(result)
    said = verdict(result)
    assert "(unknown size)" in said.remedy
    assert "1 hard goal is not checked: capacity-disk (no disk load in the snapshot)" in said.unchecked


def test_with_all_sizes_known_or_storage_shared_nothing_is_called_unknown() -> None:
    for snapshot in (some_known(10), some_known(0, storage="shared")):
        result = planned(snapshot, IN, REPLICAS)
        assert result.summary.unsized_moves == 0
        assert "unknown" not in told(result)


@pytest.mark.parametrize(("known", "refused"), [(0, True), (4, True), (10, False)])
def test_a_budget_in_bytes_is_refused_where_sizes_are_unknown(known: int, refused: bool) -> None:
    snapshot = build_snapshot(some_known(known))
    goals = parse_goals(json.dumps({"version": 1, "goals": [REPLICAS]}), "goals.yaml")
    if not refused:
        check_whatifs(snapshot, goals, PlanOptions(max_bytes=10))
        return
    with pytest.raises(ConfigurationError, match=f"the size of {10 - known} of 10 partitions is unknown"):
        check_whatifs(snapshot, goals, PlanOptions(max_bytes=10))


def test_a_cluster_that_looks_level_is_not_called_balanced_while_a_hard_limit_is_unchecked() -> None:
    bare = [{"id": b} for b in (1, 2, 3)]
    level = cluster(bare, [([b], {"network_in": 1e6, "disk": 1e9}) for b in (1, 2, 3)])
    said = verdict(planned(level, FULL, REPLICAS))
    assert said.tone == "unchecked"
    assert "no broker has a capacity for disk" in said.sentence
    empty = verdict(planned(cluster(bare, []), REPLICAS))
    assert empty.tone == "unjudged"
    assert empty.situation == "Nothing to judge: the cluster has no replicas"
