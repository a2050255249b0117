"""What budgets of every size leave undone: whether a larger one ever leaves more, and what such plans cost.

    python -m benchmarks.budgets [--seeds 0,1] [--kinds skewed,tight]

Each cluster is planned without a budget, and with ladders of moves, bytes and partitions up to 1.3 times what that plan needs. Beside it
stands a search made for each budget by itself. *Undone* is compared first things first (`optimizer.prefixes`): urgent repairs left,
replicas in crowded racks, hard goals that brokers miss, by how much, and by how much scores of soft goals fall short of 1, by weight.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from benchmarks.planner import listed
from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.course import Placement
from optimizer.found import Round
from optimizer.options import PlanOptions
from optimizer.prefixes import Undone, spent_along, undone_of
from optimizer.problem import Compiled
from optimizer.search.search import search
from optimizer.spending import affordable_search
from optimizer.worth import worthwhile_search
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import HEADROOM, Scenario, cluster
from tests.oracle.clusters import case_of

BUDGETS = ("max_moves", "max_bytes", "max_partitions")
LADDER = (0.013, 0.04, 0.1, 0.23, 0.33, 0.45, 0.7, 0.85, 1.0, 1.3)  # of what the plan without a budget needs
RESOURCES = ("network_in", "network_out", "disk", "cpu")
KINDS: dict[str, tuple[int, int, Scenario, str]] = {
    "new": (20, 1_500, "a", "even"), "skewed": (10, 600, "b", "even"), "tight": (10, 600, "b", "even"), "drain": (12, 600, "c", "draining"),
    "hot": (12, 600, "d", "even"), "everything": (20, 900, "b", "everything"), "larger": (60, 6_000, "b", "even"),
    "racks": (60, 6_000, "d", "racks"), "oracle": (0, 0, "b", ""),
}  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One budget: undone at the start, by the plan, and by a search made for it; CPU seconds, and those without a budget."""

    kind: str
    ladder: int
    start: Undone
    left: Undone
    other: Undone
    cpu_s: float
    unlimited_cpu_s: float


def instance(kind: str, seed: int) -> tuple[Snapshot, str]:
    """A cluster of the kind and its goals file; `tight` has hard limits at 1.2 times the mean and nothing else."""
    if kind == "oracle":
        case = case_of(seed, most_brokers=12, per_broker=20)
        return build_snapshot(case.snapshot), json.dumps(case.goals)
    brokers, replicas, scenario, variant = KINDS[kind]
    limits = [{"kind": "capacity", "resource": x, "limit": 1.2 / HEADROOM} for x in RESOURCES]
    goals = json.dumps({"version": 1, "goals": [{"kind": "rack_aware"}, *limits]}) if kind == "tight" else goals_text(variant, 0.1)
    return cluster(brokers, replicas, scenario, seed, variant), goals


def climbed(kind: str, seed: int) -> Iterator[Step]:
    """Steps of all ladders of one cluster."""
    snapshot, goals = instance(kind, seed)
    options = PlanOptions()
    compiled = compile_problem(snapshot, parse_goals(goals, "benchmark"), options)
    if not len(compiled.replicas):
        return
    start = _undone(compiled, [])
    for _ in range(2):  # once more, with all kernels loaded
        begun = time.process_time()
        needed = spent_along(compiled, worthwhile_search(compiled, options).rounds)[-1]
        unlimited = time.process_time() - begun
    for d in np.flatnonzero(needed > 0).tolist():
        for budget in sorted({int(np.ceil(share * needed[d])) for share in LADDER}):
            asked = replace(options, **{BUDGETS[d]: budget})  # type: ignore[arg-type]
            begun = time.process_time()
            left = affordable_search(compiled, asked).rounds
            cpu = time.process_time() - begun
            other = search(compiled, asked).rounds
            yield Step(kind, d, start, _undone(compiled, left), _undone(compiled, other), cpu, unlimited)


def _undone(compiled: Compiled, rounds: list[Round]) -> Undone:
    state = Placement(compiled.replicas, compiled.lead).after(rounds).state(compiled)
    urgent, crowded, missed, short, soft = undone_of(compiled, state)
    return urgent, crowded, missed, round(short, 6), round(soft, 6)


def line(name: str, steps: Sequence[Step]) -> str:
    pairs = [(one, two) for one, two in pairwise(steps) if (one.ladder, one.start) == (two.ladder, two.start)]
    worse = sum(two.left > one.left for one, two in pairs), sum(two.other > one.other for one, two in pairs)
    better = sum(s.left < s.other for s in steps), sum(s.left > s.other for s in steps)
    sums = [f"{sum(s.left[i] for s in steps):,.5g} / {sum(s.other[i] for s in steps):,.5g}" for i in range(5)]
    cpu = sum(s.cpu_s for s in steps) / max(sum(s.unlimited_cpu_s for s in steps), 1e-9)
    cells = [name, str(len(pairs)), f"{worse[0]} / {worse[1]}", f"{better[0]} / {better[1]}", *sums, f"{cpu:.2f}"]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=lambda text: [int(x) for x in text.split(",")], default=[0, 1], metavar="N,M")
    parser.add_argument("--kinds", type=listed(tuple(KINDS)), default=list(KINDS), metavar="A,B")
    chosen = parser.parse_args(arguments)
    print("Each pair: plans / a search made for each budget by itself.\n")
    print("| clusters | steps | more undone | better / worse | urgent | crowded | hard missed | short | soft short | CPU, x none |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    every: list[Step] = []
    for kind in chosen.kinds:
        steps = [step for seed in chosen.seeds for step in climbed(kind, seed)]
        print(line(kind, steps), flush=True)
        every += steps
    print(line("all", every))


if __name__ == "__main__":
    main()
