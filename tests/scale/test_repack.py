"""Narrow bands and topics with large replicas: the last brokers come into range only where several replicas make room for one."""

from __future__ import annotations

import pytest

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster


def left_by(made: Plan) -> list[int]:
    return [b.id for b in made.brokers if b.violates]


@pytest.mark.parametrize(("variant", "band"), [("even", 0.02), ("topics-wide", 0.10)])
def test_a_replica_for_several_is_tried_where_bands_are_narrow_or_a_topic_has_large_ones(variant: str, band: float) -> None:
    snapshot = cluster(100, 50_000, "a", 0, variant)
    made = plan(snapshot, parse_goals(goals_text(variant, band), "test"), PlanOptions(acceptance="potential"))
    assert left_by(made) == []
