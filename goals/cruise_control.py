"""Cruise Control's configuration as a goals file of ours: goals, thresholds and capacities, and what has no counterpart.

Called by `trimtab goals import`. Pure text in, text out. Source: Cruise Control's goal catalogue and its configuration names. Balance
thresholds p become bounds of (p - 1) x 0.9, since it aims at nine tenths of what it allows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cluster_model.errors import InputError, Problem

MARGIN = 0.9
KILO, MEGA = 1024.0, 1024.0 * 1024.0
DEFAULT_GOALS = (
    "RackAwareGoal", "MinTopicLeadersPerBrokerGoal", "ReplicaCapacityGoal", "DiskCapacityGoal", "NetworkInboundCapacityGoal",
    "NetworkOutboundCapacityGoal", "CpuCapacityGoal", "ReplicaDistributionGoal", "PotentialNwOutGoal", "DiskUsageDistributionGoal",
    "NetworkInboundUsageDistributionGoal", "NetworkOutboundUsageDistributionGoal", "CpuUsageDistributionGoal",
    "TopicReplicaDistributionGoal", "LeaderReplicaDistributionGoal", "LeaderBytesInDistributionGoal",
)  # fmt: skip
HARD_GOALS = DEFAULT_GOALS[:7]
CAPACITY = {  # goal -> resource, threshold key, default
    "DiskCapacityGoal": ("disk", "disk.capacity.threshold", 0.8),
    "NetworkInboundCapacityGoal": ("network_in", "network.inbound.capacity.threshold", 0.8),
    "NetworkOutboundCapacityGoal": ("network_out", "network.outbound.capacity.threshold", 0.8),
    "CpuCapacityGoal": ("cpu", "cpu.capacity.threshold", 0.7),
    "PotentialNwOutGoal": ("potential_network_out", "network.outbound.capacity.threshold", 0.8),
}
BALANCE = {  # goal -> resource, threshold key
    "ReplicaDistributionGoal": ("replicas", "replica.count.balance.threshold"),
    "LeaderReplicaDistributionGoal": ("leaders", "leader.replica.count.balance.threshold"),
    "DiskUsageDistributionGoal": ("disk", "disk.balance.threshold"),
    "NetworkInboundUsageDistributionGoal": ("network_in", "network.inbound.balance.threshold"),
    "NetworkOutboundUsageDistributionGoal": ("network_out", "network.outbound.balance.threshold"),
    "CpuUsageDistributionGoal": ("cpu", "cpu.balance.threshold"),
    "LeaderBytesInDistributionGoal": ("leader_network_in", "network.inbound.balance.threshold"),
}
RACKS = {"RackAwareGoal", "RackAwareDistributionGoal"}
WITHOUT = {
    "RackAwareGoal": "with fewer racks than replicas it is not infeasible here; replicas are spread as evenly as racks allow",
    "TopicReplicaDistributionGoal": "the largest gap (topic.replica.count.balance.max.gap) is not known here",
    "BrokerSetAwareGoal": "broker sets are not known here; plan each set by itself with constraints.include_topics",
    "MinTopicLeadersPerBrokerGoal": "leaders of a topic are spread by a topic_distribution goal on leaders, not held at a minimum",
    "PreferredLeaderElectionGoal": "plans put the leader first in the list, so preferred leader election keeps it",
    "KafkaAssignerEvenRackAwareGoal": "the position of replicas in lists is not balanced; leaders are",
    "KafkaAssignerDiskUsageDistributionGoal": "disk is balanced by moves and swaps (usage_distribution on disk)",
    "IntraBrokerDiskCapacityGoal": "log directories of one broker are not balanced here",
    "IntraBrokerDiskUsageDistributionGoal": "log directories of one broker are not balanced here",
}
KNOWN = {*CAPACITY, *BALANCE, *RACKS, *WITHOUT, "ReplicaCapacityGoal"}
UNITS = {"DISK": ("disk", MEGA), "NW_IN": ("network_in", KILO), "NW_OUT": ("network_out", KILO), "CPU": ("cpu", 1.0)}


def read_properties(text: str) -> dict[str, str]:
    """Keys and values of a Java properties file: comments, continued lines, ``=`` or ``:``."""
    lines: list[str] = []
    pending = ""
    for raw in text.splitlines():
        line = pending + raw.strip()
        if not pending and (not line or line[0] in "#!"):
            continue
        if line.endswith("\\"):
            pending = line[:-1]
            continue
        pending = ""
        lines.append(line)
    if pending:
        lines.append(pending)
    result = {}
    for line in lines:
        at = min((i for i in (line.find("="), line.find(":")) if i >= 0), default=len(line))
        result[line[:at].strip()] = line[at + 1 :].strip()
    return result


def goals_file(properties: str, name: str) -> tuple[str, list[str]]:
    """The text of a goals file, and what has no counterpart.

    Raises
    ------
    InputError
        A number that is none, or an unknown goal; all problems at once.
    """
    given = read_properties(properties)
    problems: list[Problem] = []

    def number(key: str, default: float, least: float) -> float:
        try:
            value = float(given.get(key, default))
        except ValueError:
            value = float("nan")
        if not least <= value < float("inf"):
            problems.append(Problem(key, f"expected a number of at least {least:g}, found {given.get(key)!r}; correct it"))
            return default
        return value

    hard = set(_classes(given.get("hard.goals")) or HARD_GOALS)
    listed = _classes(given.get("default.goals") or given.get("goals")) or list(DEFAULT_GOALS)
    lines, without = [], []
    for goal in dict.fromkeys(listed):
        if goal not in KNOWN:
            problems.append(Problem("default.goals", f"unknown goal {goal!r}; drop it from the list, a plug-in has no counterpart"))
            continue
        body = _body(goal, number)
        if body is not None:
            lines.append(f"  - {{{body}, hard: {'true' if goal in hard else 'false'}}}")
        if goal in WITHOUT:
            without.append(f"{goal}: {WITHOUT[goal]}")
    if len(RACKS.intersection(listed)) == len(RACKS):  # both are one goal here: the stricter of the two
        lines.remove(min((line for line in lines if "rack_aware" in line), key=lambda line: "true" in line))
    excluded = given.get("topics.excluded.from.partition.movement", "")
    if excluded:
        key = "topics.excluded.from.partition.movement"
        without.append(f"{key}: a regular expression ({excluded}); write globs under constraints.exclude_topics")
    for key in given:
        if key.endswith(".low.utilization.threshold") and number(key, 0.0, 0.0) > 0.0:
            without.append(f"{key}: a share of capacity; min_load of a usage_distribution goal is an amount, write it yourself")
    if problems:
        raise InputError(name, problems)
    if not lines:
        raise InputError(name, [Problem("default.goals", "none of the goals has a counterpart; list others")])
    head = ["# Made from Cruise Control's configuration by `trimtab goals import`.", "version: 1", "goals:"]
    return "\n".join([*head, *lines]) + "\n", without


def _body(goal: str, number: Callable[[str, float, float], float]) -> str | None:
    """A goal in our words without its hardness; None where it has no counterpart."""
    if goal in RACKS:
        return "kind: rack_aware"
    if goal == "ReplicaCapacityGoal":
        return f"kind: count_limit, resource: replicas, max: {number('max.replicas.per.broker', 10_000, 1):.0f}"
    if goal in CAPACITY:
        resource, key, default = CAPACITY[goal]
        return f"kind: capacity, resource: {resource}, limit: {number(key, default, 1e-9):g}"
    if goal in BALANCE:
        resource, key = BALANCE[goal]
        return f"kind: usage_distribution, resource: {resource}, bound: {(number(key, 1.10, 1.0 + 1e-9) - 1.0) * MARGIN:.6g}"
    if goal == "TopicReplicaDistributionGoal":
        bound = (number("topic.replica.count.balance.threshold", 3.0, 1.0 + 1e-9) - 1.0) * MARGIN
        gap = number("topic.replica.count.balance.min.gap", 2, 0)
        return f"kind: topic_distribution, resource: replicas, bound: {bound:.6g}, min_gap: {gap:.0f}"
    return None


def _classes(value: str | None) -> list[str]:
    return [part.strip().rpartition(".")[2] for part in (value or "").split(",") if part.strip()]


def capacity_file(text: str, name: str) -> tuple[str, list[str]]:
    """The text of a capacity file (bytes, bytes/s, cores), and what has no counterpart. Broker -1 is the default of all others.

    Raises
    ------
    InputError
        Not a capacity file; all problems at once.
    """
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InputError(name, [Problem("", f"expected JSON, found {error}; give the file that capacity.config.file names")]) from None
    listed = document.get("brokerCapacities") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise InputError(name, [Problem("brokerCapacities", "expected a list of brokers, found none; give Cruise Control's capacity file")])
    result: dict[int | None, dict[str, float]] = {}
    problems: list[Problem] = []
    without: list[str] = []
    for i, entry in enumerate(listed):
        place = f"brokerCapacities[{i}]"
        try:
            broker, capacity = int(entry["brokerId"]), entry["capacity"]
            result[None if broker == -1 else broker] = _amounts(broker, capacity, without)
        except (KeyError, TypeError, ValueError) as error:
            problems.append(Problem(place, f"expected brokerId and capacity (DISK, CPU, NW_IN, NW_OUT), found {error!s:.60}; correct it"))
    if problems:
        raise InputError(name, problems)
    lines = [f"default: {json.dumps(result.pop(None, {}))}"]
    if result:
        lines += ["brokers:", *(f"  {broker}: {json.dumps(result[broker])}" for broker in sorted(b for b in result if b is not None))]
    return "\n".join(lines) + "\n", without


def _amounts(broker: int, capacity: Mapping[str, Any], without: list[str]) -> dict[str, float]:
    found = {}
    for key, (resource, unit) in UNITS.items():
        if key not in capacity:
            continue
        value = capacity[key]
        if key == "DISK" and isinstance(value, dict):
            without.append(f"broker {broker}: {len(value)} log directories count as one disk, their sum; single ones are not limited")
            value = sum(float(v) for v in value.values())
        if key == "CPU" and isinstance(value, dict):
            value = value["num.cores"]
        elif key == "CPU":
            without.append(f"broker {broker}: CPU is given in percent ({value}), ours is in cores; write the cores of the broker")
            continue
        amount = float(value) * unit
        if not 0.0 <= amount < float("inf"):
            raise ValueError(f"{key} of {value}")
        found[resource] = amount
        if key == "NW_OUT":
            found["potential_network_out"] = amount  # its goal takes a capacity of that name only
    return found
