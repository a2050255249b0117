from __future__ import annotations

import pytest

from benchmarks.small_cost import main, measured


def test_no_plan_costs_less_than_the_least() -> None:
    ratios, cases, missed = measured(range(12))
    assert cases >= 4
    assert missed == 0
    assert all(len(found) == cases and min(found) >= 1.0 - 1e-9 for found in ratios.values())


def test_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "2", "--first", "0"]) == 0
    said = capsys.readouterr().out
    assert "of 2 clusters have a placement with every broker in range; 0 plans leave one outside" in said
    assert "moves alone, moves: " in said
