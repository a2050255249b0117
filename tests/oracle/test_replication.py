"""Plans of replication factors against the oracle: random clusters, random factors, and what is never to happen to a partition."""

from __future__ import annotations

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from tests.oracle.cluster import Cluster, wanted_factor
from tests.oracle.clusters import Case, case_of
from tests.oracle.goal_files import constraints_of
from tests.oracle.runs import after, deviations, plan_document

SEEDS = st.integers(0, 2**32 - 1)


def with_factors(seed: int) -> Case | None:
    """A random case with factors that its cluster can have; None where no topic is asked for."""
    case = case_of(seed, most_brokers=10, per_broker=10)
    r = Random(f"factors {seed}")
    cluster = Cluster(case.snapshot, constraints_of(case.goals), case.options)
    topics = sorted({topic for topic, _ in cluster.partitions})
    if not cluster.active or not topics:
        return None
    most = min(len(cluster.active), 5)
    patterns = [(r.choice(topics), r.randint(1, most)) for _ in range(r.randint(1, 3))]
    if r.random() < 0.3 and any(not t.startswith("__") for t in topics):
        patterns.insert(0, ("*", r.randint(1, most)))
    return case.without(options={**case.options, "replication_factor": patterns})


@example(28535)  # topics of no set where every broker is in one
@example(9101)  # excluded topics get replicas that no broker holds yet
@given(SEEDS)
def test_every_plan_replays_and_names_what_it_leaves(seed: int) -> None:
    case = with_factors(seed)
    if case is None:
        return
    document = plan_document(case)
    assert deviations(case, document) == []
    changed = {(p["topic"], p["partition"]) for p in document["proposals"]}
    left = [
        p for p in case.snapshot["partitions"]
        if wanted_factor(p["topic"], case.options) not in (None, len(p["replicas"])) and (p["topic"], p["partition"]) not in changed
    ]  # fmt: skip
    assert not left or document["skipped"], "a partition that keeps its factor has a reason"
    assert document["lower_bounds"]["bytes_to_move"] == document["summary"]["bytes_to_move"], "no replica is copied that was not asked for"


@given(SEEDS)
def test_a_second_plan_finds_nothing_more_to_do(seed: int) -> None:
    case = with_factors(seed)
    if case is None:
        return
    document = plan_document(case)
    if any(case.options.get(name) is not None for name in ("max_moves", "max_bytes", "max_partitions")):
        return
    second = plan_document(after(case, document))
    done = {(p["topic"], p["partition"]) for p in document["proposals"]}
    again = [p for p in second["proposals"] if (p["topic"], p["partition"]) in done]
    assert again == []


@given(SEEDS)
def test_racks_come_first(seed: int) -> None:
    """Three replicas in two racks are lost together with one rack, though a third had room."""
    case = with_factors(seed)
    if case is None:
        return
    case = case.without(goals={"version": 1, "goals": [{"kind": "usage_distribution", "resource": "replicas"}]})
    document = plan_document(case)
    cluster = Cluster(case.snapshot, constraints_of(case.goals), case.options)
    racks = {cluster.rack_of(b) for b in cluster.active}
    for p in document["proposals"]:
        before, now = p["replicas_before"], p["replicas_after"]
        gone = [b for b in before if b not in now]
        had, has = ({cluster.rack_of(b) for b in row} for row in (before, now))
        if len(now) > len(before):
            assert len(has) == len(had) + min(len(now) - len(before), len(racks - had))
        elif not any(cluster.brokers[b].state in ("dead", "draining") for b in gone):
            assert len(has) == min(len(had), len(now)), p
