"""The table of budgets counts what it says: ladders that no larger budget descends."""

from __future__ import annotations

from benchmarks.budgets import LADDER, climbed, line


def test_ladders_of_one_cluster() -> None:
    steps = list(climbed("skewed", 1))
    assert {step.ladder for step in steps} == {0, 1, 2}
    assert len(steps) <= 3 * len(LADDER)
    cells = [cell.strip() for cell in line("skewed", steps).split("|")]
    assert cells[2] == str(len(steps) - 3)
    assert cells[3].startswith("0 / ")
    assert all(step.left <= step.start for step in steps)
