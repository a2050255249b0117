"""The frame of every report in HTML: head, verdict, tiles, sections, figures. Called by the dry run's page and by Spark's reports.

A page loads nothing, and all text is escaped on its way in (`markup`); style and script lie in `assets`. Knows nothing of what it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from optimizer.report.markup import Child, Markup, el, trusted

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Section:
    """One part of a page with its anchor; without parts it is left out."""

    name: str
    title: str
    parts: Sequence[Child]


def document(
    kind: str, title: str, where: Iterable[tuple[str, str]], verdict: Markup, tiles: Markup, sections: Iterable[Section],
    footer: Sequence[Child], style: str = "",
) -> str:  # fmt: skip
    """The whole document.

    Parameters
    ----------
    kind
        What the page is, in a word or two, beside the brand.
    where
        (label, value) of its subject.
    style
        Rules beside those of all pages.
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
            verdict,
            tiles,
            el("nav", links, aria_label="Sections"),
            *(
                el("section", el("h2", s.title, id=f"{s.name}-title"), *filter(None, s.parts), id=s.name, aria_labelledby=f"{s.name}-title")
                for s in shown
            ),
        ),
        el("footer", el("p", *footer)),
        el("script", trusted(asset("report.js"))),
    )  # fmt: skip
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} – Trimtab"),
        el("style", trusted(asset("report.css") + style)),
    )
    return "<!DOCTYPE html>\n" + el("html", head, body, lang="en") + "\n"


def asset(name: str) -> str:
    """A file of the `assets` folder of this package."""
    from importlib.resources import files

    return files("optimizer.report").joinpath("assets", name).read_text(encoding="utf-8")


def tile(name: str, value: Child, *notes: Child, title: str | None = None) -> Markup:
    """A figure with its name, and what to know with it."""
    return el("div", el("dt", name), el("dd", value, class_="value", title=title), *(el("dd", n, class_="note") for n in notes if n))


def figure(title: str, note: str, drawing: Markup, wide: bool = False) -> Markup:
    """A drawing with its caption."""
    caption = el("figcaption", el("b", title), " ", el("span", note))
    return el("figure", caption, el("div", drawing, class_="drawing"), class_="wide" if wide else None)


def legend(kind: str, *keys: tuple[str, str]) -> Markup:
    """(class of the sign, words) each; `kind` is a class of all signs."""
    return el("ul", *(el("li", el("span", class_=f"key {kind} {sign}".replace("  ", " ")), words) for sign, words in keys), class_="legend")


def facts(rows: Iterable[tuple[str, Child]]) -> Markup:
    """Names and values below each other."""
    return el("dl", *(el("div", el("dt", name), el("dd", value)) for name, value in rows if value), class_="identity")
