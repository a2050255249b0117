"""`trimtab backtest` as it is typed: what is wrong with a request is said before Spark is started, and all of it at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assembled.commands.command_line import CommandLine
from trimtab.commands.backtest import parse_durations


def test_everything_wrong_is_said_at_once_and_nothing_is_written(
    trimtab: CommandLine, tmp_path: Path
) -> None:
    out = tmp_path / "calibration.yaml"
    ended = trimtab(
        "backtest", "--history", tmp_path, "--preset", "default", "--out", out, "--report", out, "--window", "5m", "--horizon", "1m,8d",
        "--stretch", "7d", "--cadence", "1h,7m",
    )  # fmt: skip
    assert ended.code == 2
    for place in (
        "--out: needs --calibration",
        "--report: expected a file of its own",
        "--horizon: expected a multiple of 300 s",
        "--stretch: expected a multiple of 300 s (--window), and no less than the longest --horizon",
        "--cadence:",
        "5 problems",
    ):
        assert place in ended.err
    assert ended.out == ""
    assert not out.exists()


def test_goals_without_anything_to_search_are_refused(trimtab: CommandLine, tmp_path: Path) -> None:
    goals = tmp_path / "goals.yaml"
    goals.write_text("version: 1\ngoals: [{kind: rack_aware}]\n")
    ended = trimtab("backtest", "--history", tmp_path, "--goals", goals)
    assert ended.code == 2
    assert "at least one soft goal of kind usage_distribution" in ended.err


def test_a_report_does_not_overwrite_what_is_read(trimtab: CommandLine, tmp_path: Path) -> None:
    goals = tmp_path / "goals.yaml"
    goals.write_text("version: 1\npreset: default\n")
    ended = trimtab("backtest", "--history", tmp_path / "h", "--goals", goals, "--report", goals)
    assert ended.code == 2
    assert goals.read_text() == "version: 1\npreset: default\n"


def test_cadences_and_horizons_are_durations_each_once_in_their_order() -> None:
    assert parse_durations("1h, 5m,60m") == (3600.0, 300.0)
    with pytest.raises(ValueError, match="above 0"):
        parse_durations("1h,0s")
