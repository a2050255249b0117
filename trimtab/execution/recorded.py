"""An execution as it is written down, and what people change of it: pause, resume, cancel, roll back. No step is taken here.

The engine is made of it (`trimtab.execution.engine`), and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from cluster_model.errors import ExternalError
from metrics_reporter.reporter import Clock
from trimtab.execution.documents import (
    Header,
    beaten,
    header_document,
    header_of,
    task_document,
    task_key,
    tasks_of,
    throttle_documents,
    throttles_of,
)
from trimtab.execution.ledger import HEADER, THROTTLE, WISH, Document, Ledger
from trimtab.execution.people import Pause, pause_of
from trimtab.execution.progress import Paces, Standing, standing
from trimtab.execution.state import Mark, Observed, Partition, Stage, Task
from trimtab.execution.throttle import Setting

log = logging.getLogger(__name__)

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


class Recorded:
    """See the module; parameters as of the engine."""

    def __init__(self, ledger: Ledger, clock: Clock, instance: str) -> None:
        self._ledger, self._clock, self._instance = ledger, clock, instance
        self.header: Header | None = None
        self._tasks: dict[Partition, Task] = {}
        self._marks: dict[Partition, Mark] = {}
        self._throttles: list[Setting] = []
        self._unwritten: set[Partition] = set()
        self._removed: dict[str, Document | None] = {}
        self._written_throttles: set[str] = set()  # keys of documents
        self._throttled_ms: int | None = None  # throttles were seen to be as they should
        self._paces = Paces()
        self._copied: Mapping[Partition, float] = {}
        self._waits = ""
        self._pause: Pause | None = None  # of the cluster

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

    def cancel(self, who: str, how: How = "take back", reason: str = "") -> None:
        """Start nothing more. What is in progress is taken back, or finished where `how` says so; what is done stays.

        Raises
        ------
        ExternalError
            Nothing is in progress, or it is being rolled back.
        """
        header, why = self._running(), f"cancelled by {who}{f': {reason}' if reason else ''}"
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

    def _hear(self) -> None:
        """Do what people asked for since the last turn."""
        told = self._ledger.told()
        found, header = told.get(WISH), self.header
        self._pause = pause_of(told)
        if found is None or header is None or id_of(found) == header.heard:
            return
        wish = Wish(**{k: found[k] for k in ("verb", "who", "id", "how", "why")})
        self.header = replace(header, heard=wish.id)
        self.grant(wish)

    def grant(self, wish: Wish) -> None:
        """Do what people asked for, as far as it still can be."""
        header = self.header
        assert header is not None
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
            self.cancel(wish.who, wish.how, wish.why)

    def _running(self) -> Header:
        if self.header is None or self.header.state != "running":
            raise ExternalError("no execution is in progress on this cluster")
        return self.header

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

    # -- how it stands ---------------------------------------------------------------------------------------

    def standing(self) -> Standing | None:
        """As of the last look; None before `begin`, `adopt` or `read` found an execution."""
        if self.header is None:
            return None
        waits = self._waits or self.header.note
        return standing(self.header, self._tasks, self._marks, self._copied, self._paces, waits, self._throttles)

    def _stand(self, seen: Observed) -> Standing:
        assert self.header is not None
        found = standing(self.header, self._tasks, self._marks, seen.copied, self._paces, self._waits, self._throttles)
        self._paces.note(self._clock.wall_ms(), found)
        return found


def id_of(wish: Document | None) -> str:
    return "" if wish is None else str(wish.get("id", ""))
