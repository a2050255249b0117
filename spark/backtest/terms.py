"""The terms of a backtest, said before there is a result: which part of the history decides what, and what has to hold for a confirmation.

Called by `spark.backtest.run` first of all; commands, pages and benchmarks show it above the table. Pure.
"""

from __future__ import annotations

from spark.backtest.pareto import COST_SLACK, ROOM, SURE, Rule

Counts = tuple[int, int, int]
"""Stretches that are searched on, chosen on (0: those that are searched on), and tested on."""


def terms(stretches: Counts, finalists: int, phases: int, tested: int, rule: Rule) -> tuple[str, ...]:
    """Sentences, in order.

    Parameters
    ----------
    finalists
        Configurations that are replayed on the stretches of the choice, each `phases` times.
    tested
        Rows that are tested beside the goals as they are, at most.
    """
    searched, choosing, held_out = stretches
    where = f"the choice has {choosing} other{'s' if choosing > 1 else ''}" if choosing else "the choice has the same"
    often = "once" if phases == 1 else f"{phases} times, with looks at different times of the day"
    tests = tested * len(rule.parts)
    either = "Either gain is enough. " if len(rule.parts) > 1 else ""
    needed = ", or if ".join(map(_needed, rule.parts))
    return (
        f"Three parts of the history: the search has {_stretches(searched)}, {where}, and the last {held_out} are for the test alone.",
        f"At most {finalists} finalists are replayed on the part of the choice {often}. One is chosen before the last part is looked at.",
        f"The choice is confirmed if, on the last part and against the goals as they are, {needed}. {either}"
        "Otherwise nothing is recommended.",
        f"Other rows of the table are tested, too, and recommend nothing. Up to {tests} tests share the level of one (Holm's method): the "
        f"surest has to be as sure as 1/{tests} of it asks.",
    )  # fmt: skip


def allowed(rule: Rule) -> float:
    """Share by which what a rule of one aim keeps may be more on the held-out part."""
    return max(rule.equal, COST_SLACK) if rule.aim == "hours" else rule.equal


def _needed(rule: Rule) -> str:
    gained, kept = rule.words
    above = "" if rule.aim == "hours" else f" ({allowed(rule) + ROOM:.1%} with a standard error on top)"
    return f"{gained} are fewer by at least {SURE:g} standard errors and {kept} at most {allowed(rule):.1%} more{above}"


def _stretches(number: int) -> str:
    return f"{number} {'stretch' if number == 1 else 'stretches'}"
