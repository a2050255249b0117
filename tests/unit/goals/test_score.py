"""Broker scores where it hurts: edges, AutoMQ's published numbers, compiled form and plain one alike.

Every test runs on both forms of each kernel. A wrong score does not crash: it moves the wrong replicas.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pytest

from goals import score

MIB = 1024.0 * 1024.0
F = TypeVar("F", bound=Callable[..., float])


@dataclass(frozen=True)
class Kernels:
    """One form of the three kernels."""

    distribution: Callable[[float, float, float, float, bool, float], float]
    limit: Callable[[float, float], float]
    units: Callable[[float], float]


def forms() -> Iterator[Kernels]:
    yield Kernels(score.distribution_score, score.limit_score, score.units_score)
    yield Kernels(plain(score.distribution_score), plain(score.limit_score), plain(score.units_score))


def plain(kernel: F) -> F:
    """What was compiled; `kernel` itself where there is no compiler."""
    function: F = getattr(kernel, "py_func", kernel)
    return function


@pytest.fixture(params=list(forms()), ids=["compiled", "plain"])
def kernels(request: pytest.FixtureRequest) -> Kernels:
    form: Kernels = request.param
    return form


def step(kernels: Kernels, distance: float) -> float:
    """AutoMQ's step function from 0 to 100 with 0.9 at the step: what a score of 1 loses at this distance."""
    return 1.0 - kernels.distribution(1.0e3 + distance, 1.0e3, 0.0, 100.0, True, 0.0)


def test_automq_n3_the_linear_part(kernels: Kernels) -> None:
    found = [step(kernels, distance) for distance in (0.0, 40.0, 100.0)]
    assert found == pytest.approx([0.0, 0.36, 0.9], abs=1e-12)


def test_automq_n4_the_tail_rises_and_stays_below_one(kernels: Kernels) -> None:
    near, far = step(kernels, 120.0), step(kernels, sys.float_info.max)
    assert 0.9 < near < far < 1.0
    assert near == pytest.approx(0.9038082897, abs=1e-10)
    assert far == pytest.approx(0.9993511859, abs=1e-10)


@pytest.mark.parametrize(
    ("distance", "expected"),
    [
        (100.0001, 0.9000000217),
        (1.0e3, 0.9333333333),
        (1.0e6, 0.9666666667),
        (1.0e12, 0.9833333333),
    ],
)
def test_automq_step_values(kernels: Kernels, distance: float, expected: float) -> None:
    assert step(kernels, distance) == pytest.approx(expected, abs=1e-9)


@dataclass(frozen=True)
class Fleet:
    """Loads in MiB/s under AutoMQ's goal: share of the mean as bound, a size as var, logarithm in bytes/s."""

    kernels: Kernels
    loads: dict[int, float]
    ratio: float
    linear: float
    threshold: float = 0.0
    eligible: tuple[int, ...] = (0, 1, 2)

    def score(self, load: float) -> float:
        mean = sum(self.loads[b] for b in self.eligible) / len(self.eligible) * MIB
        bound = self.ratio * mean
        var = bound + self.linear * MIB
        return self.kernels.distribution(load * MIB, mean, bound, var, True, self.threshold * MIB)

    def action(self, load: float, source: int, target: int) -> float:
        """(min after - min before + 1) / 2 over the touched brokers that are eligible."""
        moved = {source: -load, target: load}
        touched = [b for b in moved if b in self.eligible]
        before = min(self.score(self.loads[b]) for b in touched)
        after = min(self.score(self.loads[b] + moved[b]) for b in touched)
        return (after - before + 1.0) / 2.0


def test_automq_g2_broker_scores(kernels: Kernels) -> None:
    fleet = Fleet(kernels, {0: 600.0, 1: 900.0, 2: 0.0, 3: 500.0}, ratio=0.15, linear=50.0, threshold=2.0)
    found = [fleet.score(load) for load in fleet.loads.values()]
    assert found == pytest.approx([0.55, 0.094141599183, 0.093095301752, 1.0], rel=1e-11)


@pytest.mark.parametrize(
    ("load", "source", "target", "expected"),
    [
        (50.0, 0, 2, 0.500245555655),
        (50.0, 1, 2, 0.500245555655),
        (50.0, 0, 1, 0.499722406940),
        (50.0, 0, 3, 0.725),
        (50.0, 1, 0, 0.500318719573),
        (50.0, 1, 3, 0.500318719573),
        (20.0, 3, 2, 0.500094834236),
        (20.0, 3, 0, 0.32),
        (20.0, 3, 1, 0.499884611910),
    ],
)
def test_automq_g3_action_scores(
    kernels: Kernels, load: float, source: int, target: int, expected: float
) -> None:
    fleet = Fleet(kernels, {0: 600.0, 1: 900.0, 2: 0.0, 3: 500.0}, ratio=0.15, linear=50.0, threshold=2.0)
    assert fleet.action(load, source, target) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [(0, 1, 0.320), (0, 2, 0.320), (1, 0, 0.5), (1, 2, 0.320), (2, 0, 0.608), (2, 1, 0.5)],
)
def test_automq_g4_one_move_of_40_mib(kernels: Kernels, source: int, target: int, expected: float) -> None:
    fleet = Fleet(kernels, {0: 40.0, 1: 80.0, 2: 120.0}, ratio=0.2, linear=100.0)
    assert [fleet.score(load) for load in (40.0, 80.0, 120.0)] == pytest.approx([0.784, 1.0, 0.784])
    assert fleet.action(40.0, source, target) == pytest.approx(expected, abs=1e-12)


