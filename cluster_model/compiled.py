"""One switch between compiled and interpreted kernels.

`kernel` compiles with numba where it is installed (no fast-math and no contraction, so a decision never depends on the
processor) and caches on disk; without numba it returns the function unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])

try:
    import numba
except ImportError:  # the `plan` extra installs it; plain Python gives the same results, slowly
    numba = None

COMPILED: bool = numba is not None


def kernel(function: F) -> F:
    """The compiled form of `function`, or `function` itself where there is no compiler."""
    if numba is None:
        return function
    compiled: F = numba.njit(cache=True, fastmath=False, error_model="numpy")(function)
    return compiled
