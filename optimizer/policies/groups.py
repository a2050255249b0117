"""Groups of a cluster: ranges of the CRC32 of partition names in each namespace, as units of movement, split where they carry too much.

Called by `pipeline`, by the service, which counts checks, and by `trimtab policies lookup`. Pure: the groups follow from the snapshot, the
policy and those counts, so no boundaries have to be remembered, and a split changes ranges and never data. A group that is over no limit
any more is whole again. Source: Apache Pulsar's bundles and their automatic splits.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from cluster_model.snapshot import FloatArray, Snapshot
from goals.policy import Split
from optimizer.policies.bundles import FULL, bundle_at, equal_boundaries, namespace_of, topic_hash
from optimizer.policies.splits import Flow, at_positions, by_flow, by_topic_count, halves, reason_to_split, split

GROUPS = 4  # of a namespace that was not split
NONE = "(all)"  # the namespace of topics whose names have none


@dataclass(frozen=True, slots=True)
class Groups:
    """What every partition belongs to.

    Attributes
    ----------
    boundaries
        Namespace -> boundaries of its groups, ascending; a range is half open, the last one closed.
    of
        int64 [P]: index in `names`.
    names
        Of groups that hold a partition, by namespace and range.
    told
        What was split and why, and what waits to be, in sentences.
    parts
        Names of those that a split made.
    """

    boundaries: dict[str, tuple[int, ...]]
    of: np.ndarray
    names: tuple[str, ...]
    told: tuple[str, ...]
    parts: frozenset[str] = frozenset()

    def lookup(self, partition: str) -> str:
        """Name of the group that a partition (``topic-number``) is in, or would be."""
        namespace = namespace_of(partition) or NONE
        return _name(namespace, self.boundaries.get(namespace, equal_boundaries(GROUPS)), topic_hash(partition))


@dataclass(frozen=True, slots=True)
class SplitHits:
    """Checks in a row in which groups were over a limit of `rule`, by name; and the moment of the snapshot that was counted last."""

    rule: Split
    taken_at: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


def count_hits(snapshot: Snapshot, rule: Split, before: SplitHits | None = None) -> SplitHits:
    """One check more. A group that is over no limit, or not there, starts again; so do the parts of one that is whole again. A second look
    at the same moment is no second check; another rule starts again."""
    if before is not None and before.rule != rule:
        before = None
    if before is not None and snapshot.taken_at and before.taken_at == snapshot.taken_at:
        return before
    old = before.counts if before is not None else {}
    counts: dict[str, int] = {}

    def count(name: str) -> int:
        counts[name] = old.get(name, 0) + 1
        return counts[name]

    _groups(snapshot, rule, count)
    return SplitHits(rule, snapshot.taken_at, counts)


def groups_of(snapshot: Snapshot, rule: Split | None, hits: Mapping[str, int] | None = None) -> Groups:
    """Groups of the partitions of a snapshot. O(partitions x splits of their namespace).

    `hits` are checks in a row in which groups were over a limit, this one included (`count_hits`); without, no further check is waited for.
    """
    return _groups(snapshot, rule, (lambda name: rule.hits if rule is not None else 0) if hits is None else lambda name: hits.get(name, 0))


def _groups(snapshot: Snapshot, rule: Split | None, hits: Callable[[str], int]) -> Groups:
    names = [snapshot.partition_name(p) for p in range(snapshot.partition_count)]
    hashes = [topic_hash(name) for name in names]
    members: dict[str, list[int]] = defaultdict(list)
    for p, name in enumerate(names):
        members[namespace_of(name) or NONE].append(p)
    boundaries: dict[str, tuple[int, ...]] = {}
    told: list[str] = []
    rate, throughput = _carried(snapshot, ("produce_rate", "fetch_rate")), _carried(snapshot, ("network_in", "network_out"))
    for namespace, rows in sorted(members.items()):
        bounds = equal_boundaries(GROUPS)
        if rule is not None:
            flows = [Flow(hashes[p], float(rate[p]), float(throughput[p])) for p in rows]
            bounds, more = _split_up(namespace, bounds, flows, rule, hits)
            told += more
        boundaries[namespace] = bounds
    of_partition = [_name(namespace_of(n) or NONE, boundaries[namespace_of(n) or NONE], h) for n, h in zip(names, hashes, strict=True)]
    known = tuple(sorted(set(of_partition)))
    index = {name: i for i, name in enumerate(known)}
    whole = {_named(namespace, *ends) for namespace in boundaries for ends in pairwise(equal_boundaries(GROUPS))}
    of = np.array([index[name] for name in of_partition], np.int64)
    return Groups(boundaries, of, known, tuple(told), frozenset(known) - whole)


def _carried(snapshot: Snapshot, resources: Sequence[str]) -> FloatArray:
    """float64 [P]: what leaders carry of resources together."""
    known = [np.nan_to_num(snapshot.vectors(r)[0]) for r in resources if snapshot.is_reported(r)]
    return np.asarray(np.sum(known, axis=0)) if known else np.zeros(snapshot.partition_count)


def _split_up(
    namespace: str, bounds: tuple[int, ...], flows: list[Flow], rule: Split, hits: Callable[[str], int]
) -> tuple[tuple[int, ...], list[str]]:
    """Boundaries once no group is over a limit, cannot be split, or waits; and what was split, in sentences. `hits` is asked once of each
    group over a limit."""
    told: list[str] = []
    flows = sorted(flows, key=lambda flow: flow.hash)
    hashes = [flow.hash for flow in flows]
    left = list(range(len(bounds) - 1))
    while left and len(bounds) - 1 < rule.max_groups:
        at = left.pop(0)
        lower, upper = bounds[at], bounds[at + 1]
        inside = flows[bisect_left(hashes, lower) : len(flows) if upper == FULL else bisect_left(hashes, upper)]
        reason = reason_to_split(len(inside), sum(f.rate for f in inside), sum(f.throughput for f in inside), rule)
        if reason is None:
            continue
        name = _named(namespace, lower, upper)
        count = hits(name)
        if count < rule.hits:
            told.append(f"split of {name} waits: {reason} in {count} of {rule.hits} checks in a row")
            continue
        room = rule.max_groups - (len(bounds) - 1)
        cuts = [c for c in _cuts(lower, upper, inside, rule) if lower < c < upper][:room]
        if not cuts:
            continue
        bounds = split(bounds, cuts)
        told.append(f"split {name} at {', '.join(f'{c:08x}' for c in cuts)}: {reason}")
        left = sorted({*(i + len(cuts) if i > at else i for i in left), *range(at, at + len(cuts) + 1)})
    return bounds, told


def _cuts(lower: int, upper: int, inside: list[Flow], rule: Split) -> Sequence[int]:
    match rule.algorithm:
        case "range_equally_divide":
            return halves(lower, upper)
        case "topic_count_equally_divide":
            return by_topic_count(f.hash for f in inside)
        case "specified_positions_divide":
            return at_positions(lower, upper, [int(p, 16) for p in rule.positions], len(inside))
        case "flow_or_qps_equally_divide":
            return by_flow(inside, rule.rate, rule.bandwidth)


def _name(namespace: str, bounds: Sequence[int], value: int) -> str:
    at = bundle_at(value, bounds)
    return _named(namespace, bounds[at], bounds[at + 1])


def _named(namespace: str, lower: int, upper: int) -> str:
    """As Pulsar names it."""
    return f"bundle {namespace}/0x{lower:08x}_0x{upper:08x}"
