"""What a person who waits for a plan sees, and gets after Ctrl-C."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cluster_model.files import read_snapshot
from cluster_model.snapshot import Snapshot
from goals.document import load_goals
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.planner import plan
from optimizer.report import render_frontier, to_html, to_json
from optimizer.report.verdict import verdict
from tests.assembled.commands.command_line import finished, process
from tests.clusters.synthetic import cluster
from trimtab.planning import planned, stop_on_request
from trimtab.story import Story

EXAMPLES = Path(__file__).parents[3] / "examples"
GOALS = load_goals(None, "default")


class Heard(logging.Handler):
    """Waits until the first Ctrl-C is answered, which another thread does."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "best plan so far" in record.getMessage():
            self.answered.set()


def interrupt(_: int) -> None:
    heard, log = Heard(), logging.getLogger("trimtab")
    log.addHandler(heard)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        assert heard.answered.wait(timeout=60)
    finally:
        log.removeHandler(heard)


def stoppable(snapshot: Snapshot, told: Callable[[int], None], **options: Any) -> Plan:
    with stop_on_request() as asked:
        return planned(snapshot, GOALS, PlanOptions(**options), Story(), told, asked=asked)


def marked(made: Plan) -> bool:
    return any("best plan so far" in note for note in made.notes)


WHEN_IT_PLANS = """
import os, signal, threading, time
def press() -> None:
    while all(thread.name != "planning" for thread in threading.enumerate()):
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
"""


def test_what_a_solver_prints_is_not_among_the_data(capfd: pytest.CaptureFixture[str]) -> None:
    """Policies that level counts call scipy's solver, which may print a line of its own on stdout."""
    printed: list[int] = []
    snapshot = read_snapshot(EXAMPLES / "three-brokers.json")
    planned(snapshot, GOALS, PlanOptions(), Story(), lambda low: printed.append(os.write(1, b"HiGHS\n")))
    assert (bool(printed), capfd.readouterr().out) == (True, "")


def test_ctrl_c_ends_at_once_without_a_plan() -> None:
    """Also in a phase of the search that is compiled and takes minutes: here one that ends only afterwards."""
    given_up = threading.Event()

    def press(low: int) -> None:
        if not given_up.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            assert given_up.wait(timeout=60)

    with pytest.raises(KeyboardInterrupt):
        planned(read_snapshot(EXAMPLES / "three-brokers.json"), GOALS, PlanOptions(), Story(), press)
    given_up.set()


@pytest.mark.parametrize("asked", [False, True])
def test_after_ctrl_c_the_command_ends_with_130_and_writes_a_plan_only_where_asked(tmp_path: Path, asked: bool) -> None:
    """A script that reads an empty plan and exit code 0 takes the cluster for balanced."""
    out = tmp_path / "plan.json"
    option = ["--keep-partial"] if asked else []
    ended = finished(
        process("plan", "--snapshot", EXAMPLES / "skewed-12-brokers.json.gz", "--out", out, *option, before=WHEN_IT_PLANS)
    )
    assert ended.code == 130, ended.err
    assert out.exists() == asked
    assert ("stopping with the best plan so far" in ended.err) == asked
    if asked:
        assert json.loads(out.read_text())["stopped"] is True
    else:
        assert "interrupted" in ended.err


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.parametrize("when", ["gc.freeze", "os.fsync"], ids=["the search has just ended", "the first file is being written"])
def test_ctrl_c_when_the_plan_is_there_does_not_lose_it(tmp_path: Path, when: str, presses: int) -> None:
    """Hours of searching were lost where Ctrl-C came a moment too late; a second Ctrl-C still gives up."""
    outs = [tmp_path / "plan.json", tmp_path / "moves.json"]
    press = f"""
import gc, os, signal
def press(*arguments) -> None:
    {when} = lambda *arguments: None
    for _ in range({presses}):
        os.kill(os.getpid(), signal.SIGINT)
{when} = press
"""
    ended = finished(
        process("plan", "-s", EXAMPLES / "three-brokers.json", "--keep-partial", *(f"-o{out}" for out in outs), before=press)
    )
    assert (ended.code, [out.exists() for out in outs]) == (130, [presses == 1] * 2), ended.err
    assert sorted(tmp_path.iterdir()) == (sorted(outs) if presses == 1 else []), "nothing half written"
    assert ("interrupted" in ended.err) == (presses == 2)


def test_after_ctrl_c_before_the_search_the_plan_is_empty_and_says_so() -> None:
    made = stoppable(read_snapshot(EXAMPLES / "three-brokers.json"), interrupt)
    assert not made.actions
    assert marked(made)


def test_after_ctrl_c_in_the_middle_the_plan_is_what_was_found_till_then() -> None:
    told: list[int] = []
    for seed in range(20):
        snapshot, told = cluster(100, 4_000, "b", seed), []
        plan(snapshot, GOALS, watch=lambda low, told=told: told.append(low) is None)  # type: ignore[misc]
        if told[1] > 0:  # the first round leaves a broker outside
            break
    heard: list[int] = []

    def second(low: int) -> None:
        heard.append(low)
        if len(heard) == 2:
            interrupt(low)

    made = stoppable(snapshot, second)
    answers = iter([True, False])
    till_then = plan(snapshot, GOALS, watch=lambda low: next(answers))
    whole = plan(snapshot, GOALS)
    assert heard == told[:2]
    assert 0 < heard[1] < heard[0] == 100
    assert sum(bool(b.violates) for b in made.brokers) == heard[1]
    assert list(made.actions) == list(till_then.actions)
    assert 0 < len(made.actions) < len(whole.actions)
    assert marked(made)
    assert not marked(whole)


def test_a_second_ctrl_c_gives_up() -> None:
    """At once, also in a phase of the search that is compiled and takes minutes: here one that ends only afterwards."""
    given_up = threading.Event()

    def twice(low: int) -> None:
        interrupt(low)
        os.kill(os.getpid(), signal.SIGINT)
        assert given_up.wait(timeout=60)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        stoppable(read_snapshot(EXAMPLES / "three-brokers.json"), twice)
    given_up.set()
    assert signal.getsignal(signal.SIGINT) is before


def test_what_fails_in_the_search_fails_here() -> None:
    def broken(low: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        planned(read_snapshot(EXAMPLES / "three-brokers.json"), GOALS, PlanOptions(), Story(), broken)


def test_a_plan_that_was_stopped_does_not_say_that_nothing_more_can_be_done() -> None:
    """An operator who reads "a hard goal cannot be met" buys brokers, and "nothing acceptable was found" widens bands."""
    snapshot = read_snapshot(EXAMPLES / "three-brokers.json")
    made = stoppable(snapshot, interrupt, remove_brokers=(3,))
    assert made.stopped
    assert {g.status for g in made.goals if g.hard and g.after is not None and g.after.violations} == {"violated"}
    assert all("planning was stopped" in b.why for b in made.brokers if b.why)
    assert any(b.why for b in made.brokers)
    assert not made.cannot_be_emptied
    said = verdict(made)
    assert said.tone == "stopped"
    assert "Planning was stopped before anything was found, so the plan is empty" in said.sentence
    assert "cannot be met" not in said.sentence
    assert "acceptable" not in said.sentence
    assert json.loads(to_json(made))["stopped"] is True
    assert "A hard goal cannot be met" not in to_html(made)
    page = StringIO()
    render_frontier(made, Console(file=page, width=120))
    assert "stopped before anything was found" in page.getvalue()
    assert "stopped" not in to_json(plan(snapshot, GOALS))
