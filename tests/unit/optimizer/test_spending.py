"""A spent budget ends the search for moves, and what reasons are made of does not outlive the plan."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.files import read_snapshot
from goals.document import load_goals, parse_goals
from optimizer.best_try import after_plan
from optimizer.compile import compile_problem
from optimizer.course import Placement, step_round
from optimizer.options import PlanOptions
from optimizer.placement.log import budget_for, is_spent
from optimizer.planner import plan
from optimizer.prefixes import undone_of
from optimizer.problem import Compiled
from optimizer.why_totals import Totals
from tests.clusters.synthetic import cluster as cluster_of
from tests.unit.optimizer.scenarios import cluster


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    """Partitions of 10 and of 30 bytes."""
    partitions = [([1, 2], {"disk": 10.0}), ([2, 1], {"disk": 30.0})]
    return compile_problem(build_snapshot(cluster([1, 2, 3], partitions)), load_goals(None, "counts"), PlanOptions())


@pytest.mark.parametrize(
    ("options", "used", "spent"),
    [
        (PlanOptions(), (500.0, 500.0, 500.0), False),
        (PlanOptions(max_moves=2), (1.0, 10.0, 1.0), False),
        (PlanOptions(max_moves=2), (2.0, 20.0, 2.0), True),
        (PlanOptions(max_bytes=15), (0.0, 0.0, 0.0), False),  # the small one still fits
        (PlanOptions(max_bytes=5), (0.0, 0.0, 0.0), True),
        (PlanOptions(max_bytes=40), (1.0, 10.0, 1.0), False),
        (PlanOptions(max_bytes=40), (3.0, 30.0, 3.0), True),  # one of typical size does not
        (PlanOptions(max_partitions=3), (3.0, 30.0, 3.0), True),
    ],
)
def test_a_budget_is_spent_when_nothing_more_fits(
    compiled: Compiled, options: PlanOptions, used: tuple[float, float, float], spent: bool
) -> None:
    """Looking on, one step at a time, took minutes at a million replicas."""
    budget = budget_for(compiled, options)._replace(spent=np.array(used))
    assert is_spent(compiled.problem, budget) is spent


def test_sums_of_proofs_are_gone_with_the_plan(compiled: Compiled) -> None:
    """Tens of megabytes of the last plan stayed until Python looked for cycles, in a service that plans for months."""
    gc.disable()
    try:
        totals = Totals(compiled)
        totals.movable(0), totals.rack(0, 0), totals.giants(0, 0)
        gone = weakref.ref(totals)
        del totals
        assert gone() is None
    finally:
        gc.enable()


EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.parametrize(
    ("name", "options", "left"),
    [
        ("three-brokers.json", PlanOptions(max_moves=3), 1),
        ("three-brokers.json", PlanOptions(max_moves=4), 0),
        ("three-brokers.json", PlanOptions(max_partitions=4), 0),
        ("skewed-12-brokers.json.gz", PlanOptions(max_moves=8), 1),
        ("skewed-12-brokers.json.gz", PlanOptions(max_moves=10), 0),
        ("skewed-12-brokers.json.gz", PlanOptions(max_bytes=120 * 10**9), 1),  # one broker is 108 GB over its limit, the other 442
        ("skewed-12-brokers.json.gz", PlanOptions(max_bytes=580 * 10**9), 0),
    ],
)
def test_a_budget_ends_as_many_hard_violations_as_it_is_enough_for(name: str, options: PlanOptions, left: int) -> None:
    """With four moves the plan of an example ended none of two disk violations, and 200 GB did not help the broker that needed 108."""
    found = plan(read_snapshot(EXAMPLES / name), parse_goals("version: 1\npreset: default\n", "test"), options)
    disk = next(g for g in found.goals if g.name == "capacity-disk")
    assert disk.before is not None
    assert disk.after is not None
    assert (disk.before.violations, disk.after.violations) == (2, left)
    summary = found.summary
    assert summary.replica_moves <= (options.max_moves or summary.replica_moves)
    assert summary.bytes_to_move <= (options.max_bytes or summary.bytes_to_move)
    assert summary.partitions <= (options.max_partitions or summary.partitions)


BANDS = "version: 1\ngoals:\n" + "".join(
    f"  - {{kind: usage_distribution, resource: {load}, bound: 0.1}}\n" for load in ("network_in", "network_out", "disk", "replicas")
)


@pytest.mark.parametrize("share", [0.1, 0.4])
@pytest.mark.parametrize("limited", ["max_moves", "max_bytes"])
@pytest.mark.parametrize("seed", range(940000, 940004))
def test_a_budget_reaches_what_single_steps_reach(seed: int, limited: str, share: float) -> None:
    """With eight moves, single moves of the greatest gain brought twice as much as the plan; at half its bytes, twice as much."""
    snapshot, goals = cluster_of(20, 900, "b", seed), parse_goals(BANDS, "test")
    summary = plan(snapshot, goals, PlanOptions()).summary
    moves, data = int(share * summary.replica_moves), int(share * summary.bytes_to_move)
    options = PlanOptions(max_moves=moves) if limited == "max_moves" else PlanOptions(max_bytes=data)
    compiled = compile_problem(snapshot, goals, options)
    start = Placement(compiled.replicas, compiled.lead)
    steps = start.after([step_round(compiled, options, start)]).state(compiled)
    left = after_plan(snapshot, compiled, plan(snapshot, goals, options))
    assert undone_of(compiled, left)[-1] <= 1.1 * undone_of(compiled, steps)[-1]
