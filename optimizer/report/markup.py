"""HTML and SVG elements as text that is escaped unless it is already markup.

Called by the HTML report only. A plain `str` is user text and always escaped; only `el` and `join` make
`Markup`.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from cluster_model.plain_text import printable

VOID = frozenset({"meta", "input", "br", "hr", "line", "rect", "circle", "path", "polyline"})
HTML_VOID = frozenset({"meta", "input", "br", "hr"})


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | None | Iterable["Child"]


def el(tag: str, *children: Child, **attributes: object) -> Markup:
    """An element. ``class_`` and ``data_x`` become ``class`` and ``data-x``; False and None leave an
    attribute out, True writes it bare. Children that are no `Markup` are escaped.
    """
    head = [tag]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        key = name.rstrip("_").replace("_", "-")
        head.append(key if value is True else f'{key}="{escape(printable(_attribute(value)))}"')
    opening = " ".join(head)
    if tag in HTML_VOID:
        return Markup(f"<{opening}>")
    if tag in VOID and not children:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{join(children)}</{tag}>")


def join(children: Iterable[Child], separator: str = "") -> Markup:
    """Children one after another, escaped where they must be."""
    return Markup(separator.join(_text(c) for c in children))


def trusted(text: str) -> Markup:
    """Text of our own (style, script) that goes in as it is."""
    return Markup(text)


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return escape(printable(child))
    return join(child)


def _attribute(value: object) -> str:
    """Numbers in drawings need a tenth of a pixel, not more."""
    if isinstance(value, float):
        text = f"{value:.1f}"
        return text[:-2] if text.endswith(".0") else text
    return str(value)
