"""Decides: when it is time and this instance leads, looks, plans, writes the verdict down, and puts the plan on the desk.

The turn of the worker ``planner``. Nothing is done about a plan before its decision is in the history, and nothing is decided
without having asked who leads before and after.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from cluster_model.errors import ExternalError
from cluster_model.trust import spoken
from trimtab.service.agenda import INTERVAL, Agenda
from trimtab.service.choice import Case, Make, Refuse, Rest, choose
from trimtab.service.config import ServiceConfig
from trimtab.service.desk import Held, PlanDesk, note_of
from trimtab.service.goals import GoalsKeeper
from trimtab.service.keeping import Told
from trimtab.service.leadership import LeaderCheck, who_leads
from trimtab.service.look import Looked, Lookout
from trimtab.service.planning import Made, budgets, planned, rest_of
from trimtab.service.preferred import CAUSE, Restoring, restored
from trimtab.service.readiness import Readiness
from trimtab.service.recording import doubts, placed
from trimtab.service.scribe import LastVerdict, Scribe, Turn
from trimtab.service.slow import gives_up_leaders, handed_over, set_apart
from trimtab.service.standing import after
from trimtab.service.surroundings import Surroundings
from trimtab.service.unwell import Waiting, led_by_others, waits
from trimtab.service.views import Leadership

if TYPE_CHECKING:
    from goals.waiting import Wait
    from optimizer.options import PlanOptions
    from optimizer.plan import Plan

log = logging.getLogger(__name__)

TURN = 0.25  # seconds
ASK_EVERY_MS = 3_000  # who leads, where nothing is due
HOUR_MS = 3_600_000
ASKED = "asked by "
UNWRITTEN = "no decision is made while none can be recorded"
LASTED_MS = 30_000  # the cluster is unwell for so long: a plan that waits for approval was made for another one
UNWELL = ("down", "settling", "under_replicated", "foreign")


class Decider:
    """See the module."""

    def __init__(
        self,
        config: ServiceConfig,
        goals: GoalsKeeper,
        leader: LeaderCheck,
        agenda: Agenda,
        lookout: Lookout,
        readiness: Readiness,
        desk: PlanDesk,
        scribe: Scribe,
        told: Told,
        around: Surroundings,
    ) -> None:
        self._config, self._goals, self._leader, self._agenda = config, goals, leader, agenda
        self._lookout, self._readiness, self._desk, self._told = lookout, readiness, desk, told
        self._scribe, self._decisions, self._clock, self._around = scribe, scribe.decisions, scribe.clock, around
        self._alone = config.mode == "auto" and around.has_executor  # plans are carried out without being approved
        self._restoring = Restoring(around.condition, lambda: lookout.newest, alone=self._alone)
        self._waited = False  # balance did, at the last decision
        self._prepared = False
        self._ask_again = True
        self._led: tuple[int | None, int | None] | None = None  # controller and epoch under which this instance last led
        self._ready_before = False
        self._cooldown_until_ms = 0
        self.made: Made | None = None
        self.planning = False
        self.considered_ms: int | None = None  # when a decision was come to last, also where it was no news

    @property
    def last(self) -> LastVerdict | None:
        """What was decided last."""
        return self._scribe.last

    # -- told by others ------------------------------------------------------------------------------------

    def ask_again(self) -> None:
        """Another controller may be the active one."""
        self._ask_again = True

    def cool_down(self) -> None:
        """Something was carried out just now."""
        self._cooldown_until_ms = self._clock.wall_ms() + round(1000 * self._config.limits.cooldown)
        self._agenda.put_off(self._cooldown_until_ms)
        self._lookout.acted()
        ended = self._desk.current
        if ended is None or not ended.restores:
            self._restoring.again()

    @property
    def cooldown_until_ms(self) -> int:
        return self._cooldown_until_ms

    # -- turns ---------------------------------------------------------------------------------------------

    def turn(self) -> float:
        """Decide, where it is time to."""
        if not self._prepared:
            self._around.prepare()
            self._prepared = True
        now = self._clock.wall_ms()
        known = self._leader.known
        if self._ask_again or known.checked_ms is None or now - known.checked_ms >= ASK_EVERY_MS:
            self._ask_again = False
            self._follow(self._leader.ask(), now)
        full = self._decisions.probe(now)
        self._notice_readiness(now)
        self._notice_condition(now)
        if not self._leader.known.leads:
            self._agenda.clear()  # the next leader decides at once anyway
            return TURN
        if full is not None:
            self._desk.supersede("nothing can be written down", record=False)
        held = self._desk.open
        if (held is not None and held.state in ("approved", "running")) or self._around.busy():
            return TURN
        if self._told.pause is not None or now < self._cooldown_until_ms:
            return TURN
        if held is not None and self._waits(held, now):
            return TURN
        self._notice_leaders(now)
        broken = self._decisions.rests(now)
        if broken is not None:
            raise ExternalError(f"{UNWRITTEN}: {broken}", retriable=True)
        cause = self._agenda.take(now)
        if cause is not None:
            try:
                self.decide(cause)
            except ExternalError as error:
                self._agenda.add(cause, now)  # it was not written down, so it was not decided
                if self._decisions.broken is not None:
                    self._desk.supersede("a newer decision could not be recorded", record=False)
                    raise ExternalError(f"{UNWRITTEN}: {self._decisions.broken}", retriable=True) from error
                raise
            self._decisions.tidy()
        return TURN

    def _waits(self, held: Held, now: int) -> bool:
        """Whether a plan that waits for approval goes on waiting."""
        if self._config.mode != "approve" or not self._around.has_executor:
            return False
        if now - held.made_ms >= 1000 * self._config.approval_valid:
            self._agenda.add(f"the plan was not approved within {spoken(round(1000 * self._config.approval_valid))}", now, at_once=True)
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
        self._around.changed()

    def _notice_readiness(self, now: int) -> None:
        ready = not self._readiness.holds(now)
        if ready and not self._ready_before:
            log.info("ready: enough is known to decide")
            self._agenda.add("ready", now, at_once=True)
            self._around.changed()
        self._ready_before = ready

    @property
    def _binding(self) -> bool:
        """Whether plans are for more than looking at."""
        return self._config.mode != "dry-run"

    @property
    def _wait_policy(self) -> Wait:
        from optimizer.detectors import policy_of

        return policy_of(self._goals.current).wait

    def waits(self, now_ms: int) -> tuple[Waiting, ...]:
        """What balance waits for. Any thread."""
        dead_after_ms = round(1000 * self._config.model.dead_after)
        return waits(self._around.condition(), self._wait_policy, now_ms, dead_after_ms, elects=self._alone)

    def _notice_condition(self, now: int) -> None:
        """Decide again when the cluster is well again, and when it is unwell while a plan waits that was made before."""
        found = self.waits(now)
        if self._waited and not found:
            self._waited = False
            self._agenda.add("balance waits no longer", now)
        held = self._desk.open
        lasting = any(w.kind in UNWELL and w.since_ms is not None and now - w.since_ms >= LASTED_MS for w in found)
        if lasting and held is not None and held.state == "proposed" and held.is_balance:
            self._agenda.add("the cluster is unwell", now, at_once=True)

    def _notice_leaders(self, now: int) -> None:
        """Decide at once where preferred leaders are to be elected."""
        if self._restoring.at_once(self._wait_policy, self.waits(now), now) and not self._readiness.holds(now):
            self._agenda.add(CAUSE, now, at_once=True)

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
        turn = Turn(self._clock.wall_ms(), lead, cause)
        holds = [h for h in self._readiness.holds(turn.began) if h.kind != "history" or self._decisions.broken is None]
        looked = None if holds else self._lookout.look()
        options = None
        if looked is None:
            case = Case(holds=holds)
        else:
            options, reached = self._options(looked, turn.began)
            calm = " ".join([looked.detection.sentence(), *(f"{_capital(note)}." for note in looked.detection.notes)]) + set_apart(looked)
            found, wait = self.waits(turn.began), looked.policy.wait
            if self._restoring.first(wait, turn.began):
                calm = f"{calm} {led_by_others(self._around.condition())}."
            case = Case(
                waits=found, repair=looked.repair, asked=ASKED in cause, fired=looked.detection.fired, calm=calm, limits=reached,
                astray=self._restoring.first(wait, turn.began), elect=self._restoring.at_once(wait, found, turn.began),
                demote=gives_up_leaders(looked), place=bool(looked.new_topics),
            )  # fmt: skip
            self._waited = bool(case.waits)
        match choose(case):
            case Refuse(kind, text):
                if kind == "limits" or self._is_news(cause, kind):
                    self._scribe.write(turn, "refused", text, looked=looked, kind=kind)
                if any(w.kind in UNWELL for w in case.waits):
                    self._desk.supersede("the cluster is unwell", record=self._binding)
            case Rest(text):
                self._scribe.write(turn, "nothing", text, looked=looked, kind="detector")
                self._desk.supersede("nothing is out of line any more", record=self._binding)
            case Make() as make:
                assert looked is not None
                assert options is not None
                self._make(turn, looked, options if not make.urgent else budgets(self._config), make)
        self.considered_ms = turn.began

    def _make(self, turn: Turn, looked: Looked, options: PlanOptions, make: Make) -> None:
        astray, rests = self._around.condition().health.astray, self._resting(looked, turn.began)
        self.planning = True
        self._around.changed()
        try:
            made = planned(self._around.plan, looked, options, make, self._watch, astray, rests)
        except Exception as error:
            log.error("planning failed", exc_info=True)
            if "preferred" in (make.scope, make.otherwise):
                self._restoring.tried(turn.began)  # else it would be tried, and fail, each turn
            self._scribe.write(turn, "failed", f"Planning failed, {type(error).__name__}: {error}", looked=looked, kind="failed")
            return
        finally:
            self.planning = False
        if self._around.interrupted():
            return
        if made.scope == "preferred" and (self._alone or not made.plan.summary.actions):
            self._restoring.tried(turn.began)
        self.made = made
        self._conclude(turn, made, make)

    def _watch(self, low: int) -> bool:
        self._around.beat()
        return not self._around.interrupted()

    def _is_news(self, cause: str, kind: str) -> bool:
        return cause != INTERVAL or self.last is None or self.last.verdict != "refused" or self.last.kind != kind

    def _options(self, looked: Looked, now: int) -> tuple[PlanOptions, tuple[str, ...]]:
        """What to plan with for balance, and which limits over time are reached."""
        from optimizer.detectors import Deed, Guards, may_act

        limits, options = self._config.limits, budgets(self._config)
        done = self._decisions.get().done_since(now - HOUR_MS)
        deeds = [Deed(now - HOUR_MS + 1, done.replica_moves)] if self._binding else []
        of_policy = looked.policy.guards.moves_per_hour if looked.policy.guards is not None else None
        hourly = min((x for x in (limits.moves_per_hour, of_policy) if x is not None), default=None)
        gate = may_act(Guards(limits.min_brokers, 0, hourly), looked.snapshot, deeds, now)
        if self._binding and gate.moves_left is not None:
            most = options.max_moves
            options = replace(options, max_moves=gate.moves_left if most is None else min(most, gate.moves_left))
        return options, (*gate.reasons, *(self._around.learned(looked, now) if self._binding else ()))

    def _resting(self, looked: Looked, now: int) -> tuple[tuple[str, int], ...]:
        """Partitions that were moved lately; none where nothing is carried out here."""
        cooldown_ms = round(1000 * looked.policy.partition_cooldown)
        return self._decisions.get().moved_since(now - cooldown_ms + 1) if self._binding and cooldown_ms else ()

    def _conclude(self, turn: Turn, found: Made, make: Make) -> None:
        from optimizer.report.verdict import verdict

        looked, made = found.looked, found.plan
        match found.scope:
            case "preferred":
                sentence = restored(made)
            case "demote":
                sentence = handed_over(made)
            case "place":
                sentence = placed(made, looked.new_topics)
            case _:
                sentence = verdict(made).sentence + doubts(made)
        sentence += set_apart(looked)
        sentence += rest_of(found, round(1000 * looked.policy.partition_cooldown))
        if make.note and found.scope == make.scope:
            sentence += f" {make.note}"
        lead, confirmed = turn.lead, self._leader.ask()
        self._follow(confirmed, self._clock.wall_ms())
        ended = confirmed.checked_ms
        if not confirmed.leads or (confirmed.controller, confirmed.epoch) != (lead.controller, lead.epoch):
            why = f"Leadership went elsewhere while planning. {who_leads(confirmed)}"
            self._scribe.write(turn, "refused", why, looked=looked, kind="leadership", ended=ended)
        elif self._goals.current.digest != looked.goal_set.digest:
            self._scribe.write(turn, "refused", "The goals changed while planning.", looked=looked, kind="goals")
        elif not made.summary.actions and make.note:
            self._scribe.write(turn, "refused", sentence, looked=looked, made=made, ended=ended, kind="unwell")
            self._desk.supersede("the cluster is unwell", record=self._binding)
        elif not made.summary.actions:
            stuck = any(b.violates for b in made.brokers)
            self._scribe.write(turn, "nothing", sentence, looked=looked, made=made, ended=ended, kind="stuck" if stuck else "plan")
            self._desk.supersede("a newer look found nothing to do", record=self._binding)
        elif not make.urgent and found.scope not in ("preferred", "demote", "place") and not self._is_wanted(looked, made):
            why = f"The detector would not be better off with the plan that the goals suggest ({sentence})"
            self._scribe.write(turn, "nothing", why, looked=looked, ended=ended, kind="accept")
        else:
            self._propose(turn, found, sentence, ended)

    def _is_wanted(self, looked: Looked, made: Plan) -> bool:
        """Whether the detector agrees to a plan, where the policy asks it."""
        from optimizer.detectors import agrees, detect

        if looked.policy.accept == "score":
            return True
        ahead = detect(looked.policy, after(looked.snapshot, made), looked.goal_set, looked.memory)
        return agrees(looked.policy, looked.detection, ahead)

    def _propose(self, turn: Turn, found: Made, sentence: str, ended: int | None) -> None:
        id = self._scribe.write(turn, "planned", sentence, looked=found.looked, made=found.plan, ended=ended, kind="plan")
        self._desk.supersede("a newer plan was made", record=self._binding)
        note, is_balance = note_of(self._config.mode, self._around.has_executor), found.scope in ("all", "preferred", "place")
        restores, demotes = found.scope == "preferred", found.scope == "demote"
        held = Held(found.plan, id, self._clock.wall_ms(), note=note, is_balance=is_balance, restores=restores, demotes=demotes)
        self._desk.put(held)
        if self._alone:
            self._desk.become(held, "approved", "approved", "auto", "mode is auto")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
