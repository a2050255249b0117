"""Scores of brokers and actions, and what is acceptable, word for word from docs/contract.md, section 7.

Literal readings where the contract leaves room:

- ``replicas in over-full racks``: every replica of a partition counts towards its rack's number, those on
  dead, draining and excluded brokers too; a broker's units are its replicas in racks that hold more than
  allowed.
- "No rack is null" (per-rack mean) speaks of every broker of the snapshot, in whatever state.
- The count of a topic in `topic_distribution` follows the rule for totals: leaderless partitions count a
  leader where one is possible, and what excluded brokers hold is taken off.
- floor and ceil of that goal are taken of products with the common tolerance of 1e-9 (so 50 x 1.1 ends at 55).
- Racks that count have an active or an excluded broker. An action that lowers the number of racks of a partition takes a replica of
  that partition off a dead or draining broker (the contract allows any repair).
- A goal is skipped when no broker is active, when nothing in the snapshot reports its resource, a `capacity` goal also when no broker
  has that capacity.
- Where all capacities of a rack are 0, its brokers share equally.
- With broker sets a mean is taken over the active brokers of a set, of what its movable partitions cost, and what those that do not move,
  of whatever set, have on its brokers (a leader that they could get counts as their first replica). Racks are those of the set; a rack
  forces each share where each movable partition of the set has a replica in each of them.
- The fewest of a topic in `topic_minimum` are asked of every active broker that may host the topic.
- Hard excess is looked at on eligible brokers; a hard distribution score on touched eligible brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from math import ceil, floor, fsum, inf, log
from typing import Any

from tests.oracle.cluster import Cluster, Key

Goal = dict[str, Any]
TOLERANCE = 1e-9


def distribution_score(load: float, mean: float, goal: Goal) -> float:
    """The curve of a `usage_distribution` goal at one load."""
    if mean <= 0 or (load < goal["min_load"] and mean < goal["min_load"]):
        return 1.0
    away = abs(mean - load)
    near: float = goal["bound"] * mean
    far: float = goal["var"] * mean if goal["var_is_share"] else near + goal["var"]
    if away <= near:
        return 1.0
    if away <= far:
        return 1.0 - 0.9 * (away - near) / (far - near)
    absolute = goal["tail"] == "absolute" and far > 1.0
    tail: float = log(far) / log(away) if absolute else log(far / near) / log(away / near)
    return 0.1 * tail


def limit_score(load: float, limit: float) -> float:
    """The curve of `capacity` and `count_limit`."""
    if load <= limit:
        return 1.0
    return 1.0 / (1.0 + (load - limit) / limit) if limit > 0 else 1.0 / (1.0 + load - limit)


class Judge:
    """Means fixed at the start, scores of the cluster as it stands."""

    def __init__(self, cluster: Cluster, goals: list[Goal]) -> None:
        self.cluster = cluster
        self.goals = [g for g in goals if self.counts(g)]
        self.skipped = [g for g in goals if not self.counts(g)]
        within = [b for b, broker in cluster.brokers.items() if broker.state in ("active", "excluded")]
        self.within = within
        self.racks = len({cluster.rack_of(b) for b in within})
        self.total: dict[str, float] = {}
        self.means: dict[str, dict[int, float]] = {}
        self.topic_bands: dict[str, dict[str, dict[int, tuple[float, float]]]] = {}
        for goal in self.goals:
            if goal["kind"] == "usage_distribution":
                self.total[goal["name"]] = self.total_of(goal["resource"], cluster.partitions)
                self.means[goal["name"]] = self.means_of(goal["resource"])
            elif goal["kind"] in ("topic_distribution", "topic_minimum"):
                self.topic_bands[goal["name"]] = {
                    topic: self.topic_band(goal, topic)
                    for topic in sorted({t for t, _ in cluster.partitions})
                }

    def counts(self, goal: Goal) -> bool:
        """Whether the snapshot says enough to judge the goal, and has a broker to be judged."""
        if not self.cluster.active:
            return False
        if goal["kind"] == "rack_aware":
            return True
        if goal["kind"] == "capacity" and not any(
            goal["resource"] in b.capacity for b in self.cluster.brokers.values()
        ):
            return False
        return self.cluster.is_reported(goal["resource"])

    # Means

    def total_of(self, resource: str, keys: Iterable[Key]) -> float:
        """What the partitions cost in all, without what excluded brokers carry."""
        c = self.cluster
        terms = []
        for key in keys:
            leading, following = c.as_leader(key, resource), c.as_follower(key, resource)
            others = c.factor[key] - 1
            usable = any(c.brokers[b].state in ("active", "draining") for b in c.replicas[key])
            terms += [following if c.leader[key] is None and not usable else leading] + [following] * others
            terms += [-c.cost(key, b, resource) for b in c.replicas[key] if c.brokers[b].state == "excluded"]
        return fsum(terms)

    def shared(self, total: float, resource: str, among: list[int]) -> dict[int, float]:
        """Each broker's part of a total: by capacity where all eligible brokers have one and they differ."""
        c = self.cluster
        capacity = [c.brokers[b].capacity.get(resource) for b in c.active]
        known = [x for x in capacity if x is not None]
        if len(known) == len(capacity) and len(set(known)) > 1:
            mine = {b: c.brokers[b].capacity[resource] for b in among}
            whole = fsum(mine.values())
            if whole > 0:
                return {b: total * x / whole for b, x in mine.items()}
        return {b: total / len(among) for b in among}

    def rack_forces(self, resource: str, keys: list[Key], among: list[int]) -> bool:
        """Whether the rack rule leaves no choice of how much each rack of the brokers `among` carries."""
        c = self.cluster
        racks = len({c.rack_of(b) for b in among})
        return bool(keys) and (
            any(g["kind"] == "rack_aware" and g["hard"] for g in self.goals)
            and all(b.rack is not None for b in c.brokers.values())
            and all(c.factor[k] == racks for k in keys)
            and all(c.as_leader(k, resource) == c.as_follower(k, resource) for k in keys)
        )

    def means_of(self, resource: str) -> dict[int, float]:
        c = self.cluster
        means: dict[int, float] = {}
        for members in c.sets:
            keys = list(c.partitions)
            if len(c.sets) > 1:
                keys = [k for k, p in c.partitions.items() if p.movable and not c.is_offline(k) and p.home == members]
            means |= self.means_in(resource, members, keys)
        return means

    def means_in(self, resource: str, members: frozenset[int], keys: list[Key]) -> dict[int, float]:
        """Means of the active ones among the brokers of a set, which share partitions `keys`."""
        c = self.cluster
        among = [b for b in c.active if b in members]
        if not among:
            return {}
        stays = {b: self.staying(resource, b) for b in members if c.brokers[b].state != "excluded"}
        if not self.rack_forces(resource, keys, among):
            return self.shared(fsum([self.total_of(resource, keys), *stays.values()]), resource, among)
        one_of_each = [c.as_leader(key, resource) for key in keys]
        means: dict[int, float] = {}
        for rack in {c.rack_of(b) for b in among}:
            frozen = [b for b in c.brokers if c.rack_of(b) == rack and c.brokers[b].state == "excluded"]
            away = [-c.cost(key, b, resource) for b in frozen for key in c.hosted[b] if key in set(keys)]
            there = [load for b, load in stays.items() if c.rack_of(b) == rack]
            means |= self.shared(fsum(one_of_each + away + there), resource, [b for b in among if c.rack_of(b) == rack])
        return means

    def staying(self, resource: str, broker: int) -> float:
        """With broker sets, what a broker carries of partitions that do not move. Of one that is to have fewer replicas those count that
        would stay if nothing else mattered: the leader's, those on excluded brokers, then the first ones."""
        c = self.cluster
        if len(c.sets) == 1:
            return 0.0
        found = []
        for key in c.hosted[broker]:
            kept = sorted(c.replicas[key], key=lambda b: (b != c.leader[key], c.brokers[b].state != "excluded"))[: c.factor[key]]
            if (not c.partitions[key].movable or c.is_offline(key)) and broker in kept:
                usable = any(c.brokers[b].state in ("active", "draining") for b in c.replicas[key])
                leads = c.leader[key] == broker or (c.leader[key] is None and usable and c.replicas[key][0] == broker)
                found.append(c.as_leader(key, resource) if leads else c.as_follower(key, resource))
        return fsum(found)

    def topic_band(self, goal: Goal, topic: str) -> dict[int, tuple[float, float]]:
        resource = goal["resource"]
        keys = [key for key in self.cluster.partitions if key[0] == topic]
        total = self.total_of(resource, keys)
        among = [b for b in self.cluster.active if self.cluster.may_host(keys[0], b)]
        bands: dict[int, tuple[float, float]] = {}
        if goal["kind"] == "topic_minimum":
            asked = total > 0 and any(fnmatchcase(topic, glob) for glob in goal["topics"])
            for broker in self.cluster.active:
                fewest = (goal.get("min") or floor(total / len(among))) if asked and broker in among else 0
                bands[broker] = (fewest, inf)
            return bands
        bound, gap = goal["bound"], goal["min_gap"]
        means = dict.fromkeys(self.cluster.active, 0.0) | (self.shared(total, resource, among) if among else {})
        for broker, mean in means.items():
            lows = [floor(x * (1 + TOLERANCE)) for x in (mean * (1 - bound), mean)]
            highs = [ceil(x * (1 - TOLERANCE)) for x in (mean * (1 + bound), mean)]
            bands[broker] = (min(lows[0], lows[1] - gap), max(highs[0], highs[1] + gap))
        return bands

    # Brokers

    def ceiling(self, goal: Goal, broker: int) -> float | None:
        """The most a broker may carry under a `capacity` or `count_limit` goal; None where it is left out."""
        if goal["kind"] == "count_limit":
            return float(goal["max"])
        capacity = self.cluster.brokers[broker].capacity.get(goal["resource"])
        return None if capacity is None else goal["limit"] * capacity

    def judged(self, goal: Goal, broker: int) -> bool:
        """Whether the goal has anything to say about the broker."""
        if self.cluster.brokers[broker].state != "active":
            return False
        return goal["kind"] != "capacity" or self.ceiling(goal, broker) is not None

    def judged_brokers(self, goal: Goal) -> list[int]:
        return [b for b in self.cluster.active if self.judged(goal, b)]

    def score(self, goal: Goal, broker: int) -> float:
        c = self.cluster
        match goal["kind"]:
            case "usage_distribution":
                load = c.load(broker, goal["resource"])
                return distribution_score(load, self.means[goal["name"]][broker], goal)
            case "topic_distribution" | "topic_minimum":
                return 1.0 / (1.0 + self.misplaced_of_topics(goal, broker))
            case "rack_aware":
                return 1.0 / (1.0 + sum(self.in_overfull_rack(key, broker) for key in c.hosted[broker]))
            case _:
                ceiling = self.ceiling(goal, broker)
                assert ceiling is not None
                return limit_score(c.load(broker, goal["resource"]), ceiling)

    def excess(self, goal: Goal, broker: int) -> float:
        """By how much a broker is over its limit, in the resource's unit."""
        ceiling = self.ceiling(goal, broker)
        assert ceiling is not None
        return max(0.0, self.cluster.load(broker, goal["resource"]) - ceiling)

    def misplaced_of_topics(self, goal: Goal, broker: int) -> float:
        counts: dict[str, int] = {}
        for key in self.cluster.hosted[broker]:
            counts[key[0]] = counts.get(key[0], 0) + int(self.cluster.cost(key, broker, goal["resource"]))
        units = 0.0
        for topic, band in self.topic_bands[goal["name"]].items():
            low, high = band[broker]
            count = counts.get(topic, 0)
            units += max(0, low - count, count - high)
        return units

    # Racks

    def rack_counts(self, key: Key) -> dict[object, int]:
        counts: dict[object, int] = {}
        for b in self.cluster.replicas[key]:
            rack = self.cluster.rack_of(b)
            counts[rack] = counts.get(rack, 0) + 1
        return counts

    def allowed_in_rack(self, key: Key) -> int:
        if self.cluster.partitions[key].home is None:
            return ceil(self.cluster.factor[key] / self.racks) if self.racks else 0
        racks = len({self.cluster.rack_of(b) for b in self.within if self.cluster.may_host(key, b)})
        return ceil(self.cluster.factor[key] / max(racks, 1))

    def in_overfull_rack(self, key: Key, broker: int) -> bool:
        return self.rack_counts(key)[self.cluster.rack_of(broker)] > self.allowed_in_rack(key)

    def rack_excess(self, key: Key) -> int:
        allowed = self.allowed_in_rack(key)
        return sum(max(0, n - allowed) for n in self.rack_counts(key).values())

    # Actions

    def goal_mean_is_zero(self, goal: Goal) -> bool:
        return goal["kind"] == "usage_distribution" and self.total[goal["name"]] <= 0.0

    def action_score(self, goal: Goal, before: Mapping[int, float], after: Mapping[int, float]) -> float:
        if not before or self.goal_mean_is_zero(goal):
            return 0.5
        return (min(after.values()) - min(before.values()) + 1) / 2

    def combined(self, scores: Mapping[str, float]) -> tuple[float, list[float]]:
        """The action's score, and the weighted mean of each group, over the soft goals."""
        soft = [g for g in self.goals if not g["hard"] and g["weight"] > 0]
        groups = []
        for group in sorted({g["group"] for g in soft}, key=str):
            groups.append(weighted([g for g in soft if g["group"] == group], scores))
        return weighted(soft, scores), groups


def weighted(goals: list[Goal], scores: Mapping[str, float]) -> float:
    if not goals:
        return 0.5
    return fsum(g["weight"] * scores[g["name"]] for g in goals) / fsum(g["weight"] for g in goals)


def combined_rule(groups: list[float], slack: float = 0.0) -> bool:
    """Above one half; where there are several groups, none below it and one above."""
    if not groups:
        return False
    return min(groups) >= 0.5 - TOLERANCE - slack and max(groups) > 0.5 + TOLERANCE - slack
