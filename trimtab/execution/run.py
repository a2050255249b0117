"""Executions as a command carries them out: who is at work, asking that one, or being the one until it is over.

Called by `trimtab.commands.execute` and `control`. What sleeps and draws is here; what decides is the engine's.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from cluster_model.errors import ExternalError
from cluster_model.quantities import format_size
from metrics_reporter.reporter import SYSTEM_CLOCK
from trimtab.execution.documents import Header
from trimtab.execution.engine import BEAT_MS, SILENT_MS, Execution
from trimtab.execution.journal import Journal
from trimtab.execution.kafka_port import KafkaPort
from trimtab.execution.ledger import WISH, Fenced, JointLedger, Ledger, instance_name
from trimtab.execution.progress import Standing
from trimtab.execution.recorded import Wish
from trimtab.execution.shared import SharedRecord
from trimtab.execution.state import Stage
from trimtab.story import Story

log = logging.getLogger(__name__)

TURN_SECONDS = 1.0
AWAY_SECONDS = 2.0  # between two turns while the cluster does not answer
HEARD_SECONDS = 60.0  # for the instance at work to hear a wish
LOOK_SECONDS = 0.5
PACE_SECONDS = 2.0  # between the two looks that tell how fast copies are


@dataclass(frozen=True)
class Reached:
    """A cluster, and what is written down of executions on it."""

    port: KafkaPort
    ledger: Ledger
    execution: Execution


@contextmanager
def reached(bootstrap_server: str, command_config: Path | None, journal: Path) -> Iterator[Reached]:
    """A cluster with its record, and the journal of this machine.

    Raises
    ------
    ConfigurationError, ExternalError
        The settings are wrong, nothing answers, or the journal cannot be opened.
    """
    from trimtab.capture.client import client_settings

    settings = client_settings(command_config)
    for warning in settings.warnings:
        log.warning("%s", warning)
    port = KafkaPort(bootstrap_server, settings)
    ledger: Ledger | None = None
    try:
        cluster_id = port.look((), topics=()).cluster_id
        ledger = JointLedger(Journal(journal, cluster_id), SharedRecord(bootstrap_server, settings.options, cluster_id))
        yield Reached(port, ledger, Execution(port, ledger, SYSTEM_CLOCK, instance=instance_name()))
    finally:
        if ledger is not None:
            ledger.close()
        port.close()


def at_work(execution: Execution, pause: Callable[[float], None] = time.sleep) -> bool:
    """Whether an instance carries the execution out just now. Where its clock may differ from ours, this waits for its next sign."""
    header = execution.header
    if header is None or header.state != "running":
        return False
    host, _, number = header.instance.rpartition(" process ")
    if host == socket.gethostname() and number.isdecimal() and not _is_there(int(number)):
        return False  # where it is there, another process may have its number by now: its signs decide
    if abs(SYSTEM_CLOCK.wall_ms() - header.beat_ms) < SILENT_MS:
        return True
    deadline = SYSTEM_CLOCK.monotonic() + 2 * BEAT_MS / 1000
    while SYSTEM_CLOCK.monotonic() < deadline:
        pause(LOOK_SECONDS)
        now = execution.read()
        if now is not None and now.revision != header.revision:
            return True
    return False


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return pid != os.getpid()


def looked_on(execution: Execution, pause: Callable[[float], None] = time.sleep) -> Standing:
    """How an execution stands by a look at the cluster; by two where copies are on their way, so that it tells how fast they are."""
    found = execution.looked()
    if not found.moving:
        return found
    pause(PACE_SECONDS)
    execution.looked()
    return execution.standing() or found


def asked(there: Reached, wish: Wish, pause: Callable[[float], None] = time.sleep) -> Header:
    """The header once the instance at work has heard the wish.

    Raises
    ------
    ExternalError
        It did not hear it in time.
    """
    there.ledger.tell(WISH, wish.document())
    deadline = SYSTEM_CLOCK.monotonic() + HEARD_SECONDS
    while SYSTEM_CLOCK.monotonic() < deadline:
        header = there.execution.read()
        if header is not None and header.heard == wish.id:
            return header
        pause(LOOK_SECONDS)
    at = there.execution.header
    raise ExternalError(
        f"{at.instance if at else 'the instance at work'} did not hear it within {HEARD_SECONDS:.0f} s. Is it cut off from the cluster? "
        "End it, then give the command again",
        retriable=True,
    )


def new_id() -> str:
    return uuid4().hex


def carried_out(execution: Execution, story: Story, stop: Callable[[float], bool], turn: float = TURN_SECONDS) -> Standing:
    """Take turns until it is over; how it stands then, or when `stop` said to end.

    Parameters
    ----------
    stop
        Waits some seconds; whether to end now.

    Raises
    ------
    Fenced
        Another instance took over.
    ExternalError
        The cluster or this machine said no for good.
    """
    said, found = "", execution.standing()
    assert found is not None
    with _bar(story) as show:
        while True:
            pause = turn
            try:
                found = execution.turn()
            except Fenced:
                raise
            except ExternalError as error:
                if not error.retriable:
                    raise
                if str(error) != said:
                    log.warning("%s; looking again", error)
                    said = str(error)
                pause = AWAY_SECONDS
            else:
                if found.waits != said:
                    said = found.waits
                    if said:
                        log.info("%s", said)
                show(found)
            if found.over or stop(pause):
                return found


@contextmanager
def _bar(story: Story) -> Iterator[Callable[[Standing], None]]:
    """Shows how far it is: a bar for a person, a line now and then elsewhere."""
    if not story.animated:
        last: list[tuple[int, int]] = []

        def line(found: Standing) -> None:
            now = (found.final, round(10 * found.bytes_copied / found.bytes_total) if found.bytes_total else 0)
            if not last or last[-1] != now:
                last.append(now)
                log.info("%s", sentence(found))

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(16), TextColumn("{task.fields[far]}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("moving", total=1.0, far="")

        def show(found: Standing) -> None:
            total = found.bytes_total or float(found.total)
            done = found.bytes_copied if found.bytes_total else float(found.final)
            shown.update(task, description=_phase(found), total=max(total, 1.0), completed=done, far=_short(found))

        yield show


def _phase(found: Standing) -> str:
    if found.paused:
        return "paused"
    if found.direction != "forward":
        return "taking back"
    return "electing leaders" if found.counts[Stage.PLACED] and not found.counts[Stage.MOVING] else "moving"


def _short(found: Standing) -> str:
    parts = [f"batch {found.batch}/{found.batches}"] if found.batches else []
    parts.append(f"{found.final}/{found.total}")
    if found.bytes_total:
        parts.append(f"{format_size(found.bytes_copied)} of {format_size(found.bytes_total)}")
        parts += [f"{format_size(found.rate)}/s"] if found.rate else []
        parts += [f"{spoken_seconds(found.eta_s)} left"] if found.eta_s is not None else []
    return ", ".join(parts)


def sentence(found: Standing) -> str:
    """``12 of 200 partitions done, 8 in progress; 1.2 GB of 20 GB copied, 50 MB/s, about 6 min left``."""
    moving = found.counts[Stage.ASKED] + found.counts[Stage.MOVING] + found.counts[Stage.PLACED]
    parts = [f"batch {found.batch} of {found.batches}"] if found.batches and not found.over else []
    parts.append(f"{found.final} of {found.total} partitions done, {moving} in progress")
    if found.bytes_total:
        pace = f", {format_size(found.rate)}/s" if found.rate else ""
        left = f", about {spoken_seconds(found.eta_s)} left" if found.eta_s is not None else ""
        parts.append(f"{format_size(found.bytes_copied)} of {format_size(found.bytes_total)} copied{pace}{left}")
    return "; ".join(parts)


def spoken_seconds(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
