"""Soft limits, and hard ones that are wishes, count as bands while a target is looked for: what that saves, summed over skewed clusters."""

from __future__ import annotations

import pytest

from goals.document import parse_goals
from optimizer.planner import plan
from optimizer.search import search
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


def moves(limits: str) -> int:
    goals = parse_goals(goals_text(limits, 0.10), "test")
    plans = [plan(cluster(60, 6000, "b", seed, "limits"), goals) for seed in range(4)]
    assert not [b for made in plans for b in made.brokers if b.violates]
    return sum(made.summary.replica_moves for made in plans)


@pytest.mark.parametrize("limits", ["limits", "limits-hard"])
def test_limits_as_bands_save_moves(limits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    as_bands = moves(limits)
    monkeypatch.setattr(search, "banded", lambda problem, _: problem)
    assert as_bands < 0.9 * moves(limits)


def test_hard_limits_take_no_more_moves_than_soft_ones() -> None:
    assert moves("limits-hard") <= 1.05 * moves("limits")
