"""Keeps compiled kernels as machine code alone, and loads them without starting the compiler.

Beside the machine code numba keeps a function's bitcode, for functions that call it, and before it loads anything it readies the whole
compiler. For the planner's kernels that is half of the memory of a plan of a small cluster, and most of the time it takes. What only
Python calls (`cluster_model.compiled.kernel`) needs neither. `cluster_model.compiled` calls this; it knows no kernel.

numba promises nothing about the classes used here, so all that is taken for granted is looked at: a cache that is made differently is
left to numba as it is, and where a kernel names a symbol that is not there yet, numba readies what it would.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

llvm: Any = import_module("llvmlite.binding")
caching: Any = import_module("numba.core.caching")
runtime: Any = import_module("numba.core.runtime._nrt_python")

STUB = 'target triple = "{triple}"\n\ndefine void @"{name}"() {{\n  ret void\n}}\n'


def keep_leanly(dispatcher: Any, callable_from_kernels: bool) -> None:
    """Have the machine code of `dispatcher` kept and loaded by `LeanCache`.

    One that is not `callable_from_kernels` keeps no bitcode: a kernel that calls it could be compiled only until it is loaded from disk.
    """
    if type(dispatcher._cache) is caching.FunctionCache:
        cache = LeanCache(dispatcher.py_func)
        cache._impl.keeps_bitcode = callable_from_kernels
        dispatcher._cache = cache


class LeanCode(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """What is kept of one kernel: the names it expects to find when it is loaded, and what numba would keep."""

    keeps_bitcode = True

    def reduce(self, result: Any) -> tuple[list[str] | None, tuple[Any, ...]]:
        kept = super().reduce(result)
        try:
            return _slimmed(kept, None if self.keeps_bitcode else result.fndesc.llvm_cpython_wrapper_name)
        except (AttributeError, TypeError, ValueError):  # not as this module knows it: all of it is kept
            return None, kept

    def rebuild(self, target_context: Any, kept: tuple[list[str] | None, tuple[Any, ...]]) -> Any:
        names, payload = kept
        if names is None or not _all_there(names):
            target_context.refresh()
        return super().rebuild(target_context, payload)


class LeanCache(caching.FunctionCache):  # type: ignore[misc]
    """As numba's, but the compiler is readied only by a kernel that cannot be loaded without it."""

    _impl_class = LeanCode

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        if not hasattr(caching.FunctionCache, "_load_overload"):
            return super().load_overload(signature, target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, target_context)


def _slimmed(kept: tuple[Any, ...], entry: str | None) -> tuple[list[str], tuple[Any, ...]]:
    """The symbols that machine code expects to find, and what is kept of it: with `entry`, of the bitcode only that name, which numba
    looks for before it asks for its address."""
    (name, kind, (machine_code, bitcode)), *rest = kept
    module = llvm.parse_bitcode(bitcode)
    expected = [each.name for each in (*module.functions, *module.global_variables) if each.is_declaration]
    if entry is not None:
        bitcode = llvm.parse_assembly(STUB.format(triple=module.triple, name=entry)).as_bitcode()
    return [n for n in expected if not n.startswith("llvm.")], ((name, kind, (machine_code, bitcode)), *rest)


def _all_there(names: list[str]) -> bool:
    """Whether machine code that names these can be loaded: the loader would end the process. Adds the functions that count references
    to arrays, which numba adds as it readies the compiler."""
    if all(map(_address, names)):
        return True
    for name, address in runtime.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)
    return all(map(_address, names))


def _address(name: str) -> int | None:
    found: int | None = llvm.address_of_symbol(name)
    return found
