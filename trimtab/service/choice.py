"""What to do at a decision, as a function of what is known: refuse, rest, or plan, and what may be in the plan. Pure.

`trimtab.service.decider` gathers the facts and carries the choice out; the cases stand as a table in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trimtab.service.readiness import Hold
from trimtab.service.standing import Repair
from trimtab.service.unwell import Waiting, sentence

NO_REPAIR = Repair()
BESIDE_SLOW = ("under_replicated", "leaders")  # a slow broker may be why; leaders change all the same

Scope = Literal["all", "preferred", "repairs", "restore", "demote", "place"]
"""Everything; preferred leaders; hard limits and lost brokers; lost and draining brokers and partitions without a leader; leaderships of
slow brokers; topics that were just created."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a decision rests on.

    Attributes
    ----------
    holds
        Why too little is known to decide.
    waits
        What balance waits for.
    repair
        What is to be repaired.
    asked
        Whether a person asks for a plan.
    fired, calm
        Whether the detector fires, and what it says where it does not.
    limits
        Limits over time that are reached, in sentences.
    astray
        Whether preferred leaders are restored before anything is moved.
    elect
        Whether that is done at once, whatever the detector says.
    demote
        Whether slow brokers have leaderships to give up.
    place
        Whether topics that were just created are placed.
    """

    holds: Sequence[Hold] = ()
    waits: Sequence[Waiting] = ()
    repair: Repair = NO_REPAIR
    asked: bool = False
    fired: bool = False
    calm: str = ""
    limits: Sequence[str] = ()
    astray: bool = False
    elect: bool = False
    demote: bool = False
    place: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """No plan, and why; `kind` groups reasons that are the same news."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is out of line."""

    text: str


@dataclass(frozen=True, slots=True)
class Make:
    """A plan, what may be in it, and what is to be said beside it. `urgent`: limits over time and detector are not asked. `otherwise`:
    what may be in it where `scope` gives nothing."""

    scope: Scope
    urgent: bool = False
    note: str = ""
    otherwise: Scope | None = None


Choice = Refuse | Rest | Make


def choose(case: Case) -> Choice:
    """The one thing to do."""
    if case.holds:
        return Refuse(case.holds[0].kind, " ".join(h.text for h in case.holds))
    waits = [w for w in case.waits if w.kind != "quiet" or not case.asked]  # who asks in quiet hours means it
    if case.repair.lost is None and (case.elect or (case.asked and waits and all(w.kind == "leaders" for w in waits))):
        return Make("preferred", urgent=True)
    if case.demote and case.repair.lost is None and all(w.kind in BESIDE_SLOW for w in waits):
        return Make("demote", urgent=True, otherwise=None if waits or not _wanted(case) else "all")
    if waits:
        return _unwell(case, waits)
    if case.place and not case.repair:
        return Make("place", urgent=case.asked, otherwise="all" if _wanted(case) else None)
    if not _wanted(case):
        return Rest(case.calm)
    if case.limits and not case.repair and not case.asked:
        return Refuse("limits", "Not now: " + "; ".join(case.limits) + ".")
    urgent = bool(case.repair) or case.asked
    if case.astray and not case.repair:
        return Make("preferred", urgent, otherwise="all")
    return Make("all", urgent, otherwise=_elected(case))


def _wanted(case: Case) -> bool:
    return bool(case.repair) or case.asked or case.fired


def _elected(case: Case) -> Scope | None:
    """What is done where nothing can be done about what was lost."""
    return "preferred" if case.elect else None


def _unwell(case: Case, waits: Sequence[Waiting]) -> Choice:
    """Balance waits; what was lost is repaired all the same, and hard limits where that for which it waits may last."""
    why, lasting = sentence(waits), not any(w.passing for w in waits)
    if case.repair.limits is not None and lasting:
        return Make("repairs", urgent=True, note=f"Only repairs are planned. {why}")
    if case.repair.lost is not None:
        return Make("restore", urgent=True, note=f"Only what was lost is repaired. {why}", otherwise=_elected(case))
    return Refuse("unwell: " + ", ".join(dict.fromkeys(w.kind for w in waits)), why)
