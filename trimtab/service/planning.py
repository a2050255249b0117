"""One plan of the service: with which budgets, and of what may be in it.

Called by `trimtab.service.decider`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trimtab.service.choice import Scope
from trimtab.service.config import ServiceConfig
from trimtab.service.look import Looked

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet
    from optimizer.options import PlanOptions, Watch
    from optimizer.plan import Plan

Planner = Callable[["Snapshot", "GoalSet", "PlanOptions", "Watch"], "Plan"]


@dataclass(frozen=True)
class Made:
    """A plan, also an empty one, and what it was made from."""

    looked: Looked
    goal_set: GoalSet
    options: PlanOptions
    plan: Plan


def budgets(config: ServiceConfig) -> PlanOptions:
    """What every plan is made with."""
    from optimizer.options import PlanOptions

    part = config.budgets
    return PlanOptions(
        seed=config.seed, acceptance=config.acceptance, max_moves=part.max_moves, max_bytes=part.max_bytes,
        max_partitions=part.max_partitions,
    )  # fmt: skip


def planned(plan: Planner, looked: Looked, options: PlanOptions, scope: Scope, watch: Watch) -> Made:
    """A plan of what may be in it. With the scope ``leaders`` there are two searches where leaderships bring nothing."""
    goals = looked.goal_set
    match scope:
        case "restore":
            options = replace(options, exclude_topics=("*",))  # topics that are excluded are repaired all the same
        case "repairs":
            goals = replace(goals, goals=tuple(g for g in goals.goals if g.hard), digest="")
        case "leaders":
            free = replace(options, max_moves=0)
            made = plan(looked.snapshot, goals, free, watch)
            if made.summary.actions or made.stopped:
                return Made(looked, goals, free, made)
    return Made(looked, goals, options, plan(looked.snapshot, goals, options, watch))
