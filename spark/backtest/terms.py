"""The terms of a backtest, said before there is a result: the parts of the history, and the conditions for a confirmation.

Called by `spark.backtest.run` first of all; commands, pages and benchmarks show it above the table. Pure.
"""

from __future__ import annotations

from scipy.stats import norm

from spark.backtest.pareto import COST_SLACK, ROOM, SURE, Rule

Counts = tuple[int, int, int]
"""Stretches that are searched on, chosen on (0: those that are searched on), and tested on."""


def terms(stretches: Counts, finalists: int, phases: int, tested: int, rule: Rule) -> tuple[str, ...]:
    """Sentences, in order.

    Parameters
    ----------
    finalists
        Configurations that are replayed on all stretches before the held-out ones, each `phases` times.
    tested
        Rows that are tested beside the goals as they are, at most.
    """
    searched, choosing, held_out = stretches
    before = f"{_stretches(searched)} for the search, {_stretches(choosing)} more for the choice" if choosing else (
        f"{_stretches(searched)} for both the search and the choice"
    )  # fmt: skip
    often = "once each" if phases == 1 else f"{phases} times each, with looks at different times of the day"
    aims = " or ".join(_aim(part) for part in rule.parts)
    last = "stretch" if held_out == 1 else _stretches(held_out)
    return (
        f"The history is split: {before}, and the last {last} held out for the test.",
        f"At most {finalists} finalists are replayed for the choice, {often}. The choice is made before the held-out part is replayed.",
        f"The choice is confirmed if it is better than the goals as they are on the held-out part, in {aims}.",
        *map(_needed, rule.parts),
        "The other rows of the table are tested too, in an order that is fixed before. "
        f"Their verdicts are corrected for up to {tested * len(rule.parts)} tests (Holm's method).",
        "If the choice is not confirmed, the first row that is takes its place; if there is none, nothing is recommended. "
        f"Chance alone leads to a recommendation in at most {(1 + len(rule.parts)) * norm.sf(SURE):.1%} of backtests.",
    )


def allowed(rule: Rule) -> float:
    """Share by which what a rule of one aim keeps may be more on the held-out part."""
    return max(rule.equal, COST_SLACK) if rule.aim == "hours" else rule.equal


def _needed(rule: Rule) -> str:
    gained, kept = rule.words
    above = "" if rule.aim == "hours" else f" ({allowed(rule) + ROOM:.1%} with a standard error added)"
    return f"Better in {_aim(rule)}: {gained} fewer by at least {SURE:g} standard errors, {kept} at most {allowed(rule):.1%} more{above}."


def _aim(rule: Rule) -> str:
    return "hours" if rule.aim == "hours" else "bytes"


def _stretches(number: int) -> str:
    return f"{number} {'stretch' if number == 1 else 'stretches'}"
