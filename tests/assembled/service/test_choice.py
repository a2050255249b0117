"""What is done at a decision, case by case: first what is known, then how the cluster is, then goals and limits."""

from __future__ import annotations

import pytest

from trimtab.service.choice import Case, Choice, Make, Refuse, Rest, choose
from trimtab.service.readiness import Hold
from trimtab.service.standing import Repair
from trimtab.service.unwell import Waiting

WARMING = Hold("warming", "Warming up.")
DOWN, SETTLING = Waiting("down", "broker 3 is down"), Waiting("settling", "loads settle")
UNDER, FOREIGN = Waiting("under_replicated", "4 partitions are under-replicated"), Waiting("foreign", "2 reassignments are in progress")
LEADERS, QUIET = Waiting("leaders", "leaders are not the preferred ones"), Waiting("quiet", "these are quiet hours")
LOST, LIMITS = Repair(lost="dead broker 3 still hosts replicas"), Repair(limits="capacity-disk is violated")
BOTH = Repair(LOST.lost, LIMITS.limits)


@pytest.mark.parametrize(
    ("case", "chosen"),
    [
        (Case(holds=[WARMING], repair=LOST, asked=True), Refuse("warming", "Warming up.")),
        (Case(calm="All is level."), Rest("All is level.")),
        (Case(fired=True), Make("all")),
        (Case(asked=True), Make("all", urgent=True)),
        (Case(repair=LOST), Make("all", urgent=True)),
        (Case(fired=True, limits=["50 changes in the last hour"]), Refuse("limits", "Not now: 50 changes in the last hour.")),
        (Case(asked=True, limits=["50 changes in the last hour"]), Make("all", urgent=True)),
        # Preferred leaders come before moves; elected unasked they wait for no detector, and never make way for moves.
        (Case(fired=True, astray=True), Make("preferred", otherwise="all")),
        (Case(calm="All is level.", astray=True), Rest("All is level.")),
        (Case(elect=True, astray=True, waits=[LEADERS, SETTLING]), Make("preferred", urgent=True)),
        (Case(elect=True, repair=LIMITS), Make("preferred", urgent=True)),
        # What was lost is repaired first; where nothing can be done about it, leaders go back.
        (Case(elect=True, astray=True, repair=LOST), Make("all", urgent=True, otherwise="preferred")),
        (
            Case(elect=True, astray=True, repair=LOST, waits=[LEADERS]),
            Make("restore", True, f"Only what was lost is repaired. Balance waits: {LEADERS.text}.", otherwise="preferred"),
        ),
        (Case(asked=True, astray=True, waits=[LEADERS]), Make("preferred", urgent=True)),
        (
            Case(asked=True, astray=True, waits=[LEADERS, SETTLING]),
            Refuse("unwell: leaders, settling", f"Balance waits: {LEADERS.text}; loads settle."),
        ),
        (Case(repair=LIMITS, astray=True), Make("all", urgent=True)),
        # A slow broker gives up leaderships before anything else, and may be why replicas are out of sync.
        (Case(demote=True), Make("demote", urgent=True)),
        (Case(demote=True, fired=True), Make("demote", urgent=True, otherwise="all")),
        (Case(demote=True, fired=True, waits=[UNDER]), Make("demote", urgent=True)),
        (Case(demote=True, fired=True, waits=[UNDER, FOREIGN]), Refuse("unwell: under_replicated, foreign",
                                                                        f"Balance waits: {UNDER.text}; {FOREIGN.text}.")),
        (Case(demote=True, repair=LOST), Make("all", urgent=True)),
        # Topics that were just created are placed before they hold anything.
        (Case(place=True), Make("place")),
        (Case(place=True, fired=True), Make("place", otherwise="all")),
        (Case(place=True, asked=True), Make("place", urgent=True, otherwise="all")),
        (Case(place=True, waits=[DOWN]), Refuse("unwell: down", "Balance waits: broker 3 is down.")),
        (Case(place=True, repair=LIMITS), Make("all", urgent=True)),
        (Case(demote=True, holds=[WARMING]), Refuse("warming", "Warming up.")),
        # While the cluster is unwell nothing is moved for balance, not even on request.
        (Case(fired=True, waits=[DOWN]), Refuse("unwell: down", "Balance waits: broker 3 is down.")),
        (Case(waits=[DOWN, SETTLING]), Refuse("unwell: down, settling", "Balance waits: broker 3 is down; loads settle.")),
        (Case(asked=True, waits=[UNDER]), Refuse("unwell: under_replicated", f"Balance waits: {UNDER.text}.")),
        (Case(fired=True, waits=[LEADERS]), Refuse("unwell: leaders", f"Balance waits: {LEADERS.text}.")),
        (Case(fired=True, waits=[QUIET]), Refuse("unwell: quiet", "Balance waits: these are quiet hours.")),
        (Case(asked=True, waits=[QUIET]), Make("all", urgent=True)),
        # What was lost is repaired at all times; hard limits wait for what passes, since loads are not what they will be.
        (Case(repair=LOST, waits=[DOWN]), Make("restore", True, "Only what was lost is repaired. Balance waits: broker 3 is down.")),
        (Case(repair=LIMITS, waits=[DOWN]), Refuse("unwell: down", "Balance waits: broker 3 is down.")),
        (
            Case(repair=LIMITS, waits=[UNDER, SETTLING]),
            Refuse("unwell: under_replicated, settling", f"Balance waits: {UNDER.text}; loads settle."),
        ),
        (Case(repair=LIMITS, waits=[FOREIGN]), Make("repairs", True, f"Only repairs are planned. Balance waits: {FOREIGN.text}.")),
        (Case(repair=BOTH, waits=[UNDER]), Make("repairs", True, f"Only repairs are planned. Balance waits: {UNDER.text}.")),
        (Case(repair=BOTH, waits=[DOWN]), Make("restore", True, "Only what was lost is repaired. Balance waits: broker 3 is down.")),
        (Case(repair=LOST, waits=[QUIET]), Make("restore", True, "Only what was lost is repaired. Balance waits: these are quiet hours.")),
    ],
)  # fmt: skip
def test_what_is_done(case: Case, chosen: Choice) -> None:
    assert choose(case) == chosen
