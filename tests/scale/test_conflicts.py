"""Excluded topics that leave few ways: a plan that looks everywhere would take minutes and prove nothing."""

from __future__ import annotations

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.planner import plan
from tests.clusters.goals import goals_text, is_unexplained
from tests.clusters.synthetic import cluster


def test_what_excluded_topics_leave_few_ways_ends_soon_and_few_are_left_without_a_proof() -> None:
    """50 replicas a broker, a fifth of the topics excluded: most of the brokers that are left cannot keep all their bands."""
    lows: list[int] = []

    def watch(low: int) -> bool:
        lows.append(low)
        return True

    snapshot = cluster(1_000, 50_000, "b", 0, "everything")
    made = plan(snapshot, parse_goals(goals_text("everything", 0.10), "test"), PlanOptions(acceptance="potential"), watch)
    left = [b for b in made.brokers if b.state == "active" and b.violates]
    assert sum(is_unexplained(b) for b in left) <= 30  # a drain moves 970 replicas of excluded topics
    assert len(lows) <= 60  # 98 where every chain that changes anything is gone on from
