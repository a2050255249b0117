"""An operator who allows ten moves does not wait longer for the plan than one who allows all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.parameters import ENDLESS
from optimizer.placement.evaluate import evaluate
from optimizer.placement.log import budget_for, has_partitions, plenty
from optimizer.placement.state import COST
from optimizer.planner import plan
from optimizer.search import bundle, polish, reduce, relief, search, sequence
from optimizer.search.balance import balance
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.actions import Document, Trial, partition, usage
from tests.unit.optimizer.scenarios import cluster as cluster_of

ROOT = Path(__file__).parents[2]
BUDGETS = (PlanOptions(), PlanOptions(max_moves=3), PlanOptions(max_bytes=10**10))
PROGRAM = """
import json
from tests.plans.test_small_budgets import evaluations
print(json.dumps(evaluations()))
"""


def evaluations() -> list[int]:
    """Actions that are judged for plans of two clusters with each of the `BUDGETS`: calls, which can be counted where kernels are
    interpreted. Of one cluster the number depends on chance."""
    snapshots, goals = [cluster(10, 400, "b", seed) for seed in range(2)], parse_goals(goals_text("even", 0.1), "test")
    found = []
    for options in BUDGETS:
        judge = Mock(wraps=evaluate)
        with ExitStack() as stack:
            for module, operator in ((reduce, "sideways"), (search, "repack"), (search, "swap_out")):  # their many steps judge no action
                stack.enter_context(patch.object(module, operator, lambda *_: 0))
            for module in (bundle, polish, relief, sequence):
                stack.enter_context(patch.object(module, "evaluate", judge))
            for snapshot in snapshots:
                plan(snapshot, goals, options)
        found.append(judge.call_count)
    return found


def test_a_small_budget_is_not_more_work_than_none() -> None:
    """With `max_moves` 10 a plan of a million replicas took four times as long as one without."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    unlimited, *limited = json.loads(done.stdout)
    assert min(limited) > 0
    assert max(limited) <= 5.0 * unlimited  # four lists of actions, of which the plan takes the best first part


@pytest.mark.parametrize(
    ("options", "moves"),
    [
        (PlanOptions(), ENDLESS), (PlanOptions(max_moves=10), 20), (PlanOptions(max_bytes=100), 20),
        (PlanOptions(max_partitions=4, max_moves=9), 8),
    ],
)
def test_a_target_has_twice_what_the_budget_is_enough_for(options: PlanOptions, moves: int) -> None:
    made = Trial([1, 2], [partition([1], disk=10.0), partition([2], disk=30.0)], usage())
    assert plenty(made.compiled.problem, budget_for(made.compiled, options)) == moves


def test_no_leadership_changes_where_no_partition_may() -> None:
    made = Trial([1, 2], [partition([1, 2], network_in=1.0)], usage())
    budget = budget_for(made.compiled, PlanOptions(max_partitions=3))
    assert has_partitions(budget._replace(spent=np.array([9.0, 9.0, 2.0])))
    assert not has_partitions(budget._replace(spent=np.array([0.0, 0.0, 3.0])))


def leaders(brokers: list[int | Document]) -> tuple[list[int], float]:
    """Leaders of six partitions on brokers 1 and 2, all led by 1 before, once leaderships alone may change; how far the potential fell."""
    made = Trial(brokers, [partition([1, 2], network_out=10.0, follower={}) for _ in range(6)], usage("network_out", bound=0.1))
    before = made.state.score[:, COST].sum()
    balance(made.compiled.problem, made.state, 0, 400, np.ones(len(made.compiled.goals), np.int64), False)
    after = [int(made.state.replicas[p, made.state.lead[p]]) for p in range(6)]
    assert (made.state.replicas == [0, 1]).all()
    return after, float(before - made.state.score[:, COST].sum())


def test_leaderships_alone_bring_what_they_can_into_range() -> None:
    after, fall = leaders([1, 2])
    assert sorted(after) == [0, 0, 0, 1, 1, 1]
    assert fall > 0.0


BROKEN = [  # broker 1 is dead: what it led needs a leader, and all that it holds another place
    *(([1, 2 + i % 3], 1 if i % 2 else None) for i in range(6)),
    *(([2 + i % 3, 1], 2 + i % 3) for i in range(6)),
]


def broken_cluster() -> Document:
    made = cluster_of([{"id": 1, "state": "dead"}, 2, 3, 4], [(replicas, {"network_out": 1e6, "disk": 1e9}) for replicas, _ in BROKEN])
    for entry, (_, leader) in zip(made["partitions"], BROKEN, strict=True):
        entry["leader"] = leader
    return made


@pytest.mark.parametrize("budget", [0, 1, 3, 8])
def test_leaders_come_first_where_moves_are_limited(budget: int) -> None:
    """A partition without a leader waited for the move of its other replica, which the budget was not enough for."""
    made = plan(build_snapshot(broken_cluster()), parse_goals(goals_text("even", 0.1), "test"), PlanOptions(max_moves=budget))
    assert made.summary.replica_moves == budget
    leaders = {change.partition: change.leader_after for change in made.proposals}
    assert all(leaders.get(p) in (2, 3, 4) for p, (_, leader) in enumerate(BROKEN) if leader in (None, 1))
    assert not [entry for entry in made.skipped if "no leader" in entry.reason]


def test_no_leader_for_want_of_budget() -> None:
    """Said was that no acceptable way to give it one had been found."""
    made = plan(build_snapshot(broken_cluster()), parse_goals(goals_text("even", 0.1), "test"), PlanOptions(max_partitions=1))
    reasons = {entry.reason for entry in made.skipped if "no leader" in entry.reason}
    assert reasons == {"no leader: the budget of 1 partition is used up; a larger budget would continue"}


def test_a_broker_that_is_left_alone_keeps_its_leaderships() -> None:
    assert leaders([{"id": 1, "state": "excluded"}, 2, 3]) == ([0] * 6, 0.0)
