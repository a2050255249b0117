"""Kernels are compiled beside each other, ahead of a plan, and for a folder that an image ships; Ctrl-C stops that at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cluster_model.build import build_snapshot
from cluster_model.files import write_snapshot
from kernels.compiled import COMPILED
from kernels.processor import known
from tests.assembled.commands.command_line import CommandLine

pytestmark = pytest.mark.skipif(not COMPILED, reason="nothing is compiled")
ROOT = Path(__file__).parents[3]
KERNELS = """
import numpy as np
from kernels.compiled import inner, kernel

@inner
def doubled(loads, b):
    return loads[b] * 2.0

@kernel
def total(loads):
    found = 0.0
    for b in range(len(loads)):
        found += doubled(loads, b)
    return found

@kernel
def largest(loads):
    found = 0.0
    for b in range(len(loads)):
        found = max(found, doubled(loads, b))
    return found

def both():
    return total(np.arange(3.0)), largest(np.arange(3.0))
"""
AHEAD = """
import os
from kernels_of_a_test import *
from kernels.compiled import rehearsed
from trimtab.compiling import compile_calls
from trimtab.story import Story

missing = rehearsed(both, only_missing=True)
compile_calls(missing, Story(quiet=True), 2)
print(len(missing), both(), [sum(each.dispatcher.stats.cache_hits.values()) for each in (total, largest)])
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("all processes have ended")
"""
BESIDE = """
import sys, time
from kernels_of_a_test import *
from trimtab import compiling
from trimtab.planning import apart

compiling.PATIENCE = 0.5
compiling.COMPILE = (sys.executable, "-c", "import kernels_of_a_test as k, kernels.compiled as c; c.compile_all(); k.both()" + MORE)

def work():
    found, end = [both()], time.monotonic() + 60
    while not (told if MORE else total.is_compiled() and largest.is_compiled()) and time.monotonic() < end:
        time.sleep(0.01)
    return {*found, both()}, total._dispatcher is not None

told = []
compiling.log.info = told.append
with compiling.compiled_beside() as look:
    print(*apart(work, look))
print(told)
try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("the process beside has ended")
"""
HEARD = """
from kernels_of_a_test import *
from kernels.compiled import Kernel, rehearsed

