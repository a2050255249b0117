"""Why an action would be made, in one sentence an operator can check.

Pure text from an action's own scores; conditional mood, since nothing has been done.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from optimizer.broker_sets import Homes
from optimizer.plan import Change

BROKER_SET = "broker_set"  # what brings a replica to the brokers of its set repairs
STATE_WORDS = {1: "draining", 2: "dead"}


NOTHING_ELSE = "would bring the touched brokers nearer to the middle of their target ranges"


def reason_of(
    changes: Sequence[Change], repairs: Sequence[str], helped: str | None, goals: Container[str], states: Mapping[int, int],
    homes: Homes | None = None,
) -> str:  # fmt: skip
    """One sentence: what the action repairs, and what `helped` says of the goal it helps most, where there is one.

    `goals` are names; `states` are broker states by id; `homes` are broker sets, where there are any.
    """
    if not repairs:
        return helped or NOTHING_ELSE
    parts = []
    if "dead_broker" in repairs or "draining_broker" in repairs:
        parts.append(_leaving(changes, states))
    if "leaderless" in repairs:
        parts.append("would give a leader to " + _partitions(c for c in changes if c.leader_before is None))
    if BROKER_SET in repairs and homes is not None:
        parts.append(_coming_home(changes, homes))
    parts.extend(lowered(name) for name in repairs if name in goals)
    return "; ".join(filter(None, (*parts, helped))) or NOTHING_ELSE


def lowered(name: str) -> str:
    """That a hard goal is less far from being met."""
    return f"would lower the violation of {name}"


def helped(name: str, broker: int, before: float, after: float) -> str:
    """`broker` scores `before`, the lowest of those touched, in the goal that gains most; the lowest afterwards scores `after`."""
    digits = next((d for d in range(3, 9) if f"{before:.{d}g}" != f"{after:.{d}g}"), 9)
    return raised(name, broker, f"{before:.{digits}g}", f"{after:.{digits}g}")


def raised(name: str, broker: int, before: str, after: str) -> str:
    """The sentence on the worst broker that an action touches."""
    if after == "1":  # the score of every broker touched
        return f"would meet {name} on broker {broker} (score {before} → 1)"
    return f"would raise the lowest {name} score from {before} (broker {broker}) to {after}"


def _leaving(changes: Sequence[Change], states: Mapping[int, int]) -> str:
    left: dict[int, str] = {}
    for change in changes:
        for broker in change.replicas_before:
            word = STATE_WORDS.get(states.get(broker, 0))
            gone = broker not in change.replicas_after
            if word and (gone or (change.leader_before == broker != change.leader_after)):
                left[broker] = word
    parts = []
    for word in dict.fromkeys(left.values()):
        brokers = [str(b) for b, state in sorted(left.items()) if state == word]
        parts.append(f"{word} broker{'' if len(brokers) == 1 else 's'} {', '.join(brokers)}")
    return "would take load off " + " and ".join(parts)


def _coming_home(changes: Sequence[Change], homes: Homes) -> str:
    come: dict[str, list[Change]] = {}
    for change in changes:
        home = homes.brought(change)
        if home is not None:
            come.setdefault(home, []).append(change)
    return "would bring " + ", ".join(f"{_partitions(them)} to the {home}" for home, them in sorted(come.items()))


def _partitions(changes: Iterable[Change]) -> str:
    return ", ".join(f"{c.topic}-{c.partition}" for c in changes)
