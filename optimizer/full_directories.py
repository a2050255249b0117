"""A remark of a plan on log directories: volumes that are fuller than the policy lets them, which plans between brokers do not see.

Called by `assemble`. Pure.
"""

from __future__ import annotations

from cluster_model.directories import volumes_of
from cluster_model.quantities import told_apart
from cluster_model.snapshot import BrokerState, Snapshot
from goals.model import GoalSet
from optimizer.detectors.check import policy_of


def full_directories(snapshot: Snapshot, goals: GoalSet) -> tuple[str, ...]:
    """Which volume is fullest, where any is above `policy.directories.limit`; nothing else. Of brokers that
    `trimtab directories` levels: active ones with several volumes, not excluded by the goals."""
    limit = policy_of(goals).directories.limit
    if limit is None:
        return ()
    active = set(snapshot.broker_ids[snapshot.broker_states == BrokerState.ACTIVE].tolist()) - {*goals.constraints.exclude_brokers}
    several = {broker: of for broker, of in snapshot.directories.items() if broker in active and len(set(volumes_of(of))) > 1}
    shares = {(broker, d.path): d.used / d.size for broker, of in several.items() for d in of}
    over = [key for key, share in shares.items() if share > limit]
    if not over:
        return ()
    broker, path = max(over, key=lambda key: shares[key])
    share, most = told_apart(shares[broker, path], limit)
    one = f"log directory {path} of broker {broker} is {share} full"
    told = one if len(over) == 1 else f"{len(over)} log directories are too full; {one}"
    return (f"{told}; the limit of policy.directories is {most}: `trimtab directories` levels the volumes of each broker",)
