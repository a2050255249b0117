"""A configuration put on goals: the plans of a backtest are those that the same goals give an operator, down to their ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from goals.calibration import CapacityEstimate, calibration_text
from goals.document import load_goals
from spark.backtest.configuration import Configuration, levelled
from tests.unit.goals.test_calibration import FULL

GOALS = """version: 1
calibration: calibration.yaml
goals:
  - {kind: capacity, resource: cpu, limit: 0.8}
  - {kind: usage_distribution, resource: network_in}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    measured = CapacityEstimate(broker=1, resource="cpu", value=8.0, confidence="high", evidence="reported")
    calibration = FULL.model_copy(update={"capacity": [measured], "backtest": []})
    (tmp_path / "calibration.yaml").write_text(calibration_text(calibration), encoding="utf-8")
    (tmp_path / "goals.yaml").write_text(GOALS, encoding="utf-8")
    return tmp_path / "goals.yaml"


def test_goals_as_they_are_keep_their_digest_with_what_a_calibration_gives_to_capacity(path: Path) -> None:
    goals = load_goals(path)
    assert Configuration(3600.0).applied(goals).digest == goals.digest


def test_other_weights_and_bounds_have_the_digest_of_a_file_that_says_so(path: Path) -> None:
    goals = load_goals(path)
    (goal,) = levelled(goals)
    tried = Configuration(3600.0, weights={goal.name: 3.0}, bounds={goal.name: 2 * goal.bound}).applied(goals)
    var = 2 * goal.var
    written = f"resource: network_in, weight: 3, bound: {2 * goal.bound!r}, var: {var!r}"
    path.write_text(GOALS.replace("resource: network_in", written), encoding="utf-8")
    assert tried.digest == load_goals(path).digest
