"""On clusters small enough to try every placement, the planner's worst broker is about as good as the best
placement's.

The search below asks one question per case: is there a placement, legal under the same rules, whose worst
deviation is better than the planner's by more than the allowance? It goes through all replica sets and
leaders, largest partition first, and leaves a branch only where a broker is over the top already or can no
longer be filled.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product
from random import Random
from typing import Any

import pytest

from tests.oracle.cluster import Cluster, Key
from tests.oracle.clusters import Case
from tests.oracle.goal_files import constraints_of, goals_of
from tests.oracle.judge import Judge
from tests.oracle.runs import after, plan_document

BOUND = 0.10
ALLOWANCE = 0.02
CASES = 100
SHARE = 0.90  # 19 of the first 200 have a better worst broker elsewhere: the objective is a sum over brokers
MOST_NODES = 400_000

Document = dict[str, Any]
Loads = tuple[float, ...]  # one number for each pair of broker and goal


def small_case(seed: int, resources: tuple[str, ...], acceptance: str) -> Case:
    """2 to 4 brokers, 3 to 10 partitions, one to three replicas, with and without racks."""
    r = Random(f"small {seed}")
    count = r.randint(2, 4)
    racked = r.random() < 0.5
    brokers = [{"id": b, "rack": f"r{b % r.choice((2, 3))}" if racked else None} for b in range(1, count + 1)]
    factor = r.randint(1, min(3, count - 1)) if count > 2 else 1
    partitions = []
    for number in range(r.randint(3, 10)):
        replicas = r.sample(range(1, count + 1), factor)
        rate = r.lognormvariate(0.0, 1.0) * 1e6
        load = {"network_in": rate, "network_out": rate * r.choice((0, 1, 2, 5))}
        partitions.append(
            {"topic": "t", "partition": number, "replicas": replicas, "leader": replicas[0],
             "leader_load": {name: load[name] for name in resources}}
        )  # fmt: skip
    snapshot = {"version": 1, "cluster_id": "small", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
                "brokers": brokers, "partitions": partitions}  # fmt: skip
    goals: list[Document] = [
        {"kind": "usage_distribution", "resource": name, "bound": BOUND} for name in resources
    ]
    goals += [{"kind": "rack_aware"}] if racked else []
    return Case(seed, snapshot, {"version": 1, "goals": goals}, acceptance)


@dataclass
class Search:
    """Whether some legal placement keeps every broker within `limit` of its mean."""

    limits: list[tuple[float, float]]  # lowest and highest load allowed, by pair
    choices: list[list[Loads]]  # of each partition, largest first
    nodes: int = 0

    def __post_init__(self) -> None:
        pairs = range(len(self.limits))
        self.room: list[Loads] = [tuple(0.0 for _ in pairs)]  # the most that is still to come, by pair
        for options in reversed(self.choices):
            self.room.append(tuple(self.room[-1][i] + max(o[i] for o in options) for i in pairs))
        self.room.reverse()
        self.dead_ends: set[tuple[int, Loads]] = set()

    def reaches(self, depth: int, loads: Loads) -> bool | None:
        """None where the search was too large to end."""
        self.nodes += 1
        if self.nodes > MOST_NODES:
            return None
        for load, room, (low, high) in zip(loads, self.room[depth], self.limits, strict=True):
            if load > high or load + room < low:
                return False
        if depth == len(self.choices):
            return True
        key = (depth, tuple(round(x, 3) for x in loads))
        if key in self.dead_ends:
            return False
        for option in self.choices[depth]:
            found = self.reaches(depth + 1, tuple(a + b for a, b in zip(loads, option, strict=True)))
            if found is None or found:
                return found
        self.dead_ends.add(key)
        return False


def worst_deviation(judge: Judge) -> float:
    deviations = [0.0]
    for goal in judge.goals:
        for b, mean in judge.means.get(goal["name"], {}).items():
            if mean > 0:
                deviations.append(abs(judge.cluster.load(b, goal["resource"]) - mean) / mean)
    return max(deviations)


def placements(judge: Judge, key: Key, pairs: list[tuple[int, str]], racked: bool) -> list[Loads]:
    """What every legal set of replicas and leader of a partition adds to each pair of broker and resource."""
    c = judge.cluster
    factor = len(c.replicas[key])
    was = (c.replicas[key], c.leader[key])
    found = set()
    for chosen in combinations(c.active, factor):
        c.change(key, chosen, chosen[0])
        legal = not racked or judge.rack_excess(key) == 0
        for leader in chosen if legal else ():
            found.add(tuple(
                0.0 if b not in chosen else c.as_leader(key, x) if b == leader else c.as_follower(key, x)
                for b, x in pairs
            ))  # fmt: skip
    c.change(key, *was)
    return sorted(found)


def question(case: Case, target: float) -> Search:
    """Whether some placement keeps every broker within `target` of its mean, in every goal."""
    start = Cluster(case.snapshot, constraints_of(case.goals), {})
    judge = Judge(start, goals_of(case.goals))
    measured = [g for g in judge.goals if g["kind"] == "usage_distribution" and judge.total[g["name"]] > 0]
    pairs = [(b, g["resource"]) for g in measured for b in start.active]
    means = [judge.means[g["name"]][b] for g in measured for b in start.active]
    racked = any(g["kind"] == "rack_aware" for g in judge.goals)
    choices = [placements(judge, key, pairs, racked) for key in start.partitions]
    choices = sorted((c for c in choices if c), key=lambda options: -max(map(max, options)))
    return Search([(m * (1 - target), m * (1 + target)) for m in means], choices)


def is_near_optimal(case: Case) -> bool | None:
    """Whether no placement beats the planner's by more than the allowance; None where that was too long to
    find out.
    """
    done = after(case, plan_document(case))
    end = Cluster(done.snapshot, constraints_of(case.goals), {})
    worst = worst_deviation(Judge(end, goals_of(case.goals)))
    if worst <= BOUND + ALLOWANCE:
        return True
    search = question(case, max(worst - ALLOWANCE - 1e-9, BOUND))
    better = search.reaches(0, tuple(0.0 for _ in search.limits))
    return None if better is None else not better


@pytest.mark.parametrize("seed", range(40))
def test_the_search_finds_what_trying_everything_finds(seed: int) -> None:
    case = small_case(seed, ("network_in", "network_out"), "score")
    snapshot = {**case.snapshot, "partitions": case.snapshot["partitions"][:4]}
    case = case.without(snapshot=snapshot)
    free = question(case, 1.0)
    means = [high / 2 for _, high in free.limits]
    best = min(
        max((abs(sum(parts) - m) / m for *parts, m in zip(*combination, means, strict=True)), default=0.0)
        for combination in product(*free.choices)
    )
    nothing = tuple(0.0 for _ in means)
    assert question(case, best + 1e-6).reaches(0, nothing) is True
    assert question(case, best - 1e-6).reaches(0, nothing) is (best == 0.0)


@pytest.mark.parametrize("acceptance", ["score", "potential"])
@pytest.mark.parametrize("resources", [("network_in",), ("network_in", "network_out")], ids=["one", "two"])
def test_a_small_cluster_is_not_left_worse_than_it_could_be(
    acceptance: str, resources: tuple[str, ...]
) -> None:
    results = {seed: is_near_optimal(small_case(seed, resources, acceptance)) for seed in range(CASES)}
    known = [seed for seed, result in results.items() if result is not None]
    missed = [seed for seed in known if not results[seed]]
    assert len(known) >= 0.95 * CASES, "too many cases were too large to search through"
    assert len(missed) <= (1 - SHARE) * len(known), f"a better placement exists for seeds {missed}"
