"""Choosing from keys without a compiler: the best of many, order, chance."""

from __future__ import annotations

import numpy as np


def keep_best(keys: np.ndarray, n: int, floor: float, most: int, kept: np.ndarray, spare: np.ndarray) -> int:
    """`optimizer.search.candidates.keep_best`."""
    found = np.flatnonzero(keys[:n] > floor)
    if len(found) > most:
        above = keys[found]
        cut = np.partition(above, len(above) - most)[len(above) - most]
        found = np.concatenate([found[above > cut], found[above == cut]])[:most]
    kept[: len(found)] = found
    return len(found)


def cut_of(keys: np.ndarray, n: int, floor: float, most: int, spare: np.ndarray) -> float:
    """`optimizer.search.candidates.cut_of`."""
    above = keys[:n][keys[:n] > floor]
    return float(np.partition(above, len(above) - most)[len(above) - most])


def any_above(keys: np.ndarray, n: int, floor: float) -> bool:
    """`optimizer.search.barter.any_above`."""
    return bool((keys[:n] > floor).any())


def best_key(gains: np.ndarray, factors: np.ndarray, entries: np.ndarray, found: int, least: float) -> int:
    """`optimizer.search.candidates.best_key`."""
    keys = np.where(gains[:found] > least, gains[:found] * factors[:found], 0.0)
    top = keys.max()
    if not top > 0.0:
        return -1
    equal = np.flatnonzero(keys == top)
    return int(equal[np.argmin(entries[equal])])


def take(block: np.ndarray, factors: np.ndarray, kept: np.ndarray, found: int, small: np.ndarray) -> None:
    """`optimizer.search.topics.take`."""
    small[:, :found] = block[:, kept[:found]]
    small[-1, :found] = factors[kept[:found]]


def ascending(keys: np.ndarray) -> np.ndarray:
    """`optimizer.search.order.ascending`."""
    order = np.argsort(keys)  # several times as fast, and the same where no two are equal
    found = keys[order]
    if (found[1:] == found[:-1]).any():
        order = np.argsort(keys, kind="stable")
    return order.astype(np.int64)


def scramble(x: int) -> int:
    """`optimizer.search.chance.scramble`."""
    mask = 0xFFFFFFFFFFFFFFFF
    z = (int(x) + 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) >> 2


def scrambled(x: np.ndarray) -> np.ndarray:
    """`optimizer.search.chance.scramble` of int64 [n]."""
    z = x.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(2)).astype(np.int64)


def fewest(amounts: np.ndarray, excess: np.ndarray) -> float:
    """`optimizer.bounds.fewest`; running sums are in the order of its loops."""
    n = amounts.shape[1]
    weight, best = 1.0 / excess, 0.0
    for turn in range(16):
        need, summed = 0.0, np.zeros(n)
        for k in range(len(excess)):
            need += float(weight[k] * excess[k])
            summed += weight[k] * amounts[k]
        order = np.argsort(-summed, kind="stable")
        have = np.cumsum(summed[order])
        taken = int(np.searchsorted(have, need))
        before = np.concatenate([np.zeros((len(excess), 1)), np.cumsum(amounts[:, order], axis=1)], axis=1)
        reached, part = before[:, taken].copy(), 0.0
        if taken < n:
            part = (need - (float(have[taken - 1]) if taken else 0.0)) / float(summed[order[taken]])
            reached += part * amounts[:, order[taken]]
        best = max(best, taken + part)
        off = 1.0 - reached / excess
        most = float(np.abs(off).max())
        if most <= 0.01:
            break
        lack = off / most * 8.0 / (1.0 + turn)
        weight *= np.where(lack > 0.0, 1.0 + lack, 1.0 / (1.0 - np.minimum(lack, 0.0)))
    return best
