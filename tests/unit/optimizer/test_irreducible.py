"""What no plan can reach is not aimed at: brokers with very large or immovable partitions, and what these leave the others."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.placement.commit import build_state
from optimizer.planner import plan
from optimizer.problem import HIGH, LOW, SPREAD
from optimizer.search import irreducible, search
from optimizer.search.irreducible import Aim, within_reach
from tests.unit.optimizer.actions import Trial, partition, usage


def with_giant(giant: float, *, ordinary: float = 10.0, count: int = 9) -> Trial:
    """Broker 1 leads one partition of `giant`, brokers 2 to 10 one ordinary load of `ordinary` in ten parts each."""
    rows = [partition([1], network_in=giant)]
    rows += [partition([2 + n % count], network_in=ordinary / 10) for n in range(10 * count)]
    return Trial(list(range(1, count + 2)), rows, usage(bound=0.1))


def test_a_broker_with_a_partition_larger_than_its_band_may_hold_that() -> None:
    made = with_giant(50.0)
    table = within_reach(made.compiled.problem, made.state).table
    assert table[0, 0, HIGH] >= 50.0
    assert np.isfinite(table[0, 0, HIGH])
    assert (table[1:, 0, HIGH] == made.compiled.problem.table[1:, 0, HIGH]).all()


def test_the_others_aim_at_what_it_leaves_them() -> None:
    made = with_giant(50.0)
    lower = within_reach(made.compiled.problem, made.state).table[1:, 0, LOW]
    assert (lower < made.compiled.problem.table[1:, 0, LOW]).all()
    assert (lower <= 10.0).all()  # what each has


def test_where_every_partition_fits_a_band_the_problem_stays_itself() -> None:
    made = with_giant(10.0)
    assert within_reach(made.compiled.problem, made.state) is made.compiled.problem


def test_the_middle_of_a_band_counts_where_it_can_be_had() -> None:
    made = with_giant(50.0)
    before, after = made.compiled.problem.force, within_reach(made.compiled.problem, made.state).force
    assert (after[:, SPREAD] <= before[:, SPREAD]).all()


@pytest.mark.parametrize("hot", [3, 4])
def test_hot_partitions_on_one_broker_are_dealt_out(hot: int) -> None:
    """One of ten brokers leads several partitions of 150 % of the mean each: leadership changes alone leave one on each."""
    rest = (10.0 - 1.5 * hot) / 9
    loads = [([1, 2 + n], 1.5) for n in range(hot)] + [([b, 1 + b % 10], rest / 10) for b in range(2, 11) for _ in range(10)]
    rows = [partition(on, network_in=0.0, network_out=load, follower={"network_out": 0.0}) for on, load in loads]
    made = Trial(list(range(1, 11)), rows, usage("network_out", bound=0.1))
    found = plan(made.snapshot, parse_goals(json.dumps(made.goals), "test"), PlanOptions())
    assert found.actions
    after = [b.after["network_out"] for b in found.brokers]
    assert max(after) < 1.5 * hot


def test_large_partitions_that_may_not_move_are_all_allowed_for() -> None:
    """Two of an excluded topic on one broker: neither can go, so the broker is not asked to give them."""
    rows = [partition([1], topic="__x", network_in=50.0) for _ in range(2)]
    rows += [partition([2 + n % 9], network_in=1.0) for n in range(90)]
    made = Trial(list(range(1, 11)), rows, usage(bound=0.1), exclude_topics=["__*"])
    assert within_reach(made.compiled.problem, made.state).table[0, 0, HIGH] >= 100.0


@pytest.mark.parametrize(("topic", "broken"), [("__x", 0), ("t", 1)])
def test_a_hard_limit_that_what_may_not_move_breaks_keeps_no_search_going(monkeypatch: pytest.MonkeyPatch, topic: str, broken: int) -> None:
    """A limit of 80 and a partition of 90: if it may move, it counts as a limit that is left broken, and the search tries further."""
    parts = [partition([1], topic=topic, disk=90.0)] + [partition([2 + n % 3], disk=5.0) for n in range(24)]
    brokers = [{"id": b, "capacity": {"disk": 100.0}} for b in range(1, 5)]
    limit = {"kind": "capacity", "resource": "disk", "limit": 0.8, "hard": True}
    made = Trial(brokers, parts, limit, usage("disk", bound=0.1), exclude_topics=["__*"])
    ends: list[int] = []
    descend = search.descend

    def told(*given: Any) -> search.Chain:
        chain = descend(*given)
        ends.append(chain.reached.broken)
        return chain

    monkeypatch.setattr(search, "descend", told)
    found = plan(made.snapshot, parse_goals(json.dumps(made.goals), "test"), PlanOptions())
    assert found.hard_violations_left == 1
    assert set(ends) == {broken}


def test_of_two_large_partitions_that_may_move_one_has_to_go() -> None:
    rows = [partition([1], network_in=50.0) for _ in range(2)] + [partition([2 + n % 9], network_in=1.0) for n in range(90)]
    made = Trial(list(range(1, 11)), rows, usage(bound=0.1))
    assert within_reach(made.compiled.problem, made.state).table[0, 0, HIGH] < 50.0


def test_conflicts_are_looked_for_only_where_a_broker_is_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a million replicas that takes a second, where planning a level cluster again takes milliseconds."""
    asked: list[object] = []

    def none_found(problem: object, *_: object) -> tuple[()]:
        asked.append(problem)
        return ()

    monkeypatch.setattr(irreducible, "conflicts", none_found)
    level, skewed = (with_giant(giant) for giant in (10.0, 50.0))
    for made in (level, skewed, skewed):
        Aim(made.compiled.problem).at(made.state)
    assert len(asked) == 2
    aim = Aim(skewed.compiled.problem)
    aim.at(skewed.state)
    aim.at(skewed.state)
    assert len(asked) == 3


