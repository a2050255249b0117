"""Has approved plans carried out: hands them to the executor and asks it on, as long as this instance leads.

The turn of the worker ``executor``, and the only one that calls the executor. Who leads is asked before the hand-over and before
every step. When leadership is gone the executor lets go without touching the cluster; when the service stops, or a person rejects
a plan that runs, it takes back what is in progress and what is done stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from cluster_model.errors import ExternalError
from cluster_model.model import ClusterModel
from metrics_reporter.reporter import Clock
from trimtab.executor import Executor, Progress
from trimtab.history.records import OutcomeKind
from trimtab.service.desk import Held, PlanDesk, State
from trimtab.service.keeping import Told
from trimtab.service.leadership import LeaderCheck, who_leads
from trimtab.service.standing import moved_away

log = logging.getLogger(__name__)

TURN = 1.0  # seconds between two steps
NOTE_EVERY_MS = 60_000  # so often what was done is added to the history, for limits that a restart does not forget
PATIENCE_MS = 60_000  # nobody says who leads for so long: another may


class Execution:
    """See the module.

    Parameters
    ----------
    finished
        Called after a plan was carried out, wholly or not.
    step
        Seconds between two steps.
    """

    def __init__(
        self,
        executor: Executor | None,
        desk: PlanDesk,
        leader: LeaderCheck,
        model: ClusterModel,
        told: Told,
        clock: Clock,
        *,
        finished: Callable[[str], None],
        changed: Callable[[], None],
        step: float = TURN,
    ) -> None:
        self._executor, self._desk, self._leader, self._model = executor, desk, leader, model
        self._told, self._clock, self._finished, self._changed = told, clock, finished, changed
        self._step = step
        self._running: Held | None = None
        self._noted_ms = 0
        self._unsure_since_ms: int | None = None

    def turn(self) -> float:
        """One step of the plan in hand, where there is one to take."""
        held = self._desk.current
        if self._executor is None or held is None:
            return self._step
        if self._running is not None:
            self._go_on(self._executor, self._running)
        elif held.state == "approved":
            self._begin(self._executor, held)
        return self._step

    def stop(self) -> None:
        """The service stops: take back what is in progress, where this instance still leads."""
        held, executor = self._running, self._executor
        if held is None or executor is None:
            return
        if self._leader.ask().leads:
            self._end(held, executor.cancel(), "cancelled", "cancelled", "the service was stopped; what was in progress was taken back")
        else:
            self._end(held, executor.release(), "cancelled", "cancelled", "the service was stopped while another instance leads")

    def _begin(self, executor: Executor, held: Held) -> None:
        if self._told.pause is not None:
            return
        answer = self._leader.ask()
        if not answer.leads:
            if answer.error is None:
                self._desk.become(held, "cancelled", "cancelled", "service", f"never begun: {who_leads(answer)}")
            return
        gone = moved_away(self._model.snapshot(self._clock.wall_ms()), held.plan)
        if gone is not None:
            self._desk.become(held, "superseded", "superseded", "service", f"never begun: {gone}")
            self._finished("the cluster changed before the plan began")
            return
        self._desk.become(held, "running", "started", held.who or "auto", "", note="being carried out")
        self._running, self._noted_ms, self._unsure_since_ms = held, self._clock.wall_ms(), None
        executor.submit(held.plan.plan_id, held.plan.proposals)
        log.info("plan %s is being carried out", held.plan.plan_id)

    def _go_on(self, executor: Executor, held: Held) -> None:
        now = self._clock.wall_ms()
        answer = self._leader.ask()
        if answer.error is not None:
            self._unsure_since_ms = now if self._unsure_since_ms is None else self._unsure_since_ms
            if now - self._unsure_since_ms < PATIENCE_MS:
                held.note = f"waits: {who_leads(answer)}"
                raise ExternalError(f"no step is taken while nobody says who leads: {answer.error}", retriable=True)
        if not answer.leads:
            why = f"let go of, what was in progress goes on by itself: {who_leads(answer)}"
            self._end(held, executor.release(), "cancelled", "cancelled", why)
            return
        self._unsure_since_ms = None
        if held.cancel_asked is not None:
            self._end(held, executor.cancel(), "cancelled", "cancelled", held.cancel_asked)
            return
        pause = self._told.pause
        if pause is not None:
            held.note = f"no further step while paused by {pause.who}; what is in progress goes on"
            return
        progress = held.progress = executor.poll()
        held.note = "being carried out"
        if progress.finished:
            failed = len(progress.failed)
            detail = ""
            if failed:
                first = progress.failed[0]
                name = f"{first.topic}-{first.partition}"
                detail = f"{failed} of {failed + progress.done} partitions were not changed; {name}: {first.reason}"
            state: State = "failed" if failed and not progress.done else "done"
            self._end(held, progress, state, "failed" if failed else "done", detail)
        elif now - self._noted_ms >= NOTE_EVERY_MS:
            self._noted_ms = now
            self._desk.become(held, "running", "noted", "executor", "so far", _amounts(held, progress), note=held.note)
        self._changed()

    def _end(self, held: Held, progress: Progress, state: State, kind: OutcomeKind, detail: str) -> None:
        held.progress = progress
        self._running = None
        try:
            self._desk.become(held, state, kind, "executor", detail, _amounts(held, progress))
        except ExternalError as error:
            held.state, held.note = state, f"{detail} (not written down: {error})"
            log.error("what came of plan %s could not be written down: %s", held.plan.plan_id, error)
        log.info("plan %s: %s%s", held.plan.plan_id, state, f", {detail}" if detail else "")
        self._finished(f"the last plan is {state}")


def _amounts(held: Held, progress: Progress) -> tuple[int, int, int]:
    """Moves, leaderships and bytes done since they were told last; moves in proportion to the partitions that are done."""
    total = len(held.plan.proposals)
    share = min(progress.done / total, 1.0) if total else 0.0
    summary = held.plan.summary
    now = (round(share * summary.replica_moves), round(share * summary.leadership_changes), round(progress.bytes_copied))
    return (max(now[0] - held.told[0], 0), max(now[1] - held.told[1], 0), max(now[2] - held.told[2], 0))
