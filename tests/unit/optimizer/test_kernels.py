"""Compiled kernels free every array that they make: a service that plans for months must not grow."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from kernels.compiled import COMPILED
from tests.oracle.clusters import case_of
from tests.oracle.runs import plan_text


@pytest.mark.skipif(not COMPILED, reason="without a compiler, Python frees arrays")
def test_planning_leaves_no_array_behind() -> None:
    core: Any = import_module("numba.core.runtime")
    switch: Any = import_module("numba.core.runtime._nrt_python")
    case = case_of(503)
    plan_text(case)
    switch.memsys_enable_stats()
    try:
        before = core.rtsys.get_allocation_stats()
        plan_text(case)
        after = core.rtsys.get_allocation_stats()
    finally:
        switch.memsys_disable_stats()
    assert after.mi_alloc > before.mi_alloc
    assert after.mi_alloc - before.mi_alloc == after.mi_free - before.mi_free
