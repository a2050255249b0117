"""Cruise Control's configuration as a goals file of ours: goals, thresholds and capacities, and what has no counterpart.

Called by `trimtab goals import`. Pure text in, text out. Source: Cruise Control's goal catalogue and its configuration names. Balance
thresholds p become bounds of (p - 1) x 0.9, since it aims at nine tenths of what it allows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cluster_model.errors import InputError, Problem
from cluster_model.json_source import json_document
from cluster_model.properties import properties_in
from goals.cruise_control_sets import GOAL as SETS
from goals.cruise_control_sets import GivenSet, set_lines

KEY = re.compile(r"[A-Za-z][\w.-]*")
MARGIN = 0.9
LINEAR = 0.5  # from bound to var by default, in means
KILO, MEGA = 1024.0, 1024.0 * 1024.0
DEFAULT_GOALS = (
    "RackAwareGoal", "MinTopicLeadersPerBrokerGoal", "ReplicaCapacityGoal", "DiskCapacityGoal", "NetworkInboundCapacityGoal",
    "NetworkOutboundCapacityGoal", "CpuCapacityGoal", "ReplicaDistributionGoal", "PotentialNwOutGoal", "DiskUsageDistributionGoal",
    "NetworkInboundUsageDistributionGoal", "NetworkOutboundUsageDistributionGoal", "CpuUsageDistributionGoal",
    "TopicReplicaDistributionGoal", "LeaderReplicaDistributionGoal", "LeaderBytesInDistributionGoal",
)  # fmt: skip
HARD_GOALS = (*DEFAULT_GOALS[:7], "RackAwareDistributionGoal")
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
    "RackAwareGoal": "Trimtab accepts fewer racks than replicas; each rack takes at most RF / racks, rounded up",
    "RackAwareDistributionGoal": "each rack takes at most RF / racks, rounded up; Trimtab accepts 2, 2, 0 of four replicas",
    "TopicReplicaDistributionGoal": "the largest gap (topic.replica.count.balance.max.gap) is not known to Trimtab",
    "PreferredLeaderElectionGoal": "plans put the leader first in the list, and the service restores preferred leaders (policy.wait.elect)",
    "KafkaAssignerEvenRackAwareGoal": "the position of replicas in lists is not balanced; leaders are",
    "KafkaAssignerDiskUsageDistributionGoal": "disk is balanced by moves and swaps (usage_distribution on disk)",
}
FEWEST = "MinTopicLeadersPerBrokerGoal"
DIRECTORIES = {"IntraBrokerDiskCapacityGoal": "limit", "IntraBrokerDiskUsageDistributionGoal": "bound"}  # keys of policy.directories
KNOWN = {*CAPACITY, *BALANCE, *RACKS, *WITHOUT, *DIRECTORIES, "ReplicaCapacityGoal", FEWEST, SETS}
LOW = {
    "cpu": "cpu", "disk": "disk", "network_in": "network.inbound", "network_out": "network.outbound",
    "leader_network_in": "network.inbound",
}  # fmt: skip
EXCLUDED, LEADERS = "topics.excluded.from.partition.movement", "topics.with.min.leaders.per.broker"
SLOW = "slow.broker."
ELSEWHERE = {  # settings beside the goals' own
    "goal.violation.distribution.threshold.multiplier": "give the detector its own range, policy.detector: {kind: goal_band, deviation: N}",
    "rack.aware.goal.rack.id.mapper.class": "racks are those that brokers have (broker.rack)",
}
UNITS = {"DISK": ("disk", MEGA), "NW_IN": ("network_in", KILO), "NW_OUT": ("network_out", KILO), "CPU": ("cpu", 1.0)}


def _strange(given: Mapping[str, str]) -> list[Problem]:
    """Why this is no properties file: nothing would be read of it, and Cruise Control's defaults be taken for its values."""
    strange = next((key for key in given if KEY.fullmatch(key) is None), None)
    found = "none" if not given else f"a line that starts with {strange[:20]!r}" if strange is not None else ""
    return [Problem("", f"expected lines KEY=VALUE of a cruisecontrol.properties, found {found}")] if found else []


