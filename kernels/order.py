"""Sorting, selection and chance for kernels: stable, quick to compile (numpy's own take seconds each), the same on every machine."""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, interpreted_as, whole


@interpreted_as(lambda keys: np.argsort(keys, kind="stable"))
@inner
def ascending(keys: np.ndarray) -> np.ndarray:
    """int64 [n]: indices that sort `keys` float64 [n] in ascending order, equal keys in index order. Merge sort, O(n log n)."""
    n = len(keys)
    order, spare = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        start = 0
        while start < n:
            middle, end = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for at in range(start, end):
                if i < middle and (j >= end or keys[order[i]] <= keys[order[j]]):
                    spare[at] = order[i]
                    i += 1
                else:
                    spare[at] = order[j]
                    j += 1
            start = end
        order, spare = spare, order
        width *= 2
    return order


@interpreted_as(lambda values, n, nth: np.partition(values[:n], n - nth)[n - nth])
@inner
def nth_largest(values: np.ndarray, n: int, nth: int) -> float:
    """The `nth` largest (from 1) of the first `n` `values` float64, which it reorders. Expected O(n)."""
    start, stop = whole(0), n
    while True:
        pivot = float(values[(start + stop) // 2])
        above = start
        for i in range(start, stop):  # without a branch, since a processor could not predict it
            values[i], values[above] = values[above], values[i]
            above += 1 if values[above] > pivot else 0
        equal = above
        for i in range(above, stop):
            values[i], values[equal] = values[equal], values[i]
            equal += 1 if values[equal] == pivot else 0
        if above < nth <= equal:
            return pivot
        start, stop = (start, above) if nth <= above else (equal, stop)


@inner
def scramble(x: int) -> int:
    """A well-mixed non-negative 62-bit number from any integer (splitmix64 finaliser)."""
    z = np.uint64(x) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return int(np.int64(z >> np.uint64(2)))


@inner
def draw(random: np.ndarray, below: int) -> int:
    """The next random integer in [0, below); `random` int64 [1] is the state of the generator, and moves on."""
    random[0] += 1
    return scramble(random[0]) % below
