"""A simulated cluster for each test of the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.assembled.service.beside import World


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
