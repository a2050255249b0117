"""A bundle that is over its limit for a moment is not split; the service counts its looks, and its plans wait for them."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from tests.assembled.service.beside import GOALS, Service, World, simulated_executor

POLICY = "policy: {{amount: {{kind: one}}, unit: group, accept: detector, split: {{partitions: 1, hits: {}}}}}\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(("hits", "splits"), [(2, True), (1000, False)])
def test_plans_of_the_service_wait_until_a_bundle_was_over_its_limit_often_enough(world: World, hits: int, splits: bool) -> None:
    service = Service(world, goals=GOALS + POLICY.format(hits), executor=simulated_executor(world), mode="auto")
    service.run(200)
    plans = [zlib.decompress(plan).decode() for (plan,) in service.rows("SELECT plan FROM decision WHERE plan IS NOT NULL")]
    service.stop()
    assert plans
    assert any("policy: split bundle (all)/" in text for text in plans) is splits
    assert any("of 1000 checks in a row" in text for text in plans) is not splits
    assert not any("does not wait" in text for text in plans)
