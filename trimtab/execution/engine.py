"""One execution, turn by turn: look, plan the next safe steps, write them down, take them.

Used by the command `execute` and its companions, by the service and by the demo, each with its own port and ledger. It sleeps never and
starts no thread: who calls `turn` decides how often. A step is taken only after what it is stands in the ledger; a ledger that another
instance has claimed refuses that, so a deposed instance takes no step. Kafka's reassignment call carries no epoch: a step that was
written down just before can still reach the controller, once, and it is one of the same plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cluster_model.errors import ExternalError
from cluster_model.quantities import format_size
from metrics_reporter.reporter import Clock
from trimtab.execution.checks import admit, listed, unfinished
from trimtab.execution.documents import (
    Header,
    Settings,
    State,
    beaten,
    header_document,
    header_of,
    rate_of,
    task_document,
    task_key,
    tasks_of,
    throttle_documents,
    throttles_of,
)
from trimtab.execution.ledger import HEADER, TASK, THROTTLE, WISH, Document, Ledger
from trimtab.execution.order import Order
from trimtab.execution.pacing import AUTO, Meter, first, taken_in, then
from trimtab.execution.people import Pause, pause_of
from trimtab.execution.port import Answers, ClusterPort, Resource
from trimtab.execution.progress import Pace, Standing, standing
from trimtab.execution.state import Mark, Observed, Partition, Stage, Task
from trimtab.execution.throttle import Setting
from trimtab.execution.throttling import needed, restore, stand
from trimtab.execution.transition import Turn, next_steps
from trimtab.execution.view import View

log = logging.getLogger(__name__)

BEAT_MS = 5_000  # the shared record says so often that this instance is at work
SILENT_MS = 30_000  # an instance that was not heard for so long is taken for dead
CLOSER = 3  # times that a turn looks closer at what it is about to do
LOOKS = 10  # in a row, until what does not fit the last step is believed: brokers that are behind tell of the time before
THROTTLE_CHECK_MS = 15_000
GONE_MS = 120_000  # a broker that is down for so long does not keep an execution from ending
How = Literal["take back", "finish"]
Verb = Literal["pause", "resume", "cancel", "rollback"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What people may ask of an execution that another process carries out."""

    verb: Verb
    who: str
    id: str
    how: How = "take back"
    why: str = ""

    def document(self) -> Document:
        return {"verb": self.verb, "who": self.who, "id": self.id, "how": self.how, "why": self.why}


