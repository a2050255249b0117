"""What a process pays for kernels that were compiled before: every `trimtab plan` starts so."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba")

import cluster_model
import goals
import optimizer
import trimtab
from cluster_model.compiled import COMPILED

ROOT = Path(__file__).parents[3]
KERNELS = """
import math
import numpy as np
from cluster_model.compiled import both, inner, kernel

@inner
def doubled(loads, b):
    return loads[b] * 2.0

@both
def shared(load):
    return math.log(load) * load**0.3

@kernel
def total(loads):
    found = np.zeros(len(loads))
    for b in range(len(loads)):
        found[b] = doubled(loads, b) + shared(1.0 + b)
    if len(loads) == 7:
        raise ValueError("seven brokers")
    return found
"""
LATER = """
from cluster_model.compiled import kernel
from kernels_of_a_test import shared

@kernel
def later(load):
    return shared(load) + 1.0
"""
COMPILER = "print('numba.np.npyimpl' in sys.modules)\n"  # what numba imports before it compiles anything


class LoadedError(Exception):
    """Machine code was asked for."""


class Context:
    """What numba loads machine code into."""

    readied = False

    def refresh(self) -> None:
        self.readied = True

    def codegen(self) -> None:
        raise LoadedError


def told(place: Path, code: str) -> list[str]:
    """What a new process prints that keeps its kernels in `place`."""
    if not (place / "kernels_of_a_test.py").exists():
        (place / "kernels_of_a_test.py").write_text(KERNELS)
        (place / "later_of_a_test.py").write_text(LATER)
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_DISABLE_JIT", "TRIMTAB_BACKEND")}
    env |= {"NUMBA_CACHE_DIR": str(place / "kept"), "PYTHONPATH": f"{ROOT}{os.pathsep}{place}"}
    start = "import sys\nimport numpy as np\nimport kernels_of_a_test as kernels\n"
    ended = subprocess.run([sys.executable, "-c", start + code], env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_what_was_compiled_before_is_loaded_without_the_compiler(tmp_path: Path) -> None:
    """A plan of three brokers took 250 MB and a second, most of it for a compiler that compiled nothing."""
    code = "print(kernels.total(np.arange(3.0)).tolist())\n" + COMPILER
    first, second = told(tmp_path, code), told(tmp_path, code)
    assert first[0] == second[0]
    assert (first[1], second[1]) == ("True", "False")


def test_what_was_loaded_raises_and_is_compiled_for_other_types(tmp_path: Path) -> None:
    code = (
        "print(kernels.total(np.arange(3.0)).sum())\n"
        "try:\n    kernels.total(np.zeros(7))\nexcept ValueError as wrong:\n    print(wrong)\n"
        + COMPILER
        + "print(kernels.total(np.arange(3)).sum())\n"
    )
    first, second = told(tmp_path, code), told(tmp_path, code)
    assert first[:2] == second[:2]
    assert first[1] == "seven brokers"
    assert second[2:] == ["False", first[0]]


def test_what_kernels_and_python_call_can_be_linked_after_it_was_loaded(tmp_path: Path) -> None:
    """A change of one module broke the compilation of another until everything was compiled anew."""
    told(tmp_path, "kernels.shared(2.0)\n")
    code = "print(kernels.shared(2.0) + 1.0)\nfrom later_of_a_test import later\nprint(later(2.0))\n"
    wanted, found = told(tmp_path, code)
    assert wanted == found


@pytest.mark.parametrize(
    ("expected", "readied"), [(["NRT_Allocate", "NRT_MemInfo_alloc"], False), (["NRT_Allocate", "nobody_has_this"], True), (None, True)]
)
def test_the_compiler_is_readied_where_machine_code_expects_what_is_not_there(expected: list[str] | None, readied: bool) -> None:
    """The loader ends the process where a symbol is missing; a later numba may have others, or keep something else."""
    from cluster_model.lean_cache import LeanCode

    context = Context()
    with pytest.raises(LoadedError):
        LeanCode.rebuild(object.__new__(LeanCode), context, (expected, ((), None, None, None, False, (), "", (), ())))
    assert context.readied == readied


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_kernels_call_no_kernel_that_keeps_its_machine_code_alone() -> None:
    """Such a caller could be compiled only until the other is on disk: by whoever changes nothing but the caller, not at all."""
    called = [
        f"{name} of {each.py_func.__module__} is called by {where}: make it `both`"
        for where, each in _compiled()
        for name in each.py_func.__code__.co_names
        if _is_entry(each.py_func.__globals__.get(name))
    ]
    assert any(_is_entry(each) for _, each in _compiled())
    assert called == []


def _compiled() -> list[tuple[str, Any]]:
    """Compiled functions of all rooms, with the modules they are in."""
    found = []
    for room in (cluster_model, goals, optimizer, trimtab):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if not module.name.endswith("__main__"):
                found += [(module.name, each) for each in vars(import_module(module.name)).values() if hasattr(each, "py_func")]
    return found


def _is_entry(function: object) -> bool:
    from cluster_model.lean_cache import LeanCache

    kept = getattr(function, "_cache", None)
    return isinstance(kept, LeanCache) and not kept._impl.keeps_bitcode
