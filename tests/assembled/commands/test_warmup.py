"""What `trimtab compile` leaves to be compiled later."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from goals.document import parse_goals
from kernels.compiled import COMPILED, Kernel, rehearsed
from optimizer.options import PlanOptions
from optimizer.planner import plan
from trimtab.warmup import rehearse, tiny_clusters

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


@pytest.fixture(scope="module")
def compiled_for() -> set[tuple[Kernel, tuple[Any, ...]]]:
    """Kernels with the types that `trimtab compile` compiles them for."""
    return set(rehearsed(rehearse, interpreted=False))


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
@pytest.mark.parametrize(
    "asked",
    [
        {"move_cost": 0}, {"move_cost": 5}, {"acceptance": "potential"}, {"max_moves": 2}, {"max_bytes": 20}, {"max_partitions": 1},
        {"min_gain": 0.0, "noise": 0.0}, {"restarts": 1},
    ],
    ids=str,
)  # fmt: skip
def test_no_option_has_kernels_compiled_for_other_types(
    asked: dict[str, Any], compiled_for: set[tuple[Kernel, tuple[Any, ...]]]
) -> None:
    """The first plan with `--move-cost 0` compiled the whole search again, for minutes and without a word: its costs were read-only."""
    goals = parse_goals("version: 1\npreset: default\n", "warm-up")
    names = {kernel for kernel, _ in compiled_for}
    for snapshot in tiny_clusters():
        heard = rehearsed(lambda snapshot=snapshot: plan(snapshot, goals, PlanOptions(**asked)), interpreted=False)  # type: ignore[misc]
        others = {(kernel, types) for kernel, types in heard if kernel in names} - compiled_for
        assert not others, f"compiled again: {sorted(kernel.py_func.__name__ for kernel, _ in others)}"


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
