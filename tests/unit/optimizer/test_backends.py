"""A machine without a compiler plans the same: the numpy forms of the kernels give the plans of the compiled ones, byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.clusters import cluster
from benchmarks.planner import goals_text
from goals.document import parse_goals
from optimizer.options import Acceptance, PlanOptions
from optimizer.planner import plan
from tests.oracle.clusters import case_of
from tests.oracle.runs import plan_text

ROOT = Path(__file__).parents[3]
SEEDS = (*range(500, 505), 536)  # the last: exchanges among brokers that topics keep apart
# Brokers, replicas, scenario, variant, acceptance: many brokers are looked at side by side; topics, racks, shared storage.
SIZES: tuple[tuple[int, int, Any, str, Acceptance], ...] = (
    (220, 16_000, "a", "even", "potential"),
    (320, 36_000, "b", "racks", "score"),
    (40, 4_000, "b", "even", "score"),
    (30, 3_000, "b", "racks", "potential"),
    (30, 3_000, "c5", "shared", "potential"),
    (24, 1_200, "a", "topics", "score"),
    (30, 3_000, "b", "draining", "potential"),
)
PROGRAM = """
import json, sys
from cluster_model.compiled import COMPILED, INTERPRETED
from tests.unit.optimizer.test_backends import digests
assert not COMPILED and not INTERPRETED
print(json.dumps(digests()))
"""


def digests() -> list[str]:
    """Of the plan file of each random cluster, and the id of each plan of a larger one."""
    found = [hashlib.sha256(plan_text(case_of(seed)).encode()).hexdigest() for seed in SEEDS]
    for brokers, replicas, scenario, variant, acceptance in SIZES:
        goals = parse_goals(goals_text(variant, 0.1), "goals")
        snapshot = cluster(brokers, replicas, scenario, 0, variant)
        found.append(plan(snapshot, goals, PlanOptions(acceptance=acceptance)).plan_id)
    return found


def run(program: str, backend: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if name != "NUMBA_DISABLE_JIT"}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env={**kept, "TRIMTAB_BACKEND": backend, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_plans_by_numpy_are_the_compiled_ones() -> None:
    done = run(PROGRAM, "numpy")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == digests()


def test_an_unknown_backend_is_refused_with_the_known_ones() -> None:
    arguments = ["trimtab", "plan", "--snapshot", "examples/three-brokers.json", "--preset", "default"]
    done = run(f"from trimtab.__main__ import run; import sys; sys.argv = {arguments}; sys.exit(run())", "fast")
    assert done.returncode == 2
    assert "TRIMTAB_BACKEND: expected compiled or numpy, found 'fast'" in done.stderr
    assert "Traceback" not in done.stderr
