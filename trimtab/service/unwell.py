"""While the cluster is unwell nothing is moved for balance: what that rests on, in sentences. Pure.

Asked by `trimtab.service.decider` before it plans, and by the code that says why nothing happens. Repairs of lost
brokers are not held back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from cluster_model.trust import spoken
from goals.waiting import Wait as Policy
from goals.waiting import quiet_hours
from trimtab.service.health import BrokerHealth, Condition
from trimtab.service.views import ClusterView, DirectoriesView, DownView, WaitKind

PASSING: tuple[WaitKind, ...] = ("down", "settling", "leaders")  # these end by themselves within minutes
ASTRAY = 0.1  # of a broker's preferred partitions; Kafka's own leader.imbalance.per.broker.percentage
MOST_NAMED = 4
BY_HAND = "kafka-leader-election.sh --election-type preferred --all-topic-partitions"


@dataclass(frozen=True, slots=True)
class Waiting:
    """One reason why balance waits, as the end of the sentence "Balance waits: …".

    Attributes
    ----------
    since_ms
        Since when, Unix ms; None where it is unknown.
    """

    kind: WaitKind
    text: str
    since_ms: int | None = None

    @property
    def passing(self) -> bool:
        """Whether it ends by itself soon, so that broken hard limits wait for it, too: loads are not what they will be."""
        return self.kind in PASSING


def waits(now: Condition, policy: Policy, now_ms: int, dead_after_ms: int, *, elects: bool = False) -> tuple[Waiting, ...]:
    """Everything that balance waits for at `now_ms`, worst first. `elects`: the service elects preferred leaders by itself."""
    return (
        *(_down(now, now_ms, dead_after_ms) if policy.fenced else ()),
        *_under_replicated(now, policy, now_ms),
        *_settling(now, policy, now_ms),
        *(_foreign(now, now_ms) if policy.foreign else ()),
        *_leaders(now, policy, now_ms, elects),
        *_quiet(policy, now_ms),
    )  # fmt: skip


def sentence(found: Iterable[Waiting]) -> str:
    """What people are told; empty where balance waits for nothing."""
    texts = [w.text for w in found]
    return f"Balance waits: {'; '.join(texts)}." if texts else ""


def astray(now: Condition, policy: Policy) -> bool:
    """Whether leaderships are so far from the preferred ones that they come before moves."""
    return policy.leaders > 0 and bool(_led_by_others(now))


def _down(now: Condition, now_ms: int, dead_after_ms: int) -> Iterable[Waiting]:
    for broker in now.health.living("stopping"):
        yield Waiting("down", f"broker {broker.id} is shutting down", now.down.get(broker.id))
    for broker in now.health.living("fenced"):
        since = now.down.get(broker.id, now_ms)
        text = (
            f"broker {broker.id} has been down for {spoken(max(now_ms - since, 0))} and probably restarts; it counts as lost, and its "
            f"replicas are planned away, once it is down for {spoken(dead_after_ms)}"
        )
        yield Waiting("down", text, since)


def _under_replicated(now: Condition, policy: Policy, now_ms: int) -> Iterable[Waiting]:
    health = now.health
    if policy.under_replicated is None or health.under_replicated <= policy.under_replicated:
        return
    since = now.since.get("under_replicated", now_ms)
    lacking = sorted((b for b in health.brokers if b.lacking), key=lambda b: (-b.lacking, b.id))
    where = ", ".join(f"{b.lacking:,} on {_named(b)}" for b in lacking[:MOST_NAMED])
    more = f" and {len(lacking) - MOST_NAMED} more brokers" if len(lacking) > MOST_NAMED else ""
    count = f"{health.under_replicated:,} partition{' is' if health.under_replicated == 1 else 's are'} under-replicated"
    count += f", {health.under_min_isr:,} under min ISR," if health.under_min_isr else ""
    yield Waiting("under_replicated", f"{count} for {spoken(max(now_ms - since, 0))} (replicas out of sync: {where}{more})", since)


def _named(broker: BrokerHealth) -> str:
    life = {"serving": "", "unregistered": ", which is not registered"}.get(broker.life, f", which is {broker.life}")
    return f"broker {broker.id}{life}"


def _settling(now: Condition, policy: Policy, now_ms: int) -> Iterable[Waiting]:
    if not policy.settle:
        return
    lacking = {b.id: b.lacking for b in now.health.brokers}
    for broker, since in sorted(now.catching_up.items()):
        text = f"broker {broker} came back and catches up: {lacking.get(broker, 0):,} of its replicas are not in sync"
        yield Waiting("settling", text, since)
    settle_ms = round(1000 * policy.settle)
    for broker, since in sorted(now.back.items()):
        left = since + settle_ms - now_ms
        if left > 0:
            text = f"broker {broker} is back and in sync since {_clock(since)}, and loads settle for {spoken(left)} more"
            yield Waiting("settling", text, since)


def _foreign(now: Condition, now_ms: int) -> Iterable[Waiting]:
    moving = now.health.reassigning
    if moving:
        text = f"{moving:,} reassignment{' is' if moving == 1 else 's are'} in progress that this service did not start"
        yield Waiting("foreign", text, now.since.get("reassigning", now_ms))


def _led_by_others(now: Condition) -> list[BrokerHealth]:
    return [b for b in now.health.living("serving") if b.astray > ASTRAY * b.preferred]


def led_by_others(now: Condition) -> str:
    """How many partitions are, and what to do about it first."""
    return f"{_away(now)}. The first thing to do, which copies nothing: {BY_HAND}"


def _away(now: Condition) -> str:
    away = len(now.health.astray)
    return f"{away:,} partition{' is' if away == 1 else 's are'} not led by the preferred leader, though it is in sync"


def _leaders(now: Condition, policy: Policy, now_ms: int, elects: bool) -> Iterable[Waiting]:
    if not astray(now, policy):
        return
    since = now.since.get("astray", now_ms)
    left = since + round(1000 * policy.leaders) - now_ms
    if left > 0:
        if elects and policy.elect:
            text = f"{_away(now)}. This service elects it, which copies nothing, before anything is moved"
        else:
            text = (
                f"{led_by_others(now)}. Kafka does it by itself every few minutes unless auto.leader.rebalance.enable is off, and gets "
                f"{spoken(left)} more for it"
            )
        yield Waiting("leaders", text, since)


def _quiet(policy: Policy, now_ms: int) -> Iterable[Waiting]:
    for text in policy.quiet_hours:
        until = quiet_hours(text).until(now_ms)
        if until is not None:
            yield Waiting("quiet", f"these are quiet hours ({text}), until {_clock(until)}")


def _clock(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%H:%M:%S UTC")


def cluster_view(
    now: Condition, known: bool, found: Iterable[Waiting], directories: tuple[DirectoriesView, ...] = ()
) -> ClusterView:
    """The same as data, for programs and the page."""
    health = now.health
    down = [
        DownView(id=b.id, life=b.life, since_ms=now.down.get(b.id, b.since_ms), replicas=b.replicas, lacking=b.lacking)
        for b in health.brokers if b.life != "serving"
    ]  # fmt: skip
    waiting = tuple(found)
    if any(w.kind == "settling" for w in waiting):
        back = [("catching up", now.catching_up), ("settling", now.back)]
        sizes = {b.id: b for b in health.brokers}
        for life, table in back:
            for broker, at in sorted(table.items()):
                if broker in sizes and any(w.kind == "settling" and w.since_ms == at for w in waiting):
                    b = sizes[broker]
                    down.append(DownView(id=broker, life=life, since_ms=at, replicas=b.replicas, lacking=b.lacking))
    since = {what: at for what, at in now.since.items() if what != "astray"}
    return ClusterView(
        known=known, partitions=health.partitions, offline=health.offline, under_replicated=health.under_replicated,
        under_min_isr=health.under_min_isr, min_isr_unread=health.unread, last_copy=health.last_copy,
        reassigning=health.reassigning, not_preferred=health.not_preferred, examples=health.examples,
        since_ms=since, down=tuple(down), lives=Counter(b.life for b in health.brokers),
        waits=tuple(dict.fromkeys(w.kind for w in waiting)), directories=directories,
    )  # fmt: skip
