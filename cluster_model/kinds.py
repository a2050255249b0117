"""What kind of file a JSON document is, for a message where another kind was expected. Called by the readers of files."""

from __future__ import annotations

from collections.abc import Mapping

PLAN, SNAPSHOT, KAFKA = "a plan", "a snapshot", "a file of Kafka's reassignment or election tool"


def kind_of(document: object) -> str:
    """`PLAN`, `SNAPSHOT` or `KAFKA`; empty where it is none of them, or that cannot be told."""
    if not isinstance(document, Mapping):
        return ""
    if "plan_id" in document:
        return PLAN
    if "brokers" in document:
        return SNAPSHOT
    return KAFKA if "partitions" in document and set(document) <= {"version", "partitions"} else ""
