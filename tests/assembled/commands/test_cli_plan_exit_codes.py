"""Exit codes of `trimtab plan`, which scripts act on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.assembled.commands.command_line import CommandLine, partition, plan_of, snapshot_file

COUNTS = ("--preset", "counts")


@pytest.mark.parametrize("asked", [True, False])
def test_exit_code_3_means_proposals_only_where_asked(
    trimtab: CommandLine, skewed: Path, asked: bool
) -> None:
    option = ["--exit-code"] if asked else []
    assert trimtab("plan", "--snapshot", skewed, *COUNTS, *option).code == (3 if asked else 0)


def test_exit_code_0_when_nothing_would_move(trimtab: CommandLine, level: Path) -> None:
    ended = trimtab("plan", "--snapshot", level, *COUNTS, "--format", "json", "--exit-code")
    assert ended.code == 0
    assert plan_of(ended.out)["proposals"] == []


def test_exit_code_4_when_a_hard_goal_cannot_be_met(trimtab: CommandLine, tmp_path: Path) -> None:
    """Twice 2 TB of replicas cannot stand on 3 TB of disks."""
    full = snapshot_file(tmp_path, partitions=[partition("orders", n, [1, 2], disk=1e12) for n in range(2)])
    goals = tmp_path / "goals.yaml"
    goals.write_text("version: 1\ngoals:\n  - {kind: capacity, resource: disk, limit: 0.8, hard: true}\n")
    ended = trimtab("plan", "--snapshot", full, "--goals", goals, "--format", "json", "--exit-code")
    assert ended.code == 4
    assert plan_of(ended.out)["goals"][0]["status"] in ("infeasible", "violated")


def test_exit_code_4_when_a_broker_cannot_be_emptied(trimtab: CommandLine, tmp_path: Path) -> None:
    """A script that takes a broker away afterwards would lose the replicas that are left on it."""
    small = [{"id": b, "rack": f"r{b}", "capacity": {"disk": 3e9}} for b in (1, 2, 3)]
    parts = [partition("t", n, [1 + n % 3]) for n in range(6)]
    path = snapshot_file(tmp_path, brokers=small, partitions=parts)
    goals = tmp_path / "goals.yaml"
    goals.write_text("version: 1\ngoals:\n  - {kind: capacity, resource: disk, limit: 0.7}\n")
    command = ("plan", "--snapshot", path, "--goals", goals, "--remove-broker", "3", "--format", "json")
    ended = trimtab(*command, "--exit-code")
    assert ended.code == 4
    assert "Broker 3 would still host 2 replicas" in ended.err
    assert "would find no broker that capacity-disk allows" in ended.err
    assert trimtab(*command).code == 0
    assert trimtab(*command, "--exit-code", "--max-moves", "0").code == 0


def test_what_cannot_be_emptied_counts_more_than_what_moves(trimtab: CommandLine, tmp_path: Path) -> None:
    """Broker 1 hosts a replica of every partition on as many brokers as replicas: some move nowhere, and others move for balance."""
    path = snapshot_file(
        tmp_path,
        brokers=[{"id": b, "rack": f"r{b}"} for b in (1, 2, 3)],
        partitions=[*(partition("wide", n, [1, 2, 3]) for n in range(3)), *(partition("narrow", n, [1]) for n in range(6))],
    )
    ended = trimtab("plan", "--snapshot", path, *COUNTS, "--remove-broker", "1", "--format", "json", "--exit-code")
    assert ended.code == 4
    assert json.loads(ended.out)["proposals"], "something moves, too"


def test_a_drain_that_works_is_no_failure(trimtab: CommandLine, level: Path) -> None:
    command = ("plan", "--snapshot", level, *COUNTS, "--remove-broker", "3", "--format", "json", "--exit-code")
    assert trimtab(*command).code == 3


def test_exit_code_5_when_nothing_would_move_and_hard_goals_were_not_checked(trimtab: CommandLine, tmp_path: Path) -> None:
    """The first plan of a captured cluster has no capacities: a script must not take it for one within its limits."""
    pairs = [[1, 2], [2, 3], [3, 1]]
    bare = [{"id": i, "rack": f"r{i}"} for i in (1, 2, 3)]
    path = snapshot_file(tmp_path, brokers=bare, partitions=[partition("orders", n, pair) for n, pair in enumerate(pairs)])
    goals = tmp_path / "goals.yaml"
    goals.write_text("version: 1\npreset: counts\ngoals:\n  - {kind: capacity, resource: disk, limit: 0.8}\n")
    command = ("plan", "--snapshot", path, "--goals", goals, "--format", "json")
    ended = trimtab(*command, "--exit-code")
    assert ended.code == 5
    assert "1 hard goal is not checked: capacity-disk" in ended.err
    assert trimtab(*command).code == 0
