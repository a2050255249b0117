"""A configuration that is tried: weights and bounds of goals by name, how often to look, and over how long loads are averaged.

Made by `spark.backtest.search`, put on a goal set here, replayed by `spark.backtest.replay`. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from goals.document import with_goals
from goals.model import Goal, GoalSet, UsageDistribution

HORIZON = 1800.0  # seconds that a service's long horizon averages over
Mode = Literal["planned", "never", "hindsight"]

@dataclass(frozen=True)
class Configuration:
    """Weights (above 0) and bounds (share of the mean) by goal name; a goal that is not named keeps its own. `cadence` is seconds between
    looks, `horizon` seconds that loads are averaged over before the planner sees them; `max_moves` is a budget of each plan (None: as the
    job has it). `min_gain`, `move_cost` (bytes), and `start`, the share of the mean by which a broker has to be off before plans start (a
    hysteresis, which stops at half of it), are of the goals' policy, and as it has them where None. `mode`: as the service plans; not at
    all; or knowing the mean of the coming horizon, which no service does."""

    cadence: float
    weights: Mapping[str, float] = field(default_factory=dict)
    bounds: Mapping[str, float] = field(default_factory=dict)
    what: str = ""
    horizon: float = HORIZON
    max_moves: int | None = None
    min_gain: float | None = None
    move_cost: float | None = None
    start: float | None = None
    mode: Mode = "planned"

    def applied(self, goals: GoalSet) -> GoalSet:
        """`goals` with this configuration's weights and bounds.

        Raises
        ------
        KeyError
            A weight or bound is for a goal that is not there, or that has none.
        """
        named = {goal.name: goal for goal in levelled(goals)}
        for name in (*self.weights, *self.bounds):
            if name not in named:
                raise KeyError(name)
        made = with_goals(goals, tuple(self._changed(goal) for goal in goals.goals))
        policy = dict(made.policy)
        asked = {"min_gain": self.min_gain, "move_cost": self.move_cost}
        policy |= {name: value for name, value in asked.items() if value is not None}
        if self.start is not None:
            policy["detector"] = {**_detector(goals), "hysteresis": {"start": self.start, "stop": self.start / 2.0}}
        return replace(made, policy=policy)

    def _changed(self, goal: Goal) -> Goal:
        if not isinstance(goal, UsageDistribution):
            return goal
        weight = goal.weight if goal.hard else self.weights.get(goal.name, goal.weight)
        return with_bound(replace(goal, weight=weight), self.bounds.get(goal.name, goal.bound))


def _detector(goals: GoalSet) -> Mapping[str, object]:
    """That of the goals' policy, as written; the default one where there is none."""
    written = goals.policy.get("detector")
    return written if isinstance(written, Mapping) else {"kind": "goal_band"}


def starts(goals: GoalSet) -> bool:
    """Whether `Configuration.start` can be put on the goals: the band detector, which has no hysteresis of its own."""
    detector = _detector(goals)
    return "preset" not in goals.policy and detector.get("kind") == "goal_band" and "hysteresis" not in detector


def levelled(goals: GoalSet) -> tuple[UsageDistribution, ...]:
    """The goals that a configuration can change: soft ones that level a resource."""
    return tuple(g for g in goals.goals if isinstance(g, UsageDistribution) and not g.hard)


def with_bound(goal: UsageDistribution, bound: float) -> UsageDistribution:
    """The goal with another bound; a `var` that is a share keeps its ratio to it, so the form of the score stays."""
    var = goal.var * bound / goal.bound if goal.var_is_share else goal.var
    return replace(goal, bound=bound, var=var)
