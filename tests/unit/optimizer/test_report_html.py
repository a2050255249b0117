"""The HTML page: one file that loads nothing, holds together, escapes all text, and bears large clusters."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest

from goals.score import distribution_score
from optimizer.plan import Plan
from optimizer.report import to_html
from optimizer.report.charts import _bins
from optimizer.report.curves import score_curve
from optimizer.report.html import MOST_ACTIONS
from optimizer.report.markup import Markup, el, join
from optimizer.report.scales import Scale, ticks
from tests.unit.optimizer import plans
from tests.unit.optimizer.test_report_json import BUILDERS, named

VOID = {"meta", "input", "br", "hr"}


class Page(HTMLParser):
    """Elements of a page, whether they close in order, and its scripts and headings."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()
        self.ids: list[str] = []
        self.refs: list[str] = []
        self.attributes: Counter[str] = Counter()
        self.scripts: list[str] = []
        self.errors: list[str] = []
        self.headings: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.note(tag, attrs)

    def note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        values = dict(attrs)
        self.attributes.update(values.keys())
        self.classes.update((values.get("class") or "").split())
        if values.get("id"):
            self.ids.append(str(values["id"]))
        self.refs += [str(v) for k, v in attrs if k in ("aria-labelledby", "for") or (k == "href" and (v or "")[:1] == "#")]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}> closes nothing at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if not self.open:
            return
        if self.open[-1] == "script":
            self.scripts[-1] += data
        if self.open[-1] in ("h1", "h2"):
            self.headings[data] = self.open[-1]


@pytest.mark.parametrize("build", BUILDERS, ids=named)
def test_page_is_whole(build: Callable[[], Plan]) -> None:
    text = to_html(build())
    page = Page(text)
    assert page.errors == []
    assert page.open == []
    assert text.startswith("<!DOCTYPE html>")
    assert list(page.headings.values()).count("h1") == 1
    assert len(page.ids) == len(set(page.ids))
    assert {ref.lstrip("#") for ref in page.refs} <= set(page.ids)


def test_what_an_action_repairs_is_said_once() -> None:
    """The tag named the goal, and the sentence beside it named it again as a violation."""
    plan = plans.example_plan()
    limit = next(g.name for g in plan.goals if g.hard)
    action = replace(
        plan.actions[0], repairs=(limit,), reason=f"would lower the violation of {limit}; would raise the lowest disk score from 0.1 to 0.2"
    )
    alone = replace(action, seq=2, reason=f"would lower the violation of {limit}")
    rows = re.findall(r'<td class="words">(<span class="badge some">repairs .*?)</td>', to_html(replace(plan, actions=(action, alone))))
    assert len(rows) == 2
    assert not any("lower the violation" in row for row in rows)
    assert sum(row.endswith("would raise the lowest disk score from 0.1 to 0.2") for row in rows) == 1


@pytest.mark.parametrize("build", BUILDERS, ids=named)
def test_page_loads_nothing(build: Callable[[], Plan]) -> None:
    text = to_html(build())
    page = Page(text)
    assert not re.search(r"(https?:)?//[\w.-]+\.\w", text)
    assert not re.search(
        r"@import|url\(|\bfetch\(|XMLHttpRequest|innerHTML|insertAdjacentHTML|document\.write|\beval\(", text
    )
    assert page.attributes["src"] == 0
    assert page.attributes["style"] == 0
    assert page.tags["link"] == page.tags["img"] == page.tags["iframe"] == 0
    assert not any(name.startswith("on") for name in page.attributes)
    assert "default-src 'none'" in unescape(text)


def test_user_text_stays_text() -> None:
    page = Page(to_html(plans.hostile_plan()))
    harmless = Page(to_html(plans.example_plan(6, 20)))
    assert page.tags["b"] == harmless.tags["b"] + 1  # of one more thing skipped, our own
    assert len(page.scripts) == 2
    data = json.loads(page.scripts[0])
    assert data["goals"][0] == plans.HOSTILE
    assert "onclick" not in page.attributes


def test_what_is_no_markup_is_escaped() -> None:
    assert el("p", "<b>&", title='"x"', hidden=True, lang=None) == '<p title="&quot;x&quot;" hidden>&lt;b&gt;&amp;</p>'
    assert join(["<", Markup("<"), None, ["&", Markup("&")]]) == "&lt;<&amp;&"
    assert el("rect", x=1.26, y=2.0) == '<rect x="1.3" y="2"/>'


def test_equal_plans_give_equal_pages() -> None:
    assert to_html(plans.example_plan()) == to_html(plans.example_plan())


