"""How much a plan would move, in words: replicas, bytes and leadership changes, and the budgets that were set.

Called by the verdict and by every report a person reads.
"""

from __future__ import annotations

from collections.abc import Mapping

from optimizer.plan import Action, Plan
from optimizer.report.units import count, size


def budgets(options: Mapping[str, object]) -> list[str]:
    """The budgets that were set: ``50 replica moves``."""
    words = []
    for key, noun in (("max_moves", "replica move"), ("max_partitions", "partition")):
        limit = options.get(key)
        if isinstance(limit, int):
            words.append(count(limit, noun))
    limit = options.get("max_bytes")
    if isinstance(limit, int):
        words.append(size(limit))
    return words


def copied(plan: Plan) -> str:
    """The bytes that a plan would copy: ``41.2 GB``, ``unknown size``, ``at least 41.2 GB, 3 replicas of unknown size``."""
    s = plan.summary
    if plan.storage == "shared":
        return "shared storage: moves no data"
    if not s.unsized_moves:
        return size(s.bytes_to_move)
    if s.unsized_moves >= s.replica_moves:
        return "unknown size"
    return f"at least {size(s.bytes_to_move)}, {count(s.unsized_moves, 'replica')} of unknown size"


def action_size(action: Action, plan: Plan) -> str:
    """Bytes that one action would copy, where it moves a replica: ``41.2 GB``; ``unknown size`` where none is known."""
    if not action.bytes_to_move and plan.summary.unsized_moves:
        return "unknown size"
    return size(action.bytes_to_move)


def making(plan: Plan) -> str:
    """``moving 118 replicas (41.2 GB), with 12 leadership changes,``: a subject, for a verb to follow. Empty if neither would change."""
    s = plan.summary
    led = count(s.leadership_changes, "leadership change")
    if not s.replica_moves:
        return f"making {led}" if s.leadership_changes else ""
    return f"moving {count(s.replica_moves, 'replica')} ({copied(plan)})" + (f", with {led}," if s.leadership_changes else "")


def net_effort(plan: Plan) -> str:
    """What all actions come to, in a sentence; empty if neither replicas nor leaders would change."""
    s = plan.summary
    led = count(s.leadership_changes, "leadership change")
    if not s.replica_moves:
        return f"In all they make {led} and copy nothing." if s.leadership_changes else ""
    moved = f"In all they move {count(s.replica_moves, 'replica')} ({copied(plan)})"
    return f"{moved}, with {led}: a replica that moves may take its leadership along." if s.leadership_changes else f"{moved}."
