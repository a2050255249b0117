"""What operators ask of the service: approve, reject, roll back, pause, resume, plan now, drain.

Asked by `trimtab.service.balancer` for the HTTP interface, from any thread. Each is written down before it holds, or refused with what to
do instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from cluster_model.errors import TrimtabError
from cluster_model.trust import LiveSnapshot
from trimtab.execution.people import Pause
from trimtab.execution.progress import Standing
from trimtab.execution.recorded import Wish
from trimtab.execution.run import new_id
from trimtab.service.decider import ASKED, UNWELL
from trimtab.service.leadership import who_leads, whom_to_ask
from trimtab.service.parts import Parts
from trimtab.service.standing import moved_away
from trimtab.service.unwell import sentence
from trimtab.service.views import PlanView, Refused
from trimtab.service.words import clock

log = logging.getLogger(__name__)

BY_HAND = "apply the plan with Kafka's own tools: first its form reassignment, then its form election"
OVER = "Nothing is left to be decided about it; a newer plan can be asked for."


class Cause(Protocol):
    """Tells the planner of a reason to decide."""

    def __call__(self, why: str, *, at_once: bool = False) -> None: ...


class Operator:
    """What operators ask of a service.

    Parameters
    ----------
    snapshot
        The cluster as it is now; raises `Refused` while that is not known.
    cause
        Called with a reason to decide.
    changed
        Called after a change that needs no decision.
    """

    def __init__(
        self, parts: Parts, *, snapshot: Callable[[], LiveSnapshot], cause: Cause, changed: Callable[[], None]
    ) -> None:
        self._parts, self._snapshot, self._cause, self._changed = parts, snapshot, cause, changed

    def approve(self, plan_id: str, who: str) -> PlanView:
        parts = self._parts
        held = parts.desk.decide_on(plan_id, "approve")
        if held.state != "proposed":
            raise Refused(f"Plan {plan_id} is {held.state} already{f': {held.note}' if held.note else ''}.", OVER)
        if parts.config.mode == "dry-run":
            first = "Instead" if not parts.has_executor else "Set mode: approve in the configuration, or"
            raise Refused("The mode is dry-run: plans are only shown.", f"{first} {BY_HAND}.")
        if not parts.has_executor:
            raise Refused("There is no executor for this cluster in this release, so nothing would happen.", f"Instead {BY_HAND}.")
        if not parts.leader.known.leads:
            raise Refused(who_leads(parts.leader.known), whom_to_ask(parts.leader.known))
        pause = parts.told.pause
        if pause is not None:
            raise Refused(f"Paused by {pause.who} since {clock(pause.since_ms)}.", "Resume first.")
        unwell = [w for w in parts.decider.waits(parts.clock.wall_ms()) if w.kind in UNWELL]
        if unwell and held.is_balance:
            raise Refused(f"{sentence(unwell)}", "Approve it, or the plan that is made then, when the cluster is well.")
        gone = moved_away(self._snapshot(), held.plan)
        if gone is not None:
            self._recorded(lambda: parts.desk.become(held, "superseded", "superseded", "service", f"asked for by {who}, but {gone}"))
            self._cause("the cluster changed under the plan", at_once=True)
            raise Refused(f"The cluster is not as it was when plan {plan_id} was made: {gone}.", "Look at the plan that is being made now.")
        held.who = who
        self._recorded(lambda: parts.desk.become(held, "approved", "approved", who))
        log.info("plan %s approved by %s", plan_id, who)
        parts.workers["executor"].wake()
        return held.view()

    def reject(self, plan_id: str, who: str, why: str) -> PlanView:
        """Also stops a plan that runs: what is in progress is taken back, what is done stays."""
        parts = self._parts
        held = parts.desk.decide_on(plan_id, "reject")
        if held.state == "running":
            held.cancel_asked = f"stopped by {who}{f': {why}' if why else ''}"
            parts.workers["executor"].wake()
            return held.view()
        if held.state not in ("proposed", "approved"):
            raise Refused(f"Plan {plan_id} is {held.state} already{f': {held.note}' if held.note else ''}.", OVER)
        self._recorded(lambda: parts.desk.become(held, "rejected", "rejected", who, why))
        log.info("plan %s rejected by %s%s", plan_id, who, f": {why}" if why else "")
        return held.view()

    def rollback(self, plan_id: str, who: str) -> PlanView:
        """Bring back what a plan changed, while it runs or after it ended."""
        parts = self._parts
        held = parts.desk.decide_on(plan_id, "roll back")
        if held.state not in ("running", "done", "failed", "cancelled") or held.progress is None:
            raise Refused(f"Plan {plan_id} is {held.state}, and nothing of it was carried out here.", "There is nothing to roll back.")
        if not parts.leader.known.leads:
            raise Refused(who_leads(parts.leader.known), whom_to_ask(parts.leader.known))
        held.rollback_asked = who
        log.warning("plan %s is to be rolled back, by %s", plan_id, who)
        parts.workers["executor"].wake()
        return held.view()

    def cancel_execution(self, plan_id: str, who: str, why: str, finish: bool) -> None:
        """Start no further step of an execution, whichever process carries it out; `finish` lets what is in progress complete."""
        parts = self._parts
        found = self._execution_of(plan_id)
        if found.over:
            raise Refused(f"Plan {plan_id} is {found.state}: nothing of it is in progress.", "There is nothing to cancel.")
        if found.direction == "rollback":
            raise Refused("It is being rolled back, which ends with everything as before.", "Pause it, if it is to wait.")
        parts.execution.ask(plan_id, Wish("cancel", who, new_id(), "finish" if finish else "take back", why))
        log.warning("the execution of plan %s is to be cancelled, by %s%s", plan_id, who, f": {why}" if why else "")
        parts.workers["executor"].wake()

    def rollback_execution(self, plan_id: str, who: str) -> None:
        """Bring back what the newest execution changed, while it runs or after it ended, whichever process carried it out."""
        parts = self._parts
        found = self._execution_of(plan_id)
        if found.direction == "rollback":
            raise Refused(f"Plan {plan_id} is {'being ' if not found.over else ''}rolled back already.", "There is nothing left to do.")
        held = parts.desk.find(plan_id)
        if held is not None and held is parts.desk.current and held.progress is not None:
            self.rollback(plan_id, who)
            return
        parts.execution.ask(plan_id, Wish("rollback", who, new_id()))
        log.warning("the execution of plan %s is to be rolled back, by %s", plan_id, who)
        parts.workers["executor"].wake()

    def _execution_of(self, plan_id: str) -> Standing:
        """How the execution of a plan stands, where it is the newest one and this instance may say something to it."""
        parts = self._parts
        found = parts.execution.standing
        if found is None:
            raise Refused("No execution is known here.", "The instance that leads knows it.", missing=True)
        if found.plan_id != plan_id:
            raise Refused(f"The newest execution is that of plan {found.plan_id}, not {plan_id}.", "Look at that one.", missing=True)
        if not parts.leader.known.leads:
            raise Refused(who_leads(parts.leader.known), whom_to_ask(parts.leader.known))
        return found

    def pause(self, who: str, why: str) -> None:
        now = self._parts.clock.wall_ms()
        self._recorded(lambda: self._parts.told.set_pause(Pause(who, why, now)))
        log.warning("paused by %s%s", who, f": {why}" if why else "")
        self._changed()

    def resume(self, who: str) -> bool:
        parts = self._parts
        found = parts.execution.standing
        waits = found is not None and not found.over and bool(found.paused)  # a command paused that execution alone
        if waits and found is not None:
            parts.execution.ask(found.plan_id, Wish("resume", who, new_id()))
            parts.workers["executor"].wake()
        if parts.told.pause is None:
            return waits
        self._recorded(lambda: parts.told.set_pause(None, who, parts.clock.wall_ms()))
        log.warning("resumed by %s", who)
        self._cause(f"resumed by {who}")
        return True

    def plan_now(self, who: str) -> None:
        """Raises `Refused` where nothing would come of it."""
        parts = self._parts
        if not parts.leader.known.leads:
            raise Refused(who_leads(parts.leader.known), whom_to_ask(parts.leader.known))
        pause = parts.told.pause
        if pause is not None:
            raise Refused(f"Paused by {pause.who} since {clock(pause.since_ms)}.", "Resume first.")
        self._cause(f"{ASKED}{who}", at_once=True)
        parts.workers["planner"].wake()

    def drain(self, broker: int, on: bool, who: str) -> None:
        parts = self._parts
        known = parts.metadata.known
        if on and broker not in known:
            ids = ", ".join(str(b) for b in sorted(known)[:20]) or "none yet"
            raise Refused(f"There is no broker {broker}; registered are {ids}.", "Name one of them.", missing=True)
        before = parts.told.draining
        after = before | {broker} if on else before - {broker}
        if after == before:
            return
        if on and not parts.metadata.serving - after.union(parts.goals.current.constraints.exclude_brokers):
            raise Refused("No other active broker would be left to take its replicas.", "Activate another broker, or add one, first.")
        self._recorded(lambda: parts.told.set_draining(after, who, parts.clock.wall_ms()))
        log.warning("broker %d %s by %s", broker, "is to be drained" if on else "is no longer to be drained", who)
        self._cause(f"{'drain' if on else 'no drain'} of broker {broker} {ASKED}{who}")

    def _recorded(self, change: Callable[[], None]) -> None:
        try:
            change()
        except TrimtabError as error:
            message = f"It could not be recorded, so it is not done: {error}."
            raise Refused(message, "Repair the history's folder, and try again.") from error
