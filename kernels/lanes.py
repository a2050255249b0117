"""Loops whose turns do not depend on one another, in a form that is fast both compiled and interpreted.

``for i in lanes(n)`` is a loop over `range(n)` in a compiled kernel. Interpreted it has one turn, and `i` is an array of all indices: numpy
does in one step what the loop does in `n`, on the same numbers in the same way. So a turn may neither read what another writes, nor
branch on what it reads: the functions below choose, and count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kernels.compiled import compiled_as


@compiled_as(lambda n: range(n))
def lanes(n: int) -> Any:
    """What to loop over instead of `range(n)`."""
    return (np.arange(n),) if n > 0 else ()


@compiled_as(lambda x, y: x if x > y else y)
def larger(x: Any, y: Any) -> Any:
    """The larger of two numbers."""
    return (x if x > y else y) if isinstance(x, float) else np.maximum(x, y)


@compiled_as(lambda which, x, y: x if which else y)
def either(which: Any, x: Any, y: Any) -> Any:
    """`x` where `which` holds, else `y`; both are computed."""
    return np.where(which, x, y) if isinstance(which, np.ndarray) else (x if which else y)


@compiled_as(lambda which: 1 if which else 0)
def number(which: Any) -> int:
    """In how many turns `which` holds, to be added up over them."""
    return int(np.count_nonzero(which))
