"""Which brokers share which loads: all active ones, those of a rack where racks leave no choice, those of a set of brokers.

Called by `optimizer.compile`; what comes out is what means are taken of (docs/contract.md, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cluster_model.snapshot import BoolArray, BrokerState, FloatArray, Snapshot
from optimizer.broker_sets import Sets
from optimizer.columns import Columns, any_differs, totals
from optimizer.problem import FOLLOWING, LEADING, MOVABLE, RF


class Share(NamedTuple):
    """Brokers (bool [B], of active ones only) and the load that they share."""

    members: BoolArray
    total: float


@dataclass(frozen=True, eq=False)
class Shares:
    """`totals` float64 [C] are of all active brokers; `by_column` has the parts of each, which add up to that."""

    totals: FloatArray
    by_column: tuple[tuple[Share, ...], ...]


class Ground(NamedTuple):
    """`rack` is int64 [B], `hard_rack` says that a hard goal keeps racks, `load` float64 [B, C] are the loads of brokers, where known."""

    snapshot: Snapshot
    columns: Columns
    sets: Sets | None
    rack: np.ndarray
    hard_rack: bool
    load: FloatArray | None


def shares_of(ground: Ground) -> Shares:
    """O(partitions), and with sets O(replicas)."""
    snapshot, columns = ground.snapshot, ground.columns
    excluded = snapshot.broker_states == BrokerState.EXCLUDED
    held = np.zeros((snapshot.broker_count, len(columns.laid.totals)))
    if excluded.any():
        held = ground.load if ground.load is not None else _held_by(columns, excluded)
    whole = columns.laid.totals - held[excluded].sum(axis=0)
    if ground.sets is None:
        every: np.ndarray | slice = slice(None)
        return Shares(whole, _parts(ground, every, np.ones(snapshot.broker_count, np.bool_), whole, held))
    moves = columns.partition[:, MOVABLE] == 1
    stays = np.flatnonzero(~moves)
    # What may not move counts where it stands; a leader that a repair would give it counts as its first replica.
    lead = np.where((columns.lead[stays] < 0) & columns.led[stays], 0, columns.lead[stays])
    fixed = loads_by_broker(columns.replicas[stays], lead, columns.vector[stays], snapshot.broker_count)
    parts: list[tuple[tuple[Share, ...], ...]] = []
    for number in np.unique(ground.sets.broker).tolist():
        rows = np.flatnonzero(moves & (ground.sets.topic == number)[snapshot.partition_topic])
        there = loads_by_broker(columns.replicas[rows], columns.lead[rows], columns.vector[rows], snapshot.broker_count)
        members = ground.sets.broker == number
        total = totals(columns.vector[rows], columns.partition[rows, RF], columns.led[rows]) - there[excluded].sum(axis=0)
        parts.append(_parts(ground, rows, members, total + fixed[members & ~excluded].sum(axis=0), there, fixed))
    return Shares(whole, tuple(tuple(s for part in parts for s in part[c]) for c in range(len(columns.resources))))


def _parts(
    ground: Ground, rows: np.ndarray | slice, members: BoolArray, total: FloatArray, held: FloatArray, fixed: FloatArray | None = None
) -> tuple[tuple[Share, ...], ...]:
    """By column, the shares of the active ones among `members` (bool [B]) in `total` float64 [C]: that of partitions `rows`, of which
    brokers hold `held` float64 [B, C], and what is `fixed` float64 [B, C] on brokers."""
    snapshot, columns, rack = ground.snapshot, ground.columns, ground.rack
    eligible = members & (snapshot.broker_states == BrokerState.ACTIVE)
    racks, factors = np.unique(rack[eligible]), columns.partition[rows, RF]
    forced = ground.hard_rack and len(factors) and None not in snapshot.racks and not any_differs(factors, len(racks))
    found: list[tuple[Share, ...]] = []
    for c in range(len(columns.resources)):
        if not eligible.any():
            found.append(())
        elif not forced or any_differs(columns.vector[rows, LEADING, c], columns.vector[rows, FOLLOWING, c]):
            found.append((Share(eligible, float(total[c])),))
        else:
            one, out = float(columns.vector[rows, LEADING, c].sum()), snapshot.broker_states == BrokerState.EXCLUDED
            more = np.zeros(len(rack)) if fixed is None else np.where(members & ~out, fixed[:, c], 0.0)
            found.append(tuple(
                Share(eligible & (rack == r), one - float(held[out & (rack == r), c].sum()) + float(more[rack == r].sum()))
                for r in racks.tolist()
            ))  # fmt: skip
    return tuple(found)


def broker_means(snapshot: Snapshot, resource: str, shares: tuple[Share, ...], eligible: BoolArray) -> FloatArray:
    """float64 [B]: the mean each broker is measured against, 0 where it is not eligible."""
    means = np.zeros(snapshot.broker_count)
    capacity = snapshot.capacity.get(resource, np.full(snapshot.broker_count, np.nan))
    given = capacity[eligible]
    alike = bool(np.isnan(given).any() or (given == given[:1]).all())
    for members, total in shares:
        if not members.any():
            continue
        if alike or capacity[members].sum() <= 0:
            means[members] = total / int(members.sum())
        else:
            means[members] = total * capacity[members] / capacity[members].sum()
    return np.maximum(means, 0.0)


def loads_by_broker(replicas: np.ndarray, lead: np.ndarray, vector: FloatArray, brokers: int) -> FloatArray:
    """float64 [B, C]: loads of all brokers; `lead` is the slot of the leader, `vector` as in `Problem`. Exact on grid values."""
    load = np.zeros((brokers, vector.shape[2]))
    if not len(replicas):
        return load
    leads = np.arange(replicas.shape[1])[None, :] == lead[:, None]
    present = replicas >= 0
    hosts = replicas[present]
    for c in range(vector.shape[2]):
        amount = np.where(leads, vector[:, LEADING, c][:, None], vector[:, FOLLOWING, c][:, None])
        load[:, c] = np.bincount(hosts, weights=amount[present], minlength=brokers)
    return load


def _held_by(columns: Columns, brokers: np.ndarray) -> FloatArray:
    """float64 [B, C]: loads of the `brokers` (bool [B]) among all."""
    at = np.append(brokers, False)
    rows = np.flatnonzero(np.logical_or.reduce([at[columns.replicas[:, s]] for s in range(columns.replicas.shape[1])]))
    return loads_by_broker(columns.replicas[rows], columns.lead[rows], columns.vector[rows], len(brokers))