def test_page_has_every_part() -> None:
    page = Page(to_html(plans.infeasible_plan()))
    for title in (
        "Goals",
        "Load of the brokers",
        "Scores",
        "What would stay unbalanced",
        "Actions",
        "Brokers",
        "Skipped, and remarks",
        "Options and identity",
    ):
        assert page.headings[title] == "h2"
    assert page.tags["table"] == 3
    assert page.tags["caption"] == 3
    assert page.attributes["scope"] >= 30


def test_a_bar_for_each_broker_before_and_after_and_a_flag_where_it_would_stay_out() -> None:
    page = Page(to_html(plans.example_plan()))
    assert page.classes["broker"] == 6 * 12
    assert page.classes["flag"] == 2
    assert page.classes["dot"] == 6 * 12 * 2


def test_a_broker_that_would_be_emptied_is_not_drawn_as_outside() -> None:
    page = Page(to_html(plans.draining_plan()))
    assert page.classes["broker"] == 6 * 13
    assert page.classes["flag"] == 2


def test_goal_scores_of_each_action_are_there_for_its_row() -> None:
    plan = plans.example_plan()
    data = json.loads(Page(to_html(plan)).scripts[0])
    assert list(data["actions"]) == [str(a.seq) for a in plan.actions]
    action = plan.actions[7]
    goal, score, brokers = data["actions"]["8"][2]
    name = data["goals"][goal]
    assert score == pytest.approx(action.goal_scores[name].score, rel=1e-3)
    assert {b: s for b, s, _ in brokers} == pytest.approx(dict(action.goal_scores[name].before), rel=1e-3)


def test_exact_bytes_are_a_title_of_the_round_ones() -> None:
    plan = plans.example_plan()
    assert f'title="{plan.actions[0].bytes_to_move:,} bytes"' in to_html(plan)
    assert f'title="{plan.summary.bytes_to_move:,} bytes; lower bound' in to_html(plan)


def test_a_plan_that_does_less_than_the_lower_bound_is_of_shows_no_bound_on_its_cards() -> None:
    """"11, lower bound 39" reads as a mistake: that bound is of plans that do all of it."""
    plan = plans.example_plan()
    least = replace(plan.lower_bounds, replica_moves=plan.summary.replica_moves + 1)
    assert f"lower bound {plan.lower_bounds.replica_moves}" in to_html(plan)
    assert f"lower bound {least.replica_moves}" not in to_html(replace(plan, lower_bounds=least)).split("<section")[0]


def test_what_is_proven_is_named() -> None:
    plan = plans.draining_plan()
    stuck = replace(plan, cannot_be_emptied=(3,))
    assert "Proven: a broker cannot be emptied" in to_html(stuck)
    assert "Proven: a hard goal cannot be met" in to_html(replace(stuck, goals=(replace(plan.goals[0], hard=True, status="infeasible"),)))


def test_a_thousand_brokers_and_150000_actions_stay_below_ten_megabytes() -> None:
    plan = plans.big_plan()
    text = to_html(plan)
    page = Page(text)
    assert len(text.encode()) < 10_000_000
    assert page.errors == []
    assert page.classes["more"] == MOST_ACTIONS
    assert "150,000 actions" in text
    assert f"Listed here are the {MOST_ACTIONS:,} that matter most" in text
    assert page.classes["broker"] <= 6 * 41  # histograms, not bars
    assert page.classes["dot"] < 6 * 600
    actions = plan.actions
    assert isinstance(actions, plans.LazyActions)
    assert actions.built == 150_000  # each is built once


def test_histogram_counts_every_broker() -> None:
    text = to_html(plans.example_plan(500, 3))
    first = text[text.index("<figure") : text.index("</figure>")]
    found = re.findall(r"of the mean: ([\d,]+) brokers? before, ([\d,]+) after", first)
    before, after = (sum(int(pair[i]) for pair in found) for i in (0, 1))
    assert before == after == 500


def test_brokers_outside_are_seen_among_many() -> None:
    plan = plans.example_plan(500, 3)
    for goal in plan.goals[:6]:
        drawing = score_curve(goal, plan.brokers, plan.bands[goal.name])
        assert drawing is not None
        out = sum(goal.name in b.violates for b in plan.brokers)
        assert f"{out} would be outside the target range" in drawing
        assert bool(out) == ('class="dot out"' in drawing)
    page = Page(to_html(plan))
    assert page.classes["flag"] >= sum(any(g.name in b.violates for b in plan.brokers) for g in plan.goals[:6])


