"""What beginnings of a list of actions leave undone and cost is what they leave and cost when they are carried out alone."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.course import Net, Placement
from optimizer.options import PlanOptions
from optimizer.prefixes import first_part, spent_along, undone_along, undone_of
from optimizer.worth import worthwhile_search
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import Scenario, cluster


@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("scenario", get_args(Scenario))
def test_every_first_part_of_a_plan(scenario: Scenario, crowded: bool) -> None:
    snapshot = cluster(10, 300, scenario, 3, "topics-wide")
    if crowded:  # three racks, of which the placement knew nothing
        snapshot = replace(snapshot, racks=tuple("abc"[i % 3] for i in range(len(snapshot.racks))))
    compiled = compile_problem(snapshot, parse_goals(goals_text("topics-wide", 0.1), "test"), PlanOptions())
    start, rounds = Placement(compiled.replicas, compiled.lead), worthwhile_search(compiled, PlanOptions()).rounds
    undone, spent = undone_along(compiled, start.state(compiled), rounds), spent_along(compiled, rounds)
    actions = sum(int(part.log.used[0]) for part in rounds)
    assert len(undone) == len(spent) == actions + 1
    for count in range(1, actions + 1, 3):
        part = first_part(rounds, count)
        assert sum(int(one.log.used[0]) for one in part) == count
        assert undone[count] == pytest.approx(undone_of(compiled, start.after(part).state(compiled)))
        net = Net.of(part)
        assert spent[count, 0] == net.moved.sum()
        assert spent[count, 1] == pytest.approx((net.moved * compiled.problem.size[net.rows]).sum())
        assert spent[count, 2] == np.count_nonzero((net.moved > 0) | (net.relieved > 0))


def test_replicas_in_crowded_racks_are_not_counted_again_as_hard_goals_that_their_brokers_miss() -> None:
    """Which brokers hold them made a difference, and soft goals were given up for it."""
    snapshot = cluster(10, 300, "a", 3)
    crowded = replace(snapshot, racks=tuple("abc"[i % 3] for i in range(len(snapshot.racks))))
    compiled = compile_problem(crowded, parse_goals(goals_text("even", 0.1), "test"), PlanOptions())
    urgent, misplaced, missed, short, _ = undone_of(compiled, Placement(compiled.replicas, compiled.lead).state(compiled))
    assert urgent == missed == short == 0
    assert misplaced > 0
