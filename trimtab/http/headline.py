"""How the cluster itself is, in a sentence, and what would help: what comes before any word on balance. Pure.

Used by `trimtab.http.glance`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from optimizer.report.units import count, listing
from trimtab.service.views import ClusterView, DownView, StateView

WORDS = {  # one broker, several
    "dead": ("is dead", "are dead"), "unregistered": ("is dead and not registered", "are dead and not registered"),
    "fenced": ("is down, probably restarting", "are down, probably restarting"),
    "stopping": ("is shutting down", "are shutting down"), "catching up": ("is back and catches up", "are back and catch up"),
    "settling": ("is back, and loads settle", "are back, and loads settle"),
}  # fmt: skip
GONE = ("dead", "unregistered")
MOST_NAMED = 4
MANY = 0.05  # of the brokers; fewer silent reporters are told below


@dataclass(frozen=True, slots=True)
class Headline:
    """What is wrong with the cluster, in short and with since when; `severe` where data is out of reach, writes are refused, or a broker is
    lost."""

    severe: bool
    label: str
    sentence: str
    facts: tuple[str, ...]
    help: str


def headline(state: StateView) -> Headline | None:
    """None where the cluster is well, or nothing is known of it."""
    cluster = state.cluster
    gone = [b for b in cluster.down if b.life in GONE and (b.replicas or b.life == "dead")]
    away = [b for b in cluster.down if b.life not in (*GONE, "drained")]
    short = [*_brokers(gone), *_brokers(away), *_partitions(cluster), *_silent(state)]
    if not short:
        return None
    severe = bool(gone or cluster.offline or cluster.under_min_isr)
    label = "Partitions offline" if cluster.offline else "Broker dead" if gone else "Under min ISR" if severe else "Cluster unwell"
    if not severe and not cluster.under_replicated and all(b.life == "settling" for b in away):
        label = "Settling" if away else "Reporters silent"
    text = "; ".join(short)
    return Headline(
        severe, label, text[:1].upper() + text[1:] + ".", (*map(_fact, (*gone, *away)), *_counts(cluster)), _help(state, gone, away)
    )


def _brokers(brokers: Iterable[DownView]) -> list[str]:
    """One part of the sentence for each state that brokers are in."""
    by_life: dict[str, list[str]] = {}
    for broker in brokers:
        by_life.setdefault(broker.life, []).append(str(broker.id))
    said = []
    for life, ids in by_life.items():
        one = len(ids) == 1
        said.append(f"broker{'' if one else 's'} {listing(ids, MOST_NAMED)} {WORDS[life][0 if one else 1]}")
    return said


def _fact(broker: DownView) -> str:
    at = "" if broker.since_ms is None else f" since {_clock(broker.since_ms)}"
    lacking = f", {broker.lacking:,} of its {count(broker.replicas, 'replica')} out of sync" if broker.lacking else ""
    return f"Broker {broker.id}: {broker.life}{at}{lacking}."


def _partitions(cluster: ClusterView) -> list[str]:
    """Worst first."""
    counts = [(cluster.offline, "offline"), (cluster.under_min_isr, "under min ISR"), (cluster.under_replicated, "under-replicated")]
    there = [(number, what) for number, what in counts if number]
    if not there:
        return []
    number, what = there[0]
    first = f"{count(number, 'partition')} {'is' if number == 1 else 'are'} {what}"
    return [", ".join([first, *(f"{number:,} {what}" for number, what in there[1:])])]


def _counts(cluster: ClusterView) -> list[str]:
    """The same with since when; the worst with names."""
    all_, said = count(cluster.partitions, "partition"), []
    if cluster.offline:
        said.append(f"Offline: {cluster.offline:,} of {all_}{_since(cluster, 'offline')}{_some(cluster, cluster.offline)}.")
    if cluster.under_min_isr:
        names = "" if cluster.offline else _some(cluster, cluster.under_min_isr)
        refused = "; producers with acks=all are refused there"
        said.append(f"Under min ISR: {cluster.under_min_isr:,} of {all_}{_since(cluster, 'under_min_isr')}{names}{refused}.")
    if cluster.under_replicated:
        last = f", {cluster.last_copy:,} of them down to one in-sync replica" if cluster.last_copy else ""
        names = "" if cluster.offline or cluster.under_min_isr else _some(cluster, cluster.under_replicated)
        said.append(f"Under-replicated: {cluster.under_replicated:,} of {all_}{_since(cluster, 'under_replicated')}{last}{names}.")
    if cluster.min_isr_unread:
        said.append(f"min.insync.replicas of {count(cluster.min_isr_unread, 'topic')} with replicas out of sync is not known.")
    return said


def _silent(state: StateView) -> list[str]:
    """Brokers that serve, and whose reporters are not heard, where they are many; where they are too many, the service is not ready."""
    serving = [b for b in state.brokers if b.state == "active"]
    mute = [b.id for b in serving if b.voice in ("silent", "never")]
    if len(mute) < MANY * len(serving) or not mute or not state.ready:
        return []
    one = len(mute) == 1
    names = listing([str(b) for b in mute], MOST_NAMED)
    return [f"the reporter{'' if one else 's'} of broker{'' if one else 's'} {names} {'is' if one else 'are'} not heard"]


def _some(cluster: ClusterView, number: int) -> str:
    """Some of the worst partitions, of which there are so many."""
    names = cluster.examples[: min(3, number)]
    return f" ({', '.join(names)}{', …' if number > len(names) else ''})"


def _since(cluster: ClusterView, what: str) -> str:
    at = cluster.since_ms.get(what)
    return "" if at is None else f" since {_clock(at)}"


def _help(state: StateView, gone: list[DownView], away: list[DownView]) -> str:
    """What would help, in the words of what an operator does."""
    plan = state.plan
    if gone:
        their = "its" if len(gone) == 1 else "their"
        which = f"broker{'' if len(gone) == 1 else 's'} {listing([str(b.id) for b in gone], MOST_NAMED)}"
        if plan is not None and plan.state == "running":
            return f"A plan is being carried out; {which} may still be started again."
        if plan is not None and plan.state in ("proposed", "approved") and not plan.is_balance:
            do = "apply" if state.mode == "dry-run" or not state.has_executor else "approve"
            return f"Start {which} again, or {do} the plan below, which puts {their} replicas elsewhere."
        return f"Start {which} again. Where that cannot be, a plan of repairs puts {their} replicas elsewhere."
    if any(b.life == "fenced" for b in away):
        return "Start it again if this is no planned restart. Nothing is moved for balance meanwhile."
    if away and not state.cluster.under_min_isr:
        return "Nothing needs to be done: balance goes on when replicas are in sync and loads have settled."
    if state.cluster.offline or state.cluster.under_min_isr or state.cluster.under_replicated:
        return "See that the brokers with replicas out of sync keep up: disk, network. Nothing is moved for balance meanwhile."
    return (
        "Start the reporter again, or see why it does not reach the metric topic. Balance goes on with what followers and the brokers "
        "themselves tell."
    )


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
