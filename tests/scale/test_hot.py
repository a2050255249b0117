"""Partitions that became hot: what a plan moves for the few brokers that they throw far outside their range.

An operator would copy terabytes for hundreds of small moves where a hundred larger ones do.
"""

from __future__ import annotations

import numpy as np
import pytest

from goals.document import parse_goals
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.level import heated, level_cluster

MOST_MOVES = 150


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_a_broker_far_outside_its_range_is_relieved_by_few_moves(seed: int) -> None:
    level = level_cluster("100x50k")
    hot = np.random.default_rng(seed).choice(level.partition_count, 20, replace=False)
    made = plan(heated(level, hot, 10.0), parse_goals(goals_text("even", 0.10), "test"))
    assert not [b for b in made.brokers if b.violates]
    assert 0 < made.summary.replica_moves <= MOST_MOVES
