"""All replicas of a broker without a compiler: their loads, and what each would bring elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optimizer.problem import (
    COLUMN,
    FOLLOWING,
    LEADING,
    MOVABLE,
    NO_RACK_GOAL,
    RACK_GOAL,
    RACK_LIMIT,
    RACK_OF,
    Problem,
)
from optimizer.search.state import LED, RACKS, STRAY, State
from optimizer.search.thrift import thrift_of
from optimizer.search.uncompiled.brokers import assess
from optimizer.search.uncompiled.scales import Scales

if TYPE_CHECKING:
    from optimizer.search.shelf import Shelf


def fill(problem: Problem, state: State) -> None:
    """`optimizer.search.commit.fill`."""
    from optimizer.search.topic_counts import count_topics

    slots = state.replicas.shape[1]
    flat = state.replicas.reshape(-1)
    entry = np.flatnonzero(flat >= 0)
    broker = flat[entry]
    leads = state.lead[entry // slots] == entry % slots
    role = np.where(leads, LEADING, FOLLOWING)
    for c in range(state.load.shape[1]):
        state.load[:, c] += np.bincount(
            broker, weights=problem.vector[entry // slots, role, c], minlength=len(state.hosts)
        )
    order = np.argsort(broker, kind="stable")
    counts = np.bincount(broker, minlength=len(state.hosts))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    state.place.reshape(-1)[entry[order]] = rank
    state.hosted[broker[order], rank] = entry[order]
    state.mark[broker[order], rank] = np.where(leads[order], LED, 0)
    state.hosts[:] = counts
    if problem.setting[RACK_GOAL] != NO_RACK_GOAL:
        full = crowded(problem, slice(None), state.replicas)
        state.units[RACKS] += np.bincount(state.replicas[full], minlength=len(state.hosts))
    for k in range(len(problem.topic_goal)):
        count_topics(problem, state, k)
    for b in range(len(state.hosts)):
        state.score[b, -1] = assess(problem, state, b, state.score[b])


def crowded(problem: Problem, rows: np.ndarray | slice, replicas: np.ndarray) -> np.ndarray:
    """bool [n, R]: the replica stands in a rack that holds more of its partition than may be there; partitions `rows`, on `replicas`."""
    racks = np.append(problem.broker[:, RACK_OF], -1)[replicas]
    same = np.zeros(replicas.shape, np.int64)
    for s in range(replicas.shape[1]):
        same += racks == racks[:, s : s + 1]
    return np.asarray((same > problem.partition[rows, RACK_LIMIT, None]) & (replicas >= 0))


def gather(problem: Problem, state: State, shelf: Shelf, b: int, thrifty: bool, factors: np.ndarray) -> int:
    """`optimizer.search.candidates.gather`."""
    fetch(problem, state, shelf, b)
    n = int(state.hosts[b])
    marks = state.mark[b, :n]
    factor = factors[:n]
    factor[:] = shelf.vector[b, -1, :n]
    stray = ((marks & STRAY) != 0) & (factor > 0.0)
    if thrifty:
        factor *= factor
    factor[stray] = 10.0
    return n


def scan(
    problem: Problem, state: State, watched: np.ndarray, source: int, target: int, n: int, block: np.ndarray,
    gains: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.candidates.scan`."""
    scales = Scales(problem, watched, source, target)
    gains[:n] = scales.falls(state, block[:, :n].astype(np.float64)[scales.columns])


def swap_gains(
    problem: Problem, state: State, watched: np.ndarray, v: int, u: int, x: np.ndarray, i: int, n: int, y: np.ndarray,
    gains: np.ndarray,
) -> None:  # fmt: skip
    """`optimizer.search.swaps.swap_gains`."""
    scales = Scales(problem, watched, v, u)
    gains[:n] = scales.falls(state, x[scales.columns, i, None] - y[scales.columns, :n])


