"""What to do next: a pure planner of transitions from (wanted, seen, limits, how far) to the next safe steps.

Called by the engine at every turn, and by property tests. Knows no cluster, clock or file: equal arguments give equal steps. It may
be asked again at any moment, after any interruption; what it answers depends only on what is seen and written down.

What it keeps: one step on a partition at a time, each a whole replica list; no partition has fewer replicas in sync after a step than
before it, unless the plan wants fewer replicas; limits hold counting what is in progress already, whichever tool started it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cluster_model.quantities import format_size
from trimtab.execution.state import Limits, Mark, Observed, Partition, SeenPartition, Stage, Task

NAMED = 3  # partitions named in a sentence


@dataclass(frozen=True)
class Turn:
    """The next steps; nothing of it has happened yet.

    Attributes
    ----------
    marks
        What changed, by partition; write it down before the steps are taken.
    begin, elect
        Tasks whose replica list, or preferred leader, is to be asked for now.
    take_back
        Tasks of which the opposite is in progress: cancel that now.
    turned
        Tasks in progress that cannot be completed, as the way back that replaces them.
    waits
        Why nothing new starts, in a sentence; empty where something does or nothing is left.
    """

    marks: Mapping[Partition, Mark] = field(default_factory=dict)
    begin: tuple[Task, ...] = ()
    elect: tuple[Task, ...] = ()
    take_back: tuple[Task, ...] = ()
    turned: tuple[Task, ...] = ()
    waits: str = ""


def next_steps(
    tasks: Sequence[Task],
    marks: Mapping[Partition, Mark],
    seen: Observed,
    limits: Limits,
    *,
    lagging_before: frozenset[Partition] = frozenset(),
    held: str = "",
    elected: int = 0,
    freeing: bool = False,
    batch: int | None = None,
) -> Turn:
    """The next safe steps of an execution.

    Parameters
    ----------
    tasks
        All of the execution, one for a partition.
    marks
        How far each is; one that is not named waits.
    lagging_before
        Partitions that were under-replicated when the execution started; others that become so hold every new step but repairs.
    held
        Why no step may start, where something outside says so (a pause, a maintenance window).
    elected
        Leaders elected already in the current interval, and steps that left a partition without one for a moment.
    freeing
        Whether brokers may still be deleting replicas that went, so that there may be more room soon.
    batch
        The last batch of which steps may start; those of later ones wait, but for repairs and what goes back. None: there are no batches.

    Notes
    -----
    O(tasks + partitions of the cluster), and O(waiting tasks log waiting tasks) for their order.
    """
    now = {task.name: _found(task, marks.get(task.name, Mark()), seen, limits) for task in tasks}
    turned = tuple(t.back("cancel", lost) for t in tasks if now[t.name].stage is Stage.MOVING and (lost := _hopeless(t, seen, limits)))
    gone = {t.name for t in turned}
    changed = {t.name: now[t.name] for t in tasks if now[t.name] != marks.get(t.name, Mark())}
    changed |= {name: Mark(touched=True) for name in gone}
    open_ = [t for t in tasks if t.name not in gone]
    take_back = tuple(t for t in open_ if now[t.name].stage is Stage.WAITING and _opposite(t, seen))
    moving = [t for t in open_ if now[t.name].stage is Stage.MOVING]
    waiting = [t for t in open_ if now[t.name].stage is Stage.WAITING and t not in take_back]
    later = [t for t in waiting if _is_later(t, batch, seen)]
    waiting = [t for t in waiting if not _is_later(t, batch, seen)] if later else waiting
    placed = [t for t in open_ if now[t.name].stage is Stage.PLACED]
    result = Turn(changed, take_back=take_back, turned=turned)
    # Leaders follow once no replica is on its way, so that no leadership goes to and fro while logs are copied.
    moves_left = bool(waiting or moving or take_back or turned)
    candidates = waiting if moves_left else placed
    if not candidates or held:
        return replace(result, waits=held if candidates else "")
    waits = _unhealthy(candidates, {t.name for t in moving}, seen, lagging_before)
    if moves_left:
        allowed = [t for t in waiting if _repairs(t, seen)] if waits else waiting
        gaps, freeing = max(limits.elections - elected, 0), freeing or went(tasks, changed)
        begin, why = _chosen(allowed, moving, seen, limits, gaps, freeing=freeing)
        if later and not waits and not begin and not freeing and any(r.room for r in why.values()):
            # Room that only a later batch makes: the limits of batches give way.
            begin, why = _chosen([*allowed, *later], moving, seen, limits, gaps, freeing=freeing)
        changed |= {n: _lost(now[n], r.text) for n, r in why.items() if r.final}
        changed |= {t.name: _asked(now[t.name], Stage.ASKED) for t in begin}
        reasons = Counter(reason.text for reason in why.values() if not reason.final).most_common(1)
        return replace(result, begin=begin, waits="" if begin else waits or (reasons[0][0] if reasons else ""))
    if waits:
        return replace(result, waits=waits)
    ready = [t for t in placed if t.target[0] in seen.partitions[t.name].isr]
    elect = tuple(ready[: max(limits.elections - elected, 0)])
    changed |= {t.name: _asked(now[t.name], Stage.PLACED) for t in elect}
    if elect:
        return replace(result, elect=elect)
    late = placed[0]
    slow = f"waits: broker {late.target[0]}, which is to lead {late.name}, is not in sync"
    return replace(result, waits="waits for the next interval of elections" if ready else slow)


def went(tasks: Iterable[Task], changed: Mapping[Partition, Mark]) -> bool:
    """Whether replicas were seen to be gone from where they were to go, with the marks that changed."""
    return any(t.removing and t.name in changed and changed[t.name].stage in (Stage.PLACED, Stage.DONE, Stage.BACK) for t in tasks)


def _is_later(task: Task, batch: int | None, seen: Observed) -> bool:
    """Whether a task waits for its batch."""
    return batch is not None and task.batch > batch and not task.undo and not _repairs(task, seen)


def _asked(mark: Mark, stage: Stage) -> Mark:
    return Mark(stage, "", mark.attempts + 1, touched=True)


# -- how far a partition is ------------------------------------------------------------------------------------


def _lost(mark: Mark, reason: str) -> Mark:
    """Given up: failed where something was tried, else skipped."""
    return replace(mark, stage=Stage.FAILED if mark.touched else Stage.SKIPPED, reason=reason)


def _found(task: Task, mark: Mark, seen: Observed, limits: Limits) -> Mark:
    """How far a task is by what is seen; what is final stays, but for a leader that went away before the end."""
    there = seen.partitions.get(task.name)
    if mark.stage.final:
        led = there is None or task.leader != task.target[0] or there.leader == task.target[0]
        if led or mark.stage not in (Stage.DONE, Stage.BACK) or there is None or there.replicas != task.target or not mark.touched:
            return mark
        return replace(mark, stage=Stage.PLACED, attempts=0)
    if there is None:
        return _lost(mark, "there is no such partition any more")
    if there.reassigning:
        if there.target == task.target:  # ours, or the same by another tool: completion is all that counts
            return replace(mark, stage=Stage.MOVING)
        if mark.stage.begun and not task.undo:
            return _lost(mark, f"another tool reassigns it to {list(there.target)}")
        return replace(mark, stage=Stage.WAITING)
    if there.replicas == task.target:
        return _placed(task, mark, there, seen, limits)
    if task.undo == "cancel" and there.replicas == task.source:  # it was complete before it could be taken back
        return replace(mark, stage=Stage.DONE)
    if there.replicas != task.source and not (mark.touched and set(there.replicas) in (set(task.source), set(task.target))):
        wanted = f"its replicas are {list(there.replicas)}, not {list(task.source)} as the plan was made for"
        return _lost(mark, f"another tool changed it: {wanted}" if mark.touched else wanted)
    if mark.stage is Stage.MOVING:
        return _lost(mark, "another tool took its reassignment back")
    if mark.attempts >= limits.attempts:
        return _lost(mark, f"its reassignment was asked for {mark.attempts} times and never started")
    down = [b for b in task.target if b not in there.replicas and not seen.alive(b)]
    if any(_long_down(b, seen, limits) for b in down):
        return _lost(mark, f"its target, broker {_list(down)}, {_absence(down, seen)}")
    return replace(mark, stage=Stage.WAITING)


def _placed(task: Task, mark: Mark, there: SeenPartition, seen: Observed, limits: Limits) -> Mark:
    preferred = task.target[0]
    if task.leader != preferred or there.leader == preferred:
        return replace(mark, stage=Stage.BACK if task.undo else Stage.DONE, reason=task.why)
    if mark.stage is not Stage.PLACED:
        return replace(mark, stage=Stage.PLACED, attempts=0)
    if mark.attempts >= limits.attempts or _long_down(preferred, seen, limits):
        why = "is down" if not seen.alive(preferred) else "was not elected"
        return _lost(mark, f"its replicas are in place, but broker {preferred}, which is to lead, {why}")
    return mark


def _long_down(broker: int, seen: Observed, limits: Limits) -> bool:
    known = seen.brokers.get(broker)
    return known is None or (not known.alive and known.down_ms >= limits.patience_ms)


def _opposite(task: Task, seen: Observed) -> bool:
    """Whether what this task undoes is in progress."""
    there = seen.partitions.get(task.name)
    return bool(task.undo) and there is not None and there.reassigning and there.target == task.source


def _hopeless(task: Task, seen: Observed, limits: Limits) -> str:
    """Why a copy in progress cannot be completed; empty where it can."""
    down = [b for b in seen.partitions[task.name].adding if _long_down(b, seen, limits)]
    return f"its target, broker {_list(down)}, {_absence(down, seen)}" if down else ""


def _absence(brokers: Sequence[int], seen: Observed) -> str:
    return "is not registered" if any(b not in seen.brokers for b in brokers) else "is down"


# -- whether anything new may start ----------------------------------------------------------------------------


def _unhealthy(candidates: Sequence[Task], moving: set[Partition], seen: Observed, before: frozenset[Partition]) -> str:
    """Why nothing new but repairs may start; empty where it may."""
    involved = {b for t in candidates for b in (*t.source, *t.target)}
    under, behind = [], []
    for name, there in seen.partitions.items():
        if len(there.isr) >= len(there.replicas):
            continue
        if len(there.isr) < seen.needed_in_sync(name) and involved.intersection(there.replicas):
            under.append(name)
        if there.lagging and name not in before and name not in moving:
            behind.append(name)
    if under:
        return f"waits: {_names(under)} under min.insync.replicas on brokers that the next steps touch"
    return f"waits: {_names(behind)} under-replicated since the execution started" if behind else ""


def _repairs(task: Task, seen: Observed) -> bool:
    """Whether a step takes a replica off a broker that is down."""
    return any(not seen.alive(b) for b in task.removing)


# -- which of the waiting start --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reason:
    text: str
    final: bool = False
    room: bool = False


def _chosen(
    waiting: Sequence[Task], moving: Sequence[Task], seen: Observed, limits: Limits, gaps: int, *, freeing: bool
) -> tuple[tuple[Task, ...], dict[Partition, _Reason]]:
    """Those that start now, in order, and why each of the others does not."""
    room = _Room(moving, seen, limits)
    wanted: dict[int, float] = defaultdict(float)
    for task in waiting:
        for broker in _missing(task, seen):
            wanted[broker] += task.size
    crowded = {b for b, size in wanted.items() if size > room.free(b)}

    def order(task: Task) -> tuple[object, ...]:
        drains = bool(crowded.intersection(task.removing)) and not crowded.intersection(task.adding)
        return (not _repairs(task, seen), not drains, -task.value, task.name)

    chosen: list[Task] = []
    why: dict[Partition, _Reason] = {}
    for task in sorted(waiting, key=order):
        if room.full:  # the rest is looked at when a place is free
            why[task.name] = room.full
            break
        reason = _unsafe(task, seen, limits) or room.refuses(task)
        if reason is None and task.gap and gaps <= 0:
            reason = _Reason(f"waits for the next interval: {limits.elections} partitions may be without a leader for a moment in one")
        if reason is None:
            room.take(task)
            gaps -= task.gap
            chosen.append(task)
        else:
            why[task.name] = reason
    if not chosen and not room.count and not freeing:
        # Nothing is on its way that could make room, or went a moment ago: those that lack it never get it.
        why = {name: replace(r, final=r.final or r.room) for name, r in why.items()}
    return tuple(chosen), why


def _missing(task: Task, seen: Observed) -> tuple[int, ...]:
    """Brokers to which a step would copy, by what is there."""
    return tuple(b for b in task.target if b not in seen.partitions[task.name].replicas)


def _unsafe(task: Task, seen: Observed, limits: Limits) -> _Reason | None:
    """Why a step would not be safe now, whatever the limits."""
    there, missing = seen.partitions[task.name], _missing(task, seen)
    if there.reassigning:
        return _Reason(f"waits: another tool reassigns {task.name} to {list(there.target)}")
    down = [b for b in missing if not seen.alive(b)]
    if down:
        return _Reason(f"waits: broker {_list(down)}, a target, is down")
    if there.leader is None and missing:
        return _Reason(f"waits: {task.name} has no leader to copy from")
    asked = seen.min_isr.get(task.name.topic, 1)
    if len(task.target) < min(asked, len(task.source)) and not task.undo:
        left = f"it would have {len(task.target)} replicas" if len(task.target) > 1 else "it would have one replica"
        return _Reason(f"{left}, and min.insync.replicas is {asked}: no producer with acks=all could write to it", final=True)
    kept = sum(b in there.isr for b in task.target)
    if len(missing) + kept < min(len(there.isr), len(task.target)):
        return _Reason(f"waits: {task.name} would have fewer replicas in sync")
    fewer = _racks(task.target, seen) < min(_racks(task.source, seen), len(task.target))
    if limits.racks and fewer and not task.undo and not _repairs(task, seen):
        return _Reason(f"its replicas would stand in fewer racks: {_racks(task.target, seen)}, not {_racks(task.source, seen)}", final=True)
    return None


def _racks(replicas: Iterable[int], seen: Observed) -> int:
    """Distinct racks; a broker without one is a rack of its own."""
    return len({(seen.brokers[b].rack or b) if b in seen.brokers else b for b in replicas})


class _Room:
    """What limits leave, counting every reassignment in progress, also those of other tools."""

    def __init__(self, moving: Sequence[Task], seen: Observed, limits: Limits) -> None:
        self._seen, self._limits = seen, limits
        self._into: Counter[int] = Counter()
        self._out: Counter[int] = Counter()
        self._coming: dict[int, float] = defaultdict(float)
        self.count = 0
        for there in seen.partitions.values():
            if there.reassigning:
                self.count += 1
                self._into.update(there.adding)
                if there.leader is not None:
                    self._out[there.leader] += len(there.adding)
        for task in moving:
            adding = seen.partitions[task.name].adding
            for broker in adding:
                self._coming[broker] += max(task.size - seen.copied.get(task.name, 0.0) / len(adding), 0.0)

    def free(self, broker: int) -> float:
        """Bytes that may still be copied there; no end where not known."""
        known = self._seen.brokers.get(broker)
        if known is None or known.free is None:
            return float("inf")
        return max(known.free - self._limits.reserve - self._coming[broker], 0.0)

    @property
    def full(self) -> _Reason | None:
        """Why nothing more may be in progress in the whole cluster; None where it may."""
        if self.count < self._limits.cluster:
            return None
        return _Reason(f"waits: {self.count} partitions are in progress, the limit is {self._limits.cluster}")

    def refuses(self, task: Task) -> _Reason | None:
        """Which limit a step would exceed on one of its brokers."""
        limits, missing = self._limits, _missing(task, self._seen)
        leader = self._seen.partitions[task.name].leader
        for broker in missing:
            if self._into[broker] >= limits.into:
                return _Reason(f"waits: {self._into[broker]} replicas are being copied into broker {broker}, the limit is {limits.into}")
            if task.size > self.free(broker):
                return _Reason(
                    f"no room on broker {broker}: {format_size(task.size)} to copy, {format_size(self.free(broker))} free beyond the "
                    f"reserve of {format_size(limits.reserve)}", room=True,
                )  # fmt: skip
        # A partition with more new replicas than the limit is copied alone.
        if leader is not None and missing and self._out[leader] and self._out[leader] + len(missing) > limits.out_of:
            return _Reason(f"waits: {self._out[leader]} replicas are being copied from broker {leader}, the limit is {limits.out_of}")
        return None

    def take(self, task: Task) -> None:
        missing, leader = _missing(task, self._seen), self._seen.partitions[task.name].leader
        self.count += 1
        for broker in missing:
            self._into[broker] += 1
            self._coming[broker] += task.size
        if leader is not None:
            self._out[leader] += len(missing)


def _names(names: Sequence[Partition]) -> str:
    """``orders-1, orders-2 and 5 more are``."""
    shown = ", ".join(str(n) for n in sorted(names)[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{shown}{more} {'is' if len(names) == 1 else 'are'}"


def _list(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
