"""The integer program of one broker's log directories, by scipy. Called by `optimizer.directories` for small brokers.

Bytes are in units of the largest replica: rows are kept to a millionth of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster_model.snapshot import FloatArray

if TYPE_CHECKING:
    from optimizer.directories import Rows, Target, Volumes

WIDE = 1e-6  # by which a sum that was found is kept
SCALE = 1_000.0  # of costs: differences of a billionth of the largest replica count
MOVE = 1e-6  # what a move costs besides its bytes, in the largest replica


@dataclass(frozen=True, eq=False)
class Solution:
    """The volume of each replica (int64 [n]), the value of the cost, and whether none is smaller."""

    to: Rows
    value: float
    proven: bool


class Program:
    """Variables: one for each movable replica and other volume (0 or 1), then for each volume what is above its hard share, above its
    target range and below it.

    Attributes
    ----------
    over, off, cost
        float64 [variables], costs: bytes above the hard share, bytes outside the target range, bytes that are copied.
    """

    def __init__(self, volumes: Volumes, target: Target, gap: float, nodes: int) -> None:
        self._options: dict[str, float | int] = {"mip_rel_gap": gap, "node_limit": nodes}
        count = len(volumes.size)
        rows = np.flatnonzero(volumes.movable)
        self._volumes = volumes
        self._row = np.repeat(rows, count)
        self._place = np.tile(np.arange(count), len(rows))
        other = (self._place != volumes.at[self._row]) & ~np.isin(self._place, volumes.closed)
        self._row, self._place = self._row[other], self._place[other]
        unit = float(volumes.weight[rows].max()) or 1.0
        weight = volumes.weight[self._row] / unit
        moves = len(self._row)
        none = np.zeros(count)
        self.over = np.concatenate([np.zeros(moves), none + 1.0, none, none])
        self.off = np.concatenate([np.zeros(moves), none, none + 1.0, none + 1.0])
        self.cost = np.concatenate([weight + MOVE, none, none, none])
        self._build(target, unit, weight)

    def _build(self, target: Target, unit: float, weight: FloatArray) -> None:
        from scipy.sparse import coo_array, hstack, identity, vstack

        volumes, moves, count = self._volumes, len(self._row), len(self._volumes.size)
        at, used = np.arange(moves), volumes.used / unit
        ends = np.concatenate([self._place, volumes.at[self._row]]), np.tile(at, 2)
        load = coo_array((np.concatenate([weight, -weight]), ends), shape=(count, moves))
        eye, empty = identity(count), coo_array((count, count))
        once = coo_array((np.ones(moves), (self._row, at)), shape=(len(volumes.at), moves))
        blocks: list[tuple[Any, Any, Any]] = [
            (hstack([load, -eye, empty, empty]), -np.inf, target.hard / unit - used),
            (hstack([load, empty, -eye, empty]), -np.inf, target.high / unit - used),
            (hstack([load, empty, empty, eye]), target.low / unit - used, np.inf),
            (hstack([load, empty, empty, empty]), -np.inf, np.maximum(volumes.size / unit - used, 0.0)),
            (hstack([once, coo_array((len(volumes.at), 3 * count))]), -np.inf, 1.0),
        ]
        self._matrix = vstack([matrix for matrix, _, _ in blocks]).tocsr()
        self._low = np.concatenate([np.broadcast_to(low, matrix.shape[:1]) for matrix, low, _ in blocks])
        self._high = np.concatenate([np.broadcast_to(high, matrix.shape[:1]) for matrix, _, high in blocks])

    def solve(self, cost: FloatArray, kept: list[tuple[FloatArray, float]]) -> Solution | None:
        """The least of `cost`, with each sum of `kept` no larger than it was; None where there is no solution, or none was found."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        moves = len(self._row)
        rules = [LinearConstraint(self._matrix, self._low, self._high)]
        rules += [LinearConstraint(row[None, :], -np.inf, most + WIDE) for row, most in kept]
        whole = np.arange(len(cost)) < moves
        found = milp(
            SCALE * cost, constraints=rules, bounds=Bounds(0.0, np.where(whole, 1.0, np.inf)), integrality=whole.astype(np.int64),
            options=self._options,
        )  # fmt: skip
        if found.x is None:
            return None
        chosen = np.flatnonzero(found.x[:moves] > 0.5)
        to = self._volumes.at.copy()
        to[self._row[chosen]] = self._place[chosen]
        return Solution(to, float(cost @ found.x), found.status == 0 and not self._options["mip_rel_gap"])
