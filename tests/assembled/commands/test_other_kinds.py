"""A file of another kind than a command asks for is one problem, not a list of keys that it lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.assembled.commands.command_line import REPOSITORY, CommandLine

SNAPSHOT = REPOSITORY / "examples" / "three-brokers.json"
GOALS = REPOSITORY / "examples" / "goals.yaml"
NOWHERE = ("--bootstrap-server", "localhost:1")


CALIBRATION = REPOSITORY / "examples" / "calibration.yaml"


@pytest.fixture
def files(trimtab: CommandLine, tmp_path: Path) -> dict[str, Path]:
    plan, kafka, nothing = tmp_path / "plan.json", tmp_path / "moves.json", tmp_path / "nothing.json"
    assert trimtab("plan", "--snapshot", SNAPSHOT, "--preset", "counts", "--out", plan).code == 0
    changes = json.loads(plan.read_text())["proposals"]
    partitions = [{"topic": c["topic"], "partition": c["partition"], "replicas": c["replicas_after"]} for c in changes]
    kafka.write_text(json.dumps({"version": 1, "partitions": partitions}))
    nothing.write_text("")
    nameless = tmp_path / "nameless.json"
    nameless.write_text(json.dumps({key: value for key, value in json.loads(plan.read_text()).items() if key != "plan_id"}))
    return {"a snapshot": SNAPSHOT, "a plan": plan, "a file of Kafka's": kafka, "nothing": nothing, "a plan without its id": nameless}


@pytest.mark.parametrize(
    ("command", "given"),
    [
        (("plan", "--preset", "counts", "--snapshot"), "a plan"), (("plan", "--preset", "counts", "--snapshot"), "a file of Kafka's"),
        (("show",), "a snapshot"), (("show",), "a file of Kafka's"),
        (("execute", *NOWHERE, "--plan"), "a snapshot"), (("execute", *NOWHERE, "--plan"), "a file of Kafka's"),
        (("execute", *NOWHERE, "--plan"), "nothing"),
    ],
)  # fmt: skip
def test_a_file_of_another_kind_is_named(trimtab: CommandLine, files: dict[str, Path], command: tuple[str, ...], given: str) -> None:
    ended = trimtab(*command, files[given])
    assert ended.code == 2
    assert f"found {given}" in ended.err
    assert "makes" in ended.err
    assert "1 problem" in ended.err


def test_a_throttle_without_its_unit_is_asked_about(trimtab: CommandLine, files: dict[str, Path]) -> None:
    ended = trimtab("execute", *NOWHERE, "--plan", files["a plan"], "--throttle", "50")
    assert ended.code == 2
    told = "--throttle: expected a rate with its unit, found 50; write 50MB/s, or 50B/s for 50 bytes a second"
    assert ended.err.splitlines()[0] == f"error: {told}"


def test_a_preset_of_policies_is_told_from_one_of_goals(trimtab: CommandLine) -> None:
    ended = trimtab("plan", "--snapshot", SNAPSHOT, "--preset", "pulsar-transfer")
    assert ended.code == 2
    assert "write policy: {preset: pulsar-transfer} in a goals file" in " ".join(ended.err.split())


@pytest.mark.parametrize(
    ("command", "given", "told"),
    [
        (("plan", "--snapshot", SNAPSHOT, "--goals"), CALIBRATION, "expected goals, found a calibration; name it in a goals file"),
        (("plan", "--snapshot", SNAPSHOT, "--goals"), SNAPSHOT, "expected goals, found a snapshot; give it with --snapshot"),
        (("plan", "--snapshot", SNAPSHOT, "--capacity"), GOALS, "expected capacities, found goals; give it with --goals"),
        (("plan", "--snapshot", SNAPSHOT, "--capacity"), CALIBRATION, "expected capacities, found a calibration"),
        (("tune", "--goals", GOALS, "--calibration"), GOALS, "expected a calibration, found goals; give it with --goals"),
    ],
    ids=str,
)  # fmt: skip
def test_files_that_people_write_are_told_apart(trimtab: CommandLine, command: tuple[str, ...], given: Path, told: str) -> None:
    ended = trimtab(*command, given)
    assert ended.code == 2
    assert f"{given}: 1 problem\n  {told}" in ended.err


def test_a_plan_without_its_id_is_a_plan_all_the_same(trimtab: CommandLine, files: dict[str, Path]) -> None:
    assert "plan_id: expected this key, found none" in trimtab("show", files["a plan without its id"]).err
    assert "expected a snapshot, found a plan" in trimtab("plan", "--preset", "counts", "--snapshot", files["a plan without its id"]).err
    as_goals = trimtab("plan", "--snapshot", SNAPSHOT, "--goals", files["a plan"])
    assert "expected goals, found a plan; `trimtab show` shows it" in as_goals.err


@pytest.mark.parametrize("command", [("show",), ("execute", *NOWHERE, "--plan")], ids=str)
def test_a_plan_of_another_version_needs_another_trimtab(trimtab: CommandLine, files: dict[str, Path], command: tuple[str, ...]) -> None:
    """Giving a plan that Trimtab wrote, as the message said, is what the operator had done."""
    later = files["a plan"]
    later.write_text(json.dumps(json.loads(later.read_text()) | {"version": 9}))
    ended = trimtab(*command, later)
    assert ended.code == 2
    assert "found 9" in ended.err or "found version 9" in ended.err
    assert "another version needs another Trimtab" in ended.err


def test_two_files_of_two_kinds_cannot_be_compared(trimtab: CommandLine, files: dict[str, Path]) -> None:
    assert "which is no plan; give two of one kind" in trimtab("diff", files["a plan"], files["a file of Kafka's"]).err


@pytest.mark.parametrize(
    "command",
    [
        ("goals", "check"), ("serve", "--check", "--config"), ("tune", "--goals", GOALS, "--calibration"),
        ("diff", SNAPSHOT, SNAPSHOT, "--goals"),
        ("plan", "--preset", "counts", "--snapshot", SNAPSHOT, "--capacity"), ("execute", *NOWHERE, "--plan"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_a_file_that_is_nested_too_deep_is_the_files_fault(trimtab: CommandLine, tmp_path: Path, command: tuple[str, ...]) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000 if command[0] == "execute" else "a: " + "[" * 700)
    ended = trimtab(*command, deep)
    assert ended.code == 2
    assert "nested too deep to be" in ended.err
    assert f"{deep}: 1 problem" in ended.err
