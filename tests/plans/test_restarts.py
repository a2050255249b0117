"""How long a small problem is searched: with other seeds until one is no better, or for the cheapest plan, and never in a circle.

A caller that makes thousands of plans may ask for fewer seeds of each; the plan says that it did.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from goals.document import load_goals, parse_goals
from optimizer.best_try import after_plan
from optimizer.compile import compile_problem
from optimizer.course import Placement
from optimizer.options import PlanOptions
from optimizer.parameters import ENDLESS, MOST_ROUNDS
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.prefixes import undone_of
from optimizer.report import to_json
from optimizer.search import search
from optimizer.spending import affordable_search
from optimizer.whatif import apply_whatifs
from optimizer.worth import worthwhile_search
from tests.clusters.goals import goals_text
from tests.clusters.synthetic import Scenario
from tests.clusters.synthetic import cluster as synthetic
from tests.oracle.clusters import case_of
from tests.oracle.runs import BUDGETS, deviations, plan_document, plan_options
from tests.unit.optimizer.scenarios import cluster
from tests.unit.optimizer.test_worth import carried_out

SMALL = {"most_brokers": 12, "per_broker": 15}


def test_fewer_seeds_are_tried_and_the_plan_says_so() -> None:
    """Replays of the backtest would take twice as long with the seeds of a small cluster."""
    r = np.random.default_rng(0)
    sizes = r.pareto(1.5, (2, 30)) + 0.1
    partitions = [([1 + n % 7], {"disk": float(sizes[0, n]), "network_in": float(sizes[1, n])}) for n in range(30)]
    snapshot, goals, looks = build_snapshot(cluster(list(range(1, 8)), partitions)), load_goals(None, "default"), [0, 0]

    def counting(n: int, low: int) -> bool:
        looks[n] += 1
        return True

    usual = plan(snapshot, goals, PlanOptions(), lambda low: counting(0, low))
    quick = plan(snapshot, goals, PlanOptions(restarts=1), lambda low: counting(1, low))
    many = plan(snapshot, goals, PlanOptions(restarts=99))
    assert looks[1] < looks[0]
    assert list(many.actions) == list(usual.actions)
    assert json.loads(to_json(quick))["options"]["restarts"] == 1
    assert "restarts" not in json.loads(to_json(usual))["options"]


@pytest.mark.parametrize("seed", [9547, 9553, 33])
def test_rounds_do_not_go_in_a_circle(seed: int) -> None:
    """What cannot be reached depends on the placement: rounds went back and forth between two, each better by what its start aimed at."""
    looks = 0

    def count(low: int) -> bool:
        nonlocal looks
        looks += 1
        return True

    case = case_of(seed, per_broker=40)
    goals = parse_goals(json.dumps(case.goals), "goals.yaml")
    plan(build_snapshot(case.snapshot), goals, replace(plan_options(case.acceptance, case.options), restarts=1), count)
    assert looks < MOST_ROUNDS


def test_goals_on_topics_are_no_obstacle_where_a_hard_limit_stays_broken() -> None:
    """Their columns are those of topics, of which there may be more than loads."""
    case = case_of(2348)
    goals = parse_goals(json.dumps(case.goals), "goals.yaml")
    assert plan(build_snapshot(case.snapshot), goals, plan_options(case.acceptance, case.options)).goals


@pytest.mark.parametrize("seed", [7701, 7704, 7716])
def test_a_search_goes_on_where_its_end_aims_at_more(seed: int) -> None:
    """A partition may be larger than the ranges of its broker set. What could be reached at the start was reached, and planning again found
    56 leadership changes: at the end more could be reached."""
    snapshot = synthetic(30, 900, "d" if seed % 2 else "b", seed, "heavy")
    sets = [{"name": "a", "brokers": list(range(1, 14)), "topics": snapshot.topics[1::2]}, {"name": "b", "brokers": list(range(14, 31))}]
    asked = [{"kind": "usage_distribution", "resource": x} for x in ("replicas", "leaders", "network_in", "network_out", "disk")]
    goals = parse_goals(json.dumps({"version": 1, "goals": asked, "constraints": {"broker_sets": sets}}), "test")
    made = plan(snapshot, goals, PlanOptions())
    assert len(plan(carried_out(snapshot, made), goals, PlanOptions()).actions) == 0


@pytest.mark.parametrize(("seed", "size"), [(18, {}), (76, {}), *((seed, SMALL) for seed in (1100228, 1100241, 1100260, 1100322))])
def test_a_plan_without_a_budget_leaves_no_more_that_must_be_done_than_one_with_a_large_one(seed: int, size: dict[str, int]) -> None:
    """A budget goes to repairs first. Without one, balance took the room that they needed: replicas stayed on dead brokers, and brokers
    missed 10 hard goals instead of 7, or 7 instead of 6."""
    case = case_of(seed, **size)
    options = plan_options(case.acceptance, {name: value for name, value in case.options.items() if name not in BUDGETS})
    snapshot, goals = build_snapshot(case.snapshot), parse_goals(json.dumps(case.goals), "goals.yaml")
    imagined = apply_whatifs(snapshot, goals, options)
    compiled = compile_problem(imagined, goals, options)

    def left(made: Plan) -> tuple[float, ...]:
        return undone_of(compiled, after_plan(imagined, compiled, made))[:3]

    whole = plan(snapshot, goals, options)
    assert left(whole) <= left(plan(snapshot, goals, replace(options, max_moves=10**6)))
    again = replace(options, add_brokers=(), scale_load=(), replication_factor=())
    assert list(plan(carried_out(imagined, whole), goals, again).actions) == []


@pytest.mark.parametrize(
    ("variant", "seed", "most"), [("limits-hard", 1481, (0, 0)), ("racks-small", 1481, (0, 34)), ("racks-small", 1483, (0, 90))]
)
def test_little_room_in_a_small_cluster_is_used_as_with_a_large_budget(variant: str, seed: int, most: tuple[int, int]) -> None:
    """Two replicas stayed on a removed broker. 52 and 136 stayed in crowded racks, of which 20 and 56 could leave."""
    snapshot, goals = synthetic(20, 400, "c", seed, variant), parse_goals(goals_text(variant, 0.1), "goals.yaml")
    compiled = compile_problem(snapshot, goals, PlanOptions())
    assert undone_of(compiled, after_plan(snapshot, compiled, plan(snapshot, goals, PlanOptions())))[:2] <= most


def test_a_stop_while_the_lists_of_a_large_budget_are_made_loses_nothing() -> None:
    """The plan that was made before them is kept, or a better list."""
    case = case_of(1100322, **SMALL)
    options = plan_options(case.acceptance, {name: value for name, value in case.options.items() if name not in BUDGETS})
    snapshot, goals = build_snapshot(case.snapshot), parse_goals(json.dumps(case.goals), "goals.yaml")
    imagined = apply_whatifs(snapshot, goals, options)
    compiled = compile_problem(imagined, goals, options)
    at = Placement(compiled.replicas, compiled.lead)
    without_lists = undone_of(compiled, at.after(worthwhile_search(compiled, options).rounds).state(compiled))[:3]
    first: list[int] = []
    every: list[int] = []

    def watch(looks: list[int], last: int = 10**6) -> Callable[[int], bool]:
        def look(low: int) -> bool:
            looks.append(low)
            return len(looks) < last

        return look

    worthwhile_search(compiled, options, watch(first))
    whole = affordable_search(compiled, options, watch(every))
    assert len(first) < len(every)
    assert undone_of(compiled, at.after(whole.rounds).state(compiled))[:3] < without_lists
    for last in np.linspace(len(first) + 1, len(every) - 1, 6).astype(int):
        found = affordable_search(compiled, options, watch([], last))
        assert found.stopped
        assert undone_of(compiled, at.after(found.rounds).state(compiled))[:3] <= without_lists


def test_an_end_that_leaves_only_hard_goals_that_no_placement_meets_is_told_as_it_is() -> None:
    """The attempt that puts repairs and hard goals first came after it, and its end was told instead."""
    case = case_of(140644, most_brokers=3, per_broker=12).without(acceptance="potential")
    assert deviations(case, plan_document(case)) == []


def test_replicas_that_left_dead_brokers_in_order_are_not_placed_again() -> None:
    """Excluded topics move to repair alone. Their replicas had found their place, and were given another because some had found none."""
    case = case_of(123761)
    assert deviations(case, plan_document(case)) == []


@pytest.mark.parametrize("seed", [590, 735, 1775])
def test_with_a_single_seed_too_the_search_goes_on_until_no_attempt_finds_more(seed: int) -> None:
    """Of large clusters, and with `restarts=1`, one seed is tried. From its end, the attempt that puts repairs first found more."""
    case = case_of(seed, most_brokers=20, per_broker=20)
    snapshot, goals = build_snapshot(case.snapshot), parse_goals(json.dumps(case.goals), "goals.yaml")
    options = replace(plan_options(case.acceptance, case.options), restarts=1)
    made = plan(snapshot, goals, options)
    assert len(made.actions) > 0
    assert len(plan(carried_out(snapshot, made), goals, options).actions) == 0


@pytest.mark.parametrize("scenario", ["b", "d"])
def test_of_several_plans_that_leave_nothing_to_do_the_cheapest_is_taken(scenario: Scenario) -> None:
    """Another seed needed 10% less in every third cluster of 20 brokers with 400 replicas: the first plan was taken."""
    goals, total = parse_goals(goals_text("even", 0.1), "test"), np.zeros(2)
    for seed in range(8):
        snapshot = synthetic(20, 400, scenario, seed)
        one, several = (plan(snapshot, goals, PlanOptions(restarts=most)).summary for most in (1, None))
        mean = float(snapshot.vectors("disk")[0].mean())
        cost = [each.bytes_to_move + 3.0 * mean * each.replica_moves for each in (one, several)]
        assert cost[1] <= cost[0] * (1.0 + 1e-9)
        total += cost
    assert total[1] < 0.97 * total[0]


@pytest.mark.parametrize(("replicas", "scenario", "seeds"), [(400, "d", {9}), (400, "b", set(range(3, 9))), (5_000, "b", {1})])
def test_the_fewer_changes_a_plan_has_the_more_seeds_are_tried(
    monkeypatch: pytest.MonkeyPatch, replicas: int, scenario: Scenario, seeds: set[int]
) -> None:
    """As many other seeds as 500 changes allow, at most eight. The search ends with the cheapest, also if that was not the last."""
    found: list[search.Chain] = []
    descend = search.descend

    def noted(*given: Any) -> search.Chain:
        found.append(descend(*given))
        return found[-1]

    monkeypatch.setattr(search, "descend", noted)
    snapshot, goals = synthetic(20, replicas, scenario, 3), parse_goals(goals_text("even", 0.1), "test")
    compiled = compile_problem(snapshot, goals, PlanOptions())
    made = search.search(compiled, PlanOptions())
    assert len(found) in seeds
    best = min(found, key=lambda chain: chain.worth)
    assert all(chain.is_perfect for chain in found)
    assert [*map(id, made.rounds)] == [*map(id, best.rounds)]
    assert np.array_equal(np.sort(made.end.replicas, axis=1), np.sort(best.replicas, axis=1))
    led, best_led = (np.take_along_axis(each.replicas, each.lead[:, None], axis=1) for each in (made.end, best))
    assert np.array_equal(led, best_led)


def test_where_repairs_first_leaves_less_no_other_seed_is_tried_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """14 other seeds were tried before it."""
    found: list[tuple[tuple[int | None, int], search.Chain]] = []
    descend = search.descend

    def noted(*given: Any) -> search.Chain:
        found.append(((given[5].max_moves, given[5].seed), descend(*given)))
        return found[-1][1]

    monkeypatch.setattr(search, "descend", noted)
    snapshot, goals = synthetic(20, 400, "b", 1451, "racks-small"), parse_goals(goals_text("racks-small", 0.1), "test")
    search.search(compile_problem(snapshot, goals, PlanOptions()), PlanOptions())
    tried, chains = zip(*found[:3], strict=True)
    assert chains[1].worth < chains[0].worth
    assert tried == ((None, 0), (ENDLESS, 0), (None, 0))


def test_a_stop_while_cheaper_plans_are_looked_for_leaves_a_plan_that_is_done() -> None:
    """The first seed's plan brought every broker into range: it is not half done because another seed was stopped."""
    looks: list[int] = []

    def stop_after_the_first(low: int) -> bool:
        looks.append(low)
        return 0 not in looks[:-1]

    made = plan(synthetic(20, 400, "d", 3), parse_goals(goals_text("even", 0.1), "test"), PlanOptions(), stop_after_the_first)
    assert 0 in looks[:-1]
    assert not made.stopped
    assert all(goal.status == "satisfied" for goal in made.goals)
