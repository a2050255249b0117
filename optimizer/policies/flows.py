"""Flows and small integer programs by scipy, for parts that are exact.

Called by `counts`. Whole numbers in, whole numbers out; the same input gives the same answer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BoolArray

Rows = npt.NDArray[np.int64]
LARGEST = 2**31 - 1  # capacity of an arc


class Arcs:
    """Arcs of a network, added a block at a time. Two arcs between the same nodes are not allowed."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Rows, Rows, Rows]] = []
        self._count = 0

    def add(self, name: str, tail: Rows, head: Rows, capacity: Rows) -> slice:
        """Add arcs; where they stand among all. `name` is for the reader of the code."""
        assert name
        assert len(tail) == len(head) == len(capacity)
        self._blocks.append((tail, head, np.minimum(capacity, LARGEST)))
        self._count += len(tail)
        return slice(self._count - len(tail), self._count)

    def columns(self) -> tuple[Rows, Rows, Rows]:
        """Tails, heads and capacities of all arcs in the order they were added."""
        tail, head, capacity = (np.concatenate(c).astype(np.int64) for c in zip(*self._blocks, strict=True))
        return tail, head, capacity


def largest_flow(arcs: Arcs, source: int, sink: int) -> Rows:
    """int64 [arcs], a maximum flow from `source` to `sink`."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_flow

    tail, head, capacity = arcs.columns()
    nodes = int(max(tail.max(), head.max(), sink)) + 1
    matrix = csr_array((capacity.astype(np.int32), (tail, head)), shape=(nodes, nodes))
    flow = maximum_flow(matrix, source, sink).flow
    found = np.asarray(flow[tail, head]).ravel()
    return np.asarray(np.maximum(found, 0), dtype=np.int64)


def cheapest_whole(
    moves: Rows, size: Rows, counts: Rows, target: Rows, judged: BoolArray, short: npt.NDArray[np.float64]
) -> Rows:
    """int64 [n]: how often each of `moves` (group, source, target broker; int64 [n, 3]) is made, so that counts get to `target` with the
    fewest moves, each group at most `size` times. A replica that is missing or too many in the end costs as many moves as `short`
    (float64 [B]) says."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array, hstack, identity, vstack

    count, brokers = len(moves), len(counts)
    ones, at = np.ones(count), np.arange(count)
    ends = np.concatenate([moves[:, 2], moves[:, 1]]), np.tile(at, 2)
    balance = coo_array((np.concatenate([ones, -ones]), ends), shape=(brokers, count))
    groups = coo_array((ones, (moves[:, 0], at)), shape=(len(size), count))
    unit = identity(brokers)
    empty = coo_array((len(size), 2 * brokers))
    matrix = vstack([hstack([balance, unit, -unit]), hstack([groups, empty])]).tocsr()
    wanted = np.where(judged, target - counts, 0).astype(np.float64)
    low = np.concatenate([wanted, np.zeros(len(size))])
    high = np.concatenate([wanted, size.astype(np.float64)])
    cost = np.concatenate([ones, short, short])
    most = np.concatenate([np.minimum(size[moves[:, 0]], LARGEST), np.full(2 * brokers, np.inf)])
    found = milp(cost, constraints=LinearConstraint(matrix, low, high), bounds=Bounds(0, most), integrality=np.ones(len(cost)))
    if found.x is None:
        raise AssertionError(f"a program that always has a solution has none: {found.message}")
    return np.asarray(np.rint(found.x[:count]), dtype=np.int64)
