"""`trimtab execute` and its companions refuse what cannot be right before they touch a cluster, and say what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.assembled.commands.command_line import CommandLine, snapshot_file

NOWHERE = ("--bootstrap-server", "127.0.0.1:1")
COUNTS = ("--preset", "counts")


@pytest.fixture
def plan(trimtab: CommandLine, tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    assert trimtab("plan", "--snapshot", snapshot_file(tmp_path), *COUNTS, "--out", path).code == 0
    return path


def test_a_file_that_is_no_plan_is_refused(trimtab: CommandLine, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"version": 1, "partitions": []}')
    ended = trimtab("execute", "--plan", path, *NOWHERE)
    assert (ended.code, ended.out) == (2, "")
    assert "expected a plan, found a file of Kafka's reassignment or election tool; `trimtab plan --format json` makes a plan" in ended.err


def test_a_plan_that_was_edited_is_refused_unless_asked_for(trimtab: CommandLine, plan: Path) -> None:
    document = json.loads(plan.read_text())
    touched = [{(c["topic"], c["partition"]) for c in action["changes"]} for action in document["actions"]]
    alone = next(each for each in touched if len(each) == 1 and all(each == other or not each & other for other in touched))
    document["actions"] = [action for action, each in zip(document["actions"], touched, strict=True) if each != alone]
    document["proposals"] = [each for each in document["proposals"] if {(each["topic"], each["partition"])} != alone]
    plan.write_text(json.dumps(document))
    ended = trimtab("execute", "--plan", plan, *NOWHERE)
    assert (ended.code, ended.out) == (2, "")
    assert "plan_id: this is not the id of what the file says: it was edited after `trimtab plan` wrote it" in ended.err
    assert "expected a Kafka broker, found none" in trimtab("execute", "--plan", plan, "--edited", *NOWHERE).err
    shown = trimtab("show", plan)
    assert shown.code == 0
    assert "it was edited, or another release wrote it" in shown.err


def test_a_dry_run_refuses_what_the_execution_would(trimtab: CommandLine, plan: Path, tmp_path: Path) -> None:
    assert "expected a Kafka broker, found none" in trimtab("execute", "--plan", plan, "--dry-run", *NOWHERE, "--journal", tmp_path).err
    plan.write_text(plan.read_text().replace('"cluster_id":"test"', '"cluster_id":"tset"'))
    ended = trimtab("execute", "--plan", plan, "--dry-run", *NOWHERE)
    assert (ended.code, ended.out) == (2, "")
    assert "this is not the id of what the file says" in ended.err


@pytest.mark.parametrize("command", ["execute", "status", "pause", "resume", "cancel", "rollback", "throttles", "drain", "activate"])
def test_without_a_cluster_every_command_says_so(command: str, trimtab: CommandLine, plan: Path, tmp_path: Path) -> None:
    more: dict[str, tuple[str | Path, ...]] = {
        "execute": ("--plan", plan), "drain": ("--broker", "1", "--yes"), "activate": ("--broker", "1"),
    }  # fmt: skip
    ended = trimtab(command, *more.get(command, ()), *NOWHERE, "--journal", tmp_path)
    assert (ended.code, ended.out) == (1, "")
    assert "expected a Kafka broker, found none: 127.0.0.1:1" in ended.err


def test_the_dry_run_says_how_long_it_takes_at_a_throttle(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("plan", "--snapshot", snapshot_file(tmp_path), *COUNTS, "--throttle", "1MB/s", "--format", "json")
    assert ended.code == 0
    assert "at 1 MB/s it takes at least" in ended.err
    assert "broker 3" in ended.err
    assert "at 1 MB/s it takes at least" in json.loads(ended.out)["notes"][-1]
    assert "at 1 MB/s it takes at least" in trimtab("plan", "--snapshot", tmp_path / "cluster.json", *COUNTS, "--throttle", "1MB/s").out


def test_a_duration_that_is_not_known_is_not_left_out(trimtab: CommandLine, tmp_path: Path) -> None:
    partitions = [{"topic": "t", "partition": n, "replicas": [1, 2], "leader": 1, "leader_load": {}} for n in range(6)]
    ended = trimtab("plan", "--snapshot", snapshot_file(tmp_path, partitions=partitions), *COUNTS, "--throttle", "1MB/s", "-f", "json")
    assert "how long it takes is not known" in json.loads(ended.out)["notes"][-1]


def test_only_a_plan_of_the_cluster_as_it_is_may_be_carried_out_at_once(trimtab: CommandLine, tmp_path: Path) -> None:
    """And a person is asked, where --yes does not answer for them."""
    snapshot = snapshot_file(tmp_path)
    ended = trimtab("plan", "--snapshot", snapshot, *COUNTS, "--execute", "--scale-load", "orders=2")
    assert ended.code == 2
    assert "--execute: goes with --bootstrap-server; for a plan of a file: trimtab execute --plan FILE" in ended.err
    assert "the plan would be for an imagined cluster" in ended.err
    assert "there is no terminal to ask on; give --yes" in ended.err


def test_a_drain_without_a_terminal_wants_a_yes(trimtab: CommandLine, tmp_path: Path) -> None:
    ended = trimtab("drain", "--broker", "1", *NOWHERE, "--journal", tmp_path)
    assert (ended.code, ended.out) == (2, "")
    assert "  --yes: there is no terminal to ask on; give --yes" in ended.err
