"""One execution, turn by turn: look, plan the next safe steps, write them down, take them.

Used by the command `execute` and its companions, by the service and by the demo, each with its own port and ledger. It sleeps never and
starts no thread: who calls `turn` decides how often. A step is taken only after what it is stands in the ledger; a ledger that another
instance has claimed refuses that, so a deposed instance takes no step. Kafka's reassignment call carries no epoch: a step that was
written down just before can still reach the controller, once, and it is one of the same plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace

from cluster_model.errors import ExternalError
from cluster_model.quantities import format_size
from metrics_reporter.reporter import Clock
from trimtab.execution.checks import admit, listed, unfinished
from trimtab.execution.documents import Header, Settings, State, header_of, rate_of, task_key, throttles_of
from trimtab.execution.ledger import TASK, THROTTLE, WISH, Ledger
from trimtab.execution.order import Order
from trimtab.execution.pacing import AUTO, Meter, first, taken_in, then
from trimtab.execution.port import Answers, ClusterPort, Resource
from trimtab.execution.progress import Standing
from trimtab.execution.recorded import Recorded, id_of
from trimtab.execution.state import Mark, Observed, Partition, Stage, Task
from trimtab.execution.throttle import Setting, seconds_at
from trimtab.execution.throttling import missing, needed, restore, stand
from trimtab.execution.transition import Turn, next_steps, went
from trimtab.execution.view import View
from trimtab.execution.windows import closed

log = logging.getLogger(__name__)

BEAT_MS = 5_000  # the shared record says so often that this instance is at work
SILENT_MS = 30_000  # an instance that was not heard for so long is taken for dead
CLOSER = 3  # times that a turn looks closer at what it is about to do
LOOKS = 10  # in a row, until what does not fit the last step is believed: brokers that are behind tell of the time before
THROTTLE_CHECK_MS = 15_000
FREED_MS = 120_000  # so long brokers may take to delete replicas that went: Kafka's file.delete.delay.ms is a minute
GONE_MS = 120_000  # a broker that is down for so long does not keep an execution from ending


class Execution(Recorded):
    """See the module. Call `begin` or `adopt`, then `turn` until it says that it is over.

    Parameters
    ----------
    instance
        How this process is called in the shared record.
    view
        Looks through `port`; by default as much at a time as suits a real cluster.
    """

    def __init__(self, port: ClusterPort, ledger: Ledger, clock: Clock, *, instance: str, view: View | None = None) -> None:
        super().__init__(ledger, clock, instance)
        self._port, self._view = port, View(port, clock) if view is None else view
        self._odd_looks: dict[Partition, int] = {}
        self._elected: list[tuple[int, int]] = []  # when, and how many
        self._freed_ms: int | None = None  # replicas went
        self._meter = Meter()

    @property
    def port(self) -> ClusterPort:
        return self._port

    # -- start -------------------------------------------------------------------------------------------

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
        if order.shared:  # nothing is copied, so there is nothing to throttle
            settings = replace(settings, throttle=None)
        self._tasks = {t.name: replace(t, size=sizes.get(t.name, 0.0)) for t in order.tasks}
        self._marks = {name: Mark() for name in self._tasks}
        documents = self._ledger.read()
        before = header_of(documents)
        if before is not None and before.state == "running":
            raise ExternalError(unfinished(before, working=self._clock.wall_ms() - before.beat_ms < SILENT_MS))
        now = self._clock.wall_ms()
        self._ledger.claim()
        again = header_of(self._ledger.read())
        if again is not None and again.state == "running":  # it was started between that and the claim, which ended it
            raise ExternalError(unfinished(again, working=False))
        lagging = tuple(sorted(name for name, p in seen.partitions.items() if p.lagging))
        self.header = Header(
            order.plan_id, order.cluster_id, replace(settings, limits=limits), self._instance, now, lagging_before=lagging,
            revision=0 if before is None else before.revision, heard=id_of(self._ledger.told().get(WISH)),
            pace=first(order.tasks, order.headroom) if settings.throttle == AUTO else None,
            batch=min((t.batch for t in order.tasks), default=0), batch_pause_ms=round(1000 * order.batch_pause),
        )  # fmt: skip
        planned = seconds_at(list(self._tasks.values()), rate_of(self.header))
        self.header = replace(self.header, bytes_planned=order.bytes_planned, seconds_planned=planned)
        self._removed = {k: None for k in documents if k.startswith(TASK) and k not in {task_key(n) for n in self._tasks}}
        self._throttles = throttles_of(documents)  # what an earlier execution could not remove
        self._written_throttles = {k for k in documents if k.startswith(THROTTLE)}
        self._unwritten = set(self._tasks)
        self._write()
        return self._stand(seen)

    # -- turns -----------------------------------------------------------------------------------------------

    def turn(self, held: str = "") -> Standing:
        """Look, and take the next safe steps.

        Parameters
        ----------
        held
            Why no step of the plan may start now, where the caller knows a reason.

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
        if header.direction == "forward":  # what takes back waits for people alone
            held = closed(header.settings.windows, now) or held
        else:
            held = ""
        batch, between = self._batch_open(header, now)
        seen, turn, unsettled = self._next(header, seen, f"paused by {paused}" if paused else held or unthrottled, batch)
        marks, tasks = dict(self._marks), dict(self._tasks)
        if went(self._tasks.values(), turn.marks):
            self._freed_ms = now
        for name, mark in turn.marks.items():
            self._mark(name, mark)
            if mark.stage.final and mark.stage is not Stage.DONE:
                log.info("%s: %s%s", name, mark.stage, f", {mark.reason}" if mark.reason else "")
        for task in turn.turned:
            self._tasks[task.name] = task
            self._unwritten.add(task.name)
        begun, header = header.batch, self._in_batch(header, now)
        behind = f"looks again: {listed(unsettled)} may be told of by a broker that is behind" if unsettled else ""
        self._waits = turn.waits or between or behind
        steps = bool(turn.begin or turn.elect or turn.take_back)
        if steps or self._unwritten or header.batch != begun or now - header.beat_ms >= BEAT_MS:
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

    def _batch_open(self, header: Header, now: int) -> tuple[int | None, str]:
        """The last batch of which steps may start now, and what the next one waits for."""
        if not header.batch:
            return None, ""
        if now >= header.batch_from_ms:
            return header.batch, ""
        return header.batch - 1, f"waits: batch {header.batch} starts {header.batch_pause_ms / 1000:g} s after the last one was in place"

    def _in_batch(self, header: Header, now: int) -> Header:
        """The header with the next batch, where all of the last one is in place, or given up."""
        left = [t.batch for n, t in self._tasks.items() if not t.undo and not self._marks[n].stage.final]
        if not header.batch or min(left, default=0) <= header.batch:
            return header
        self.header = replace(header, batch=min(left), batch_from_ms=now + header.batch_pause_ms)
        return self.header

    def _next(self, header: Header, seen: Observed, held: str, batch: int | None) -> tuple[Observed, Turn, list[Partition]]:
        """The next steps by partitions that were described in this turn, and those that this look is not enough for."""
        for closer in range(CLOSER + 1):
            unsettled = self._unsettled(seen, count=closer == 0)
            turn = next_steps(
                [t for t in self._tasks.values() if t.name not in unsettled], self._marks, seen, header.settings.limits,
                lagging_before=frozenset(header.lagging_before),
                held=held if closer < CLOSER else "looks again: the next partition to change is not as it was",
                elected=sum(n for _, n in self._elected),
                freeing=self._freed_ms is not None and self._clock.wall_ms() - self._freed_ms < FREED_MS, batch=batch,
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
            self._elected.append((now, sum(t.gap for t in turn.begin)))
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
        """Have throttles stand on exactly the replicas that move; why no step may start before they do."""
        rate, now = rate_of(header), self._clock.wall_ms()
        if rate is None or (self._throttled_ms is not None and now - self._throttled_ms < THROTTLE_CHECK_MS):
            return ""
        found, wanted = needed(self._port, [t for t in self._tasks.values() if t.adding], rate, self._throttles)
        off = missing(wanted, found)
        if off or wanted != self._throttles:  # also where all of it is written down: an instance that was deposed sets nothing
            self._throttles = wanted
            self._write()
        refused = stand(self._port, off)
        if not refused:
            self._throttled_ms = now
        return refused

    def _unthrottle(self, seen: Observed) -> list[Setting]:
        """Bring back the values of before, and see that they stand; the settings of which that cannot be seen yet."""
        if not self._throttles:
            return []
        self._write()  # an instance that was deposed takes nothing off
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
            raise ExternalError("an execution is not over; it removes its throttles itself, after `trimtab resume` or `trimtab cancel`")
        if self._throttles:
            left = restore(self._port, self._throttles, self._view.look({}, (), ()))
            if left != self._throttles:
                self._throttles = left
                self._write()
        return self._throttles

    # -- writing ---------------------------------------------------------------------------------------------

    def _end(self) -> None:
        header = self._running()
        stages = [m.stage for m in self._marks.values()]
        if header.direction == "forward":
            state: State = "failed" if Stage.DONE not in stages else "done"
        else:
            state = "cancelled" if header.direction == "cancel" else "rolled back"
        self._waits = ""
        self.header = replace(header, state=state, ended_ms=self._clock.wall_ms(), bytes_made=self._made())
        self._write()

    def _made(self) -> float | None:
        """Bytes of the replicas that were made, as they are now; None where brokers do not tell."""
        done = [t for n, t in self._tasks.items() if t.adding and not t.undo and self._marks[n].stage is Stage.DONE]
        try:
            sizes = self._port.sizes([t.name for t in done]) if done else {}
        except ExternalError:
            return None
        return sum(sizes.get(t.name, 0.0) * len(t.adding) for t in done)

    # -- how it stands ---------------------------------------------------------------------------------------

    def looked(self) -> Standing:
        """As of a new look, without a step or a claim."""
        return self._stand(self._looked())

