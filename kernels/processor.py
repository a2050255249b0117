"""Kernels for another processor than this machine's: what an image ships, so that no start of it compiles.

`trimtab compile --for` names a processor; the folder that it fills says which. A process that finds the folder named in
`TRIMTAB_KERNELS` loads from it where its own processor has all that takes (`kernels.lean_cache`), and never writes there.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

SHIPPED_VARIABLE = "TRIMTAB_KERNELS"
NAME_FILE = "processor"
V2 = ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3")
V3 = (*V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
V4 = (*V3, "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")
LEVELS = {"x86-64": (), "x86-64-v2": V2, "x86-64-v3": V3, "x86-64-v4": V4}  # the levels of the x86-64 psABI and what they add


def known() -> tuple[str, ...]:
    """Names of processors that this machine can compile for, beside its own."""
    return tuple(LEVELS) if platform.machine() in ("x86_64", "AMD64") else ("generic",)


def compile_for(name: str) -> None:
    """Compile for the processor `name`, one of `known`, in this process; before the first kernel is."""
    config: Any = import_module("numba.core.config")
    config.CPU_NAME, config.CPU_FEATURES = name, ""


@cache
def shipped() -> tuple[Path, str] | None:
    """The folder that `TRIMTAB_KERNELS` names, and the processor its kernels are for; None where that is not set.

    Raises
    ------
    OSError
        The folder cannot be read, or was not made by ``trimtab compile --out``.
    """
    given = os.environ.get(SHIPPED_VARIABLE)
    if not given:
        return None
    folder = Path(given)
    try:
        return folder, (folder / NAME_FILE).read_text().strip()
    except OSError as error:
        expected = f"{SHIPPED_VARIABLE} must name a folder that `trimtab compile --out` filled, found none"
        raise OSError(error.errno, expected, str(folder)) from error


@cache
def runs_here(name: str) -> bool:
    """Whether the processor of this machine has all that code for `name` may use."""
    features = import_module("llvmlite.binding").get_host_cpu_features()
    return name in known() and all(features.get(each) for each in LEVELS.get(name, ()))
