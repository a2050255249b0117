"""What a plan says of the whole: net proposals, summary, goals and brokers before and after, lower bounds.

Called by `replay` before the first action (`picture`) and after the last (`check`). Literal readings where
the contract leaves room:

- `violations` of a distribution goal are its brokers that score below 1 and `in_band` the share of the
  others; for the other kinds `violations` is 0 exactly when every broker scores 1. `max_deviation` is the
  largest ``|load - mean| / mean``, of brokers with a mean; `cv` the standard deviation (of the whole, not of
  a sample) over the average of ``load / mean``.
- `violates` of a broker are the goals in which it scores below 1 after the plan.
- The net plan, not the way there, keeps the budgets.
- `lower_bounds` may not exceed what a plan used that left no broker outside its target range and none waiting to be
  emptied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import fsum, isclose, sqrt
from typing import Any

from tests.oracle.cluster import Cluster, Key
from tests.oracle.goal_files import DISTRIBUTIONS
from tests.oracle.judge import Goal, Judge

Document = Mapping[str, Any]
PRINTED = 1e-6  # how far a printed number may be from the recomputed one
NET = ("replicas_before", "leader_before", "replicas_after", "leader_after")


def near(printed: object, right: float | None) -> bool:
    """Whether a printed number is the recomputed one, as far as nine digits tell."""
    if right is None or not isinstance(printed, int | float):
        return printed is right
    return isclose(printed, right, rel_tol=PRINTED, abs_tol=PRINTED)


class Outcome:
    """The parts of a plan file that speak of the whole, against the cluster that was replayed."""

    def __init__(self, plan: Document, cluster: Cluster, judge: Judge, goals: list[Goal], options: Document,
                 say: Callable[[str], None]) -> None:  # fmt: skip
        self.plan, self.options, self.say = plan, options, say
        self.cluster, self.judge, self.goals = cluster, judge, goals
        self.start = {k: (list(r), cluster.leader[k]) for k, r in cluster.replicas.items()}
        self.before = self.picture()

    def check(self) -> None:
        after = self.picture()
        self.check_proposals()
        self.check_summary()
        self.check_goals(self.before, after)
        self.check_brokers(self.before, after)
        self.check_lower_bounds(after)

    def check_proposals(self) -> None:
        c = self.cluster
        right = {
            k: {"replicas_before": r, "leader_before": leader,
                "replicas_after": c.replicas[k], "leader_after": c.leader[k]}
            for k, (r, leader) in self.start.items() if (c.replicas[k], c.leader[k]) != (r, leader)
        }  # fmt: skip
        printed: dict[Key, Document] = {}
        for index, p in enumerate(self.plan["proposals"]):
            key = (p["topic"], p["partition"])
            if key in printed:
                self.say(f"proposals[{index}]: {key[0]}-{key[1]} for the second time")
            printed[key] = {
                f: p[f] for f in ("replicas_before", "leader_before", "replicas_after", "leader_after")
            }
        for key in sorted(set(right) | set(printed)):
            if right.get(key) != printed.get(key):
                said, real = printed.get(key), right.get(key)
                self.say(f"proposals {key[0]}-{key[1]}: printed {said}, the actions give {real}")

    def check_summary(self) -> None:
        proposals = self.plan["proposals"]
        right = {
            "actions": len(self.plan["actions"]),
            "replica_moves": sum(
                len(set(p["replicas_after"]) - set(p["replicas_before"])) for p in proposals
            ),
            "leadership_changes": sum(p["leader_before"] != p["leader_after"] for p in proposals),
            "partitions": len(proposals),
            "bytes_to_move": self.cluster.bytes_moved(proposals),
        }
        for field, value in right.items():
            if not near(self.plan["summary"].get(field), value):
                self.say(f"summary.{field}: printed {self.plan['summary'].get(field)}, recomputed {value}")
        for budget, field in (("max_moves", "replica_moves"), ("max_bytes", "bytes_to_move"),
                              ("max_partitions", "partitions")):  # fmt: skip
            limit = self.options.get(budget)
            if limit is not None and right[field] > limit:
                self.say(f"summary.{field}: {right[field]} is over the budget {budget} {limit}")

    def picture(self) -> dict[str, Any]:
        """Scores, goal statistics and loads as they stand."""
        judge, c = self.judge, self.cluster
        scores = {g["name"]: {b: judge.score(g, b) for b in judge.judged_brokers(g)} for g in judge.goals}
        loads = {
            b: {r: c.load(b, r) for r in (*sorted(c.reported), "replicas", "leaders")}
            for b in sorted(c.brokers)
        }
        return {
            "scores": scores,
            "loads": loads,
            "goals": {g["name"]: self.statistics(g, scores[g["name"]]) for g in judge.goals},
        }

    def statistics(self, goal: Goal, scores: Mapping[int, float]) -> dict[str, float | None]:
        below = sum(s < 1 - 1e-9 for s in scores.values())
        result: dict[str, float | None] = {"below": below}
        result["in_band"] = 1 - below / len(scores) if scores else 1.0
        if goal["kind"] != "usage_distribution":
            return result
        means = self.judge.means[goal["name"]]
        relative = [self.cluster.load(b, goal["resource"]) / m for b, m in means.items() if m > 0]
        result["mean"] = self.judge.total[goal["name"]] / len(means) if means else None
        result["max_deviation"] = max((abs(r - 1) for r in relative), default=0.0)
        average = fsum(relative) / len(relative) if relative else 0.0
        spread = sqrt(fsum((r - average) ** 2 for r in relative) / len(relative)) if relative else 0.0
        result["cv"] = spread / average if average > 0 else 0.0
        return result

    def check_goals(self, before: Document, after: Document) -> None:
        printed = self.plan["goals"]
        names = [g["name"] for g in self.goals]
        if [g["name"] for g in printed] != names:
            self.say(f"goals: are {[g['name'] for g in printed]}, the file has {names}")
            return
        skipped = {g["name"] for g in self.judge.skipped}
        for index, (goal, said) in enumerate(zip(self.goals, printed, strict=True)):
            place = f"goals[{index}] {goal['name']}"
            for field in ("kind", "hard"):
                if said[field] != goal[field]:
                    self.say(f"{place}.{field}: is {said[field]!r}, the file says {goal[field]!r}")
            if not goal["hard"] and not near(said["weight"], goal["weight"]):
                self.say(f"{place}.weight: is {said['weight']!r}, the file says {goal['weight']!r}")
            if (said["status"] == "skipped") != (goal["name"] in skipped):
                self.say(f"{place}.status: {said['status']!r}, but skipped is {goal['name'] in skipped}")
            if not said.get("explanation"):
                self.say(f"{place}.explanation: empty")
            if goal["name"] in skipped:
                if not any(goal["name"] in s["what"] for s in self.plan["skipped"]):
                    self.say(f"{place}: skipped, but `skipped` does not say so")
            else:
                for label, picture in (("before", before), ("after", after)):
                    self.check_statistics(
                        f"{place}.{label}", goal, said[label], picture["goals"][goal["name"]]
                    )
                self.check_status(place, goal, said, after["goals"][goal["name"]]["below"])

    def check_statistics(self, place: str, goal: Goal, said: Document, right: Document) -> None:
        if goal["kind"] == "usage_distribution":
            for field in ("mean", "max_deviation", "cv"):
                if not near(said[field], right[field]) and not (right["mean"] == 0 and said[field] is None):
                    self.say(f"{place}.{field}: printed {said[field]}, recomputed {right[field]!r}")
        if goal["kind"] in DISTRIBUTIONS:
            if said["violations"] != right["below"]:
                self.say(
                    f"{place}.violations: printed {said['violations']}, brokers below 1 are {right['below']}"
                )
        elif (said["violations"] == 0) != (right["below"] == 0):
            self.say(
                f"{place}.violations: printed {said['violations']}, brokers below 1 are {right['below']}"
            )
        if not near(said["in_band"], right["in_band"]):
            self.say(f"{place}.in_band: printed {said['in_band']}, recomputed {right['in_band']!r}")

    def check_status(self, place: str, goal: Goal, said: Document, below: int) -> None:
        if below == 0:
            allowed = {"satisfied"}
        elif goal["hard"]:
            allowed = {"violated", "infeasible", "improved", "unchanged"}
        else:
            allowed = {"violated", "improved", "unchanged"}
        if said["status"] not in allowed:
            self.say(f"{place}.status: {said['status']!r} with {below} brokers below 1 after the plan")
        fewer = said["after"]["violations"] < said["before"]["violations"]
        if said["status"] == "unchanged" and fewer:
            self.say(f"{place}.status: unchanged, though violations fell")

    def check_brokers(self, before: Document, after: Document) -> None:
        c = self.cluster
        printed = self.plan["brokers"]
        if [b["id"] for b in printed] != sorted(c.brokers):
            self.say(f"brokers: are {[b['id'] for b in printed]}, the cluster has {sorted(c.brokers)}")
            return
        for said in printed:
            broker, place = said["id"], f"brokers {said['id']}"
            for label, picture in (("before", before), ("after", after)):
                right = picture["loads"][broker]
                missing = [r for r in right if r not in said[label] and right[r] != 0]
                if missing:
                    self.say(f"{place}.{label}: has no {', '.join(missing)}")
                for resource, value in said[label].items():
                    recomputed = right.get(resource, c.load(broker, resource) if label == "after" else None)
                    if recomputed is not None and not near(value, recomputed):
                        self.say(f"{place}.{label}.{resource}: printed {value}, recomputed {recomputed!r}")
            violates = {name for name, scores in after["scores"].items() if scores.get(broker, 1.0) < 1 - 1e-9}
            if set(said["violates"]) != violates:
                self.say(f"{place}.violates: {said['violates']}, scores below 1 are {sorted(violates)}")
            if violates and not said.get("why"):
                self.say(f"{place}.why: empty, though it violates {sorted(violates)}")

    def check_lower_bounds(self, after: Document) -> None:
        c = self.cluster
        unfinished = any(s < 1 - 1e-9 for scores in after["scores"].values() for s in scores.values())
        astray = any(c.is_astray(k, b) for k, replicas in c.replicas.items() for b in replicas)
        waiting = astray or any(c.hosted[b] for b, broker in c.brokers.items() if broker.state in ("dead", "draining"))
        if unfinished or waiting:
            return
        for field in ("replica_moves", "bytes_to_move"):
            bound, used = self.plan["lower_bounds"][field], self.plan["summary"][field]
            if bound > used * (1 + PRINTED) + PRINTED:
                self.say(f"lower_bounds.{field}: {bound}, yet the plan levels everything with {used}")
