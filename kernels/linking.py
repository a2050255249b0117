"""Functions that only kernels call are linked into each kernel and optimised there, once.

numba optimises every function, with all that it calls, and makes machine code of it before a caller may link it. Of functions that
have no entry from Python no address is ever asked for, so that work serves nothing: two fifths of all compiling. A `LateLibrary`
does it when it is asked for an address, and a kernel links what it calls, directly or not, each once. `kernels.building` imports
this before it compiles or loads anything; it knows no kernel.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

llvm: Any = import_module("llvmlite.binding")
codegen: Any = import_module("numba.core.codegen")
environment: Any = import_module("numba.core.environment")

LATE = "late"  # what is kept of a library that was asked for no address


class LateLibrary(codegen.JITCodeLibrary):  # type: ignore[misc]
    """As numba's, but made ready to run when it is asked for an address."""

    _shared_module: Any

    @property
    def codegen(self) -> Any:
        return self._codegen if self._finalized else self

    def set_env(self, name: str, env: Any) -> None:
        """numba tells where constants of a function are; `finalize` looks them up."""

    @property
    def has_dynamic_globals(self) -> bool:
        return bool(self._finalized and self._dynamic_globals)

    def add_linking_library(self, library: Any) -> None:
        if not isinstance(library, LateLibrary):
            library._ensure_finalized()
        self._linking_libraries.append(library)

    def get_pointer_to_function(self, name: str) -> int:
        if self._finalized or any(each.name == name for each in self._final_module.functions):
            return int(super().get_pointer_to_function(name))
        return 0

    def finalize(self) -> None:
        codegen.require_global_compiler_lock()
        self._raise_if_finalized()
        self._link_all(self._final_module)
        self._optimize_final_module()
        self._final_module.verify()
        self._finalize_final_module()
        for name in [each.name for each in self._final_module.global_variables if each.name.startswith("_ZN08NumbaEnv")]:
            if (env := environment.lookup_environment(name)) is not None:
                self._codegen.set_env(name, env)

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        if self._finalized:
            return super().serialize_using_object_code()  # type: ignore[no-any-return]
        return self.name, LATE, self._get_module_for_linking().as_bitcode()

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> Any:
        name, kind, kept = state
        if kind != LATE:
            return super()._unserialize(codegen, state)
        library = codegen.create_library(name)
        library._final_module = llvm.parse_bitcode(kept)
        return library

    def _get_module_for_linking(self) -> Any:
        """With all that it calls: what is kept, and what a library of numba's own kind links."""
        if self._finalized:
            return super()._get_module_for_linking()
        module = self._own().clone()
        self._link_all(module)
        return module

    def _own(self) -> Any:
        """What was added to this library alone, for linking into many."""
        if self._shared_module is None:
            self._shared_module = self._final_module.clone()
            for function in self._shared_module.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"
        return self._shared_module

    def _link_all(self, module: Any) -> None:
        """Link what this library calls into `module`, callers first: what nothing refers to yet is left out by the linker."""
        for library in self._called():
            self._reload_init.update(library._reload_init)
            late = isinstance(library, LateLibrary) and not library._finalized
            module.link_in(library._own() if late else library._get_module_for_linking(), preserve=True)

    def _called(self) -> list[Any]:
        """Libraries that this one links, directly or not, callers before what they call."""
        found: dict[int, Any] = {}

        def visit(library: Any) -> None:
            for each in library._linking_libraries if isinstance(library, LateLibrary) and not library._finalized else ():
                if id(each) not in found:
                    visit(each)
                    found.setdefault(id(each), each)

        visit(self)
        return list(found.values())[::-1]


codegen.JITCPUCodegen._library_class = LateLibrary
