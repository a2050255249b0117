"""Writes decisions down, and keeps in mind what was decided last. Called by the decider."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from metrics_reporter.reporter import Clock
from trimtab.history.records import Decision, Verdict
from trimtab.service.config import ServiceConfig
from trimtab.service.goals import GoalsKeeper
from trimtab.service.keeping import DecisionKeeper
from trimtab.service.look import Looked
from trimtab.service.recording import plan_text, standings
from trimtab.service.views import Leadership

if TYPE_CHECKING:
    from optimizer.plan import Plan

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Turn:
    """One decision under way: since when, who led then, and why now."""

    began: int
    lead: Leadership
    cause: str


@dataclass(frozen=True, slots=True)
class LastVerdict:
    """What was decided last, for `why_nothing`."""

    at_ms: int
    cause: str
    verdict: Verdict
    reason: str
    kind: str


class Scribe:
    """Decisions of one instance, in the history and in the log."""

    def __init__(
        self, config: ServiceConfig, goals: GoalsKeeper, decisions: DecisionKeeper, clock: Clock, instance: str, changed: Callable[[], None]
    ) -> None:
        self._config, self._goals, self._instance, self._changed = config, goals, instance, changed
        self.decisions, self.clock = decisions, clock
        self.last: LastVerdict | None = None

    def write(
        self, turn: Turn, what: Verdict, reason: str, *, kind: str,
        looked: Looked | None = None, made: Plan | None = None, ended: int | None = None,
    ) -> int:  # fmt: skip
        """Write a verdict down, before anything is done about it; its number in the history.

        Raises
        ------
        ExternalError
            It could not be written down.
        """
        began, lead, cause = turn.began, turn.lead, turn.cause
        summary = made.summary if made is not None else None
        decision = Decision(
            began_ms=began,
            ended_ms=max(ended if ended is not None else self.clock.wall_ms(), began),
            instance=self._instance,
            cause=cause,
            mode=self._config.mode,
            verdict=what,
            reason=reason,
            controller=lead.controller,
            controller_epoch=lead.epoch,
            horizon=self._config.horizon,
            snapshot_digest=looked.snapshot.digest if looked is not None else None,
            goals_digest=looked.goal_set.digest if looked is not None else self._goals.current.digest,
            plan_id=made.plan_id if made is not None and what == "planned" else None,
            actions=summary.actions if summary is not None else 0,
            replica_moves=summary.replica_moves if summary is not None else 0,
            leadership_changes=summary.leadership_changes if summary is not None else 0,
            bytes_to_move=summary.bytes_to_move if summary is not None else 0,
            goals=standings(made, looked),
            plan=plan_text(made) if made is not None and what == "planned" else None,
        )
        id = self.decisions.record(decision)
        self.last = LastVerdict(began, cause, what, reason, kind)
        log.info("decision %d (%s): %s. %s", id, cause, what, reason)
        self._changed()
        return id
