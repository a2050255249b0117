"""Moves of replicas between the log directories of their brokers: a few at a time on each broker, each waited for.

Called by `trimtab directories --execute`. Nothing is written down: where replicas are is seen on the brokers at every turn, so the same
moves given again go on with what is left. What was asked for goes on in the broker when this process ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from cluster_model.errors import InputError, Problem
from cluster_model.quantities import format_size
from cluster_model.reassignment import Entry, reassignment_entries
from trimtab.execution.port import Answers
from trimtab.execution.state import Partition

ATTEMPTS = 5
SILENT_TURNS = 60  # in a row, after which moves on a broker that does not answer are given up
ANY = "any"  # of Kafka's file: no directory is asked for
SOURCE = "give a file of `trimtab directories`"
State = Literal["waiting", "moving", "done", "failed"]


class Replica(NamedTuple):
    """One replica of a partition."""

    broker: int
    partition: Partition

    def __str__(self) -> str:
        return f"{self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class SeenDirectories:
    """Log directories of one broker that are online, with bytes that are free; where replicas are, with their bytes; and where those are
    going that are being moved, with the bytes that are there."""

    room: Mapping[str, float]
    held: Mapping[Partition, tuple[str, float]]
    coming: Mapping[Partition, tuple[str, float]]


class DirectoryPort(Protocol):
    """A cluster, as far as this needs it."""

    def directories(self, broker: int, names: Sequence[Partition]) -> SeenDirectories | None:
        """What one broker says of some partitions; None where it does not answer."""
        ...

    def move(self, broker: int, targets: Mapping[Partition, str]) -> Answers:
        """Ask one broker to move replicas to other log directories; accepted does not mean that it is complete."""
        ...


@dataclass(slots=True)
class Step:
    """How far one replica is; `bytes` of its log, once it was seen, and why where that needs a reason."""

    replica: Replica
    target: str
    state: State = "waiting"
    why: str = ""
    bytes: float = 0.0
    attempts: int = 0


@dataclass
class DirectoryMoves:
    """Moves in their order; each `turn` looks at the brokers and starts what may start.

    Parameters
    ----------
    at_once
        Replicas of one broker that are on their way at a time.
    reserve
        Bytes that stay free on a log directory.
    """

    port: DirectoryPort
    wanted: Mapping[Replica, str]
    at_once: int = 1
    reserve: float = 1e9
    steps: list[Step] = field(init=False)
    silent: dict[int, int] = field(default_factory=dict)  # broker -> turns in a row in which it did not answer

    def __post_init__(self) -> None:
        self.steps = [Step(replica, target) for replica, target in self.wanted.items()]

    @property
    def over(self) -> bool:
        return all(step.state in ("done", "failed") for step in self.steps)

    def count(self, state: State) -> int:
        return sum(step.state == state for step in self.steps)

    def turn(self) -> None:
        """One look, and what follows of it."""
        for broker in dict.fromkeys(step.replica.broker for step in self.steps):
            steps = [s for s in self.steps if s.replica.broker == broker and s.state in ("waiting", "moving")]
            if not steps:
                continue
            seen = self.port.directories(broker, [s.replica.partition for s in steps])
            if seen is None:
                self._wait_for(broker, steps)
                continue
            self.silent.pop(broker, None)
            for step in steps:
                _see(step, seen)
            self._start(broker, steps, seen)

    def _wait_for(self, broker: int, steps: list[Step]) -> None:
        self.silent[broker] = self.silent.get(broker, 0) + 1
        if self.silent[broker] >= SILENT_TURNS:
            for step in steps:
                step.state, step.why = "failed", "the broker does not say what its log directories hold; that needs Describe on the cluster"

    def _start(self, broker: int, steps: list[Step], seen: SeenDirectories) -> None:
        """Ask for the first that find room; where none does and none is on its way, none ever will."""
        moving = [s for s in steps if s.state == "moving"]
        waiting = [s for s in steps if s.state == "waiting"]
        free = dict(seen.room)
        for partition, (path, there) in seen.coming.items():
            if partition in seen.held:
                free[path] -= max(seen.held[partition][1] - there, 0.0)
        chosen: list[Step] = []
        for step in waiting:
            if len(moving) + len(chosen) >= self.at_once:
                break
            if free[step.target] >= step.bytes + self.reserve:
                free[step.target] -= step.bytes
                chosen.append(step)
        if chosen:
            self._ask(broker, chosen)
        elif not moving:
            for step in waiting:
                step.state = "failed"
                step.why = (
                    f"no room in {step.target}: {format_size(seen.room[step.target])} free, the replica has {format_size(step.bytes)}, "
                    f"and {format_size(self.reserve)} stay free"
                )

    def _ask(self, broker: int, chosen: list[Step]) -> None:
        answers = self.port.move(broker, {s.replica.partition: s.target for s in chosen})
        for step in chosen:
            refusal = answers.get(step.replica.partition)
            step.attempts += 1
            if refusal is None:
                step.state = "moving"
            elif not refusal.retriable or step.attempts >= ATTEMPTS:
                step.state, step.why = "failed", str(refusal)


def _see(step: Step, seen: SeenDirectories) -> None:
    """How far a replica is by what its broker says."""
    held, coming = seen.held.get(step.replica.partition), seen.coming.get(step.replica.partition)
    if held is None:
        step.state, step.why = "failed", "the broker holds no replica of it"
        return
    step.bytes = held[1]
    if coming is not None:
        step.state = "moving"  # also to another directory, by another tool: looked at again when that is over
    elif held[0] == step.target:
        step.state = "done"
    elif step.attempts >= ATTEMPTS:
        step.state, step.why = "failed", f"the broker took the request {ATTEMPTS} times, and the replica is in {held[0]} all the same"
    elif step.target not in seen.room:
        step.state, step.why = "failed", f"the broker has no log directory {step.target} that is online"
    else:
        step.state = "waiting"


# -- the file --------------------------------------------------------------------------------------------------


def read_moves(text: str, name: str) -> dict[Replica, str]:
    """Replica -> log directory out of Kafka's reassignment document with ``log_dirs``, in the order of the file.

    Raises
    ------
    InputError
        Not such a document; carries every problem with its place.
    """
    problems: list[Problem] = []
    found: dict[Replica, str] = {}
    entries = list(reassignment_entries(text, name, SOURCE))
    if entries and all(wrong is None and "log_dirs" not in entry for _, entry, wrong in entries):
        message = f"expected log_dirs, found none: the file moves replicas between brokers; {SOURCE}"
        raise InputError(name, [Problem("partitions", message)])
    for place, entry, wrong in entries:
        wrong = wrong or _wrong_paths(entry)
        if wrong is not None:
            problems.append(Problem(place, wrong))
            continue
        partition = Partition(entry["topic"], entry["partition"])
        pairs = zip(entry["replicas"], entry["log_dirs"], strict=True)
        moves = {Replica(broker, partition): path for broker, path in pairs if path != ANY}
        problems += [Problem(place, f"{replica} has a directory already; keep one") for replica in moves if replica in found]
        found |= moves
    if problems:
        raise InputError(name, problems)
    return found


def _wrong_paths(entry: Entry) -> str | None:
    paths = entry.get("log_dirs")
    if isinstance(paths, list) and len(paths) == len(entry["replicas"]) and all(isinstance(path, str) for path in paths):
        return None
    return f"expected log_dirs, a path or {ANY!r} for each replica, found {str(paths)[:60]}; {SOURCE}"
