"""Runners of the numeric cases of Pulsar's shedders: the preset on a snapshot of the live model, for `test_policy_cases`.

A broker has one core, of which its units use what the case says, in proportion to their traffic; what no unit uses, topic `rest` does,
which the policies leave alone. One plan is one cycle, as Pulsar sheds once at each check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, zip_longest
from types import SimpleNamespace
from typing import Any

import numpy as np

from cluster_model.metadata.events import BrokerRegistered, PartitionChanged, TopicCreated
from cluster_model.model import ClusterModel
from cluster_model.observed import LEADER
from cluster_model.snapshot import Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from goals.policy_presets import POLICY_PRESETS
from optimizer.detectors import Deed, Guards, Memory, detect, may_act, policy_of
from optimizer.options import PlanOptions
from optimizer.plan import Action, Plan
from optimizer.planner import plan
from optimizer.policies.when import When
from tests.unit.cluster_model.batches import NOW, Reports, rows
from trimtab.service.readiness import Readiness
from trimtab.service.standing import after

PULSAR: dict[str, Callable[..., object]] = {}
MIB = 1024.0 * 1024.0
Unit = tuple[str, int]
CHECK, AGED, PAUSE = 60_000, 1_800_000, 180_000  # ms: between checks, until loads are stale, after a plan
TRANSFER = {"b1": (1e6, 2e6), "b2": (1e6, 3e6), "b3": (2e6, 4e6), "b4": (2e6, 6e6), "b5": (2e6, 7e6)}


def runner(function: Callable[..., object]) -> Callable[..., object]:
    PULSAR[function.__name__] = function
    return function


@dataclass
class Host:
    """A broker: share of its core that is used, and bytes/s or requests/s of its units, partitions of the topic `units` from number `first`
    on. `rest` is what else it carries."""

    name: str
    usage: float
    bytes: Sequence[float] = ()
    rates: Sequence[float] = ()
    rest: float = 0.0
    units: str = ""
    first: int = 0

    @property
    def measure(self) -> str:
        return "produce_rate" if self.rates else "network_in"

    @property
    def loads(self) -> dict[Unit, dict[str, float]]:
        """Of each partition, by resource."""
        pairs = zip_longest(self.bytes, self.rates, fillvalue=0.0)
        found = {(self.units or self.name, i): {"network_in": b, "produce_rate": r} for i, (b, r) in enumerate(pairs, self.first)}
        if self.rest or not found:
            found[f"rest-{self.name}", 0] = {"network_in": 0.0, "produce_rate": 0.0} | {self.measure: self.rest}
        traffic = [load["network_in"] or load["produce_rate"] for load in found.values()]
        for load, amount in zip(found.values(), traffic, strict=True):
            load["cpu"] = self.usage * (amount / sum(traffic) if any(traffic) else 1.0 / len(traffic))
        return found


@dataclass
class Cluster:
    """The live model of some brokers, numbered in their order, and names of brokers."""

    model: ClusterModel
    names: dict[int, str]

    def at(self, check: int = 1) -> Snapshot:
        return self.model.snapshot(NOW + CHECK * (check - 1))


def cluster(hosts: Sequence[Host], silent: Sequence[str] = (), age_ms: int = 0) -> Cluster:
    """What brokers reported so long ago; those that are `silent` never did."""
    model, reports, at = ClusterModel("c", storage="shared", stale_after_ms=AGED), Reports(), NOW - age_ms
    given = {"network_in": [h.bytes for h in hosts], "produce_rate": [h.rates for h in hosts]}
    measured = {"cpu", *(r for r, loads in given.items() if any(loads)), *(h.measure for h in hosts if h.rest)}
    names = dict(enumerate([*(h.name for h in hosts), *silent], 1))
    for id in names:
        model.apply(BrokerRegistered(id, None), at)
        model.set_capacity(id, "cpu", 1.0)
    for id, host in enumerate(hosts, 1):
        loads = host.loads
        topics = tuple(dict.fromkeys(topic for topic, _ in loads))
        for topic in topics:
            model.apply(TopicCreated(topic, f"id-{topic}"), at)
        for topic, number in loads:
            model.apply(PartitionChanged(topic, number, (id,), (id,), id), at)
        blocks = [rows(LEADER, r, [(topics.index(t), n, load[r]) for (t, n), load in loads.items()]) for r in sorted(measured)]
        model.ingest(reports.of(id, at, *blocks, topics=topics), at)
    return Cluster(model, names)


def goals_with(preset: str, **parts: Any) -> GoalSet:
    """The preset, one cycle a plan, with other parts; a part replaces keys of the preset's."""
    given = POLICY_PRESETS[preset]
    parts = {"guards": {}, "filters": {}} | parts
    policy = {key: {**given.get(key, {}), **part} for key, part in parts.items()}
    policy["guards"]["cycles"] = 1
    policy["filters"]["exclude"] = ["rest-*"]
    document = {"version": 1, "goals": [{"kind": "usage_distribution", "resource": "cpu"}], "policy": {"preset": preset, **policy}}
    return parse_goals(json.dumps(document), "goals.yaml")


