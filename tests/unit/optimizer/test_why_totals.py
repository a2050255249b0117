"""What a rack can hold at all: an operator who is told that the rack rule forces it must be able to believe that."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clusters import cluster
from benchmarks.planner import goals_text
from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.problem import COLUMN, FOLLOWING, KIND, LEADING, LIMIT, MOVABLE, RACK_LIMIT, RACK_OF, RF, STATE
from optimizer.why_totals import Totals


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
