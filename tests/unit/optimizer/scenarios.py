"""Small clusters, plans of them that the oracle has checked, and what these say. Numbers are small enough to be checked by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cluster_model.build import build_snapshot
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.report import to_json
from tests.oracle.replay import apply, check

Document = dict[str, Any]
MIB = 1024.0**2
RACK: Document = {"kind": "rack_aware"}
REPLICAS: Document = {"kind": "usage_distribution", "resource": "replicas"}
LEADERS: Document = {"kind": "usage_distribution", "resource": "leaders"}
IN: Document = {"kind": "usage_distribution", "resource": "network_in"}
OUT: Document = {"kind": "usage_distribution", "resource": "network_out"}
DISK: Document = {"kind": "usage_distribution", "resource": "disk"}
FULL: Document = {"kind": "capacity", "resource": "disk", "limit": 1.0}


def cluster(
    brokers: Sequence[int | Mapping[str, Any]],
    partitions: Sequence[tuple[list[int], Mapping[str, float]]],
    topic: str = "t",
    **more: Any,
) -> Document:
    """Partitions 0, 1 … of one topic, each led by its first replica; a broker is an id or its entry in the
    file.
    """
    return {
        "version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": b} if isinstance(b, int) else dict(b) for b in brokers],
        "partitions": [
            {"topic": topic, "partition": n, "replicas": list(replicas), "leader": replicas[0],
             "leader_load": dict(load)}
            for n, (replicas, load) in enumerate(partitions)
        ],
        **more,
    }  # fmt: skip


def planned(snapshot: Document, *goals: Document, constraints: Document | None = None,
            **options: Any) -> Plan:  # fmt: skip
    """The plan, held against the oracle, and followed by a second one that must be empty."""
    document = {"version": 1, "goals": list(goals), "constraints": constraints or {}}
    parsed = parse_goals(json.dumps(document), "goals.yaml")
    result = plan(build_snapshot(snapshot), parsed, PlanOptions(**options))
    given = {**options, "add_brokers": [(b.id, b.rack) for b in options.get("add_brokers", ())]}
    written = json.loads(to_json(result))
    acceptance = options.get("acceptance", "score")
    assert check(snapshot, document, written, acceptance=acceptance, options=given) == []
    unlimited = {k: v for k, v in options.items() if not k.startswith("max_")}
    if len(unlimited) == len(options):
        second = plan(build_snapshot(apply(snapshot, written, given)), parsed, PlanOptions(**unlimited))
        assert list(second.actions) == []
    return result


def loads(result: Plan, resource: str) -> dict[int, float]:
    return {b.id: b.after[resource] for b in result.brokers}


def placed(snapshot: Document, result: Plan) -> dict[int, tuple[int, ...]]:
    """Replica list of every partition after the plan."""
    final = {p["partition"]: tuple(p["replicas"]) for p in snapshot["partitions"]}
    return final | {c.partition: c.replicas_after for c in result.proposals}


def why(result: Plan, broker: int) -> str:
    return next(b.why or "" for b in result.brokers if b.id == broker)


def told(result: Plan) -> str:
    """Everything the plan says in words."""
    texts = [g.explanation for g in result.goals] + [b.why or "" for b in result.brokers]
    return " ".join([*texts, *(f"{s.what} {s.reason}" for s in result.skipped), *result.notes])
