"""Runners of the cases on whole plans, the live model and the history, for `test_policy_cases`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cluster_model.build import build_snapshot
from cluster_model.errors import ExternalError
from cluster_model.metadata.events import BrokerFenced, BrokerRegistered, BrokerRemoved, PartitionChanged, TopicCreated, TopicDeleted
from cluster_model.model import ClusterModel
from cluster_model.observed import LEADER
from cluster_model.snapshot import BrokerState, Snapshot
from cluster_model.windows import Horizon
from goals.cruise_control import goals_file
from goals.document import parse_goals
from goals.policy import Batch, PolicyDocument
from goals.policy_filters import Filters, Isolation
from optimizer.compile import compile_problem
from optimizer.detectors import detect
from optimizer.detectors.guards import Deed, Guards, may_act
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.policies import batches, picking
from optimizer.policies.assign import NewTopic, assign
from optimizer.policies.board import Board, Step
from optimizer.policies.confines import confines_of
from optimizer.policies.lookup import bundles_in, locate
from optimizer.policies.profiles import broker_scores
from optimizer.policies.recording import Evaluator, plan_of
from tests.unit.cluster_model.batches import NOW, Reports, replica
from tests.unit.optimizer.test_caution import live
from trimtab.history.decisions import DecisionHistory
from trimtab.history.records import Decision, Outcome
from trimtab.service.standing import after

LIVE: dict[str, Callable[..., object]] = {}
MIB = 1024.0 * 1024.0


def runner(function: Callable[..., object]) -> Callable[..., object]:
    LIVE[function.__name__] = function
    return function


def placed(listed: dict[str, Any], brokers: list[int], states: dict[int, str] | None = None) -> Snapshot:
    """`listed`: topic-partition -> the broker that holds it, or that and its MiB/s."""
    partitions = []
    for name, given in listed.items():
        topic, _, number = name.rpartition("-")
        broker, load = given if isinstance(given, list) else (given, 1.0)
        partitions.append(
            {"topic": topic, "partition": int(number), "replicas": [broker], "leader": broker, "leader_load": {"network_in": load * MIB}}
        )
    return build_snapshot(
        {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "shared",
         "brokers": [{"id": b, "state": (states or {}).get(b, "active")} for b in brokers], "partitions": partitions}
    )  # fmt: skip


LEVEL = "version: 1\ngoals: [{kind: usage_distribution, resource: network_in}]\n"


def routes(made: Plan) -> dict[int, list[int]]:
    """Broker -> brokers that get its replicas."""
    found: dict[int, set[int]] = defaultdict(set)
    for change in made.proposals:
        found[change.replicas_before[0]].update(change.added)
    return {source: sorted(targets) for source, targets in sorted(found.items())}


@runner
def goes_to(units: list[list[float]], policy: str, states: dict[int, str] | None = None, says: str = "") -> object:
    """Who gets replicas of whom; and whether the plan says `says`. Broker i leads partitions of `units[i]` MiB/s."""
    listed = {f"t-{i}": [b, load] for i, (b, load) in enumerate((b, x) for b, own in enumerate(units) for x in own)}
    made = plan(placed(listed, list(range(len(units))), states), parse_goals(f"{LEVEL}policy: {policy}\n", "g"))
    return {"routes": routes(made), "said": any(says in note for note in made.notes)}


@runner
def scores_of(kind: str, units: list[list[float]], cpu: list[float] | None = None, cores: float | None = None) -> object:
    """Scores by which a policy ranks brokers. Broker i leads partitions of `units[i]` MB/s that use `cpu[i]` of its cores."""
    partitions = [
        {"topic": "t", "partition": 100 * b + n, "replicas": [b], "leader": b,
         "leader_load": {"network_in": 1e6 * load} | ({"cpu": cpu[b] / len(own)} if cpu else {})}
        for b, own in enumerate(units) for n, load in enumerate(own)
    ]  # fmt: skip
    brokers = [{"id": b, "capacity": {"cpu": cores} if cores else {}} for b in range(len(units))]
    document = {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "shared", "brokers": brokers,
                "partitions": partitions}  # fmt: skip
    return broker_scores(kind, build_snapshot(document), parse_goals(LEVEL, "g")).tolist()


@runner
def danube_says(loads: list[int], preset: str) -> object:
    """Whether a preset's detector acts on counts of replicas: at its line, by its rule for single brokers, and what it says."""
    at = [b for b, count in enumerate(loads) for _ in range(count)]
    snapshot = placed({f"t-{i}": b for i, b in enumerate(at)}, list(range(len(loads))))
    goals = parse_goals(f"version: 1\ngoals: [{{kind: usage_distribution, resource: replicas}}]\npolicy: {{preset: {preset}}}\n", "g")
    found = detect(goals, snapshot, goals)
    every = [*found.findings, *([found.nearest] if found.nearest else [])]
    fired = {f.broker is None for f in found.findings if f.fired}
    return {"line": True in fired, "single": False in fired, "says": next((f.text for f in every if f.broker is None), "")}


