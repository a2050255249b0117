"""Bundles: a namespace's topics by ranges of the CRC32 of their names, as units coarser than a partition.

Called by `units`; pure. A range is half open, the last one closed. Source: Apache Pulsar's namespace bundles. There the hash ffffffff
falls behind the last bundle; here it is in it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from zlib import crc32

FULL = 0xFFFFFFFF


def topic_hash(name: str) -> int:
    """CRC32 (zlib's polynomial) of a name in UTF-8, partition suffix included."""
    return crc32(name.encode("utf-8"))


def equal_boundaries(count: int) -> tuple[int, ...]:
    """Boundaries of `count` bundles of a whole namespace: multiples of 2^32 / count rounded down, and ffffffff.

    Raises
    ------
    ValueError
        Not a count from 1 to 2^31.
    """
    if not 1 <= count <= 2**31:
        raise ValueError(f"expected a number of bundles from 1 to 2147483648, found {count}")
    step = 2**32 // count
    return (*(i * step for i in range(count)), FULL)


def bundle_at(value: int, boundaries: Sequence[int]) -> int:
    """Index of the bundle that holds a hash.

    Raises
    ------
    ValueError
        The hash is outside all bundles.
    """
    if not boundaries[0] <= value <= boundaries[-1]:
        raise ValueError(f"expected a hash from {boundaries[0]:08x} to {boundaries[-1]:08x}, found {value:08x}")
    return min(bisect_right(boundaries, value) - 1, len(boundaries) - 2)


def namespace_of(name: str) -> str:
    """What stands before the last separator: ``tenant/space`` of ``persistent://tenant/space/topic``, else up to the first dot."""
    path = name.partition("://")[2] or name
    head, slash, _ = path.rpartition("/")
    return head if slash else name.partition(".")[0] if "." in name else ""
