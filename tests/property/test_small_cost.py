"""Clusters of up to six brokers against an exact solver: within range wherever a placement is, for hardly more than the cheapest costs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.compile import compile_problem
from optimizer.course import Placement
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.problem import BOUND, MEAN
from tests.unit.optimizer.exact import Loads, cheapest, linear_goals

CASES = 60
RESOURCES = ("network_in", "network_out", "disk")
NODES = 60_000
MOVES_ALONE = 10**15  # bytes: a move cost beside which bytes do not count

Document = dict[str, Any]


@dataclass(frozen=True)
class Small:
    snapshot: Snapshot
    goals: GoalSet


@dataclass(frozen=True)
class Cost:
    """What a plan moves, and whether some broker is outside its band afterwards."""

    moves: int
    bytes: int
    out: bool


def small(seed: int) -> Small:
    """In turn: a new broker, placement by chance, hot partitions on a level placement. One to three replicas, half of them with racks."""
    r = np.random.default_rng([seed, 40961])
    brokers, count = int(r.integers(2, 7)), int(r.integers(3, 25))
    factor = int(r.integers(1, min(3, brokers) + 1))
    racks = min(3, brokers) if r.random() < 0.5 else 0
    kind = seed % 3
    old = brokers - 1 if kind == 0 and brokers - 1 >= max(factor, racks) else brokers
    rate = 2e5 * r.lognormal(0.0, 1.0 if r.random() < 0.7 else 0.4, count)
    rows: list[Document] = []
    for p in range(count):
        first = p % old if kind == 2 else int(r.integers(old))
        replicas = [(first + i) % old for i in range(factor)]
        if racks and len({b % racks for b in replicas}) < min(racks, factor):
            replicas = [b for b in range(old) if b < max(racks, factor)][:factor]
        if kind == 2 and r.random() < 0.2:
            rate[p] *= 6.0
        out, disk = float(r.integers(0, 4)) + factor - 1.0, 4e4 * rate[p] * r.lognormal(0.0, 0.5)
        rows.append({
            "topic": "t", "partition": p, "replicas": replicas, "leader": replicas[0],
            "leader_load": {"network_in": rate[p], "network_out": rate[p] * out, "disk": disk},
            "follower_load": {"network_in": rate[p], "network_out": 0.0, "disk": disk},
        })  # fmt: skip
    snapshot = build_snapshot({
        "version": 1, "cluster_id": f"small-{seed}", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": b, "rack": f"r{b % racks}" if racks else None} for b in range(brokers)], "partitions": rows,
    })  # fmt: skip
    goals: list[Document] = [{"kind": "usage_distribution", "resource": x, "bound": 0.10} for x in RESOURCES[: int(r.integers(1, 4))]]
    goals += [{"kind": "rack_aware"}] if racks else []
    return Small(snapshot, parse_goals(json.dumps({"version": 1, "goals": goals}), "small"))


def planned(case: Small, move_cost: int | None) -> Cost:
    made = plan(case.snapshot, case.goals, PlanOptions(min_gain=0.0, noise=0.0, move_cost=move_cost))
    moves, copied, disk = 0, 0.0, case.snapshot.vectors("disk")[0]
    for change in made.proposals:
        came = len(set(change.replicas_after) - set(change.replicas_before))
        moves += came
        copied += came * float(disk[case.snapshot.row_of_partition(change.topic, change.partition)])
    return Cost(moves, round(copied), any(b.violates for b in made.brokers))


def least(case: Small, by_moves: bool) -> float | None:
    """Fewest moves or bytes of a placement with every broker within range; None where there is none."""
    compiled = compile_problem(case.snapshot, case.goals, PlanOptions(min_gain=0.0, noise=0.0))
    goals = linear_goals(compiled.problem)
    table = compiled.problem.table[:, goals]
    loads = Loads(goals, table[:, :, MEAN] - table[:, :, BOUND], table[:, :, MEAN] + table[:, :, BOUND])
    disk = np.asarray(case.snapshot.vectors("disk")[0], float)
    found = cheapest(compiled, Placement(compiled.replicas, compiled.lead), loads, np.ones(len(disk)) if by_moves else disk, NODES)
    return None if found is None else found.price


@pytest.mark.parametrize(("by_moves", "limit"), [(False, 1.05), (True, 1.08)], ids=["bytes", "moves"])
def test_all_come_into_range_that_can_for_little_more_than_it_has_to_cost(by_moves: bool, limit: float) -> None:
    ratios, missed = [], []
    for seed in range(CASES):
        case = small(seed)
        floor = least(case, by_moves)
        if floor is None:
            continue
        made = planned(case, MOVES_ALONE if by_moves else 0)
        if made.out:
            missed.append(seed)
        elif floor > 0.0:
            ratios.append((made.moves if by_moves else made.bytes) / floor)
        else:
            assert made.moves == 0, f"seed {seed}: no replica has to move"
            ratios.append(1.0)
    assert missed == []
    assert len(ratios) >= CASES // 3, "too few cases have a placement in band"
    assert sum(ratios) / len(ratios) <= limit
