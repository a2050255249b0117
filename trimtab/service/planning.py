"""One plan of the service: with which budgets, and of what may be in it.

Called by `trimtab.service.decider`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trimtab.service.choice import Make, Scope
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
    """A plan, also an empty one, what it was made from, and what may be in it."""

    looked: Looked
    goal_set: GoalSet
    options: PlanOptions
    plan: Plan
    scope: Scope


def budgets(config: ServiceConfig) -> PlanOptions:
    """What every plan is made with."""
    from optimizer.options import PlanOptions

    part = config.budgets
    return PlanOptions(
        seed=config.seed, acceptance=config.acceptance, max_moves=part.max_moves, max_bytes=part.max_bytes,
        max_partitions=part.max_partitions,
    )  # fmt: skip


def planned(
    plan: Planner, looked: Looked, options: PlanOptions, make: Make, watch: Watch, astray: Collection[tuple[str, int]]
) -> Made:
    """A plan of what may be in it; `astray` are partitions that their preferred leaders, which are in sync, do not lead."""
    made = _of(make.scope, plan, looked, options, watch, astray)
    if made.plan.summary.actions or make.otherwise is None:
        return made
    return _of(make.otherwise, plan, looked, options, watch, astray)


def _of(
    scope: Scope, plan: Planner, looked: Looked, options: PlanOptions, watch: Watch, astray: Collection[tuple[str, int]]
) -> Made:
    goals = looked.goal_set
    match scope:
        case "preferred":
            from optimizer.policies.preferred import preferred_leaders

            return Made(looked, goals, options, preferred_leaders(looked.snapshot, goals, options, astray), scope)
        case "restore":
            options = replace(options, exclude_topics=("*",))  # topics that are excluded are repaired all the same
        case "repairs":
            goals = replace(goals, goals=tuple(g for g in goals.goals if g.hard), digest="")
    return Made(looked, goals, options, plan(looked.snapshot, goals, options, watch), scope)
