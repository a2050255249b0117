"""Runs Meta's Rebalancer on one instance. Started by `benchmarks.meta_rebalancer` under a CPython that has it, so it imports nothing
of ours.

``python meta_rebalancer_worker.py INSTANCE.json ANSWER.json``. The instance has `replicas` (brokers of each partition), `racks` (of
each broker), `loads` (resource -> what every replica of each partition costs), `limits` (resource -> most on a broker), `mode` and
`seconds`.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from rebalancer import ProblemSolver  # type: ignore[import-not-found]

MODES: dict[str, list[dict[str, Any]]] = {
    "fast": [{"singleFastMoveTypeSpec": {}}],
    "batches": [{"singleRandomBatchesMoveTypeSpec": {}}],
    "thorough": [{"singleMoveTypeSpec": {}}, {"swapMoveTypeSpec": {}}],
}
SAMPLE = 10  # destinations looked at for one replica, in mode sampling
ABSOLUTE = 0  # its type of limit; it takes the number of an enumeration, not the name


def solve(instance: dict[str, Any]) -> dict[str, Any]:
    """Brokers of each partition after its solution, and its seconds, materialization included."""
    replicas = instance["replicas"]
    assignment: dict[str, list[str]] = {str(b): [] for b in range(len(instance["racks"]))}
    groups = {str(p): [f"{p}-{s}" for s in range(len(hosts))] for p, hosts in enumerate(replicas)}
    for p, hosts in enumerate(replicas):
        for s, broker in enumerate(hosts):
            assignment[str(broker)].append(f"{p}-{s}")
    solver = ProblemSolver("rebalancer", "benchmark")
    solver.set_object_name("replica").set_container_name("broker").set_assignment(assignment)
    solver.add_partition("partition", groups)
    solver.add_scope("rack", {str(b): str(rack) for b, rack in enumerate(instance["racks"])})
    for resource, load in instance["loads"].items():
        solver.add_object_dimension(resource, {name: load[int(p)] for p, names in groups.items() for name in names})
        solver.add_container_dimension(resource, {}, instance["limits"][resource])
        solver.add_goal({"capacitySpec": {"name": resource, "scope": "broker", "dimension": resource}})
    limit = {"type": ABSOLUTE, "globalLimit": 1}
    solver.add_constraint(
        {"groupCountSpec": {"name": "racks", "scope": "rack", "partitionName": "partition", "limit": limit}}
    )
    anywhere = {"scopeName": "broker", "scopeItems": list(assignment)}
    sampling = {
        "destinationsToExplore": {"moveToScopeItems": {"defaultScopeItems": anywhere}},
        "stratifiedSampleSize": {"defaultSampleSize": SAMPLE},
    }
    modes = {**MODES, "sampling": [{"singleRandomStratifiedMoveTypeSpec": sampling}]}
    search = {"moveTypeList": modes[instance["mode"]], "solveTime": instance["seconds"], "randomSeed": 0}
    solver.add_solver({"localSearchSolverSpec": search})
    solver.disable_solution_summary()
    cpu, wall = time.process_time(), time.perf_counter()
    found = solver.solve()["assignment"]
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    after = [[int(found[name]) for name in names] for names in groups.values()]
    return {"replicas": after, "cpu_s": cpu, "wall_s": wall}


def main() -> None:
    with open(sys.argv[1]) as file:
        instance = json.load(file)
    answer = solve(instance)
    with open(sys.argv[2], "w") as file:
        json.dump(answer, file)


if __name__ == "__main__":
    main()
