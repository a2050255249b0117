"""Which replicas of one broker go to which of its log directories' volumes: the fewest bytes, then moves, that level them.

Called by `optimizer.directory_plan`, broker by broker: such moves leave loads of brokers as they are, so they need no part in the search.
Small brokers are solved exactly, as an integer program; the others by single moves and exchanges that gain most for their bytes. Moves come
in an order in which each finds room, with the ones before it done.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cluster_model.snapshot import BoolArray, FloatArray

Rows = npt.NDArray[np.int64]
EXACT, PROGRAM = 60, 400  # variables (replicas times other volumes) up to which a broker is solved exactly, and to `GAP`
GAP = 0.01  # share of the bytes that a plan may copy beyond the least there can be, before the program is asked
NODES, FEW = 20_000, 100  # of the program's tree, exactly and to `GAP`: beyond them its best counts, and is not called proven
CLOSE = 1e-6  # share of the largest replica that counts as nothing
LEAST = 1e-6  # bytes that do, where all replicas are empty
FULL = 1_000.0  # times a byte over the hard share, beside one outside the target range, where moves are compared


@dataclass(frozen=True, eq=False)
class Volumes:
    """Volumes of one broker and the replicas on them.

    Attributes
    ----------
    size, used
        float64 [V] bytes: of each volume, and in use there by whatever it is.
    at, weight, movable
        int64 [n], float64 [n], bool [n]: volume of each replica, its bytes, and whether it may move.
    closed
        Volumes that are taken out of use: nothing comes to them, and all that may move leaves.
    """

    size: FloatArray
    used: FloatArray
    at: Rows
    weight: FloatArray
    movable: BoolArray
    closed: tuple[int, ...] = ()

    @property
    def open(self) -> Rows:
        """Volumes that stay in use."""
        return np.delete(np.arange(len(self.size)), list(self.closed))

    @property
    def leaving(self) -> BoolArray:
        """bool [n]: replicas that are to leave their volume."""
        return self.movable & np.isin(self.at, self.closed)

    @property
    def fixed(self) -> FloatArray:
        """float64 [V], bytes in use that no replica that may move accounts for."""
        return np.asarray(self.used - np.bincount(self.at, np.where(self.movable, self.weight, 0.0), len(self.size)))

    @property
    def mean(self) -> float:
        """Share in use of all volumes together that stay in use, once the others are left."""
        coming = float(self.weight[self.leaving].sum())
        return float((self.used[self.open].sum() + coming) / self.size[self.open].sum())

    def after(self, to: Rows) -> FloatArray:
        """float64 [V], bytes in use once replicas are on volumes `to`."""
        count = len(self.size)
        return np.asarray(self.used + np.bincount(to, self.weight, count) - np.bincount(self.at, self.weight, count))


@dataclass(frozen=True, eq=False)
class Target:
    """Bytes that are wanted of each volume, float64 [V]: `low` to `high`, and never above `hard`."""

    low: FloatArray
    high: FloatArray
    hard: FloatArray

    @classmethod
    def of(cls, volumes: Volumes, limit: float | None, bound: float | None) -> Target:
        """At most `limit` of each volume (share), and within `bound` (share of the mean use) around the mean; None: without that. Of a
        volume that is taken out of use, only what cannot leave is wanted."""
        hard = np.full(len(volumes.size), np.inf) if limit is None else limit * volumes.size
        low, high = np.zeros(len(hard)), hard.copy()
        if bound is not None:
            high = np.minimum((1.0 + bound) * volumes.mean * volumes.size, hard)
            low = np.minimum((1.0 - bound) * volumes.mean * volumes.size, high)
        closed = list(volumes.closed)
        fixed = volumes.fixed[closed]  # below 0 where replicas count for more bytes than are in use; never to be filled up to 0
        low[closed], high[closed], hard[closed] = np.minimum(fixed, 0.0), fixed, np.inf
        return cls(low, high, hard)

    def over(self, use: FloatArray) -> FloatArray:
        """Bytes above the hard share, as `use` is."""
        return np.maximum(use - self.hard, 0.0)

    def off(self, use: FloatArray) -> FloatArray:
        """Bytes outside the target range."""
        return np.maximum(np.maximum(use - self.high, self.low - use), 0.0)

    def missed(self, use: FloatArray, which: Rows | slice = slice(None)) -> FloatArray:
        """One number for both, for volumes `which`."""
        part = Target(self.low[which], self.high[which], self.hard[which])
        return np.asarray(FULL * part.over(use) + part.off(use))


@dataclass(frozen=True, eq=False)
class Levelled:
    """Moves of one broker: rows of replicas in their order (int64 [m]), and the volume that each goes to (int64 [m]).

    `least` is how many bytes no plan with as good an end can avoid to copy; `proven`, that none has a better end or as good a one for fewer
    bytes.
    """

    rows: Rows
    to: Rows
    use: FloatArray
    bytes: float
    least: float
    proven: bool


def level(volumes: Volumes, target: Target) -> Levelled:
    """The moves that bring volumes under their hard share first, and into the target range then."""
    stays = volumes.at.copy()
    near = CLOSE * float(volumes.weight.max(initial=0.0))
    level_now = float(target.missed(volumes.used).sum()) <= near and not volumes.leaving.any()
    if level_now or not volumes.movable.any():
        return _levelled(volumes, target, stays, near, proven=True)
    best = _levelled(volumes, target, _left(volumes, target, _by_gain(volumes, target, near)), near)
    size = int(volumes.movable.sum()) * (len(volumes.size) - 1)
    close = target.off(best.use).sum() <= near and best.bytes <= (1.0 + GAP) * best.least
    if size > PROGRAM or (size > EXACT and close):
        return best
    to, proven = _exact(volumes, target, 0.0 if size <= EXACT else GAP)
    exact = _levelled(volumes, target, _left(volumes, target, to), near, proven)
    return exact if _rank(exact, target, near) <= _rank(best, target, near) else best


def _left(volumes: Volumes, target: Target, to: Rows) -> Rows:
    """The same without replicas, empty ones say, on volumes that are taken out of use: each goes where most room is, if that is enough. An
    empty one needs none."""
    to, use = to.copy(), volumes.after(to)
    rest = np.flatnonzero(volumes.leaving & np.isin(to, volumes.closed))
    for row in rest[np.lexsort((rest, -volumes.weight[rest]))].tolist():
        room = (np.minimum(target.hard, volumes.size) - use)[volumes.open]
        best = int(room.argmax())
        if volumes.weight[row] <= max(float(room[best]), 0.0):
            to[row] = volumes.open[best]
            use = volumes.after(to)
    return to


def _rank(found: Levelled, target: Target, near: float) -> tuple[float, float, float, int]:
    """Smaller is better; differences of less than `near` bytes are none."""
    step = max(near, LEAST)
    over, off = float(target.over(found.use).sum()), float(target.off(found.use).sum())
    return round(over / step / 8), round(off / step / 8), round(found.bytes / step / 8), len(found.rows)


def _levelled(volumes: Volumes, target: Target, to: Rows, near: float, proven: bool = False) -> Levelled:
    """The moves to `to` in an order, without those for which there is no room at any turn."""
    to = _first_of_equals(volumes, to)
    rows = _ordered(volumes, target, to)
    complete = len(rows) == int((to != volumes.at).sum())
    end = volumes.at.copy()
    end[rows] = to[rows]
    use, copied = volumes.after(end), float(volumes.weight[rows].sum())
    missed = float(target.off(use).sum())
    above, below = np.maximum(volumes.used - target.high, 0.0).sum(), np.maximum(target.low - volumes.used, 0.0).sum()
    leaving = volumes.leaving
    left = 0.0 if np.isin(end[leaving], volumes.closed).any() else float(volumes.weight[leaving].sum())
    least = copied if proven and complete else max(left, float(max(above, below)) - missed - near)
    return Levelled(rows, to[rows], use, copied, min(least, copied), proven and complete)


def _first_of_equals(volumes: Volumes, to: Rows) -> Rows:
    """The same with the first of equal replicas of a volume moving, to the first volume."""
    rows = np.flatnonzero(volumes.movable)
    weight, at, place = volumes.weight[rows], volumes.at[rows], to[rows]
    found = to.copy()
    found[rows[np.lexsort((rows, weight, at))]] = place[np.lexsort((place, place == at, weight, at))]
    return found


def _ordered(volumes: Volumes, target: Target, to: Rows) -> Rows:
    """Rows that move, from the fullest volume first, each once its target has room: below the hard share where that can be."""
    pending = np.flatnonzero(to != volumes.at)
    use, order = volumes.used.copy(), list[int]()
    while len(pending):
        filled = use[to[pending]] + volumes.weight[pending]
        excess = np.maximum(filled - target.hard[to[pending]], 0.0)
        fits = filled <= volumes.size[to[pending]]
        if not fits.any():
            break
        fullest = use[volumes.at[pending]] / volumes.size[volumes.at[pending]]
        first = int(np.lexsort((pending, -volumes.weight[pending], -fullest, excess, ~fits))[0])
        row = int(pending[first])
        use[to[row]] += volumes.weight[row]
        use[volumes.at[row]] -= volumes.weight[row]
        order.append(row)
        pending = np.delete(pending, first)
    return np.array(order, np.int64)


# -- by single moves and exchanges -----------------------------------------------------------------------------


def _by_gain(volumes: Volumes, target: Target, near: float) -> Rows:
    """int64 [n], the volume of each replica after the steps that gain most for their bytes, and without those that gain nothing."""
    to, use = volumes.at.copy(), volumes.used.copy()
    for _ in range(2 * len(to)):
        missed = target.missed(use)
        steps = (
            _best_move(volumes, target, to, use, worst, near) or _best_exchange(volumes, target, to, use, worst, near)
            for worst in np.argsort(-missed / volumes.size, kind="stable").tolist()
            if missed[worst] > 0.0
        )
        step = next((found for found in steps if found), None)
        if step is None:
            break
        for row, place in step:
            to[row] = place
        use = volumes.after(to)
    moved = np.flatnonzero(to != volumes.at)
    for row in moved[np.lexsort((moved, -volumes.weight[moved]))]:
        back = to.copy()
        back[row] = volumes.at[row]
        if target.missed(volumes.after(back)).sum() <= target.missed(volumes.after(to)).sum() + near / 8:
            to = back
    return to


Step = list[tuple[int, int]]


def _best_move(volumes: Volumes, target: Target, to: Rows, use: FloatArray, worst: int, near: float) -> Step | None:
    """The replica that has not moved yet, off or to the worst volume, and its new place; None where none gains anything."""
    free = np.flatnonzero(volumes.movable & (to == volumes.at) & (volumes.weight > 0.0))
    leaving = use[worst] > target.high[worst]
    rows = free[(to[free] == worst) == leaving]
    others = volumes.open[volumes.open != worst]
    row = np.repeat(rows, len(others)) if leaving else rows
    source, place = (np.full(len(row), worst), np.tile(others, len(rows))) if leaving else (to[row], np.full(len(row), worst))
    weight = volumes.weight[row]
    gain = _missed_less(target, use, source, weight) + _missed_less(target, use, place, -weight)
    gain[use[place] + weight > volumes.size[place]] = 0.0
    return _chosen(gain, weight, near, [(row, place)])


def _best_exchange(volumes: Volumes, target: Target, to: Rows, use: FloatArray, worst: int, near: float) -> Step | None:
    """Two replicas that change places: one of the worst volume, and one of another whose bytes differ by about what is missed."""
    free = np.flatnonzero(volumes.movable & (to == volumes.at))
    own = free[to[free] == worst]
    wanted = float(np.clip(use[worst], target.low[worst], target.high[worst])) - float(use[worst])
    found: list[tuple[Rows, Rows]] = []
    for other in volumes.open[volumes.open != worst].tolist() if worst not in volumes.closed else ():
        theirs = free[to[free] == other]
        if not len(theirs):
            continue
        theirs = theirs[np.argsort(volumes.weight[theirs], kind="stable")]
        at = np.searchsorted(volumes.weight[theirs], volumes.weight[own] + wanted)
        found += [(own, theirs[np.clip(at + near_by, 0, len(theirs) - 1)]) for near_by in (-1, 0, 1)]
    if not found:
        return None
    mine, their = (np.concatenate(parts) for parts in zip(*found, strict=True))
    place, shift = to[their], volumes.weight[mine] - volumes.weight[their]
    gain = _missed_less(target, use, np.full(len(mine), worst), shift) + _missed_less(target, use, place, -shift)
    gain[use[place] + volumes.weight[mine] > volumes.size[place]] = 0.0
    return _chosen(gain, volumes.weight[mine] + volumes.weight[their], near, [(mine, place), (their, np.full(len(mine), worst))])


def _missed_less(target: Target, use: FloatArray, place: Rows, weight: FloatArray) -> FloatArray:
    """By how much less is missed at volumes `place` that lose `weight` bytes each."""
    return target.missed(use[place], place) - target.missed(use[place] - weight, place)


def _chosen(gain: FloatArray, cost: FloatArray, near: float, parts: list[tuple[Rows, Rows]]) -> Step | None:
    """The step that gains most for its bytes; of equal ones the largest, then the first."""
    if not len(gain) or float(gain.max()) <= near:
        return None
    worth = np.where(gain > near, gain / np.maximum(cost, near), 0.0)
    worth = np.round(worth / worth.max(), 9)
    best = int(np.lexsort((parts[0][1], parts[0][0], -cost, -worth))[0])
    return [(int(row[best]), int(place[best])) for row, place in parts]


# -- exactly ---------------------------------------------------------------------------------------------------


def _exact(volumes: Volumes, target: Target, gap: float) -> tuple[Rows, bool]:
    """int64 [n], the best place of each replica, and whether that is proven: what is above the hard share, outside the target range, bytes
    and moves, each with the ones before it at their least."""
    from optimizer.directory_program import Program

    program = Program(volumes, target, gap, FEW if gap else NODES)
    costs = [program.over, program.off, program.cost]
    found = program.solve(program.cost, [(program.over, 0.0), (program.off, 0.0)])
    if found is not None:
        return found.to, found.proven
    kept: list[tuple[FloatArray, float]] = []
    proven = True
    to = volumes.at
    for cost in costs:
        found = program.solve(cost, kept)
        if found is None:
            return to, False
        kept.append((cost, found.value))
        to, proven = found.to, proven and found.proven
    return to, proven
