"""Splitting bundles: the four algorithms, and when a bundle is to be split. On Kafka a split changes ranges, never data.

Pure. Hashes are of topics in the bundle; cuts are new boundaries strictly between the bundle's own. Source: Apache Pulsar's bundle split
algorithms and automatic splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from goals.policy import Split

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


def reason_to_split(partitions: int, rate: float, bandwidth: float, rule: Split) -> str | None:
    """The first limit of `rule` that a bundle is over, in words; None where it is over none, or has too few partitions to be parted."""
    if partitions < FEWEST:
        return None
    over = (("partitions", partitions > rule.partitions), ("requests", rate > rule.rate), ("bytes", bandwidth > rule.bandwidth))
    return next((f"too many {what}" for what, is_over in over if is_over), None)
