"""What the decider knows and asks of the service around it. Made by `Balancer`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from trimtab.service.health import Condition
from trimtab.service.look import Looked
from trimtab.service.planning import Planner


@dataclass(frozen=True)
class Surroundings:
    """The service around the decider: what it is, what it does for the decider, and what it knows.

    Attributes
    ----------
    has_executor
        Whether plans can be carried out.
    plan
        `optimizer.planner.plan`.
    prepare
        Called before the first decision: compiles.
    beat
        Called while planning takes long.
    interrupted
        Whether planning is to end with what there is, because the service stops.
    changed
        Called when there is something else to see.
    condition
        How well the cluster is.
    busy
        Why no plan is made now, where an execution is not over that is not of the plan in hand.
    learned
        Why no plan for balance is made now, by what came of those before.
    """

    has_executor: bool
    plan: Planner
    prepare: Callable[[], None]
    beat: Callable[[], None]
    interrupted: Callable[[], bool]
    changed: Callable[[], None]
    condition: Callable[[], Condition]
    busy: Callable[[], str]
    learned: Callable[[Looked, int], tuple[str, ...]]
