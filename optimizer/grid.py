"""Loads of partitions on an exact grid, laid out row by row for the search.

Called by `optimizer.columns`. On the grid float64 addition is exact: every sum stays below 2**53 steps of it. What a column needs is
found and written in one pass over a few thousand rows at a time, so that wide rows are written while they are in the cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BoolArray, FloatArray, Snapshot
from kernels.compiled import kernel

LEADS, ALL, ROLES = 0, 1, 2  # rows of `sums`
ROWS = 4_096  # laid out at a time


class Laid(NamedTuple):
    """What the loads of some partitions add up to, by column of load (C)."""

    steps: FloatArray  # [C], of the grid; 0 where a column needs none
    most: FloatArray  # [C], no sum of any roles exceeds it
    totals: FloatArray  # [C], of all replicas; exact
    leading: FloatArray  # [C], of all leaders; exact
    roles: np.ndarray  # int64 [C], partitions of several replicas whose leader costs another amount than a follower


def lay_out(
    snapshot: Snapshot, resources: tuple[str, ...], led: BoolArray, steps: FloatArray | None, vector: FloatArray
) -> Laid:
    """Write the loads of all partitions into `vector` float64 [P, 2, C].

    On the grid of `steps`, or on their own. `led` bool [P] marks those that count a leader. Columns beyond `resources` are left alone.
    """
    width = vector.shape[2]
    sums, most, factor = np.zeros((3, width)), np.zeros(width), snapshot.replication_factor
    loads = [tuple(map(pinned, snapshot.vectors(resource))) for resource in resources]
    for c, (leading, following) in enumerate(loads):
        most[c] = largest_sum(leading, following, factor) * 1.001
    steps = grid_steps(most) if steps is None else steps
    for start in range(0, len(factor), ROWS):
        stop = min(start + ROWS, len(factor))
        for c, (leading, following) in enumerate(loads):
            lay(start, stop, c, leading, following, factor, led, float(steps[c]), vector, sums)
    return Laid(steps, most, sums[ALL], sums[LEADS], sums[ROLES].astype(np.int64))


def grid_step(most: float) -> float:
    """The power of two on whose multiples any sum up to `most` is exact in float64; 0 where none is needed."""
    return math.ldexp(1.0, math.frexp(most)[1] - 52) if most > 0.0 else 0.0


def grid_steps(most: FloatArray) -> FloatArray:
    return np.array([grid_step(float(m)) for m in most])


def pinned(column: FloatArray) -> FloatArray:
    """The same as arrays of one type, for which kernels are compiled once: read-only, as those of a snapshot are."""
    pinned = np.ascontiguousarray(column, np.float64).view()
    pinned.flags.writeable = False
    return pinned


@kernel
def largest_sum(leading: np.ndarray, following: np.ndarray, factor: np.ndarray) -> float:
    """What all replicas cost where each of a partition's is as dear as its dearest."""
    most = 0.0
    for p in range(len(leading)):
        most += max(leading[p], following[p]) * factor[p]
    return most


@kernel
def lay(
    start: int, stop: int, c: int, leading: np.ndarray, following: np.ndarray, factor: np.ndarray, led: np.ndarray,
    step: float, vector: np.ndarray, sums: np.ndarray,
) -> None:  # fmt: skip
    """Column `c` of the partitions from `start` to `stop`, rounded to multiples of `step` (0: as they are), and added to `sums` [3, C]."""
    one, other = 0.0, 0.0
    lead_sum, sum_of_all, roles = 0.0, 0.0, 0.0
    for p in range(start, stop):
        one, other = leading[p], following[p]
        if step > 0.0:
            one, other = np.rint(one / step) * step, np.rint(other / step) * step
        vector[p, 0, c], vector[p, 1, c] = one, other
        lead_sum += one
        if led[p]:
            sum_of_all += one + (factor[p] - 1) * other
        else:
            sum_of_all += factor[p] * other
        if one != other and factor[p] > 1:
            roles += 1.0
    sums[LEADS, c] += lead_sum
    sums[ALL, c] += sum_of_all
    sums[ROLES, c] += roles
