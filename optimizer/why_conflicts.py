"""Why a broker would stay out of a band that what it holds for good leaves it no way into: said of one goal, for an operator.

Called by `why`; the proof itself is `optimizer.conflicts`.
"""

from __future__ import annotations

from collections.abc import Sequence

from goals.model import Goal
from optimizer.conflicts import NOTHING, Conflict
from optimizer.problem import KIND, LIMIT, Problem
from optimizer.why_words import amount


def conflict_text(
    problem: Problem, goals: Sequence[Goal], found: Sequence[Conflict], g: int, over: bool
) -> str | None:
    """Why a broker that has the conflicts `found` is out of goal `g`; None where none of them says so."""
    for one in sorted(found, key=lambda each: (each.caps != NOTHING, not is_limit(problem, each.caps))):
        caps_band = one.caps != NOTHING and not is_limit(problem, one.caps)
        if not (one.needs == g and not over) and not (one.caps == g and over and caps_band):
            continue
        wanted = str(getattr(goals[one.needs], "resource", ""))
        most, missing = amount(one.most, wanted), amount(one.missing, wanted)
        if one.caps == NOTHING:
            return (
                f"excluded topics hold it beyond a hard limit, and the replicas that could come without adding to that have {most} "
                f"of the {missing} missing to its target range; include some of those topics"
            )
        resource = str(getattr(goals[one.caps], "resource", ""))
        end = "target range" if caps_band else "limit"
        return (
            f"excluded topics leave it {amount(one.room, resource)} of {resource} up to the end of its {end}. "
            f"With that at most {most} of {wanted} can come, but {missing} is missing to its target range; include some of them"
        )
    return None


def is_limit(problem: Problem, g: int) -> bool:
    return g != NOTHING and bool(problem.goal[g, KIND] == LIMIT)
