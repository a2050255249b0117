"""A bar on stderr for work that others do and that can be asked how far it is: `calibrate` and `backtest` while Spark works.

Sentences go above it. Where no terminal watches they are log lines, and there is no bar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trimtab.story import Story, log

Tell = Callable[[str], None]
Move = Callable[[int, int], None]
"""Done, and how much there is in all."""


@contextmanager
def bar(story: Story, what: str, unit: str) -> Iterator[tuple[Tell, Move | None]]:
    """What to tell sentences to, and what to tell the progress to: None where there is no bar, so that callers need not ask."""
    if not story.animated:
        yield lambda sentence: log.info("%s", sentence), None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    done = TextColumn(f"{{task.completed:.0f}}/{{task.total:.0f}} {unit}")
    columns = (TextColumn("{task.description}"), BarColumn(), done, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=1)
        yield (
            lambda sentence: shown.console.print(sentence, highlight=False, markup=False),
            lambda so_far, total: shown.update(task, completed=so_far, total=total),
        )
