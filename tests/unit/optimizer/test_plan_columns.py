"""Actions of a large plan are written and counted by columns; were that another story than one action at a time tells, the file would
not say what is done.

Random clusters with brokers that some goals do not judge, dead and draining ones, and all kinds of goals.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from cluster_model.build import build_snapshot
from cluster_model.errors import ConfigurationError
from goals.document import parse_goals
from optimizer.options import PlanOptions
from optimizer.plan import Action, Plan
from optimizer.planner import plan
from optimizer.report import read_plan, to_html, to_json, to_markdown
from optimizer.report.score_text import ScoreTexts
from optimizer.report.survey import flows, survey
from tests.oracle.clusters import case_of
from tests.unit.optimizer.reports import text_of


def made(seed: int) -> Plan:
    case = case_of(seed, most_brokers=9, per_broker=12)
    return plan(build_snapshot(case.snapshot), parse_goals(json.dumps(case.goals), "goals"), PlanOptions())


@pytest.fixture(scope="module")
def several() -> list[Plan]:
    found = []
    for seed in count(500):
        try:
            found.append(made(seed))
        except ConfigurationError:  # goals that exclude a broker that is not there
            continue
        if len(found) == 25:
            assert sum(len(p.actions) for p in found) > 100
            return found
    raise AssertionError


def one_by_one(whole: Plan) -> Plan:
    """The same with plain actions and changes."""
    actions = [replace(a, goal_scores=dict(a.goal_scores)) for a in whole.actions]
    return replace(whole, actions=tuple(actions), proposals=tuple(whole.proposals), brokers=tuple(whole.brokers))


def test_the_text_is_that_of_one_action_at_a_time(several: list[Plan]) -> None:
    for whole in several:
        assert to_json(whole) == to_json(one_by_one(whole))
        assert to_html(whole) == to_html(one_by_one(whole))


def test_a_saved_plan_is_shown_as_the_plan_itself(several: list[Plan]) -> None:
    """The file has 9 digits of each number. A number beside a half would be rounded up before it is saved, and down afterwards."""
    for whole in several:
        saved = read_plan(to_json(whole).encode(), "plan.json")
        assert to_html(saved) == to_html(whole)
        assert to_markdown(saved) == to_markdown(whole)
        assert text_of(saved, 140) == text_of(whole, 140)


@pytest.mark.parametrize("load", [1_234_999_999.9, 0.12349999999, 9_995_000_000.4])
def test_an_amount_beside_a_half_is_the_same_in_a_saved_plan(load: float, several: list[Plan]) -> None:
    whole = replace(one_by_one(several[0]), brokers=tuple(replace(b, before={**b.before, "disk": load}) for b in several[0].brokers))
    saved = read_plan(to_json(whole).encode(), "plan.json")
    assert to_html(saved) == to_html(whole)
    assert to_markdown(saved) == to_markdown(whole)


@pytest.mark.parametrize("most", [1, 3, 10_000])
def test_the_most_important_actions_and_the_flows_are_the_same(several: list[Plan], most: int) -> None:
    for whole in several:
        plain = one_by_one(whole)
        assert survey(whole, most) == survey(plain, most)
        assert flows(whole) == flows(plain)


def expected_help(action: Action, weights: dict[str, float]) -> str | None:
    """What the action does for the goal that gains most, from its own scores."""
    gains = {name: weights[name] * (scores.score - 0.5) for name, scores in action.goal_scores.items()}
    name = max(gains, key=lambda n: gains[n])  # the first of several
    if gains[name] <= 1e-9:
        return None
    scores = action.goal_scores[name]
    worst = min(sorted(scores.before), key=lambda b: scores.before[b])
    low, becomes = scores.before[worst], min(scores.after.values())
    digits = next(n for n in range(3, 18) if f"{low:.{n}g}" != f"{becomes:.{n}g}")  # "from 0.748 to 0.748" would say nothing
    if f"{becomes:.{digits}g}" == "1":
        return f"would meet {name} on broker {worst} (score {low:.{digits}g} → 1)"
    return f"would raise the lowest {name} score from {low:.{digits}g} (broker {worst}) to {becomes:.{digits}g}"


def test_reasons_name_the_goal_that_gains_most_and_its_lowest_broker(several: list[Plan]) -> None:
    told = 0
    for whole in several:
        weights = {g.name: 0.0 if g.hard else g.weight for g in whole.goals}
        for action in whole.actions:
            helped = expected_help(action, weights)
            assert action.reason.split("; ")[-1] == helped if helped else "would raise" not in action.reason
            told += helped is not None
    assert told > 50


def numbers() -> np.ndarray:
    r = np.random.default_rng(4)
    ties = (r.integers(10**8, 10**9, 3_000) + 0.5) / 1e9
    short = r.integers(1, 10**4, 2_000) / r.choice([1e1, 1e2, 1e3, 1e4, 1e5, 1e7], 2_000)
    edges = [0.0, -0.0, 1.0, 0.5, 0.1, 0.01, 0.001, 1e-4, 1e-5, 9.99999999e-5, 1.5, 123456789.5]
    edges += [0.0999999999, 0.09999999996, 0.9999999996, 0.99999999949]
    near = [np.nextafter(x, way) for x in (1.0, 0.1, 0.01, 1e-3, 1e-4) for way in (0.0, 2.0)]
    return np.concatenate([r.random(20_000), 10.0 ** r.uniform(-6, 3, 5_000), ties, short, 2.0 ** -np.arange(40.0), edges, near])


def test_numbers_are_written_with_nine_significant_digits() -> None:
    values = numbers()
    texts = ScoreTexts(["a"], [0])
    none = np.zeros(0, np.int64), np.zeros((0, 1)), np.zeros((0, 1)), np.zeros((0, 1), np.bool_)
    found = texts.written(values[:, None], np.zeros(len(values) + 1, np.int64), *none)
    assert sum(text is None for text in found) < len(values) / 3
    for value, text in zip(values.tolist(), found, strict=True):
        assert text is None or text == f'"a":{{"score":{value:.9g},"before":{{}},"after":{{}}}}', value


def test_sizes_beyond_what_64_bits_hold_are_not_negative() -> None:
    """A broken log size, read as 10 EB, gave ``bytes_to_move`` of -9 EB."""
    one = {"topic": "t", "replicas": [1], "leader": 1, "leader_load": {"disk": 1e19}}
    document = {
        "version": 1, "cluster_id": "c", "taken_at": "2026-11-20T12:00:00Z", "storage": "local",
        "brokers": [{"id": 1}, {"id": 2}], "partitions": [{**one, "partition": n} for n in range(2)],
    }  # fmt: skip
    made = plan(build_snapshot(document), parse_goals("version: 1\ngoals: [{kind: usage_distribution, resource: disk}]\n", "goals.yaml"))
    assert [a.bytes_to_move for a in made.actions] == [10**19]
    assert made.summary.bytes_to_move == 10**19
