"""A plan out of the steps of a policy: every score taken at its turn by the search's own evaluator.

Called by `follow`. The one module here that judges actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import overload

import numpy as np

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from kernels.compiled import kernel, whole
from optimizer.assemble import assemble
from optimizer.bounds import lower_bounds
from optimizer.found import Found, Round
from optimizer.identity import identified
from optimizer.options import PlanOptions
from optimizer.outcome import picture
from optimizer.placement.commit import build_state
from optimizer.placement.evaluate import Verdict, adopt, evaluate, judge, propose_all
from optimizer.placement.log import Log, load_action
from optimizer.placement.record import Record, published_changes
from optimizer.placement.state import MAX_CHANGES, State
from optimizer.plan import Action, LowerBounds, Plan
from optimizer.policies.board import Board, Step
from optimizer.problem import Compiled, Problem
from optimizer.why_budget import budget_text
from optimizer.why_words import few

MOST_CHANGES = MAX_CHANGES
BY_POLICY = "the policy moves nothing more; a plan by the search may fix it"
RESTS = "the policy moves nothing more now: partitions are left alone that were moved lately or whose loads are in doubt"


class Evaluator:
    """What goals make of a step, on a state that goes along with a board: `steps` are those that it has made already."""

    def __init__(self, compiled: Compiled, steps: Sequence[Step] = ()) -> None:
        self.compiled = compiled
        self.state = build_state(compiled.problem, compiled.replicas, compiled.lead)
        for step in steps:
            self.make(step)

    def verdict(self, step: Step) -> Verdict:
        """What goals make of a step now; it is not made."""
        return judge(self.compiled.problem, self.state, propose_all(self.state, step.partitions, step.lists, step.leads))

    def score(self, step: Step) -> float:
        """The combined score of a step, 0.5 is neutral."""
        return float(self.verdict(step).score)

    def refusal(self, step: Step, *, by_score: bool) -> str | None:
        """Why a step may not be made: a hard goal that gets worse, or, `by_score`, no better by the combined score; None where it may."""
        verdict = self.verdict(step)
        if not verdict.allowed:
            worse = self._worsened(verdict)
            return f"hard goal {few(worse)} would get worse" if worse else "a hard goal would get worse"
        if by_score and not verdict.repairs and not verdict.better:
            return f"combined score {verdict.score:.4f}, not above 0.5"
        return None

    def _worsened(self, verdict: Verdict) -> list[str]:
        """Hard goals in which a broker would score less by the step judged last; none where a partition would lose a rack."""
        rows, goals = self.state.touched[: verdict.touched], self.compiled.goals
        lower = np.any(self.state.fresh[: verdict.touched, : len(goals)] < self.state.score[rows, : len(goals)], axis=0)
        return [goals[g].name for g in np.flatnonzero(lower).tolist() if goals[g].hard]

    def make(self, step: Step) -> None:
        """Carry out `step` on the state."""
        take(self.compiled.problem, self.state, propose_all(self.state, step.partitions, step.lists, step.leads))


@kernel
def take(problem: Problem, state: State, n: int) -> int:
    """Carry out the proposed `n` changes as one action; returns how many brokers it touched."""
    verdict = evaluate(problem, state, n)
    adopt(problem, state, n, verdict.touched)
    return int(verdict.touched)


def plan_of(
    given: Snapshot, board: Board, goals: GoalSet, options: PlanOptions, policy: dict[str, object], notes: Sequence[str], waiting: int = 0,
    because: str | None = None,
) -> Plan:  # fmt: skip
    """The plan that makes the steps of `board`; `given` is the snapshot before what-ifs, `policy` what the plan was made by. `waiting` are
    further actions that it leaves for the next plan; `because` says why a plan that does one thing only leaves brokers as they are (else a
    budget, or the policy, does).
    """
    compiled = board.compiled
    state = build_state(compiled.problem, compiled.replicas, compiled.lead)
    because = because or budget_text(compiled, state, options, waiting) or (RESTS if board.resting.any() else BY_POLICY)
    plan = _assembled(given, board, goals, options, state, lower_bounds(compiled.problem, state), waiting, because)
    recorded = {**plan.options, "policy": policy}
    # `assemble` leaves out steps that later ones take back; then reasons do not belong to actions one by one.
    reasons = [s.reason for s in board.steps]
    actions = Reasoned(plan.actions, reasons) if len(reasons) == len(plan.actions) else plan.actions
    # Nothing is proven by a policy that looked at some moves only.
    outcomes = tuple(replace(g, status="violated") if g.status == "infeasible" else g for g in plan.goals)
    return identified(
        replace(plan, options=recorded, actions=actions, goals=outcomes, cannot_be_emptied=(), notes=(*plan.notes, *notes))
    )


def assembled(given: Snapshot, board: Board, goals: GoalSet, options: PlanOptions) -> Plan:
    """The plan that makes the steps of `board`, without lower bounds; nothing is said of why brokers are left but that planning was
    stopped, for the caller to say better."""
    state = build_state(board.compiled.problem, board.compiled.replicas, board.compiled.lead)
    return _assembled(given, board, goals, options, state, LowerBounds(0, 0), unproven=True)


def _assembled(
    given: Snapshot, board: Board, goals: GoalSet, options: PlanOptions, state: State, bounds: LowerBounds, waiting: int = 0,
    because: str | None = None, *, unproven: bool = False,
) -> Plan:  # fmt: skip
    compiled = board.compiled
    start, log = picture(compiled, state), _log(board)
    found = []
    if board.steps:
        kept = _record(compiled.problem, state, log)
        lists = published_changes(compiled, compiled.replicas, compiled.lead, log)
        found = [Round(compiled.replicas, compiled.lead, log, kept, lists)]
    end = Found(found, state, stopped=unproven)
    return assemble(given, board.snapshot, goals, options, compiled, start, bounds, end, waiting, because)


def _log(board: Board) -> Log:
    changes = [change for step in board.steps for change in zip(step.partitions, step.lists, step.leads, strict=True)]
    counts = [len(step.partitions) for step in board.steps]
    slots = board.lists.shape[1]
    return Log(
        used=np.array([len(counts), len(changes)], np.int64),
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        partition=np.array([p for p, _, _ in changes], np.int64),
        replicas=np.array([row for _, row, _ in changes], np.int64).reshape(len(changes), slots),
        lead=np.array([lead for _, _, lead in changes], np.int64),
    )


def _record(problem: Problem, state: State, log: Log) -> Record:
    """Scores of all actions, taken at their turns; `state` ends at the placement after them."""
    actions, changes = int(log.used[0]), int(log.used[1])
    goals, most = len(problem.goal), 2 * state.replicas.shape[1] * changes + 1
    score, repairs, goal_score = np.zeros(actions), np.zeros(actions, np.int64), np.zeros((actions, goals))
    first, broker = np.zeros(actions + 1, np.int64), np.empty(most, np.int64)
    before, after = np.empty((most, goals)), np.empty((most, goals))
    tell(problem, state, log, score, repairs, goal_score, first, broker, before, after)
    used = int(first[-1])
    rank = np.lexsort((broker[:used], np.repeat(np.arange(actions), np.diff(first))))  # ascending brokers in each action
    earlier = -1 - np.arange(used, dtype=np.int32)
    return Record(score, repairs, goal_score, first, broker[:used][rank], earlier, before[:used][rank], after[:used][rank])


@kernel
def tell(
    problem: Problem, state: State, log: Log, score: np.ndarray, repairs: np.ndarray, goal_score: np.ndarray, first: np.ndarray,
    broker: np.ndarray, before: np.ndarray, after: np.ndarray,
) -> int:  # fmt: skip
    """Make the actions of `log` one after the other, whatever they score, and write down what they do."""
    goals, at = len(problem.goal), whole(0)
    for a in range(log.used[0]):
        n = load_action(state, log, whole(a))
        verdict = evaluate(problem, state, n)
        score[a], repairs[a] = verdict.score, verdict.repairs
        for g in range(goals):
            goal_score[a, g] = state.action[g]
        for t in range(verdict.touched):
            broker[at] = state.touched[t]
            for g in range(goals):
                before[at, g] = state.score[state.touched[t], g]
                after[at, g] = state.fresh[t, g]
            at += 1
        first[a + 1] = at
        adopt(problem, state, n, verdict.touched)
    return int(at)


class Reasoned(Sequence[Action]):
    """Actions with the reasons of a policy; what goals say of each follows its own."""

    def __init__(self, actions: Sequence[Action], reasons: Sequence[str]) -> None:
        self._actions, self._reasons = actions, reasons

    def __len__(self) -> int:
        return len(self._actions)

    @overload
    def __getitem__(self, index: int) -> Action: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Action]: ...
    def __getitem__(self, index: int | slice) -> Action | Sequence[Action]:
        if isinstance(index, slice):
            return [replace(a, reason=r) for a, r in zip(self._actions[index], self._reasons[index], strict=True)]
        return replace(self._actions[index], reason=self._reasons[index])

    def __iter__(self) -> Iterator[Action]:
        for action, reason in zip(self._actions, self._reasons, strict=True):
            yield replace(action, reason=reason)
