"""Kernels are compiled also for a user who has no home, as services often have none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")


@pytest.mark.parametrize("nowhere", [{"HOME": "/proc/no"}, {"XDG_CACHE_HOME": "/proc/no"}])
def test_where_nothing_can_be_kept_kernels_are_this_process_s_own_and_that_is_said(nowhere: dict[str, str]) -> None:
    """It was told as a bug of Trimtab, and the service did not start."""
    code = (
        "import logging, pathlib\nfrom trimtab.warmup import announce\nfrom cluster_model.loops import roll\n"
        "from kernels.cache import KernelFolder\n"
        "logging.basicConfig(format='%(message)s')\nannounce()\n"
        "kept = KernelFolder.from_function(roll.py_func, '').get_cache_path()\nprint(kept)\n"
        "assert pathlib.Path(kept).is_dir()"
    )
    kept = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT")}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=kept | nowhere, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "at every start, since" in ended.stderr
    assert "name a folder that can with NUMBA_CACHE_DIR" in ended.stderr
    assert not Path(ended.stdout.strip()).exists(), "nothing is left behind"
