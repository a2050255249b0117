"""Single actions on small clusters: what the planner's kernels say of them, and what the oracle says.

Used by the tests of scores in this folder. `Trial.judge` asks `evaluate`; `Trial.expected` asks tests/oracle, which is written from
docs/contract.md, section 7 alone, and adds the fall of the potential, worked out broker by broker in plain Python. Judging must leave the
state as it was, to the last bit: `judge` sees to that every time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from cluster_model.build import build_snapshot
from goals.document import parse_goals
from optimizer import problem as tables
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.placement.evaluate import (
    REPAIRS_DEAD,
    REPAIRS_DRAINING,
    REPAIRS_LEADERLESS,
    REPAIRS_RACKS,
    REPAIRS_SCORES,
    judge,
    propose_all,
)
from optimizer.placement.evaluate import TOLERANCE as RISE
from optimizer.placement.restore import follow
from optimizer.placement.state import MAX_CHANGES, State
from tests.oracle.cluster import Cluster, Key
from tests.oracle.goal_files import constraints_of, goals_of
from tests.oracle.judge import TOLERANCE, Judge, combined_rule

Document = dict[str, Any]
Change = tuple[int, list[int], int | None]  # partition row, brokers slot by slot, leader
SCRATCH = {"stamp", "touched", "row", "change", "action", "old", "units_before", "fresh"}
STATES = {REPAIRS_DEAD: "dead", REPAIRS_DRAINING: "draining", REPAIRS_LEADERLESS: "leaderless"}


def usage(resource: str = "network_in", **more: Any) -> Document:
    return {"kind": "usage_distribution", "resource": resource, "name": resource, **more}


def partition(
    replicas: Sequence[int], leader: int | None = -1, *, topic: str = "t",
    follower: Mapping[str, float] | None = None, **load: float,
) -> Document:  # fmt: skip
    """A partition led by its first replica unless told otherwise; numbers are given out by `Trial`."""
    document: Document = {"topic": topic, "replicas": list(replicas), "leader_load": load}
    document["leader"] = replicas[0] if leader == -1 else leader
    return document if follower is None else {**document, "follower_load": dict(follower)}


@dataclass(frozen=True)
class Judged:
    """One action, judged. Scores are by goal, and in each by broker that it judges; `gain` is the fall of the potential."""

    score: float
    goals: dict[str, float]
    before: dict[str, dict[int, float]]
    after: dict[str, dict[int, float]]
    repairs: set[str]
    allowed: bool
    breaks: int
    better: bool
    gain: float
    touches_low: bool


class Trial:
    """A cluster under goals, ready to have actions judged. Partitions of a topic are numbered as they come; rows are by topic."""

    def __init__(
        self, brokers: Sequence[int | Document], partitions: Sequence[Document], *goals: Document,
        exclude_topics: Sequence[str] = (), freeze_topics: Sequence[str] = (), move_cost: int | None = None,
    ) -> None:  # fmt: skip
        numbers: Counter[str] = Counter()
        rows = []
        for p in partitions:
            rows.append({**p, "partition": numbers[p["topic"]]})
            numbers[p["topic"]] += 1
        self.document: Document = {
            "version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
            "brokers": [{"id": b} if isinstance(b, int) else dict(b) for b in brokers], "partitions": rows,
        }  # fmt: skip
        self.goals: Document = {
            "version": 1, "goals": [dict(g) for g in goals],
            "constraints": {"exclude_topics": list(exclude_topics), "freeze_topics": list(freeze_topics)},
        }  # fmt: skip
        self.snapshot = build_snapshot(self.document)
        self.parsed = parse_goals(json.dumps(self.goals), "goals.yaml")
        self.compiled = compile_problem(self.snapshot, self.parsed, PlanOptions(move_cost=move_cost))
        self.state = build_state(self.compiled.problem, self.compiled.replicas, self.compiled.lead)
        self.names = [g.name for g in self.compiled.goals]
        self.oracle = Cluster(self.document, constraints_of(self.goals), {})
        self.oracle_judge = Judge(self.oracle, goals_of(self.goals))

    @property
    def ids(self) -> list[int]:
        return [int(b) for b in self.snapshot.broker_ids]

    def key(self, row: int) -> Key:
        topic = self.snapshot.topics[int(self.snapshot.partition_topic[row])]
        return topic, int(self.snapshot.partition_number[row])

    def slots(self, row: int) -> list[int]:
        """Brokers of a partition, slot by slot."""
        return [self.ids[b] for b in self.state.replicas[row] if b >= 0]

    def leader(self, row: int) -> int | None:
        lead = int(self.state.lead[row])
        return None if lead < 0 else self.slots(row)[lead]

    def arrays(self, changes: Sequence[Change]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Changes in the form of the kernels: int64 [8] partitions, [8, R] broker rows, [8] leader slots."""
        partitions, leads = np.zeros(MAX_CHANGES, np.int64), np.zeros(MAX_CHANGES, np.int64)
        replicas = np.zeros((MAX_CHANGES, self.state.replicas.shape[1]), np.int64)
        for i, (row, brokers, leader) in enumerate(changes):
            partitions[i] = row
            replicas[i] = -1
            replicas[i, : len(brokers)] = [self.ids.index(b) for b in brokers]
            leads[i] = -1 if leader is None else brokers.index(leader)
        return partitions, replicas, leads

    def moved_to(self, replicas: np.ndarray) -> State:
        """A state that stood where the cluster does, with replicas moved to `replicas` int64 [P, R] (broker rows) since."""
        problem, lead = self.compiled.problem, self.state.lead
        state = build_state(problem, self.state.replicas.copy(), lead)
        follow(problem, state, build_state(problem, replicas, lead), np.arange(len(replicas)))
        return state

    def judge(self, *changes: Change) -> Judged:
        """What the planner says."""
        problem, state = self.compiled.problem, self.state
        kept = {name: array.copy() for name, array in state._asdict().items() if name not in SCRATCH}
        state.action[:] = np.nan
        verdict = judge(problem, state, propose_all(state, *(column[: len(changes)] for column in self.arrays(changes))))
        scores = state.action.copy()
        for name, array in kept.items():
            assert np.array_equal(array, getattr(state, name)), f"{name} is not what it was"
        touched = [int(b) for b in state.touched[: verdict.touched]]
        assert len(set(touched)) == len(touched)
        judged = {
            g: [(t, b) for t, b in enumerate(touched) if self.oracle_judge.judged(goal, self.ids[b])]
            for g, goal in enumerate(self.oracle_judge.goals)
        }
        repairs = {name for bit, name in STATES.items() if verdict.repairs >> bit & 1}
        for g, name in enumerate(self.names):
            kind, hard = problem.goal[g, tables.KIND], problem.goal[g, tables.HARD] == 1
            rows = [(t, b) for t, b in enumerate(touched) if problem.broker[b, tables.STATE] == 0]
            before, after = (np.array(x) for x in ([state.score[b, g] for _, b in rows], [state.fresh[t, g] for t, _ in rows]))
            if kind == tables.LIMIT:
                before, after = 1.0 - 1.0 / before, 1.0 - 1.0 / after
            raised = verdict.repairs >> (REPAIRS_RACKS if kind == tables.RACK else REPAIRS_SCORES) & 1
            if hard and raised and (kind == tables.RACK or (after > before + RISE).any()):
                repairs.add(name)
        return Judged(
            score=verdict.score,
            goals=dict(zip(self.names, scores.tolist(), strict=True)),
            before={self.names[g]: {self.ids[b]: state.score[b, g] for _, b in rows} for g, rows in judged.items()},
            after={self.names[g]: {self.ids[b]: state.fresh[t, g] for t, b in rows} for g, rows in judged.items()},
            repairs=repairs,
            allowed=bool(verdict.allowed),
            breaks=int(verdict.breaks),
            better=bool(verdict.better),
            gain=float(verdict.gain),
            touches_low=bool(verdict.touches_low),
        )

    def expected(self, *changes: Change) -> Judged:
        """What the oracle says."""
        cluster, judge = self.oracle, self.oracle_judge
        keys = [self.key(row) for row, _, _ in changes]
        was = {key: (list(cluster.replicas[key]), cluster.leader[key]) for key in keys}
        touched, repairs = set[int](), set[str]()
        for key, (_, brokers, leader) in zip(keys, changes, strict=True):
            touched |= set(cluster.replicas[key]) ^ set(brokers)
            left = set(cluster.replicas[key]) - set(brokers)
            if leader != cluster.leader[key]:
                touched |= {b for b in (leader, cluster.leader[key]) if b is not None}
                left |= {b for b in (cluster.leader[key],) if b is not None}
                repairs |= {"leaderless"} if cluster.leader[key] is None else set()
            repairs |= {cluster.brokers[b].state for b in left} & {"dead", "draining"}
        judged = {g["name"]: [b for b in sorted(touched) if judge.judged(g, b)] for g in judge.goals}
        limits = [g for g in judge.goals if g["kind"] in ("capacity", "count_limit")]
        before = {g["name"]: {b: judge.score(g, b) for b in judged[g["name"]]} for g in judge.goals}
        excess = {(g["name"], b): judge.excess(g, b) for g in limits for b in judged[g["name"]]}
        racks = [judge.rack_excess(key) for key in keys]
        cost = self.potential()
        for key, (_, brokers, leader) in zip(keys, changes, strict=True):
            cluster.change(key, brokers, leader)
        after = {g["name"]: {b: judge.score(g, b) for b in judged[g["name"]]} for g in judge.goals}
        scores = {g["name"]: judge.action_score(g, before[g["name"]], after[g["name"]]) for g in judge.goals}
        rises: list[float] = []
        breaks = 0
        for goal in judge.goals:
            name = goal["name"]
            falls: list[float]
            if goal["kind"] == "rack_aware":
                falls = [judge.rack_excess(key) - old for key, old in zip(keys, racks, strict=True)]
            elif goal in limits:
                falls = [(judge.excess(goal, b) - excess[name, b]) for b in judged[name]]
            else:
                falls = [before[name][b] - after[name][b] for b in judged[name]]
            if goal["hard"]:
                breaks += sum(fall > TOLERANCE for fall in falls) if goal["kind"] != "rack_aware" else 0
                rises += [fall for fall in falls if fall > TOLERANCE]
                worth = sum(falls) if goal["kind"] == "rack_aware" else min(falls, default=0.0)
                repairs |= {name} if worth < -TOLERANCE else set()
        gain = cost - self.potential()
        for key, (replicas, leader) in was.items():
            cluster.change(key, replicas, leader)
        score, groups = judge.combined(scores)
        return Judged(
            score=score, goals=scores, before=before, after=after, repairs=repairs, allowed=not rises,
            breaks=breaks, better=combined_rule(groups), gain=gain,
            touches_low=any(s < 1.0 for of_goal in before.values() for s in of_goal.values()),
        )  # fmt: skip

    def tighter(self, g: int) -> list[float]:
        """Weights of soft goals on the load of hard limit `g` that end at it or below on all active brokers."""
        goals, rows = self.oracle_judge.goals, [self.ids.index(b) for b in self.oracle.active]
        table = self.compiled.problem.table
        return [
            goal["weight"] for at, goal in enumerate(goals)
            if goal["kind"] in ("usage_distribution", "capacity", "count_limit") and not goal["hard"]
            and goal["resource"] == goals[g]["resource"] and all(table[r, at, tables.HIGH] <= table[r, g, tables.CEILING] for r in rows)
        ]  # fmt: skip

    def potential(self) -> float:
        """The potential of the oracle's cluster as it stands: what `optimizer.problem` says its constants weigh."""
        judge, cost = self.oracle_judge, 0.0
        soft = [goal["weight"] for goal in judge.goals if not goal["hard"]]
        mean = sum(soft) / len(soft) if soft else 1.0
        for g, goal in enumerate(judge.goals):
            strength = tables.HARD_WEIGHT if goal["hard"] else goal["weight"] / mean
            if goal["hard"] and goal["kind"] in ("capacity", "count_limit"):
                strength = max((weight / mean for weight in self.tighter(g)), default=strength)
            if goal["kind"] == "rack_aware":
                strength = strength if goal["hard"] else 1.0
                cost += strength * tables.UNIT_WEIGHT * sum(map(judge.rack_excess, self.oracle.replicas))
                continue
            for b in self.oracle.active:
                if goal["kind"] == "topic_distribution":
                    cost += self.compiled.problem.force[g, tables.STRENGTH] * judge.misplaced_of_topics(goal, b)
                    continue
                load = self.oracle.load(b, goal["resource"])
                row = self.compiled.problem.table[self.ids.index(b), g]
                out = max(load - row[tables.HIGH], row[tables.LOW] - load, 0.0) * row[tables.SCALE]
                cost += strength * (out**2 + tables.STEEP * out**4)
                if goal["kind"] == "usage_distribution":
                    cost += tables.CENTERING * strength * ((load - row[tables.MEAN]) * row[tables.SCALE]) ** 2
        return float(cost)

    def moves(self) -> Iterator[Change]:
        """Every move of one replica to another active broker, with and without its leadership, and every change of leader."""
        active = [b["id"] for b in self.document["brokers"] if b.get("state", "active") == "active"]
        for row in range(self.snapshot.partition_count):
            brokers, leader = self.slots(row), self.leader(row)
            for b in brokers:
                if b in active and b != leader:
                    yield row, brokers, b
            for s, old in enumerate(brokers):
                for b in active:
                    if b not in brokers:
                        moved = [*brokers[:s], b, *brokers[s + 1 :]]
                        yield row, moved, b if leader == old else leader
                        if leader != old:
                            yield row, moved, b

    def pairs(self, every: int) -> Iterator[tuple[Change, Change]]:
        """Each `every`-th pair of moves of different partitions."""
        pairs = [(a, b) for a, b in combinations(self.moves(), 2) if a[0] != b[0]]
        yield from pairs[::every]

    def follow(self, *changes: Change) -> None:
        """Make the changes in the oracle's cluster too, after the state has gone there."""
        for row, replicas, leader in changes:
            self.oracle.change(self.key(row), replicas, leader)
