"""The cheapest placement of a tiny cluster that keeps every broker within given loads: integer programming, HiGHS through scipy.

What lower bounds are held against. Whether partition p has a replica on broker b, and whether it leads there, are the variables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix, hstack, identity, kron, vstack

from cluster_model.snapshot import BrokerState, FloatArray
from optimizer.course import Placement
from optimizer.placement.state import Rows
from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    KIND,
    LEADING,
    LIMIT,
    MOVABLE,
    NO_RACK_GOAL,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    STATE,
    Compiled,
    Problem,
)

MARGIN = 1e-7  # of the largest load: the solver's own tolerance is of that order
LEADERSHIP = 1e-4  # price of a leadership change, of the mean price of a move
GAP = 1e-6


@dataclass(frozen=True)
class Loads:
    """Least and most load of each broker in each goal on loads: float64 [B, G], the goals in the order of `goals` int64 [G]."""

    goals: Rows
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Cheapest:
    """A placement, its price in all, and whether no cheaper one exists."""

    placement: Placement
    price: float
    proven: bool


def linear_goals(problem: Problem) -> Rows:
    """int64 [G]: rows of goals on loads."""
    return np.flatnonzero(problem.goal[:, KIND] <= LIMIT).astype(np.int64)


def cheapest(compiled: Compiled, start: Placement, loads: Loads, price: FloatArray, node_limit: int) -> Cheapest | None:
    """The placement within `loads` that moves least off `start`, by `price` float64 [P] of moving a replica of each partition.

    Every partition has a leader, racks hold no more replicas of a partition than they may (or did), and partitions keep the number of racks
    that they have. What may not move stays.

    Returns
    -------
    None where no such placement was found within `node_limit` nodes.
    """
    problem = compiled.problem
    partitions, brokers = len(start.lead), len(problem.broker)
    home, led = _indicators(start, brokers)
    cells = partitions * brokers
    rows, low, high = _rules(problem, home, loads)
    moves = np.where(home, 0.0, price[:, None]).ravel()
    change = np.where(led, 0.0, LEADERSHIP * max(float(price.mean()), 1e-300)).ravel()
    cost = np.concatenate([moves, change])
    scale = max(float(price.max(initial=0.0)), 1e-300)
    least, most = _fixed(problem, home, led)
    found = milp(
        cost / scale, constraints=LinearConstraint(rows, low, high), bounds=Bounds(least, most), integrality=np.ones(2 * cells),
        options={"node_limit": node_limit, "mip_rel_gap": GAP},
    )  # fmt: skip
    if found.x is None:
        return None
    hosts, leads = (found.x[part].reshape(home.shape) > 0.5 for part in (slice(cells), slice(cells, None)))
    if (hosts.sum(axis=1) != home.sum(axis=1)).any() or (leads.sum(axis=1) != 1).any() or (leads & ~hosts).any():
        return None
    placement = _lists(start, hosts, leads)
    return Cheapest(placement, float((np.where(home, 0.0, price[:, None]) * hosts).sum()), found.status == 0)


def _indicators(start: Placement, brokers: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """bool [P, B] both: where replicas and leaders are."""
    home, led = np.zeros((2, len(start.lead), brokers), np.bool_)
    partition, slot = np.nonzero(start.replicas >= 0)
    home[partition, start.replicas[partition, slot]] = True
    leaders = start.leaders()
    rows = np.flatnonzero(leaders >= 0)
    led[rows, leaders[rows]] = True
    return home, led


def _fixed(problem: Problem, home: npt.NDArray[np.bool_], led: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """float64 [2 P B] both: least and most of each variable."""
    stays = (problem.partition[:, MOVABLE] == 0)[:, None] | (problem.broker[:, STATE] != BrokerState.ACTIVE)[None, :]
    now = np.concatenate([home.ravel(), led.ravel()]).astype(float)
    kept = np.concatenate([stays.ravel(), stays.ravel()])
    return np.where(kept, now, 0.0), np.where(kept, now, 1.0)


def _rules(problem: Problem, home: npt.NDArray[np.bool_], loads: Loads) -> tuple[Any, FloatArray, FloatArray]:
    """Rows (sparse) over the variables, replicas [P B] and leaders [P B], with their least and most."""
    partitions, brokers = home.shape
    cells = partitions * brokers
    nothing, once = csr_matrix((partitions, cells)), kron(identity(partitions), np.ones((1, brokers)))
    rows = [hstack([once, nothing]), hstack([nothing, once]), hstack([identity(cells), -identity(cells)])]
    low = [home.sum(axis=1), np.ones(partitions), np.zeros(cells)]
    high = [home.sum(axis=1), np.ones(partitions), np.ones(cells)]
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        racks = np.unique(problem.broker[:, RACK_OF])
        member = problem.broker[:, RACK_OF] == racks[:, None]
        held, limit = home @ member.T.astype(int), problem.partition[:, RACK_LIMIT].astype(int)[:, None]
        in_rack = kron(identity(partitions), csr_matrix(member.astype(float)))
        rows.append(hstack([in_rack, csr_matrix(in_rack.shape)]))
        low.append(np.where((limit > 1) & (held > 0), 1, 0).ravel())  # of several in a rack, one stays
        high.append(np.maximum(held, limit).ravel())
    for i, g in enumerate(loads.goals.tolist()):
        vector = problem.vector[:, :, problem.goal[g, COLUMN]]
        scale = max(float(np.abs(vector).sum()), 1e-300) / partitions
        follows, more = vector[:, FOLLOWING] / scale, (vector[:, LEADING] - vector[:, FOLLOWING]) / scale
        one = identity(brokers)
        rows.append(hstack([kron(csr_matrix(follows), one), kron(csr_matrix(more), one)]))
        low.append(loads.low[:, i] / scale + MARGIN)
        high.append(loads.high[:, i] / scale - MARGIN)
    return vstack(rows).tocsr(), np.concatenate(low).astype(float), np.concatenate(high).astype(float)


def _lists(start: Placement, hosts: npt.NDArray[np.bool_], leads: npt.NDArray[np.bool_]) -> Placement:
    """Replica lists of bool [P, B] both, brokers that stay in the slots of `start`."""
    replicas, lead = start.replicas.copy(), start.lead.copy()
    for p in range(len(lead)):
        before = start.replicas[p].tolist()
        new = [b for b in np.flatnonzero(hosts[p]).tolist() if b not in before]
        for slot, b in enumerate(before):
            if b >= 0 and not hosts[p, b]:
                replicas[p, slot] = new.pop(0)
        lead[p] = replicas[p].tolist().index(int(np.flatnonzero(leads[p])[0]))
    return Placement(replicas, lead)
