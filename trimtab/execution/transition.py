"""What to do next: a pure planner of transitions from (wanted, seen, limits, how far) to the next safe steps.

Called by the engine at every turn, and by property tests. Knows no cluster, clock or file: equal arguments give equal steps. It may
be asked again at any moment, after any interruption; what it answers depends only on what is seen and written down.

What it keeps: one step on a partition at a time, each a whole replica list; no partition has fewer replicas in sync after a step than
before it, unless the plan wants fewer replicas; limits hold counting what is in progress already, whichever tool began it.

Where replicas go elsewhere there are two steps: the new ones are added, and once they are in sync the old ones go, which copies nothing.
Producers may notice when a replica goes, and not when one is added; they seldom do where partitions go one after the other. A replica on
a broker that is down is replaced in one step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trimtab.execution.room import Reason, Room, missing_of
from trimtab.execution.state import Limits, Mark, Observed, Partition, SeenPartition, Stage, Task

NAMED = 3  # partitions named in a sentence


@dataclass(frozen=True)
class Turn:
    """The next steps; nothing of it has happened yet.

    Attributes
    ----------
    marks
        What changed, by partition; write it down before the steps are taken.
    begin, exchange, elect
        Tasks of which a replica list is to be asked for now, as the first step or so that old replicas go, or the preferred leader.
    asks
        The replica list to ask for, of each that begins or is exchanged.
    take_back
        Tasks of which the opposite is in progress: cancel that now.
    turned
        Tasks in progress that cannot be completed, as the way back that replaces them.
    waits
        Why nothing new begins, in a sentence; empty where something does or nothing is left.
    """

    marks: Mapping[Partition, Mark] = field(default_factory=dict)
    begin: tuple[Task, ...] = ()
    exchange: tuple[Task, ...] = ()
    elect: tuple[Task, ...] = ()
    asks: Mapping[Partition, tuple[int, ...]] = field(default_factory=dict)
    take_back: tuple[Task, ...] = ()
    turned: tuple[Task, ...] = ()
    waits: str = ""

    @property
    def gaps(self) -> int:
        """Partitions that these steps leave without a leader for a moment."""
        return sum(t.gap and self.asks[t.name] == t.target for t in (*self.begin, *self.exchange))


def next_steps(
    tasks: Sequence[Task],
    marks: Mapping[Partition, Mark],
    seen: Observed,
    limits: Limits,
    *,
    lagging_before: frozenset[Partition] = frozenset(),
    held: str = "",
    elected: int = 0,
    exchanged: int = 0,
    freeing: bool = False,
) -> Turn:
    """The next safe steps of an execution.

    Parameters
    ----------
    tasks
        All of the execution, one for a partition.
    marks
        How far each is; one that is not named waits.
    lagging_before
        Partitions that were under-replicated when the execution began; others that become so hold every new step but repairs.
    held
        Why no step may begin, where something outside says so (a pause, a maintenance window).
    elected
        Leaders elected already in the current interval, and steps that left a partition without one for a moment.
    exchanged
        Partitions whose old replicas went already in the current interval.
    freeing
        Whether brokers may still be deleting replicas that went, so that there may be more room soon.

    Notes
    -----
    O(tasks + partitions of the cluster), and O(waiting tasks log waiting tasks) for their order.
    """
    now = {task.name: _found(task, marks.get(task.name, Mark()), seen, limits) for task in tasks}
    turned = tuple(t.back("cancel", lost) for t in tasks if (lost := _hopeless(t, now[t.name].stage, seen, limits)))
    gone = {t.name for t in turned}
    changed = {t.name: now[t.name] for t in tasks if now[t.name] != marks.get(t.name, Mark())}
    changed |= {name: Mark(touched=True) for name in gone}
    open_ = [t for t in tasks if t.name not in gone]
    take_back = tuple(t for t in open_ if now[t.name].stage is Stage.WAITING and _opposite(t, seen))
    result = Turn(changed, take_back=take_back, turned=turned)
    found = _far(open_, now, {t.name for t in take_back}, limits)
    # Leaders follow once no replica is on its way, so that no leadership goes to and fro while logs are copied.
    moves_left = bool(found.waiting or found.moving or found.added or take_back or turned)
    late = [t for t in found.moving if _source_went(t, now[t.name], seen, limits)]
    candidates = [*found.waiting, *found.added, *late] if moves_left else found.placed
    if not candidates or held:
        return replace(result, waits=held if candidates else "")
    waits = _unhealthy(candidates, {t.name for t in found.moving}, seen, lagging_before)
    if moves_left:
        repairs = [[t for t in group if _repairs(t, seen)] for group in (found.waiting, found.added)]
        allowed = replace(found, waiting=repairs[0], added=repairs[1]) if waits else found  # what is late repairs
        gaps, going = max(limits.elections - elected, 0), max(max(limits.exchange, 1) - exchanged, 0)
        moves = _moves(allowed, late, now, seen, limits, gaps, going, freeing=freeing)
        waits = "" if moves.asks else waits or moves.waits
        return replace(moves, marks={**changed, **moves.marks}, take_back=take_back, turned=turned, waits=waits)
    if waits:
        return replace(result, waits=waits)
    ready = [t for t in found.placed if t.target[0] in seen.partitions[t.name].isr]
    elect = tuple(ready[: max(limits.elections - elected, 0)])
    changed |= {t.name: _asked(now[t.name], Stage.PLACED) for t in elect}
    if elect:
        return replace(result, elect=elect)
    first = found.placed[0]
    slow = f"waits: broker {first.target[0]}, which is to lead {first.name}, is not in sync"
    return replace(result, waits="waits for the next interval of elections" if ready else slow)


@dataclass(frozen=True, slots=True)
class _Far:
    """Tasks by how far they are; `added` are those of which nothing but old replicas have to go."""

    waiting: Sequence[Task]
    moving: Sequence[Task]
    added: Sequence[Task]
    placed: Sequence[Task]


def _far(tasks: Sequence[Task], now: Mapping[Partition, Mark], taken: set[Partition], limits: Limits) -> _Far:
    by: dict[Stage, list[Task]] = defaultdict(list)
    for task in tasks:
        stage = now[task.name].stage
        if task.name not in taken:
            by[Stage.ADDED if stage is Stage.WAITING and limits.exchange and task.removing and not task.adding else stage].append(task)
    return _Far(by[Stage.WAITING], by[Stage.MOVING], by[Stage.ADDED], by[Stage.PLACED])


def _moves(
    far: _Far, late: Sequence[Task], now: Mapping[Partition, Mark], seen: Observed, limits: Limits, gaps: int, going: int, *, freeing: bool
) -> Turn:
    """Replica lists to ask for now, with the marks of those and of what is given up; old replicas of `going` partitions may go."""
    room = Room(far.moving, seen, limits, beside=sum(now[t.name].stage is Stage.ADDED for t in far.added))
    begin, why = _chosen(far.waiting, room, seen, limits, gaps, more_room=bool(far.added) or freeing)
    asks = {t.name: t.both if _in_two(t, seen, limits) else t.target for t in begin}
    gaps -= sum(t.gap and asks[t.name] == t.target for t in begin)
    exchange, later = _exchanged(far.added, seen, limits, gaps, going)
    exchange += tuple(late)
    marks = {n: _lost(now[n], r.text) for n, r in {**why, **later}.items() if r.final}
    marks |= {t.name: _asked(now[t.name], Stage.ASKED) for t in begin}
    marks |= {t.name: _asked(now[t.name], now[t.name].stage if now[t.name].stage.begun else Stage.ASKED) for t in exchange}
    reasons = Counter(reason.text for reason in (*why.values(), *later.values()) if not reason.final).most_common(1)
    asks |= {t.name: t.target for t in exchange}
    return Turn(marks, begin=begin, exchange=exchange, asks=asks, waits=reasons[0][0] if reasons else "")


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
        # Ours, or the same by another tool: completion is all that counts.
        if there.target == task.target or (task.adding and there.target == task.both):
            return replace(mark, stage=Stage.MOVING)
        if mark.stage.begun and not task.undo:
            return _lost(mark, f"another tool reassigns it to {list(there.target)}")
        return replace(mark, stage=Stage.WAITING)
    if there.replicas == task.target:
        return _placed(task, mark, there, seen, limits)
    if task.undo == "cancel" and there.replicas == task.source:  # it was complete before it could be taken back
        return replace(mark, stage=Stage.DONE)
    have = set(there.replicas)
    if there.replicas != task.source and not (mark.touched and have in (set(task.source), set(task.target), set(task.both))):
        wanted = f"its replicas are {list(there.replicas)}, not {list(task.source)} as the plan was made for"
        return _lost(mark, f"another tool changed it: {wanted}" if mark.touched else wanted)
    if task.adding and have == set(task.both):
        return _side_by_side(task, mark, there, seen, limits)
    if mark.stage is Stage.MOVING or (mark.stage is Stage.ADDED and not task.undo):
        return _lost(mark, "another tool took its reassignment back")
    if mark.attempts >= limits.attempts:
        return _lost(mark, f"its reassignment was asked for {mark.attempts} times and never started")
    down = [b for b in task.target if b not in there.replicas and not seen.alive(b)]
    if any(_long_down(b, seen, limits) for b in down):
        return _lost(mark, f"its target, broker {_list(down)}, {_absence(down, seen)}")
    return replace(mark, stage=Stage.WAITING)


def _side_by_side(task: Task, mark: Mark, there: SeenPartition, seen: Observed, limits: Limits) -> Mark:
    down = [b for b in task.target if b not in there.isr and _long_down(b, seen, limits)]
    if down and task.undo:
        return _lost(mark, f"its target, broker {_list(down)}, {_absence(down, seen)}, so it keeps the replicas that it has")
    if mark.stage is not Stage.ADDED:
        return replace(mark, stage=Stage.ADDED, attempts=0)
    if mark.attempts >= limits.attempts:
        return _lost(mark, f"its new replicas are in place; that its old ones go was asked for {mark.attempts} times and never happened")
    return mark


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
    there_and_added = (task.source, (*task.target, *task.removing))
    return bool(task.undo) and there is not None and there.reassigning and there.target in there_and_added


def _hopeless(task: Task, stage: Stage, seen: Observed, limits: Limits) -> str:
    """Why a copy in progress cannot be completed, or old replicas must not go; empty where they can."""
    there = seen.partitions.get(task.name)
    if there is None or stage not in (Stage.MOVING, Stage.ADDED) or (stage is Stage.ADDED and task.undo):
        return ""
    new = there.adding if stage is Stage.MOVING else [b for b in task.adding if b not in there.isr]
    down = [b for b in new if _long_down(b, seen, limits)]
    if down:
        return f"its target, broker {_list(down)}, {_absence(down, seen)}"
    unsafe = _unsafe(task, seen, limits) if stage is Stage.ADDED else None
    return unsafe.text if unsafe is not None and unsafe.final else ""


def _source_went(task: Task, mark: Mark, seen: Observed, limits: Limits) -> bool:
    """Whether new replicas are being added beside one on a broker that is down: so it is to go at once, and is not waited for."""
    there = seen.partitions[task.name]
    return there.target == task.both != task.target and _repairs(task, seen) and mark.attempts < limits.attempts


def _absence(brokers: Sequence[int], seen: Observed) -> str:
    return "is not registered" if any(b not in seen.brokers for b in brokers) else "is down"


# -- whether anything new may begin ----------------------------------------------------------------------------


def _unhealthy(candidates: Sequence[Task], moving: set[Partition], seen: Observed, before: frozenset[Partition]) -> str:
    """Why nothing new but repairs may begin; empty where it may."""
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


def _in_two(task: Task, seen: Observed, limits: Limits) -> bool:
    """Whether new replicas are added first, and the old ones go later."""
    return limits.exchange > 0 and bool(task.adding and task.removing) and not _repairs(task, seen)


# -- which of the waiting begin --------------------------------------------------------------------------------


def _chosen(
    waiting: Sequence[Task], room: Room, seen: Observed, limits: Limits, gaps: int, *, more_room: bool
) -> tuple[tuple[Task, ...], dict[Partition, Reason]]:
    """Those that begin now, in order, and why each of the others does not; `more_room` says that disks may have more room soon."""
    wanted: dict[int, float] = defaultdict(float)
    for task in waiting:
        for broker in missing_of(task, seen):
            wanted[broker] += task.size
    crowded = {b for b, size in wanted.items() if size > room.free(b)}

    def order(task: Task) -> tuple[object, ...]:
        drains = bool(crowded.intersection(task.removing)) and not crowded.intersection(task.adding)
        return (not _repairs(task, seen), not drains, -task.value, task.name)

    chosen: list[Task] = []
    why: dict[Partition, Reason] = {}
    for task in sorted(waiting, key=order):
        if room.full:  # the rest is looked at when a place is free
            why[task.name] = room.full
            break
        reason = _unsafe(task, seen, limits) or room.refuses(task)
        gap = task.gap and not _in_two(task, seen, limits)
        if reason is None and gap and gaps <= 0:
            reason = _too_many_gaps(limits)
        if reason is None:
            room.take(task)
            gaps -= gap
            chosen.append(task)
        else:
            why[task.name] = reason
    if not chosen and not room.count and not more_room:
        # Nothing is on its way that could make room: those that lack it never get it.
        why = {name: replace(r, final=r.final or r.room) for name, r in why.items()}
    return tuple(chosen), why


def _exchanged(
    added: Sequence[Task], seen: Observed, limits: Limits, gaps: int, going: int
) -> tuple[tuple[Task, ...], dict[Partition, Reason]]:
    """Those of which old replicas go now, `going` at most, and why those before them do not."""
    chosen: list[Task] = []
    later: dict[Partition, Reason] = {}
    for task in sorted(added, key=lambda t: (not _repairs(t, seen), -t.value, t.name)):
        if len(chosen) >= going:
            later[task.name] = Reason(f"waits for the next interval: old replicas of {max(limits.exchange, 1)} partitions may go in one")
            break
        reason = _unsafe(task, seen, limits)
        if reason is None and task.gap and gaps <= 0:
            reason = _too_many_gaps(limits)
        if reason is None:
            gaps -= task.gap
            chosen.append(task)
        else:
            later[task.name] = reason
    return tuple(chosen), later


def _too_many_gaps(limits: Limits) -> Reason:
    return Reason(f"waits for the next interval: {limits.elections} partitions may be without a leader for a moment in one")


def _unsafe(task: Task, seen: Observed, limits: Limits) -> Reason | None:
    """Why a step would not be safe now, whatever the limits."""
    there, missing = seen.partitions[task.name], missing_of(task, seen)
    if there.reassigning:
        return Reason(f"waits: another tool reassigns {task.name} to {list(there.target)}")
    down = [b for b in missing if not seen.alive(b)]
    if down:
        return Reason(f"waits: broker {_list(down)}, a target, is down")
    if there.leader is None and missing:
        return Reason(f"waits: {task.name} has no leader to copy from")
    asked = seen.min_isr.get(task.name.topic, 1)
    if len(task.target) < min(asked, len(task.source)) and not task.undo:
        left = f"it would have {len(task.target)} replicas" if len(task.target) > 1 else "it would have one replica"
        return Reason(f"{left}, and min.insync.replicas is {asked}: no producer with acks=all could write to it", final=True)
    kept = sum(b in there.isr for b in task.target)
    before = sum(b in there.isr for b in task.source) if set(there.replicas) == set(task.both) else len(there.isr)
    if len(missing) + kept < min(before, len(task.target)):
        return Reason(f"waits: {task.name} would have fewer replicas in sync")
    fewer = _racks(task.target, seen) < min(_racks(task.source, seen), len(task.target))
    if limits.racks and fewer and not task.undo and not _repairs(task, seen):
        return Reason(f"its replicas would stand in fewer racks: {_racks(task.target, seen)}, not {_racks(task.source, seen)}", final=True)
    return None


def _racks(replicas: Iterable[int], seen: Observed) -> int:
    """Distinct racks; a broker without one is a rack of its own."""
    return len({(seen.brokers[b].rack or b) if b in seen.brokers else b for b in replicas})


def _names(names: Sequence[Partition]) -> str:
    """``orders-1, orders-2 and 5 more are``."""
    shown = ", ".join(str(n) for n in sorted(names)[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{shown}{more} {'is' if len(names) == 1 else 'are'}"


def _list(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers))
