"""Log directories of one broker: on brokers small enough to try every placement, no placement is better, and none copies less."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.directories import Levelled, Target, Volumes, level

Key = tuple[float, float, float, int]


@st.composite
def brokers(draw: st.DrawFn, roomy: bool) -> Volumes:
    """2 or 3 volumes, up to 6 replicas; `roomy` volumes are at most half full, so that the order of moves matters nothing."""
    count = draw(st.integers(2, 3))
    rows = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, 40), st.booleans()), min_size=1, max_size=6))
    at = np.array([row[0] for row in rows], np.int64)
    weight = np.array([float(row[1]) for row in rows])
    others = np.array([float(draw(st.integers(0, 10))) for _ in range(count)])
    used = np.bincount(at, weight, count) + others
    if roomy:
        size = np.full(count, 2.0 * used.sum() + 2.0) + np.array([float(draw(st.integers(0, 60))) for _ in range(count)])
    else:
        size = used + np.array([float(draw(st.integers(1, 60))) for _ in range(count)])
    return Volumes(size, used, at, weight, np.array([row[2] for row in rows]))


def key_of(volumes: Volumes, target: Target, to: np.ndarray) -> Key:
    """What is wanted, first things first: above the hard share, outside the target range, bytes, moves."""
    use, moved = volumes.after(to), to != volumes.at
    parts = float(target.over(use).sum()), float(target.off(use).sum()), float(volumes.weight[moved].sum())
    return round(parts[0], 4), round(parts[1], 4), round(parts[2], 4), int(moved.sum())


def best_of_all(volumes: Volumes, target: Target) -> Key:
    movable = np.flatnonzero(volumes.movable)
    found = []
    for places in product(range(len(volumes.size)), repeat=len(movable)):
        to = volumes.at.copy()
        to[movable] = places
        if (volumes.after(to) <= volumes.size).all():
            found.append(key_of(volumes, target, to))
    return min(found)


def place_all(volumes: Volumes, rows: np.ndarray, places: tuple[int, ...]) -> np.ndarray:
    to = volumes.at.copy()
    to[rows] = places
    return to


def end_of(volumes: Volumes, found: Levelled) -> np.ndarray:
    to = volumes.at.copy()
    to[found.rows] = found.to
    return to


LIMITS = st.sampled_from([None, 0.5, 0.8])
BOUNDS = st.sampled_from([None, 0.05, 0.1, 0.3])


@settings(max_examples=80, deadline=None)
@given(brokers(roomy=True), LIMITS, BOUNDS)
def test_no_placement_is_better_and_none_as_good_copies_less(volumes: Volumes, limit: float | None, bound: float | None) -> None:
    target = Target.of(volumes, limit, bound)
    found = level(volumes, target)
    assert key_of(volumes, target, end_of(volumes, found)) == best_of_all(volumes, target)
    assert found.proven


@settings(max_examples=80, deadline=None)
@given(brokers(roomy=True), LIMITS, BOUNDS)
def test_a_volume_that_is_taken_out_of_use_is_left_by_all_that_may_and_no_placement_is_better(
    volumes: Volumes, limit: float | None, bound: float | None
) -> None:
    volumes = replace(volumes, movable=np.asarray(volumes.movable & ((volumes.weight > 0.0) | (volumes.at == 0))), closed=(0,))
    target = Target.of(volumes, limit, bound)
    found = level(volumes, target)
    to = end_of(volumes, found)
    assert not (volumes.movable & (to == 0)).any()
    assert not (to[volumes.movable & (volumes.at != 0)] == 0).any()
    rows = np.flatnonzero(volumes.movable)
    others = [place_all(volumes, rows, places) for places in product(range(1, len(volumes.size)), repeat=len(rows))]
    assert key_of(volumes, target, to)[:3] == min(key_of(volumes, target, other)[:3] for other in others)


@settings(max_examples=80, deadline=None)
@given(brokers(roomy=False), LIMITS, BOUNDS)
def test_every_move_finds_room_and_a_volume_over_its_limit_is_one_that_no_order_of_moves_mends(
    volumes: Volumes, limit: float | None, bound: float | None
) -> None:
    target = Target.of(volumes, limit, bound)
    found = level(volumes, target)
    use = volumes.used.copy()
    for row, place in zip(found.rows.tolist(), found.to.tolist(), strict=True):
        assert volumes.movable[row]
        use[place] += volumes.weight[row]
        assert use[place] <= volumes.size[place] + 1e-6
        use[volumes.at[row]] -= volumes.weight[row]
    assert np.allclose(use, found.use)
    best = best_of_all(volumes, target)
    key = key_of(volumes, target, end_of(volumes, found))
    assert key[:2] <= key_of(volumes, target, volumes.at)[:2]  # never worse than to do nothing
    assert key == best if found.proven else key >= best
    assert found.least <= found.bytes + 1e-6
