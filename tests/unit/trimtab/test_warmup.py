"""What `trimtab compile` leaves to be compiled later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.compiled import COMPILED

LEFT = """
import pkgutil
from importlib import import_module
import cluster_model, optimizer
from kernels.compiled import Kernel
from trimtab.warmup import warm_up

warm_up()
for room in (cluster_model, optimizer):
    for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
        for name, each in vars(import_module(module.name)).items():
            if isinstance(each, Kernel) and each.py_func.__module__ == module.name:
                if not each.dispatcher.signatures:
                    print(module.name, name)
"""
ALGEBRA = """
import sys
import optimizer.rack_bounds
from trimtab.warmup import warm_up

optimizer.rack_bounds.most_given = lambda *_: 0  # which asks scipy for a largest flow, where racks are crowded
warm_up()
print('scipy.linalg' in sys.modules)
"""
OTHERS = {"cluster_model.metadata.kernels", "optimizer.policies.recording"}  # of the metadata log, of policies


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_nothing_of_the_planner_is_left_to_be_compiled_while_a_person_waits() -> None:
    """The first plan with shared storage or with a broker that stays outside, or the first explanation, took longer unannounced."""
    assert {line.split()[0] for line in told(LEFT)} <= OTHERS


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
def test_no_kernel_brings_linear_algebra_along() -> None:
    """One sum by numpy in a kernel did: 18 MB of each process that loaded it. A loop does the same."""
    told(ALGEBRA)  # what is compiled imports it
    assert told(ALGEBRA) == ["False"]


def told(code: str) -> list[str]:
    """What a process of its own prints."""
    root = Path(__file__).parents[3]
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()
