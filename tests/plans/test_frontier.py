"""What each part of a plan would buy: the steps are counted here from the actions themselves."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cluster_model.files import read_snapshot
from goals.document import load_goals
from optimizer.frontier import with_budgets
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.report import render_frontier
from optimizer.report.units import size

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def made() -> Plan:
    return plan(read_snapshot(EXAMPLES / "skewed-12-brokers.json.gz"), load_goals(EXAMPLES / "goals.yaml"))


def test_it_starts_with_nothing_and_ends_with_the_whole_plan(made: Plan) -> None:
    first, last = made.frontier[0], made.frontier[-1]
    assert (first.actions, first.replica_moves, first.leadership_changes, first.bytes_to_move) == (0, 0, 0, 0)
    assert (last.actions, last.replica_moves, last.leadership_changes, last.bytes_to_move) == (
        made.summary.actions, made.summary.replica_moves, made.summary.leadership_changes, made.summary.bytes_to_move,
    )  # fmt: skip
    assert last.brokers_in_band == sum(not b.violates for b in made.brokers)
    assert first.brokers_in_band == sum(all(s >= 1.0 for s in b.scores_before.values()) for b in made.brokers)


def test_each_step_is_where_so_many_actions_lead(made: Plan) -> None:
    scores = {b.id: dict(b.scores_before) for b in made.brokers}
    soft = {g.name: g.weight for g in made.goals if not g.hard}
    start: dict[tuple[str, int], tuple[int, ...]] = {}
    now: dict[tuple[str, int], tuple[int, ...]] = {}
    done = 0
    assert len(made.frontier) > 10
    for step in made.frontier:
        for action in made.actions[done : step.actions]:
            for name, goal in action.goal_scores.items():
                for broker, score in goal.after.items():
                    scores[broker][name] = score
            for c in action.changes:
                start.setdefault((c.topic, c.partition), c.replicas_before)
                now[c.topic, c.partition] = c.replicas_after
        done = step.actions
        assert step.replica_moves == sum(len(set(now[p]) - set(start[p])) for p in now)
        assert step.brokers_in_band == sum(all(s >= 1.0 for s in of.values()) for of in scores.values())
        assert step.violations == sum(s < 1.0 for of in scores.values() for s in of.values())
        total = sum(soft[name] * of[name] for of in scores.values() for name in soft)
        assert step.balance == pytest.approx(total / (sum(soft.values()) * len(scores)))
        assert step.worst == min(of[name] for of in scores.values() for name in soft)


def test_an_empty_plan_has_nothing_to_offer() -> None:
    snapshot = read_snapshot(EXAMPLES / "three-brokers.json")
    made = plan(snapshot, load_goals(None, "default"), PlanOptions(max_moves=0, exclude_topics=("*",)))
    assert [step.actions for step in made.frontier] == [0]
    page = StringIO()
    render_frontier(made, Console(file=page, width=120))
    assert "no budget would buy" in page.getvalue()


@pytest.mark.parametrize(("width", "gone"), [(80, set()), (60, {"violations", "worst score"}), (30, {"moves", "in band", "leaders"})])
def test_on_a_narrow_terminal_columns_go_and_none_is_cut(made: Plan, width: int, gone: set[str]) -> None:
    """Numbers that end in … say nothing."""
    page = StringIO()
    render_frontier(made, Console(file=page, width=width))
    table = [line for line in page.getvalue().splitlines() if line.rstrip().endswith(" balance") or "█" in line]
    assert all(len(line.rstrip()) <= width for line in table)
    assert "…" not in page.getvalue()
    assert not [name for name in gone if name in table[0]]
    assert size(made.summary.bytes_to_move) in table[-1]
    assert "1.0000" in table[-1]
    assert ("violations" in table[0]) == (width == 80)


@pytest.mark.parametrize(("width", "told"), [(80, True), (60, False)])
def test_violations_are_explained_where_the_column_stands(made: Plan, width: int, told: bool) -> None:
    page = StringIO()
    render_frontier(made, Console(file=page, width=width))
    assert ("Violations: brokers that do not meet a goal" in " ".join(page.getvalue().split())) is told


def test_the_table_says_what_most_of_the_balance_would_take(made: Plan) -> None:
    page = StringIO()
    render_frontier(made, Console(file=page, width=140))
    text = page.getvalue()
    assert "Nine tenths of the gain in balance would take" in " ".join(text.split())
    assert text.count("█" * 40) >= 1
    assert f"{made.summary.replica_moves:,}" in text


def test_a_plan_that_copies_nothing_has_no_share_of_its_bytes() -> None:
    snapshot = read_snapshot(EXAMPLES / "skewed-12-brokers.json.gz")
    demoted = plan(snapshot, load_goals(None, "default"), PlanOptions(demote_brokers=(1,)))
    page = StringIO()
    render_frontier(demoted, Console(file=page, width=120))
    assert demoted.summary.actions
    assert "Nine tenths" not in page.getvalue()


def test_with_budgets_each_step_is_what_a_plan_for_its_bytes_reaches(made: Plan) -> None:
    """Nine tenths of the gain stood at 99% of the bytes, and what is free at a third of them: the curve was of the parts of one plan."""
    snapshot, goals = read_snapshot(EXAMPLES / "skewed-12-brokers.json.gz"), load_goals(EXAMPLES / "goals.yaml")
    steps = with_budgets(made, PlanOptions(), lambda options: plan(snapshot, goals, options)).frontier
    assert (steps[0], steps[-1]) == (made.frontier[0], made.frontier[-1])
    assert steps[1].bytes_to_move == 0 < steps[1].leadership_changes
    middle = steps[len(steps) // 2]
    again = plan(snapshot, goals, PlanOptions(max_bytes=middle.bytes_to_move)).frontier[-1]
    assert (again.violations, again.balance) == (middle.violations, middle.balance)
    for step in steps:
        assert step.balance > max(part.balance for part in made.frontier if part.bytes_to_move <= step.bytes_to_move) - 0.01
    assert with_budgets(replace(made, stopped=True), PlanOptions(), lambda _: made).frontier is made.frontier


def test_budgets_are_moves_where_nothing_is_copied() -> None:
    snapshot, goals = read_snapshot(EXAMPLES / "skewed-12-brokers.json.gz"), load_goals(EXAMPLES / "goals.yaml")
    shared = replace(snapshot, storage="shared")
    whole = plan(shared, goals)
    steps = with_budgets(whole, PlanOptions(), lambda options: plan(shared, goals, options)).frontier
    assert whole.summary.bytes_to_move == 0 < whole.summary.replica_moves
    assert len({step.replica_moves for step in steps}) > 5
    page = StringIO()
    render_frontier(replace(whole, frontier=steps), Console(file=page, width=200))
    assert "give its moves as --max-moves" in page.getvalue()
