"""`plan(snapshot, goals, options) -> Plan`: the pure function at the centre of Trimtab.

It wires the parts: what-ifs, the compiled problem, rounds of search, the assembled plan. It does no I/O, reads no clock, and keeps
nothing between calls.
"""

from __future__ import annotations

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from optimizer.assemble import assemble
from optimizer.careful import careful_search
from optimizer.options import PlanOptions, Watch
from optimizer.plan import Plan
from optimizer.problem import compile_problem
from optimizer.search.rounds import search
from optimizer.whatif import apply_whatifs


def plan(
    snapshot: Snapshot, goals: GoalSet, options: PlanOptions | None = None, watch: Watch | None = None
) -> Plan:
    """The best plan found for `snapshot` under `goals`; deterministic in all its arguments.

    `watch`, where given, is told between the phases of the search how many brokers are still out of band; when it returns False, the
    plan is the best so far, and its notes say so. Of a `LiveSnapshot`, what cannot be trusted is left alone except for repairs, and
    `skipped` says so (`optimizer.caution`).

    Raises
    ------
    ConfigurationError
        The options do not fit the snapshot (see `apply_whatifs`).

    Notes
    -----
    Every action, replayed in order, is acceptable as CONTRACT section 7 says, and lowers a potential; planning again on the
    result without budgets gives an empty plan.
    """
    options = options or PlanOptions()
    imagined = apply_whatifs(snapshot, goals, options)
    compiled = compile_problem(imagined, goals, options)
    caution = compiled.caution
    found = search(compiled, options, watch) if caution is None else careful_search(compiled, caution, options, watch)
    return assemble(snapshot, imagined, goals, options, compiled, found)
