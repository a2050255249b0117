"""What a history has and has not, in words: resources that were not measured, and metrics that nothing here reads.

Called by the jobs with the metrics that a tally saw, so that nothing is left out in silence. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from cluster_model.resources import MEASURED

CONSUMER_OUT, CAPACITY, LATENCY = "consumer_out", "capacity.", "_latency_ms"
PREFIXES = ("follower.", "replica.")
NAMED = 8  # of metrics that nothing reads
Metrics = Mapping[tuple[str, bool], int]
"""Name of a metric, and whether it is of whole brokers -> samples."""


def of_partitions(metrics: Metrics) -> set[str]:
    """Measured resources that are known of replicas; ``network_out`` also where what consumers fetch is."""
    found = {bare(name) for name, whole in metrics if not whole}
    return (found | ({"network_out"} if CONSUMER_OUT in found else set())) & MEASURED.keys()


def of_brokers(metrics: Metrics) -> set[str]:
    """Measured resources that are known of brokers: as they report themselves, or as sums over replicas."""
    return ({name for name, whole in metrics if whole} & MEASURED.keys()) | of_partitions(metrics)


def bare(metric: str) -> str:
    """A metric's name without the role."""
    for prefix in PREFIXES:
        metric = metric.removeprefix(prefix)
    return metric


def unread(metrics: Metrics) -> dict[str, int]:
    """Metrics that nothing here reads, with their samples, the most frequent first."""
    found: dict[str, int] = {}
    for (name, whole), count in metrics.items():
        of_broker = name in MEASURED or name.startswith(CAPACITY) or name.endswith(LATENCY)
        of_replica = bare(name) in MEASURED or name == CONSUMER_OUT
        if not (of_broker if whole else of_replica):
            found[name] = found.get(name, 0) + count
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def told(metrics: Metrics) -> list[str]:
    """A sentence for everything that is missing, left out or put together."""
    lines = []
    if not_there := _without(of_brokers(metrics)):
        lines.append(f"not in this history, so not evaluated: {not_there}")
    partitions = of_partitions(metrics)
    if not_there := _without(partitions | (MEASURED.keys() - of_brokers(metrics))):
        lines.append(f"measured for brokers only, not for partitions: {not_there}")
    names = {bare(name) for name, whole in metrics if not whole}
    if CONSUMER_OUT in names and "network_in" in names:
        lines.append("network_out of partitions is what consumers fetch (consumer_out) and each follower copies (network_in)")
    elif "network_out" in partitions and CONSUMER_OUT in names:
        alone = "not known for others, since the history has no network_in for what followers copy"
        lines.append(f"network_out of partitions with one replica is what consumers fetch (consumer_out); {alone}")
    left = unread(metrics)
    if left:
        some = ", ".join(f"{name} ({count:,} samples)" for name, count in list(left.items())[:NAMED])
        lines.append(f"not used: {some}" + (f" and {len(left) - NAMED} more" if len(left) > NAMED else ""))
    return lines


def _without(known: Set[str]) -> str:
    return ", ".join(name for name in MEASURED if name not in known)
