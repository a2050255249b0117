"""What producers will notice of an execution, said before it starts. Called by the commands."""

from __future__ import annotations

from collections.abc import Collection

from trimtab.execution.port import ClusterPort
from trimtab.execution.state import Task

FETCH_BACKOFF, SHORT_MS = "replica.fetch.backoff.ms", 200


def noticed(tasks: Collection[Task], port: ClusterPort) -> str:
    """A sentence where steps let producers wait for long by a setting of brokers; empty where they do not, or that is not known.

    Notes
    -----
    When replicas of a partition are exchanged, or its leader, its leader epoch rises. A follower that hears of that before the leader does
    is refused, and waits so long before it fetches again; producers with acks=all wait with it.

    Source: Kafka, ``AbstractFetcherThread``; measured in docs/benchmarks.md.
    """
    steps = [t for t in tasks if t.removing or (t.leader is not None and t.leader != t.source_leader)]
    followers = sorted({b for t in steps for b in t.target if b != t.leader})
    if not followers:
        return ""
    told = port.setting(followers[0], FETCH_BACKOFF)
    if told is None or not told.isdecimal() or int(told) <= SHORT_MS:
        return ""
    return (
        f"producers with acks=all may wait {int(told) / 1000:g} s whenever one of {len(steps)} partitions has moved, by {FETCH_BACKOFF} = "
        f"{told} of broker {followers[0]}. A smaller value shortens that; a broker takes it at its next start"
    )
