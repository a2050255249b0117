"""Why a broker would stay out of a band: a replica larger than it, load that may not move, whole numbers, racks, giants elsewhere.

Called by `why` for goals of kind `usage_distribution`.
"""

from __future__ import annotations

import math

import numpy as np

from cluster_model.resources import RESOURCES
from cluster_model.snapshot import Snapshot
from goals.model import UsageDistribution
from optimizer.placement.state import State
from optimizer.problem import BOUND, COLUMN, MEAN, Compiled
from optimizer.why_conflicts import conflict_text
from optimizer.why_held import Held
from optimizer.why_racks import rack_share
from optimizer.why_totals import Totals
from optimizer.why_words import amount


def band_proof(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, end: State, here: Held, row: int, g: int, goal: UsageDistribution
) -> str | None:
    """What keeps broker `row`, which holds what is `here`, out of the band of goal `g` whatever is planned; None where nothing does, as far
    as is known."""
    problem, resource = compiled.problem, goal.resource
    mean, bound = problem.table[row, g, MEAN], problem.table[row, g, BOUND]
    load = end.load[row, problem.goal[g, COLUMN]]
    if int(totals.together(row).sum()) == 1:
        of_set = " of its broker set" if totals.active > 1 else ""
        what = "it cannot take what would stay on the others" if load < mean else "no other one can share its load"
        return f"it is the only eligible broker{of_set}, and {what}; add one"
    band = f"{amount(mean - bound, resource)} to {amount(mean + bound, resource)}"
    if RESOURCES[resource] == "count" and math.floor(mean + bound + 1e-9) < math.ceil(mean - bound - 1e-9):
        return f"counts are whole numbers and none lies in its target range of {band}; a wider bound would contain one"
    held = here.amounts(g)
    over = load > mean + bound
    if over and len(held):
        largest = int(np.argmax(held))
        name = snapshot.partition_name(int(here.partitions[largest]))
        if held[largest] > totals.top(g):
            return (
                f"irreducible: {name} alone is {amount(float(held[largest]), resource)}, above every broker's target range "
                f"(up to {amount(totals.top(g), resource)}); more partitions for the topic would split it"
            )
        stuck = float(held[here.fixed].sum())
        if stuck > mean + bound:
            return f"{here.fixed_topics} hold {amount(stuck, resource)} on it, above its target range of {band}; {here.remedy}"
    if not over:
        reach = totals.movable(g) + float(held[here.fixed].sum())
        if reach < mean - bound:
            remedy = totals.to_move_more(snapshot)
            return f"all that may move amounts to {amount(reach, resource)}, below its target range of {band}{remedy}"
    forced = rack_share(snapshot, compiled, totals, row, g, goal, over)
    if forced is not None:
        return forced
    if totals.everywhere and resource not in ("leaders", "leader_network_in", "network_out", "cpu"):
        return (
            "the replication factor equals the number of brokers, so each holds every partition; add a broker"
        )
    if compiled.caution is None:
        text = conflict_text(problem, compiled.goals, totals.conflicts.get(row, ()), g, over)
        if text is not None:
            return text
    return _overshadowed(snapshot, compiled, totals, end, row, g, goal, over)


def _overshadowed(
    snapshot: Snapshot, compiled: Compiled, totals: Totals, end: State, row: int, g: int, goal: UsageDistribution, over: bool
) -> str | None:
    """Whether replicas above the band elsewhere leave too little for this broker and its like."""
    problem = compiled.problem
    column = problem.goal[g, COLUMN]
    giants, held = totals.giants(g, row)
    members = totals.together(row)
    active = int(members.sum())
    if over or not len(giants) or len(giants) >= active:
        return None
    total = float(end.load[members, column].sum())
    rest = (total - held) / (active - len(giants))
    if rest < problem.table[row, g, MEAN] - problem.table[row, g, BOUND]:
        name = snapshot.partition_name(int(giants[0]))
        return (
            f"partitions larger than a target range ({name}{' and others' if len(giants) > 1 else ''}) leave {amount(rest, goal.resource)} "
            "for each other broker, below the target range; more partitions for those topics would help"
        )
    return None
