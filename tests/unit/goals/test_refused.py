"""The YAML cases of tests/cases/goals/refused: what an operator is told about a file that is not right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from cluster_model.errors import ConfigurationError
from goals.document import parse_goals

FOLDER = Path(__file__).parents[2] / "cases" / "goals" / "refused"


def cases(name: str) -> Iterator[Any]:
    for case in YAML(typ="safe", pure=True).load(FOLDER / f"{name}.yaml")["cases"]:
        given, says = case.values()
        yield pytest.param(given, says, id=given[:60] or "nothing")


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigurationError) as refused:
        parse_goals(text, "goals.yaml")
    return [str(problem) for problem in refused.value.problems]


@pytest.mark.parametrize(("goal", "says"), list(cases("goals")))
def test_a_wrong_goal_is_told_with_place_and_remedy(goal: str, says: str) -> None:
    text = f"version: 1\ngoals:\n  - {{kind: rack_aware, name: first}}\n  - {{{goal}}}\n"
    assert problems(text) == [f"goals[1].{says} (line 4)"]


@pytest.mark.parametrize(("text", "says"), list(cases("files")))
def test_a_wrong_file_is_told_with_place_and_remedy(text: str, says: list[str]) -> None:
    assert problems(text) == says


@pytest.mark.parametrize(("policy", "says"), list(cases("policies")))
def test_a_wrong_policy_is_told_with_place_and_remedy(policy: str, says: list[str]) -> None:
    found = problems(f"version: 1\ngoals: [{{kind: rack_aware}}]\npolicy: {policy}\n")
    assert found == [f"{line} (line 3)" for line in says]
