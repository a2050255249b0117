"""The engine behind the seam of the service and the demo: one plan at a time, on whatever port and ledger it is given."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from cluster_model.errors import ExternalError
from metrics_reporter.reporter import Clock
from trimtab.execution.checks import unfinished
from trimtab.execution.documents import Header, Settings
from trimtab.execution.engine import SILENT_MS, Execution
from trimtab.execution.ledger import WISH, Document, Documents, Ledger
from trimtab.execution.noticed import noticed
from trimtab.execution.order import Order
from trimtab.execution.port import ClusterPort
from trimtab.execution.progress import Standing
from trimtab.execution.recorded import Wish
from trimtab.execution.state import Stage
from trimtab.executor import Failure, Left, Moved, Progress

log = logging.getLogger(__name__)

CANCEL_TURNS = 30  # at most, until what is in progress is taken back
CANCEL_PAUSE = 0.2  # seconds between them


class EngineExecutor:
    """See `trimtab.executor.Executor`.

    Parameters
    ----------
    connect
        Makes the port and the ledger; called when they are needed for the first time.
    instance
        How this process is called in the record of executions.
    pause
        Lets some seconds pass.
    """

    def __init__(
        self,
        connect: Callable[[], tuple[ClusterPort, Ledger]],
        clock: Clock,
        settings: Settings,
        *,
        instance: str,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connect, self._clock, self._settings = connect, clock, settings
        self._instance, self._pause = instance, pause
        self._connected: tuple[ClusterPort, Ledger] | None = None
        self._execution: Execution | None = None
        self._newest: Execution | None = None  # also one that was only read, or let go of
        self._waiting: Order | None = None
        self._plan_id = ""
        self._stood: Standing | None = None

    def close(self) -> None:
        connected, self._connected = self._connected, None
        if connected is not None:
            for part in connected:
                part.close()

    def _new(self) -> Execution:
        return Execution(*self._reached(), self._clock, instance=self._instance)

    def _reached(self) -> tuple[ClusterPort, Ledger]:
        if self._connected is None:
            self._connected = self._connect()
        return self._connected

    def submit(self, order: Order) -> None:
        if self._waiting is not None or (self._execution is not None and self._execution.running):
            raise ValueError(f"plan {self._plan_id} is being carried out; one plan at a time")
        self._waiting, self._plan_id = order, order.plan_id

    def recover(self) -> Left:
        if self._waiting is not None or (self._execution is not None and self._execution.running):
            return Left()
        execution = self._new()
        header = execution.read()
        if header is None:
            return Left()
        self._newest, self._stood = execution, execution.standing()
        if header.state != "running":
            if not execution.throttles:
                return Left()
            if not execution.adopt():
                execution.clean()
                return Left()
            # Another one was started since, and the claim ended it there: so it is carried on here.
            self._execution, self._plan_id = execution, execution.plan_id
            return Left(plan_id=self._plan_id)
        if self._is_at_work_elsewhere(header):
            return Left(busy=unfinished(header, working=True))
        execution.adopt()
        self._execution, self._plan_id = execution, header.plan_id
        return Left(plan_id=header.plan_id)

    def poll(self, held: str = "") -> Progress:
        if self._waiting is not None:
            order, self._waiting = self._waiting, None
            execution = self._new()
            try:
                execution.begin(order, self._settings)
            except ExternalError as error:
                if error.retriable:
                    self._waiting = order
                raise
            self._execution = self._newest = execution
            notice = noticed(order.tasks, execution.port)
            if notice:
                log.warning("%s", notice)
        assert self._execution is not None
        found = self._execution.turn(held) if self._execution.running else self._execution.standing()
        assert found is not None
        self._stood = found
        return _progress(found)

    def standing(self) -> Standing | None:
        return self._stood

    def wish(self, wish: Wish) -> None:
        execution = self._execution
        if execution is not None and execution.running:
            execution.grant(wish)
            return
        found = self._new().read()
        if found is None or found.state != "running":
            raise ExternalError("no execution is in progress on this cluster")
        self._reached()[1].tell(WISH, wish.document())

    def pause(self, who: str) -> None:
        if self._execution is not None and self._execution.running:
            self._execution.pause(who)

    def resume(self) -> None:
        if self._execution is not None and self._execution.running:
            self._execution.resume()

    def cancel(self) -> Progress:
        execution = self._execution
        if execution is None:
            waiting, self._waiting = self._waiting, None
            names = () if waiting is None else waiting.tasks
            return Progress(0, 0, 0, tuple(Failure(t.name.topic, t.name.number, "cancelled") for t in names), 0.0, 0.0)
        header = execution.header
        if header is not None and header.state == "running" and header.direction != "rollback":
            execution.cancel(self._instance)
            self._until_over(execution)
        found = execution.standing()
        assert found is not None
        self._stood = found
        return _progress(found)

    def rollback(self, plan_id: str, who: str) -> int:
        execution = self._execution
        if execution is None:
            execution = self._new()
            header = execution.read()
            if header is not None and self._is_at_work_elsewhere(header):
                raise ExternalError(unfinished(header, working=True))
        if execution.plan_id != plan_id:
            last = f"plan {execution.plan_id} was carried out since" if execution.plan_id else "nothing is known of it on the cluster"
            raise ExternalError(f"plan {plan_id} cannot be rolled back: {last}; plan again from where the cluster is")
        if self._execution is None:
            execution.adopt()
            self._execution, self._plan_id = execution, plan_id
        self._newest = execution
        return execution.rollback(who)

    def _is_at_work_elsewhere(self, header: Header) -> bool:
        silent = self._clock.wall_ms() - header.beat_ms >= SILENT_MS
        return header.state == "running" and header.instance != self._instance and not silent

    def moved(self) -> Moved | None:
        execution = self._newest
        header = None if execution is None else execution.header
        if execution is None or header is None:
            return None
        touched = {name for name, mark in execution.marks.items() if mark.touched}
        names = [n for n, task in execution.tasks.items() if n in touched and set(task.source) != set(task.target)]
        ended = header.ended_ms if header.ended_ms is not None else self._clock.wall_ms()
        return Moved(header.plan_id, ended, tuple(sorted((n.topic, n.number) for n in names)))

    def release(self) -> Progress:
        execution, self._execution, waiting, self._waiting = self._execution, None, self._waiting, None
        found = None if execution is None else execution.standing()
        if found is None:
            names = [] if waiting is None else [t.name for t in waiting.tasks]
        else:
            names = [p.name for p in found.partitions if not p.stage.final]
        let_go = tuple(Failure(n.topic, n.number, "another instance decides now") for n in names)
        if found is None:
            return Progress(0, 0, 0, let_go, 0.0, 0.0)
        before = _progress(found)
        return Progress(0, 0, before.done, (*before.failed, *let_go), before.bytes_copied, before.bytes_total, before.waits)

    def told(self) -> Documents:
        return self._reached()[1].told()

    def tell(self, key: str, document: Document) -> None:
        self._reached()[1].tell(key, document)

    def _until_over(self, execution: Execution) -> None:
        for _ in range(CANCEL_TURNS):
            if execution.turn().over:
                return
            self._pause(CANCEL_PAUSE)


def _progress(found: Standing) -> Progress:
    counts = found.counts
    failed = tuple(
        Failure(p.name.topic, p.name.number, p.reason) for p in found.partitions if p.stage in (Stage.SKIPPED, Stage.FAILED, Stage.BACK)
    )
    moving = counts[Stage.ASKED] + counts[Stage.MOVING] + counts[Stage.PLACED]
    waiting = counts[Stage.WAITING] if not found.over else 0
    if not found.over and not waiting and not moving:
        moving = 1  # throttles are still to be seen removed
    return Progress(waiting, moving, counts[Stage.DONE], failed, found.bytes_copied, found.bytes_total, found.waits)
