"""A metadata log for every test that follows one."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_model.metadata.follower import KRaftFollower
from tests.unit.cluster_model.metadata_log import LogWriter
from tests.unit.cluster_model.metadata_site import Quorum, Site, broker


@pytest.fixture
def site(tmp_path: Path) -> Site:
    log, quorum = LogWriter(tmp_path / "log"), Quorum()
    log.directory.mkdir()
    log.append(broker(1), broker(2))
    return Site(log, quorum, KRaftFollower(log.directory, quorum))