def fetch(problem: Problem, state: State, shelf: Shelf, b: int) -> None:
    """`optimizer.search.shelf.fetch`."""
    n = int(state.hosts[b])
    role = np.where(state.mark[b, :n] & LED, np.int32(LEADING), np.int32(FOLLOWING))
    key = state.hosted[b, :n] * 2
    key += role
    known = int(shelf.known[b])
    stale = shelf.replica[b, :n] != key
    stale[known:] = True
    at = np.flatnonzero(stale)
    if len(at):
        rows = state.hosted[b, at] // state.replicas.shape[1]
        both = problem.vector[rows].astype(np.float32)
        shelf.replica[b, at] = key[at]
        shelf.vector[b][:-1, at] = both[np.arange(len(at)), role[at]].T
        shelf.vector[b][-1, at] = np.where(problem.partition[rows, MOVABLE] == 1, thrift_of(problem, rows), 0.0)
        for j, g in enumerate(shelf.goal.tolist()):
            c = problem.goal[g, COLUMN]
            shelf.lead[b, j, at] = both[:, LEADING, c] - both[:, FOLLOWING, c]
    shelf.known[b] = max(known, n)


def unlike(rows: np.ndarray, one: np.ndarray, one_lead: np.ndarray, other: np.ndarray, other_lead: np.ndarray) -> np.ndarray:
    """`optimizer.search.bring.unlike`."""
    rows = np.unique(rows)
    return np.asarray(rows[(one[rows] != other[rows]).any(axis=1) | (one_lead[rows] != other_lead[rows])])


def list_sizes(problem: Problem, entries: np.ndarray, n: int, slots: int, sizes: np.ndarray) -> None:
    """`optimizer.search.substitute.list_sizes`."""
    sizes[:n] = problem.size[entries[:n] // slots]


def closest(
    amount: np.ndarray, free: np.ndarray, held: int, source: np.ndarray, target: np.ndarray, both: bool, far: np.ndarray
) -> tuple[int, float]:
    """`optimizer.search.group.closest`."""
    far = far[:held]
    far[:] = 0.0
    for k in range(len(source)):
        _add_distance(far, source[k, 0] - amount[k, :held], source[k])
        if both:
            _add_distance(far, target[k, 0] + amount[k, :held], target[k])
    far[free[:held] != 1] = np.inf
    best = int(np.argmin(far)) if held else -1
    return (best, float(far[best])) if held and far[best] < np.inf else (-1, np.inf)


def _add_distance(far: np.ndarray, load: np.ndarray, need: np.ndarray) -> None:
    _, low, high, scale = need.tolist()
    far += np.where(load > high, (load - high) * scale, np.where(load < low, (low - load) * scale, 0.0))


def smallest(
    amounts: np.ndarray,
    sizes: np.ndarray,
    n: int,
    low: np.ndarray,
    high: np.ndarray,
    floor: float,
    after: int,
    roof: float,
) -> int:
    """`optimizer.search.windows.smallest`."""
    size = sizes[:n]
    good = (size < roof) & ((size > floor) | ((size == floor) & (np.arange(n) > after)))
    for k in range(len(low)):
        good &= (amounts[k, :n] >= low[k]) & (amounts[k, :n] <= high[k])
    rows = np.flatnonzero(good)
    return int(rows[np.argmin(size[rows])]) if len(rows) else -1


def keep_fitting(low: np.ndarray, high: np.ndarray, amounts: np.ndarray, entries: np.ndarray, n: int) -> int:
    """`optimizer.search.merge.keep_fitting`."""
    fits = np.zeros(n, np.bool_)
    for bottom, top in zip(low, high, strict=True):
        fits |= ((amounts[:, :n] >= bottom[:, None]) & (amounts[:, :n] <= top[:, None])).all(axis=0)
    kept = int(fits.sum())
    amounts[:, :kept], entries[:kept] = amounts[:, :n][:, fits], entries[:n][fits]
    return kept


def largest(problem: Problem, home: np.ndarray) -> np.ndarray:
    """`optimizer.search.merge.largest`."""
    most = np.zeros((len(problem.broker), problem.vector.shape[2]))
    loads = problem.vector.max(axis=1)
    rows, slots = np.nonzero((home >= 0) & (problem.partition[:, MOVABLE] == 1)[:, None])
    np.maximum.at(most, home[rows, slots], loads[rows])
    return most
