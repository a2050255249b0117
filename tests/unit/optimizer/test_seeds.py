"""Another seed is tried as long as one of the last was clearly better; a repair or two of thousands are not worth a whole search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.incremental import heated, level_cluster
from benchmarks.planner import goals_text
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.search import rounds
from tests.unit.optimizer.actions import Trial, partition, usage

MANY = 200  # partitions: as many seeds as somebody is out of band for, one of which may be in vain


def seeds_tried(monkeypatch: pytest.MonkeyPatch, *left: tuple[int, int]) -> int:
    """How many seeds are tried where they leave so many repairs undone and so many brokers out of band."""
    made = Trial((1, 2), [partition([1 + n % 2], network_in=1.0) for n in range(MANY)], usage())
    chain = rounds._chain
    asked: list[tuple[Any, ...]] = []

    def pretended(*arguments: Any) -> rounds.Chain:
        found = chain(*arguments)
        undone, low = left[min(len(asked), len(left) - 1)]
        asked.append(arguments)
        return replace(found, undone=undone, low=low, rounds=[])

    monkeypatch.setattr(rounds, "_chain", pretended)
    rounds.search(made.compiled, PlanOptions())
    return len(asked)


def test_a_seed_with_clearly_fewer_repairs_left_has_another_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seeds_tried(monkeypatch, (1346, 60), (1296, 60), (1296, 60)) == 3


def test_a_seed_with_hardly_fewer_repairs_left_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seeds_tried(monkeypatch, (1296, 60), (1292, 60), (1290, 60)) == 2


def test_a_seed_with_one_of_few_repairs_less_has_another_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seeds_tried(monkeypatch, (3, 60), (2, 60), (2, 60)) == 3


def test_a_seed_that_brings_one_broker_more_into_band_has_another_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seeds_tried(monkeypatch, (1296, 60), (1296, 59), (1296, 59)) == 3


def test_where_brokers_hold_more_than_all_may_and_none_is_in_band_one_search_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    level = level_cluster("100x50k")
    hot = heated(level, np.arange(level.partition_count), 4.0)
    asked: list[str] = []

    def counted(name: str) -> Callable[..., object]:
        done = getattr(rounds, name)

        def asking(*given: object) -> object:
            asked.append(name)
            return done(*given)

        return asking

    for name in ("_chain", "trade"):
        monkeypatch.setattr(rounds, name, counted(name))
    found = plan(hot, parse_goals(goals_text("even", 0.10), "test"), PlanOptions())
    assert all(b.violates for b in found.brokers)
    assert any("add brokers or capacity" in g.explanation for g in found.goals)
    assert asked == ["_chain"]
