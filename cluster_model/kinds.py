"""What kind of file a document in JSON or YAML is, for a message where another kind was expected. Called by the readers of files."""

from __future__ import annotations

from collections.abc import Mapping

PLAN, SNAPSHOT, KAFKA = "a plan", "a snapshot", "a file of Kafka's reassignment or election tool"
GOALS, CALIBRATION, CAPACITIES = "goals", "a calibration", "capacities"
MAKES = {PLAN: "trimtab plan --format json", SNAPSHOT: "trimtab snapshot"}
GIVEN = {  # where a file of a kind belongs
    PLAN: "`trimtab show` shows it", SNAPSHOT: "give it with --snapshot", KAFKA: "it belongs to Kafka's own tools",
    GOALS: "give it with --goals", CALIBRATION: "name it in a goals file (calibration: FILE)", CAPACITIES: "give it with --capacity",
}  # fmt: skip


def kind_of(document: object) -> str:
    """One of the kinds above; empty where it is none of them, or that cannot be told."""
    if not isinstance(document, Mapping):
        return ""
    if "plan_id" in document or "proposals" in document:
        return PLAN
    if "history" in document and "resources" in document:
        return CALIBRATION
    if "goals" in document or "preset" in document:
        return GOALS
    if "brokers" in document and "partitions" in document:
        return SNAPSHOT
    if isinstance(document.get("brokers"), Mapping) or document.keys() == {"default"}:
        return CAPACITIES
    return KAFKA if "partitions" in document and set(document) <= {"version", "partitions"} else ""


def other_kind(document: object, wanted: str) -> str:
    """What to say of a document of another kind than `wanted`; empty where it is of that kind or of none."""
    found = kind_of(document)
    if found in ("", wanted):
        return ""
    remedy = f"`{MAKES[wanted]}` makes {wanted}" if wanted in MAKES else GIVEN[found]
    return f"expected {wanted}, found {found}; {remedy}"
