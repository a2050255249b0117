"""A decision as the history keeps it: what was looked at, what came of it, and what was left alone. Pure.

Called by `trimtab.service.decider`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trimtab.history.records import GoalStanding

if TYPE_CHECKING:
    from optimizer.plan import Plan
    from trimtab.service.look import Looked

MOST_NAMED = 5


def doubts(made: Plan) -> str:
    """What was left alone because its numbers cannot be trusted; empty where nothing was."""
    left = [f"{s.what} ({s.doubt})" for s in made.skipped if s.doubt is not None]
    if not left:
        return ""
    more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    return f" Left alone, because their numbers cannot be trusted: {', '.join(left[:MOST_NAMED])}{more}."


def plan_text(made: Plan) -> str:
    """The plan file."""
    from optimizer.report import to_json

    return to_json(made)


def standings(made: Plan | None, looked: Looked | None) -> tuple[GoalStanding, ...]:
    """How goals stand: before and after a plan, or as they were looked at."""
    if made is not None:
        return tuple(
            GoalStanding(
                g.name, g.hard, g.status,
                g.before.violations if g.before else None, g.after.violations if g.after else None,
                g.before.max_deviation if g.before else None, g.after.max_deviation if g.after else None,
            )
            for g in made.goals
        )  # fmt: skip
    if looked is None:
        return ()
    return tuple(
        GoalStanding(
            v.name, v.hard, "skipped" if v.skipped is not None else "satisfied" if not v.violations else "unchanged",
            v.violations, v.violations, v.max_deviation, v.max_deviation,
        )
        for v in looked.goals
    )  # fmt: skip


def placed(made: Plan, topics: Sequence[str]) -> str:
    """What a plan does that places topics that were just created."""
    named = ", ".join(topics[:MOST_NAMED]) + (f" and {len(topics) - MOST_NAMED:,} more" if len(topics) > MOST_NAMED else "")
    which = f"New topic{'s' if len(topics) != 1 else ''} {named}"
    total = made.summary
    if not total.actions:
        return f"{which} can stay where Kafka placed {'them' if len(topics) != 1 else 'it'}."
    changes = f"{total.replica_moves:,} replica moves and {total.leadership_changes:,} leadership changes"
    return f"{which} would be placed by the policy: {changes}."
