"""Planning for a person who waits: a progress bar on a large cluster, and Ctrl-C that ends it, or asks for the best plan so far.

Called by the commands that plan. The search has a thread of its own, since Python hears signals between two of its own steps only and
a compiled phase of the search is one step, which may take minutes on a large cluster.
"""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from trimtab.output import nothing_else_on_stdout
from trimtab.story import Story, log

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot
    from goals.model import GoalSet
    from optimizer.options import PlanOptions
    from optimizer.plan import Plan

T = TypeVar("T")
LONG = 100_000  # replicas; below, a plan is there before a bar could be read
ATTENTIVE = 0.05  # seconds; a signal may come to another thread than this one, which then hears it when it looks


def planned(
    snapshot: Snapshot, goals: GoalSet, options: PlanOptions, story: Story, told: Callable[[int], None] | None = None,
    *, asked: Sequence[int] = (),
) -> Plan:  # fmt: skip
    """The plan. Ctrl-C raises `KeyboardInterrupt` at once, unless `stop_on_request` is around: with its `asked` the first one gives the
    best plan so far (`Plan.stopped`).

    `told` hears how many brokers are still outside their target range.
    """
    from optimizer.planner import plan
    from trimtab.compiling import compiled_beside

    with _bar(story, snapshot) as show, compiled_beside() as look:

        def watch(low: int) -> bool:
            show(low)
            if told is not None:
                told(low)
            return not asked

        with nothing_else_on_stdout():
            found = apart(lambda: plan(snapshot, goals, options, watch), look)
    gc.freeze()  # kernels and cluster stay to the end; collecting garbage among what a report makes need not look at them
    return found


def apart(work: Callable[[], T], meanwhile: Callable[[], None] = lambda: None) -> T:
    """The result of `work`, made in another thread, while `meanwhile` is called now and again. An exception that a signal raises in this
    one is raised here at once, and `work` left behind."""
    made: list[T] = []
    failed: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            made.append(work())
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="planning", daemon=True).start()
    while not done.wait(ATTENTIVE):
        meanwhile()
    if failed:
        raise failed[0]
    return made[0]


@contextmanager
def stop_on_request() -> Iterator[Sequence[int]]:
    """Around the search and what is made of its plan: gives what is empty until the first Ctrl-C. The second interrupts, as does the first
    while a kernel is compiled."""
    from kernels.compiled import compiling

    asked: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        if asked or compiling:  # there is no plan yet
            raise KeyboardInterrupt
        asked.append(number)
        log.warning("stopping with the best plan so far; Ctrl-C again gives up")

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _bar(story: Story, snapshot: Snapshot) -> Iterator[Callable[[int], None]]:
    """Shows what is left, to a person who looks on."""
    if not story.animated or snapshot.replica_count < LONG:
        yield lambda low: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("planning", total=None, left="")

        def show(low: int) -> None:
            total = max(low, int(progress.tasks[0].total or 0))
            progress.update(task, total=max(total, 1), completed=total - low, left=f"{low:,} {'broker' if low == 1 else 'brokers'} outside")

        yield show
