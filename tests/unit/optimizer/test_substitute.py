"""An operator should not copy a large replica where a smaller one of the same broker brings the same balance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from optimizer.search.substitute import substitute
from tests.unit.optimizer.actions import Document, Trial, partition, usage

# Network in and disk of what broker 1 holds; the first has moved to broker 2.
ALIKE = [(20.0, 900.0), (20.0, 500.0), (20.0, 100.0), (20.0, 100.0), (5.0, 10.0)]


def placed(held: Sequence[tuple[float, float]], *goals: Document, moved: int = 1) -> tuple[int, list[int]]:
    """How many substitutes were found after the first replicas of broker 1 went to 2, and the broker row of each of its partitions."""
    others = [(30.0, 50.0), (10.0, 50.0), (70.0, 50.0)]
    rows = [partition([1], network_in=x, disk=y) for x, y in held]
    rows += [partition([b], network_in=x, disk=y) for b, (x, y) in zip((2, 2, 3), others, strict=True)]
    made = Trial([1, 2, 3], rows, *goals)
    home = made.state.replicas.copy()
    replicas = home.copy()
    replicas[:moved, 0] = 1
    state = made.moved_to(replicas)
    found = substitute(made.compiled.problem, state, home, np.arange(moved), np.zeros(4, np.uint8))
    return int(found), state.replicas[: len(held), 0].tolist()


def test_the_smallest_that_keeps_both_brokers_in_band_goes_instead() -> None:
    found, after = placed(ALIKE, usage(bound=0.15))
    assert found == 1
    assert after == [0, 0, 1, 0, 0]  # the first of two of the same size; that of 10 would be too little


def test_a_large_replica_goes_where_a_smaller_one_would_leave_a_band() -> None:
    assert placed([(20.0, 900.0), (5.0, 10.0), (60.0, 10.0)], usage(bound=0.15)) == (0, [1, 0, 0])


def test_a_smaller_replica_may_not_take_a_hard_limit_of_another_load_with_it() -> None:
    limit: Document = {"kind": "capacity", "resource": "cpu", "limit": 1.0, "name": "cpu", "hard": True}
    rows = [partition([1], network_in=20.0, disk=y, cpu=x) for y, x in ((900.0, 1.0), (100.0, 9.0), (400.0, 1.0))]
    rows += [partition([2], network_in=1.0, disk=1.0, cpu=1.0)]
    made = Trial([{"id": b, "capacity": {"cpu": 5.0}} for b in (1, 2)], rows, limit)
    home = made.state.replicas.copy()
    replicas = home.copy()
    replicas[0, 0] = 1
    state = made.moved_to(replicas)
    assert substitute(made.compiled.problem, state, home, np.arange(1), np.zeros(3, np.uint8)) == 1
    assert state.replicas[:, 0].tolist() == [0, 0, 1, 1]


def test_every_large_replica_finds_another_substitute() -> None:
    held = [(20.0, 900.0), (20.0, 800.0), (20.0, 100.0), (20.0, 50.0), (20.0, 50.0)]
    found, after = placed(held, usage(bound=0.5), moved=2)
    assert found == 2
    assert after == [0, 0, 0, 1, 1]
