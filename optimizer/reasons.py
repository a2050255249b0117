"""Why an action would be made, in one sentence an operator can check.

Pure text from an action's own scores; conditional mood, since nothing has been done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from optimizer.plan import Change, GoalScore, ScoreRows

STATE_WORDS = {1: "draining", 2: "dead"}


def reason_of(
    changes: Sequence[Change], repairs: Sequence[str], scores: ScoreRows, weights: Sequence[float],
    states: Mapping[int, int],
) -> str:  # fmt: skip
    """One sentence: what the action repairs, or which goal it helps most and at which brokers.

    `weights` are those of the goals in order (0 for hard ones); `states` are broker states by id.
    """
    parts = []
    if "dead_broker" in repairs or "draining_broker" in repairs:
        parts.append(_leaving(changes, states))
    if "leaderless" in repairs:
        parts.append("would give a leader to " + _partitions(c for c in changes if c.leader_before is None))
    parts.extend(f"would lower the violation of {name}" for name in repairs if name in scores.frame.index)
    gained = [weight * (score - 0.5) for weight, score in zip(weights, scores.score, strict=True)]
    best = max(gained, default=0.0)
    if best > 1e-9:
        name = scores.frame.names[gained.index(best)]
        parts.append(_helped(name, scores[name]))
    if not parts:
        parts.append("would bring the touched brokers nearer to the middle of their bands")
    return "; ".join(part for part in parts if part)


def _leaving(changes: Sequence[Change], states: Mapping[int, int]) -> str:
    left: dict[int, str] = {}
    for change in changes:
        for broker in change.replicas_before:
            word = STATE_WORDS.get(states.get(broker, 0))
            gone = broker not in change.replicas_after
            if word and (gone or (change.leader_before == broker != change.leader_after)):
                left[broker] = word
    return "would take load off " + ", ".join(
        f"broker {b}, which is {word}" for b, word in sorted(left.items())
    )


def _partitions(changes: Iterable[Change]) -> str:
    return ", ".join(f"{c.topic}-{c.partition}" for c in changes)


def _helped(name: str, goal: GoalScore) -> str:
    """The lowest touched broker's score before and after, in the goal that gains most."""
    worst = min(sorted(goal.before), key=lambda b: goal.before[b])
    lowest = min(goal.after.values())
    return f"would raise the lowest {name} score of the brokers touched from {goal.before[worst]:.3g} (broker {worst}) to {lowest:.3g}"