def goals_file(
    properties: str, name: str, least: Mapping[str, float] | None = None, sets: Sequence[GivenSet] | None = None
) -> tuple[str, list[str]]:
    """The text of a goals file, and what has no counterpart. `least` is the smallest capacity of a broker by resource, where it is known:
    utilizations below which Cruise Control balances nothing become amounts by it. `sets` are its broker sets, where they are known.

    Raises
    ------
    InputError
        A number that is none, or an unknown goal; all problems at once.
    ConfigurationError
        A broken escape.
    """
    given = properties_in(properties, name)
    problems = _strange(given)
    if problems:
        raise InputError(name, problems)

    def number(key: str, default: float, least: float) -> float:
        try:
            value = float(given.get(key, default))
        except ValueError:
            value = float("nan")
        if not least <= value < float("inf"):
            wanted = f"above {least:.0f}" if least % 1.0 else f"of at least {least:g}"
            problems.append(Problem(key, f"expected a number {wanted}, found {given.get(key)!r}; correct it"))
            return default
        return value

    hard = set(_classes(given.get("hard.goals")) or HARD_GOALS)
    listed_there = _classes(given.get("default.goals") or given.get("goals"))
    listed = listed_there or list(DEFAULT_GOALS)
    lines, without = list[str](), list[str]()
    problems += [
        Problem("hard.goals", f"unknown goal {goal!r}; correct it, or drop it from the list")
        for goal in sorted(hard - KNOWN)
    ]
    if given.get("hard.goals"):
        lost = (hard & KNOWN).difference(listed, _classes(given.get("intra.broker.goals")))
        without += [f"hard.goals: {goal} is not among the goals, so it is left out" for goal in sorted(lost)]
    without += [f"{key}: {advice}" for key, advice in ELSEWHERE.items() if given.get(key)]
    for goal in dict.fromkeys(listed):
        if goal not in KNOWN:
            problems.append(Problem("default.goals", f"unknown goal {goal!r}; drop it from the list, a plug-in has no counterpart"))
            continue
        body = _fewest_leaders(given, number, without) if goal == FEWEST else _body(goal, number)
        if body is not None:
            body += _quiet_below(goal, number, least or {}, without)
            lines.append(f"  - {{{body}, hard: {'true' if goal in hard else 'false'}}}")
        if goal in WITHOUT:
            without.append(f"{goal}: {WITHOUT[goal]}")
    if len(RACKS.intersection(listed)) == len(RACKS):  # both are one goal here: the stricter of the two
        lines.remove(min((line for line in lines if "rack_aware" in line), key=lambda line: "true" in line))
    excluded = given.get(EXCLUDED, "")
    globs = globs_of(excluded)
    if excluded and globs is None:
        without.append(f"{EXCLUDED}: a regular expression ({excluded}); write globs under constraints.exclude_topics")
    of_sets, told_of_sets = set_lines(sets, SETS in listed)
    without += told_of_sets
    policy = _policy(given, listed, number)
    if problems:
        raise InputError(name, problems)
    if not lines:
        raise InputError(name, [Problem("default.goals", "none of the goals has a counterpart; list others")])
    of_itself = [] if listed_there else ["# The file lists no default.goals: these are the goals that Cruise Control has by default."]
    head = ["# Made from Cruise Control's configuration by `trimtab goals import`.", *of_itself, "version: 1", "goals:"]
    bound = [f"  exclude_topics: {json.dumps(globs)}"] if globs else []
    told = bound + of_sets
    more = ["constraints:" if any(not line.lstrip().startswith("#") for line in told) else "# constraints:", *told] if told else []
    more += [f"policy: {{{', '.join(policy)}}}"] if policy else []
    return "\n".join([*head, *lines, *more]) + "\n", without


def globs_of(pattern: str) -> list[str] | None:
    """A regular expression as globs that match the same names; None where it is none that globs can say."""
    if not pattern:
        return []
    found = []
    for part in pattern.strip("^$").removeprefix("(").removesuffix(")").split("|"):
        glob = part.replace(".*", "*").replace("\\.", "\0").replace("\\-", "-")
        if any(c in glob for c in "\\[](){}+?^$.") or not glob:
            return None
        found.append(glob.replace("\0", "."))
    return found


def _quiet_below(goal: str, number: Callable[[str, float, float], float], least: Mapping[str, float], without: list[str]) -> str:
    """`min_load` where a utilization is given below which nothing is balanced."""
    resource = BALANCE[goal][0] if goal in BALANCE else ""
    if resource not in LOW:
        return ""
    key = f"{LOW[resource]}.low.utilization.threshold"
    share, capacity = number(key, 0.0, 0.0), least.get(resource.removeprefix("leader_"))
    if share <= 0.0:
        return ""
    if capacity is None:
        without.append(f"{key}: a share of capacity; give --capacity, or write min_load of {goal}'s counterpart, which is an amount")
        return ""
    amount = share * MARGIN * capacity
    return f", min_load: {amount:.6g}" if resource == "cpu" else f", min_load: {amount:.0f}B{'' if resource == 'disk' else '/s'}"


