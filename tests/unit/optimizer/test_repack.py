"""The last brokers outside their range, packed again together with a few others, where no single step and no swap helps."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cluster_model.snapshot import BrokerState, Snapshot
from goals.document import parse_goals
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.placement.standing import standing_of
from optimizer.placement.state import State
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.problem import STATE, Compiled
from optimizer.search.balance import balance
from optimizer.search.pool import Prices, count_out, paid_for, pool_of, send, undo
from optimizer.search.repack import repack
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import cluster
from tests.unit.optimizer.actions import Document, Trial, partition, usage

FEW = [(100, 5_000, "a", 2), (100, 5_000, "b", 1), (100, 5_000, "b", 2), (100, 5_000, "d", 2)]


def compiled_of(snapshot: Snapshot) -> Compiled:
    return compile_problem(snapshot, parse_goals(goals_text("even", 0.10), "test"), PlanOptions(acceptance="potential"))


def balanced(compiled: Compiled) -> State:
    state = build_state(compiled.problem, compiled.replicas, compiled.lead)
    balance(compiled.problem, state, 0, 400, np.ones(len(compiled.goals), np.int64), True)
    return state


def left_by(made: Plan) -> list[int]:
    return [b.id for b in made.brokers if b.violates]


@pytest.mark.parametrize(("brokers", "replicas", "scenario", "seed"), FEW)
def test_with_fifty_replicas_a_broker_none_stays_outside(brokers: int, replicas: int, scenario: str, seed: int) -> None:
    snapshot = cluster(brokers, replicas, scenario, seed)  # type: ignore[arg-type]
    made = plan(snapshot, parse_goals(goals_text("even", 0.10), "test"), PlanOptions(acceptance="potential"))
    assert left_by(made) == []


def test_what_balance_leaves_is_placed_again_and_fewer_brokers_are_out() -> None:
    compiled = compiled_of(cluster(100, 5_000, "b", 2))
    state = balanced(compiled)
    before = standing_of(compiled.problem, state).low
    assert before > 0
    assert repack(compiled.problem, state, 0) > 0
    assert standing_of(compiled.problem, state).low < before


@pytest.mark.parametrize(("pairs", "packs"), [(1, True), (3, True), (4, False)])
def test_up_to_six_brokers_or_a_quarter_of_all_are_tried(pairs: int, packs: bool) -> None:
    """20 brokers; in each pair one has two partitions of 25 and one two of 15, where 40 is the mean: only a trade helps. With 8 outside
    most have to be."""
    amounts = [25.0, 15.0] * pairs + [20.0] * (20 - 2 * pairs)
    made = Trial(range(1, 21), [partition([b], network_in=x) for b, x in enumerate(amounts, 1) for _ in range(2)], usage(bound=0.1))
    assert standing_of(made.compiled.problem, made.state).low == 2 * pairs
    assert (repack(made.compiled.problem, made.state, 0) > 0) is packs


def test_what_is_kept_of_brokers_is_what_their_replicas_say() -> None:
    compiled = compiled_of(cluster(100, 5_000, "a", 2))
    state = balanced(compiled)
    repack(compiled.problem, state, 0)
    anew = build_state(compiled.problem, state.replicas, state.lead)
    assert np.array_equal(anew.load, state.load)
    assert np.array_equal(anew.score, state.score)
    assert np.array_equal(anew.hosts, state.hosts)


@pytest.mark.parametrize("change", ["move", "swap", "leadership"])
def test_a_step_back_leaves_loads_and_counts_of_topics_as_they_were(change: str) -> None:
    """Annealing steps are made on the state itself, and most are taken back."""
    topics: Document = {"kind": "topic_distribution", "resource": "leaders", "name": "topics", "bound": 0.2}
    lists = [[1 + n % 4, 1 + (n + 1) % 4] for n in range(24)]
    rows = [partition(at, topic=f"t{n % 3}", network_in=0.1 + n, follower={"network_in": 0.3 * n}) for n, at in enumerate(lists)]
    made = Trial([1, 2, 3, 4], rows, usage(bound=0.1), topics)
    problem, state = made.compiled.problem, made.state
    pool = pool_of(problem, state, np.array([0]), np.arange(4), Prices(1.0, 1.0), 10)
    before = [column.copy() for column in (state.replicas, state.lead, state.load, state.units, state.topic_count)]
    spent, out = paid_for(problem, state, pool), count_out(problem, state, pool)
    there = int(state.replicas[0, 0])
    others = [b for b in range(4) if b not in state.replicas[0]]
    j = next(e for e in range(2, 48) if there not in state.replicas[e // 2] and state.replicas[e // 2, e % 2] == others[0])
    i, j, to = {"move": (0, -1, others[0]), "swap": (0, j, others[0]), "leadership": (1, 0, 0)}[change]
    send(problem, state, i, j, to)
    assert paid_for(problem, state, pool) == spent + {"move": 1, "swap": 2, "leadership": 0}[change] * problem.cost[0]
    assert any(not np.array_equal(column, was) for column, was in zip((state.replicas, state.lead), before[:2], strict=True))
    undo(problem, state, i, j, there)
    for column, was in zip((state.replicas, state.lead, state.load, state.units, state.topic_count), before, strict=True):
        assert np.array_equal(column, was)
    assert (paid_for(problem, state, pool), count_out(problem, state, pool)) == (spent, out)


def test_brokers_that_leave_or_are_excluded_get_nothing() -> None:
    snapshot = cluster(100, 5_000, "b", 2, "draining")
    compiled = compiled_of(snapshot)
    state = balanced(compiled)
    others = compiled.problem.broker[:, STATE] != BrokerState.ACTIVE
    before = state.hosts[others].copy()
    repack(compiled.problem, state, 0)
    assert (state.hosts[others] <= before).all()


@pytest.mark.parametrize("others", [0, 2, 4])
def test_leaderships_change_places_where_nothing_may_be_copied(others: int) -> None:
    """Broker 1 leads two partitions of 25, broker 2 two of 15, where 40 is the mean: one transfer alone helps neither. The
    other brokers are at the mean."""
    loads = [(1, 25.0), (1, 25.0), (2, 15.0), (2, 15.0), *((3 + i, 40.0) for i in range(others))]
    partitions = [partition([b, {1: 2, 2: 1}.get(b, 1)], network_out=load, follower={}) for b, load in loads]
    made = Trial(list(range(1, 3 + others)), partitions, usage("network_out", bound=0.1))
    problem, state = made.compiled.problem, made.state
    assert standing_of(problem, state).low == 2
    held = np.sort(state.replicas, axis=1)
    balance(problem, state, 0, 400, np.ones(len(made.compiled.goals), np.int64), False)
    assert standing_of(problem, state).low == 2
    assert repack(problem, state, 0, False) > 0
    assert standing_of(problem, state).low == 0
    assert (np.sort(state.replicas, axis=1) == held).all()
    planned = plan(made.snapshot, made.parsed, PlanOptions(max_moves=0))
    assert left_by(planned) == []
    assert planned.summary.replica_moves == 0


def test_where_no_broker_is_outside_nothing_moves() -> None:
    compiled = compiled_of(cluster(10, 1_000, "d", 0))
    state = balanced(compiled)
    assert standing_of(compiled.problem, state).low == 0
    replicas = state.replicas.copy()
    assert repack(compiled.problem, state, 0) == 0
    assert np.array_equal(state.replicas, replicas)


@pytest.mark.parametrize("seed", [92, 93, 227, 259, 293])
def test_a_hard_limit_goes_before_target_ranges_that_all_brokers_miss(seed: int) -> None:
    """Few large partitions: a placement within the hard limit exists, and ranges of 2% are out of reach. A broker beyond the limit counts
    as many that are out of range; where it counted as one, it counted nothing beside brokers that are all out of range anyway."""
    r = np.random.default_rng(seed)
    brokers, count = int(r.integers(3, 5)), int(r.integers(5, 9))
    disk, network, at = (r.integers(low, high, count).tolist() for low, high in ((1, 30), (1, 30), (0, brokers)))
    limit = float(np.ceil(sum(disk) / brokers * 1.06))
    least = min(np.bincount(where, disk, brokers).max() for where in product(range(brokers), repeat=count))
    assert least <= limit < np.bincount(at, disk, brokers).max()
    made = Trial(
        [{"id": b, "capacity": {"disk": limit}} for b in range(brokers)],
        [partition([b], disk=float(x), network_in=float(y)) for b, x, y in zip(at, disk, network, strict=True)],
        {"kind": "capacity", "resource": "disk", "limit": 1.0, "name": "disk"}, usage(bound=0.02), usage("replicas", bound=0.02),
    )  # fmt: skip
    assert [g.name for g in plan(made.snapshot, made.parsed).goals if g.hard and g.after is not None and g.after.violations] == []
