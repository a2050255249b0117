"""Brokers within their target ranges before and after a plan, and those that would stay outside. Called by the verdict and the reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optimizer.plan import BrokerOutcome, GoalOutcome, Plan
from optimizer.report.survey import TOLERANCE

BANDED = ("usage_distribution", "topic_distribution")


@dataclass(frozen=True)
class Standing:
    """Brokers within their target ranges: judged brokers are those that have scores (active ones, where a goal counts)."""

    judged: tuple[BrokerOutcome, ...]
    out_before: tuple[BrokerOutcome, ...]
    out_after: tuple[BrokerOutcome, ...]
    goals_out: tuple[str, ...]  # goals with a broker outside its target range before
    limits: tuple[GoalOutcome, ...]  # other goals with violations before or after
    leaving: tuple[BrokerOutcome, ...]  # dead and draining brokers that host replicas before

    replicas: bool  # whether any broker hosts any

    @property
    def stuck(self) -> tuple[BrokerOutcome, ...]:
        """Of those that are to be emptied, the ones that would still host replicas."""
        return tuple(b for b in self.leaving if b.after.get("replicas", 0) > 0)

    @property
    def mended(self) -> int:
        """Brokers outside before and within their target range after."""
        after = {b.id for b in self.out_after}
        return sum(b.id not in after for b in self.out_before)


def standing(plan: Plan) -> Standing:
    counted = [g for g in plan.goals if g.status != "skipped"]
    banded = {g.name for g in counted if g.kind in BANDED}
    judged = tuple(b for b in plan.brokers if b.scores_before or b.scores_after)
    return Standing(
        judged=judged,
        out_before=tuple(b for b in judged if _out(b.scores_before, banded)),
        out_after=tuple(b for b in judged if banded & set(b.violates)),
        goals_out=tuple(
            g.name for g in counted if g.name in banded and any(_out(b.scores_before, {g.name}) for b in judged)
        ),
        limits=tuple(g for g in counted if g.kind not in BANDED and violations(g) != (0, 0)),
        leaving=tuple(b for b in plan.brokers if b.state in ("dead", "draining") and b.before.get("replicas", 0) > 0),
        replicas=any(b.before.get("replicas", 1) > 0 for b in plan.brokers),
    )


def worst_first(plan: Plan) -> list[BrokerOutcome]:
    """All brokers: those that would stay out first, then the worst score before, then by id."""

    def key(b: BrokerOutcome) -> tuple[bool, bool, float, float, int]:
        after, before = min(b.scores_after.values(), default=1.0), min(b.scores_before.values(), default=1.0)
        return (not b.violates and b.why is None, b.state == "active", after, before, b.id)

    return sorted(plan.brokers, key=key)


def stay_out(plan: Plan) -> list[tuple[tuple[str, ...], str, list[BrokerOutcome]]]:
    """Brokers that would stay out, with those of the same goals and the same reason together, worst first."""
    groups: dict[tuple[tuple[str, ...], str], list[BrokerOutcome]] = {}
    for b in worst_first(plan):
        if b.violates or b.why:
            groups.setdefault((b.violates, b.why or "no reason is recorded"), []).append(b)
    return [(violates, _of_each(why, members), sorted(members, key=lambda b: b.id)) for (violates, why), members in groups.items()]


def _of_each(why: str, members: list[BrokerOutcome]) -> str:
    """A reason that several brokers have, with what each of them keeps."""
    return why.replace("would still hold", "would each still hold") if len(members) > 1 else why


def _out(scores: Mapping[str, float], names: set[str]) -> bool:
    return any(score < 1 - TOLERANCE and name in names for name, score in scores.items())


def violations(g: GoalOutcome) -> tuple[int, int]:
    """Of a goal, before and after the plan."""
    return (g.before.violations if g.before else 0, g.after.violations if g.after else 0)
