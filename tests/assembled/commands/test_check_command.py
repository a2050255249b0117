"""`trimtab check`: what an operator is told before two folders of assignments are applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.assembled.commands.command_line import CommandLine

BEFORE = {"a": [[1, 2], [1, 2], [1, 3]], "b": [[1, 2], [2, 1]]}


def folder(path: Path, topics: dict[str, list[list[int]]]) -> Path:
    path.mkdir()
    for topic, lists in topics.items():
        entries = [{"topic": topic, "partition": p, "replicas": r} for p, r in enumerate(lists)]
        (path / f"{topic}.json").write_text(json.dumps({"version": 1, "partitions": entries}))
    return path


def checked(trimtab: CommandLine, tmp_path: Path, after: dict[str, list[list[int]]]) -> tuple[int, dict[str, bool]]:
    ended = trimtab(
        "check", "--original", folder(tmp_path / "o", BEFORE), "--migrated", folder(tmp_path / "m", after), "--format", "json"
    )
    return ended.code, {c["id"]: c["holds"] for c in json.loads(ended.out)["checks"]}


def test_a_level_migration_passes_all_seven(trimtab: CommandLine, tmp_path: Path) -> None:
    code, held = checked(trimtab, tmp_path, {"a": [[3, 1], [2, 3], [1, 3]], "b": [[1, 2], [2, 1]]})
    assert code == 0
    assert len(held) == 7
    assert all(held.values())


def test_counts_that_are_equal_are_one_number(trimtab: CommandLine, tmp_path: Path) -> None:
    same = {"a": [[1, 2], [2, 1]]}
    told = trimtab("check", "--original", folder(tmp_path / "o", same), "--migrated", folder(tmp_path / "m", same)).out
    assert "within 1 of each other: 1 each\n" in told
    assert "within 1 of each other: 2 each\n" in told


@pytest.mark.parametrize(
    ("failing", "after"),
    [
        ("WIX-1", {"a": [[3, 4], [1, 2], [1, 3]], "b": [[4, 2], [2, 1]]}),
        ("WIX-2", {"a": [[1, 2], [1, 2], [1, 3]]}),
        ("WIX-3", {"a": [[1, 2], [1, 2]], "b": [[1, 2], [2, 1]]}),
        ("WIX-4", {"a": [[1, 2], [1, 2], [1, 3]], "b": [[1, 2], [2]]}),
        ("WIX-4", {"a": [[1, 1], [1, 2], [1, 3]], "b": [[1, 2], [2, 1]]}),
        ("WIX-6", {"a": [[1, 2], [1, 2], [1, 3]], "b": [[1, 3], [2, 3]]}),
        ("WIX-7", {"a": [[1, 2], [1, 2], [3, 1]], "b": [[1, 2], [2, 1]]}),
    ],
)
def test_what_would_hurt_fails(trimtab: CommandLine, tmp_path: Path, failing: str, after: dict[str, list[list[int]]]) -> None:
    code, held = checked(trimtab, tmp_path, after)
    assert code == 1
    assert not held[failing]


def test_empty_folders_fail_and_bad_files_are_all_named(trimtab: CommandLine, tmp_path: Path) -> None:
    empty, bad = folder(tmp_path / "o", {}), folder(tmp_path / "m", {})
    ended = trimtab("check", "--original", empty, "--migrated", bad)
    assert ended.code == 1
    assert "FAIL  WIX-5" in ended.out
    (bad / "a.json").write_text("{")
    (bad / "b.json").write_text('{"partitions": [{"topic": "b", "partition": 0, "replicas": []}]}')
    ended = trimtab("check", "--original", empty, "--migrated", bad)
    assert ended.code == 2
    assert "a.json" in ended.err
    assert "b.json: partitions[0]: expected a list of broker ids" in ended.err
    assert trimtab("check", "--original", tmp_path / "none", "--migrated", bad).code == 2
