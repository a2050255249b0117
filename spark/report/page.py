"""The frame of this room's pages: head, verdict, tiles, sections, tables, figures, in the look of the dry run's page.

Called by `spark.report.calibration` and `spark.report.backtest`. All text is escaped on its way in (`optimizer.report.markup`); a page
loads nothing. Knows nothing of what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from optimizer.report import frame
from optimizer.report.frame import Section, document, facts, figure, tile
from optimizer.report.markup import Child, Markup, el

__all__ = ["Cell", "Column", "Section", "facts", "figure", "figures", "legend", "listed", "page", "table"]

ROWS_SHOWN = 25  # of a table, until more are asked for
MOST_ROWS = 2_000


@dataclass(frozen=True)
class Column:
    """Heading of a table's column; `number`: right-aligned, sorts by value."""

    title: str
    number: bool = False


@dataclass(frozen=True)
class Cell:
    """Text of a cell, what it sorts by, and a badge where `mood` is given (good, some, bad, plain)."""

    text: Child
    value: float | None = None
    mood: str | None = None
    title: str | None = None


def page(
    kind: str, title: str, where: Sequence[tuple[str, str]], tone: str, verdict: str, remarks: Iterable[str],
    tiles: Sequence[tuple[str, str, str]], sections: Sequence[Section], footer: str, mood: str = "good",
) -> str:  # fmt: skip
    """The whole document.

    Parameters
    ----------
    kind
        What the page is, in a word or two, beside the brand.
    where
        (label, value) of its subject.
    tone, verdict, remarks
        A few words, the sentence that matters, and what to know with it.
    tiles
        (name, figure, note).
    """
    said = el(
        "div", el("p", tone, class_="tone"), el("h1", verdict), *(el("p", r, class_="remark") for r in remarks),
        id="verdict", class_=f"verdict {mood}",
    )  # fmt: skip
    figures = el("dl", *(tile(*t) for t in tiles), class_="tiles")
    return document(kind, title, where, said, figures, sections, [footer], _own_style())


def table(caption: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> Markup | None:
    """A table that the page's script makes sortable; its first column is the row's heading. None without rows."""
    if not rows:
        return None
    if len(rows) > MOST_ROWS:
        caption += f"; the first {MOST_ROWS:,} of {len(rows):,}"
    heads = (
        el("th", c.title, scope="col", class_="num" if c.number else None, data_sort="number" if c.number else "text")
        for c in columns
    )
    body = (
        el("tr", *(_cell(c, columns[i], i == 0) for i, c in enumerate(row)))
        for row in rows[:MOST_ROWS]
    )  # fmt: skip
    whole = el(
        "table", el("caption", caption, class_="quiet"), el("thead", el("tr", *heads)), el("tbody", *body),
        data_page=str(ROWS_SHOWN),
    )  # fmt: skip
    return el("div", whole, class_="scroll", tabindex="0", role="region", aria_label="table, scrolls sideways")


def figures(drawn: Iterable[Markup | None], legend: Markup | None = None) -> list[Child]:
    """Figures beside each other, below their legend; nothing without any."""
    there = [d for d in drawn if d is not None]
    return [legend, el("div", *there, class_="figures")] if there else []


def legend(*keys: tuple[str, str]) -> Markup:
    """(class of the sign, words) each."""
    return frame.legend("", *keys)


def listed(words: Iterable[str]) -> Markup | None:
    """Sentences as a list."""
    items = [el("li", w) for w in words if w]
    return el("ul", *items) if items else None


def _cell(cell: Cell, column: Column, is_head: bool) -> Markup:
    words: Child = el("span", cell.text, class_=f"badge {cell.mood}") if cell.mood else cell.text
    value = None if cell.value is None else f"{cell.value:.9g}"
    is_long = isinstance(cell.text, str) and not isinstance(cell.text, Markup) and len(cell.text) > 40
    kind = "num" if column.number else "words" if is_long else None
    if is_head:
        return el("th", words, scope="row", data_v=value, title=cell.title, class_=kind)
    return el("td", words, data_v=value, title=cell.title, class_=kind)


def _own_style() -> str:
    return files("spark.report").joinpath("assets", "drawings.css").read_text(encoding="utf-8")
