"""Batches: how much of a plan is made at once, by broker, by topic and by sources of a target; the rest is for the next plan.

`optimizer.planner` and `follow` call `within_batches` where a policy has a `batch`. Source: AutoMQ's grouping of actions. There a batch
follows the last after a pause, and after a minute the rest is thrown away; its map of sources is not reset between batches, here it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from goals.policy import Batch, PolicyDocument
from optimizer.options import PlanOptions
from optimizer.plan import Action, Plan
from optimizer.policies.board import Board, Step
from optimizer.policies.recording import plan_of
from optimizer.problem import Compiled
from optimizer.why_words import counted


@dataclass(frozen=True, slots=True)
class Moved:
    """One replica on its way: topic, partition, and wire ids of the broker it leaves and the one it goes to."""

    topic: str
    partition: int
    source: int
    target: int


@dataclass
class _Open:
    """The batch that is being filled."""

    of_topic: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    of_broker: Counter[int] = field(default_factory=Counter)
    sources: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))

    def takes(self, moves: Iterable[Moved], rule: Batch, partitions: Mapping[str, int]) -> bool:
        """Whether none of the limits is reached yet for what `moves` touch."""
        for move in moves:
            if len(self.of_topic.get(move.topic, ())) >= ceil(partitions[move.topic] * rule.topic_share):
                return False
            if max(self.of_broker[move.source], self.of_broker[move.target]) >= rule.moves_per_broker:
                return False
            if len(self.sources.get(move.target, ())) >= rule.sources_per_target:
                return False
        return True

    def add(self, moves: Iterable[Moved]) -> None:
        for move in moves:
            self.of_topic[move.topic].add(move.partition)
            self.of_broker.update((move.source, move.target))
            self.sources[move.target].add(move.source)


def grouped(actions: Sequence[Sequence[Moved]], rule: Batch, partitions: Mapping[str, int]) -> list[int]:
    """Number of the batch, from 0, that each action is in: a new one starts where a limit of the current one is reached. An action with
    several moves is never parted. `partitions` counts the partitions of each topic."""
    found, number, current = [], 0, _Open()
    for moves in actions:
        if not current.takes(moves, rule, partitions):
            number, current = number + 1, _Open()
        current.add(moves)
        found.append(number)
    return found


def moves_of(action: Action) -> list[Moved]:
    """The replicas that an action moves; a leadership that changes moves none."""
    found = []
    for change in action.changes:
        gone = [b for b in change.replicas_before if b not in change.replicas_after]
        come = [b for b in change.replicas_after if b not in change.replicas_before]
        found += [Moved(change.topic, change.partition, s, t) for s, t in zip(gone, come, strict=False)]
    return found


def kept_in(actions: Sequence[Action], rule: Batch, partitions: Mapping[str, int]) -> tuple[int, str]:
    """How many of `actions`, from the first, are within the batches of `rule`, and that in words. A repair is never left for later, nor is
    what comes before it."""
    moves = [moves_of(action) for action in actions]
    batch = grouped(moves, rule, partitions)
    kept = next((i for i, number in enumerate(batch) if number >= rule.batches), len(batch))
    kept = max(kept, max((i + 1 for i, action in enumerate(actions) if action.repairs), default=0))
    if kept == len(actions):
        return kept, ""
    total, left = sum(map(len, moves)), sum(map(len, moves[kept:]))
    limits = f"{rule.moves_per_broker:,} moves of a broker, {rule.topic_share:.0%} of a topic's partitions"
    return kept, (
        f"batch: {counted(total, 'move')} make {batch[-1] + 1:,} batches ({limits}, {rule.sources_per_target:,} sources "
        f"of a target); the last {left:,} {'is' if left == 1 else 'are'} left for the next plan"
    )


def within_batches(
    made: Plan, given: Snapshot, imagined: Snapshot, compiled: Compiled, goals: GoalSet, options: PlanOptions, policy: PolicyDocument
) -> Plan:
    """`made`, or the first of its actions where the policy's `batch` leaves the others for the next plan. `given` and `imagined` are the
    snapshot before and after what-ifs, which `compiled` is of. Every action was acceptable at its turn, so the first ones are a plan."""
    if policy.batch is None:
        return made
    counts = Counter(imagined.topics[t] for t in imagined.partition_topic.tolist())
    kept, told = kept_in(made.actions, policy.batch, counts)
    if not told:
        return made
    board = Board.of(imagined, compiled)
    for action in made.actions[:kept]:
        board.make(_step(board, action))
    notes = [note for note in made.notes if note.startswith("policy: ")]
    rest = sum(len(moves_of(action)) for action in made.actions[kept:])
    options = replace(options, batch_left=rest)
    return plan_of(given, board, goals, options, policy.model_dump(exclude_none=True), [*notes, f"policy: {told}"])


def _step(board: Board, action: Action) -> Step:
    """An action in the slots of `board`, as it stands now: a broker that comes takes the slot of one that goes."""
    partitions, lists, leads = [], [], []
    rows = board.snapshot.row_of_broker
    for change in action.changes:
        p = board.snapshot.row_of_partition(change.topic, change.partition)
        after = [rows[b] for b in change.replicas_after]
        row = board.lists[p].tolist()
        coming = iter([b for b in after if b not in row])
        row = [b if b < 0 or b in after else next(coming, -1) for b in row]
        partitions.append(p)
        lists.append(tuple(row))
        leads.append(-1 if change.leader_after is None else row.index(rows[change.leader_after]))
    return Step(tuple(partitions), tuple(lists), tuple(leads), action.reason)
