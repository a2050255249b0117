"""A remark of a plan on log directories: volumes that are fuller than the policy lets them, which plans between brokers do not see.

Called by `assemble`. Pure.
"""

from __future__ import annotations

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.detectors.check import policy_of


def full_directories(snapshot: Snapshot, goals: GoalSet) -> tuple[str, ...]:
    """Which volume is fullest, where any is above `policy.directories.limit`; nothing else."""
    limit = policy_of(goals).directories.limit
    if limit is None:
        return ()
    shares = {(broker, d.path): d.used / d.size for broker, of in snapshot.directories.items() for d in of if d.size > 0.0}
    over = [key for key, share in shares.items() if share > limit]
    if not over:
        return ()
    broker, path = max(over, key=lambda key: shares[key])
    one = f"log directory {path} of broker {broker} is {shares[broker, path]:.0%} full"
    told = one if len(over) == 1 else f"{len(over)} log directories are too full; {one}"
    return (f"{told}; the limit of policy.directories is {limit:.0%}: `trimtab directories` levels the volumes of each broker",)
