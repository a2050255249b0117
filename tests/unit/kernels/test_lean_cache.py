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
from kernels.compiled import Kernel

ROOT = Path(__file__).parents[3]
KERNELS = """
import math
import numpy as np
from kernels.compiled import both, inner, kernel

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
from kernels.compiled import kernel
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
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    env |= {"NUMBA_CACHE_DIR": str(place / "kept"), "PYTHONPATH": f"{ROOT}{os.pathsep}{place}"}
    start = "import sys\nimport numpy as np\nimport kernels_of_a_test as kernels\nfrom kernels.compiled import compile_all\ncompile_all()\n"
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
    """A change of one module broke the compilation of another until everything was compiled again."""
    told(tmp_path, "kernels.shared(2.0)\n")
    code = "print(kernels.shared(2.0) + 1.0)\nfrom later_of_a_test import later\nprint(later(2.0))\n"
    wanted, found = told(tmp_path, code)
    assert wanted == found


@pytest.mark.parametrize(
    ("expected", "readied"), [(["NRT_Allocate", "NRT_MemInfo_alloc"], False), (["NRT_Allocate", "is_not_there"], True)]
)
def test_the_compiler_is_readied_where_machine_code_expects_what_is_not_there(expected: list[str], readied: bool) -> None:
    """The loader ends the process where a symbol is missing; a later numba may have others, or keep something else."""
    from kernels.lean_cache import LeanCode

    context = Context()
    with pytest.raises(LoadedError):
        LeanCode.rebuild(object.__new__(LeanCode), context, (expected, ((), None, None, None, False, (), "", (), ())))
    assert context.readied == readied


def test_kernels_call_no_kernel_that_has_an_entry_alone() -> None:
    """numba cannot link what only Python calls: such a caller could not be compiled."""
    called = [
        f"{name} of {function.__module__} is called by {where}: make it `both`"
        for where, function in marked()
        for name in function.__code__.co_names
        if isinstance(there := function.__globals__.get(name), Kernel) and there.targetoptions is None
    ]
    assert len(marked()) > 100
    assert called == []


def marked() -> list[tuple[str, Any]]:
    """Functions of all rooms that may be compiled, with the modules they are seen in."""
    found = []
    for room in (cluster_model, goals, optimizer, trimtab):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            if not module.name.endswith("__main__"):
                seen = vars(import_module(module.name)).values()
                found += [(module.name, each.py_func) for each in seen if hasattr(each, "targetoptions")]
    return found
