"""Decisions and outcomes, as `trimtab.history.decisions` keeps them and the service makes them. Records only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

Verdict = Literal["planned", "nothing", "refused", "failed"]
"""A plan with actions; a plan without; no plan because of what was known (`reason` says); no plan because of an error."""

OutcomeKind = Literal["approved", "rejected", "superseded", "started", "done", "failed", "cancelled", "rolled_back", "noted"]


@dataclass(frozen=True, slots=True)
class GoalStanding:
    """One goal in one decision; numbers are None where the goal was skipped."""

    name: str
    hard: bool
    status: str
    violations_before: int | None = None
    violations_after: int | None = None
    deviation_before: float | None = None
    deviation_after: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What one instance decided at one time.

    Attributes
    ----------
    began_ms, ended_ms
        From when to when this instance was about it, Unix ms: two that overlap would be two planners at once.
    instance, controller, controller_epoch
        Who decided, and which controller, elected in which epoch, it took for the active one.
    cause
        Why now: ``interval``, ``broker lost``, a detector.
    reason
        A sentence for people; for every verdict but ``planned`` it says why there is no plan.
    plan
        The plan file's text; None where there is no plan.
    """

    began_ms: int
    ended_ms: int
    instance: str
    cause: str
    mode: str
    verdict: Verdict
    reason: str
    controller: int | None = None
    controller_epoch: int | None = None
    horizon: str | None = None
    snapshot_digest: str | None = None
    goals_digest: str | None = None
    plan_id: str | None = None
    actions: int = 0
    replica_moves: int = 0
    leadership_changes: int = 0
    bytes_to_move: int = 0
    goals: tuple[GoalStanding, ...] = ()
    plan: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a decision; `who` is a person, ``auto`` or the executor. Amounts are those this outcome adds."""

    time_ms: int
    kind: OutcomeKind
    who: str
    detail: str = ""
    replica_moves: int = 0
    leadership_changes: int = 0
    bytes_moved: int = 0


@dataclass(frozen=True, slots=True)
class Recorded:
    """A decision as it is kept, without its plan's text, and what came of it so far, oldest first."""

    id: int
    decision: Decision
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """What outcomes of some time add up to."""

    replica_moves: int
    leadership_changes: int
    bytes_moved: int


def text_of(time_ms: int) -> str:
    """``2026-11-20T12:00:00.000Z`` of Unix ms; texts sort as times do. What is before 1970, only ever a bound, counts as 1970."""
    time_ms = max(time_ms, 0)
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{time_ms % 1000:03}Z"


def ms_of(text: str) -> int:
    """Unix ms of what `text_of` gives."""
    moment = datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1000 + int(text[20:23])
