"""What came of the plans that were carried out: whether they helped, and how long balance is left alone where they did not.

Asked by `trimtab.service.decider` before it plans. A plan that helped is worth nothing to know; one after which as many brokers are outside
as before was made of loads that do not last, and so will be the next. So after each that did not help the cooldown is twice as long, a day
at most, until one helps. Repairs, and people who ask for a plan, do not wait. What is found is written to the history, out of which a
restart knows it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from threading import Lock
from typing import TYPE_CHECKING

from cluster_model.trust import spoken
from metrics_reporter.reporter import Clock
from trimtab.execution.comparison import compared, loads_of, predicted_loads
from trimtab.history.records import Outcome
from trimtab.service.keeping import AFTERMATH, DecisionKeeper

if TYPE_CHECKING:
    from optimizer.plan import Plan
    from trimtab.service.look import Looked

log = logging.getLogger(__name__)

HELPED, UNHELPFUL = "helped", "did not help"
LEAST = 0.25  # of the brokers that a plan was to bring into their target ranges: with fewer it did not help
LOOKED_BACK = 100  # decisions
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class _Ended:
    plan: Plan
    decision_id: int
    at_ms: int


class Aftermath:
    """See the module.

    Parameters
    ----------
    span_ms
        After so long the windows of the model hold nothing from before the end of an execution.
    cooldown_ms
        From the end of an execution to the next plan, where plans help.
    """

    def __init__(self, decisions: DecisionKeeper, clock: Clock, *, span_ms: int, cooldown_ms: int) -> None:
        self._decisions, self._clock = decisions, clock
        self._span_ms, self._cooldown_ms = span_ms, cooldown_ms
        self._ended: _Ended | None = None
        self._failures: int | None = None  # in a row; None where the history was not read yet
        self._until_ms = 0
        self._detail = ""
        self._lock = Lock()

    def ended(self, plan: Plan, decision_id: int) -> None:
        """A plan for balance was carried out wholly."""
        with self._lock:
            self._ended = _Ended(plan, decision_id, self._clock.wall_ms())

    def reasons(self, looked: Looked, now_ms: int) -> tuple[str, ...]:
        """Why no plan for balance is made now, in sentences; empty where one may be. Raises `ExternalError` where the history fails."""
        with self._lock:
            if self._failures is None:
                self._read()
            if self._ended is not None and not _of_the_same_brokers(self._ended.plan, looked):
                self._ended = None  # it promised nothing of these
            ended = self._ended
            if ended is not None and self._is_due(ended, looked, now_ms):
                self._conclude(ended, looked, now_ms)
            if not self._failures or now_ms >= self._until_ms:
                return ()
            plans = "the last plan" if self._failures == 1 else f"the last {self._failures} plans"
            left = spoken(self._until_ms - now_ms)
            return (f"{plans} {self._detail}; balance is left alone for {left} more, unless a person asks",)

    def _is_due(self, ended: _Ended, looked: Looked, now_ms: int) -> bool:
        """Whether it is known what came of it: no window is older, or the detector fires again and nothing is gained."""
        if now_ms - ended.at_ms >= self._span_ms:
            return True
        return looked.detection.fired and not _helped(ended.plan, looked)

    def _conclude(self, ended: _Ended, looked: Looked, now_ms: int) -> None:
        self._ended = None
        before, predicted, now = outside(ended.plan, looked)
        if before <= predicted:  # it was not made for that
            return
        helped = _helped(ended.plan, looked)
        counts = f"{_brokers(before)} outside a target range before, {predicted} predicted, {now} now"
        self._detail = f"{HELPED if helped else UNHELPFUL} ({counts})"
        of = predicted_loads(ended.plan.brokers)
        wanted = {r: of[r] for r in dict.fromkeys(g.resource for g in ended.plan.goals if g.resource in of)}
        loads = compared(wanted, loads_of(looked.snapshot, wanted), predicted_loads(ended.plan.brokers, after=False))
        self._failures = 0 if helped else (self._failures or 0) + 1
        self._until_ms = now_ms + self._wait_ms
        log.log(logging.INFO if helped else logging.WARNING, "plan %s %s. %s", ended.plan.plan_id, self._detail, ". ".join(map(str, loads)))
        detail = ". ".join([self._detail, *map(str, loads)])
        self._decisions.get().add_outcome(ended.decision_id, Outcome(now_ms, "noted", AFTERMATH, detail))

    @property
    def _wait_ms(self) -> int:
        failures = self._failures or 0
        return min(self._cooldown_ms * 2 ** min(failures, 30), DAY_MS) if failures else 0

    def _read(self) -> None:
        """How many plans in a row did not help, as the history has it."""
        newest = self._decisions.get().newest(LOOKED_BACK)
        found = [o for recorded in newest for o in reversed(recorded.outcomes) if o.who == AFTERMATH]
        unhelpful = list(takewhile(lambda o: not o.detail.startswith(HELPED), found))
        self._failures = len(unhelpful)
        if unhelpful:
            self._until_ms, self._detail = unhelpful[0].time_ms + self._wait_ms, unhelpful[0].detail.partition(". ")[0]


def _of_the_same_brokers(plan: Plan, looked: Looked) -> bool:
    """Whether the active brokers are those that the plan was made for."""
    return {b.id for b in plan.brokers if b.state == "active"} == {b.id for b in looked.brokers if b.state == "active"}


def _helped(plan: Plan, looked: Looked) -> bool:
    before, predicted, now = outside(plan, looked)
    return before - now >= LEAST * (before - predicted)


def outside(plan: Plan, looked: Looked) -> tuple[int, int, int]:
    """Brokers outside a target range or limit, each as often as goals have it: when the plan was made, after it as predicted, and now."""
    now: Mapping[str, int | None] = {g.name: g.violations for g in looked.goals}
    counted: Sequence[tuple[int, int, int]] = [
        (g.before.violations, g.after.violations, there)
        for g in plan.goals
        if g.before is not None and g.after is not None and (there := now.get(g.name)) is not None
    ]
    before, after, there = (sum(column) for column in zip(*counted, strict=True)) if counted else (0, 0, 0)
    return before, after, there


def _brokers(count: int) -> str:
    return f"{count} broker{'' if count == 1 else 's'}"