class Execution:
    """See the module. Call `begin` or `adopt`, then `turn` until it says that it is over.

    Parameters
    ----------
    instance
        How this process is called in the shared record.
    view
        Looks through `port`; by default as much at a time as suits a real cluster.
    """

    def __init__(self, port: ClusterPort, ledger: Ledger, clock: Clock, *, instance: str, view: View | None = None) -> None:
        self._port, self._ledger, self._clock, self._instance = port, ledger, clock, instance
        self._view = View(port, clock) if view is None else view
        self.header: Header | None = None
        self._tasks: dict[Partition, Task] = {}
        self._marks: dict[Partition, Mark] = {}
        self._throttles: list[Setting] = []
        self._unwritten: set[Partition] = set()
        self._removed: dict[str, Document | None] = {}
        self._written_throttles: set[str] = set()  # keys of documents
        self._odd_looks: dict[Partition, int] = {}
        self._elected: list[tuple[int, int]] = []  # when, and how many
        self._throttled_ms: int | None = None  # throttles were seen to be as they should
        self._pace = Pace()
        self._copied: Mapping[Partition, float] = {}
        self._waits = ""
        self._pause: Pause | None = None  # of the cluster
        self._meter = Meter()

    # -- beginning -------------------------------------------------------------------------------------------

    def begin(self, order: Order, settings: Settings) -> Standing:
        """Take a plan; nothing is changed on the cluster before the first `turn`.

        Raises
        ------
        InputError
            The plan is for another cluster, or, with ``strict``, a partition is not as it was when the plan was made.
        ExternalError
            Another execution is in progress or unfinished, or other tools reassign partitions and ``foreign`` is refuse.
        """
        seen = self._view.look({t.name: t for t in order.tasks}, (), {b for t in order.tasks for b in (*t.source, *t.target)})
        admit(order, seen, settings)
        sizes = {} if order.shared else self._port.sizes([t.name for t in order.tasks if t.adding])
        limits = replace(settings.limits, racks=settings.limits.racks and order.racks)
        self._tasks = {t.name: replace(t, size=sizes.get(t.name, 0.0)) for t in order.tasks}
        self._marks = {name: Mark() for name in self._tasks}
        documents = self._ledger.read()
        before = header_of(documents)
        if before is not None and before.state == "running":
            raise ExternalError(unfinished(before, working=self._clock.wall_ms() - before.beat_ms < SILENT_MS))
        now = self._clock.wall_ms()
        self._ledger.claim()
        again = header_of(self._ledger.read())
        if again is not None and again.state == "running":  # it was begun between that and the claim, which ended it
            raise ExternalError(unfinished(again, working=False))
        lagging = tuple(sorted(name for name, p in seen.partitions.items() if p.lagging))
        self.header = Header(
            order.plan_id, order.cluster_id, replace(settings, limits=limits), self._instance, now, lagging_before=lagging,
            revision=0 if before is None else before.revision, heard=_id(self._ledger.told().get(WISH)),
            pace=first(order.tasks, order.headroom) if settings.throttle == AUTO else None,
        )  # fmt: skip
        self._removed = {k: None for k in documents if k.startswith(TASK) and k not in {task_key(n) for n in self._tasks}}
        self._throttles = throttles_of(documents)  # what an earlier execution could not remove
        self._written_throttles = {k for k in documents if k.startswith(THROTTLE)}
        self._unwritten = set(self._tasks)
        self._write()
        return self._stand(seen)

    def adopt(self) -> bool:
        """Take over the execution that the ledger tells of, from an instance that ended, was killed, or is deposed by this.

        Returns
        -------
        bool
            Whether there is one to go on with; one that has ended is read, and can still be rolled back.
        """
        self._ledger.claim()
        self.read()
        if self.header is None:
            return False
        self.header = replace(self.header, instance=self._instance)
        self._write()
        return self.header.state == "running"

    def read(self) -> Header | None:
        """What the ledger tells, without a claim: enough for `standing`."""
        documents = self._ledger.read()
        self.header = header_of(documents)
        self._tasks, self._marks = tasks_of(documents)
        self._throttles = throttles_of(documents)
        self._written_throttles = {k for k in documents if k.startswith(THROTTLE)}
        return self.header

    @property
    def running(self) -> bool:
        return self.header is not None and self.header.state == "running"

    @property
    def plan_id(self) -> str:
        """Of the execution at hand; empty where there is none."""
        return "" if self.header is None else self.header.plan_id

    @property
    def tasks(self) -> Mapping[Partition, Task]:
        return self._tasks

    @property
    def marks(self) -> Mapping[Partition, Mark]:
        return self._marks

    @property
    def throttles(self) -> Sequence[Setting]:
        """What this execution has set and not seen removed."""
        return self._throttles

    # -- what people ask for ---------------------------------------------------------------------------------

    def pause(self, who: str) -> None:
        """No further step; what is in progress goes on."""
        self.header = replace(self._running(), paused=who)
        self._write()

    def resume(self) -> None:
        self.header = replace(self._running(), paused="")
        self._write()

    def cancel(self, who: str, how: How = "take back") -> None:
        """Begin nothing more. What is in progress is taken back, or finished where `how` says so; what is done stays.

        Raises
        ------
        ExternalError
            Nothing is in progress, or it is being rolled back.
        """
        header, why = self._running(), f"cancelled by {who}"
        if header.direction == "rollback":
            raise ExternalError("it is being rolled back, which ends with everything as before; `trimtab pause` stops that for a while")
        for name, mark in self._marks.items():
            if mark.stage.begun and how == "take back":
                self._turn_back(self._tasks[name].back("cancel", why))
            elif mark.stage is Stage.WAITING and not self._tasks[name].undo:
                self._mark(name, replace(mark, stage=Stage.SKIPPED, reason=why))
            elif mark.stage is Stage.PLACED and how == "take back" and not self._tasks[name].undo:
                self._mark(name, replace(mark, stage=Stage.FAILED, reason=f"{why} before its leader was elected"))
        self.header = replace(header, direction="cancel", why=why, paused="")
        self._write()

    def rollback(self, who: str) -> int:
        """Bring back what this execution changed, also after it ended; how many partitions that are."""
        header, why = self.header, f"rolled back by {who}"
        if header is None:
            raise ExternalError("no execution is known on this cluster, so there is nothing to roll back")
        count = 0
        for name, mark in self._marks.items():
            if mark.touched and mark.stage is not Stage.BACK:
                self._turn_back(self._tasks[name].back("rollback", why))
                count += 1
            elif not mark.stage.final:
                self._mark(name, replace(mark, stage=Stage.SKIPPED, reason=why))
        self._throttled_ms = None
        self.header = replace(header, direction="rollback", why=why, state="running", ended_ms=None, paused="")
        self._write()
        return count

    def _turn_back(self, task: Task) -> None:
        self._tasks[task.name] = task
        self._mark(task.name, Mark(touched=True))

    def _running(self) -> Header:
        if self.header is None or self.header.state != "running":
            raise ExternalError("no execution is in progress on this cluster")
        return self.header

    # -- turns -----------------------------------------------------------------------------------------------

    def turn(self, held: str = "") -> Standing:
        """Look, and take the next safe steps.

        Parameters
        ----------
        held
            Why no step may begin now, where the caller knows a reason.

        Raises
        ------
        Fenced
            Another instance has taken over; this one has nothing more to do.
        ExternalError
            The cluster or the ledger does not answer; the next turn tries again.
        """
        self._hear()
        header = self._running()
        seen = self._looked()
        now = self._clock.wall_ms()
        copies = any(t.adding and self._left(t) for t in self._tasks.values())
        if copies and header.pace is not None and self._meter.due(now):
            header = self._paced(header, seen, now)
        unthrottled = self._throttle(header) if copies else ""
        self._elected = [(at, n) for at, n in self._elected if now - at < header.settings.limits.election_ms]
        paused = header.paused or (self._pause.who if self._pause is not None else "")
        seen, turn, unsettled = self._next(header, seen, f"paused by {paused}" if paused else held or unthrottled)
        marks, tasks = dict(self._marks), dict(self._tasks)
        for name, mark in turn.marks.items():
            self._mark(name, mark)
            if mark.stage.final and mark.stage is not Stage.DONE:
                log.info("%s: %s%s", name, mark.stage, f", {mark.reason}" if mark.reason else "")
        for task in turn.turned:
            self._tasks[task.name] = task
            self._unwritten.add(task.name)
        self._waits = turn.waits or (f"looks again: {listed(unsettled)} may be told of by a broker that is behind" if unsettled else "")
        steps = bool(turn.begin or turn.elect or turn.take_back)
        if steps or self._unwritten or now - header.beat_ms >= BEAT_MS:
            try:
                self._write()
            except ExternalError:
                self._marks, self._tasks = marks, tasks  # no step was taken
                raise
        if steps:
            self._take(turn, now)
        if not any(t.adding and self._left(t) for t in self._tasks.values()):
            left = self._unthrottle(seen)
            if not left and all(m.stage.final for m in self._marks.values()) and self._is_final(header):
                self._end()
        return self._stand(seen)

    def _next(self, header: Header, seen: Observed, held: str) -> tuple[Observed, Turn, list[Partition]]:
        """The next steps by partitions that were described in this turn, and those that this look is not enough for."""
        for closer in range(CLOSER + 1):
            unsettled = self._unsettled(seen, count=closer == 0)
            turn = next_steps(
                [t for t in self._tasks.values() if t.name not in unsettled], self._marks, seen, header.settings.limits,
                lagging_before=frozenset(header.lagging_before),
                held=held if closer < CLOSER else "looks again: what was to begin is not as it was",
                elected=sum(n for _, n in self._elected),
            )  # fmt: skip
            steps = (*turn.begin, *turn.elect, *turn.take_back, *turn.turned)
            again = self._view.also(self._tasks, {*turn.marks, *(t.name for t in steps)})
            if again is seen:
                break
            seen = again
        return seen, turn, unsettled

    def _is_final(self, header: Header) -> bool:
        """Whether everything is still as it was when it became final, by a look at all of it; what is not is taken up again."""
        seen = self._view.also(self._tasks, self._tasks)
        found = next_steps(list(self._tasks.values()), self._marks, seen, header.settings.limits, held="looks once more").marks
        for name, mark in found.items():
            self._mark(name, mark)
        return not found

    def _left(self, task: Task) -> bool:
        stage = self._marks[task.name].stage
        return stage is Stage.WAITING or stage.begun

    def _take(self, turn: Turn, now: int) -> None:
        """Ask for what was written down; what is refused for good is failed, the rest is looked at in the next turn."""
        if turn.take_back:
            for name, refusal in self._port.reassign({t.name: None for t in turn.take_back}).items():
                if refusal is not None and refusal.code != "NO_REASSIGNMENT_IN_PROGRESS":
                    log.warning("%s: its reassignment could not be cancelled: %s", name, refusal)
        if turn.begin:
            for name, refusal in self._asked(turn.begin, lambda: self._port.reassign({t.name: t.target for t in turn.begin})).items():
                if refusal is not None and refusal.retriable:
                    self._mark(name, replace(self._marks[name], stage=Stage.WAITING, attempts=self._marks[name].attempts - 1))
                    self._waits = f"waits: {name} was refused for now, {refusal}"
                elif refusal is not None:
                    self._mark(name, replace(self._marks[name], stage=Stage.FAILED, reason=str(refusal)))
                    log.warning("%s: %s", name, refusal)
        if turn.elect:
            self._elected.append((now, len(turn.elect)))
            for name, refusal in self._asked(turn.elect, lambda: self._port.elect([t.name for t in turn.elect])).items():
                if refusal is not None and not refusal.retriable:
                    self._mark(name, replace(self._marks[name], stage=Stage.FAILED, reason=f"its leader was not elected: {refusal}"))

    def _asked(self, tasks: Sequence[Task], call: Callable[[], Answers]) -> Answers:
        """The answers to a step. One that nothing answers is not counted as an attempt: the next look shows whether it arrived."""
        try:
            return call()
        except ExternalError:
            for task in tasks:
                mark = self._marks[task.name]
                self._mark(task.name, replace(mark, attempts=mark.attempts - 1))
            raise

    def _hear(self) -> None:
        """Do what people asked for since the last turn."""
        told = self._ledger.told()
        found, header = told.get(WISH), self.header
        self._pause = pause_of(told)
        if found is None or header is None or _id(found) == header.heard:
            return
        wish = Wish(**{k: found[k] for k in ("verb", "who", "id", "how", "why")})
        self.header = replace(header, heard=wish.id)
        log.info("%s asks to %s", wish.who, wish.verb)
        if wish.verb == "rollback":
            self.rollback(wish.who)
        elif header.state != "running":
            self._write()
        elif wish.verb == "pause":
            self.pause(wish.who)
        elif wish.verb == "resume":
            self.resume()
        elif header.direction == "rollback":
            log.warning("it is being rolled back, so there is nothing to cancel")
            self._write()
        else:
            self.cancel(wish.who, wish.how)

    # -- looking ---------------------------------------------------------------------------------------------

    def _looked(self) -> Observed:
        near = [n for n, m in self._marks.items() if not m.stage.final and (m.touched or n in self._odd_looks)]
        seen = self._view.look(self._tasks, near, {b for t in self._tasks.values() for b in (*t.source, *t.target)})
        self._copied = seen.copied
        return seen

    def _unsettled(self, seen: Observed, *, count: bool) -> list[Partition]:
        """Partitions that this look is not enough for: a broker that is behind may not know of them, or of their new replicas, yet."""
        odd = [n for n, m in self._marks.items() if not m.stage.final and self._odd(n, m, seen)]
        self._odd_looks = {n: self._odd_looks.get(n, 0) + (1 if count else 0) for n in odd}
        return [n for n in odd if self._odd_looks[n] < LOOKS]

    def _odd(self, name: Partition, mark: Mark, seen: Observed) -> bool:
        """Whether what is seen does not follow from what was done: gone, taken back, or both replica lists without a reassignment."""
        there, task = seen.partitions.get(name), self._tasks[name]
        if there is None:
            return True
        if there.reassigning or there.replicas == task.target or not mark.touched:
            return False
        return mark.stage is Stage.MOVING or set(there.replicas) not in (set(task.source), set(task.target))

    # -- throttles -------------------------------------------------------------------------------------------

    def _paced(self, header: Header, seen: Observed, now: int) -> Header:
        """The header with the rate that a throttle that paces itself has from now on."""
        assert header.pace is not None
        begins = not self._meter.begun
        used = self._meter.read(now, taken_in(self._tasks, self._marks, seen.copied))
        before = frozenset(header.lagging_before)
        behind = [n for n, p in seen.partitions.items() if n not in before and p.lagging]
        pace = header.pace if begins else then(header.pace, behind, used)
        if pace != header.pace:
            log.info("throttle %s/s: %s", format_size(pace.rate), pace.why)
            self._throttled_ms = None
            self.header = header = replace(header, pace=pace)
        return header

    def _throttle(self, header: Header) -> str:
        """Have throttles stand on exactly the replicas that move; why no step may begin before they do."""
        rate, now = rate_of(header), self._clock.wall_ms()
        if rate is None or (self._throttled_ms is not None and now - self._throttled_ms < THROTTLE_CHECK_MS):
            return ""
        found, wanted = needed(self._port, [t for t in self._tasks.values() if t.adding], rate, self._throttles)
        if wanted != self._throttles:
            self._throttles = wanted
            self._write()
        refused = stand(self._port, wanted, found)
        if not refused:
            self._throttled_ms = now
        return refused

    def _unthrottle(self, seen: Observed) -> list[Setting]:
        """Bring back the values of before, and see that they stand; the settings of which that cannot be seen yet."""
        if not self._throttles:
            return []
        left = restore(self._port, self._throttles, seen)
        if left != self._throttles:
            self._throttles = left
            self._write()
        self._throttled_ms = None
        if not left:
            return []
        self._waits = f"waits for {', '.join(sorted({str(s.resource) for s in left}))} to take its throttle off"
        gone = {Resource("broker", str(b)) for b, known in seen.brokers.items() if not known.alive and known.down_ms >= GONE_MS}
        return [s for s in left if s.resource not in gone]

    def clean(self) -> list[Setting]:
        """Take off what an execution that is over could not, as of a broker that was down; what is still left.

        Raises
        ------
        ExternalError
            The execution is not over: it takes them off itself.
        """
        if self.running:
            raise ExternalError("an execution is not over; it takes its throttles off itself, after `trimtab resume` or `trimtab cancel`")
        if self._throttles:
            left = restore(self._port, self._throttles, self._view.look({}, (), ()))
            if left != self._throttles:
                self._throttles = left
                self._write()
        return self._throttles

    # -- writing ---------------------------------------------------------------------------------------------

    def _mark(self, name: Partition, mark: Mark) -> None:
        if self._marks.get(name) != mark:
            self._marks[name] = mark
            self._unwritten.add(name)

    def _write(self) -> None:
        """Everything that changed, and the header."""
        assert self.header is not None
        header = beaten(replace(self.header, note=self._waits), self._clock.wall_ms())
        documents: dict[str, Document | None] = dict(self._removed)
        documents |= {task_key(n): task_document(self._tasks[n], self._marks[n]) for n in self._unwritten}
        kept = throttle_documents(self._throttles)
        documents |= kept
        documents |= {k: None for k in self._written_throttles if k not in kept}
        documents[HEADER] = header_document(header)
        self._ledger.write(documents)
        self.header, self._removed, self._unwritten, self._written_throttles = header, {}, set(), set(kept)

    def _end(self) -> None:
        header = self._running()
        stages = [m.stage for m in self._marks.values()]
        if header.direction == "forward":
            state: State = "failed" if Stage.DONE not in stages else "done"
        else:
            state = "cancelled" if header.direction == "cancel" else "rolled back"
        self._waits = ""
        self.header = replace(header, state=state, ended_ms=self._clock.wall_ms())
        self._write()

    # -- how it stands ---------------------------------------------------------------------------------------

    def standing(self) -> Standing | None:
        """As of the last look; None before `begin`, `adopt` or `read` found an execution."""
        if self.header is None:
            return None
        return standing(self.header, self._tasks, self._marks, self._copied, self._pace, self._waits or self.header.note, self._throttles)

    def looked(self) -> Standing:
        """As of a new look, without a step or a claim."""
        return self._stand(self._looked())

    def _stand(self, seen: Observed) -> Standing:
        assert self.header is not None
        found = standing(self.header, self._tasks, self._marks, seen.copied, self._pace, self._waits, self._throttles)
        self._pace.note(self._clock.wall_ms(), found.bytes_copied)
        return found


def _id(wish: Document | None) -> str:
    return "" if wish is None else str(wish.get("id", ""))
