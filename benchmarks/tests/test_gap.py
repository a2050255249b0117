"""What the optimality gap is made of: the plan's own deviation and bytes, beside the optimum, and clusters without a proof apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.exact import Answer
from benchmarks.gap import Gap, held_by, instance_of, led_by, measured, settled, small_case, summary
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan

GAP = Gap(
    seed=0, brokers=4, partitions=9, resources=2, racked=False, band=0.10, acceptance="score", worst_before=0.6,
    worst=0.15, least_worst=0.12, bytes_moved=0.3, fewest_bytes=0.2, unexplained=0,
)  # fmt: skip


@pytest.mark.parametrize("seed", range(9))
def test_small_cases_are_legal_and_small(seed: int) -> None:
    snapshot = small_case(seed, 0.10).snapshot
    assert 3 <= snapshot.broker_count <= 6
    assert 8 <= snapshot.partition_count <= 24
    assert (snapshot.replicas[:, 0] != snapshot.replicas[:, 1]).all()
    if snapshot.racks[0] is not None:
        racks = np.array(snapshot.racks)[snapshot.replicas]
        assert (racks[:, 0] != racks[:, 1]).all()


def test_the_model_sees_the_loads_that_the_plan_reports() -> None:
    case = small_case(4, 0.10)
    result = plan(case.snapshot, parse_goals(case.goals, "gap"), PlanOptions())
    instance = instance_of(case, result)
    worst = max(g.before.max_deviation or 0.0 for g in result.goals if g.before is not None)
    assert instance.worst(held_by(case.snapshot), led_by(case.snapshot)) == pytest.approx(max(worst, 0.10))


@pytest.mark.parametrize("acceptance", ["score", "potential"])
def test_a_measured_gap_is_never_negative(acceptance: str) -> None:
    gap = measured(3, 0.10, "score" if acceptance == "score" else "potential", time_limit=30.0)
    assert gap.least_worst is not None
    assert gap.fewest_bytes is not None
    assert gap.band <= gap.least_worst <= gap.worst <= gap.worst_before
    assert 0.0 <= gap.fewest_bytes <= gap.bytes_moved


def test_only_a_proof_settles() -> None:
    assert settled(Answer(0.2, True), 0.3) == 0.2
    assert settled(Answer(0.2, False), 0.3) is None
    assert settled(Answer(None, True), 0.3) is None
    with pytest.raises(AssertionError, match="exact model"):
        settled(Answer(0.4, True), 0.3)


def test_summary_counts_unsettled_clusters_apart() -> None:
    unsettled = replace(GAP, least_worst=None, fewest_bytes=None)
    done = replace(GAP, worst=0.10, least_worst=0.10, bytes_moved=0.2)
    found = summary([GAP, unsettled, done])
    assert found["clusters"] == 3
    assert found["left_out_of_band"] == 2
    assert found["deviation_unsettled"] == found["bytes_unsettled"] == 1
    assert found["deviation_points"]["mean"] == pytest.approx(0.015)
    assert found["deviation_points"]["most"] == pytest.approx(0.03)
    assert found["bytes_relative"]["most"] == pytest.approx(0.5)
