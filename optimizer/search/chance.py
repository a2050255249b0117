"""Numbers that stand in for chance, the same on every machine."""

from __future__ import annotations

import numpy as np

from kernels.compiled import inner


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
    """The next integer in [0, below); `random` int64 [1] is where the series stands."""
    random[0] += 1
    return scramble(random[0]) % below
