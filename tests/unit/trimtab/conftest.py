"""The command line as a fixture."""

from __future__ import annotations

import pytest

from tests.unit.trimtab.command_line import CommandLine


@pytest.fixture
def trimtab(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(capsys)
