"""What hard goals alone need, so that a budget goes to them first.

Called by `optimizer.spending`. A plan of hard goals alone consists of repairs, and a repair is acceptable whatever soft goals say. So its
end is looked for by the whole search, on a problem without soft goals, and the way there is put in order on the problem of the plan.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optimizer.course import Placement, net_round
from optimizer.found import Round
from optimizer.options import PlanOptions, Watch
from optimizer.prefixes import undone_of
from optimizer.problem import COLUMN, HARD, HARD_RACK, KIND, NO_RACK_GOAL, RACK_GOAL, TOPIC, TOPIC_ROW, Compiled
from optimizer.search.variants import by_moves
from optimizer.threads import Threads
from optimizer.worth import worthwhile_search


def hard_round(compiled: Compiled, options: PlanOptions, watch: Watch | None, threads: Threads) -> tuple[Round | None, bool]:
    """A round of what hard goals, and repairs beside them, need from where `compiled` starts, the cheapest broker first; None where none
    is missed, or nothing is found. And whether `watch` stopped the search. Of budgets it matters only whether bytes are limited."""
    start = Placement(compiled.replicas, compiled.lead)
    standing = start.state(compiled)
    _, crowded, missed, *_ = undone_of(compiled, standing)
    if not missed and not (crowded and compiled.problem.setting[RACK_GOAL] == HARD_RACK):
        return None, False
    if options.max_bytes is None:
        compiled = replace(compiled, problem=by_moves(compiled.problem))
    unlimited = replace(options, max_moves=None, max_bytes=None, max_partitions=None)
    found = worthwhile_search(hard_goals_alone(compiled), unlimited, watch, threads=threads)
    if not found.rounds or found.stopped:
        return None, found.stopped
    made, _ = net_round(compiled, unlimited, start, start.after(found.rounds), cheapest_first=True)
    return made if made.log.used[0] else None, False


def hard_goals_alone(compiled: Compiled) -> Compiled:
    """The same without soft goals."""
    problem = compiled.problem
    hard = np.flatnonzero(problem.goal[:, HARD] == 1)
    topics = np.flatnonzero(problem.goal[problem.topic_goal[:, TOPIC_ROW], HARD] == 1)
    goal, topic_goal, setting = problem.goal[hard], problem.topic_goal[topics], problem.setting.copy()
    topic_goal[:, TOPIC_ROW] = np.searchsorted(hard, topic_goal[:, TOPIC_ROW])
    goal[goal[:, KIND] == TOPIC, COLUMN] = np.arange(len(topics))
    if setting[RACK_GOAL] != HARD_RACK:
        setting[RACK_GOAL] = NO_RACK_GOAL
    alone = problem._replace(
        goal=goal, force=problem.force[hard], table=np.ascontiguousarray(problem.table[:, hard]), topic_goal=topic_goal,
        topic_total=problem.topic_total[topics], topic_share=problem.topic_share[topics], setting=setting,
    )  # fmt: skip
    at = {int(g): i for i, g in enumerate(hard)}
    means = {at[g]: mean for g, mean in compiled.means.items() if g in at}
    return replace(compiled, problem=alone, goals=tuple(compiled.goals[g] for g in at), means=means)
