"""Replays a plan file from its snapshot and says everything that is not as docs/contract.md, section 7 has it.

Also a script: ``python -m tests.oracle.replay --snapshot S --goals G --plan P``; exits with 1 when it finds
something.

Literal readings where the contract leaves room (others stand in `cluster`, `judge` and `outcome`):

- `repairs` names every repair that the action makes, whether or not its score needs one: a hard goal by its
  name, any other label stands for a replica or leadership taken off a dead or draining broker or a leader for
  a leaderless partition.
- ``no hard excess rises`` has a tolerance of 1e-9 of the limit, floating sums being what they are.
- `goal_scores` has every goal that is not skipped, hard ones too, and in each the touched brokers that it
  judges.
- That every action lowers a potential shows as: no state of the cluster comes twice.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.oracle.cluster import Cluster, Key, changed_document, wanted_factor
from tests.oracle.goal_files import DISTRIBUTIONS, constraints_of, goals_of
from tests.oracle.judge import TOLERANCE, Judge, combined_rule
from tests.oracle.outcome import Outcome, near

Document = Mapping[str, Any]

ROUNDING = 1e-11  # how far sums of floats may carry a score over a threshold
MOST_CHANGES = 8
ENOUGH = 200  # deviations listed before the replay stops


def check(
    snapshot: Document,
    goals: Document,
    plan: Document,
    *,
    acceptance: str = "score",
    options: Document | None = None,
) -> list[str]:
    """Every deviation of a plan document, in words; empty when there is none.

    `goals` is the parsed YAML as it stands in the file. `options` has the budgets and what-ifs under the
    names that `PlanOptions` gives them: ``max_moves``, ``max_bytes``, ``max_partitions``, ``add_brokers``
    (pairs of id and rack), ``remove_brokers``, ``exclude_brokers``, ``exclude_topics``, ``scale_load`` and ``replication_factor`` (pairs
    of glob and factor).
    """
    replay = Replay(snapshot, goals, plan, acceptance, options or {})
    replay.run()
    return replay.deviations


def apply(snapshot: Document, plan: Document, options: Document | None = None) -> dict[str, Any]:
    """The snapshot document with the plan's proposals carried out; imagined brokers become real ones, loads
    stay as given.
    """
    final = {
        (p["topic"], p["partition"]): (p["replicas_after"], p["leader_after"]) for p in plan["proposals"]
    }
    return changed_document(snapshot, final, (options or {}).get("add_brokers") or [])


class Replay:
    """One plan being replayed. `deviations` grows."""

    def __init__(self, snapshot: Document, goals: Document, plan: Document, acceptance: str,
                 options: Document) -> None:  # fmt: skip
        self.plan = plan
        self.acceptance = acceptance
        self.options = options
        self.deviations: list[str] = []
        self.all_goals = goals_of(goals)
        self.cluster = Cluster(snapshot, constraints_of(goals), options)
        if options.get("replication_factor"):
            self.cluster.factor |= {(p["topic"], p["partition"]): len(p["replicas_after"]) for p in plan["proposals"]}
        self.judge = Judge(self.cluster, self.all_goals)
        self.hard_limits = [
            g for g in self.judge.goals if g["hard"] and g["kind"] in ("capacity", "count_limit")
        ]
        self.hard_bands = [g for g in self.judge.goals if g["hard"] and g["kind"] in DISTRIBUTIONS]
        self.hard_racks = [g for g in self.judge.goals if g["hard"] and g["kind"] == "rack_aware"]

    def say(self, text: str) -> None:
        self.deviations.append(text)

    def run(self) -> None:
        self.check_head()
        outcome = Outcome(self.plan, self.cluster, self.judge, self.all_goals, self.options, self.say)
        seen = {self.placement()}
        for index, action in enumerate(self.plan["actions"]):
            where = f"actions[{index}]"
            if action.get("seq") != index + 1:
                self.say(f"{where}.seq: is {action.get('seq')}, the order says {index + 1}")
            if not self.check_structure(where, action):
                self.say(f"{where}: cannot be replayed, stopped here")
                return
            self.check_action(where, action)
            now = self.placement()
            if now in seen:
                self.say(f"{where}: brings back an earlier state of the cluster, so no potential fell")
            seen.add(now)
            if len(self.deviations) > ENOUGH:
                self.say("stopped here")
                return
        outcome.check()

    def placement(self) -> int:
        c = self.cluster
        return hash(tuple((k, tuple(c.replicas[k]), c.leader[k]) for k in c.replicas))

    # The head of the file

    def check_head(self) -> None:
        if self.plan.get("version") != 1:
            self.say(f"version: is {self.plan.get('version')!r}, expected 1")
        digests = {
            "plan_id": self.plan.get("plan_id"),
            "goals_digest": self.plan.get("goals_digest"),
            "snapshot.digest": self.plan.get("snapshot", {}).get("digest"),
        }
        for place, value in digests.items():
            if not str(value).startswith("sha256:"):
                self.say(f"{place}: {value!r} is not a sha256")
        said = self.plan.get("options", {})
        if said.get("acceptance") != self.acceptance:
            self.say(f"options.acceptance: {said.get('acceptance')!r}, asked for was {self.acceptance!r}")
        if "seed" not in said:
            self.say("options.seed: missing")
        for budget in ("max_moves", "max_bytes", "max_partitions"):
            if self.options.get(budget) is not None and said.get(budget) != self.options[budget]:
                self.say(f"options.{budget}: {said.get(budget)!r}, asked for was {self.options[budget]}")
        for place, number in floats("", self.plan):
            if float(f"{number:.9g}") != number:
                self.say(f"{place}: {number!r} has more than 9 significant digits")

    # One action

    def check_structure(self, where: str, action: Document) -> bool:
        """Whether the action can be applied at all; says what is not allowed about it."""
        c = self.cluster
        changes = action["changes"]
        keys = [(ch["topic"], ch["partition"]) for ch in changes]
        if not 1 <= len(changes) <= MOST_CHANGES:
            self.say(f"{where}.changes: {len(changes)} of them, 1 to {MOST_CHANGES} allowed")
        if len(set(keys)) != len(keys):
            self.say(f"{where}.changes: a partition appears twice")
            return False
        for number, (key, change) in enumerate(zip(keys, changes, strict=True)):
            place = f"{where}.changes[{number}] {key[0]}-{key[1]}"
            if key not in c.partitions:
                self.say(f"{place}: no such partition")
                return False
            before, after = change["replicas_before"], change["replicas_after"]
            leader_before, leader_after = change["leader_before"], change["leader_after"]
            if before != c.replicas[key]:
                self.say(f"{place}.replicas_before: {before}, but at its turn it is {c.replicas[key]}")
            if leader_before != c.leader[key]:
                self.say(f"{place}.leader_before: {leader_before}, but at its turn it is {c.leader[key]}")
            if any(b not in c.brokers for b in after):
                self.say(f"{place}.replicas_after: {after} has an unknown broker")
                return False
            self.check_change(place, key, after, leader_after)
        self.check_type(where, action)
        return True

    def check_change(self, place: str, key: Key, after: list[int], leader_after: int | None) -> None:
        c = self.cluster
        before, leader_before = c.replicas[key], c.leader[key]
        if c.partitions[key].frozen:
            self.say(f"{place}: its topic is frozen")
        elif not c.partitions[key].movable and not self.repairs_of_change(before, after, leader_before, leader_after):
            self.say(f"{place}: its topic is excluded, and the change takes nothing off a dead or draining broker and gives no leader")
        if c.is_offline(key):
            self.say(f"{place}: no live replica, it must stay where it is")
        if len(set(after)) != len(after):
            self.say(f"{place}.replicas_after: {after} has a broker twice")
        factor = wanted_factor(key[0], self.options)
        if len(after) != (factor if self.options.get("replication_factor") else len(before)):
            self.say(f"{place}.replicas_after: {len(after)} replicas, before it had {len(before)}, asked for were {factor}")
        if factor is not None and leader_before in after and leader_after != leader_before:
            self.say(f"{place}.leader_after: {leader_after}, though {leader_before} keeps its replica")
        if after == before and leader_after == leader_before:
            self.say(f"{place}: changes nothing")
        for b in set(after) - set(before):
            if c.brokers[b].state != "active":
                self.say(f"{place}.replicas_after: target {b} is {c.brokers[b].state}")
            if not c.may_host(key, b):
                self.say(f"{place}.replicas_after: target {b} is not of the broker set of topic {key[0]}")
        for b in set(before) - set(after):
            if c.brokers[b].state == "excluded":
                self.say(f"{place}.replicas_after: excluded broker {b} loses the replica")
        if leader_after is None:
            if leader_before is not None:
                self.say(f"{place}.leader_after: the leader is lost")
        elif leader_after not in after:
            self.say(f"{place}.leader_after: {leader_after} has no replica")
        if leader_after != leader_before:
            if leader_before is not None and c.brokers[leader_before].state == "excluded":
                self.say(f"{place}.leader_after: excluded broker {leader_before} loses leadership")
            if leader_after is not None and c.brokers[leader_after].state != "active":
                self.say(
                    f"{place}.leader_after: new leader {leader_after} is {c.brokers[leader_after].state}"
                )
            if leader_after is not None and after[0] != leader_after:
                self.say(f"{place}.replicas_after: new leader {leader_after} does not stand first in {after}")

    def check_type(self, where: str, action: Document) -> None:
        added = [set(ch["replicas_after"]) - set(ch["replicas_before"]) for ch in action["changes"]]
        removed = [set(ch["replicas_before"]) - set(ch["replicas_after"]) for ch in action["changes"]]
        fits = {
            "move": len(added) == 1 and len(added[0]) >= 1,
            "leadership": len(added) == 1 and not added[0],
            "swap": len(added) == 2
            and len(added[0]) == 1
            and added[0] == removed[1]
            and removed[0] == added[1],
            "exchange": True,
            "replication": len(added) == 1 and len(added[0]) != len(removed[0]),
        }
        if (action["type"] == "replication") != bool(self.options.get("replication_factor")):
            self.say(f"{where}.type: {action['type']!r}, but replication factors are {self.options.get('replication_factor')}")
        if not fits.get(action["type"], False):
            self.say(f"{where}.type: {action['type']!r} is not what the changes are")

    def check_action(self, where: str, action: Document) -> None:
        """Apply the action and compare everything that it says with what comes out."""
        c, judge = self.cluster, self.judge
        keys = [(ch["topic"], ch["partition"]) for ch in action["changes"]]
        touched = sorted(self.touched(action))
        eligible = [b for b in touched if c.brokers[b].state == "active"]
        judged = {g["name"]: [b for b in eligible if judge.judged(g, b)] for g in judge.goals}
        repairs = self.repairs_of_brokers(action)
        before = {g["name"]: {b: judge.score(g, b) for b in judged[g["name"]]} for g in judge.goals}
        excess_before = {
            (g["name"], b): judge.excess(g, b) for g in self.hard_limits for b in judged[g["name"]]
        }
        racks_before = {key: judge.rack_excess(key) for key in keys}
        distinct_before = {key: len(judge.rack_counts(key)) for key in keys}
        below_one = any(s < 1 - 1e-9 for scores in before.values() for s in scores.values())

        for key, change in zip(keys, action["changes"], strict=True):
            c.change(key, change["replicas_after"], change["leader_after"])

        after = {g["name"]: {b: judge.score(g, b) for b in judged[g["name"]]} for g in judge.goals}
        scores = {g["name"]: judge.action_score(g, before[g["name"]], after[g["name"]]) for g in judge.goals}
        score, groups = judge.combined(scores)
        for goal in self.hard_limits:
            for b in judged[goal["name"]]:
                was, now = excess_before[goal["name"], b], judge.excess(goal, b)
                slack = TOLERANCE * max(1.0, judge.ceiling(goal, b) or 0.0)
                if now > was + slack:
                    self.say(
                        f"{where}: hard {goal['name']} gets worse on broker {b}: excess {was!r} to {now!r}"
                    )
                if now < was - slack:
                    repairs.add(goal["name"])
        for goal in self.hard_bands:
            for b in judged[goal["name"]]:
                was, now = before[goal["name"]][b], after[goal["name"]][b]
                if now < was - TOLERANCE:
                    self.say(
                        f"{where}: hard {goal['name']} gets worse on broker {b}: score {was!r} to {now!r}"
                    )
                if now > was + TOLERANCE:
                    repairs.add(goal["name"])
        for goal in self.hard_racks:
            for key, ch in zip(keys, action["changes"], strict=True):
                was_in, now_in = distinct_before[key], len(judge.rack_counts(key))
                gone = set(ch["replicas_before"]) - set(ch["replicas_after"])
                goes = any(c.brokers[b].state in ("dead", "draining") or not c.may_host(key, b) for b in gone)
                if now_in < min(was_in, len(ch["replicas_after"])) and not goes:
                    self.say(f"{where}: {key[0]}-{key[1]} is in {now_in} racks instead of {was_in}, and no broker that goes forces it")
                was_in, now_in = racks_before[key], judge.rack_excess(key)
                if now_in > was_in:
                    self.say(f"{where}: rack excess of {key[0]}-{key[1]} rises from {was_in} to {now_in}")
                if now_in < was_in:
                    repairs.add(goal["name"])

        accepted = combined_rule(groups, ROUNDING)
        if self.acceptance == "score" and not accepted and not repairs:
            self.say(f"{where}: not acceptable: score {score!r}, groups {groups}, and it repairs nothing")
        if self.acceptance == "potential" and not below_one and not repairs:
            self.say(f"{where}: not acceptable: its brokers score 1 in every goal, and it repairs nothing")
        if not combined_rule(groups, -ROUNDING) and not action["repairs"] and self.acceptance == "score":
            self.say(
                f"{where}.repairs: empty, though score {score!r} (groups {groups}) is not enough without"
            )
        self.check_repairs(where, action["repairs"], repairs)
        if not near(action["score"], score):
            self.say(f"{where}.score: printed {action['score']}, recomputed {score!r}")
        self.check_goal_scores(where, action["goal_scores"], scores, before, after)
        copied = c.bytes_moved(action["changes"])
        if not near(action["bytes_to_move"], copied):
            self.say(f"{where}.bytes_to_move: printed {action['bytes_to_move']}, recomputed {copied!r}")
        if not action.get("reason"):
            self.say(f"{where}.reason: empty")

    def touched(self, action: Document) -> set[int]:
        """Brokers whose set of replicas or leaderships the action changes."""
        brokers: set[int] = set()
        for change in action["changes"]:
            brokers |= set(change["replicas_before"]) ^ set(change["replicas_after"])
            if change["leader_before"] != change["leader_after"]:
                brokers |= {b for b in (change["leader_before"], change["leader_after"]) if b is not None}
        return brokers

    def repairs_of_brokers(self, action: Document) -> set[str]:
        """Repairs that are not of a goal: a broker being emptied, a partition given a leader."""
        found = set()
        for ch in action["changes"]:
            found |= self.repairs_of_change(ch["replicas_before"], ch["replicas_after"], ch["leader_before"], ch["leader_after"])
            gone = set(ch["replicas_before"]) - set(ch["replicas_after"])
            if not all(self.cluster.may_host((ch["topic"], ch["partition"]), b) for b in gone):
                found.add("broker_set")
        return found

    def repairs_of_change(
        self, before: list[int], after: list[int], leader_before: int | None, leader_after: int | None
    ) -> set[str]:
        """As `repairs_of_brokers`, of one change."""
        found, gone = {"replication_factor"} if len(after) != len(before) else set(), set(before) - set(after)
        if leader_before != leader_after:
            if leader_before is None:
                found.add("leaderless partition")
            else:
                gone.add(leader_before)
        return found | {
            f"{self.cluster.brokers[b].state} broker" for b in gone if self.cluster.brokers[b].state in ("dead", "draining")
        }

    def check_repairs(self, where: str, printed: list[str], right: set[str]) -> None:
        named = {g["name"] for g in self.all_goals}
        if set(printed) & named != right & named:
            self.say(f"{where}.repairs: {printed}, but the goals it repairs are {sorted(right & named)}")
        if bool(set(printed) - named) != bool(right - named):
            self.say(
                f"{where}.repairs: {printed}, but the other repairs it makes are {sorted(right - named)}"
            )

    def check_goal_scores(self, where: str, printed: Document, scores: Mapping[str, float],
                          before: Mapping[str, Mapping[int, float]],
                          after: Mapping[str, Mapping[int, float]]) -> None:  # fmt: skip
        if set(printed) != set(scores):
            self.say(f"{where}.goal_scores: has {sorted(printed)}, the goals that count are {sorted(scores)}")
        for name in sorted(set(printed) & set(scores)):
            place = f"{where}.goal_scores.{name}"
            if not near(printed[name]["score"], scores[name]):
                self.say(f"{place}.score: printed {printed[name]['score']}, recomputed {scores[name]!r}")
            for label, right in (("before", before[name]), ("after", after[name])):
                said = {int(b): s for b, s in printed[name][label].items()}
                if set(said) != set(right):
                    self.say(f"{place}.{label}: has brokers {sorted(said)}, touched are {sorted(right)}")
                for b in sorted(set(said) & set(right)):
                    if not near(said[b], right[b]):
                        self.say(f"{place}.{label}.{b}: printed {said[b]}, recomputed {right[b]!r}")


def floats(place: str, value: object) -> Iterable[tuple[str, float]]:
    """Every float of a document with its place."""
    if isinstance(value, float):
        yield place, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from floats(f"{place}.{key}" if place else str(key), inner)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from floats(f"{place}[{index}]", inner)


def read(path: Path) -> Any:
    """A JSON document, packed or not."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def options_of(plan: Document) -> dict[str, Any]:
    """Budgets and what-ifs as the plan file records them, brought to the form of `check`."""
    given = dict(plan.get("options") or {})
    for field in ("add_brokers", "scale_load"):
        given[field] = [
            tuple(x.values()) if isinstance(x, Mapping) else tuple(x) for x in given.get(field) or []
        ]
    given["replication_factor"] = list((given.get("replication_factor") or {}).items())
    return given


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("snapshot", "goals", "plan"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    plan = read(chosen.plan)
    goals = YAML(typ="safe").load(chosen.goals.read_text())
    options = options_of(plan)
    deviations = check(read(chosen.snapshot), goals, plan, acceptance=options["acceptance"], options=options)
    for text in deviations:
        sys.stdout.write(f"{text}\n")
    sys.stderr.write(f"{len(plan['actions'])} actions replayed, {len(deviations)} deviations\n")
    return 1 if deviations else 0


if __name__ == "__main__":
    sys.exit(main())
