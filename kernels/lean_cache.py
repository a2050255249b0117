"""Keeps compiled kernels as machine code alone, and loads them without starting the compiler.

Beside the machine code numba keeps a function's bitcode, for functions that call it, and before it loads anything it readies the whole
compiler. For the planner's kernels that is half of the memory of a plan of a small cluster, and most of the time it takes. What only
Python calls (`kernels.compiled.kernel`) needs neither. `kernels.building` calls this; it knows no kernel.

Where a kernel names a symbol that is not there yet, numba readies what it would.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from kernels import processor
from kernels.compiled import compiling

llvm: Any = import_module("llvmlite.binding")
caching: Any = import_module("numba.core.caching")
runtime: Any = import_module("numba.core.runtime._nrt_python")

STUB = 'target triple = "{triple}"\n\ndefine void @"{name}"() {{\n  ret void\n}}\n'


def keep_leanly(dispatcher: Any, ready: Callable[[], None]) -> None:
    """Have the machine code of `dispatcher`, which no kernel calls, kept and loaded by `LeanCache`.

    `ready` is called before it compiles.
    """
    dispatcher._cache = LeanCache(dispatcher.py_func)
    dispatcher._cache.ready = ready


class LeanCode(caching.CompileResultCacheImpl):  # type: ignore[misc]
    """What is kept of one kernel: the names it expects to find when it is loaded, and what numba would keep."""

    def reduce(self, result: Any) -> tuple[list[str], tuple[Any, ...]]:
        return _slimmed(super().reduce(result), result.fndesc.llvm_cpython_wrapper_name)

    def rebuild(self, target_context: Any, kept: tuple[list[str], tuple[Any, ...]]) -> Any:
        names, payload = kept
        if not _all_there(names):
            target_context.refresh()
        return super().rebuild(target_context, payload)


class LeanCache(caching.FunctionCache):  # type: ignore[misc]
    """As numba's, but the compiler is readied only by a kernel that cannot be loaded without it."""

    _impl_class = LeanCode

    ready: Callable[[], None]

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        with self._guard_against_spurious_io_errors():
            found = self._load_overload(signature, target_context) or self._shipped(signature, target_context)
        if found is None:
            target_context.refresh()
            self.ready()
            compiling.add(self._py_func)
        return found

    def save_overload(self, signature: Any, result: Any) -> None:
        super().save_overload(signature, result)
        compiling.discard(self._py_func)

    def _shipped(self, signature: Any, target_context: Any) -> Any:
        """What is kept for this kernel in the folder that an image ships."""
        there = processor.shipped()
        if there is None or not processor.runs_here(there[1]):
            return None
        triple, *_ = target_context.codegen().magic_tuple()
        _, _, content = self._index_key(signature, target_context.codegen())
        place = self._impl.locator
        file = caching.IndexDataCacheFile(str(there[0] / place.name), self._impl.filename_base, place.get_source_stamp())
        data = file.load((signature, (triple, there[1], ""), content))
        return None if data is None else self._impl.rebuild(target_context, data)


def _slimmed(kept: tuple[Any, ...], entry: str) -> tuple[list[str], tuple[Any, ...]]:
    """The symbols that machine code expects to find, and what is kept of it: of the bitcode only the name of the entry, which numba
    looks for before it asks for its address."""
    (name, kind, (machine_code, bitcode)), *rest = kept
    module = llvm.parse_bitcode(bitcode)
    expected = [each.name for each in (*module.functions, *module.global_variables) if each.is_declaration]
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
