"""The benchmark guards CI by counts of work: it must notice a plan that moves too much, breaks a rule, or gives up."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from benchmarks.measure import Row
from benchmarks.planner import IN_BAND, PROMISED, PROMISED_SIZE, cells, main, problems

GOOD = Row(
    size=PROMISED_SIZE, scenario="a", variant="even", seed=0, band=0.10, acceptance="score", threads=1,
    brokers=100, replicas=50_000, cpu_s=0.1, first_cpu_s=0.1, wall_s=0.1, peak_mb=200.0, loaded_mb=100.0,
    in_band_before=0.0, in_band=1.0, explained=0, unexplained=0, out_by_goal={},
    hard_violations=0, hard_violations_before=0, hard_forced=0,
    moves=100, moves_bound=99, moves_over_bound=1.01, bytes_moved=100, bytes_bound=99, bytes_over_bound=1.01,
    leadership_changes=10, actions=90, worst_deviation=0.09, repeated=True,
)  # fmt: skip


def test_a_good_row_has_no_problem_however_long_it_took() -> None:
    assert problems(replace(GOOD, cpu_s=1e6, wall_s=1e6, peak_mb=1e6)) == []


@pytest.mark.parametrize(
    "broken",
    [
        {"hard_violations": 1},
        {"in_band": IN_BAND["score"] - 0.01},
        {"acceptance": "potential", "in_band": 0.999},
        {"repeated": False},
        {"moves_over_bound": PROMISED["a"][0] + 0.01},
        {"bytes_over_bound": PROMISED["a"][1] + 0.01},
    ],
    ids=str,
)
def test_a_broken_promise_is_named(broken: dict[str, object]) -> None:
    assert len(problems(replace(GOOD, **broken))) == 1  # type: ignore[arg-type]


def test_what_excluded_topics_force_is_no_broken_promise() -> None:
    assert problems(replace(GOOD, hard_violations=2, hard_forced=2)) == []


def test_replicas_per_broker_replace_those_of_the_size() -> None:
    chosen = argparse.Namespace(
        sizes=["1000x1M"], per_broker=50, scenarios=["a"], variants=["even", "racks"], bands=[0.1, 0.02], seeds=[0],
        acceptance=["score"], threads=[1], max_moves=10,
    )  # fmt: skip
    found = list(cells(chosen))
    assert {(c.size, c.brokers, c.replicas) for c in found} == {("1000x50k", 1_000, 50_000)}
    assert [(c.variant, c.band) for c in found] == [("even", 0.1), ("even", 0.02), ("racks", 0.1), ("racks", 0.02)]


def test_plans_keep_their_promises(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--smoke"]) == 0, capsys.readouterr().out
