"""What the page of a backtest needs, out of its result. Called by ``trimtab backtest`` and by benchmarks."""

from __future__ import annotations

from datetime import UTC, datetime

from spark.backtest.packing import Cut
from spark.backtest.run import Result
from spark.backtest.search import Method
from spark.report.backtest import backtest_html
from spark.report.evidence import BacktestEvidence

Course = tuple[str, tuple[str, ...], tuple[float, ...]]
METHODS = {"halving": "successive halving"}


def page_of(found: Result, cut: Cut, cluster: str, method: Method, now: datetime, *remarks: str) -> str:
    """One self-contained HTML page; `remarks` come last among its notes."""
    evidence = BacktestEvidence(
        cluster_id=cluster, made_at=f"{now:%Y-%m-%dT%H:%M:%SZ}",
        trained=_span(cut, (*found.training, *found.choosing)), held_out=_span(cut, found.held_out),
        searched=len(found.searched), method=METHODS.get(method, method), timeline=courses(found),
        notes=(*found.terms, found.why, found.verdict, *remarks),
    )  # fmt: skip
    return backtest_html(found.rows(), evidence)


def courses(found: Result) -> tuple[Course, ...]:
    """Brokers outside their target range over the span held out: of the goals as they are, then of what did best on the training span."""
    rows = [found.own, *([] if found.chosen is found.own else [found.chosen])]
    return tuple(
        (
            row.trained.configuration.what,
            tuple(f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" for at, _ in row.outcome.course),
            tuple(outside for _, outside in row.outcome.course),
        )
        for row in rows
    )


def _span(cut: Cut, stretches: tuple[int, ...]) -> str:
    begin, end = (datetime.fromtimestamp(cut.scored(n), UTC) for n in (min(stretches), max(stretches) + 1))
    return f"{begin:%Y-%m-%d} to {end:%Y-%m-%d}"
