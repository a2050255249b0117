"""The report fits the terminal: whole numbers, whole words, and no sign that steers it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from optimizer.plan import Plan
from optimizer.report import to_html, to_markdown
from tests.unit.optimizer import plans
from tests.unit.optimizer.reports import text_of
from tests.unit.optimizer.test_report_json import BUILDERS, named


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("build", BUILDERS, ids=named)
def test_no_line_of_the_terminal_report_is_too_long_or_cut_in_a_word(build: Callable[[], Plan], width: int) -> None:
    lines = text_of(build(), width).splitlines()
    assert max(map(len, lines)) <= max(width, len(f"Plan {build().plan_id}"))
    body = " ".join(" ".join(lines).split())
    assert build().plan_id in body


def test_eighty_columns_hold_whole_headings_and_numbers() -> None:
    text = text_of(plans.example_plan(), 80)
    goals = next(line for line in text.splitlines() if line.startswith("goal "))
    assert goals.split() == ["goal", "status", "violations", "in", "range", "worst", "deviation"]
    assert "network-in   x1    improved        9 → 2    25% → 83%        62% → 38%" in text


def test_spread_is_explained_where_the_column_stands() -> None:
    explained = "spread: standard deviation over the brokers"
    assert explained in text_of(plans.example_plan(), 120)
    assert explained not in text_of(plans.example_plan(), 80)


def test_violations_are_explained_in_every_form() -> None:
    plan, explained = plans.example_plan(), "iolations: brokers that do not meet the goal"
    for report in (text_of(plan, 80), text_of(plan, 140), to_html(plan), to_markdown(plan)):
        assert report.count(explained) == 1


@pytest.mark.parametrize("width", [80, 96, 112, 120, 160])
def test_no_number_of_a_broker_is_cut_at_any_width(width: int) -> None:
    names = {"network_in": "usage_distribution-network_out_of_the_ordinary", "disk": "d"}
    plan = plans.example_plan(14, 20, goal_names=names, racks=("availability-zone-1", None))
    text = text_of(plan, width)
    table = text[text.index("\nBrokers\n") : text.index("before  ● after")]
    head = table.splitlines()[2]
    assert {"broker", "rack", "before", "after", "mean"} <= set(head.split())
    assert ("outside in" in head) == (width >= 112)
    for b in plan.brokers:
        row = next(line for line in table.splitlines() if line.startswith(f"{b.id:>6}  "))
        assert len(re.findall(r"[+-]\d+(?:\.\d)?%|0%", row)) == 2
        assert "●" in row


def test_a_strip_shows_band_and_both_ends() -> None:
    row = next(line for line in text_of(plans.example_plan(), 80).splitlines() if line.startswith("    12  c"))
    assert row.endswith("░░│░░    ●────○       ")


def test_many_brokers_are_summed_up() -> None:
    text = text_of(plans.example_plan(60, 20), 80)
    assert "Brokers (the 20 worst of 60)" in text
    assert re.search(r"^40 more brokers: \d+ would be within their target range, \d+ outside\.$", text, re.MULTILINE)


def test_a_terminal_without_unicode_gets_ascii() -> None:
    for build in BUILDERS:
        assert text_of(build(), 80, encoding="ascii").isascii()


def test_user_text_neither_styles_nor_steers_the_terminal() -> None:
    plan = plans.hostile_plan()
    escape = replace(plan.actions[0], reason="\x1b[2J\x07[bold]would[/bold] lower", repairs=("rack_aware",))
    text = text_of(replace(plan, actions=(escape,)))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "[bold]would[/bold] lower" in text
    assert plans.HOSTILE in " ".join(text.split())


def test_markdown_tables_keep_their_columns_whatever_the_names() -> None:
    lines = to_markdown(plans.hostile_plan()).splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("| ---")]
    assert len(heads) == 3
    for head in heads:
        columns = len(re.findall(r"(?<!\\)\|", lines[head]))
        row = head
        while row < len(lines) and lines[row].startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", lines[row])) == columns
            row += 1
    assert not re.search(r"(?<!\\)<", "\n".join(lines))


def test_control_and_bidirectional_signs_reach_no_report() -> None:
    """U+202E in a rack's name would show the words after it backwards."""
    signs = "\x1b[2J\u202e\u200f\u2066\x85"
    plan = plans.example_plan(6, 20, racks=(f"a{signs}b", None))
    plan = replace(plan, cluster_id=signs, notes=(signs,), goals=(replace(plan.goals[0], explanation=signs), *plan.goals[1:]))
    actions = tuple(replace(a, reason=f"because {signs}") for a in plan.actions)
    plan = replace(plan, actions=actions)
    for report in (to_html(plan), to_markdown(plan), text_of(plan), text_of(plan, 140)):
        assert not set(report) & set(signs) - set("[2J")
        assert "a" in report
