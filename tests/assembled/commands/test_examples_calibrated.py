"""The example calibration, the goals that use it, and the page about tune: they do what they say."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from goals.calibration import calibration_text, load_calibration
from goals.document import load_goals
from tests.assembled.commands.command_line import REPOSITORY, CommandLine

EXAMPLES = REPOSITORY / "examples"


def test_the_example_is_as_a_job_would_write_it() -> None:
    text = (EXAMPLES / "calibration.yaml").read_text()
    assert calibration_text(load_calibration(EXAMPLES / "calibration.yaml")) == text.partition("\n")[2]


def test_goals_leave_to_it_what_they_do_not_write(trimtab: CommandLine) -> None:
    goals = load_goals(EXAMPLES / "goals-calibrated.yaml")
    assert goals.notes == ()
    bounds = {goal.name: getattr(goal, "bound", None) for goal in goals.goals}
    assert (bounds["network-in"], bounds["network-out"], bounds["disk"], bounds["replicas"]) == (0.14, 0.15, 0.05, 0.10)
    snapshot = EXAMPLES / "skewed-12-brokers.json.gz"
    ended = trimtab("plan", "--snapshot", snapshot, "--goals", EXAMPLES / "goals-calibrated.yaml", "--max-moves", "0", "--format", "json")
    assert ended.code == 0
    levelled = [goal for goal in json.loads(ended.out)["goals"] if goal["name"] == "network-in"]
    assert set(levelled[0]["from_calibration"]) == {"bound", "var", "weight"}


def test_the_page_shows_what_tune_prints(trimtab: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    page = Path("docs/tune.md").read_text()
    command, _, rest = page.partition("<!-- output: trimtab ")[2].partition(" -->\n```text\n")
    assert trimtab(*shlex.split(command)).out == rest.partition("```\n")[0]
