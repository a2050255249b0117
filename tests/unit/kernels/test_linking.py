"""Functions that only kernels call are linked, and cost no machine code of their own: that was two fifths of all compiling."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.compiled import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
ROOT = Path(__file__).parents[3]
KERNELS = """
import numpy as np
from kernels.compiled import compile_all, inner, kernel

@inner
def doubled(load):
    return load * 2.0

@inner
def made(count):
    return np.full(count, doubled(1.5))

@inner
def raised(count):
    if count > 3:
        raise ValueError("too many brokers")
    return doubled(count)

@kernel
def total(count):
    return made(count).sum() + raised(count)

@kernel
def other(count):
    return made(count).max() + doubled(count)
"""
TOTAL = """
from kernels_of_a_test import *
compile_all()
print(total(2))
try:
    total(5)
except ValueError as wrong:
    print(wrong)
linked = [each.linked.overloads.values() for each in (doubled, made, raised) if hasattr(each, "linked")]
print({result.library._finalized for results in linked for result in results})
"""
OTHER = "from kernels_of_a_test import *\ncompile_all()\nprint(other(2), sum(made.linked.stats.cache_hits.values()))\n"


def printed(place: Path, code: str) -> list[str]:
    """What a new process prints that keeps its kernels in `place`."""
    (place / "kernels_of_a_test.py").write_text(KERNELS)
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    env |= {"NUMBA_CACHE_DIR": str(place / "kept"), "PYTHONPATH": f"{ROOT}{os.pathsep}{place}"}
    ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_what_only_kernels_call_gets_no_machine_code_of_its_own(tmp_path: Path) -> None:
    """A numba that is made otherwise would take twice the time to compile, and say nothing."""
    assert printed(tmp_path, TOTAL) == ["10.0", "too many brokers", "{False}"]
    assert printed(tmp_path, TOTAL) == ["10.0", "too many brokers", "set()"], "a kernel that is loaded needs none of them"


def test_a_kernel_links_what_another_process_kept(tmp_path: Path) -> None:
    """A change of one module would compile all that its kernels call again."""
    printed(tmp_path, TOTAL)
    assert printed(tmp_path, OTHER) == ["7.0 1"]
