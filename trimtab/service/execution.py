"""Has approved plans carried out: hands them to the executor and asks it on, as long as this instance leads.

The turn of the worker ``executor``, and the only one that calls the executor. Who leads is asked before the hand-over and before
every step. When leadership is gone the executor lets go without touching the cluster, and the instance that leads next carries the rest
on; when the service stops, or a person rejects a plan that runs, it takes back what is in progress and what is done stays.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from cluster_model.errors import ExternalError, TrimtabError
from cluster_model.model import ClusterModel
from metrics_reporter.reporter import Clock
from trimtab.execution.ledger import Fenced
from trimtab.execution.order import order_of, sized
from trimtab.execution.progress import Standing
from trimtab.execution.recorded import Wish
from trimtab.executor import Executor, Left, Moved, Progress
from trimtab.history.records import OutcomeKind
from trimtab.service.desk import Held, PlanDesk, State
from trimtab.service.keeping import Told
from trimtab.service.leadership import LeaderCheck, who_leads
from trimtab.service.standing import moved_away

if TYPE_CHECKING:
    pass

log = logging.getLogger(__name__)

TURN = 1.0  # seconds between two steps
NOTE_EVERY_MS = 60_000  # so often what was done is added to the history, for limits that a restart does not forget
PATIENCE_MS = 60_000  # the leader is unknown for so long: another may
SHARE_MS = 5_000  # so often pauses and drains that were told elsewhere are looked for
RECOVER_MS = 5_000  # so often it is looked whether an execution was left unfinished
FIRST_LOOK_MS = 15_000  # so long no plan is made before that was looked at for the first time since this instance leads
FIRST_LOOK = "earlier executions are checked first: their unfinished steps and their moves"
NOTHING = Progress(0, 0, 0, (), 0.0, 0.0)


class Execution:
    """See the module.

    Parameters
    ----------
    finished
        Called after a plan was carried out, wholly or not.
    ended
        Called with a plan that was carried out wholly.
    moved
        Called with what an execution has moved, also one of another process, again and again with the same.
    stale
        Why the model is not to be trusted now, in a sentence; no step of a plan starts then.
    acts
        Whether the mode lets anything be carried out, also what another instance left unfinished.
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
        moved: Callable[[Moved], None],
        ended: Callable[[Held], None] = lambda held: None,
        stale: Callable[[], str] = lambda: "",
        acts: bool = True,
        step: float = TURN,
    ) -> None:
        self._executor, self._desk, self._leader, self._model = executor, desk, leader, model
        self._told, self._clock, self._finished, self._changed = told, clock, finished, changed
        self._stale, self._acts, self._step, self._moved, self._ended = stale, acts, step, moved, ended
        self._running: Held | None = None
        self._left: Left | None = None
        self._asked_ms: int | None = None  # since this instance leads
        self._leads_since_ms: int | None = None
        self._shared_ms: int | None = None
        self._unshared_why = ""
        self._paused = False
        self._note = ""
        self._wish: tuple[str, Wish] | None = None  # of a person, for the execution of a plan
        self._noted_ms = 0
        self._unsure_since_ms: int | None = None

    def turn(self) -> float:
        """One step of the plan in hand, where there is one to take."""
        held, executor = self._desk.current, self._executor
        if executor is None or not self._acts:
            return self._step
        self._notice_lead()
        self._share(executor)
        self._grant(executor)
        if self._running is not None:
            self._go_on(executor, self._running)
        elif self._left is not None and self._left.plan_id:
            self._finish_what_was_left(executor)
        elif held is not None and held.state == "approved":
            self._begin(executor, held)
        elif held is not None and held.rollback_asked is not None:
            self._roll_back(executor, held)
        else:
            self._look_for_what_was_left(executor)
        return self._step

    def _share(self, executor: Executor) -> None:
        """Write down in the cluster what people told this instance, and take over what they told others. A cluster that does not answer
        keeps nothing from going on."""
        now = self._clock.wall_ms()
        unshared = self._told.unshared()
        due = self._shared_ms is None or now - self._shared_ms >= SHARE_MS
        if not due and (not unshared or self._unshared_why):
            return
        try:
            for key, document in unshared.items():
                executor.tell(key, document)
            self._told.shared(unshared)
            if self._told.take(executor.told()):
                drains = ", ".join(map(str, sorted(self._told.draining))) or "none"
                pause = self._told.pause
                log.warning("set elsewhere: %s; brokers to drain: %s", f"paused by {pause.who}" if pause else "not paused", drains)
                self._changed()
        except ExternalError as error:
            if str(error) != self._unshared_why:
                log.warning("pauses and drains are not shared with other instances now: %s", error)
            self._unshared_why = str(error)
        else:
            self._unshared_why = ""
        self._shared_ms = now

    @property
    def standing(self) -> Standing | None:
        """How the newest execution that is known stands, whichever process carries it out."""
        return None if self._executor is None else self._executor.standing()

    @property
    def here(self) -> bool:
        """Whether this instance carries it out."""
        return self._running is not None or (self._left is not None and bool(self._left.plan_id))

    def ask(self, plan_id: str, wish: Wish) -> None:
        """Have the next turn do what a person wants of the execution of a plan."""
        self._wish = (plan_id, wish)

    def _grant(self, executor: Executor) -> None:
        if self._wish is None or not self._leader.ask().leads:
            return
        plan_id, wish = self._wish
        try:
            if wish.verb == "rollback" and not self.here and (self._left is None or not self._left.busy):
                executor.rollback(plan_id, wish.who)
                self._left = Left(plan_id=plan_id)
            else:
                executor.wish(wish)
        except ExternalError as error:
            if error.retriable:  # asked again at the next turn
                raise
            log.warning("plan %s: %s asks to %s, which cannot be done: %s", plan_id, wish.who, wish.verb, error)
        self._wish = None
        self._changed()

    def _roll_back(self, executor: Executor, held: Held) -> None:
        """Bring back what an ended plan changed."""
        who = held.rollback_asked
        assert who is not None
        if not self._leader.ask().leads:
            return
        try:
            count = executor.rollback(held.plan.plan_id, who)
        except ExternalError as error:
            if error.retriable:  # asked again at the next turn
                raise
            held.rollback_asked, held.note = None, f"not rolled back: {error}"
            log.warning("plan %s is not rolled back: %s", held.plan.plan_id, error)
            return
        held.rollback_asked = None
        self._desk.become(held, "running", "noted", who, f"rolled back by {who}: {count} partitions", note="being taken back")
        self._running = held
        log.warning("plan %s is rolled back by %s: %d partitions", held.plan.plan_id, who, count)

    @property
    def busy(self) -> str:
        """Why no plan is made now, in a sentence, where an execution that this instance did not start is not over."""
        left = self._left
        if left is None:
            return FIRST_LOOK if self._looks_first else ""
        return left.busy or f"plan {left.plan_id}, which another process left unfinished, is carried on{self._note}"

    @property
    def _looks_first(self) -> bool:
        """Whether it is not known yet what executions before did: what they left, and what they moved."""
        if self._executor is None or not self._acts or self._asked_ms is not None or not self._leader.known.leads:
            return False
        return self._leads_since_ms is None or self._clock.wall_ms() - self._leads_since_ms < FIRST_LOOK_MS

    def _notice_lead(self) -> None:
        if not self._leader.known.leads:
            self._leads_since_ms = self._asked_ms = None
        elif self._leads_since_ms is None:
            self._leads_since_ms = self._clock.wall_ms()

    def _look_for_what_was_left(self, executor: Executor) -> None:
        now = self._clock.wall_ms()
        if not self._leader.known.leads or (self._asked_ms is not None and now - self._asked_ms < RECOVER_MS):
            return
        if not self._leader.ask().leads:
            return
        found = executor.recover()
        self._asked_ms = now
        before, self._left = self._left, found if found.plan_id or found.busy else None
        if self._left is None:
            self._note_moved(executor)
        if self._left is not None and self._left != before:
            log.warning("%s", self.busy)
            self._changed()

    def _finish_what_was_left(self, executor: Executor) -> None:
        answer = self._leader.ask()
        if not answer.leads:
            if answer.error is None:
                executor.release()
                self._left = None
            return
        progress = self._polled(executor)
        if isinstance(progress, str):
            log.warning("%s", progress)
            self._left = None
            return
        total = progress.waiting + progress.moving + progress.done + len(progress.failed)
        self._note = f": {progress.done} of {total} partitions are done{f', {progress.waits}' if progress.waits else ''}"
        if progress.finished:
            log.info("%s", self.busy)
            self._left, self._note = None, ""
            self._note_moved(executor)
            self._finished("a plan that was left unfinished has ended")

    def _note_moved(self, executor: Executor) -> None:
        found = executor.moved()
        if found is not None and found.partitions:
            self._moved(found)

    def _polled(self, executor: Executor) -> Progress | str:
        """The next step; a sentence where the execution is not ours any more, or cannot be started."""
        pause = self._told.pause
        if pause is not None and not self._paused:
            executor.pause(pause.who)
        elif pause is None and self._paused:
            executor.resume()
        self._paused = pause is not None
        try:
            return executor.poll(self._stale())
        except Fenced as error:
            executor.release()
            return str(error)
        except TrimtabError as error:
            if isinstance(error, ExternalError) and error.retriable:
                raise
            executor.release()
            return str(error)

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
                self._desk.become(held, "cancelled", "cancelled", "service", f"never started: {who_leads(answer)}")
            return
        gone = moved_away(self._model.snapshot(self._clock.wall_ms()), held.plan)
        if gone is not None:
            self._desk.become(held, "superseded", "superseded", "service", f"never started: {gone}")
            self._finished("the cluster changed before the plan started")
            return
        self._desk.become(held, "running", "started", held.who or "auto", "", note="being carried out")
        self._running, self._noted_ms, self._unsure_since_ms = held, self._clock.wall_ms(), None
        self._paused = False
        executor.submit(sized(order_of(held.plan), self._model.snapshot(self._clock.wall_ms())))
        log.info("plan %s is being carried out", held.plan.plan_id)

    def _go_on(self, executor: Executor, held: Held) -> None:
        now = self._clock.wall_ms()
        answer = self._leader.ask()
        if answer.error is not None:
            self._unsure_since_ms = now if self._unsure_since_ms is None else self._unsure_since_ms
            if now - self._unsure_since_ms < PATIENCE_MS:
                held.note = f"waits: {who_leads(answer)}"
                raise ExternalError(f"no step is taken while no controller says which node leads: {answer.error}", retriable=True)
        if not answer.leads:
            why = f"released, steps in progress continue in the cluster: {who_leads(answer)}"
            self._end(held, executor.release(), "cancelled", "cancelled", why)
            return
        self._unsure_since_ms = None
        if held.rollback_asked is not None:
            self._roll_back(executor, held)
        if held.cancel_asked is not None:
            self._end(held, executor.cancel(), "cancelled", "cancelled", held.cancel_asked)
            return
        pause, progress = self._told.pause, self._polled(executor)
        if isinstance(progress, str):
            state: State = "cancelled" if held.progress is not None else "failed"
            self._end(held, held.progress or NOTHING, state, "cancelled" if state == "cancelled" else "failed", progress)
            return
        held.progress = progress
        held.note = "being carried out" + (f", {progress.waits}" if progress.waits else "")
        if pause is not None:
            held.note = f"no further step while paused by {pause.who}; steps in progress continue"
        ended = executor.standing()
        if progress.finished and ended is not None and ended.direction != "forward":
            stay = f"{progress.done} partitions stay as planned"
            self._end(held, progress, "cancelled", "rolled_back" if ended.direction == "rollback" else "cancelled", f"{ended.why}; {stay}")
        elif progress.finished:
            failed = len(progress.failed)
            detail = ""
            if failed:
                first = progress.failed[0]
                name = f"{first.topic}-{first.partition}"
                detail = f"{failed} of {failed + progress.done} partitions were not changed; {name}: {first.reason}"
            state = "failed" if failed and not progress.done else "done"
            self._end(held, progress, state, "failed" if failed else "done", detail)
        elif now - self._noted_ms >= NOTE_EVERY_MS:
            self._noted_ms = now
            self._desk.become(held, "running", "noted", "executor", "so far", _amounts(held, progress), note=held.note)
        self._changed()

    def _end(self, held: Held, progress: Progress, state: State, kind: OutcomeKind, detail: str) -> None:
        held.progress = progress
        self._running = None
        if self._executor is not None:
            self._note_moved(self._executor)
        try:
            self._desk.become(held, state, kind, "executor", detail, _amounts(held, progress))
        except ExternalError as error:
            self._desk.end_unwritten(held, state, kind, f"{detail} (not written down: {error})")
            log.error("the outcome of plan %s could not be recorded: %s", held.plan.plan_id, error)
        log.info("plan %s: %s%s", held.plan.plan_id, state, f", {detail}" if detail else "")
        if kind == "done":
            self._ended(held)
        self._finished(f"the last plan is {state}")


def _amounts(held: Held, progress: Progress) -> tuple[int, int, int]:
    """Moves, leaderships and bytes done since they were told last; moves in proportion to the partitions that are done."""
    total = len(held.plan.proposals)
    share = min(progress.done / total, 1.0) if total else 0.0
    summary = held.plan.summary
    now = (round(share * summary.replica_moves), round(share * summary.leadership_changes), round(progress.bytes_copied))
    return (max(now[0] - held.told[0], 0), max(now[1] - held.told[1], 0), max(now[2] - held.told[2], 0))
