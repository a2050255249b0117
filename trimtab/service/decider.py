"""Decides: when it is time and this instance leads, looks, plans, writes the verdict down, and puts the plan on the desk.

The turn of the worker ``planner``. Nothing is done about a plan before its decision is in the history, and nothing is decided
without having asked who leads before and after.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster_model.errors import ExternalError
from cluster_model.trust import spoken
from metrics_reporter.reporter import Clock
from trimtab.history.records import Decision, GoalStanding, Verdict
from trimtab.service.agenda import INTERVAL, Agenda
from trimtab.service.config import ServiceConfig
from trimtab.service.desk import Held, PlanDesk
from trimtab.service.goals import GoalsKeeper
from trimtab.service.keeping import DecisionKeeper, Told
from trimtab.service.leadership import LeaderCheck, who_leads
from trimtab.service.look import Looked, Lookout
from trimtab.service.readiness import Readiness
from trimtab.service.standing import after
from trimtab.service.views import Leadership

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet
    from optimizer.options import PlanOptions, Watch
    from optimizer.plan import Plan

log = logging.getLogger(__name__)

Planner = Callable[["Snapshot", "GoalSet", "PlanOptions", "Watch"], "Plan"]

TURN = 0.25  # seconds
ASK_EVERY_MS = 3_000  # who leads, where nothing is due
HOUR_MS = 3_600_000
ASKED = "asked by "
MOST_NAMED = 5


@dataclass(frozen=True)
class Made:
    """A plan, also an empty one, and what it was made from."""

    looked: Looked
    options: PlanOptions
    plan: Plan


@dataclass(frozen=True, slots=True)
class LastVerdict:
    """What was decided last, for `why_nothing`."""

    at_ms: int
    cause: str
    verdict: Verdict
    reason: str
    kind: str


class Decider:
    """See the module.

    Parameters
    ----------
    has_executor
        Whether plans can be carried out.
    plan
        `optimizer.planner.plan`.
    prepare
        Called before the first decision: compiles.
    beat
        Called while planning takes long.
    interrupted
        Whether planning is to end with what there is, because the service stops.
    busy
        Why no plan is made now, where an execution is not over that is not of the plan in hand.
    """

    def __init__(
        self,
        config: ServiceConfig,
        goals: GoalsKeeper,
        leader: LeaderCheck,
        agenda: Agenda,
        lookout: Lookout,
        readiness: Readiness,
        desk: PlanDesk,
        decisions: DecisionKeeper,
        told: Told,
        clock: Clock,
        *,
        instance: str,
        has_executor: bool,
        plan: Planner,
        prepare: Callable[[], None],
        beat: Callable[[], None],
        interrupted: Callable[[], bool],
        changed: Callable[[], None],
        busy: Callable[[], str] = str,
    ) -> None:
        self._config, self._goals, self._leader, self._agenda = config, goals, leader, agenda
        self._lookout, self._readiness, self._desk, self._decisions = lookout, readiness, desk, decisions
        self._told, self._clock, self._instance, self._has_executor = told, clock, instance, has_executor
        self._plan = plan
        self._prepare, self._beat, self._interrupted, self._changed = prepare, beat, interrupted, changed
        self._busy = busy
        self._prepared = False
        self._ask_again = True
        self._led: tuple[int | None, int | None] | None = None  # controller and epoch under which this instance last led
        self._ready_before = False
        self._cooldown_until_ms = 0
        self.last: LastVerdict | None = None
        self.made: Made | None = None
        self.planning = False

    # -- told by others ------------------------------------------------------------------------------------

    def ask_again(self) -> None:
        """Another controller may be the active one."""
        self._ask_again = True

    def cool_down(self) -> None:
        """Something was carried out just now."""
        self._cooldown_until_ms = self._clock.wall_ms() + round(1000 * self._config.limits.cooldown)
        self._agenda.put_off(self._cooldown_until_ms)
        self._lookout.acted()

    @property
    def cooldown_until_ms(self) -> int:
        return self._cooldown_until_ms

    # -- turns ---------------------------------------------------------------------------------------------

    def turn(self) -> float:
        """Decide, where it is time to."""
        if not self._prepared:
            self._prepare()
            self._prepared = True
        now = self._clock.wall_ms()
        known = self._leader.known
        if self._ask_again or known.checked_ms is None or now - known.checked_ms >= ASK_EVERY_MS:
            self._ask_again = False
            self._follow(self._leader.ask(), now)
        self._notice_readiness(now)
        if not self._leader.known.leads:
            self._agenda.clear()  # whoever leads next decides at once anyway
            return TURN
        held = self._desk.open
        if (held is not None and held.state in ("approved", "running")) or self._busy():
            return TURN
        if self._told.pause is not None or now < self._cooldown_until_ms:
            return TURN
        if held is not None and self._waits(held, now):
            return TURN
        cause = self._agenda.take(now)
        if cause is not None:
            try:
                self.decide(cause)
            except ExternalError:
                self._agenda.add(cause, now)  # it was not written down, so it was not decided
                raise
            self._decisions.tidy()
        return TURN

    def _waits(self, held: Held, now: int) -> bool:
        """Whether a plan that waits for approval goes on waiting."""
        if self._config.mode != "approve" or not self._has_executor:
            return False
        if now - held.made_ms >= 1000 * self._config.approval_valid:
            self._agenda.add(f"nobody approved the plan within {spoken(round(1000 * self._config.approval_valid))}", now, at_once=True)
            return False
        return self._agenda.is_regular

    def _follow(self, answer: Leadership, now: int) -> None:
        """Notice that leadership came or went."""
        term = (answer.controller, answer.epoch) if answer.leads else None
        before, self._led = self._led, term
        if term == before:
            return
        if term is None:
            self._agenda.clear()
            self._desk.supersede("another instance decides now", record=self._binding)
            log.info("%s", who_leads(answer))
        else:
            log.info("this instance decides: node %s is the active controller, epoch %s", answer.controller, answer.epoch)
            self._agenda.add("took over" if before is None else "elected again", now, at_once=True)
        self._changed()

    def _notice_readiness(self, now: int) -> None:
        ready = not self._readiness.holds(now)
        if ready and not self._ready_before:
            log.info("ready: enough is known to decide")
            self._agenda.add("ready", now, at_once=True)
            self._changed()
        self._ready_before = ready

    @property
    def _binding(self) -> bool:
        """Whether plans are for more than looking at."""
        return self._config.mode != "dry-run"

    # -- one decision --------------------------------------------------------------------------------------

    def decide(self, cause: str) -> None:
        """Come to a verdict and write it down.

        Raises
        ------
        ExternalError
            It could not be written down.
        """
        lead = self._leader.ask()
        self._follow(lead, self._clock.wall_ms())
        if not lead.leads:
            return
        began = self._clock.wall_ms()
        holds = self._readiness.holds(began)
        if holds:
            if self._is_news(cause, holds[0].kind):
                self._write(began, lead, cause, "refused", " ".join(h.text for h in holds), kind=holds[0].kind)
            return
        looked = self._lookout.look()
        wanted = looked.repair is not None or ASKED in cause
        if not wanted and not looked.detection.fired:
            calm = " ".join([looked.detection.sentence(), *(f"{_capital(note)}." for note in looked.detection.notes)])
            self._write(began, lead, cause, "nothing", calm, looked=looked, kind="detector")
            self._desk.supersede("nothing is out of line any more", record=self._binding)
            return
        options, why = self._options(looked, began, wanted)
        if why is not None:
            self._write(began, lead, cause, "refused", why, looked=looked, kind="limits")
            return
        self.planning = True
        self._changed()
        try:
            made = self._plan(looked.snapshot, looked.goal_set, options, self._watch)
        except Exception as error:
            log.error("planning failed", exc_info=True)
            self._write(began, lead, cause, "failed", f"Planning failed, {type(error).__name__}: {error}", looked=looked, kind="failed")
            return
        finally:
            self.planning = False
        if self._interrupted():
            return
        self.made = Made(looked, options, made)
        self._conclude(began, lead, cause, looked, made, wanted)

    def _watch(self, low: int) -> bool:
        self._beat()
        return not self._interrupted()

    def _is_news(self, cause: str, kind: str) -> bool:
        return cause != INTERVAL or self.last is None or self.last.verdict != "refused" or self.last.kind != kind

    def _options(self, looked: Looked, now: int, wanted: bool) -> tuple[PlanOptions, str | None]:
        """What to plan with, and why not to plan at all; repairs and what a person asks for pass the guards."""
        from optimizer.detectors import Deed, Guards, may_act
        from optimizer.options import PlanOptions

        config, limits = self._config, self._config.limits
        done = self._decisions.get().done_since(now - HOUR_MS)
        deeds = [Deed(now - HOUR_MS + 1, done.replica_moves)] if self._binding else []
        gate = may_act(Guards(limits.min_brokers, 0, limits.moves_per_hour), looked.snapshot, deeds, now)
        most = config.budgets.max_moves
        if self._binding and gate.moves_left is not None and not wanted:
            most = gate.moves_left if most is None else min(most, gate.moves_left)
        options = PlanOptions(
            seed=config.seed, acceptance=config.acceptance, max_moves=most,
            max_bytes=config.budgets.max_bytes, max_partitions=config.budgets.max_partitions,
        )  # fmt: skip
        if gate.open or wanted:
            return options, None
        return options, "Not now: " + "; ".join(gate.reasons) + "."

    def _conclude(self, began: int, lead: Leadership, cause: str, looked: Looked, made: Plan, wanted: bool) -> None:
        from optimizer.detectors import agrees, detect
        from optimizer.report.verdict import verdict

        sentence = verdict(made).sentence + _doubts(made)
        confirmed = self._leader.ask()
        self._follow(confirmed, self._clock.wall_ms())
        if not confirmed.leads or (confirmed.controller, confirmed.epoch) != (lead.controller, lead.epoch):
            why = f"Leadership went elsewhere while planning. {who_leads(confirmed)}"
            self._write(began, lead, cause, "refused", why, looked=looked, kind="leadership", ended=confirmed.checked_ms)
            return
        if self._goals.current.digest != made.goals_digest:
            self._write(began, lead, cause, "refused", "The goals changed while planning.", looked=looked, kind="goals")
            return
        if not made.summary.actions:
            self._write(began, lead, cause, "nothing", sentence, looked=looked, made=made, ended=confirmed.checked_ms, kind="plan")
            self._desk.supersede("a newer look found nothing to do", record=self._binding)
            return
        if not wanted and looked.policy.accept != "score":
            ahead = detect(looked.policy, after(looked.snapshot, made), looked.goal_set, looked.memory)
            if not agrees(looked.policy, looked.detection, ahead):
                why = f"The detector would not be better off with the plan that the goals suggest ({sentence})"
                self._write(began, lead, cause, "nothing", why, looked=looked, ended=confirmed.checked_ms, kind="accept")
                return
        id = self._write(began, lead, cause, "planned", sentence, looked=looked, made=made, ended=confirmed.checked_ms, kind="plan")
        self._desk.supersede("a newer plan was made", record=self._binding)
        held = Held(made, id, self._clock.wall_ms(), note=self._note())
        self._desk.put(held)
        if self._config.mode == "auto" and self._has_executor:
            self._desk.become(held, "approved", "approved", "auto", "mode is auto")

    def _note(self) -> str:
        match self._config.mode, self._has_executor:
            case "dry-run", _:
                return "mode is dry-run: it is shown, and nobody can have it carried out"
            case _, False:
                return "there is no executor for this cluster in this release: it is shown, and cannot be carried out"
            case "approve", _:
                return "waits for approval"
        return ""

    def _write(
        self, began: int, lead: Leadership, cause: str, what: Verdict, reason: str, *, kind: str,
        looked: Looked | None = None, made: Plan | None = None, ended: int | None = None,
    ) -> int:  # fmt: skip
        summary = made.summary if made is not None else None
        decision = Decision(
            began_ms=began,
            ended_ms=max(ended if ended is not None else self._clock.wall_ms(), began),
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
            goals=_standings(made, looked),
            plan=_text(made) if made is not None and what == "planned" else None,
        )
        id = self._decisions.get().record(decision)
        self.last = LastVerdict(began, cause, what, reason, kind)
        log.info("decision %d (%s): %s. %s", id, cause, what, reason)
        self._changed()
        return id


def _doubts(made: Plan) -> str:
    """What was left alone because its numbers cannot be trusted; empty where nothing was."""
    left = [f"{s.what} ({s.doubt})" for s in made.skipped if s.doubt is not None]
    if not left:
        return ""
    more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
    return f" Left alone, because their numbers cannot be trusted: {', '.join(left[:MOST_NAMED])}{more}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _text(made: Plan) -> str:
    from optimizer.report import to_json

    return to_json(made)


def _standings(made: Plan | None, looked: Looked | None) -> tuple[GoalStanding, ...]:
    if made is not None:
        return tuple(
            GoalStanding(
                g.name, g.hard, g.status,
                g.before.violations if g.before else None, g.after.violations if g.after else None,
                g.before.max_deviation if g.before else None, g.after.max_deviation if g.after else None,
            )
            for g in made.goals
        )  # fmt: skip
    if looked is None:
        return ()
    return tuple(
        GoalStanding(
            v.name, v.hard, "skipped" if v.skipped is not None else "satisfied" if not v.violations else "unchanged",
            v.violations, v.violations, v.max_deviation, v.max_deviation,
        )
        for v in looked.goals
    )  # fmt: skip
