"""The pages load nothing, hold together, escape what operators and clients named, and say what was chosen and why."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from goals.calibration import Calibration, Tried
from goals.calibration import models as m
from spark.report.backtest import PLUS_MINUS, backtest_html
from spark.report.calibration import calibration_html
from spark.report.drawings import histogram_drawing, scatter_drawing, series_drawing, week_drawing
from spark.report.evidence import (
    BacktestEvidence,
    CalibrationEvidence,
    CapacityEvidence,
    CpuEvidence,
    ForecastEvidence,
    Histogram,
    LevelEvidence,
    NoiseEvidence,
    TopicEvidence,
)
from spark.report.pareto import described, tried_table
from tests.unit.optimizer.test_report_html import Page

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>&amp;'
TIMES = tuple((datetime(2026, 10, 1, tzinfo=UTC) + timedelta(hours=i)).isoformat() for i in range(48))
VALUES = tuple(1e6 + 1e4 * i for i in range(48))

OUT = "outside the target range"


def calibration(name: str, **changed: Any) -> Calibration:
    found = m.ResourceCalibration(
        mean=8e6, noise=0.05, false_alarms=0.4, bound=0.13, var=0.6, min_load=1e6, growth=0.02,
        seasonality=m.Seasonality(strength=0.8, peak_hour=14, profile=[0.5 + (h % 24) / 24 for h in range(168)]), why=[name],
    )  # fmt: skip
    whole = Calibration(
        version=1, cluster_id=name, made_at=name,
        history=m.HistorySpan(
            begin="2026-10-01T00:00:00Z", end="2026-10-15T00:00:00Z", window=300.0, samples=90_000,
            rejected={"NaN": 9_000, name: 1_000, "late": 0}, brokers=2, partitions=10, digest=name,
        ),
        resources={"network_in": found, "cpu": found.model_copy(update={"mean": 2.0, "bound": None, "noise": None})},
        capacity=[m.CapacityEstimate(broker=7, resource="network_in", value=2e7, confidence="low", evidence=name)],
        cpu_cost=m.CpuCost(
            idle=0.5, per_byte_in=2e-8, per_byte_out=0.0, per_produce_request=4e-4, per_fetch_request=0.0, error=0.02,
            brokers={"7": 1.25}, why=[name],
        ),
        topics=[m.TopicCalibration(topic=name, resource="network_in", burst=2.5, pattern="bursty", growth=0.01)],
        correlations=[m.Correlation(resources=["network_in", "cpu"], value=-0.4)],
        loads=name, backtest=tried(name),
    )  # fmt: skip
    return whole.model_copy(update=changed)


def evidence(name: str) -> CalibrationEvidence:
    points = tuple((1e6 * i, 4.0 + i) for i in range(20))
    return CalibrationEvidence(
        noise=(NoiseEvidence("network_in", Histogram(-0.3, 0.3, (0, 5, 90, 4, 1))),),
        levels=(LevelEvidence("network_in", TIMES, VALUES),),
        capacity=(CapacityEvidence(7, "network_in", name, points, points, 2.1e7, "medium", name),),
        cpu=CpuEvidence(points, Histogram(-0.1, 0.1, (1, 8, 1)), ((7, 1.25),)),
        topics=(TopicEvidence(name, "network_in", TIMES, VALUES, (1e6, 2e6)),),
        forecasts=(ForecastEvidence("network_in", 10, 0.1, 0.3, ((name, 10, 0.1),)),),
        notes=(name,),
    )


def tried(name: str) -> list[Tried]:
    common: dict[str, Any] = {"weights": {name: 2.0}, "bounds": {name: 0.2}, "cadence": 300.0, "peak_utilization": 0.8, "actions": 9}
    return [
        Tried(**common, out_of_band_hours=200.0, bytes_moved=1e12, moved_back=4, what="default goals"),
        Tried(**common, out_of_band_hours=120.0, bytes_moved=1e12, moved_back=1, chosen=True, pareto=True, what=name),
        Tried(**common, out_of_band_hours=300.0, bytes_moved=1e11, moved_back=0, pareto=True),
    ]


def backtest(name: str) -> str:
    told = BacktestEvidence(name, name, name, name, 50, name, (("chosen", TIMES, VALUES), (name, TIMES, VALUES)), (name,))
    return backtest_html(tried(name), told)


PAGES = {
    "calibration": lambda name: calibration_html(calibration(name), evidence(name)),
    "calibration without evidence": lambda name: calibration_html(calibration(name)),
    "backtest": backtest,
}


@pytest.mark.parametrize("kind", PAGES)
def test_a_page_is_whole_and_loads_nothing(kind: str) -> None:
    text = PAGES[kind]("plain")
    page = Page(text)
    assert (page.errors, page.open) == ([], [])
    assert list(page.headings.values()).count("h1") == 1
    assert len(page.ids) == len(set(page.ids))
    assert {ref.lstrip("#") for ref in page.refs} <= set(page.ids)
    assert not re.search(r"(https?:)?//[\w.-]+\.\w|@import|url\(", text)
    assert page.attributes["src"] == page.attributes["style"] == page.tags["link"] == page.tags["img"] == 0
    assert "default-src" in text
    assert "nan" not in re.sub(r"<script>.*?</script>", "", text, flags=re.S).lower().replace("nan<", "")  # of numbers


def test_a_configuration_says_what_it_changes_of_the_policy() -> None:
    """Two rows with the same weights and bounds differ in these alone."""
    plain = tried("x")[1]
    changed = plain.model_copy(update={"max_moves": 25, "min_gain": 1.0, "move_cost": 0.0, "start": 0.4})
    said = ["every 5 min", "max_moves 25", "min_gain 1", "move_cost 0", "hysteresis from 0.4"]
    assert described(changed).endswith(", ".join(said))
    table = str(tried_table([plain, changed]))
    assert [table.count(f">{words}<") for words in said] == [2, 1, 1, 1, 1]


@pytest.mark.parametrize("kind", PAGES)
def test_names_that_are_markup_stay_text(kind: str) -> None:
    hostile, plain = Page(PAGES[kind](HOSTILE)), Page(PAGES[kind]("x" * len(HOSTILE)))
    assert hostile.tags == plain.tags
    assert hostile.attributes == plain.attributes
    assert hostile.scripts == plain.scripts


def test_both_themes_and_print_have_every_colour_that_is_drawn_with() -> None:
    text = backtest("plain")
    style = text[text.index("<style>") : text.index("</style>")]
    used = set(re.findall(r"var\((--[\w-]+)", style)) - {"--tone"}
    dark = re.search(r':root\[data-theme="dark"\] \{(.*?)\}', style, re.S)
    light = re.search(r":root \{(.*?)\}", style, re.S)
    assert dark is not None
    assert light is not None
    for block in (dark[1], light[1]):
        assert used <= set(re.findall(r"(--[\w-]+):", block))


def test_a_calibration_says_its_bands_and_what_did_not_count() -> None:
    text = calibration_html(calibration("plain"), evidence("plain"))
    assert "Target ranges: network in ±13%. Noise alone takes a broker outside at most 0.8 times a week." in text
    assert "10,000 more were rejected (10%)" in text
    assert ">9,000<" in text
    assert "at least 20.0 MB/s" in text  # low confidence is a lower bound
    assert "+1.250 cores" in text
    assert "none of its own" in text


def test_sections_without_anything_are_left_out() -> None:
    bare = calibration("plain", capacity=[], cpu_cost=None, topics=[], correlations=[], backtest=[])
    headings = Page(calibration_html(bare)).headings
    assert set(headings) - {"Target ranges: network in ±13%. Noise alone takes a broker outside at most 0.8 times a week."} == {
        "Resources", "Season and level", "Rejected samples", "Source of the calibration",
    }  # fmt: skip


def test_too_little_history_is_said() -> None:
    whole = calibration("plain")
    nothing = {name: r.model_copy(update={"bound": None}) for name, r in whole.resources.items()}
    found = calibration_html(whole.model_copy(update={"resources": nothing}))
    assert "No target range can be recommended from this history; the reasons are below the table of resources." in found


def test_a_backtest_says_what_the_choice_buys() -> None:
    text = backtest("plain")
    assert f"The chosen configuration had 40% fewer broker-hours {OUT} than the default goals, moving as many bytes." in text
    page = Page(text)
    assert (page.classes["chosen"], page.classes["standard"]) == (1, 1)
    assert PLUS_MINUS not in text  # a calibration made before errors were told
    default, chosen, other = tried("plain")
    chosen = chosen.model_copy(update={"out_of_band_error": 10.0, "bytes_error": 2e10})
    text = backtest_html([default, chosen, other], BacktestEvidence("c", "now"))
    assert "40% ± 5" in text
    assert "± 2" in text
    assert PLUS_MINUS in text


@pytest.mark.parametrize(
    ("hours", "moved", "tone", "words"),
    [
        (240.0, 9e11, "Better in one, worse in the other", f"20% more broker-hours {OUT} than the default goals, moving 10% fewer"),
        (150.0, 2e12, "Better in one, worse in the other", f"25% fewer broker-hours {OUT} than the default goals, moving 100% more"),
        (200.0, 1.5e12, "Not better than the default", f"as many broker-hours {OUT} as the default goals, moving 50% more"),
        (200.0, 5e11, "Better than the default", f"as many broker-hours {OUT} as the default goals, moving 50% fewer"),
    ],
)
def test_the_verdict_is_no_better_than_the_choice(hours: float, moved: float, tone: str, words: str) -> None:
    default, chosen, other = tried("plain")
    better = chosen.model_copy(update={"out_of_band_hours": hours, "bytes_moved": moved})
    text = backtest_html([default, better, other], BacktestEvidence("c", "now"))
    assert f">{tone}<" in text
    assert words in text


def test_a_backtest_without_choice_or_default_still_makes_a_page() -> None:
    default, chosen, other = tried("plain")
    assert "None of 2 configurations was chosen" in backtest_html([default, other], BacktestEvidence("c", "now"))
    assert f"120.0 broker-hours {OUT} and moved 1.00 TB" in backtest_html([chosen, other], BacktestEvidence("c", "now"))
    assert "No configuration was tried" in backtest_html([], BacktestEvidence("c", "now"))
    stays = default.model_copy(update={"chosen": True})
    assert "No configuration is confirmed to be better" in backtest_html([stays, other], BacktestEvidence("c", "now"))


def test_drawings_show_nothing_rather_than_break_on_empty_or_odd_data() -> None:
    nan = float("nan")
    assert histogram_drawing(Histogram(0, 1, (0, 0)), (), "", "") is None
    assert week_drawing([1.0] * 24, "") is None
    assert series_drawing([("", [1.0, 2.0], [nan, nan])], str, "") is None
    assert scatter_drawing([(1.0, nan)], (), None, str, str, "", "", "") is None
    drawn = scatter_drawing([(1.0, 2.0), (2.0, 0.0), (3.0, 900.0), (4.0, 5.0)], ((1.0, 0.0), (2.0, 3.0)), 5.0, str, str, "x", "y", "z")
    assert drawn is not None
    assert "logarithmic" in drawn
    assert drawn.count("<circle") == 3


def test_the_bars_outside_the_band_are_told_apart() -> None:
    drawn = histogram_drawing(Histogram(-0.3, 0.3, (1, 2, 3, 2, 1, 4)), (-0.1, 0.1), "", "")
    assert drawn is not None
    assert drawn.count('class="bar beyond"') == 4
    assert drawn.count('class="bar"') == 2


def test_points_keep_their_order_on_the_axes() -> None:
    drawn = scatter_drawing([(float(i), float(i)) for i in range(1, 6)], (), None, str, str, "", "", "")
    assert drawn is not None
    across = [float(v) for v in re.findall(r'cx="([\d.]+)"', drawn)]
    down = [float(v) for v in re.findall(r'cy="([\d.]+)"', drawn)]
    assert all(a < b for a, b in pairwise(across))
    assert all(a > b for a, b in pairwise(down))
