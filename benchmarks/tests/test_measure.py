"""What a row of the benchmark says is what the plan did; peak memory is that of planning alone."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from benchmarks.apart import apart
from benchmarks.measure import Job, Timing, hard_forced, measured, placement_after, row_of
from benchmarks.planner import Cell, job_of
from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.clusters.goals import goals_text

VARYING = {"cpu_s", "first_cpu_s", "wall_s", "peak_mb", "loaded_mb"}  # not the same in each run
TIMING = Timing(cpu_s=0.1, first_cpu_s=0.2, wall_s=0.3, peak_mb=100.0, loaded_mb=50.0, repeated=True)


def small_job(**replaced: Any) -> Job:
    return dataclasses.replace(job_of(Cell("8x400", 8, 400, "b", "even", 0.10, 0, "score", 1)), **replaced)


def planned(job: Job) -> Plan:
    return plan(job.snapshot, parse_goals(job.goals, "test"), PlanOptions(acceptance=job.acceptance))


def test_a_row_says_what_the_plan_does() -> None:
    job = small_job()
    row, result = measured(job), planned(job)
    assert (row.moves, row.bytes_moved) == (result.summary.replica_moves, result.summary.bytes_to_move)
    assert row.moves_over_bound == row.moves / result.lower_bounds.replica_moves
    assert (row.brokers, row.replicas) == (8, job.snapshot.replica_count)
    assert row.repeated
    assert 0 < row.loaded_mb <= row.peak_mb


def test_the_placement_after_a_plan_is_level() -> None:
    job = small_job()
    result = planned(job)
    after = placement_after(job.snapshot, result)
    for broker, load in zip(result.brokers, after.broker_load("network_in"), strict=True):
        assert load == pytest.approx(broker.after["network_in"])
    assert (after.replicas != job.snapshot.replicas).any()


def one_resource(brokers: int, rates: list[float]) -> Job:
    """Partitions with one replica each, all on broker 1."""
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": b} for b in range(1, brokers + 1)],
        "partitions": [
            {"topic": "t", "partition": p, "replicas": [1], "leader": 1, "leader_load": {"network_in": rate}}
            for p, rate in enumerate(rates)
        ],
    }  # fmt: skip
    goals = {"version": 1, "goals": [{"kind": "usage_distribution", "resource": "network_in"}]}
    return small_job(snapshot=build_snapshot(document), goals=json.dumps(goals))


def lopsided() -> Job:
    """One large partition; what else there is cannot fill the other brokers."""
    return one_resource(3, [100.0, 1.0, 1.0, 1.0])


def test_a_plan_that_only_says_it_found_nothing_explains_nothing() -> None:
    """Three equal partitions on two brokers: outside their range, and no single replica is larger than a band."""
    job = one_resource(2, [1.0, 1.0, 1.0])
    result = planned(job)
    assert all(b.why for b in result.brokers)
    assert row_of(job, result, TIMING).unexplained == 2


def test_brokers_left_out_with_a_proof_are_not_reducible() -> None:
    job = lopsided()
    row = row_of(job, planned(job), TIMING)
    assert row.explained == 3
    assert row.unexplained == 0
    assert row.in_band == 1.0
    assert row.out_by_goal == {"usage_distribution-network_in": 3}


def test_brokers_left_out_without_a_proof_count() -> None:
    job = lopsided()
    result = planned(job)
    silent = tuple(dataclasses.replace(b, why=None) if b.id == 2 else b for b in result.brokers)
    row = row_of(job, dataclasses.replace(result, brokers=silent), TIMING)
    assert (row.explained, row.unexplained) == (2, 1)
    assert row.in_band == 0.0


def over_capacity() -> Snapshot:
    """Broker 1 of two holds 30 of `fixed` and 30 of `free`, with room for 20."""
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": b, "capacity": {"disk": 20.0}} for b in (1, 2)],
        "partitions": [
            {"topic": topic, "partition": 0, "replicas": [1], "leader": 1, "leader_load": {"disk": 30.0}}
            for topic in ("fixed-1", "free")
        ],
    }  # fmt: skip
    return build_snapshot(document)


@pytest.mark.parametrize(("excluded", "forced"), [(["fixed-*"], 1), (["other-*"], 0), ([], 0)])
def test_only_excluded_topics_force_hard_violations(excluded: list[str], forced: int) -> None:
    goals = {"version": 1, "goals": [{"kind": "capacity", "resource": "disk", "limit": 1.0}],
             "constraints": {"exclude_topics": excluded}}  # fmt: skip
    assert hard_forced(over_capacity(), parse_goals(json.dumps(goals), "test")) == forced


def test_a_band_is_that_of_all_six_goals() -> None:
    goals = parse_goals(goals_text("topics", 0.02), "test").goals
    assert sorted(g.bound for g in goals if g.kind == "usage_distribution") == [0.02] * 6
    assert len([g for g in goals if g.kind == "topic_distribution"]) == 2
    assert [g.kind for g in goals if g.hard] == ["rack_aware", *["capacity"] * 4]


def test_a_process_of_its_own_does_not_count_the_memory_of_this_one() -> None:
    ballast = np.ones(40_000_000)  # 320 MB that this process holds
    row = apart("benchmarks.measure", "measured", small_job())
    assert row.peak_mb < 280
    again = dataclasses.asdict(measured(small_job()))
    assert {k: v for k, v in dataclasses.asdict(row).items() if k not in VARYING} == {
        k: v for k, v in again.items() if k not in VARYING
    }
    assert ballast.sum() > 0


def test_a_process_that_fails_ends_the_benchmark() -> None:
    with pytest.raises(SystemExit, match="no_such_function"):
        apart("benchmarks.measure", "no_such_function", None)