def replayed(snapshot: Snapshot, made: Plan) -> Iterator[tuple[Snapshot, Action]]:
    """Every action with the cluster before it."""
    for action in made.actions:
        yield snapshot, action
        replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
        for change in action.changes:
            row = snapshot.row_of_partition(change.topic, change.partition)
            replicas[row, 0] = leader[row] = snapshot.row_of_broker[change.replicas_after[0]]
        snapshot = snapshot.with_placement(replicas, leader)


def resting(hosts: Sequence[Host], names: Sequence[str] | None) -> PlanOptions:
    """Options of a plan where units, such as ``a12``, were moved lately."""
    known = {f"{topic}{number}": (topic, number) for host in hosts for topic, number in host.loads}
    return PlanOptions(resting=tuple(known[name] for name in names or ()))


def moves_of(before: Snapshot, action: Action) -> list[tuple[str, int, int]]:
    """Unit, from, to; what comes back to the busier broker in a swap first, as Pulsar lists it."""
    use = dict(zip(before.broker_ids.tolist(), before.broker_load("cpu").tolist(), strict=True))
    moves = [(f"{c.topic}{c.partition}", c.replicas_before[0], c.replicas_after[0]) for c in action.changes]
    return sorted(moves, key=lambda m: (use[m[1]] > use[m[2]], m[0]))


def shed(hosts: Sequence[Host], goals: GoalSet, recent: Sequence[str] = ()) -> list[str]:
    """Units that leave, in the order of the plan."""
    made = plan(cluster(hosts).at(), goals, resting(hosts, recent))
    return [f"{change.topic}{change.partition}" for action in made.actions for change in action.changes]


def hosts_of(given: Sequence[dict[str, Any]]) -> tuple[list[Host], list[str]]:
    """Brokers of a case, and units that were moved lately."""
    hosts = [Host(h["name"], h["usage"], [x * MIB for x in h.get("MiB", [])], h.get("rates", [])) for h in given]
    return hosts, [unit for h in given for unit in h.get("recent", [])]


@runner
def overload(hosts: list[Any], limit: float = 0.85) -> object:
    given, recent = hosts_of(hosts)
    parts = {"detector": {"limit": limit}, "amount": {"target": limit}}
    return shed(given, goals_with("pulsar-overload", **parts), recent)


@runner
def threshold(hosts: list[Any], margin: float = 0.10, worth: float = 10.0 * MIB, lower_boundary: bool = False) -> object:
    """`margin` is in points, that of the detector a share of the mean."""
    given, recent = hosts_of(hosts)
    mean = float(np.mean([h.usage for h in given]))
    detector = {"margin": margin / mean if mean else margin, "lower_boundary": lower_boundary}
    return shed(given, goals_with("pulsar-threshold", detector=detector, filters={"min_throughput": worth}), recent)


@runner
def fires_after_a_move(usage: list[float], history: float) -> object:
    """Whether the detector fires before half of what two brokers differ by moves, and at the next check."""
    goals, busy = goals_with("pulsar-threshold", detector={"history_weight": history}), Host("busy", usage[0], [MIB] * 18)
    of = cluster([busy, Host("idle", usage[1])])
    before = detect(goals, of.at(), goals, Memory())
    for number in range(round(18 * (usage[0] - usage[1]) / 2.0 / usage[0])):
        of.model.apply(PartitionChanged("busy", number, (2,), (2,), 2), NOW)
    return [before.fired, detect(goals, of.at(2), goals, before.memory).fired]


