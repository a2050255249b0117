"""Why nothing happens, in sentences that an on-call operator understands. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cluster_model.trust import spoken
from trimtab.execution.people import Pause
from trimtab.service.desk import Held
from trimtab.service.leadership import who_leads
from trimtab.service.readiness import Hold
from trimtab.service.scribe import LastVerdict
from trimtab.service.unwell import Waiting, sentence
from trimtab.service.views import Leadership, Mode


@dataclass(frozen=True)
class Facts:
    """What is known at `now_ms`; times are Unix ms."""

    now_ms: int
    mode: Mode
    has_executor: bool
    leadership: Leadership
    trouble: Sequence[str]
    pause: Pause | None
    holds: Sequence[Hold]
    held: Held | None
    last: LastVerdict | None
    planning: bool
    cooldown_until_ms: int
    next_plan_ms: int
    down: Sequence[tuple[int, int]]
    dead_after_ms: int
    busy: str = ""
    waits: Sequence[Waiting] = ()


def why_nothing(facts: Facts) -> tuple[str, ...]:
    """Empty only while a plan is being made or carried out."""
    f = facts
    if f.held is not None and f.held.state == "running" and f.pause is None and f.leadership.leads:
        return ()
    found = [f"Something is broken here: {text}." for text in f.trouble]
    if f.holds and f.holds[0].kind == "starting":
        return (*found, f.holds[0].text)
    if not f.leadership.leads:
        return (*found, who_leads(f.leadership))
    if f.pause is not None:
        why = f": {f.pause.why}" if f.pause.why else ""
        since = f"Paused by {f.pause.who} since {clock(f.pause.since_ms)}{why}."
        return (*found, f"{since} No plan is made or started until an operator resumes.")
    if f.busy:
        return (*found, f"No plan is made for now: {f.busy}.")
    if f.planning:
        return tuple(found)
    if f.held is not None and f.held.state in ("proposed", "approved"):
        return (*found, _waiting(f, f.held), *(h.text for h in f.holds), *_unwell(f))
    if f.holds:
        return (*found, *(h.text for h in f.holds))
    found.extend(_unwell(f))
    if f.now_ms < f.cooldown_until_ms:
        found.append(f"A plan ended just now; the next one is made after {spoken(f.cooldown_until_ms - f.now_ms)}.")
    if f.last is not None and not (f.waits and f.last.kind.startswith("unwell")):
        found.append(_said(f, f.last))
    if f.next_plan_ms > f.now_ms:
        found.append(f"The next decision is due in {spoken(f.next_plan_ms - f.now_ms)}.")
    elif f.last is None:
        found.append("The first decision is about to be made.")
    return tuple(found)


def _waiting(f: Facts, held: Held) -> str:
    size = f"{held.plan.summary.replica_moves:,} replica moves and {held.plan.summary.leadership_changes:,} leadership changes"
    name = f"Plan {held.plan.plan_id[:19]} of {clock(held.made_ms)} with {size}"
    if held.state == "approved":
        return f"{name} is approved and about to start."
    by_hand = "there is no executor for this cluster in this release. Apply it with Kafka's own tools."
    if f.mode == "dry-run":
        how = "set mode: approve or auto to have plans carried out." if f.has_executor else f"nor could it be carried out: {by_hand}"
        return f"{name} is only shown, because the mode is dry-run; {how}"
    if not f.has_executor:
        return f"{name} cannot be carried out: {by_hand}"
    return f"{name} waits for approval: approve or reject it."


def _said(f: Facts, last: LastVerdict) -> str:
    ago = f"At {clock(last.at_ms)} ({last.cause})"
    match last.verdict:
        case "nothing" if last.kind == "stuck":
            return f"{ago} no change was found that helps: {last.reason}"
        case "nothing":
            return f"{ago} there was nothing to do: {last.reason}"
        case "refused":
            return f"{ago} no plan was made: {last.reason}"
        case "failed":
            return f"{ago} a bug was met: {last.reason}"
        case "planned":
            if f.held is not None and f.held.state in ("done", "failed", "rejected", "cancelled", "superseded"):
                detail = f": {f.held.note}" if f.held.note else ""
                return f"The plan of {clock(f.held.made_ms)} is {f.held.state}{detail}."
            return f"{ago} a plan was made."


def _unwell(f: Facts) -> list[str]:
    """What balance waits for; where the policy lets it go on, what is down all the same."""
    if f.waits:
        return [f"{sentence(f.waits)} Repairs of what is lost are planned all the same."]
    return _down(f)


def _down(f: Facts) -> list[str]:
    return [
        f"Broker {broker} has been down for {spoken(max(f.now_ms - since, 0))}; its replicas are planned away once it is down for "
        f"{spoken(f.dead_after_ms)}."
        for broker, since in f.down
    ]


def clock(ms: int) -> str:
    """``12:00:05 UTC``."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S UTC")
