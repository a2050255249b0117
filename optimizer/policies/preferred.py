"""A plan that gives partitions back to their preferred leaders, as `kafka-leader-election.sh --election-type preferred` does: no byte.

Called by the service before it plans anything else, where leaders are away from the preferred ones, as after a restart. Pure. Source:
ours; what Kafka's `auto.leader.rebalance.enable` does, without what would make a hard goal worse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.policies.board import Board, Step
from optimizer.policies.recording import Evaluator, plan_of
from optimizer.problem import MOVABLE
from optimizer.whatif import apply_whatifs

NOTE = "the plan restores preferred leaders, which copies nothing, and does nothing else"
ALONE = "this plan restores preferred leaders and does nothing else; a plan of the whole cluster may fix it"


def preferred_leaders(snapshot: Snapshot, goals: GoalSet, options: PlanOptions, among: Collection[tuple[str, int]]) -> Plan:
    """The plan of leaderships that go back to the first replica of their lists; deterministic in all its arguments.

    Parameters
    ----------
    among
        Topic and number of the partitions whose preferred leader is in sync; others are left alone.

    Raises
    ------
    ConfigurationError
        The options do not fit the snapshot (see `apply_whatifs`).

    Notes
    -----
    Actions need not score above 0.5; none makes a hard goal worse. Topics that are excluded or frozen, and brokers that are not active,
    are left alone. O(replicas + partitions of `among`).
    """
    imagined = apply_whatifs(snapshot, goals, options)
    compiled = compile_problem(imagined, goals, options)
    board, evaluator = Board.of(imagined, compiled), Evaluator(compiled)
    kept: Counter[str] = Counter()
    for step in _steps(board, among):
        if options.max_partitions is not None and len(board.steps) >= options.max_partitions:
            break
        refusal = evaluator.refusal(step, by_score=False)
        if refusal is None:
            evaluator.make(step)
            board.make(step)
        else:
            kept[refusal] += 1
    notes = [NOTE, *(f"{_keep(count)}: {why}" for why, count in kept.items())]
    return plan_of(snapshot, board, goals, options, {"restores": "preferred leaders"}, notes, because=ALONE)


def _keep(count: int) -> str:
    one = "1 partition keeps another leader than the preferred one"
    return one if count == 1 else f"{count:,} partitions keep other leaders than the preferred ones"


def _steps(board: Board, among: Collection[tuple[str, int]]) -> Iterator[Step]:
    """One for each partition that may change, in the order of topics and partitions."""
    active, movable = board.active, board.compiled.problem.partition[:, MOVABLE] == 1
    rows = sorted({board.snapshot.row_of_partition(topic, number) for topic, number in among})
    for p in rows:
        if p < 0 or not movable[p] or board.lead[p] <= 0:
            continue
        lists = tuple(board.lists[p].tolist())
        if active[lists[0]]:
            reason = f"{board.name(lists[0])} is the preferred leader of {board.snapshot.partition_name(p)}, and is in sync"
            yield Step((p,), (lists,), (0,), reason)
