"""The frame of this room's pages: head, verdict, tiles, sections, tables, figures, in the look of the dry run's page.

Called by `spark.report.calibration` and `spark.report.backtest`. All text is escaped on its way in (`optimizer.report.markup`); a page
loads nothing. Knows nothing of what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files

from optimizer.report.html import POLICY, asset
from optimizer.report.markup import Child, Markup, el, trusted

ROWS_SHOWN = 25  # of a table, until more are asked for
MOST_ROWS = 2_000


@dataclass(frozen=True)
class Section:
    """One part of a page with its anchor; without parts it is left out."""

    name: str
    title: str
    parts: Sequence[Child]


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
    shown = [s for s in sections if any(s.parts)]
    links = el("ul", *(el("li", el("a", s.title, href=f"#{s.name}")) for s in shown))
    body = el(
        "body",
        el("a", "Skip to the verdict", href="#verdict", class_="skip"),
        el(
            "header",
            el(
                "p", el("span", "Trimtab", class_="brand"), el("span", kind, class_="kind"),
                *(el("span", f"{label} ", el("b", value)) for label, value in where),
            ),
            el("button", "Theme: auto", type="button", id="theme", hidden=True),
        ),
        el(
            "main",
            el(
                "div", el("p", tone, class_="tone"), el("h1", verdict), *(el("p", r, class_="remark") for r in remarks),
                id="verdict", class_=f"verdict {mood}",
            ),
            el("dl", *(_tile(*t) for t in tiles), class_="tiles"),
            el("nav", links, aria_label="Sections"),
            *(
                el("section", el("h2", s.title, id=f"{s.name}-title"), *s.parts, id=s.name, aria_labelledby=f"{s.name}-title")
                for s in shown
            ),
        ),
        el("footer", el("p", footer)),
        el("script", trusted(asset("report.js"))),
    )  # fmt: skip
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} – Trimtab"),
        el("style", trusted(asset("report.css") + _own_style())),
    )
    return "<!DOCTYPE html>\n" + el("html", head, body, lang="en") + "\n"


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


def figure(title: str, note: str, drawing: Markup, wide: bool = False) -> Markup:
    """A drawing with its caption."""
    caption = el("figcaption", el("b", title), " ", el("span", note))
    return el("figure", caption, el("div", drawing, class_="drawing"), class_="wide" if wide else None)


def figures(drawn: Iterable[Markup | None], legend: Markup | None = None) -> list[Child]:
    """Figures beside each other, below their legend; nothing without any."""
    there = [d for d in drawn if d is not None]
    return [legend, el("div", *there, class_="figures")] if there else []


def legend(*keys: tuple[str, str]) -> Markup:
    """(class of the sign, words) each."""
    return el("ul", *(el("li", el("span", class_=f"key {sign}"), words) for sign, words in keys), class_="legend")


def listed(words: Iterable[str]) -> Markup | None:
    """Sentences as a list."""
    items = [el("li", w) for w in words if w]
    return el("ul", *items) if items else None


def facts(rows: Iterable[tuple[str, Child]]) -> Markup:
    """Names and values below each other."""
    return el("dl", *(el("div", el("dt", name), el("dd", value)) for name, value in rows if value), class_="identity")


def _tile(name: str, value: str, note: str) -> Markup:
    return el("div", el("dt", name), el("dd", value, class_="value"), el("dd", note, class_="note") if note else None)


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
