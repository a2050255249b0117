"""Slow brokers in a decision: whether they have leaderships to give up, and what is said of them. Pure.

Which brokers are slow is `optimizer.detectors.slow`'s, the plan `optimizer.policies.demoted`'s; called by `trimtab.service.decider`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trimtab.service.look import Looked

if TYPE_CHECKING:
    from optimizer.plan import Plan


def gives_up_leaders(looked: Looked) -> bool:
    """Whether slow brokers lead partitions that others can lead, and the policy has them give those up."""
    from optimizer.policies.demoted import to_demote

    rule = looked.policy.slow_brokers
    if rule is None or not rule.leaders or not looked.slow.brokers:
        return False
    return to_demote(looked.snapshot, looked.goal_set, looked.slow.ids) > 0


def handed_over(made: Plan) -> str:
    """What a plan does that takes leaderships off slow brokers."""
    count = made.summary.leadership_changes
    what = f"{count:,} leadership{'s' if count != 1 else ''} would leave slow brokers, and no byte is copied"
    return f"{what if count else 'No leadership can leave the slow brokers'}."


def set_apart(looked: Looked) -> str:
    """A sentence for each broker that gets nothing because it is slow; empty where there is none."""
    told = [f" Broker {b.id} is slow and gets no replicas: {b.why}." for b in looked.slow.brokers]
    return "".join([*told, *(f" {note[:1].upper()}{note[1:]}." for note in looked.slow.notes)])
