"""One plan of the service: with which budgets, and of what may be in it.

Called by `trimtab.service.decider`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cluster_model.trust import spoken
from trimtab.service.choice import Make, Scope
from trimtab.service.config import ServiceConfig
from trimtab.service.look import Looked

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet
    from goals.policy import PolicyDocument
    from optimizer.options import PlanOptions, Watch
    from optimizer.plan import Plan

Partition = tuple[str, int]
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
    plan: Planner, looked: Looked, options: PlanOptions, make: Make, watch: Watch, astray: Collection[Partition],
    resting: tuple[Partition, ...],
) -> Made:  # fmt: skip
    """A plan of what may be in it.

    Parameters
    ----------
    astray
        Partitions that their preferred leaders, which are in sync, do not lead.
    resting
        Partitions that were moved lately, which balance leaves alone. Where hard limits stay broken by that, they are repaired, and
        nothing else is done.
    """

    def made(scope: Scope) -> Made:
        return _made(scope, plan, looked, options, watch, astray, resting)

    found = made(make.scope)
    if not found.plan.summary.actions and make.otherwise is not None:
        found = made(make.otherwise)
    left = found.plan.hard_violations_left
    if found.scope == "all" and resting and left:
        repaired = made("repairs")
        if repaired.plan.hard_violations_left < left:
            return repaired
    return found


def _made(
    scope: Scope, plan: Planner, looked: Looked, options: PlanOptions, watch: Watch, astray: Collection[Partition],
    resting: tuple[Partition, ...],
) -> Made:  # fmt: skip
    goals = looked.goal_set
    match scope:
        case "all":
            options = replace(options, resting=resting)
        case "preferred":
            from optimizer.policies.preferred import preferred_leaders

            return Made(looked, goals, options, preferred_leaders(looked.snapshot, goals, options, astray), scope)
        case "restore":
            options = replace(options, exclude_topics=("*",))  # topics that are excluded are repaired all the same
        case "repairs":
            goals = replace(goals, goals=tuple(g for g in goals.goals if g.hard), digest="")
    return Made(looked, goals, options, plan(looked.snapshot, goals, options, watch), scope)


def rest_of(made: Made, policy: PolicyDocument) -> str:
    """What is said of the partitions that balance left alone because they were moved lately or are new; empty where there are none."""
    count = len(made.options.resting)
    if not count:
        return ""
    which = "1 partition that was" if count == 1 else f"{count:,} partitions that were"
    cooldown, age = spoken(round(1000 * policy.partition_cooldown)), spoken(round(1000 * policy.partition_min_age))
    new = f", or made within the last {age} (policy.partition_min_age)" if policy.partition_min_age else ""
    return f" Left alone: {which} moved within the last {cooldown} (policy.partition_cooldown){new}."
