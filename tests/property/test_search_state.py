"""What would happen to an operator whose service plans from the state of its last plan, were that state ever stale or half done.

Random clusters change at random between plans, in every way that a cluster, its goals and the options do; the plan with the state
is the plan without it, byte for byte.
"""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from cluster_model.snapshot import Snapshot
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
    max_examples=16, deadline=None, derandomize=True,
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


def told_otherwise(options: Document, r: Random, document: Document) -> Document:
    """Other options, now and then."""
    options = dict(options)
    if r.random() < 0.3:  # moved lately
        partitions = document["partitions"]
        some = r.sample(partitions, r.randrange(len(partitions) + 1)) if r.random() < 0.7 else []
        options["resting"] = tuple((q["topic"], q["partition"]) for q in some)
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
        options = told_otherwise(options, r, document)
        if r.random() < 0.15:  # other goals
            goals = json.dumps(case_of(seed + 1, most_brokers=8, per_broker=5).goals)
        if r.random() < 0.1:  # another cluster altogether
            document = case_of(r.randrange(2**32), most_brokers=8, per_broker=5).snapshot
