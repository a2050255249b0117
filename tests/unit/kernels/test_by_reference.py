"""Tuples that kernels pass on by their address are the arrays that Python gave, whatever else the process compiled or loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

from kernels.compiled import COMPILED

ROOT = Path(__file__).parents[3]
KERNELS = """
import sys
from typing import NamedTuple
import numpy as np
from kernels.compiled import ahead, by_reference, compile_all, inner, kernel

@by_reference
class Loads(NamedTuple):
    of: np.ndarray
    factor: np.ndarray

@by_reference
class Mixed(NamedTuple):
    of: np.ndarray
    factor: float

@inner
def grow(loads, b, times):
    if times > 0:
        loads.of[b] *= loads.factor[b, 1]
        return grow_again(loads, b, times)
    return loads.of[b]

@inner
def grow_again(loads, b, times):
    return loads.of[b] + 0.0 * times

@kernel
def total(loads, times):
    found = 0.0
    for b in range(len(loads.of)):
        ahead(loads.factor, min(b + 1, len(loads.of) - 1))
        found += grow(loads, b, times)
    return found

@kernel
def plain(mixed):
    return mixed.of[0] * mixed.factor
"""
USES = """
from kernels_of_a_test import *
compile_all()
loads = Loads(np.arange(3.0), np.full((3, 2), 2.0))
held = sys.getrefcount(loads.of)
print(total(loads, 1), loads.of.tolist(), total(loads, 0))
print(total(Loads(np.ones(4, np.float32), np.full((4, 3), 3)), 1))
print(total(Loads(np.ones(8)[::2], np.full((3, 4), 5.0).T), 1))
print(plain(Mixed(np.ones(1), 7.0)), sys.getrefcount(loads.of) - held)
print(all("Reference" in str(s) for s in total.dispatcher.signatures), sum(total.dispatcher.stats.cache_hits.values()))
"""


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_kernels_see_the_arrays_of_a_tuple_whether_they_are_compiled_or_loaded(tmp_path: Path) -> None:
    """Another kind of array, taken for the one that a kernel was compiled for, would be read as nonsense."""
    (tmp_path / "kernels_of_a_test.py").write_text(KERNELS)
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_DISABLE_JIT"}
    env |= {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    told = []
    for _ in range(2):
        ended = subprocess.run([sys.executable, "-c", USES], env=env, capture_output=True, text=True, check=True)
        told.append(ended.stdout.splitlines())
    assert told[0][:4] == told[1][:4] == ["6.0 [0.0, 2.0, 4.0] 6.0", "12.0", "20.0", "7.0 0"]
    assert [lines[4] for lines in told] == ["True 0", "True 3"]
