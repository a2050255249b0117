"""The best placement of a small cluster, by an exact model: mixed integer programming, HiGHS through scipy.

Called by `benchmarks.gap`. Knows nothing of the planner. Whether partition p has a replica on broker b, and whether it leads there, are
the variables; replication factors, racks and the leader among the replicas are the rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix, hstack, identity, kron, vstack

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
SLACK = 1e-7  # on limits that a given placement meets exactly, shares of the mean and of all data


@dataclass(frozen=True)
class Instance:
    """B brokers, P partitions, G resources.

    Attributes
    ----------
    home
        bool [P, B], where the replicas are; each row sums to the replication factor.
    leading, following
        float64 [P, G], what a leader and what a follower cost.
    size
        float64 [P], bytes a new replica copies.
    mean
        float64 [B, G], above 0.
    rack
        int [B]; `rack_limit` is the most replicas of a partition in one rack.
    bound
        Half width of the band, share of the mean; only what is beyond it counts.
    """

    home: BoolArray
    leading: FloatArray
    following: FloatArray
    size: FloatArray
    mean: FloatArray
    rack: npt.NDArray[np.int64]
    rack_limit: int
    bound: float

    @property
    def all_bytes(self) -> float:
        return float((self.size[:, None] * self.home).sum())

    def worst(self, hosts: BoolArray, leads: BoolArray) -> float:
        """Largest deviation of a placement, share of the mean, at least `bound`."""
        load = leads.T @ self.leading + (hosts & ~leads).T @ self.following
        return max(self.bound, float(np.abs(load / self.mean - 1.0).max()))

    def moved(self, hosts: BoolArray) -> float:
        """Bytes that a placement copies."""
        return float((self.size[:, None] * (hosts & ~self.home)).sum())


@dataclass(frozen=True)
class Answer:
    """`value` of the best placement found (None: none), and `proven` where no better one exists."""

    value: float | None
    proven: bool


def least_deviation(instance: Instance, most_bytes: float, known: float, time_limit: float) -> Answer:
    """Smallest worst deviation among placements that copy at most `most_bytes`; one of them is known to have `known`."""
    rows, low, high = rules(instance)
    price = copied(instance)
    limit = most_bytes / max(instance.all_bytes, 1.0) + SLACK
    return solved(
        cost=np.append(np.zeros(rows.shape[1] - 1), 1.0),
        rows=vstack([rows, csr_matrix(price)]), low=np.append(low, -np.inf), high=np.append(high, limit),
        least=instance.bound, most=known + SLACK, time_limit=time_limit,
    )  # fmt: skip


def fewest_bytes(instance: Instance, worst: float, time_limit: float) -> Answer:
    """Fewest bytes copied among placements whose worst deviation is at most `worst`."""
    rows, low, high = rules(instance)
    found = solved(
        cost=copied(instance), rows=rows, low=low, high=high,
        least=0.0, most=worst + SLACK, time_limit=time_limit,
    )  # fmt: skip
    return found if found.value is None else Answer(found.value * max(instance.all_bytes, 1.0), found.proven)


def copied(instance: Instance) -> FloatArray:
    """float64 [variables]: share of all data that each replica copies; replicas at home copy nothing."""
    price = np.where(instance.home, 0.0, instance.size[:, None]) / max(instance.all_bytes, 1.0)
    return np.concatenate([price.ravel(), np.zeros(price.size + 1)])


def rules(instance: Instance) -> tuple[Any, FloatArray, FloatArray]:
    """Rows (sparse), lowest and highest sums over the variables: replicas [P * B], leaders [P * B], worst deviation."""
    partitions, brokers = instance.home.shape
    cells = partitions * brokers
    nothing = csr_matrix((partitions, cells))
    once = kron(identity(partitions), np.ones((1, brokers)))
    racks = np.unique(instance.rack)
    in_rack = kron(identity(partitions), (instance.rack == racks[:, None]).astype(float))
    blocks = [
        (hstack([once, nothing]), instance.home.sum(axis=1), instance.home.sum(axis=1)),
        (hstack([nothing, once]), np.ones(partitions), np.ones(partitions)),
        (hstack([identity(cells), -identity(cells)]), np.zeros(cells), np.ones(cells)),
        (hstack([in_rack, csr_matrix(in_rack.shape)]), np.zeros(in_rack.shape[0]),
         np.full(in_rack.shape[0], instance.rack_limit)),
    ]  # fmt: skip
    rows = [hstack([matrix, csr_matrix((matrix.shape[0], 1))]) for matrix, _, _ in blocks]
    low, high = [b[1] for b in blocks], [b[2] for b in blocks]
    worst = -csr_matrix(np.ones((brokers, 1)))
    for g in range(instance.leading.shape[1]):
        share = 1.0 / instance.mean[:, g]
        held = kron(instance.following[:, g], np.diag(share))
        more = kron(instance.leading[:, g] - instance.following[:, g], np.diag(share))
        for sign in (1.0, -1.0):
            rows.append(hstack([sign * csr_matrix(held), sign * csr_matrix(more), worst]))
            low.append(np.full(brokers, -np.inf))
            high.append(np.full(brokers, sign))
    return vstack(rows).tocsr(), np.concatenate(low).astype(float), np.concatenate(high).astype(float)


def solved(
    cost: FloatArray, rows: Any, low: FloatArray, high: FloatArray, least: float, most: float, time_limit: float
) -> Answer:
    """Minimise `cost` with the last variable, the worst deviation, between `least` and `most`, all others 0 or 1."""
    lowest, highest, whole = np.zeros(len(cost)), np.ones(len(cost)), np.ones(len(cost))
    lowest[-1], highest[-1], whole[-1] = least, most, 0
    result = milp(
        cost, constraints=LinearConstraint(rows, low, high), bounds=Bounds(lowest, highest), integrality=whole,
        options={"time_limit": time_limit, "mip_rel_gap": 1e-6},
    )  # fmt: skip
    return Answer(None if result.x is None else float(result.fun), result.status == 0)
