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
            alone = (*options.exclude_topics, *looked.young_topics)
            options = replace(options, resting=resting, exclude_topics=alone, split_hits=looked.split_hits)
        case "preferred":
            from optimizer.policies.preferred import preferred_leaders

            return Made(looked, goals, options, preferred_leaders(looked.snapshot, goals, options, astray), scope)
        case "demote":
            from optimizer.policies.demoted import demoted

            slow = {b.id: b.why for b in looked.slow.brokers}
            return Made(looked, goals, options, demoted(looked.snapshot, goals, options, slow), scope)
        case "place":
            from optimizer.policies.placed_anew import placed_anew

            rule, options = looked.policy.new_topics, replace(options, resting=resting)
            assert rule is not None
            made = placed_anew(looked.snapshot, goals, looked.new_topics, rule.placement, rule.score.kind, options)
            return Made(looked, goals, options, made, scope)
        case "restore":
            options = replace(options, exclude_topics=("*",))  # topics that are excluded are repaired all the same
        case "repairs":
            goals = replace(goals, goals=tuple(g for g in goals.goals if g.hard), digest="")
    return Made(looked, goals, options, plan(looked.snapshot, goals, options, watch), scope)


def rest_of(made: Made, cooldown_ms: int) -> str:
    """What is said of partitions and topics that balance left alone because of their age; empty where there are none."""
    count, young = len(made.options.resting), len(made.looked.young_topics) if made.scope == "all" else 0
    which = "1 partition that was" if count == 1 else f"{count:,} partitions that were"
    told = f" Left alone: {which} moved within the last {spoken(cooldown_ms)} (policy.partition_cooldown)." if count else ""
    topics = "1 topic that is" if young == 1 else f"{young:,} topics that are"
    age = spoken(round(1000 * made.looked.policy.min_topic_age))
    return f"{told} Left alone: {topics} younger than {age} (policy.min_topic_age)." if young else told
