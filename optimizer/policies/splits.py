"""Splitting bundles: the four algorithms, and when a bundle is to be split. On Kafka a split changes ranges, never data.

Pure. Hashes are of topics in the bundle; cuts are new boundaries strictly between the bundle's own. Source: Apache Pulsar's bundle split
algorithms and automatic splits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

MEBI = 1024.0 * 1024.0
HEADROOM = 1.10  # of a limit: a bundle below is not split by its flow
FEWEST = 2  # topics that can be parted


@dataclass(frozen=True, slots=True)
class Flow:
    """A topic by hash: messages/s, and bytes/s."""

    hash: int
    rate: float
    throughput: float


def halves(lower: int, upper: int, parts: int = 2) -> tuple[int, ...]:
    """Cuts into `parts` equal ranges; none where there is nothing between the ends."""
    if upper - lower <= 1:
        return ()
    step = (upper - lower) // parts
    return tuple(lower + i * step for i in range(1, parts)) if step else ()


def by_topic_count(hashes: Iterable[int]) -> tuple[int, ...]:
    """One cut that leaves as many topics on either side; none for fewer than two."""
    ordered = sorted(hashes)
    if len(ordered) < FEWEST:
        return ()
    middle = len(ordered) // 2
    return (ordered[middle - 1] + (ordered[middle] - ordered[middle - 1]) // 2,)


def at_positions(lower: int, upper: int, positions: Sequence[int], topics: int) -> tuple[int, ...]:
    """The given positions that lie within; none for fewer than two topics.

    Raises
    ------
    ValueError
        No positions are given.
    """
    if not positions:
        raise ValueError("expected positions to split at, found none; give at least one")
    return tuple(sorted({p for p in positions if lower < p < upper})) if topics >= FEWEST else ()


def by_flow(flows: Iterable[Flow], most_rate: float, most_throughput: float, *, plus_one: bool = True) -> tuple[int, ...]:
    """Cuts, walking by hash, where the next topic would take a range over a limit; `most_throughput` in bytes/s.

    Topics without traffic do not count; with fewer than two, or a bundle not 10% over either limit, there is none. `plus_one` puts a cut
    one behind the middle, as the source does.
    """
    busy = sorted((f for f in flows if f.rate > 0.0 or f.throughput > 0.0), key=lambda f: f.hash)
    over = sum(f.rate for f in busy) >= most_rate * HEADROOM or sum(f.throughput for f in busy) >= most_throughput * HEADROOM
    if len(busy) < FEWEST or not over:
        return ()
    cuts = []
    rate, throughput = busy[0].rate, busy[0].throughput
    for before, topic in pairwise(busy):
        if rate + topic.rate > most_rate or throughput + topic.throughput > most_throughput:
            cuts.append(before.hash + (topic.hash - before.hash) // 2 + (1 if plus_one else 0))
            rate, throughput = 0.0, 0.0
        rate, throughput = rate + topic.rate, throughput + topic.throughput
    return tuple(cuts)


def split(boundaries: Sequence[int], cuts: Iterable[int]) -> tuple[int, ...]:
    """Boundaries with the cuts among them."""
    return tuple(sorted({*boundaries, *cuts}))


@dataclass(frozen=True, slots=True)
class Limits:
    """When a bundle is to be split: topics, sessions (-1 off), messages/s, bytes/s, checks, bundles of a namespace, splits in a check."""

    topics: int = 1000
    sessions: int = 1000
    rate: float = 30_000.0
    throughput: float = 100.0 * MEBI
    hits: int = 3
    most_bundles: int = 128
    per_cycle: int = 10


@dataclass(frozen=True, slots=True)
class Bundle:
    """What is known of a bundle now."""

    name: str
    topics: int
    sessions: int = 0
    rate: float = 0.0
    throughput: float = 0.0
    siblings: int = 1  # bundles of its namespace, itself included
    namespace: str = ""


def reason_to_split(bundle: Bundle, limits: Limits) -> str | None:
    """The first limit that a bundle is over: Topics, Sessions, MsgRate, Bandwidth; None where it is normal."""
    if bundle.topics < FEWEST:
        return None
    if bundle.topics > limits.topics > 0:
        return "Topics"
    if bundle.sessions > limits.sessions > 0:
        return "Sessions"
    if bundle.rate > limits.rate:
        return "MsgRate"
    return "Bandwidth" if bundle.throughput > limits.throughput else None


def due(bundles: Iterable[Bundle], limits: Limits, hits: Mapping[str, int]) -> tuple[dict[str, str], dict[str, int]]:
    """Bundles to split now, with the reason, and the hits of all for the next check. Over a limit in more checks in a row than
    `limits.hits`; a bundle that is normal, gone or split starts again. One namespace's splits count against its most bundles."""
    chosen: dict[str, str] = {}
    after: dict[str, int] = {}
    added: Counter[str] = Counter()
    for bundle in bundles:
        reason = reason_to_split(bundle, limits)
        if reason is None:
            continue
        count = hits.get(bundle.name, 0) + 1
        room = len(chosen) < limits.per_cycle and bundle.siblings + added[bundle.namespace] < limits.most_bundles
        if count > limits.hits and room:
            chosen[bundle.name] = reason
            added[bundle.namespace] += 1
        else:
            after[bundle.name] = count
    return chosen, after
