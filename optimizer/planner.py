"""`plan(snapshot, goals, options) -> Plan`: the pure function at the centre of Trimtab.

It wires the parts: what-ifs, the compiled problem, rounds of search, the assembled plan. It does no I/O, reads no clock, and keeps
nothing between calls but what a caller hands it for the next (`SearchState`), which changes no plan.
"""

from __future__ import annotations

from dataclasses import replace

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from goals.policy import PolicyDocument
from kernels.compiled import COMPILED
from optimizer.assemble import assemble
from optimizer.bounds import lower_bounds
from optimizer.careful import careful_search
from optimizer.detectors import policy_of
from optimizer.found import Found
from optimizer.options import PlanOptions, Watch
from optimizer.outcome import picture
from optimizer.placement.record import BrokenRuleError
from optimizer.plan import LowerBounds, Plan
from optimizer.policies.batches import within_batches
from optimizer.policies.demoted import demoted
from optimizer.policies.follow import follow, follows
from optimizer.policies.replication import change_factors
from optimizer.search_state import SearchState, Work, leaves_partitions_alone, work_on
from optimizer.spending import affordable_search
from optimizer.threads import Threads
from optimizer.whatif import apply_whatifs

WORTH_THREADS = 10_000  # replicas; fewer are planned in the time that handing work to threads takes


def plan(
    snapshot: Snapshot, goals: GoalSet, options: PlanOptions | None = None, watch: Watch | None = None,
    state: SearchState | None = None,
) -> Plan:  # fmt: skip
    """The best plan found for `snapshot` under `goals`; deterministic in all its arguments.

    `watch`, where given, is told between the phases of the search how many brokers are still outside their target range; when it
    returns False, the plan is the best so far, and its notes say so. `state`, where given, makes planning a cluster like that of its
    last plan faster; the plan is the same, byte for byte. Of a `LiveSnapshot`, what cannot be trusted is left alone except for repairs,
    and `skipped` says so (`optimizer.caution`). Where the policy of `goals` names an `amount`, its parts make the plan
    (`optimizer.policies`); where it has a `batch`, the plan ends with it. Where brokers are to be demoted, or `options` name
    replication factors, the plan does nothing else.

    Raises
    ------
    ConfigurationError
        The options do not fit the snapshot (see `apply_whatifs`).
    BrokenRuleError
        A bug of the planner; its message is what to report.

    Notes
    -----
    Every action, replayed in order, is acceptable as docs/contract.md, section 7 says, and lowers a potential; planning again on the
    result without budgets gives an empty plan.
    """
    options = with_policy(options or PlanOptions(), goals)
    if options.demote_brokers:
        return demoted(snapshot, goals, options, {b: f"--demote-broker {b} asks for it" for b in options.demote_brokers})
    if options.replication_factor:
        return change_factors(snapshot, goals, options)
    policy = policy_of(goals)
    if follows(policy):
        return follow(snapshot, goals, policy, options)
    imagined = apply_whatifs(snapshot, goals, options)
    if state is not None and not leaves_partitions_alone(snapshot, imagined):
        state = None
    work = work_on(snapshot, imagined, goals, options, state.take() if state is not None else None)
    compiled, start = work.compiled, picture(work.compiled, work.begin)
    with Threads(options.threads if COMPILED and compiled.replicas.size >= WORTH_THREADS else 1) as threads:
        try:
            found, bounds = _searched(work, options, watch, threads)
        except BrokenRuleError as bug:
            raise BrokenRuleError(
                f"A bug of Trimtab: {bug}. There is no plan. Please report it with this line and, if you can, the files: snapshot "
                f"{snapshot.digest}, goals {goals.digest}, {replace(options, loads=None)}."
            ) from bug
        kept = work if state is not None else None
        del work  # where no caller keeps it, the memory of its states is free for the columns of the plan
        made = assemble(snapshot, imagined, goals, options, compiled, start, bounds, found)
    if state is not None and kept is not None:
        state.keep(kept)
    return within_batches(made, snapshot, imagined, compiled, goals, options, policy)


def with_policy(options: PlanOptions, goals: GoalSet) -> PlanOptions:
    """The options with what the policy of `goals` says and they do not."""
    policy = PolicyDocument.model_validate(goals.policy) if goals.policy else None
    if policy is None:
        return options
    move_cost = None if policy.move_cost is None else round(policy.move_cost)
    return replace(
        options,
        min_gain=policy.min_gain if options.min_gain is None else options.min_gain,
        move_cost=move_cost if options.move_cost is None else options.move_cost,
        noise=policy.noise if options.noise is None else options.noise,
    )


def _searched(work: Work, options: PlanOptions, watch: Watch | None, threads: Threads) -> tuple[Found, LowerBounds]:
    """What a search finds, and the lower bounds, which are made beside it."""
    compiled, states = work.compiled, work.states
    topics_out = states.topics_out(compiled.problem)
    bounds = threads.beside(lambda: lower_bounds(compiled.problem, states.current, topics_out))
    if compiled.caution is None:
        return affordable_search(compiled, options, watch, states, threads), bounds()
    return careful_search(compiled, compiled.caution, options, watch, states, threads), bounds()
