"""`trimtab policies`: what is listed is what a goals file may say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from goals import policy
from goals.document import parse_goals
from goals.policy_presets import POLICY_PRESETS
from goals.schema import json_schema
from tests.unit.trimtab.command_line import CommandLine


def listed(trimtab: CommandLine) -> dict[str, Any]:
    ended = trimtab("policies", "list", "--format", "json")
    assert ended.code == 0
    found: dict[str, Any] = json.loads(ended.out)
    return found


def kinds(*models: type[policy.PolicyPart]) -> set[str]:
    return {name for model in models for name in get_args(model.model_fields["kind"].annotation)}


def test_every_part_of_the_schema_is_listed_and_no_other(trimtab: CommandLine) -> None:
    parts = {stage: set(of) for stage, of in listed(trimtab)["parts"].items()}
    document = policy.PolicyDocument.model_fields
    assert parts["score"] == kinds(policy.Score)
    assert parts["placement"] == kinds(policy.Placement)
    assert parts["amount"] == kinds(policy.Amount, policy.Fraction, policy.UntilBelow)
    assert parts["filters"] == set(policy.Filters.model_fields)
    assert parts["guards"] == set(policy.PolicyGuards.model_fields)
    assert parts["unit"] == set(get_args(document["unit"].annotation))
    assert parts["accept"] == set(get_args(document["accept"].annotation))
    assert parts["order"] == set(get_args(get_args(document["order"].annotation)[0]))
    detectors = json_schema()["$defs"]
    assert parts["detector"] == {d["properties"]["kind"]["const"] for d in detectors.values() if "persist" in d.get("properties", {})}


@pytest.mark.parametrize("name", sorted(POLICY_PRESETS))
def test_a_preset_is_printed_as_a_file_takes_it(trimtab: CommandLine, name: str) -> None:
    assert name in listed(trimtab)["presets"]
    text = trimtab("policies", "show", name).out
    written = parse_goals("version: 1\npreset: counts\n" + text, "goals.yaml")
    named = parse_goals(f"version: 1\npreset: counts\npolicy: {{preset: {name}}}\n", "goals.yaml")
    assert policy.PolicyDocument.model_validate(written.policy) == policy.PolicyDocument.model_validate(
        {**named.policy, "preset": None}
    )


def test_a_part_says_what_it_does_and_an_unknown_name_what_is_meant(trimtab: CommandLine, tmp_path: Path) -> None:
    assert "fewest moves" in trimtab("policies", "show", "to_target_counts").out
    ended = trimtab("policies", "show", "wix-minimum")
    assert ended.code == 2
    assert "wix-minimal" in ended.err