def test_automq_g5_after_the_only_useful_move_all_are_within_range(kernels: Kernels) -> None:
    fleet = Fleet(kernels, {0: 80.0, 1: 80.0, 2: 80.0}, ratio=0.2, linear=100.0)
    assert [fleet.score(load) for load in fleet.loads.values()] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_edges_of_band_and_linear_part(kernels: Kernels, absolute: bool, side: float) -> None:
    def at(distance: float) -> float:
        return kernels.distribution(1024.0 + side * distance, 1024.0, 64.0, 256.0, absolute, 0.0)

    assert at(0.0) == 1.0
    assert at(64.0) == 1.0  # the edge is inside
    assert at(64.0 * (1 + 0.9e-9)) == 1.0  # so is what rounding puts a hair beyond it
    assert 0.999 < at(64.0 * (1 + 2e-9)) < 1.0  # and no step follows
    assert at(160.0) == 0.55
    assert at(256.0) == 1.0 - 0.9  # the end of the line, not yet the tail
    assert 0.0999 < at(256.0 + 2.0**-30) < 0.1


def test_the_edge_is_inside_also_where_rounding_makes_bound_and_var_one(kernels: Kernels) -> None:
    assert kernels.distribution(96.0, 64.0, 32.0, 32.0, False, 0.0) == 1.0


def test_an_edge_is_inside_to_the_last_bit_of_the_tolerance(kernels: Kernels) -> None:
    edge = 1.0 + score.TOLERANCE
    assert kernels.distribution(edge, 1e-30, 1.0, 2.0, False, 0.0) == 1.0
    assert kernels.distribution(math.nextafter(edge, 2.0), 1e-30, 1.0, 2.0, False, 0.0) < 1.0
    assert kernels.limit(edge, 1.0) == 1.0
    assert kernels.limit(math.nextafter(edge, 2.0), 1.0) < 1.0


def test_tail_in_units_of_the_bound(kernels: Kernels) -> None:
    """With var 4 bounds away, 16 bounds score a half and 64 a third of what var scores."""
    found = [kernels.distribution(100.0 + d, 100.0, 1.0, 4.0, False, 0.0) for d in (16.0, 64.0)]
    assert found == pytest.approx([0.05, 0.1 / 3.0], rel=1e-15)


def test_tail_absolute_is_the_literal_logarithm(kernels: Kernels) -> None:
    found = kernels.distribution(20_000.0, 10_000.0, 10.0, 100.0, True, 0.0)
    assert found == pytest.approx(0.1 * math.log(100.0) / math.log(10_000.0), rel=1e-15)
    assert found == pytest.approx(0.05, rel=1e-15)


def test_tail_absolute_needs_var_above_one(kernels: Kernels) -> None:
    """At 1 the logarithm is 0, below it the score would rise with distance or turn negative."""
    for var in (0.5, 1.0):
        relative = kernels.distribution(9.0, 2.0, 0.25, var, False, 0.0)
        assert kernels.distribution(9.0, 2.0, 0.25, var, True, 0.0) == relative
        assert 0.0 < relative < 0.1
    above = math.nextafter(1.0, 2.0)
    literal = kernels.distribution(9.0, 2.0, 0.25, above, True, 0.0)
    assert literal == pytest.approx(0.1 * math.log(above) / math.log(7.0), rel=1e-12)


def test_a_cluster_without_load_is_satisfied(kernels: Kernels) -> None:
    assert kernels.distribution(0.0, 0.0, 0.0, 0.0, False, 0.0) == 1.0
    assert kernels.distribution(5.0, 0.0, 0.0, 0.0, False, 0.0) == 1.0


def test_min_load_needs_broker_and_mean_below(kernels: Kernels) -> None:
    def at(load: float, mean: float) -> float:
        return kernels.distribution(load, mean, 0.1 * mean, 0.6 * mean, False, 100.0)

    below = math.nextafter(100.0, 0.0)
    assert at(0.0, below) == 1.0
    assert at(below, 10.0) == 1.0
    assert at(0.0, 100.0) < 0.1  # the mean is at it
    assert at(100.0, 10.0) < 0.1  # the broker is at it
    assert at(0.0, 1000.0) < 0.1


def test_a_bound_that_rounds_to_nothing_scores_a_number(kernels: Kernels) -> None:
    """Rounding must not give NaN: it compares false with everything and would stop every action."""
    tiny = 5.0e-324
    assert kernels.distribution(3 * tiny, tiny, 0.1 * tiny, 0.6 * tiny, False, 0.0) == 0.1
    assert kernels.distribution(0.0, tiny, 0.0, 0.0, True, 0.0) == 0.1


def test_limit_and_above(kernels: Kernels) -> None:
    found = [kernels.limit(load, 8.0) for load in (0.0, 8.0, 10.0, 16.0, 80.0)]
    assert found == [1.0, 1.0, 0.8, 0.5, 0.1]


def test_limits_below_one_unit_count_too(kernels: Kernels) -> None:
    """Half a core used where a quarter is allowed is as bad as 8 where 4 are."""
    assert kernels.limit(0.5, 0.25) == kernels.limit(8.0, 4.0) == 0.5


def test_limit_zero(kernels: Kernels) -> None:
    found = [kernels.limit(load, 0.0) for load in (0.0, 1.0, 3.0)]
    assert found == [1.0, 0.5, 0.25]


def test_misplaced_units(kernels: Kernels) -> None:
    assert [kernels.units(count) for count in (0.0, 1.0, 3.0, 9.0)] == [1.0, 0.5, 0.25, 0.1]
