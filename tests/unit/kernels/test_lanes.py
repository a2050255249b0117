"""Loops in lanes: the same numbers, bit for bit, compiled and interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.compiled import COMPILED, kernel
from kernels.lanes import either, first_largest, lanes, larger, number, smaller
from kernels.order import ascending, nth_largest


@kernel
def turns(x: np.ndarray, y: np.ndarray, out: np.ndarray, limit: float) -> tuple[int, int]:
    n, count = len(x), 0
    for i in lanes(n):
        value = np.float64(y[i])
        out[i] = either(x[i] > limit, larger(x[i], value) / 3.0, smaller(x[i], value) - 0.1)
        count += number(x[i] > limit)
    return count, first_largest(x, n)


@kernel
def selected(x: np.ndarray, nth: int) -> tuple[np.ndarray, float]:
    return ascending(x), nth_largest(x.copy(), len(x), nth)


def _forms(function: Any) -> list[Any]:
    """Interpreted, and compiled where there is a compiler."""
    return [function.py_func, function.dispatcher] if COMPILED else [function.py_func]


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_lanes_do_what_one_turn_after_the_other_does(n: int) -> None:
    chance = np.random.default_rng(n)
    x, y = np.round(chance.normal(size=n), 1), chance.normal(size=n).astype(np.float32)
    wanted = [max(a, b) / 3.0 if a > 0.2 else min(a, b) - 0.1 for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    for function in _forms(turns):
        out = np.zeros(n)
        assert function(x, y, out, 0.2) == (sum(a > 0.2 for a in x), x.tolist().index(max(x)))
        assert out.tobytes() == np.array(wanted).tobytes()


def test_no_lane_is_no_turn() -> None:
    assert list(lanes(0)) == list(lanes(-3)) == []


def test_numbers_alone_are_chosen_from_as_arrays_are() -> None:
    assert (larger(np.float64(1.0), 2.0), smaller(3.0, 2.0)) == (2.0, 2.0)
    assert (either(np.True_, 1, 2), either(0, 1, 2), number(np.False_)) == (1, 2, 0)


@pytest.mark.parametrize("seed", range(6))
def test_sorting_and_selecting_agree(seed: int) -> None:
    chance = np.random.default_rng(seed)
    x = np.round(chance.normal(size=50 * seed + 1), seed % 2)  # many equal ones
    x[:: seed + 2] = -np.inf
    for nth in {1, len(x) // 2 + 1, len(x)}:
        for function in _forms(selected):
            order, value = function(x, nth)
            assert order.tolist() == sorted(range(len(x)), key=x.tolist().__getitem__)
            assert value == sorted(x)[-nth]
