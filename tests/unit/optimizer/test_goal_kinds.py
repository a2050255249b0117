"""A kind of limit owns what it is: a new one is a record that says where its ceilings are, and the planner needs no other change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from cluster_model.snapshot import FloatArray
from goals.document import parse_goals
from goals.model import Limit
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.placement.state import COST
from optimizer.problem import CEILING
from optimizer.search.search import search
from tests.unit.optimizer.actions import Trial, partition, usage


@dataclass(frozen=True, slots=True)
class Staircase(Limit):
    """A toy: every broker may hold `step` of the resource more than the one before it."""

    name: str
    hard: bool
    weight: float
    group: str | None
    resource: str
    step: float
    least: ClassVar[float] = 1.0

    def ceilings(self, capacity: Mapping[str, FloatArray], brokers: int) -> FloatArray:
        return self.step * np.arange(1.0, brokers + 1.0)


def test_a_plan_holds_a_limit_of_a_kind_that_the_planner_never_heard_of() -> None:
    made = Trial([1, 2, 3], [partition([1], network_in=10.0) for _ in range(6)], usage())
    toy: Any = Staircase("stairs", False, 1.0, None, "network_in", 11.0)
    goals = replace(parse_goals("version: 1\ngoals: [{kind: rack_aware}]\n", "toy"), goals=(toy,))
    compiled = compile_problem(made.snapshot, goals, PlanOptions())
    assert compiled.problem.table[:, 0, CEILING].tolist() == [11.0, 22.0, 33.0]
    found = search(compiled, PlanOptions())
    assert found.end.load[:, 0].tolist() == [10.0, 20.0, 30.0]
    assert (found.end.score[:, :COST] == 1.0).all()