@runner
def imported_goals(properties: dict[str, Any], capacity: dict[str, float] | None = None) -> object:
    """Goals of Cruise Control's configuration as a goals file has them, or what is said of those that it has none for."""
    given = {key: ",".join(f"com.{goal}" for goal in value) if isinstance(value, list) else value for key, value in properties.items()}
    text, said = goals_file("\n".join(f"{key}={value}" for key, value in given.items()), "cc", capacity)
    parse_goals(text, "g")
    return {"goals": [line[5:-1] for line in text.splitlines() if line.startswith("  - ")], "said": [one.partition(":")[0] for one in said]}


@runner
def action_verdict(listed: list[list[float]], goals: list[str], move: list[int], capacity: float | None = None) -> object:
    """What goals make of moving partition `move[0]` to broker `move[1]`. `listed`: broker, MiB/s in and out of each partition."""
    of = {"capacity": {"network_in": capacity * MIB}} if capacity else {}
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "shared",
        "brokers": [{"id": b, **of} for b in range(max(move[1], *(int(b) for b, _, _ in listed)) + 1)],
        "partitions": [
            {"topic": "t", "partition": i, "replicas": [b], "leader": b, "leader_load": {"network_in": x * MIB, "network_out": y * MIB}}
            for i, (b, x, y) in enumerate(listed)
        ],
    }  # fmt: skip
    wanted = parse_goals(f"version: 1\ngoals: [{', '.join('{' + goal + '}' for goal in goals)}]\n", "g")
    found = Evaluator(compile_problem(build_snapshot(document), wanted, PlanOptions())).verdict(Step((move[0],), ((move[1],),), (0,), ""))
    return {"score": float(found.score), "allowed": bool(found.allowed), "better": bool(found.better)}


@runner
def numbers_of(policy: dict[str, Any], keys: list[str]) -> object:
    """What a policy has at places such as ``detector.threshold``."""
    found = PolicyDocument.model_validate(policy).model_dump()
    return [reduce(lambda at, key: at[key], key.split("."), found) for key in keys]


@runner
def first_moves(
    units: list[list[float]], policy: str, states: dict[int, str] | None = None, resting: list[int] | None = None, most: int = 1
) -> object:
    """The first moves of a plan as ``partition:from>to``; partitions are numbered from those of broker 0 on."""
    listed = {f"t-{i}": [b, load] for i, (b, load) in enumerate((b, x) for b, own in enumerate(units) for x in own)}
    goals = parse_goals(f"version: 1\ngoals: [{{kind: usage_distribution, resource: replicas}}]\npolicy: {policy}\n", "g")
    made = plan(placed(listed, list(range(len(units))), states), goals, PlanOptions(resting=tuple(("t", n) for n in resting or ())))
    return [f"{c.partition}:{c.replicas_before[0]}>{c.replicas_after[0]}" for action in made.actions for c in action.changes][:most]


@runner
def count_plan(lists: list[list[int]], brokers: int, policy: str = "{preset: wix-minimal}", states: dict[int, str] | None = None) -> object:
    """Replicas and leaders of brokers after a plan by counts, its moves, the most brokers of a partition that it replaces, and whether
    brokers that are not active hold nothing."""
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
        "brokers": [{"id": b, "state": (states or {}).get(b, "active")} for b in range(brokers)],
        "partitions": [{"topic": "t", "partition": n, "replicas": at, "leader": at[0]} for n, at in enumerate(lists)],
    }  # fmt: skip
    snapshot, goals = build_snapshot(document), parse_goals(f"version: 1\npreset: counts\npolicy: {policy}\n", "g")
    made = plan(snapshot, goals)
    done = after(snapshot, made)
    replicas, leaders = (done.broker_load(what).astype(int).tolist() for what in ("replicas", "leaders"))
    replaced = max((len(set(c.replicas_before) - set(c.replicas_after)) for c in made.proposals), default=0)
    emptied = not any(replicas[b] for b in states or {})
    return {"moves": made.summary.replica_moves, "replicas": replicas, "leaders": leaders, "replaced": replaced, "emptied": emptied}