def test_what_repairs_changed_is_aimed_at_as_a_search_that_starts_there_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else planning again on the end of a plan could find more: conflicts depend on where partitions stand that move for repairs alone."""
    asked: list[int] = []

    def noted(_: object, replicas: np.ndarray, lead: np.ndarray) -> tuple[()]:
        asked.append(int(replicas[0, lead[0]]))
        return ()

    monkeypatch.setattr(irreducible, "conflicts", noted)
    rows = [partition([1], network_in=50.0)] + [partition([1 + n % 10], network_in=1.0, topic="u") for n in range(90)]
    made = Trial(list(range(1, 11)), rows, usage(bound=0.1), exclude_topics=["t"])
    aim, problem = Aim(made.compiled.problem), made.compiled.problem
    aim.at(made.state)
    moved = made.compiled.replicas.copy()
    moved[0, 0] = 4
    aim.at(build_state(problem, moved, made.compiled.lead))
    assert asked == [0, 4]


@pytest.mark.parametrize(("brokers", "each", "hot"), [(4, 10, 3), (10, 10, 3), (20, 10, 2), (50, 4, 3), (50, 10, 8)])
def test_a_hot_partition_beside_ordinary_load_ends_alone(brokers: int, each: int, hot: int) -> None:
    """Nothing else keeps that load on its broker, and the others have room for it; some of them may end above their range for it."""
    held = [partition([b], network_in=1.0) for b in range(1, brokers + 1) for _ in range(each)]
    made = Trial(list(range(1, brokers + 1)), [partition([1], network_in=float(hot * each)), *held], usage(bound=0.1))
    found = plan(made.snapshot, parse_goals(json.dumps(made.goals), "test"))
    assert found.brokers[0].after["network_in"] == pytest.approx(hot * each)


def test_what_comes_with_other_bands_may_stay_beside_a_hot_partition() -> None:
    """The broker has to keep 9 of 10 replicas, and each brings 10."""
    held = [partition([b], network_in=10.0) for b in range(1, 11) for _ in range(10)]
    made = Trial(list(range(1, 11)), [partition([1], network_in=300.0), *held], usage(bound=0.2), usage("replicas", bound=0.2))
    reached = within_reach(made.compiled.problem, made.state)
    low = made.compiled.problem.table[0, 1, LOW]
    assert reached.table[0, 0, HIGH] == pytest.approx(300.0 + low * 1000.0 / 101.0)