def _fewest_leaders(given: Mapping[str, str], number: Callable[[str, float, float], float], without: list[str]) -> str | None:
    """The minimum of leaders in our words without its hardness; None where it names no topics, or globs cannot say which."""
    if not given.get(LEADERS):
        return None
    globs = globs_of(given[LEADERS])
    if globs is None:
        advice = "write a goal {kind: topic_minimum, resource: leaders} with globs under topics"
        without.append(f"{LEADERS}: a regular expression ({given[LEADERS]}); {advice}")
        return None
    least = number("min.topic.leaders.per.broker", 1, 0)
    fewest = f", min: {least:.0f}" if least >= 1 else ""  # 0: as many as there are for each
    return f"kind: topic_minimum, resource: leaders, topics: {json.dumps(globs)}{fewest}"


def _policy(given: Mapping[str, str], listed: list[str], number: Callable[[str, float, float], float]) -> list[str]:
    """Keys of `policy`."""
    slow = _slow(given, number)
    found = [] if slow is None else [f"slow_brokers: {{{slow}}}"]
    within = DIRECTORIES.keys() & {*listed, *_classes(given.get("intra.broker.goals"))}
    if within:
        bound = (number("disk.balance.threshold", 1.10, 1.0 + 1e-9) - 1.0) * MARGIN
        values = {"limit": f"{number(CAPACITY['DiskCapacityGoal'][1], CAPACITY['DiskCapacityGoal'][2], 1e-9):g}", "bound": f"{bound:.6g}"}
        keys = ", ".join(f"{key}: {values[key] if goal in within else 'null'}" for goal, key in DIRECTORIES.items())
        found.append(f"directories: {{{keys}}}")
    return found


def _slow(given: Mapping[str, str], number: Callable[[str, float, float], float]) -> str | None:
    """Keys of `slow_brokers`; None where its finder of slow brokers is off, as it is by default."""
    if "SlowBrokerFinder" not in _classes(given.get("metric.anomaly.finder.class")):
        return None
    latency = number(f"{SLOW}log.flush.time.threshold.ms", 1000.0, 1e-9) / 1000.0
    history, peers = (number(f"{SLOW}{key}", 3.0, 1.0 + 1e-9) for key in ("metric.history.margin", "peer.metric.margin"))
    return f"latency: {latency:g}, history: {history:g}, peers: {peers:g}"


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
        bound = (number(key, 1.10, 1.0 + 1e-9) - 1.0) * MARGIN
        var = f", var: {bound + LINEAR:.6g}" if bound > LINEAR else ""  # the default would be too near, or below
        return f"kind: usage_distribution, resource: {resource}, bound: {bound:.6g}{var}"
    if goal == "TopicReplicaDistributionGoal":
        bound = (number("topic.replica.count.balance.threshold", 3.0, 1.0 + 1e-9) - 1.0) * MARGIN
        gap = number("topic.replica.count.balance.min.gap", 2, 0)
        return f"kind: topic_distribution, resource: replicas, bound: {bound:.6g}, min_gap: {gap:.0f}"
    return None


def _classes(value: str | None) -> list[str]:
    return [part.strip().rpartition(".")[2] for part in (value or "").split(",") if part.strip()]


def capacity_file(text: str, name: str) -> tuple[str, list[str], dict[str, float]]:
    """The text of a capacity file (bytes, bytes/s, cores), what has no counterpart, and the smallest capacity of a broker by resource.
    Broker -1 is the default of all others.

    Raises
    ------
    InputError
        Not a capacity file; all problems at once.
    """
    document = json_document(text, name, "give the file that capacity.config.file names")
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
        except (KeyError, TypeError, ValueError):
            found = json.dumps(entry)
            found = found if len(found) <= 60 else f"{found[:60]}…"
            wanted = "expected brokerId and capacity (DISK, CPU, NW_IN, NW_OUT) in numbers"
            problems.append(Problem(place, f"{wanted}, found {found}; correct it"))
    if problems:
        raise InputError(name, problems)
    least = {r: min(of[r] for of in result.values() if r in of) for r in {r for of in result.values() for r in of}}
    lines = [f"default: {json.dumps(result.pop(None, {}))}"]
    if result:
        lines += ["brokers:", *(f"  {broker}: {json.dumps(result[broker])}" for broker in sorted(b for b in result if b is not None))]
    return "\n".join(lines) + "\n", without, least


def _amounts(broker: int, capacity: Mapping[str, Any], without: list[str]) -> dict[str, float]:
    found = {}
    for key, (resource, unit) in UNITS.items():
        if key not in capacity:
            continue
        value = capacity[key]
        if key == "DISK" and isinstance(value, dict):
            told = "their sum; brokers tell the size of each, for `trimtab directories`"
            without.append(f"broker {broker}: {len(value)} log directories count as one disk, {told}")
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