def test_dots_stand_on_the_curve_and_brokers_off_it_are_not_hidden() -> None:
    plan = plans.example_plan()
    goal = plan.goals[0]
    drawing = score_curve(goal, plan.brokers, plan.bands[goal.name])
    assert drawing is not None
    assert "score 1.000 after" in drawing
    worst = plan.brokers[11]
    assert f"broker 12: +38%, score {worst.scores_after['network-in']:.3f} after" in drawing


def test_curve_takes_the_tail_that_the_scores_follow() -> None:
    plan = plans.example_plan()
    goal, bands = plan.goals[0], plan.bands["network-in"]
    mean = bands[12].mean
    far = replace(
        plan.brokers[11],
        before={"network_in": 3 * mean},
        scores_before={"network-in": float(distribution_score(3 * mean, mean, 0.1 * mean, 0.6 * mean, True, 0.0))},
    )
    literal = score_curve(goal, (*plan.brokers[:11], far), bands)
    by_bound = score_curve(
        goal,
        (
            *plan.brokers[:11],
            replace(
                far,
                scores_before={"network-in": float(distribution_score(3 * mean, mean, 0.1 * mean, 0.6 * mean, False, 0.0))},
            ),
        ),
        bands,
    )
    assert literal is not None
    assert by_bound is not None
    last = [re.findall(r"[\d.]+,([\d.]+)\"", d)[0] for d in (literal, by_bound)]
    assert float(last[0]) < float(last[1])  # the literal tail is higher here, so nearer the top


def test_a_goal_without_a_mean_has_no_curve() -> None:
    plan = plans.example_plan()
    assert score_curve(plan.goals[0], plan.brokers, {b.id: plans.band_of(0.0) for b in plan.brokers}) is None


def test_scales_and_ticks() -> None:
    assert ticks(0, 72e6, 5) == [0, 20e6, 40e6, 60e6]
    assert ticks(-0.63, 0.63, 8) == pytest.approx([-0.6, -0.4, -0.2, 0, 0.2, 0.4, 0.6])
    assert ticks(3, 3) == [3]
    assert ticks(0, 1.06, 5, whole=True) == [0, 1], "half a broker is none: 0, 0, 1 stood there"
    y = Scale(0, 10, 200, 0)
    assert (y(0), y(5), y(10), y(99)) == (200, 100, 0, 0)
    assert Scale(1, 1, 7, 9)(4) == 7


def test_one_goal_has_one_name_on_a_page() -> None:
    names = {resource: f"usage_distribution-{resource}" for resource in plans.MEANS}
    plan = plans.example_plan(goal_names=names)
    goals = tuple(replace(g, explanation=f"{g.name}: as {g.name}-of-another says") for g in plan.goals)
    text = to_html(replace(plan, goals=goals, notes=(f"see {names['network_in']}.",)))
    shown = unescape(re.sub(r"<[^>]*>", " ", re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)))
    assert set(re.findall(r"usage_distribution-[\w-]+", shown)) <= {f"{name}-of-another" for name in names.values()}
    assert "see network_in." in shown


def test_marks_say_on_which_side_a_broker_is_outside() -> None:
    plan = plans.example_plan(brokers=3)
    band = plan.bands["network-in"][3]
    low = replace(plan.brokers[0], after={**plan.brokers[0].after, "network_in": 0.5 * band.mean}, violates=("network-in",))
    high = replace(plan.brokers[2], after={**plan.brokers[2].after, "network_in": 1.5 * band.mean}, violates=("network-in",))
    text = to_html(replace(plan, brokers=(low, plan.brokers[1], high)))
    rows = dict(re.findall(r'<tr><th[^>]*data-v="(\d)"[^>]*>(.*?)</tr>', text.split('class="brokers"')[1], flags=re.DOTALL))
    assert ("▾" in rows["1"], "▴" in rows["1"]) == (True, False)
    assert ("▾" in rows["3"], "▴" in rows["3"]) == (False, True)


def test_bins_of_a_histogram_end_where_the_target_range_ends() -> None:
    for reach in (0.11, 0.3, 0.37, 0.99):
        bins, width = _bins(reach, (0.1, 0.1))
        assert bins % 2 == 0
        assert bins * width / 2 >= reach
        assert 0.1 / width == pytest.approx(round(0.1 / width))
    assert _bins(0.5, None) == (40, 0.025)


def test_the_counts_of_headings_add_up_to_those_of_the_verdict() -> None:
    plan = plans.example_plan()
    text = unescape(to_html(plan))
    assert f"{plan.summary.replica_moves:,} replicas" in text.split('id="actions"')[1]
    assert f"{plan.summary.leadership_changes:,} leaders" in text.split('id="actions"')[1]
