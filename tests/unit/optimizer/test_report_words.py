"""Words and numbers of reports: units, names of goals, reasons, and the conditional mood."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from optimizer.plan import Change, Plan, as_written
from optimizer.report import to_html, to_markdown
from optimizer.report.labels import goal_labels
from optimizer.report.survey import flows, route, survey, type_words
from optimizer.report.units import amount, count, listing, percent, share_in_band, size, turn
from optimizer.report.verdict import verdict
from tests.unit.optimizer import plans
from tests.unit.optimizer.reports import text_of, visible
from tests.unit.optimizer.test_report_json import BUILDERS, named

CLAIMS = re.compile(
    r"\b(moved|was|were|has been|have been|transferred|reassigned|will|improves|migrated|succeeded)\b",
    re.IGNORECASE,
)


@pytest.mark.parametrize("build", BUILDERS, ids=named)
def test_nothing_claims_to_have_happened(build: Callable[[], Plan]) -> None:
    plan = build()
    for report in (to_markdown(plan), text_of(plan), text_of(plan, 140), visible(to_html(plan))):
        assert CLAIMS.findall(report) == []
        assert "nothing has changed" in " ".join(report.split())


def test_derived_names_are_shortened_where_that_stays_unambiguous() -> None:
    names = {"network_in": "usage_distribution-network_in", "leaders": "topic_distribution-leaders", "disk": "my-disk"}
    plan = plans.example_plan(goal_names=names)
    labels = goal_labels(plan)
    assert [labels[n] for n in names.values()] == ["network_in", "topic leaders", "my-disk"]
    assert re.search(r"^network_in +x1 ", text_of(plan), re.MULTILINE)
    clash = plans.example_plan(goal_names={**names, "disk": "network_in"})
    assert goal_labels(clash)["usage_distribution-network_in"] == "usage_distribution-network_in"


def test_many_limits_are_counted_rather_than_listed() -> None:
    plan = plans.example_plan()
    limits = tuple(
        replace(plans.rack_goal(3, 0, "satisfied"), name=f"limit-{i}", kind="capacity", resource=r)
        for i, r in enumerate(("disk", "cpu", "network_in", "network_out"))
    )
    v = verdict(replace(plan, goals=(*plan.goals, *limits)))
    assert "12 hard limits are exceeded (disk on 3 brokers, cpu on 3 brokers, network in on 3 brokers, …)" in v.situation
    assert "ends all 12 exceeded limits" in v.remedy
    worse = (*limits[:3], replace(limits[3], after=plans.rack_goal(3, 1, "violated").after))
    assert "ends 11 of 12 exceeded limits" in verdict(replace(plan, goals=(*plan.goals, *worse))).remedy


def test_a_reason_that_names_its_goal_is_not_given_the_goal_again() -> None:
    plan = plans.example_plan()
    last = replace(plan.brokers[11], why="network-in: the budget is used up")
    text = text_of(replace(plan, brokers=(*plan.brokers[:11], last)))
    assert "- broker 12: network-in: the budget is used up" in text
    assert "- broker 8 in network-in: irreducible" in text


def test_repairs_come_first_then_the_best_scores() -> None:
    plan = plans.example_plan()
    found = survey(plan, 30)
    assert [bool(a.repairs) for a in found.top] == sorted((bool(a.repairs) for a in found.top), reverse=True)
    rest = [a.score for a in found.top if not a.repairs]
    assert rest == sorted(rest, reverse=True)
    assert rest[0] == as_written(max(a.score for a in plan.actions if not a.repairs))
    assert found.types == {"move": 94, "leadership": 19, "swap": 19, "exchange": 18}
    assert sum(found.types.values()) == found.total == 150


def test_flows_add_up_to_the_proposals() -> None:
    plan = plans.example_plan()
    moving = flows(plan).values()
    assert sum(f.replicas_in for f in moving) == sum(f.replicas_out for f in moving) == plan.summary.replica_moves
    assert sum(f.leaders_in for f in moving) == plan.summary.leadership_changes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("t", 0, (1, 2), (3, 2), 1, 1), "replica 1 → 3"),
        (Change("t", 0, (1, 2), (2, 1), 1, 2), "leader 1 → 2"),
        (Change("t", 0, (1, 2), (3, 2), 1, 3), "replica 1 → 3, leader 1 → 3"),
        (Change("t", 0, (1, 2), (2, 1), 2, 2), "preferred leader 1 → 2"),
        (Change("t", 0, (1, 2), (2, 1), None, 2), "leader none → 2"),
        (Change("t", 0, (1, 2, 3), (1, 3, 2), 1, 1), "replica order"),
    ],
)
def test_a_change_is_told_in_words(change: Change, words: str) -> None:
    assert route(change) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (41_234_000_000, "41.2 GB"),
        (9_995_000, "9.99 MB"),
        (9_996_000, "10.0 MB"),
        (99_960_000, "100 MB"),
        (2_000_000_000_000, "2.00 TB"),
        (-5_000_000, "-5.00 MB"),
    ],
)
def test_sizes_have_three_digits(number: int, words: str) -> None:
    assert size(number) == words


def test_amounts_have_units() -> None:
    assert amount(84_200_000.0, "network_in") == "84.2 MB/s"
    assert amount(3.214, "cpu") == "3.21 cores"
    assert amount(12_400.0, "fetch_rate") == "12.4k req/s"
    assert amount(1412.0, "replicas") == "1,412"
    assert turn(26.8e6, 41.9e6, "network_in") == ("26.8", "41.9 MB/s")
    assert turn(597e9, 1.68e12, "disk") == ("597 GB", "1.68 TB")
    assert turn(5.0, 5.0, "cpu") == ("5 cores", "5 cores")


def test_percent_does_not_round_to_perfection() -> None:
    assert share_in_band(1.0) == "100%"
    assert share_in_band(0.9961) == "99.6%"
    assert share_in_band(0.99996) == ">99.9%"
    assert share_in_band(0.0) == "0%"
    assert share_in_band(0.0001) == "<0.1%"
    assert percent(0.0912) == "9.1%"
    assert percent(-0.42, signed=True) == "-42%"
    assert percent(0.0999, signed=True) == "+10%"
    assert percent(None) == "–"
    assert count(1, "broker") == "1 broker"
    assert count(1234, "broker") == "1,234 brokers"
    assert listing(["7"]) == "7"
    assert listing(["7", "9", "11"]) == "7, 9 and 11"
    assert listing([str(i) for i in range(9)]) == "0, 1, 2, 3, 4 and 4 more"


def test_several_changes_of_replication_are_in_the_plural() -> None:
    assert type_words({"replication": 2, "leadership": 1}) == "2 changes of replication, 1 leadership change"
    assert type_words({"replication": 1, "move": 3}) == "1 change of replication, 3 moves"
