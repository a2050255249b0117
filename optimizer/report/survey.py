"""The actions of a plan, surveyed once: which matter most, how many of each type, what each change would be.

Called by the reports for people, which show some hundred actions of perhaps a hundred thousand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest

from optimizer.actions import ActionLog
from optimizer.changes import Proposals
from optimizer.plan import Action, ActionType, Change, Plan, as_written
from optimizer.report.units import count
from optimizer.report.written import action_as_written

NEUTRAL = 0.5
TOLERANCE = 1e-9
TYPES: tuple[ActionType, ...] = ("move", "leadership", "swap", "exchange", "replication")


@dataclass(frozen=True)
class Survey:
    """`top` actions in order of importance, and the number of actions per type and in all."""

    top: tuple[Action, ...]
    types: Mapping[str, int]
    total: int

    @property
    def complete(self) -> bool:
        return len(self.top) == self.total


@dataclass(frozen=True, slots=True)
class Flow:
    """What one broker would gain and lose: replicas and leaderships."""

    replicas_in: int = 0
    replicas_out: int = 0
    leaders_in: int = 0
    leaders_out: int = 0


def survey(plan: Plan, most: int) -> Survey:
    """One pass over the actions; at most `most` of them are kept.

    Repairs come first, then the highest combined score, then the earliest. Scores are as the plan file has them.
    """
    if isinstance(plan.actions, ActionLog):
        return _survey(plan.actions.ranked(most), plan.actions.types(), len(plan.actions))
    types: Counter[str] = Counter()

    def counted() -> Iterator[Action]:
        for action in plan.actions:
            types[action.type] += 1
            yield action

    top = nlargest(most, counted(), key=lambda a: (bool(a.repairs), as_written(a.score), -a.seq))
    return _survey(top, types, len(plan.actions))


def _survey(top: Iterable[Action], types: Mapping[str, int], total: int) -> Survey:
    return Survey(tuple(map(action_as_written, top)), {kind: types[kind] for kind in TYPES if types.get(kind)}, total)


def type_words(types: Mapping[str, int]) -> str:
    """``94 moves, 19 leadership changes, 3 swaps``."""
    nouns = {"leadership": ("leadership change", None), "replication": ("change of replication", "changes of replication")}
    return ", ".join(count(number, *nouns.get(kind, (kind, None))) for kind, number in types.items())


def flows(plan: Plan) -> dict[int, Flow]:
    """Net gains and losses of every broker that the proposals touch."""
    if isinstance(plan.proposals, Proposals):
        return {broker: Flow(*row) for broker, row in plan.proposals.flows().items()}
    tally: dict[int, list[int]] = {}
    for c in plan.proposals:
        for b in c.replicas_after:
            if b not in c.replicas_before:
                tally.setdefault(b, [0, 0, 0, 0])[0] += 1
        for b in c.replicas_before:
            if b not in c.replicas_after:
                tally.setdefault(b, [0, 0, 0, 0])[1] += 1
        if c.leader_before != c.leader_after:
            if c.leader_after is not None:
                tally.setdefault(c.leader_after, [0, 0, 0, 0])[2] += 1
            if c.leader_before is not None:
                tally.setdefault(c.leader_before, [0, 0, 0, 0])[3] += 1
    return {b: Flow(*row) for b, row in sorted(tally.items())}


def partition_name(change: Change) -> str:
    return f"{change.topic}-{change.partition}"


def route(change: Change) -> str:
    """``replica 1 → 4``, ``leader 1 → 2``, both, or ``preferred leader 1 → 2``."""
    gone = [b for b in change.replicas_before if b not in change.replicas_after]
    parts = []
    if gone or change.added:
        parts.append(f"replica {_ids(gone)} → {_ids(change.added)}")
    if change.leader_before != change.leader_after:
        parts.append(f"leader {_ids([change.leader_before])} → {_ids([change.leader_after])}")
    if not parts:
        first, then = change.replicas_before[0], change.replicas_after[0]
        parts.append(f"preferred leader {first} → {then}" if first != then else "replica order")
    return ", ".join(parts)


def touched_brokers(action: Action) -> list[int]:
    """Brokers whose replica set or leadership the action would change, ascending."""
    brokers: set[int] = set()
    for c in action.changes:
        brokers |= set(c.replicas_before) ^ set(c.replicas_after)
        if c.leader_before != c.leader_after:
            brokers |= {b for b in (c.leader_before, c.leader_after) if b is not None}
    return sorted(brokers)


def improved_goals(action: Action) -> list[str]:
    """Goals the action scores above neutral in, most improved first."""
    better = [(name, s.score) for name, s in action.goal_scores.items() if s.score > NEUTRAL + TOLERANCE]
    return [name for name, _ in sorted(better, key=lambda item: -item[1])]


def _ids(brokers: Iterable[int | None]) -> str:
    return ",".join(str(b) for b in brokers if b is not None) or "none"
