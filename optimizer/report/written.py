"""A plan with its numbers as the plan file has them, so that a report of a saved plan is that of the plan itself, to the last digit.

Called by the reports for people. The file has 9 significant digits: a number between two roundings would else be shown as the one before
it is saved, and as the other one after.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from optimizer.plan import Action, Band, BrokerOutcome, GoalOutcome, GoalScore, GoalState, Plan, as_written

K = TypeVar("K")


def plan_as_written(plan: Plan) -> Plan:
    """The plan with goals, brokers and target ranges as its file has them; its actions are `action_as_written`, one by one."""
    return replace(
        plan,
        goals=tuple(map(_goal, plan.goals)),
        brokers=tuple(map(_broker, plan.brokers)),
        bands={name: {broker: _band(band) for broker, band in of.items()} for name, of in plan.bands.items()},
    )


def action_as_written(action: Action) -> Action:
    """The action with its scores as the plan file has them."""
    scores = {
        name: GoalScore(as_written(one.score), _numbers(one.before), _numbers(one.after)) for name, one in action.goal_scores.items()
    }
    return replace(action, score=as_written(action.score), goal_scores=scores)


def _goal(goal: GoalOutcome) -> GoalOutcome:
    return replace(goal, weight=as_written(goal.weight), before=_state(goal.before), after=_state(goal.after))


def _state(state: GoalState | None) -> GoalState | None:
    if state is None:
        return None
    mean, most, cv = (None if number is None else as_written(number) for number in (state.mean, state.max_deviation, state.cv))
    return replace(state, mean=mean, max_deviation=most, cv=cv, in_band=as_written(state.in_band))


def _broker(broker: BrokerOutcome) -> BrokerOutcome:
    return replace(
        broker, before=_numbers(broker.before), after=_numbers(broker.after), scores_before=_numbers(broker.scores_before),
        scores_after=_numbers(broker.scores_after),
    )  # fmt: skip


def _band(band: Band) -> Band:
    return Band(*map(as_written, (band.mean, band.low, band.high, band.var_low, band.var_high)))


def _numbers(numbers: Mapping[K, float]) -> dict[K, float]:
    return {key: as_written(number) for key, number in numbers.items()}
