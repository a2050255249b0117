"""Which bundle a topic or partition belongs to, and which brokers carry it: Pulsar's lookup, on a snapshot.

Called by `trimtab policies lookup` and `optimizer.explain`. Pure; it plans nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import Snapshot
from goals.policy import PolicyDocument
from optimizer.policies.bundles import topic_hash
from optimizer.policies.groups import NONE, Groups, groups_of
from optimizer.why_words import counted


@dataclass(frozen=True, slots=True)
class Located:
    """A partition, the CRC32 of its name and its bundle; who leads it and who holds it (wire ids). One that is not there has no leader and
    no replicas."""

    name: str
    hash: int
    bundle: str
    leader: int | None
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Carried:
    """A bundle: how many partitions are in it, and how many of them each broker leads (wire ids, ascending)."""

    name: str
    partitions: int
    leaders: dict[int, int]


def bundles_in(snapshot: Snapshot, policy: PolicyDocument) -> Groups:
    """The bundles that a dry run with `policy` sees."""
    return groups_of(snapshot, policy.split if policy.unit == "group" else None)


def locate(snapshot: Snapshot, groups: Groups, topic: str, partition: int | None = None) -> tuple[Located, ...]:
    """Partitions of a topic, ascending, or the one. An unknown topic gives nothing, an unknown partition where it would be."""
    if partition is None:
        row = snapshot.row_of_topic.get(topic, -1)
        return tuple(_located(snapshot, groups, p) for p in np.flatnonzero(snapshot.partition_topic == row).tolist())
    p = snapshot.row_of_partition(topic, partition)
    name = f"{topic}-{partition}"
    return (_located(snapshot, groups, p) if p >= 0 else Located(name, topic_hash(name), groups.lookup(name), None, ()),)


def _located(snapshot: Snapshot, groups: Groups, p: int) -> Located:
    name, leader = snapshot.partition_name(p), int(snapshot.leader[p])
    hosts = tuple(int(snapshot.broker_ids[b]) for b in snapshot.replicas[p].tolist() if b >= 0)
    return Located(name, topic_hash(name), groups.names[groups.of[p]], int(snapshot.broker_ids[leader]) if leader >= 0 else None, hosts)


def carried(snapshot: Snapshot, groups: Groups, bundle: str) -> Carried:
    """Who leads the partitions of a bundle. O(partitions)."""
    if bundle not in groups.names:
        return Carried(bundle, 0, {})
    rows = np.flatnonzero(groups.of == groups.names.index(bundle))
    led = Counter(int(snapshot.broker_ids[b]) for b in snapshot.leader[rows].tolist() if b >= 0)
    return Carried(bundle, len(rows), dict(sorted(led.items())))


def located_text(found: Located) -> str:
    """A sentence on a partition."""
    leads = "no broker leads it" if found.leader is None else f"broker {found.leader} leads it"
    return f"{found.name}, hash {found.hash:08x}, is in {found.bundle}; {leads}, replicas on {', '.join(map(str, found.replicas))}."


def carried_text(found: Carried) -> str:
    """A sentence on a bundle."""
    if not found.partitions:
        return f"{found.name} has no partition."
    led = ", ".join(f"broker {broker} leads {count:,}" for broker, count in found.leaders.items())
    return f"{found.name} has {counted(found.partitions, 'partition')}: {led or 'no broker leads any'}."


def remarks(policy: PolicyDocument, bundles: Iterable[Carried]) -> list[str]:
    """How to read the answer: whether plans use these bundles, and what stands for a missing namespace."""
    said = []
    if policy.unit != "group":
        said.append("Bundles are not used: these goals have no policy with `unit: group`. Shown are the four of each namespace.")
    if any(b.name.startswith(f"bundle {NONE}/") for b in bundles):
        said.append(f"{NONE} stands for topics whose names have no namespace: no `/` and no dot.")
    return said
