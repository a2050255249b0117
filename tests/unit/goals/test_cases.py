"""The YAML cases of tests/cases/goals: the scores a person expects of a goal as it stands in a goals file."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cluster_model.quantities import parse_size
from goals.document import parse_goals
from goals.model import Capacity, CountLimit, Goal, UsageDistribution
from goals.registry import KINDS
from goals.score import distribution_score, limit_score, units_score

FOLDER = Path(__file__).parents[2] / "cases" / "goals"


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in YAML(typ="safe", pure=True).load(path)["cases"]:
            yield pytest.param(case, id=f"{path.stem}: {case['name']}")


def amount(value: float | str) -> float:
    """A load of a case: a number, or a size as in a goals file."""
    return float(parse_size(value)) if isinstance(value, str) else float(value)


def goal_of(case: dict[str, Any]) -> Goal:
    """The goal, read by the product's own reader."""
    out = YAML(typ="safe", pure=True)
    stream = StringIO()
    out.dump({"version": 1, "goals": [case["goal"]]}, stream)
    (goal,) = parse_goals(stream.getvalue(), case["name"]).goals
    return goal


def mean_of(case: dict[str, Any], broker: dict[str, Any]) -> float:
    if "mean" in case:
        return amount(case["mean"])
    brokers = case["brokers"]
    total = sum(amount(other["load"]) for other in brokers)
    if all("capacity" in other for other in brokers):
        return total * amount(broker["capacity"]) / sum(amount(other["capacity"]) for other in brokers)
    return total / len(brokers)


def score_of(goal: Goal, case: dict[str, Any], broker: dict[str, Any]) -> float:
    if isinstance(goal, UsageDistribution):
        mean = mean_of(case, broker)
        bound = goal.bound * mean
        var = goal.var * mean if goal.var_is_share else bound + goal.var
        return distribution_score(
            amount(broker["load"]), mean, bound, var, goal.tail == "absolute", goal.min_load
        )
    if isinstance(goal, Capacity):
        return limit_score(amount(broker["load"]), goal.limit * amount(broker["capacity"]))
    if isinstance(goal, CountLimit):
        return limit_score(amount(broker["load"]), goal.max)
    return units_score(float(broker["units"]))


@pytest.mark.parametrize("case", list(cases()))
def test_brokers_score_as_expected(case: dict[str, Any]) -> None:
    goal = goal_of(case)
    found = [score_of(goal, case, broker) for broker in case["brokers"]]
    expected = [broker["score"] for broker in case["brokers"]]
    assert found == pytest.approx(expected, rel=case.get("tolerance", 1e-9))


def test_every_kind_of_goal_has_a_case() -> None:
    kinds = {param.values[0]["goal"]["kind"] for param in cases()}
    assert kinds == set(KINDS)