@runner
def leaves_in_order(listed: dict[str, float], order: str = "heaviest") -> object:
    """Partitions in the order in which a draining broker gives them."""
    snapshot = placed({name: [0, load] for name, load in listed.items()}, [0, 1, 2], {0: "draining"})
    made = plan(snapshot, parse_goals(f"{LEVEL}policy: {{amount: {{kind: one}}, order: {order}}}\n", "g"))
    return [f"{c.topic}-{c.partition}" for action in made.actions for c in action.changes]


@runner
def picked(how: str, amounts: list[float], late: list[bool], wanted: float) -> object:
    found: object = getattr(picking, how)(amounts, wanted, late=late)
    return found


@runner
def merged(brokers: list[int], at: dict[str, int], actions: list[list[list[Any]]]) -> object:
    """The net result of actions, each a list of [topic-partition, to]."""
    snapshot = placed(at, brokers)
    goals = parse_goals(LEVEL, "g")
    board = Board.of(snapshot, compile_problem(snapshot, goals, PlanOptions()))
    names = {snapshot.partition_name(p): p for p in range(snapshot.partition_count)}
    for action in actions:
        lists = tuple((snapshot.row_of_broker[to],) for _, to in action)
        board.make(Step(tuple(names[name] for name, _ in action), lists, (0,) * len(action), ""))
    made = plan_of(snapshot, board, goals, PlanOptions(), {}, ())
    return [f"{c.topic}-{c.partition}:{c.replicas_before[0]}>{c.replicas_after[0]}" for c in made.proposals]


@runner
def batched(rule: dict[str, Any], partitions: dict[str, int], moves: list[str]) -> object:
    """Moves ``topic-partition:from>to`` by batch."""
    actions = []
    for text in moves:
        name, _, way = text.partition(":")
        topic, _, number = name.rpartition("-")
        source, _, target = way.partition(">")
        actions.append([batches.Moved(topic, int(number), int(source), int(target))])
    found: dict[int, list[str]] = defaultdict(list)
    for at, text in zip(batches.grouped(actions, Batch(**rule), partitions), moves, strict=True):
        found[at].append(text.partition(":")[0])
    return list(found.values())


@runner
def trusted_moves(units: list[list[float]], stale: list[int], resource: str) -> object:
    """Replica moves of a plan where loads of some partitions are stale."""
    listed = {f"t-{i}": [b, load] for i, (b, load) in enumerate((b, x) for b, own in enumerate(units) for x in own)}
    snapshot = live(placed(listed, list(range(len(units)))), stale)
    goals = parse_goals(f"version: 1\ngoals: [{{kind: usage_distribution, resource: {resource}}}]\n", "g")
    made = plan(snapshot, goals)
    assert not plan(after(snapshot, made), goals).actions
    return made.summary.replica_moves


@runner
def model(steps: list[list[Any]]) -> object:
    """The live model after events and samples: active and other brokers, topics, and which broker leads which partition."""
    of = ClusterModel("c", short=Horizon(10_000, 1), long=Horizon(10_000, 6), stale_after_ms=30_000, dead_after_ms=60_000)
    reports = Reports()
    try:
        for step in steps:
            _take(of, reports, step)
    except ExternalError as error:
        return str(error)
    found = of.snapshot(NOW)
    ids = found.broker_ids
    return {
        "active": ids[found.broker_states == BrokerState.ACTIVE].tolist(),
        "brokers": ids.tolist(),
        "topics": list(found.topics),
        "leaders": {found.partition_name(p): int(ids[b]) if b >= 0 else None for p, b in enumerate(found.leader.tolist())},
        "load": found.broker_load("network_in").tolist(),
        "voices": {v.broker: v.voice for v in of.voices(NOW)},
        "stale": of.staleness(NOW).partitions,
    }


def _take(of: ClusterModel, reports: Reports, step: list[Any]) -> None:
    """One event, or samples of one partition."""
    what, *given = step
    match what:
        case "register":
            of.apply(BrokerRegistered(given[0], None), NOW)
        case "unregister":
            of.apply(BrokerRemoved(given[0]), NOW)
        case "fence":
            of.apply(BrokerFenced(given[0]), NOW)
        case "topic":
            of.apply(TopicCreated(given[0], f"id-{given[0]}"), NOW)
        case "delete":
            of.apply(TopicDeleted(given[0]), NOW)
        case "partition":
            topic, number, leader = given
            hosts = (leader,) if leader is not None else (1,)
            of.apply(PartitionChanged(topic, number, hosts, hosts if leader is not None else (), leader), NOW)
        case "report":
            of.ingest(reports.of(given[0], NOW, replica(LEADER, given[2], network_in=given[3]), topics=(given[1],)), NOW)


