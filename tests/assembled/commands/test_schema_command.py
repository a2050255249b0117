"""Other tools check our files with these schemas: ours pass, and a misspelt key or a missing part does not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from tests.assembled.commands.command_line import REPOSITORY, CommandLine, partition, snapshot_file

EXAMPLES = REPOSITORY / "examples"


def validator(trimtab: CommandLine, kind: str) -> Draft202012Validator:
    ended = trimtab("schema", kind)
    assert ended.code == 0
    schema = json.loads(ended.out)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def wrong(checked: Draft202012Validator, document: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in checked.iter_errors(document)]


def test_snapshots(trimtab: CommandLine) -> None:
    checked = validator(trimtab, "snapshot")
    document = json.loads((EXAMPLES / "three-brokers.json").read_text())
    assert wrong(checked, document) == []
    assert wrong(checked, json.loads(gzip.decompress((EXAMPLES / "skewed-12-brokers.json.gz").read_bytes()))) == []
    document["brokers"][0]["raack"] = "a"
    document["partitions"][0]["replicas"] = []
    del document["storage"]
    assert len(wrong(checked, document)) == 3


def test_an_unknown_kind_is_refused_by_the_name_that_help_has(trimtab: CommandLine) -> None:
    assert "KIND: expected one of 'snapshot', 'goals', 'plan', 'calibration', found 'foo'" in trimtab("schema", "foo").err


@pytest.mark.parametrize(
    "command", [("schema", "plan"), ("goals", "schema"), ("goals", "show", "default"), ("throttles", "-b", "localhost:1")], ids=" ".join
)
def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    trimtab: CommandLine, tmp_path: Path, command: tuple[str, ...]
) -> None:
    ended = trimtab(*command, "--out", tmp_path / "absent" / "x")
    assert ended.code == 2
    assert f"--out: there is no folder {tmp_path / 'absent'}; create it or name another" in ended.err


@pytest.mark.parametrize("kind", ["goals", "calibration"])
def test_goals_and_calibrations(trimtab: CommandLine, kind: str) -> None:
    checked = validator(trimtab, kind)
    document = YAML(typ="safe").load((EXAMPLES / f"{kind}.yaml").read_text())
    assert wrong(checked, document) == []
    assert len(wrong(checked, document | {"gaols": 1})) == 1


UNSIZED = [partition("orders", 0, [1, 2]), {"topic": "orders", "partition": 1, "replicas": [1, 2], "leader": 1}]


@pytest.mark.parametrize(
    ("changes", "options"),
    [
        ({}, ()),
        ({}, ("--max-moves", "1", "--add-broker", "4:r4", "--preset", "counts")),
        ({"brokers": [{"id": 1}, {"id": 2, "state": "draining"}]}, ("--acceptance", "potential")),  # cannot be emptied
        ({"partitions": UNSIZED}, ("--remove-broker", "1")),
        ({"partitions": []}, ("--preset", "topics")),
        ({"storage": "shared"}, ("--goals", EXAMPLES / "goals-calibrated.yaml")),
    ],
)
def test_plans(trimtab: CommandLine, tmp_path: Path, changes: dict[str, Any], options: tuple[str | Path, ...]) -> None:
    checked = validator(trimtab, "plan")
    ended = trimtab("plan", "-q", "-s", snapshot_file(tmp_path, **changes), "-f", "json", *options)
    assert ended.code == 0, ended.err
    plan = json.loads(ended.out)
    assert wrong(checked, plan) == []
    del plan["plan_id"]
    assert len(wrong(checked, plan)) == 1
