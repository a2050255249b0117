"""Broker scores for any load: in (0, 1], continuous, falling with distance, equal to a plain reference."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from goals.score import distribution_score, limit_score, units_score

means = st.floats(1e-6, 1e15)
bounds = st.floats(1e-4, 2.0)
beyond = st.floats(1e-3, 50.0)  # var above bound, in bounds
distances = st.floats(0.0, 1e6)  # in bounds


def reference(load: float, mean: float, near: float, far: float, absolute: bool, min_load: float) -> float:
    """The contract's sentences, one by one, by slopes and powers instead of its formulas."""
    if mean == 0.0 or max(load, mean) < min_load:
        return 1.0
    away = max(load, mean) - min(load, mean)
    if not away > near:
        return 1.0
    if not away > far:
        share_of_the_way = (far - away) / (far - near)
        return 0.1 + 0.9 * share_of_the_way
    unit = 1.0 if absolute and far > 1.0 else near
    return 0.1 / math.log(away / unit, far / unit)


@given(mean=means, bound=bounds, further=beyond, away=distances, above=st.booleans(), absolute=st.booleans())
def test_scores_are_what_the_contract_says(
    mean: float, bound: float, further: float, away: float, above: bool, absolute: bool
) -> None:
    near = bound * mean
    far = near * (1.0 + further)
    load = mean + near * away if above else max(0.0, mean - near * away)
    found = distribution_score(load, mean, near, far, absolute, 0.0)
    assert 0.0 < found <= 1.0
    # Beside V = 1 the literal logarithm divides two rounding errors.
    if not (absolute and 1.0 < far < 1.0 + 1e-6):
        expected = reference(load, mean, near, far, absolute, 0.0)
        assert math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-9)


@given(mean=means, bound=bounds, further=beyond, first=distances, second=distances, absolute=st.booleans())
def test_further_from_the_mean_is_never_better(
    mean: float, bound: float, further: float, first: float, second: float, absolute: bool
) -> None:
    near = bound * mean
    far = near * (1.0 + further)
    closer, away = sorted((first, second))
    scores = [distribution_score(mean + near * d, mean, near, far, absolute, 0.0) for d in (closer, away)]
    assert scores[1] <= scores[0] * (1.0 + 1e-9)


@given(mean=means, bound=bounds, further=beyond, where=st.sampled_from(["bound", "var"]))
def test_there_is_no_step_in_the_curve(mean: float, bound: float, further: float, where: str) -> None:
    near = bound * mean
    far = near * (1.0 + further)
    edge = near if where == "bound" else far
    width = 1e-7 * (far - near)
    sides = [distribution_score(mean + edge + d, mean, near, far, False, 0.0) for d in (-width, width)]
    assert math.isclose(sides[0], sides[1], abs_tol=1e-5)


@given(load=st.floats(0.0, 1e9), mean=st.floats(0.0, 1e9), min_load=st.floats(0.0, 1e9))
def test_quiet_clusters_are_left_alone_and_busy_ones_are_not(
    load: float, mean: float, min_load: float
) -> None:
    found = distribution_score(load, mean, 0.1 * mean, 0.6 * mean, False, min_load)
    if max(load, mean) < min_load:
        assert found == 1.0
    else:
        assert found == distribution_score(load, mean, 0.1 * mean, 0.6 * mean, False, 0.0)


@given(load=st.floats(0.0, 1e15), ceiling=st.just(0.0) | means, more=st.floats(0.0, 1e15))
def test_a_limit_is_kept_or_scored_by_how_far_it_is_exceeded(
    load: float, ceiling: float, more: float
) -> None:
    found = limit_score(load, ceiling)
    assert (found == 1.0) == (load <= ceiling) or math.isclose(load, ceiling, rel_tol=1e-15, abs_tol=1e-15)
    assert limit_score(load + more, ceiling) <= found
    if load > ceiling > 0.0:
        assert math.isclose(found, ceiling / load, rel_tol=1e-12)


@given(units=st.integers(0, 10**9))
def test_each_misplaced_replica_lowers_the_score(units: int) -> None:
    found = units_score(float(units))
    assert 0.0 < found <= 1.0
    assert math.isclose(1.0 / found - 1.0, units, rel_tol=1e-6, abs_tol=1e-9)
    assert units_score(units + 1.0) < found
