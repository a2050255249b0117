"""The command line as a fixture, and clusters for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assembled.commands.command_line import CommandLine, partition, snapshot_file


@pytest.fixture
def trimtab(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)


@pytest.fixture
def skewed(tmp_path: Path) -> Path:
    """Six partitions on brokers 1 and 2, broker 3 empty."""
    return snapshot_file(tmp_path)


@pytest.fixture
def level(tmp_path: Path) -> Path:
    """Every broker leads one partition and follows in another."""
    pairs = [[1, 2], [2, 3], [3, 1]]
    return snapshot_file(tmp_path, partitions=[partition("orders", n, pair) for n, pair in enumerate(pairs)])
