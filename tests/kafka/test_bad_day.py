"""A real broker is restarted under a service in the mode `auto`: what refuses writes is told, and leaders go back before a byte moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.kafka.cluster import KafkaCluster
from tests.kafka.services import Embedded, Reporters
from tests.kafka.traffic import Traffic, administering, create_topic
from trimtab.http.glance import glance
from trimtab.service.preferred import CAUSE

PAIRS = [[1, 2], [2, 3], [3, 4], [4, 1]] * 2
GOALS = """
version: 1
goals: [{kind: usage_distribution, resource: network_in, bound: 2.0, var: 4.0}]
policy: {wait: {settle: 3s, leaders: 1m}}
"""


def test_a_restart_in_the_mode_auto_tells_what_is_under_min_isr_and_ends_with_preferred_leaders(tmp_path: Path) -> None:
    (tmp_path / "goals-auto.yaml").write_text(GOALS)
    with KafkaCluster(controllers=1) as kafka:
        with administering(kafka) as admin:
            create_topic(admin, "flows", PAIRS, {"min.insync.replicas": "2"})
        keys: dict[str, Any] = {
            "mode": "auto", "goals": str(tmp_path / "goals-auto.yaml"),
            "model": {"short": 10, "long": 30, "stale_after": 15, "dead_after": 300},
        }  # fmt: skip
        with Traffic(kafka.bootstrap, {("flows", n): 4 for n in range(len(PAIRS))}, size=2000), Reporters(kafka):
            service = Embedded(kafka, 100, tmp_path / "100", **keys)
            try:
                assert service.until(lambda: service.balancer.state().ready), service.balancer.state().why_not_ready
                kafka.stop_broker(4)
                assert service.until(lambda: service.balancer.state().cluster.under_min_isr == 4), service.balancer.state().cluster
                assert glance(service.balancer.state()).label == "Under min ISR"
                kafka.start_broker(4)
                assert service.until(lambda: service.balancer.state().cluster.under_min_isr == 0), service.balancer.state().cluster
                assert service.until(lambda: service.balancer.state().cluster.not_preferred > 0), service.balancer.state().cluster
                done = lambda: any(CAUSE in row.cause and row.verdict == "planned" for row in service.decisions())  # noqa: E731
                assert service.until(done), (service.decisions(), service.balancer.state().why_nothing)
                back = lambda: service.balancer.state().cluster.not_preferred == 0  # noqa: E731
                assert service.until(back, 180), service.balancer.state().plan  # what came into sync later goes back a minute later
                plan = service.balancer.state().plan
                assert plan is not None
                assert (plan.restores, plan.leadership_changes > 0, plan.replica_moves, plan.bytes_to_move) == (True, True, 0, 0)
            finally:
                service.stop()
