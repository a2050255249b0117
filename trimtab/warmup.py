"""Compiling the planner ahead of time: once for a machine, at installation, service start or first use.

``python -m trimtab.warmup`` does it at installation; commands that plan call `announce`, so that nobody wonders at the wait.
"""

from __future__ import annotations

import logging

from cluster_model.compiled import is_cached

log = logging.getLogger(__name__)


def announce() -> None:
    """Say that the first plan takes longer, when it will."""
    if not is_cached():
        log.info("compiling the planner for this machine, once (about a minute)")


def warm_up() -> None:
    """Compile every kernel of the planner, or load it: plans a tiny cluster with every kind of goal."""
    from cluster_model.build import build_snapshot
    from goals.document import parse_goals
    from optimizer.planner import plan

    brokers = [{"id": b, "rack": f"r{b % 2}", "capacity": {"disk": 100.0}} for b in range(4)]
    partitions = [
        {
            "topic": "warm-up",
            "partition": n,
            "replicas": [0, 1],
            "leader": 0,
            "leader_load": {"network_in": 1.0 + n, "disk": 9.0},
        }
        for n in range(8)
    ]
    snapshot = build_snapshot(
        {
            "version": 1,
            "cluster_id": "warm-up",
            "taken_at": "2000-01-01T00:00:00Z",
            "storage": "local",
            "brokers": brokers,
            "partitions": partitions,
        }
    )
    plan(snapshot, parse_goals("version: 1\npreset: default\n", "warm-up"))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    announce()
    warm_up()
