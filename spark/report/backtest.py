"""The page of a backtest: what was tried on the past, how it did on the held-out part, which was chosen.

Called by ``trimtab backtest``. A pure function of the table and its evidence.
"""

from __future__ import annotations

from collections.abc import Sequence

from goals.calibration import Tried
from optimizer.report.markup import Child, el
from optimizer.report.units import count, percent, size
from spark.report.drawings import seconds, series_drawing
from spark.report.evidence import BacktestEvidence, averaged
from spark.report.page import Section, facts, figure, figures, legend, listed, page
from spark.report.pareto import chosen_of, default_of, described, pareto_drawing, pareto_legend, tried_table

STYLES = ("", "second", "ahead")
PLUS_MINUS = (
    "± is the standard error, from how days and repeated replays differ. Noise alone makes a difference of one standard error in one of "
    "three cases, and of two standard errors in one of twenty."
)


def backtest_html(tried: Sequence[Tried], evidence: BacktestEvidence) -> str:
    """One self-contained page.

    Parameters
    ----------
    tried
        Configurations as scored on the held-out part; at most one is `chosen`, the default has that word in `what`.
    """
    chosen, default = chosen_of(tried), default_of(tried)
    tone, verdict, mood = _verdict(chosen, default, len(tried))
    drawing = pareto_drawing(tried)
    alternatives: list[Child] = figures(
        [figure("Alternatives", "down and to the left is better", drawing, wide=True) if drawing else None], pareto_legend(tried)
    )
    return page(
        "backtest",
        f"Backtest of {evidence.cluster_id or 'a cluster'}",
        [("cluster", evidence.cluster_id or "unnamed"), ("made", evidence.made_at or "unknown")],
        tone,
        verdict,
        [f"Chosen: {described(chosen, default)}." if chosen else "", *_spans(evidence)],
        _tiles(tried, chosen, default, evidence),
        [
            Section("alternatives", "Alternatives", alternatives),
            Section("timeline", "Brokers outside their target range on the held-out part", _timeline(evidence)),
            Section("configurations", "Configurations", [tried_table(tried), _errors(tried)]),
            Section("remarks", "Remarks", [listed(evidence.notes)]),
            Section("identity", "What was replayed", [_facts(evidence)]),
        ],
        "A backtest by Trimtab: it replayed the past and changed nothing.",
        mood,
    )


def _verdict(chosen: Tried | None, default: Tried | None, tried: int) -> tuple[str, str, str]:
    if not tried:
        return "Nothing tried", "No configuration was tried.", "unjudged"
    if chosen is None:
        return "None chosen", f"None of {count(tried, 'configuration')} was chosen.", "unjudged"
    if default is None or default.out_of_band_hours <= 0:
        hours_words = f"{chosen.out_of_band_hours:,.1f} broker-hours outside the target range"
        words = f"The chosen configuration had {hours_words} and moved {size(chosen.bytes_moved)}."
        return "Chosen", words, "good"
    if chosen is default:
        return "The default stays", "No configuration is confirmed to be better than the default goals on the held-out part.", "balanced"
    hours = chosen.out_of_band_hours / default.out_of_band_hours - 1
    if default.bytes_moved > 0:
        moved = chosen.bytes_moved / default.bytes_moved - 1
        cost = f"moving {_more_or_less(moved)} bytes"
    else:
        cost = f"moving {size(chosen.bytes_moved)} where the default moved nothing"
    than = f"broker-hours outside the target range {_than(hours)} the default goals"
    words = f"The chosen configuration had {_more_or_less(hours)} {than}, {cost}."
    cheaper = default.bytes_moved > 0 and chosen.bytes_moved < 0.95 * default.bytes_moved
    dearer = chosen.bytes_moved > 1.05 * default.bytes_moved
    if (hours <= -0.05 and not dearer) or (hours <= 0.05 and cheaper):
        return "Better than the default", words, "good"
    if hours <= -0.05 or cheaper:
        return "Better in one, worse in the other", words, "partial"
    return "Not better than the default", words, "stuck"


def _errors(tried: Sequence[Tried]) -> Child:
    """What the figures after ± say; nothing where there are none."""
    return el("p", PLUS_MINUS) if any(t.out_of_band_error is not None for t in tried) else None


def _more_or_less(share: float) -> str:
    if abs(share) < 0.005:
        return "as many"
    return f"{percent(abs(share))} {'more' if share > 0 else 'fewer'}"


def _than(share: float) -> str:
    return "as" if abs(share) < 0.005 else "than"


def _spans(evidence: BacktestEvidence) -> list[str]:
    found = []
    if evidence.trained:
        found.append(f"Searched on {evidence.trained}.")
    if evidence.held_out:
        found.append(f"All figures on this page are of the held-out part, {evidence.held_out}, which the search did not see.")
    return found


def _tiles(
    tried: Sequence[Tried], chosen: Tried | None, default: Tried | None, evidence: BacktestEvidence
) -> list[tuple[str, str, str]]:
    tiles = [("Configurations", f"{max(len(tried), evidence.searched):,}", evidence.method)]
    if chosen is None:
        return tiles

    def against(words: str) -> str:
        return f"default {words}" if default is not None else ""

    was = default or chosen
    return [
        *tiles,
        ("Outside the target range", f"{chosen.out_of_band_hours:,.1f} h", against(f"{was.out_of_band_hours:,.1f} h")),
        ("Bytes moved", size(chosen.bytes_moved), against(size(was.bytes_moved))),
        ("Actions", f"{chosen.actions:,}", against(f"{was.actions:,}")),
        ("Moved back", f"{chosen.moved_back:,}", against(f"{was.moved_back:,}")),
        ("Peak", percent(chosen.peak_utilization), against(percent(was.peak_utilization))),
    ]


def _timeline(evidence: BacktestEvidence) -> list[Child]:
    lines = []
    for i, (_, times, values) in enumerate(evidence.timeline):
        points = averaged([seconds(t) for t in times], values)
        lines.append((STYLES[i % len(STYLES)], [t for t, _ in points], [v for _, v in points]))
    drawn = series_drawing(lines, lambda v: f"{v:,.3g}", "brokers outside their target range over time", wide=True)
    if drawn is None:
        return []
    keys = legend(*((f"line {STYLES[i % len(STYLES)]}".strip(), name) for i, (name, _, _) in enumerate(evidence.timeline)))
    what = "brokers outside their target range, summed over the goals; ranges are those of the default goals"
    return figures([figure("Outside the target range", what, drawn, wide=True)], keys)


def _facts(evidence: BacktestEvidence) -> Child:
    return facts([
        ("Cluster", evidence.cluster_id), ("Made at", evidence.made_at), ("Searched on", evidence.trained),
        ("Held out", evidence.held_out), ("Search", evidence.method),
    ])  # fmt: skip
