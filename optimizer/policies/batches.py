"""Batches: how much of a plan is carried out at once, by broker, by topic and by sources of a target; what is beyond the last batch is for
the next plan.

`optimizer.planner` and `follow` call `within_batches` where a policy has a `batch`; the executor starts a batch when all of the last one is
in place and a pause is over. Source: AutoMQ's grouping of actions. There a batch follows after the pause whether the last one is in place
or not, and after a minute the rest is thrown away; its map of sources is not reset between batches, here it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from goals.policy import Batch, PolicyDocument
from optimizer.identity import identified
from optimizer.options import PlanOptions
from optimizer.plan import Action, Batches, Change, Plan
from optimizer.policies.board import Board, Step
from optimizer.policies.recording import Evaluator, plan_of
from optimizer.problem import Compiled
from optimizer.why_words import counted

TRIES = 8  # repairs that cannot be made alone, before all up to the last one is kept


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
    return moves_in(action.changes)


def moves_in(changes: Iterable[Change]) -> list[Moved]:
    """The replicas that changes move."""
    found = []
    for change in changes:
        gone = [b for b in change.replicas_before if b not in change.replicas_after]
        come = [b for b in change.replicas_after if b not in change.replicas_before]
        found += [Moved(change.topic, change.partition, s, t) for s, t in zip(gone, come, strict=False)]
    return found


def within_batches(
    made: Plan, given: Snapshot, imagined: Snapshot, compiled: Compiled, goals: GoalSet, options: PlanOptions, policy: PolicyDocument
) -> Plan:
    """`made` with the batches that it is carried out in, or a part of it where the policy's `batch` leaves actions for the next plan: the
    first batches, and of what follows the repairs. `given` and `imagined` are the snapshot before and after what-ifs, which `compiled` is
    of."""
    rule = policy.batch
    if rule is None:
        return made
    actions = list(made.actions)
    moves = [moves_of(action) for action in actions]
    partitions = Counter(imagined.topics[t] for t in imagined.partition_topic.tolist())
    batch = grouped(moves, rule, partitions)
    first = next((i for i, number in enumerate(batch) if number >= rule.batches), len(batch))
    if first == len(actions):
        return in_batches(made, rule, partitions)
    board = _kept(imagined, compiled, actions, first)
    left, beyond = len(actions) - len(board.steps), len(board.steps) - first
    limits = f"{counted(rule.moves_per_broker, 'move')} of a broker, {rule.topic_share:.0%} of a topic's partitions"
    told = (
        f"policy: batch: {counted(sum(map(len, moves)), 'move')} make {batch[-1] + 1:,} batches ({limits}, "
        f"{counted(rule.sources_per_target, 'source')} of a target); {left:,} of {counted(len(actions), 'action')} left for the next plan"
    )
    if beyond:
        told += f"; {counted(beyond, 'action')} beyond the last batch: repairs, and what they need"
    if not left:
        return in_batches(replace(made, notes=(*made.notes, told)), rule, partitions)
    notes = [*(note for note in made.notes if note.startswith("policy: ")), told]
    cut = plan_of(given, board, goals, options, policy.model_dump(exclude_none=True), notes, left)
    return in_batches(cut, rule, partitions, left)


def in_batches(made: Plan, rule: Batch, partitions: Mapping[str, int], left: int = 0) -> Plan:
    """`made` with the batch of each proposal: by what moves in the end, in the order of the actions, and what first changes in one action
    together. As it is where all of it is one batch and nothing is `left`."""
    net = {(c.topic, c.partition): c for c in made.proposals}
    together: list[list[Change]] = []
    for action in made.actions:
        names = ((c.topic, c.partition) for c in action.changes)
        together.append([net.pop(name) for name in names if name in net])
    numbers = grouped([moves_in(changes) for changes in together], rule, partitions)
    of = {(c.topic, c.partition): n + 1 for changes, n in zip(together, numbers, strict=True) for c in changes}
    found = Batches(tuple(of[c.topic, c.partition] for c in made.proposals), rule.pause, left)
    if found.count <= 1 and not left:
        return made
    told = f"policy: batch: carried out in {found.count:,} batches, each {rule.pause:g} s after all of the last one is in place"
    notes = (*made.notes, told) if found.count > 1 else made.notes
    return identified(replace(made, batches=found, notes=notes))


def _kept(imagined: Snapshot, compiled: Compiled, actions: Sequence[Action], first: int) -> Board:
    """A board with the first actions, and the repairs among the others.

    Every action was acceptable at its turn, so the first ones are a plan. Where a repair cannot be made without what is left before it, all
    up to it is kept, and after some such repairs all up to the last one: a batch holds none back.
    """
    for _ in range(TRIES):
        board, stuck = _tried(imagined, compiled, actions, first)
        if stuck is None:
            return board
        first = stuck + 1
    return _tried(imagined, compiled, actions, max(i + 1 for i, action in enumerate(actions) if action.repairs))[0]


def _tried(imagined: Snapshot, compiled: Compiled, actions: Sequence[Action], first: int) -> tuple[Board, int | None]:
    """A board with the first actions, and the repairs among the others up to one that cannot be made, which is the index."""
    board, evaluator = Board.of(imagined, compiled), Evaluator(compiled)
    for i, action in enumerate(actions):
        if i >= first and not action.repairs:
            continue
        step = _step(board, action)
        verdict = evaluator.verdict(step) if step is not None else None
        if i >= first and not (verdict is not None and verdict.allowed and verdict.repairs):
            return board, i
        assert step is not None  # the first ones stand where they stood in the plan
        evaluator.make(step)
        board.make(step)
    return board, None


def _step(board: Board, action: Action) -> Step | None:
    """An action in the slots of `board`: a broker that comes takes the slot of one that goes. None where a partition is not, on `board`, as
    the action found it."""
    partitions, lists, leads = [], [], []
    rows, ids = board.snapshot.row_of_broker, board.snapshot.broker_ids
    leaders = board.leaders
    for change in action.changes:
        p = board.snapshot.row_of_partition(change.topic, change.partition)
        row = board.lists[p].tolist()
        leader = int(ids[leaders[p]]) if leaders[p] >= 0 else None
        if {int(ids[b]) for b in row if b >= 0} != set(change.replicas_before) or leader != change.leader_before:
            return None
        after = [rows[b] for b in change.replicas_after]
        coming = iter([b for b in after if b not in row])
        row = [b if b < 0 or b in after else next(coming, -1) for b in row]
        partitions.append(p)
        lists.append(tuple(row))
        leads.append(-1 if change.leader_after is None else row.index(rows[change.leader_after]))
    return Step(tuple(partitions), tuple(lists), tuple(leads), action.reason)