@runner
def averaged(windows: int, samples: list[float]) -> object:
    """The load of a partition after samples, one a window; None where it is unknown."""
    of = ClusterModel("c", short=Horizon(10_000, 1), long=Horizon(10_000, windows))
    reports = Reports()
    for event in (BrokerRegistered(1, None), TopicCreated("orders", "id"), PartitionChanged("orders", 0, (1,), (1,), 1)):
        of.apply(event, NOW)
    for i, sample in enumerate(samples):
        of.ingest(reports.of(1, NOW + 10_000 * i, replica(LEADER, 0, network_in=sample)), NOW + 10_000 * i)
    found = of.snapshot(NOW + 10_000 * len(samples))
    return float(found.broker_load("network_in")[0]) if found.is_reported("network_in") else None


@runner
def newest_decisions(keep: int, moves: list[str]) -> object:
    """The newest of a history of moves, newest first."""
    with TemporaryDirectory() as folder, DecisionHistory(Path(folder) / "decisions.db", "c") as history:
        for i, reason in enumerate(moves):
            history.record(Decision(NOW + i, NOW + i, "i", "interval", "auto", "planned", reason))
        return [r.decision.reason for r in history.newest(keep)]


@runner
def in_the_last_hour(ago: list[int]) -> object:
    """Moves so many seconds ago, one each: how many count, and how many are kept."""
    with TemporaryDirectory() as folder, DecisionHistory(Path(folder) / "decisions.db", "c") as history:
        id = history.record(Decision(NOW, NOW, "i", "interval", "auto", "planned", ""))
        for seconds in ago:
            history.add_outcome(id, Outcome(NOW - 1000 * seconds, "done", "executor", "", 1))
        kept = [o.time_ms for r in history.newest(10) for o in r.outcomes]
        counted = history.done_since(NOW - 3_600_000).replica_moves
    gate = may_act(Guards(0, 0, 10), placed({"t-0": 0}, [0]), [Deed(at, 1) for at in kept], NOW)
    assert gate.moves_left == 10 - counted
    return {"counted": counted, "kept": len(kept)}


@runner
def bundle_named(topic: str) -> object:
    """The bundle that the lookup shows for partition 0 of a topic, whether it is there or not."""
    snapshot = placed({"other-0": 0}, [0])
    return locate(snapshot, bundles_in(snapshot, PolicyDocument(unit="group")), topic, 0)[0].bundle


@runner
def isolation(min_primary: int, available: list[int]) -> object:
    """Brokers that take a topic of a rule with primary broker 1 and secondary broker 2, and one that no rule names."""
    rule = Isolation(topics=["mine"], primary=[1], secondary=[2], min_primary=min_primary)
    snapshot = placed({"mine-0": available[0], "other-0": available[0]}, available)
    found = confines_of(Filters(isolation=[rule]), snapshot).allowed
    assert found is not None
    ids = snapshot.broker_ids
    return {name: ids[found[snapshot.row_of_topic[topic]]].tolist() for name, topic in (("topic", "mine"), ("other", "other"))}


@runner
def anti_affinity(racks: list[str | None], others: list[list[int]]) -> object:
    """Brokers, numbered from 1, that a new topic goes to whose group has other topics on the brokers of each list."""
    listed = [("plain", [b]) for b in range(1, len(racks) + 1)] + [(f"g{i}", [b]) for i, at in enumerate(others) for b in at]
    partitions = [
        {"topic": topic, "partition": n, "replicas": at, "leader": at[0], "leader_load": {"network_in": 1.0}}
        for n, (topic, at) in enumerate(listed)
    ]
    snapshot = build_snapshot(
        {"version": 1, "cluster_id": "c", "taken_at": "2026-01-01T00:00:00Z", "storage": "local",
         "brokers": [{"id": b, "rack": rack} for b, rack in enumerate(racks, 1)], "partitions": partitions}
    )  # fmt: skip
    policy = "{amount: {kind: one}, filters: {anti_affinity: [{topics: [new, 'g*']}]}}"
    goals = parse_goals(f"version: 1\ngoals: [{{kind: usage_distribution, resource: replicas}}]\npolicy: {policy}\n", "g")
    return sorted({b for row in assign(snapshot, goals, NewTopic("new", len(racks), 1)).replicas for b in row})
