"""A plan by the parts of a policy: detector, score, amount, order, filters, placement, evaluator, guards.

`optimizer.planner.plan` calls it where a goals file's policy names an `amount`. Pure: randomness comes from the seed of the options, and
time and history are the caller's (`optimizer.detectors.guards`). Every stage says in the plan's notes what it kept or dropped.
"""

from __future__ import annotations

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from goals.policy import PolicyDocument
from optimizer.broker_sets import strays
from optimizer.compile import compile_problem
from optimizer.options import PlanOptions
from optimizer.plan import Plan
from optimizer.policies.batches import within_batches
from optimizer.policies.board import Board
from optimizer.policies.led_again import lead_again
from optimizer.policies.pipeline import run, too_few
from optimizer.policies.recording import plan_of
from optimizer.policies.targets import to_target_counts
from optimizer.policies.when import When
from optimizer.whatif import apply_whatifs
from optimizer.why_words import counted


def follows(policy: PolicyDocument) -> bool:
    """Whether plans are made by the parts of the policy."""
    return policy.amount is not None


def follow(snapshot: Snapshot, goals: GoalSet, policy: PolicyDocument, options: PlanOptions | None = None) -> Plan:
    """The plan that a policy makes of `snapshot`; deterministic in all its arguments.

    Raises
    ------
    ConfigurationError
        The options do not fit the snapshot (see `apply_whatifs`).

    Notes
    -----
    Unlike the search's, an action need not score above 0.5 unless `accept` asks for it; no action makes a hard goal worse.
    """
    options = options or PlanOptions()
    imagined = apply_whatifs(snapshot, goals, options)
    compiled = compile_problem(imagined, goals, options)
    board = Board.of(imagined, compiled)
    when = When(policy, imagined, goals)
    told = [when.sentence, *lead_again(board, options)]
    if board.steps:
        when.go_on(when.ahead(board.now()))
    few = too_few(board, policy) if not when.found.unrepaired else ""
    if few:
        told.append(f"{few}; nothing is moved")
    elif when.acts and policy.amount is not None and policy.amount.kind == "to_target_counts":
        told += to_target_counts(board, policy.tolerance or 0.0, options, _guard(board, policy, when))
    elif when.acts:
        told += run(board, goals, policy, options, when)
    told += lead_again(board, options, off_leaving=True)
    outside = len(strays(compiled.problem, board.lists))
    if outside:
        told.append(f"{counted(outside, 'replica')} outside their broker sets would stay: only a policy without amount moves them back")
    told.append("the plan is made by the parts of the policy, not by the search: another plan may bring more brokers within their goals")
    made = plan_of(snapshot, board, goals, options, policy.model_dump(exclude_none=True), [f"policy: {note}" for note in told])
    return within_batches(made, snapshot, imagined, compiled, goals, options, policy)


def _guard(board: Board, policy: PolicyDocument, when: When) -> int | None:
    """How many moves the guards of the policy allow for balance; None where they set no limit."""
    if not when.found.fired or too_few(board, policy):
        return 0
    guards = policy.guards
    limits = (guards.moves, guards.moves_per_hour) if guards is not None else ()
    return min((x for x in limits if x is not None), default=None)
