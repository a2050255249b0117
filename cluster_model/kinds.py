"""What kind of file a JSON document is, for a message where another kind was expected. Called by the readers of files."""

from __future__ import annotations

from collections.abc import Mapping

PLAN, SNAPSHOT, KAFKA = "a plan", "a snapshot", "a file of Kafka's reassignment or election tool"
MAKES = {PLAN: "trimtab plan --format json", SNAPSHOT: "trimtab snapshot"}


def kind_of(document: object) -> str:
    """`PLAN`, `SNAPSHOT` or `KAFKA`; empty where it is none of them, or that cannot be told."""
    if not isinstance(document, Mapping):
        return ""
    if "plan_id" in document:
        return PLAN
    if "brokers" in document:
        return SNAPSHOT
    return KAFKA if "partitions" in document and set(document) <= {"version", "partitions"} else ""


def other_kind(document: object, wanted: str) -> str:
    """What to say of a document of another kind than `wanted`, `PLAN` or `SNAPSHOT`; empty where it is of that kind or of none."""
    found = kind_of(document)
    return "" if found in ("", wanted) else f"expected {wanted}, found {found}; `{MAKES[wanted]}` makes {wanted}"
