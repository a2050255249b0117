"""The fewest replica moves that bring every broker's replica count to its target, exactly.

Called by the amount `to_target_counts`. Counts only: it knows nothing of loads. At most one broker of a partition is replaced.

Two programs. First a maximum flow, in which each partition is lent to one of the brokers that have too many: where it carries every
replica that has to go, the sum of all surpluses is a lower bound, so it is proven that no plan does with fewer moves. Where it does not,
an integer program over partitions, sources and targets, with shortfalls at a high price. Source: the published idea of a minimal
rebalance by counts; the flow is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BoolArray
from optimizer.policies.flows import Arcs, cheapest_whole, largest_flow

Rows = npt.NDArray[np.int64]
GOLDEN = 0.6180339887498949  # steps of it fill [0, 1) evenly in any number
POOL = 6  # partitions lent to a broker for each that it has to give, before all are
LEAST_POOL = 64
MOST_COLUMNS = 300_000  # of the integer program: beyond, what the flow found is all there is
SHORT = 10_000.0  # price of a replica that is missing or too many, in moves
STAYS = 10.0 * SHORT  # of one that is left on a broker to be emptied: more than what that costs others


@dataclass(frozen=True)
class Placement:
    """What is to be counted. B brokers, P partitions, R slots; broker rows.

    Attributes
    ----------
    replicas
        int64 [P, R], -1 beyond a list.
    movable
        bool [P].
    takes
        bool [B]: may get replicas, and has a target.
    leaves
        bool [B]: is to be emptied. What is neither stays as it is and is not counted.
    rack
        int64 [B]; None where racks do not matter.
    per_rack
        int64 [P]: replicas allowed in one rack.
    cost
        float64 [P]: of partitions that would do equally well, the cheapest goes.
    """

    replicas: Rows
    movable: BoolArray
    takes: BoolArray
    leaves: BoolArray
    rack: Rows | None
    per_rack: Rows
    cost: npt.NDArray[np.float64]

    @property
    def counts(self) -> Rows:
        """int64 [B], replicas of each broker."""
        return np.bincount(self.replicas[self.replicas >= 0], minlength=len(self.takes)).astype(np.int64)


@dataclass(frozen=True)
class CountMoves:
    """Partition, slot and new broker of every move; `least` is a lower bound, and `proven` says that no plan has fewer."""

    partition: Rows
    slot: Rows
    target: Rows
    wanted: Rows  # int64 [B], counts that were aimed at
    least: int
    proven: bool


def spread_targets(counts: Rows, takes: BoolArray, leaves: BoolArray, tolerance: float = 0.0) -> Rows:
    """int64 [B]: counts that take the fewest moves, within one of each other, or within `tolerance` (a share) of the mean.

    Brokers that neither take nor leave keep theirs. What does not divide evenly goes to those that hold most now.
    """
    target = counts.copy()
    target[leaves] = 0
    rows = np.flatnonzero(takes)
    if not len(rows):
        return counts.copy()
    total = int(counts[rows].sum() + counts[leaves].sum())
    mean = total / len(rows)
    if tolerance > 0.0:
        low, high = int(np.ceil(mean * (1.0 - tolerance) - 1e-9)), int(np.floor(mean * (1.0 + tolerance) + 1e-9))
        low, high = min(low, total // len(rows)), max(high, -(-total // len(rows)))
    else:
        low, high = total // len(rows), -(-total // len(rows))
    wanted = np.clip(counts[rows], low, high)
    falling = np.lexsort((rows, -counts[rows]))
    return _filled(target, rows, wanted, total, (low, high), falling)


def _filled(target: Rows, rows: Rows, wanted: Rows, total: int, band: tuple[int, int], falling: Rows) -> Rows:
    """`wanted` brought to a sum of `total`: the fullest give first, the emptiest take first, level by level."""
    left = total - int(wanted.sum())
    while left:
        step = 1 if left > 0 else -1
        room = np.flatnonzero(wanted[falling] < band[1] if step > 0 else wanted[falling] > band[0])
        level = wanted[falling[room]]
        end = level.min() if step > 0 else level.max()
        same = falling[room[level == end]]
        others = level[level != end]
        until = (others.min() if step > 0 else others.max()) if len(others) else (band[1] if step > 0 else band[0])
        lift = min(abs(int(until) - int(end)), abs(left) // len(same))
        if lift:
            wanted[same] += step * lift
            left -= step * lift * len(same)
        else:  # fewer than all of them: what is over goes to those that hold most, what lacks is taken from those that hold least
            chosen = same[: abs(left)] if step > 0 else same[::-1][: abs(left)]
            wanted[chosen] += step
            left = 0
    target[rows] = wanted
    return target


def count_moves(given: Placement, target: Rows) -> CountMoves:
    """The fewest moves from the counts of `given` to `target` (int64 [B])."""
    counts = given.counts
    surplus = np.maximum(counts - target, 0)
    least = int(surplus.sum())
    found = _by_flow(given, target, least, pooled=True)
    if len(found[0]) < least:
        found = _by_flow(given, target, least, pooled=False)
    if len(found[0]) < least:
        exact = _by_program(given, target)
        if exact is not None:
            return CountMoves(*exact, target, least, True)
    return CountMoves(*found, target, least, len(found[0]) == least)


def may_take(given: Placement, rows: Rows, slots: Rows, targets: Rows) -> BoolArray:
    """bool [n, T]: whether each of `targets` may take the replica in `slots` of partitions `rows` (both int64 [n])."""
    lists = given.replicas[rows]
    fits = np.ones((len(rows), len(targets)), np.bool_)
    for s in range(lists.shape[1]):
        fits &= lists[:, s : s + 1] != targets
    if given.rack is None:
        return fits
    racks = np.where(lists >= 0, given.rack[lists], -1)
    gone = racks[np.arange(len(rows)), slots]
    alone = (racks == gone[:, None]).sum(axis=1) == 1
    there = np.zeros((len(rows), len(targets)), np.int64)
    for s in range(lists.shape[1]):
        there += (racks[:, s : s + 1] == given.rack[targets]) & (racks[:, s : s + 1] >= 0)
    same = gone[:, None] == given.rack[targets]
    there -= same
    crowded = there + 1 > given.per_rack[rows][:, None]
    loses = alone[:, None] & (there > 0) & ~same  # one rack fewer than before
    return np.asarray(fits & (same | ~(crowded | loses)))


def _by_flow(given: Placement, target: Rows, least: int, *, pooled: bool) -> tuple[Rows, Rows, Rows]:
    """Partition, slot and target of as many moves as a flow carries, each partition lent to one source."""
    counts = given.counts
    targets = np.flatnonzero(given.takes & (target > counts))
    rows, slots, source = _lent(given, counts - target, pooled)
    if not len(rows) or not len(targets) or not least:
        return _nothing()
    fits = may_take(given, rows, slots, targets)
    packed = np.packbits(fits, axis=1)
    key = np.concatenate([source[:, None].view(np.uint8).reshape(len(rows), 8), packed], axis=1)
    _, first, group = np.unique(np.ascontiguousarray(key).view([("", f"V{key.shape[1]}")]).ravel(), return_index=True, return_inverse=True)
    size = np.bincount(group)
    g, t = np.nonzero(fits[first])
    sources = np.flatnonzero(counts > target)
    arcs = Arcs()
    arcs.add("out", np.zeros(len(sources), np.int64), 1 + sources, (counts - target)[sources])
    at = 1 + len(counts)
    arcs.add("lend", 1 + source[first], at + np.arange(len(first)), size)
    into = at + len(first)
    chosen = arcs.add("move", at + g, into + t, size[g])
    arcs.add("in", into + np.arange(len(targets)), np.full(len(targets), into + len(targets)), (target - counts)[targets])
    flow = largest_flow(arcs, 0, into + len(targets))[chosen]
    order = np.argsort(group, kind="stable")
    starts = np.concatenate([[0], np.cumsum(size)])
    taken = flow > 0
    amount, g, t = flow[taken], g[taken], t[taken]
    before = np.concatenate([[0], np.cumsum(amount)])[:-1]
    opening = before - np.maximum.accumulate(np.where(np.concatenate([[True], g[1:] != g[:-1]]), before, 0))
    picks = np.repeat(starts[g] + opening - before, amount) + np.arange(int(amount.sum()))
    picked = order[picks]
    return rows[picked], slots[picked], np.repeat(targets[t], amount)


def _nothing() -> tuple[Rows, Rows, Rows]:
    return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)


def _lent(given: Placement, surplus: Rows, pooled: bool) -> tuple[Rows, Rows, Rows]:
    """Partition, slot and source of every partition that has a source among its brokers, cheapest first: of several sources, each gets
    its part by what it has to give; a broker that leaves comes before all others."""
    weight = np.where(given.leaves, surplus * 1e6, np.maximum(surplus, 0)).astype(np.float64)
    order = np.argsort(given.cost, kind="stable")
    order = order[given.movable[order]]
    lists = given.replicas[order]
    parts = np.where(lists >= 0, np.append(weight, 0.0)[lists], 0.0)
    total = np.cumsum(parts, axis=1)
    has = total[:, -1] > 0.0
    rows, total, lists = order[has], total[has], lists[has]
    point = ((np.arange(len(rows)) + 0.5) * GOLDEN) % 1.0 * total[:, -1]
    slots = np.minimum((total <= point[:, None]).sum(axis=1), lists.shape[1] - 1)
    source = lists[np.arange(len(rows)), slots]
    if pooled:
        rank = np.empty(len(rows), np.int64)
        by = np.argsort(source, kind="stable")
        starts = np.searchsorted(source[by], np.arange(len(surplus)))
        rank[by] = np.arange(len(rows)) - starts[source[by]]
        keep = rank < POOL * surplus[source] + LEAST_POOL
        rows, slots, source = rows[keep], slots[keep], source[keep]
    return rows, slots, source


def _by_program(given: Placement, target: Rows) -> tuple[Rows, Rows, Rows] | None:
    """The fewest moves, counts as near to `target` as they get at first: every broker may give and take. None where that is too large."""
    counts = given.counts
    movable = np.flatnonzero(given.movable)
    targets = np.flatnonzero(given.takes)
    lists = given.replicas[movable]
    _, first, group, size = np.unique(
        np.concatenate([np.sort(lists, axis=1), given.per_rack[movable][:, None]], axis=1), axis=0,
        return_index=True, return_inverse=True, return_counts=True,
    )  # fmt: skip
    group = group.ravel()
    if not len(first) or len(first) * lists.shape[1] * len(targets) > MOST_COLUMNS:
        return None
    columns = []
    for s in range(lists.shape[1]):
        rows = movable[first]
        source = given.replicas[rows, s]
        gives = (source >= 0) & np.append(given.takes | given.leaves, False)[source]
        fits = may_take(given, rows, np.full(len(rows), s), targets) & gives[:, None]
        g, t = np.nonzero(fits)
        columns.append(np.stack([g, source[g], targets[t]], axis=1))
    moves = np.concatenate(columns)
    chosen = cheapest_whole(moves, size, counts, target, given.takes | given.leaves, np.where(given.leaves, STAYS, SHORT))
    order = np.argsort(given.cost[movable], kind="stable")
    waiting: list[list[int]] = [[] for _ in first]
    for i in order[::-1].tolist():
        waiting[group[i]].append(int(movable[i]))
    rows_out, slots_out, targets_out = [], [], []
    for (g, source, new), amount in zip(moves[chosen > 0].tolist(), chosen[chosen > 0].tolist(), strict=True):
        for _ in range(amount):
            p = waiting[g].pop()
            rows_out.append(p)
            slots_out.append(int(np.flatnonzero(given.replicas[p] == source)[0]))
            targets_out.append(new)
    return np.array(rows_out, np.int64), np.array(slots_out, np.int64), np.array(targets_out, np.int64)
