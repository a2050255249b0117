"""What a person who waits for a plan sees, and gets after Ctrl-C."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from benchmarks.clusters import cluster
from cluster_model.files import read_snapshot
from goals.document import load_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from trimtab.planning import planned
from trimtab.story import Story

EXAMPLES = Path(__file__).parents[3] / "examples"
GOALS = load_goals(None, "default")


def interrupt(_: int) -> None:
    signal.raise_signal(signal.SIGINT)


def marked(made: Plan) -> bool:
    return any("best plan so far" in note for note in made.notes)


def test_after_ctrl_c_before_the_search_the_plan_is_empty_and_says_so() -> None:
    made = planned(read_snapshot(EXAMPLES / "three-brokers.json"), GOALS, PlanOptions(), Story(), interrupt)
    assert not made.actions
    assert marked(made)


def test_after_ctrl_c_in_the_middle_the_plan_is_what_was_found_till_then() -> None:
    snapshot = cluster(100, 50_000, "b")
    heard: list[int] = []

    def second(low: int) -> None:
        heard.append(low)
        if len(heard) == 2:
            interrupt(low)

    made = planned(snapshot, GOALS, PlanOptions(), Story(), second)
    whole = plan(snapshot, GOALS)
    assert heard[0] == 100
    assert 0 < heard[1] < 100
    assert sum(bool(b.violates) for b in made.brokers) == heard[1]
    assert 0 < len(made.actions) < len(whole.actions)
    assert list(made.actions[:20]) == list(whole.actions[:20])
    assert marked(made)
    assert not marked(whole)


def test_a_second_ctrl_c_gives_up() -> None:
    def twice(low: int) -> None:
        interrupt(low)
        interrupt(low)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        planned(read_snapshot(EXAMPLES / "three-brokers.json"), GOALS, PlanOptions(), Story(), twice)
    assert signal.getsignal(signal.SIGINT) is before
