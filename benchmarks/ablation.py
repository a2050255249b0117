"""What each operator of the search earns: plans without it against plans with all of them.

``python -m benchmarks.ablation [--rows 20x400,100x50k/b] [--seeds 31844] [--without repack,sideways+send_home]``

Rows and held-out seeds are those of `benchmarks.ledger`. Few of the rows have upper limits alone: before an operator is deleted, run
`benchmarks.heavy_tails`, too. Ratios are geometric means of *without over with*: above 1.000 the operator earns the rest. Brokers outside
their target range are sums over all cells.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, cast
from unittest.mock import patch

from benchmarks.ledger import BAND, SEEDS, SIZES, mean, over, rows_like
from benchmarks.measure import Row, Timing, row_of
from benchmarks.planner import Cell, job_of
from goals.document import parse_goals
from kernels.compiled import compile_all
from optimizer.options import Acceptance
from optimizer.planner import plan
from tests.clusters.synthetic import Scenario


def nothing(*_: object, **__: object) -> int:
    """An operator that changes nothing."""
    return 0


def as_given(problem: Any, *_: Any) -> Any:
    """A problem as it is."""
    return problem


# What is left out -> module of `optimizer.search`, name in it, and what stands there instead.
OPERATORS: dict[str, tuple[str, str, Any]] = {
    "topics": ("search", "spread_topics", nothing),
    "balance": ("search", "balance", nothing),
    "repack": ("search", "repack", nothing),
    "swap_out": ("search", "swap_out", nothing),
    "restarts": ("search", "MOST_RESTARTED", 0),
    "within reach": ("irreducible", "within_reach", as_given),
    "mending": ("search", "mending", as_given),
    "limits as bands": ("search", "banded", as_given),
    "sideways": ("reduce", "sideways", nothing),
    "send_home": ("reduce", "send_home", nothing),
    "polish": ("search", "polish", nothing),
}


@contextmanager
def without(name: str | None) -> Iterator[None]:
    """The search without an operator, or several joined by ``+``; with all of them for None."""
    with ExitStack() as stack:
        for operator in name.split("+") if name else ():
            module, attribute, instead = OPERATORS[operator]
            stack.enter_context(patch.object(import_module(f"optimizer.search.{module}"), attribute, instead))
        yield


def planned(row: str, seed: int) -> Row:
    """One cell, planned in this process; its CPU time is that of the plan alone."""
    size, scenario, variant, acceptance = row.split("/")
    cell = Cell(size, *SIZES[size], cast(Scenario, scenario), variant, BAND, seed, cast(Acceptance, acceptance), 1)
    job = job_of(cell)
    goals, started = parse_goals(job.goals, "ablation"), time.process_time()
    found = plan(job.snapshot, goals, job.options)
    cpu = time.process_time() - started
    return row_of(job, found, Timing(cpu, cpu, 0.0, 0.0, 0.0, True))


def line(name: str, pairs: Sequence[tuple[Row, Row]]) -> str:
    """`pairs` are cells with all operators, and without one."""

    def ratio(of: Callable[[Row], float]) -> str:
        ratios = [over(of(after), of(before)) for before, after in pairs]
        return f"{mean(ratios):6.3f} {max(ratios):6.3f}"

    def left(of: Callable[[Row], int]) -> str:
        return f"{sum(of(after) for _, after in pairs) - sum(of(before) for before, _ in pairs):+5d}"

    out, unproven = left(lambda r: r.explained + r.unexplained), left(lambda r: r.unexplained)
    return f"{name:16} {out} {unproven} {ratio(lambda r: r.moves)}  {ratio(lambda r: r.bytes_moved)}  {ratio(lambda r: r.cpu_s)}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=lambda text: text.split(","), default=["20x400", "20x5k"], metavar="A,B")
    parser.add_argument("--seeds", type=lambda text: [int(x) for x in text.split(",")], default=list(SEEDS[:1]), metavar="N,M")
    parser.add_argument("--without", type=lambda text: text.split(","), default=list(OPERATORS), metavar="A,B")
    chosen = parser.parse_args(arguments)
    if unknown := {name for names in chosen.without for name in names.split("+")} - set(OPERATORS):
        parser.error(f"--without: expected some of {', '.join(OPERATORS)}, joined by + or comma, found {', '.join(sorted(unknown))}")
    compile_all()
    rows = [row for row in rows_like(chosen.rows) if row.split("/")[0] in SIZES]
    cells = [(row, seed) for seed in chosen.seeds for row in rows]
    whole = [planned(*cell) for cell in cells]
    whole = [planned(*cell) for cell in cells]  # once more, with all kernels loaded
    print(f"{len(cells)} cells\nwithout            out  unproven  moves worst   bytes worst    CPU worst")
    for name in chosen.without:
        with without(name):
            print(line(name, [(before, planned(*cell)) for before, cell in zip(whole, cells, strict=True)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
