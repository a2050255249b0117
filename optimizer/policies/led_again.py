"""Leaders for partitions that have none, or that a dead or draining broker leads: by the order of the list alone, which copies nothing.

Called by `follow` before and after the moves of a policy, whose parts move replicas only. Such repairs need neither a detector nor a score.
"""

from __future__ import annotations

import numpy as np

from optimizer.options import PlanOptions
from optimizer.policies.board import Board, Step
from optimizer.policies.recording import Evaluator
from optimizer.why_words import counted


def lead_again(board: Board, options: PlanOptions, *, off_leaving: bool = False) -> list[str]:
    """Make the steps on `board` by which the active replica whose broker leads fewest, ties by id, leads each partition without a leader,
    or `off_leaving` each that is still led by a dead or draining broker; what was done, in a sentence. Frozen topics, and hard goals that
    would get worse, leave a partition as it is, and the plan's remarks name it. O(partitions)."""
    evaluator = Evaluator(board.compiled, board.steps)
    changed = {p for step in board.steps for p in step.partitions}
    counts = np.bincount(board.leaders[board.leaders >= 0], minlength=len(board.active))
    wanted = np.append(board.leaving, False)[board.leaders] if off_leaving else board.leaders < 0
    active, done = board.active, 0
    for p in np.flatnonzero(wanted & board.mendable).tolist():
        heirs = [(int(counts[b]), b, slot) for slot, b in enumerate(board.lists[p].tolist()) if b >= 0 and active[b]]
        if options.max_partitions is not None and p not in changed and len(changed) >= options.max_partitions:
            break
        for _, broker, slot in sorted(heirs):
            was = "has no leader" if board.lead[p] < 0 else f"is led by {board.name(int(board.leaders[p]))}, which is to lead nothing"
            reason = f"{board.snapshot.partition_name(p)} {was}; {board.name(broker)} has a replica and would lead"
            step = Step((p,), (tuple(board.lists[p].tolist()),), (slot,), reason)
            if evaluator.refusal(step, by_score=False) is None:
                evaluator.make(step)
                board.make(step)
                counts[broker] += 1
                changed.add(p)
                done += 1
                break
    what = "that a dead or draining broker leads" if off_leaving else "without a leader"
    return [f"repair: {counted(done, 'partition')} {what} would get another replica as leader"] if done else []