@runner
def checks_over_the_line(usage: list[float], later: list[float], margin: float, history: float) -> object:
    """How many more checks find a broker over its line after the traffic changed, without a move. `margin` is in points."""
    detector = {"margin": margin / float(np.mean(usage)), "lower_boundary": False, "history_weight": history}
    goals = goals_with("pulsar-threshold", detector=detector)
    found = detect(goals, cluster([Host(f"h{i}", share) for i, share in enumerate(usage)]).at(), goals, Memory())
    for check in count(2):
        found = detect(goals, cluster([Host(f"h{i}", share) for i, share in enumerate(later)]).at(check), goals, found.memory)
        if not found.fired:
            return check - 2
    raise AssertionError


@runner
def averages(readings: list[list[float]], history: float) -> object:
    """Utilization and traffic of a broker that the transfer shedder's detector remembers, reading after reading."""
    goals, memory, found = goals_with("pulsar-transfer", detector={"history_weight": history}), Memory(), []
    for check, (share, traffic) in enumerate(readings, 1):
        snapshot = cluster([Host("a", share, [traffic]), Host("b", 0.1, [1.0])]).at(check)
        memory = detect(goals, snapshot, goals, memory).memory
        found.append([a.load for a in memory.averages if "/1/" in a.key])
    return found


@runner
def uniform(hosts: list[Any], limits: dict[str, Any] | None = None) -> object:
    """Limits that are not positive are off: so far that nothing reaches them."""
    limits = limits or {}
    given, recent = hosts_of(hosts)
    rate, ratio = (x if x > 0 else 1e300 for x in (limits.get("rate_percent", 50.0), limits.get("ratio", 4.0)))
    filters = {"min_rate": limits.get("least_rate", 1000.0), "min_throughput": limits.get("least_bytes", MIB)}
    goals = goals_with(
        "pulsar-uniform", detector={"rate_pct": rate, "tp_ratio": ratio}, filters=filters,
        amount={"ratio": limits.get("share", 0.2), "slack": limits.get("slack", 1000.0)},
        guards={"moves_per_cycle": limits.get("most")},
    )  # fmt: skip
    return sorted(shed(given, goals, recent))


def transferred(goals: GoalSet, of: Cluster, snapshot: Snapshot, made: Plan) -> Iterator[str]:
    """Unit, from, to and why, in the order of the plan. Why is what Pulsar calls what the detector finds before a pair gives: the spread,
    an idle broker, a busy one, the first of these."""
    when, last, reason = When(policy_of(goals), snapshot, goals), None, ""
    for before, action in replayed(snapshot, made):
        pair = {b for c in action.changes for b in (*c.replicas_before, *c.replicas_after)}
        if pair != last:
            found = when.ahead(before).findings
            assert any(f.text in action.reason for f in found)
            subjects = {f.subject for f in found}
            reason = "Underloaded" if "utilization" not in subjects and subjects & {"underloaded", "without traffic"} else "Overloaded"
        last = pair
        yield from (f"{unit} {of.names[source]} {of.names[target]} {reason}" for unit, source, target in moves_of(before, action))


def hindered(of: Cluster, snapshot: Snapshot, rested: float | None, now: int) -> str:
    """What keeps the service from deciding, as Pulsar calls it; every broker has to be heard."""
    metadata = SimpleNamespace(loaded=True, serving=frozenset(of.names), held_back=lambda now: None)
    coverage = SimpleNamespace(share=lambda now: 1.0, span_ms=1)
    ready: Any = Readiness
    holds = ready(
        metadata, SimpleNamespace(caught_up=True), of.model, coverage, covered=1.0, heard=1.0,
        **dict.fromkeys(("unrecordable", "hindrance", "unread", "shared"), lambda: None),
    ).holds(now)  # fmt: skip
    if holds and holds[0].kind == "metadata":
        return "NoBrokers"
    if holds:
        return "NoLoadData" if any(v.voice == "fresh" for v in of.model.voices(now)) else "OutDatedData"
    done = [] if rested is None else [Deed(now - round(1000 * rested), 1)]
    return "" if may_act(Guards(cooldown_ms=PAUSE), snapshot, done, now).open else "CoolDown"


