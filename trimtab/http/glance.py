"""How the service stands, in a sentence: the first thing on the page.

A pure function of the state. One line for people, and what colour it has.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from optimizer.report.units import count, listing, size
from trimtab.capture.assemble import uneven
from trimtab.http.headline import headline
from trimtab.service.views import BrokerView, StateView, View

Tone = Literal["good", "some", "bad", "plain"]
LEAVING = ("draining", "dead")  # brokers that are to hold nothing


class GlanceView(View):
    """A verdict for people."""

    tone: Tone = Field(description="good, something to see to, bad, nothing known")
    label: str
    sentence: str
    remainder: str
    facts: tuple[str, ...] = Field(default=(), description="what is wrong with the cluster itself, each with since when")
    help: str = Field(default="", description="what would help, where the cluster itself is not well")
    balance: str = Field(default="", description="how goals stand, where the sentence is about something worse")


class StateAnswer(StateView):
    """The state, and what it comes to in words."""

    glance: GlanceView


def with_glance(state: StateView) -> StateAnswer:
    """The state with its verdict."""
    return StateAnswer.model_construct(
        **{name: getattr(state, name) for name in StateView.model_fields}, glance=glance(state)
    )


def glance(state: StateView) -> GlanceView:
    """The most important thing first: the cluster itself, then whether the service works and knows enough, then how goals stand."""
    below = _of_service(state)
    slow = tuple(f"Broker {b.id} is slow and gets no replicas: {b.slow}." for b in state.brokers if b.slow)
    beside = (*_directories(state), *_drained(state))
    worse = headline(state)
    if worse is None or not state.cluster.known:
        odd = bool(slow) or any(at.offline for at in state.cluster.directories)
        tone: Tone = "some" if odd and below.tone == "good" else below.tone
        return below.model_copy(update={"facts": (*slow, *beside), "tone": tone})
    tone = "bad" if worse.severe or below.tone == "bad" else "some"
    return GlanceView(
        tone=tone, label=worse.label, sentence=worse.sentence, remainder=below.remainder, facts=(*worse.facts, *slow, *beside),
        help=worse.help, balance=f"{below.label}: {below.sentence}",
    )  # fmt: skip


def _directories(state: StateView) -> tuple[str, ...]:
    """A sentence for each broker with log directories that are offline, or one that is far fuller than the others."""
    told = []
    for at in state.cluster.directories:
        if at.offline:
            told.append(f"Broker {at.broker} has offline log directories: {listing(list(at.offline), 4)}.")
        if at.fullest_used is not None and at.used is not None and uneven(at.fullest_used, at.used, at.volumes):
            told.append(
                f"Broker {at.broker}: log directory {at.fullest} is {at.fullest_used:.0%} full, its {at.volumes} log directories "
                f"together {at.used:.0%}; `trimtab directories` moves replicas between them."
            )
    return tuple(told)


def _drained(state: StateView) -> tuple[str, ...]:
    """A sentence for each broker that was to be emptied and is."""
    down = {b.id for b in state.cluster.down if b.life == "drained"}
    return tuple(
        f"Broker {b.id} is drained and down: unregister it, or start and activate it to use it again." if b.id in down
        else f"Broker {b.id} is drained: it hosts no replica and can be shut down. It gets none before it is activated."
        for b in state.brokers if b.drained
    )  # fmt: skip


def _of_service(state: StateView) -> GlanceView:
    """Broken, blind, then unbalanced or level, then what is done about it."""
    who = _who(state)
    if not state.healthy:
        return GlanceView(
            tone="bad",
            label="Not healthy",
            sentence=_first(state.why_unhealthy, "A part of the service has stopped"),
            remainder=who,
        )
    if not state.ready:
        return GlanceView(
            tone="plain",
            label="Not ready" if state.starting is None else "Starting",
            sentence=_first(state.why_not_ready, "Not enough is known to decide"),
            remainder=who,
        )
    out = [b.id for b in state.brokers if b.violates]
    leaving = [b for b in state.brokers if b.state in LEAVING and b.loads.get("replicas")]
    staying = sum(b.state not in LEAVING and not b.drained for b in state.brokers)
    hard = [g for g in state.goals if g.hard and g.violations]
    judged = [g for g in state.goals if g.skipped is None]
    plan = _plan(state)
    if not judged:
        return GlanceView(
            tone="plain", label="Nothing to judge", sentence="No goal can be judged yet.", remainder=who
        )
    if not out and not hard and not leaving:
        return GlanceView(
            tone="good",
            label="Level",
            sentence=_sentence(f"All {count(staying, 'broker')} are within their target range", plan),
            remainder=who,
        )
    if not out and not hard:
        return GlanceView(tone="some", label="Not empty", sentence=_sentence(_left_on(leaving), plan), remainder=who)
    if out:
        first = _out(out, max(staying, len(out)))
    else:
        first = f"{listing([g.name for g in hard], 3)} {'is' if len(hard) == 1 else 'are'} violated"
    label = "Hard goal violated" if hard else "Unbalanced"
    if state.plan is not None and state.plan.state in ("approved", "running"):
        label = "Being levelled"
    return GlanceView(
        tone="bad" if hard else "some", label=label, sentence=_sentence(first, plan), remainder=who
    )


def _left_on(leaving: list[BrokerView]) -> str:
    """What is still on brokers that are to hold nothing."""
    left = count(round(sum(b.loads["replicas"] for b in leaving)), "replica")
    which = listing([f"{b.id}, which is {b.state}" for b in leaving], 4)
    return f"{left} {'is' if left.startswith('1 ') else 'are'} still on broker{'' if len(leaving) == 1 else 's'} {which}"


def _out(ids: list[int], brokers: int) -> str:
    """How many, and which where that helps."""
    if len(ids) == brokers:
        return (
            f"All {count(brokers, 'broker')} are outside their target range"
            if brokers > 1
            else "The only broker is outside its target range"
        )
    which = listing([str(i) for i in ids], 4)
    return (
        f"{len(ids):,} of {count(brokers, 'broker')} {'is outside its' if len(ids) == 1 else 'are outside their'} target range ({which})"
    )


def _first(reasons: tuple[str, ...], otherwise: str) -> str:
    return _sentence(reasons[0] if reasons else otherwise, "")


def _sentence(first: str, then: str) -> str:
    text = first.strip().rstrip(".") + (f"; {then}" if then else "")
    return text[:1].upper() + text[1:] + ("" if text.endswith(("?", "!")) else ".")


def _plan(state: StateView) -> str:
    """What becomes of the plan; empty where there is none worth a word."""
    plan = state.plan
    if plan is None or plan.state in ("superseded", "rejected", "cancelled", "done"):
        return ""
    parts = [count(plan.replica_moves, "replica move")] if plan.replica_moves else []
    parts += [count(plan.leadership_changes, "leadership change")] if plan.leadership_changes else []
    cost = f" ({size(plan.bytes_to_move)})" if plan.bytes_to_move else ""
    what = f"a plan of {listing(parts) or count(plan.actions, 'action')}{cost}"
    match plan.state:
        case "proposed":
            return f"{what} {_proposed(state)}"
        case "approved":
            return f"{what} is approved and about to start"
        case "running":
            return f"{what} is running" + ("" if plan.progress is None else f", {plan.progress:.0%} done")
        case "failed":
            return f"{what} has failed" + (f": {plan.note.rstrip('.')}" if plan.note else "")
    return what


def _proposed(state: StateView) -> str:
    """What is to become of a plan that is not approved."""
    if state.mode == "dry-run":
        return f"would {_reach(state)} (dry run: it is not carried out)"
    if not state.has_executor:
        return f"would {_reach(state)}, and cannot be carried out: there is no executor for this cluster; apply it with Kafka's own tools"
    return "waits for approval" if state.mode == "approve" else "is about to start"


def _reach(state: StateView) -> str:
    """What a plan comes to, in brokers."""
    plan, out = state.plan, sum(1 for b in state.brokers if b.violates)
    if plan is not None and plan.restores:
        return "restore preferred leaders, which copies nothing"
    if plan is not None and plan.demotes:
        return "take leaderships off slow brokers, which copies nothing"
    if plan is None or plan.left_out is None:
        return "make it better"
    if not plan.is_balance:
        return "repair what is lost"
    if plan.left_out == 0:
        return "bring all of them into their target range"
    if plan.left_out >= out:
        return f"make it better, and leave {count(plan.left_out, 'broker')} outside a target range"
    return f"bring {out - plan.left_out:,} of {out:,} into their target range"


def _who(state: StateView) -> str:
    """Who decides, and whether it may."""
    it = state.leadership
    if it.shared:
        said = "This instance decides nothing."
    elif it.error:
        said = f"It is not known which controller is active: {it.error.rstrip('.')}."
    elif it.leads:
        said = (
            "This instance decides"
            + ("" if it.node is None else f": its node {it.node} is the active controller")
            + "."
        )
    elif it.checked_ms is None:
        said = "The cluster has not answered yet, so this instance decides nothing."
    elif it.controller is None:
        said = "No active controller is known, so this instance decides nothing."
    else:
        said = f"Node {it.controller} is the active controller; this instance keeps its model warm and decides nothing."
    return said + (" Paused: no plan is made or started until an operator resumes." if state.paused else "")
