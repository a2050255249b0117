"""How marked functions run: interpreted, loaded as machine code, or compiled.

Marking a function costs nothing: numba is imported when the first kernel is loaded or compiled (`kernels.building`). A call from
Python uses machine code that is in memory or on disk (`kernels.cache`). Where there is none, the same source runs interpreted on
small arrays, and is compiled for large ones. Nothing but time depends on which: no fast-math, no contraction.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from importlib.util import find_spec
from threading import RLock
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T", bound=type[tuple[object, ...]])

# An int of 64 bits that the compiler does not take for a constant (it would compile a kernel again for each).
whole = cast("Callable[[int], int]", np.int64)

# Without numba (the `plan` extra installs it), and with numba's own switch (for coverage and mutation testing), nothing is compiled.
COMPILED: bool = find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
MAKERS = frozenset({"zeros", "empty", "full", "ones", "copy"})  # names in a function that makes arrays
SMALL = 8_000_000  # bytes of arrays that a kernel is given, some 20,000 replicas: planned in seconds interpreted (docs/benchmarks.md)

references: list[type] = []  # classes marked `by_reference`
known: list[Kernel] = []
compiling: set[FunctionType] = set()  # kernels that this process compiles at the moment
_lock = RLock()


class Kernel:
    """A function that Python calls. Only the main thread of a process that compiles all of them (`compile_all`) changes the class."""

    interpreted_up_to = SMALL
    heard: list[tuple[Kernel, tuple[Any, ...]]] | None = None  # calls of a rehearsal, with the types of what they were given
    only_missing = False  # whether a rehearsal hears of kernels that are not compiled, and of no other
    interpreted = False  # whether all calls run interpreted

    def __init__(self, function: FunctionType) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.targetoptions: dict[str, Any] | None = None  # as a function that kernels call; None where they may not
        self._dispatcher: Any = None
        self._on_disk: bool | None = None
        known.append(self)

    def __call__(self, *given: Any) -> Any:
        if Kernel.heard is not None and not (Kernel.only_missing and self.is_compiled()):
            Kernel.heard.append((self, import_module("kernels.building").types_of(given)))
        sized = given if Kernel.heard is None else ()  # a rehearsal compiles nothing for the size of its arrays
        if Kernel.interpreted or (self._dispatcher is None and not self.is_compiled(sized)):
            with np.errstate(all="ignore"):  # as compiled
                found = self.py_func(*map(_plain, given))
                return found.item() if isinstance(found, np.generic) else found
        return self.dispatcher(*given)

    @property
    def dispatcher(self) -> Any:
        """numba's form of it."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = import_module("kernels.building").entry(self.py_func)
        return self._dispatcher

    def look_again(self) -> None:
        """Another process may have put its machine code on disk since it was not found there."""
        self._on_disk = self._on_disk or None

    def is_compiled(self, given: tuple[Any, ...] = ()) -> bool:
        """Whether a call with `given` runs machine code: there is some, in memory or on disk, or it will be compiled."""
        if not COMPILED or self._dispatcher is not None:
            return COMPILED
        if size_of(given) > Kernel.interpreted_up_to:
            return True
        if self._on_disk is None:
            self._on_disk = bool(import_module("kernels.cache").holds(self.py_func))
        return self._on_disk


def size_of(given: Any) -> int:
    """Bytes of the arrays in `given`, a tuple of arrays, such tuples and numbers."""
    if isinstance(given, tuple):
        return sum(map(size_of, given))
    return given.nbytes if isinstance(given, np.ndarray) else 0


def _plain(given: Any) -> Any:
    """Bytes are whole numbers without end in Python, and of 8 bits in an array: for an interpreted kernel, the bytes of an array."""
    return given.base if isinstance(given, np.ndarray) and isinstance(given.base, bytes) else given


def is_compiled(function: Callable[..., object]) -> bool:
    """Whether this kernel runs machine code, even on small arrays."""
    return cast("Kernel", function).is_compiled()


def rehearsed(
    work: Callable[[], object], *, interpreted: bool = True, only_missing: bool = False
) -> list[tuple[Kernel, tuple[Any, ...]]]:
    """Kernels that `work` calls, each with the types that it is called with, in the order of their first calls. With `only_missing`, those
    that are not on disk: numba takes longer to find the types of a call than most calls take.

    All run interpreted, since what is on disk may be for another processor; without `interpreted`, only those that are not compiled yet.
    """
    Kernel.heard, Kernel.only_missing, Kernel.interpreted = [], only_missing, interpreted
    try:
        work()
        return list(dict.fromkeys(Kernel.heard))
    finally:
        Kernel.heard, Kernel.only_missing, Kernel.interpreted = None, False, False


def compile_all() -> None:
    """From now on no kernel runs interpreted in this process."""
    Kernel.interpreted_up_to = -1


def kernel(function: F) -> F:
    """A function that only Python may call."""
    return cast("F", Kernel(cast("FunctionType", function)))


def both(function: F) -> F:
    """As `kernel`, for a function that kernels call, too."""
    made = Kernel(cast("FunctionType", function))
    made.targetoptions = {"no_cpython_wrapper": True}  # what is kept on disk is what Python calls
    return cast("F", made)


def inner(function: F) -> F:
    """A function that kernels call; Python may, too, and it runs interpreted then.

    Counting references to the arrays of two wide tuples would take longer than most of them do, so one that makes no array does not
    count. Where it makes one in a way that `MAKERS` does not name, the compiler refuses it; it must not get one returned either,
    which nothing would free.
    """
    names = cast("FunctionType", function).__code__.co_names
    return _marked(function, no_cpython_wrapper=True, cache=True, _nrt=not MAKERS.isdisjoint(names))


def part(function: F) -> F:
    """As `inner`, for a function that is short or has one caller: it becomes part of the caller, which spares compiling it twice."""
    return _marked(function, inline="always")


def interpreted_as(form: Callable[..., object]) -> Callable[[F], F]:
    """Interpreted, `form` stands for an `inner` function or a `part`: the same result in fewer steps of Python."""

    def mark(function: F) -> F:
        return cast("F", update_wrapper(form, function))

    return mark


def _marked(function: F, **options: Any) -> F:
    """The function itself, with the attributes that numba looks for in a compiled one beside it."""
    marked: Any = function
    marked.py_func, marked.targetoptions = function, options
    return function


def by_reference(kind: T) -> T:
    """Have kernels pass on named tuples of this class by their address, as long as all fields are arrays (`kernels.by_reference`).
    Kernels neither make nor return one."""
    references.append(kind)
    return kind


def ahead(array: np.ndarray, row: int) -> None:
    """What a kernel says of what it reads soon: the first bytes of ``array[row]`` (`kernels.prefetch`). Only time depends on it."""