@runner
def transfer(
    usage: list[float], recent: list[str] | None = None, flows: dict[str, float] | None = None, owned: bool = True,
    units: dict[str, list[float]] | None = None, age: float = 0.0, rested: float | None = None, silent: list[str] | None = None,
    hits: int = 0, before: int = 0, reported: dict[str, float] | None = None, target: float = 0.25,
) -> object:  # fmt: skip
    """`flows` are of all that brokers carry, their units among it. The service counts checks while it may not act, too."""
    hosts = []
    for letter, (name, amounts), share in zip("ABCDEFGH", (units or TRANSFER).items(), usage, strict=False):
        whole = sum(amounts)
        scale = (flows or {}).get(name, whole) / whole if whole else 1.0
        rest = max((reported or {}).get(name, 0.0) - whole, 0.0)
        loads = [amount * scale for amount in amounts]
        hosts.append(Host(name, share, loads, rest=rest, units=letter, first=1) if owned else Host(name, share, rest=whole))
    of = cluster(hosts, silent or (), round(1000 * age))
    goals = goals_with("pulsar-transfer", detector={"target": target, "persist": {"hits_low": hits + 1}})
    memory = Memory()
    for check in range(1, before + 1):
        memory = detect(goals, cluster(UNEVEN).at(check), goals, memory).memory
    snapshot = of.at(before + 1)
    stopped = hindered(of, snapshot, rested, NOW)
    if stopped in ("NoBrokers", "OutDatedData", "NoLoadData"):
        return {"moves": [], "std": 0.0, "reason": stopped, "hits": before}
    found = detect(goals, snapshot, goals, memory)
    counted = max((c.low for c in found.memory.counts), default=0)
    if stopped or not found.fired:
        reason = stopped or ("HitCount" if found.findings else "Balanced")
        return {"moves": [], "std": float(snapshot.broker_load("cpu").std()), "reason": reason, "hits": counted}
    made = plan(snapshot, goals, resting(hosts, recent))
    moves = list(transferred(goals, of, snapshot, made))
    done = after(snapshot, made).broker_load("cpu")
    if moves:
        counted = max((c.low for c in found.memory.acted().counts), default=0)
    return {"moves": moves, "std": float(done.std()), "reason": "" if moves else "NoBundles", "hits": counted}


UNEVEN = [Host(name, share, [1.0]) for name, share in zip(TRANSFER, (0.02, 0.04, 0.06, 0.80, 0.90), strict=True)]


@runner
def one_apart(brokers: int, usage: float, other: float) -> object:
    """Many equal brokers and one, ``z``, that stands out: what the first shed is, and the standard deviation before."""
    loads = {f"b{i:02}": usage for i in range(brokers)} | {"z": other}
    of = cluster([Host(n, u, [u * 1e5] * 10) for n, u in loads.items()])
    snapshot, goals = of.at(), goals_with("pulsar-transfer")
    first = next(transferred(goals, of, snapshot, plan(snapshot, goals)))
    return {"first": first.partition(" ")[2], "std": float(snapshot.broker_load("cpu").std())}


@runner
def average_acts_at(gaps: list[float]) -> object:
    """Checks at which the preset moves something, as the service counts them."""
    goals, memory, acted = goals_with("pulsar-avg"), Memory(), []
    for check, gap in enumerate(gaps, 1):
        snapshot = cluster([Host("a", 0.1), Host("b", 0.1 + gap / 100.0, rates=[500.0] * 20)]).at(check)
        found = detect(goals, snapshot, goals, memory)
        memory = found.memory
        if found.fired and plan(snapshot, goals).actions:
            acted.append(check)
            memory = memory.acted()
    return acted


@runner
def ranked_pairs(usage: dict[str, float]) -> object:
    """Who gives to whom, where any difference of usage counts."""
    of = cluster([Host(name, share, [share * 1e6] * 20) for name, share in usage.items()])
    snapshot, goals = of.at(), goals_with("pulsar-avg", detector={"low": 1e-6, "high": 1.0}, filters={"min_throughput": 0.0})
    pairs = [(c.replicas_after[0], c.replicas_before[0]) for action in plan(snapshot, goals).actions for c in action.changes]
    return [[of.names[idle], of.names[busy]] for idle, busy in dict.fromkeys(pairs)]


@runner
def average_units(units: int, rate: float, least_rate: float) -> object:
    """How many units of a broker leave it for one with half the requests/s. Pulsar moves more than its least rate, Trimtab that or more."""
    idle, busy = Host("idle", 0.2, rates=[500.0]), Host("busy", 0.8, rates=[rate] * units)
    return len(shed([idle, busy], goals_with("pulsar-avg", filters={"min_rate": float(np.nextafter(least_rate, np.inf))})))
