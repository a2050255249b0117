"""Sorting and selection for kernels: stable, and quick to compile (the array library's own take seconds each)."""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner, whole


@inner
def ascending(keys: np.ndarray) -> np.ndarray:
    """int64 [n]: indices that sort `keys` (float64 [n]) ascending, equal keys in index order. Merge sort, O(n log n)."""
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


@inner
def nth_largest(values: np.ndarray, n: int, nth: int) -> float:
    """The `nth` largest (from 1) of the first `n` of `values` float64, which are reordered. Expected O(n)."""
    low, high = whole(0), n - 1
    want = nth - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if want <= j:
            high = j
        elif want >= i:
            low = i
        else:
            break
    return float(values[want])
