"""Executions as documents of a ledger and back: header, tasks with their marks, throttles.

A form is changed by adding keys with a default; what a newer release wrote and this one cannot read is refused with its version.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from cluster_model.errors import InputError, Problem
from trimtab.execution.ledger import HEADER, TASK, THROTTLE, Document, Documents
from trimtab.execution.pacing import AUTO, Pace
from trimtab.execution.port import Resource
from trimtab.execution.state import Limits, Mark, Partition, Stage, Task
from trimtab.execution.throttle import Setting

VERSION = 1
State = Literal["running", "done", "failed", "cancelled", "rolled back"]
Direction = Literal["forward", "cancel", "rollback"]
Foreign = Literal["wait", "refuse"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How to carry a plan out.

    Attributes
    ----------
    throttle
        Bytes/s into, and out of, each broker for what is copied; None is no throttle, `AUTO` one that paces itself.
    strict
        Refuse the whole plan where a partition is not as it was when the plan was made.
    foreign
        What to do about reassignments of other tools that are in progress at the start.
    windows
        When steps may start, as `trimtab.execution.windows` has them; always where there are none.
    """

    throttle: int | None = None
    strict: bool = False
    foreign: Foreign = "wait"
    limits: Limits = field(default_factory=Limits)
    windows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Header:
    """How an execution as a whole stands. Times are milliseconds of Unix time by the clock of the instance that wrote them."""

    plan_id: str
    cluster_id: str
    settings: Settings
    instance: str
    started_ms: int
    revision: int = 0
    beat_ms: int = 0
    ended_ms: int | None = None
    state: State = "running"
    direction: Direction = "forward"
    why: str = ""
    paused: str = ""
    heard: str = ""  # the wish that was heard last
    note: str = ""
    pace: Pace | None = None  # of a throttle that paces itself
    bytes_planned: float | None = None  # that the plan said it would copy
    bytes_made: float | None = None  # of replicas that were made, when it ended
    seconds_planned: float | None = None  # at the throttle of the start, at least
    lagging_before: tuple[Partition, ...] = field(default=())
    batch: int = 0  # the last that was started, or is as soon as its time has come; 0: the plan has none
    batch_pause_ms: int = 0  # from the end of one to the start of the next
    batch_from_ms: int = 0  # it starts not before


def header_document(header: Header) -> Document:
    document = asdict(header)
    document["lagging_before"] = [[n.topic, n.number] for n in header.lagging_before]
    return {"version": VERSION, **document}


def header_of(documents: Mapping[str, Document]) -> Header | None:
    """The header, or None where there never was an execution.

    Raises
    ------
    InputError
        It is of another release.
    """
    found = documents.get(HEADER)
    if found is None or "plan_id" not in found:
        return None
    if found.get("version") != VERSION:
        message = f"expected version {VERSION}, found {found.get('version')!r}; use the release that started this execution"
        raise InputError("record of executions", [Problem("version", message)])
    of: dict[str, Any] = {k: v for k, v in found.items() if k in Header.__dataclass_fields__}
    settings = dict(of["settings"])
    settings["limits"] = Limits(**settings["limits"])
    settings["windows"] = tuple(settings.get("windows", ()))
    of["settings"] = Settings(**settings)
    of["pace"] = Pace(**of["pace"]) if of.get("pace") else None
    of["lagging_before"] = tuple(Partition(*n) for n in of["lagging_before"])
    return Header(**of)


def task_key(name: Partition) -> str:
    return f"{TASK}{name.topic}/{name.number}"


def task_document(task: Task, mark: Mark) -> Document:
    return {
        "topic": task.name.topic, "partition": task.name.number, "source": list(task.source), "target": list(task.target),
        "source_leader": task.source_leader, "leader": task.leader, "size": task.size, "value": task.value, "undo": task.undo,
        "why": task.why, "stage": mark.stage.value, "reason": mark.reason, "attempts": mark.attempts, "touched": mark.touched,
        **({"batch": task.batch} if task.batch else {}),
    }  # fmt: skip


def tasks_of(documents: Documents) -> tuple[dict[Partition, Task], dict[Partition, Mark]]:
    tasks, marks = {}, {}
    for key in sorted(k for k in documents if k.startswith(TASK)):
        d = documents[key]
        name = Partition(d["topic"], d["partition"])
        tasks[name] = Task(
            name, tuple(d["source"]), tuple(d["target"]), d["source_leader"], d["leader"], d["size"], d["value"], d["undo"], d["why"],
            d.get("batch", 0),
        )  # fmt: skip
        marks[name] = Mark(Stage(d["stage"]), d["reason"], d["attempts"], d["touched"])
    return tasks, marks


def throttle_documents(settings: Iterable[Setting]) -> Documents:
    """One document a resource: key -> [value before or null, own value]."""
    found: Documents = {}
    for s in settings:
        found.setdefault(f"{THROTTLE}{s.resource.kind}/{s.resource.name}", {})[s.key] = [s.before, s.own]
    return found


def throttles_of(documents: Mapping[str, Document]) -> list[Setting]:
    made = []
    for key in sorted(k for k in documents if k.startswith(THROTTLE)):
        kind, _, name = key.removeprefix(THROTTLE).partition("/")
        resource = Resource("broker" if kind == "broker" else "topic", name)
        made += [Setting(resource, k, before, own) for k, (before, own) in sorted(documents[key].items())]
    return made


def rate_of(header: Header) -> int | None:
    """Bytes/s that hold now; None is no throttle."""
    rate = header.settings.throttle
    return rate if rate != AUTO else None if header.pace is None else header.pace.rate


def beaten(header: Header, now_ms: int) -> Header:
    """The header as it is written next."""
    return replace(header, revision=header.revision + 1, beat_ms=now_ms)
