"""Large brokers: the target range is reached at hardly more bytes than any plan needs, in an order that finds room, and always the same."""

from __future__ import annotations

import numpy as np
import pytest

from optimizer.directories import Target, Volumes, level


def large(seed: int, replicas: int = 1000, count: int = 6) -> Volumes:
    """Volumes of one size of which the first ones are much fuller."""
    rng = np.random.default_rng(seed)
    at = np.minimum((rng.random(replicas) ** 1.5 * count).astype(np.int64), count - 1)
    weight = rng.lognormal(22.0, 1.5, replicas)
    used = np.asarray(np.bincount(at, weight, count), np.float64)
    return Volumes(np.full(count, 1.15 * float(used.max())), used, at, weight, np.ones(replicas, np.bool_))


@pytest.mark.parametrize("seed", range(4))
def test_a_large_broker_gets_into_its_range_for_hardly_more_bytes_than_it_must(seed: int) -> None:
    volumes = large(seed)
    target = Target.of(volumes, 0.8, 0.10)
    found = level(volumes, target)
    assert float(target.missed(found.use).sum()) == pytest.approx(0.0, abs=1.0)
    assert 0.0 < found.least <= found.bytes <= 1.01 * found.least
    again = level(volumes, target)
    assert (again.rows.tolist(), again.to.tolist()) == (found.rows.tolist(), found.to.tolist())


def test_a_level_broker_is_left_alone_also_right_after_its_plan() -> None:
    volumes = large(0)
    target = Target.of(volumes, 0.8, 0.10)
    found = level(volumes, target)
    to = volumes.at.copy()
    to[found.rows] = found.to
    after = Volumes(volumes.size, found.use, to, volumes.weight, volumes.movable)
    assert not len(level(after, Target.of(after, 0.8, 0.10)).rows)


def test_two_replicas_change_places_where_no_single_move_helps() -> None:
    """Each volume holds two replicas of nearly its mean: one more is too many on either."""
    at, weight = np.array([0, 0, 1, 1]), np.array([40.0, 30.0, 20.0, 22.0])
    used = np.asarray(np.bincount(at, weight, 2), np.float64)
    volumes = Volumes(np.full(2, 100.0), used, at, weight, np.ones(4, np.bool_))
    found = level(volumes, Target.of(volumes, 0.8, 0.10))
    assert sorted(found.rows.tolist()) == [1, 2]
    assert found.use.tolist() == [60.0, 52.0]
    assert found.proven


def test_what_may_not_move_stays_though_the_volume_is_over_its_limit() -> None:
    at, weight = np.array([0, 0, 1]), np.array([50.0, 40.0, 5.0])
    volumes = Volumes(np.full(2, 100.0), np.array([90.0, 5.0]), at, weight, np.array([False, True, True]))
    found = level(volumes, Target.of(volumes, 0.8, None))
    assert found.rows.tolist() == [1]
    assert found.bytes == found.least == 40.0


def test_a_move_waits_until_the_one_before_has_made_room() -> None:
    """The 60 go to the second volume, which must give its 50 to the third first."""
    at, weight = np.array([0, 0, 1, 2]), np.array([60.0, 30.0, 50.0, 0.0])
    volumes = Volumes(np.array([100.0, 100.0, 70.0]), np.array([90.0, 50.0, 0.0]), at, weight, np.array([True, False, True, True]))
    found = level(volumes, Target.of(volumes, 0.75, None))
    assert found.rows.tolist() == [2, 0]
    assert found.to.tolist() == [2, 1]
