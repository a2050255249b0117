"""Clusters that are large enough for threads: more of them give the plan sooner, not another plan."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import Acceptance, PlanOptions
from optimizer.placement.commit import build_state
from optimizer.planner import WORTH_THREADS, plan
from optimizer.report import to_json
from optimizer.search.balance import balance
from optimizer.threads import Threads
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import Scenario, cluster


@pytest.mark.parametrize("acceptance", ["score", "potential"])
@pytest.mark.parametrize(
    ("scenario", "variant"), [("a", "even"), ("b", "even"), ("d", "even"), ("b", "capacities"), ("b", "topics"), ("b", "draining")]
)
def test_any_number_of_threads_gives_the_same_bytes(scenario: Scenario, variant: str, acceptance: Acceptance) -> None:
    snapshot = cluster(60, 2 * WORTH_THREADS, scenario, 1, variant)
    goals = parse_goals(goals_text(variant, 0.1), "test")
    plans = [plan(snapshot, goals, PlanOptions(acceptance=acceptance, threads=n)) for n in (1, 2, 3)]
    assert plans[0].summary.actions > 0
    assert len({to_json(each) for each in plans}) == 1


class Counted(Threads):
    """Counts how often something was shared."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.shared = 0

    def share(self, part: Callable[[int], object], parts: int) -> None:
        self.shared += 1
        super().share(part, parts)


@pytest.mark.parametrize(("brokers", "replicas", "variant"), [(60, 9_000, "even"), (400, 48_000, "racks"), (400, 48_000, "topics")])
def test_brokers_are_mended_side_by_side_and_the_same_way(brokers: int, replicas: int, variant: str) -> None:
    goals = parse_goals(goals_text(variant, 0.1), "test")
    compiled = compile_problem(cluster(brokers, replicas, "b", 1, variant), goals, PlanOptions())
    ends = []
    for count in (1, 2, 3):
        state = build_state(compiled.problem, compiled.replicas, compiled.lead)
        threads = Counted(count)
        with threads:
            balance(compiled.problem, state, 0, 4, np.ones(len(compiled.goals), np.int64), True, threads, 0)
        assert (threads.shared > 0) == (count > 1)
        ends.append(state)
    assert not np.array_equal(ends[0].replicas, compiled.replicas)
    for end in ends[1:]:
        for name in ("replicas", "lead", "place", "hosts", "load", "units", "score"):
            assert np.array_equal(getattr(end, name), getattr(ends[0], name)), name
    again = build_state(compiled.problem, ends[0].replicas, ends[0].lead)  # nothing that stars assumed is left in the sums
    for name in ("hosts", "load", "units", "topic_count", "score"):
        assert np.array_equal(getattr(again, name), getattr(ends[0], name)), name