Kernel.interpreted_up_to = 0
print(len(rehearsed(both, interpreted=False)), total._dispatcher is not None)
"""
SHIPPED = "from kernels_of_a_test import *\nimport sys\nprint(both(), 'numba.np.npyimpl' in sys.modules, total._dispatcher is None)"


def told(place: Path, code: str, **env: str | Path) -> list[str]:
    """What a new process prints that keeps its kernels in `place`."""
    (place / "kernels_of_a_test.py").write_text(KERNELS)
    given = {k: v for k, v in os.environ.items() if k not in ("NUMBA_DISABLE_JIT", "TRIMTAB_KERNELS")}
    given |= {"NUMBA_CACHE_DIR": str(place / "kept"), "PYTHONPATH": f"{ROOT}{os.pathsep}{place}"}
    given |= {k: str(v) for k, v in env.items()}
    ended = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_several_processes_compile_what_a_rehearsal_calls_and_this_one_loads_it(tmp_path: Path) -> None:
    first, second = told(tmp_path, AHEAD), told(tmp_path, AHEAD.replace("compile_calls(missing", "missing and compile_calls(missing"))
    assert first == ["2 (6.0, 4.0) [1, 1]", "all processes have ended"]
    assert second[0] == "0 (6.0, 4.0) [1, 1]", "what is on disk is not compiled again"


@pytest.mark.parametrize("more", ["", "; import time; time.sleep(600)"], ids=["compiled", "ends before"])
def test_what_takes_long_interpreted_goes_on_compiled(more: str, tmp_path: Path) -> None:
    """A first plan of 20 brokers and 1,000 replicas took more than ten minutes: 19 of them could not reach their target range."""
    said = told(tmp_path, f"import os\nMORE = {more!r}\n{BESIDE}")
    assert said[0] == f"{{(6.0, 4.0)}} {not more}"
    assert said[1:] == [
        "['this plan takes long: compiling the planner for this machine beside it, once']", "the process beside has ended",
    ]  # fmt: skip


def test_a_rehearsal_of_a_plan_runs_what_is_compiled_and_compiles_nothing(tmp_path: Path) -> None:
    """Every plan of a large cluster took two seconds longer, to hear which kernels it would use: all were on disk."""
    assert told(tmp_path, HEARD) == ["2 False"]
    assert not list((tmp_path / "kept").rglob("*.nbc"))
    told(tmp_path, AHEAD)
    assert told(tmp_path, HEARD) == ["2 True"]
    assert told(tmp_path, HEARD.replace("=False", "=False, only_missing=True")) == ["0 True"]
    assert told(tmp_path, HEARD.replace("interpreted=False", "interpreted=True")) == ["2 False"]


def test_small_arrays_are_worth_no_compiling(tmp_path: Path) -> None:
    """A person waited a minute for the first plan of twelve brokers."""
    assert told(tmp_path, SHIPPED) == ["(6.0, 4.0) False True"]
    assert not list((tmp_path / "kept").rglob("*.nbc"))


def test_a_folder_of_kernels_for_an_older_processor_is_loaded_and_left_as_it_is(tmp_path: Path) -> None:
    """An image without it compiles at every start of a container."""
    image = tmp_path / "image"
    image.mkdir()
    name = known()[0]
    (image / "processor").write_text(name)
    code = f"from kernels.processor import compile_for\ncompile_for({name!r})\nfrom kernels.compiled import compile_all\ncompile_all()\n"
    told(tmp_path, code + SHIPPED, NUMBA_CACHE_DIR=image)
    before = sorted(image.rglob("*"))
    assert told(tmp_path, SHIPPED, TRIMTAB_KERNELS=image) == ["(6.0, 4.0) False False"]
    assert sorted(image.rglob("*")) == before


def test_ctrl_c_while_kernels_are_compiled_ends_at_once_without_a_plan(tmp_path: Path) -> None:
    """It took a minute, ended with exit code 0, and wrote an empty plan."""
    snapshot, plan = tmp_path / "cluster.json.gz", tmp_path / "plan.json"
    brokers = [{"id": b, "rack": f"r{b % 3}"} for b in range(20)]
    load = {"network_in": 5.0, "disk": 9.0}
    partitions = [
        {"topic": "t", "partition": p, "replicas": [p % 7, 7 + p % 7], "leader": p % 7, "leader_load": load} for p in range(15_000)
    ]
    document = {"version": 1, "cluster_id": "large", "taken_at": "2000-01-01T00:00:00Z", "storage": "local"}
    write_snapshot(build_snapshot(document | {"brokers": brokers, "partitions": partitions}), snapshot)
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_DISABLE_JIT", "TRIMTAB_KERNELS")}
    env |= {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "trimtab", "plan", "--snapshot", str(snapshot), "--preset", "default", "--out", str(plan)]
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        assert any("compiling the planner" in line for line in started.stderr)
        started.send_signal(signal.SIGINT)
        since = time.monotonic()
        assert started.wait(timeout=60) == 130
    assert time.monotonic() - since < 20, "a busy machine, but no wait for the compiler"
    assert not plan.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--for", "pentium", "--out", "x"], "--for: expected native or"),
        (["--for", known()[0]], "--for, --out: give both or neither"),
        (["--out", "x"], "--for, --out: give both or neither"),
    ],
)
def test_a_wrong_processor_is_refused_with_the_ones_there_are(trimtab: CommandLine, arguments: list[str], said: str) -> None:
    ended = trimtab("compile", *arguments)
    assert ended.code == 2
    assert said in ended.err
