"""One switch between compiled and interpreted kernels.

`kernel` and `inner` compile with numba where it is installed (no fast-math and no contraction, so a decision never depends on
the processor); without numba they return the function unchanged, or what `kernel_as` and `inner_as` name: the same by numpy.
Compiled code is kept on disk (`cluster_model.kernel_cache`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast

import numpy as np

from cluster_model.errors import ConfigurationError, Problem

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T", bound=type[tuple[object, ...]])

BACKEND_VARIABLE = "TRIMTAB_BACKEND"  # compiled or numpy; left out: compiled where numba is installed

numba: Any
try:
    numba = import_module("numba")
except ImportError:  # the `plan` extra installs it; without it, numpy gives the same results, slowly
    numba = None


def _chosen() -> str:
    """The backend that the environment asks for, or the best there is."""
    asked = os.environ.get(BACKEND_VARIABLE) or ("numpy" if numba is None else "compiled")
    if asked not in ("compiled", "numpy"):
        raise ConfigurationError("environment", [Problem(BACKEND_VARIABLE, f"expected compiled or numpy, found {asked!r}")])
    if asked == "compiled" and numba is None:
        what = "expected numba to be installed, which compiles; pip install 'trimtab[plan]', or set it to numpy"
        raise ConfigurationError("environment", [Problem(BACKEND_VARIABLE, what)])
    return asked


# An int of 64 bits that the compiler does not take for a constant (it would compile a kernel anew for each).
whole = cast("Callable[[int], int]", np.int64)

BACKEND = _chosen()
# numba's own switch: loops run as they are written, for coverage and mutation testing.
INTERPRETED: bool = BACKEND == "compiled" and bool(numba.config.DISABLE_JIT)
COMPILED: bool = BACKEND == "compiled" and not INTERPRETED
KEEPER = "cluster_model.kernel_cache.KernelFolder"
MAKERS = frozenset({"zeros", "empty", "full", "ones", "copy"})  # names in a function that makes arrays


def kernel(function: F) -> F:
    """The compiled form of `function`, or `function` itself where there is no compiler. Only Python may call it."""
    if not COMPILED:
        return function
    return _kept(function, entry=True, nogil=True)


def both(function: F) -> F:
    """As `kernel`, for functions that kernels call, too."""
    if not COMPILED:
        return function
    return _kept(function, entry=True, called=True, nogil=True)


def inner(function: F) -> F:
    """As `kernel`, for functions that only other kernels call: no entry from Python, which compiles faster.

    Counting references to the arrays of two wide tuples would take longer than most of them do, so one that makes no array does not
    count. Where it makes one in a way that `MAKERS` does not name, the compiler refuses it; it must not get one returned either,
    which nobody would free.
    """
    if not COMPILED:
        return function
    return _kept(function, no_cpython_wrapper=True, _nrt=not MAKERS.isdisjoint(function.__code__.co_names))


def _kept(function: F, entry: bool = False, called: bool = False, **options: bool) -> F:
    """Compiled, and kept where `KernelFolder` says; numba has that as a setting of the process, so others get it back as it was.
    Of what Python calls, machine code alone is loaded."""
    before, numba.config.CACHE_LOCATOR_CLASSES = numba.config.CACHE_LOCATOR_CLASSES, KEEPER
    try:
        compiled: F = numba.njit(cache=True, fastmath=False, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
        if entry:
            _lean(compiled, called)
    finally:
        numba.config.CACHE_LOCATOR_CLASSES = before
    return compiled


def _lean(compiled: object, called: bool) -> None:
    """Load it without the compiler, with a numba that is made as `lean_cache` knows it."""
    try:
        lean_cache = import_module("cluster_model.lean_cache")
        lean_cache.keep_leanly(compiled, called)
    except (ImportError, AttributeError):
        return


def by_reference(kind: T) -> T:
    """Have kernels pass on named tuples of this class by their address, as long as all fields are arrays (`cluster_model.by_reference`).
    Kernels neither make nor return one."""
    if making():
        making()[0].pass_by_reference(kind)
    return kind


@cache
def making() -> list[Any]:
    """Modules that have a part in how kernels are compiled, beside this one; none with a numba that is made otherwise."""
    try:
        return [import_module(f"cluster_model.{name}") for name in ("by_reference", "prefetch")] if COMPILED else []
    except (ImportError, AttributeError):
        return []


def part(function: F) -> F:
    """As `inner`, for a function with one caller: it becomes part of the caller, which spares compiling it twice."""
    if not COMPILED:
        return function
    compiled: F = numba.njit(inline="always", fastmath=False, error_model="numpy")(function)
    return compiled


def _at_hand(array: np.ndarray, row: int) -> None:
    """Nothing has to be asked for."""


# What a kernel says of what it reads soon: the first bytes of ``array[row]`` (`cluster_model.prefetch`). Nothing but time depends on it.
ahead: Callable[[np.ndarray, int], None] = making()[-1].ahead if making() else part(_at_hand)


def kernel_as(uncompiled: F) -> Callable[[F], F]:
    """As `kernel`, with a form for where there is no compiler: the same results, many elements at once."""
    return lambda function: function if INTERPRETED else kernel(function) if COMPILED else uncompiled


def inner_as(uncompiled: F) -> Callable[[F], F]:
    """As `inner`, with a form for where there is no compiler."""
    return lambda function: function if INTERPRETED else inner(function) if COMPILED else uncompiled
