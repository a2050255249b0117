"""Makes machine code of marked functions. `kernels.compiled` imports this when the first kernel is loaded or compiled.

What it takes from numba is made for one minor version of it (`pyproject.toml`), and fails loudly with another.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

import numba
from numba.core import compiler, typed_passes, untyped_passes
from numba.core.compiler_machinery import PassManager
from numba.core.targetconfig import TargetConfig

from kernels import by_reference, compiled, lean_cache, linking, prefetch  # noqa: F401

KEEPER = "kernels.cache.KernelFolder"
BEFORE = (untyped_passes.TranslateByteCode, untyped_passes.FixupArgs, untyped_passes.IRProcessing)
CLOSURES, PARTS = untyped_passes.InlineClosureLikes, untyped_passes.InlineInlinables
AFTER = (
    untyped_passes.GenericRewrites, untyped_passes.RewriteDynamicRaises, untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference, typed_passes.PreLowerStripPhis, typed_passes.InlineOverloads, typed_passes.NopythonRewrites,
    typed_passes.NoPythonSupportedFeatureValidation, typed_passes.IRLegalization, typed_passes.AnnotateTypes,
    typed_passes.NativeLowering, typed_passes.NoPythonBackend,
)  # fmt: skip
PINNED: dict[str, Any] = {"fastmath": False, "error_model": "numpy", "no_cfunc_wrapper": True}
_passed: set[type] = set()  # classes that numba knows to pass by reference


class Passes(compiler.CompilerBase):
    """What numba does to a function by default, without what kernels have no use for: a tenth of all compiling."""

    def define_pipelines(self) -> list[Any]:
        code, seen = self.state.func_id.code, self.state.func_id.func.__globals__
        closures = any(isinstance(each, CodeType) for each in code.co_consts)
        parts = any("inline" in (getattr(seen.get(name), "targetoptions", None) or {}) for name in code.co_names)
        passes: Any = PassManager("kernel")  # type: ignore[no-untyped-call]
        for each in (*BEFORE, *([CLOSURES] if closures else []), *([PARTS] if parts else []), *AFTER):
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


def entry(function: FunctionType) -> Any:
    """numba's form of a function that Python calls: its machine code is loaded, or compiled at its first call."""
    _know_references()
    return _kept(function, lambda: ready(function), nogil=True)


def hasten() -> None:
    """For a process that compiles and does nothing else.

    numba finds what a call in a kernel means by the options of the compiler, among others. To compare two sets of options it asks for
    forty values one by one, a quarter of a million times in all. Here it compares the sets at once, with the same answers.
    """
    TargetConfig.__eq__ = lambda mine, other: type(mine) is type(other) and mine._values == other._values  # type: ignore[method-assign]
    TargetConfig.__hash__ = lambda mine: hash(type(mine))  # type: ignore[method-assign]


def types_of(given: tuple[Any, ...]) -> tuple[Any, ...]:
    """numba's types of what a kernel is given."""
    _know_references()
    return tuple(map(numba.typeof, given))


def _know_references() -> None:
    for kind in compiled.references:
        if kind not in _passed:
            _passed.add(kind)
            by_reference.pass_by_reference(kind)


def ready(function: FunctionType) -> None:
    """Have numba know what `function` calls, and what that calls, before it compiles it."""
    pending = [function]
    while pending:
        caller = pending.pop()
        for name in _names(caller.__code__):
            called: Any = caller.__globals__.get(name)
            if getattr(called, "targetoptions", None) is not None and not hasattr(called, "_numba_type_"):
                called.linked = _kept(called.py_func, **called.targetoptions)  # numba itself refers to it weakly
                called._numba_type_ = called.linked._numba_type_
                pending.append(called.py_func)


def _names(code: CodeType) -> list[str]:
    inside = [name for each in code.co_consts if isinstance(each, CodeType) for name in _names(each)]
    return [*code.co_names, *inside]


def _kept(function: FunctionType, before_compiling: Callable[[], None] | None = None, **options: Any) -> Any:
    """Compiled, and kept where `KernelFolder` says; numba has that as a setting of the process, so others get it back as it was.
    Of what Python calls, machine code alone is loaded."""
    config: Any = numba.config
    before, config.CACHE_LOCATOR_CLASSES = config.CACHE_LOCATOR_CLASSES, KEEPER
    try:
        dispatcher = numba.njit(**PINNED, **options, pipeline_class=Passes)(function)
        if before_compiling is not None:
            lean_cache.keep_leanly(dispatcher, before_compiling)
        return dispatcher
    finally:
        config.CACHE_LOCATOR_CLASSES = before
