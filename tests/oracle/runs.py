"""The product, called as a caller would, for tests that hold it against the oracle.

The only module here that knows the product: documents go in, a plan document comes out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isclose
from typing import Any

from cluster_model.build import build_snapshot
from goals.document import parse_goals
from optimizer.identity import identified
from optimizer.options import AddedBroker, PlanOptions
from optimizer.planner import plan
from optimizer.report import read_plan, to_json
from tests.oracle.cluster import Cluster, Key
from tests.oracle.clusters import Case
from tests.oracle.goal_files import constraints_of, goals_of
from tests.oracle.judge import Judge
from tests.oracle.leftovers import undone
from tests.oracle.replay import apply, check

Document = Mapping[str, Any]
BUDGETS = ("max_moves", "max_bytes", "max_partitions")


def plan_options(acceptance: str, options: Document, *, threads: int = 1) -> PlanOptions:
    """`PlanOptions` of a case."""
    tuples = {
        name: tuple(options.get(name) or ())
        for name in ("remove_brokers", "exclude_brokers", "exclude_topics", "scale_load", "replication_factor", "resting")
    }
    budgets = {name: options.get(name) for name in BUDGETS}
    added = tuple(AddedBroker(broker, rack) for broker, rack in options.get("add_brokers") or ())
    return PlanOptions(acceptance=acceptance, threads=threads, add_brokers=added, **tuples, **budgets)  # type: ignore[arg-type]


def plan_text(case: Case, *, threads: int = 1) -> str:
    """The plan file of a case."""
    snapshot = build_snapshot(case.snapshot)
    goals = parse_goals(json.dumps(case.goals), "goals.yaml")
    text: str = to_json(plan(snapshot, goals, plan_options(case.acceptance, case.options, threads=threads)))
    return text


def plan_document(case: Case, *, threads: int = 1) -> dict[str, Any]:
    """The plan file of a case, read back."""
    document: dict[str, Any] = json.loads(plan_text(case, threads=threads))
    return document


def after(case: Case, document: Document) -> Case:
    """The same question, without budgets, on the state that a plan leads to."""
    options = {k: v for k, v in case.options.items() if k not in BUDGETS}
    return case.without(snapshot=apply(case.snapshot, document, case.options), options=options)


def deviations(case: Case, document: Document) -> list[str]:
    """What the oracle has against a plan."""
    return check(case.snapshot, case.goals, document, acceptance=case.acceptance, options=case.options)


def judged(case: Case) -> Judge:
    """The oracle's view of a case as it stands."""
    return Judge(Cluster(case.snapshot, constraints_of(case.goals), case.options), goals_of(case.goals))


def rack_excesses(case: Case) -> dict[Key, int]:
    """By how many replicas each partition is over what the racks of a case allow."""
    judge = judged(case)
    return {key: judge.rack_excess(key) for key in judge.cluster.replicas}


def same_bands(case: Case, then: Case) -> bool:
    """Whether a second plan aims where the first did.

    It does not where the first took a dead replica off a partition that otherwise lives on excluded brokers alone and has no
    leader: that one may be led from then on, and its leader's load counts in the mean. Nor does it where the first repaired partitions of
    topics that do not move for balance, and so took their load to another broker set.
    """
    one, two = judged(case), judged(then)
    total = all(isclose(x, two.total[name], rel_tol=1e-9) for name, x in one.total.items())
    means = all(isclose(x, two.means[name][b], rel_tol=1e-9) for name, of in one.means.items() for b, x in of.items())
    return total and means and one.topic_bands == two.topic_bands


def is_budgeted(case: Case) -> bool:
    return any(case.options.get(name) is not None for name in BUDGETS)


def complaints(case: Case) -> list[str]:
    """Everything wrong with how the product plans a case: the replay, repairs left undone, a second plan that
    moves.
    """
    text = plan_text(case)
    document = json.loads(text)
    found = deviations(case, document)
    if identified(read_plan(text.encode(), "plan.json")).plan_id != document["plan_id"]:
        found.append("plan_id is not that of the plan file")
    if is_budgeted(case):
        return found
    found += [f"left undone: {text}" for text in undone(case.snapshot, case.goals, document, case.options)]
    then = after(case, document)
    second = plan_document(then)
    if second["actions"] and same_bands(case, then):
        first = second["actions"][0]
        found.append(f"second plan is not empty: {len(second['actions'])} actions, first {first}")
    return found
