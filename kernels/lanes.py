"""Loops whose turns do not depend on one another, in a form that is fast both compiled and interpreted.

``for i in lanes(n)`` is a loop over `range(n)` in a compiled kernel. Interpreted it has one turn, and `i` is an array of all indices: numpy
does in one step what the loop does in `n`, on the same numbers in the same way. So a turn may neither read what another writes, nor
branch on what it reads: the functions below choose, and count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.compiled import interpreted_as, part


@interpreted_as(lambda n: (np.arange(n),) if n > 0 else ())
@part
def lanes(n: int) -> Any:
    """What to loop over instead of `range(n)`."""
    return range(n)


@interpreted_as(lambda x, y: (x if x > y else y) if isinstance(x, float) else np.maximum(x, y))
@part
def larger(x: Any, y: Any) -> Any:
    """The larger of two numbers."""
    return x if x > y else y


@interpreted_as(lambda x, y: (x if x < y else y) if isinstance(x, float) else np.minimum(x, y))
@part
def smaller(x: Any, y: Any) -> Any:
    """The smaller of two numbers."""
    return x if x < y else y


@interpreted_as(lambda which, x, y: np.where(which, x, y) if isinstance(which, np.ndarray) else (x if which else y))
@part
def either(which: Any, x: Any, y: Any) -> Any:
    """`x` where `which` holds, else `y`; both are computed."""
    return x if which else y


@interpreted_as(lambda which: int(np.count_nonzero(which)))
@part
def number(which: Any) -> int:
    """In how many turns `which` holds, to be added up over them."""
    return 1 if which else 0


@interpreted_as(lambda values, n: int(np.argmax(values[:n])))
@part
def first_largest(values: np.ndarray, n: int) -> int:
    """Index of the largest of the first `n` values, the first of equal ones; `n` is at least 1."""
    best = 0
    for i in range(1, n):
        best = i if values[i] > values[best] else best
    return best
