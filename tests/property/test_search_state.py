"""What would happen to an operator whose service plans from the state of its last plan, were that state ever stale or half done.

Random clusters change at random between plans, in every way that a cluster, its goals and the options do; the plan with the state
is the plan without it, byte for byte.
"""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from cluster_model.snapshot import BrokerState, Snapshot
from goals.document import parse_goals
from goals.model import GoalSet
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.report import to_json
from optimizer.search_state import SearchState
from tests.oracle.clusters import Case, case_of
from tests.oracle.runs import plan_options

Document = dict[str, Any]

thorough = settings(
    max_examples=12, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


def text_of(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, state: SearchState | None) -> str:
    try:
        text: str = to_json(plan(snapshot, goals, options, state=state))
    except ConfigurationError as error:  # goals that exclude a broker that is not there
        return str(error)
    return text


def live_brokers(document: Document, r: Random) -> list[int]:
    ids = [b["id"] for b in document["brokers"]]
    return r.sample(ids, len(ids))


def changed(document: Document, r: Random) -> Document:
    """The same cluster a little later."""
    document = deepcopy(document)
    partitions, brokers = document["partitions"], document["brokers"]
    document["taken_at"] = f"2026-11-20T12:{r.randrange(60):02d}:00Z"
    for _ in range(r.choice((0, 1, 1, 2, 3)) if partitions else 0):
        kind = r.choice(("loads", "loads", "hot", "leader", "leader", "move", "state", "state", "grow", "create", "delete", "join",
                         "swap", "factor", "capacity", "all loads"))  # fmt: skip
        p = r.choice(partitions)
        match kind:
            case "loads" | "hot" | "all loads":
                chosen = partitions if kind == "all loads" else [q for q in partitions if q is p or q["topic"] == p["topic"] == kind]
                for q in chosen:
                    for load in (q.get("leader_load"), q.get("follower_load")):
                        for name in load or ():
                            load[name] *= r.choice((0.0, 0.5, 1.5, 20.0)) if kind != "hot" else 10.0
            case "leader":
                p["leader"] = r.choice([*p["replicas"], None])
            case "move":
                free = [b for b in live_brokers(document, r) if b not in p["replicas"]]
                if free:
                    at = r.randrange(len(p["replicas"]))
                    if p.get("leader") == p["replicas"][at]:
                        p["leader"] = free[0]
                    p["replicas"][at] = free[0]
            case "swap":
                p["replicas"].reverse()
            case "factor":
                free = [b for b in live_brokers(document, r) if b not in p["replicas"]]
                p["replicas"] += free[:1]
            case "state":
                r.choice(brokers)["state"] = r.choice(("active", "draining", "dead", "excluded"))
            case "capacity":
                capacity = r.choice(brokers).get("capacity") or {}
                for name in capacity:
                    capacity[name] *= 2.0
            case "grow":
                number = 1 + max(q["partition"] for q in partitions if q["topic"] == p["topic"])
                partitions.append({**deepcopy(p), "partition": number})
            case "create":
                partitions.append({**deepcopy(p), "topic": f"new-{r.randrange(10**6)}", "partition": 0})
            case "delete":
                left = [q for q in partitions if q["topic"] != p["topic"]]
                partitions[:] = left or partitions
            case "join":
                brokers.append({**deepcopy(brokers[0]), "id": 1 + max(b["id"] for b in brokers), "state": "active"})
    return document


def told_otherwise(options: Document, r: Random) -> Document:
    """Other options, now and then."""
    options = dict(options)
    if r.random() < 0.3:
        options["max_moves"] = r.choice((None, 1, 5))
    if r.random() < 0.1:
        options["scale_load"] = (("*", 1.5),) if not options.get("scale_load") else ()
    if r.random() < 0.1:
        options["exclude_topics"] = ("o*",) if not options.get("exclude_topics") else ()
    return options


@thorough
@given(seed=st.integers(0, 2**32 - 1))
def test_a_plan_does_not_depend_on_what_the_last_one_left(seed: int) -> None:
    r = Random(seed)
    case: Case = case_of(seed, most_brokers=8, per_broker=5)
    goals, document = json.dumps(case.goals), case.snapshot
    options: Document = {}
    state = SearchState()
    for _ in range(6):
        snapshot = build_snapshot(document)
        asked = plan_options(case.acceptance, options)
        parsed = parse_goals(goals, "goals.yaml")
        anew = text_of(build_snapshot(document), parsed, asked, None)
        assert text_of(snapshot, parsed, asked, state) == anew
        document = changed(document, r)
        options = told_otherwise(options, r)
        if r.random() < 0.15:  # other goals
            goals = json.dumps(case_of(seed + 1, most_brokers=8, per_broker=5).goals)
        if r.random() < 0.1:  # another cluster altogether
            document = case_of(r.randrange(2**32), most_brokers=8, per_broker=5).snapshot


GOALS = json.dumps(
    {"version": 1, "goals": [{"kind": "rack_aware", "hard": True}]
     + [{"kind": "usage_distribution", "resource": x} for x in ("network_in", "disk", "replicas", "leaders")]}
)  # fmt: skip
TOPICS = [{"kind": "topic_distribution", "resource": x} for x in ("replicas", "leaders")]
BY_TOPIC = json.dumps({"version": 1, "goals": json.loads(GOALS)["goals"] + TOPICS})


def large(seed: int, brokers: int = 60, partitions: int = 4_000) -> Snapshot:
    """Large enough that lists and states are mended and not made anew."""
    r = np.random.default_rng(seed)
    rack = np.arange(brokers) % 5
    first = r.integers(0, brokers, partitions)
    replicas = np.stack([first, (first + 1 + 5 * r.integers(0, 6, partitions)) % brokers, (first + 2) % brokers], axis=1).astype(np.int32)
    load = r.lognormal(0.0, 1.0, partitions)
    return Snapshot(
        cluster_id="large", taken_at="2026-11-20T12:00:00Z", storage="local", broker_ids=np.arange(brokers, dtype=np.int32),
        broker_states=np.zeros(brokers, np.int8), racks=tuple(f"r{x}" for x in rack), capacity={}, topics=tuple("abcdefgh"),
        partition_topic=(np.arange(partitions) * 8 // partitions).astype(np.int32),
        partition_number=np.arange(partitions, dtype=np.int32),
        replicas=replicas, leader=replicas[:, 0].copy(), leader_load={"network_in": load * 1e6, "disk": load * 1e9},
        follower_load={}, has_follower_load=np.zeros(partitions, np.bool_),
    )  # fmt: skip


def heated(snapshot: Snapshot, r: np.random.Generator, most: int = 6) -> Snapshot:
    rows = r.choice(snapshot.partition_count, int(r.integers(1, most)), replace=False)
    loads = {name: values.copy() for name, values in snapshot.leader_load.items()}
    for values in loads.values():
        values[rows] *= 30.0
    return replace(snapshot, leader_load=loads)


def moved(snapshot: Snapshot, r: np.random.Generator) -> Snapshot:
    """Some partitions elsewhere, some led by another."""
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for p in r.choice(snapshot.partition_count, 5, replace=False).tolist():
        free = np.setdiff1d(np.arange(snapshot.broker_count), replicas[p])
        replicas[p, 0] = r.choice(free)
        leader[p] = replicas[p, int(r.integers(0, 3))]
    for p in r.choice(snapshot.partition_count, 40, replace=False).tolist():
        leader[p] = replicas[p, int(r.integers(0, 3))]
    return snapshot.with_placement(replicas, leader)


def without(snapshot: Snapshot, broker: int) -> Snapshot:
    states = snapshot.broker_states.copy()
    states[broker] = BrokerState.DEAD
    return replace(snapshot, broker_states=states)


def measured(snapshot: Snapshot, r: np.random.Generator) -> Snapshot:
    """Every load a little other."""
    loads = {name: values * r.normal(1.0, 0.02, len(values)) for name, values in snapshot.leader_load.items()}
    return replace(snapshot, leader_load=loads)


def levelled(goals: str) -> Snapshot:
    """A large cluster that a plan has brought into band."""
    snapshot = large(1)
    made = plan(snapshot, parse_goals(goals, "goals"))
    replicas, leader = snapshot.replicas.copy(), snapshot.leader.copy()
    for change in made.proposals:
        replicas[change.partition] = change.replicas_after
        leader[change.partition] = -1 if change.leader_after is None else change.leader_after
    return snapshot.with_placement(replicas, leader)


@pytest.fixture(scope="module")
def level() -> Snapshot:
    return levelled(GOALS)


@pytest.mark.parametrize(("text", "acceptance"), [(GOALS, "score"), (GOALS, "potential"), (BY_TOPIC, "score")])
def test_where_little_changes_in_a_large_cluster_the_plan_is_the_same(text: str, acceptance: Any) -> None:
    level = levelled(text)
    goals, state, r = parse_goals(text, "goals"), SearchState(), np.random.default_rng(5)
    options = PlanOptions(acceptance=acceptance)
    plan(level, goals, options, state=state)
    now = level
    acted = 0
    for turn in range(14):
        now = heated(now, r) if turn % 3 == 0 else moved(now, r) if turn % 3 == 1 else level
        if turn in (4, 9):
            now = without(now, 7 + turn)
        if turn in (5, 9, 12):
            now = measured(now, r)
        anew = text_of(replace(now), goals, options, None)
        assert text_of(replace(now), goals, options, state) == anew
        acted += '"seq":1,' in anew
    assert acted >= 5


class Stopped(Exception):
    pass


@pytest.mark.parametrize("kind", [Stopped, KeyboardInterrupt])
def test_after_an_interrupted_plan_the_next_is_right(level: Snapshot, kind: type[BaseException]) -> None:
    goals, state, r = parse_goals(GOALS, "goals"), SearchState(), np.random.default_rng(6)
    plan(level, goals, state=state)

    def interrupt(low: int) -> bool:
        raise kind

    hot = heated(level, r, 40)
    with pytest.raises(kind):
        plan(hot, goals, watch=interrupt, state=state)
    assert text_of(replace(hot), goals, PlanOptions(), state) == text_of(replace(hot), goals, PlanOptions(), None)


def test_a_plan_that_was_stopped_leaves_a_state_that_serves(level: Snapshot) -> None:
    goals, state, r = parse_goals(GOALS, "goals"), SearchState(), np.random.default_rng(7)
    hot = heated(level, r, 60)
    plan(level, goals, state=state)
    plan(hot, goals, watch=lambda low: False, state=state)
    assert text_of(replace(hot), goals, PlanOptions(), state) == text_of(replace(hot), goals, PlanOptions(), None)


def test_plans_already_made_do_not_change_when_the_state_goes_on(level: Snapshot) -> None:
    """The service shows and carries out a plan while it makes the next."""
    goals, state, r = parse_goals(GOALS, "goals"), SearchState(), np.random.default_rng(8)
    hot = heated(level, r, 40)
    plan(level, goals, state=state)
    made = plan(hot, goals, state=state)
    for _ in range(3):
        plan(moved(heated(level, r, 40), r), goals, state=state)
    anew = plan(replace(hot), goals)
    assert to_json(made) == to_json(anew)
    assert tuple(made.frontier) == tuple(anew.frontier)


def test_the_state_of_one_cluster_serves_another_and_its_memory_stays_the_same(level: Snapshot) -> None:
    goals, state = parse_goals(GOALS, "goals"), SearchState()
    plan(level, goals, state=state)
    plan(heated(level, np.random.default_rng(1)), goals, state=state)
    first = state.nbytes
    for seed in (2, 3):
        other = replace(large(seed), cluster_id="other")
        assert text_of(replace(other), goals, PlanOptions(), state) == text_of(other, goals, PlanOptions(), None)
    plan(level, goals, state=state)
    assert 0 < state.nbytes <= first
