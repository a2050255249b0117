"""The panel that a drawing stands on: its size, scales, grid, axes, and the `svg` element. Inline SVG, styled by the page.

Called by every drawing of the dry run's page and of Spark's reports, so that all have the same axes. Knows nothing of the drawings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from optimizer.report.markup import Child, Markup, el
from optimizer.report.scales import Scale
from optimizer.report.units import percent

NARROW, WIDE = 560, 1160  # pixels of a figure beside another one, and of one across the page
Words = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Panel:
    """Pixels of a drawing, and of the margins around what is drawn."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    @property
    def end(self) -> int:
        """Right edge of what is drawn."""
        return self.width - self.right

    @property
    def base(self) -> int:
        """Lower edge of what is drawn."""
        return self.height - self.bottom

    @property
    def tall(self) -> int:
        """Height of what is drawn."""
        return self.base - self.top

    def across(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.left, self.end)

    def upward(self, low: float, high: float) -> Scale:
        return Scale(low, high, self.base, self.top)

    def grid(self, y: Scale, marks: Iterable[float], words: Words, place: Callable[[float], float] = float) -> Markup:
        """A line across for each of `marks`, with its words on the left; `place` gives the value on a scale that is not linear."""
        return el(
            "g",
            *(
                (
                    el("line", x1=self.left, x2=self.end, y1=y(place(mark)), y2=y(place(mark)), class_="grid"),
                    el("text", words(mark), x=self.left - 7, y=y(place(mark)) + 3.5, class_="tick end"),
                )
                for mark in marks
            ),
        )

    def below(self, x: Scale, marks: Iterable[float], words: Words, title: str) -> Markup:
        """The words of `marks` below what is drawn, and the axis's title."""
        return el("g", *(self.mark(x(mark), words(mark)) for mark in marks), self.title(title))

    def mark(self, x: float, words: str) -> Markup:
        """Words below what is drawn, at pixel `x`; those that would be cut at the right edge end there."""
        return el("text", words, x=x, y=self.base + 14, class_="tick end" if x > self.width - 24 else "tick mid")

    def title(self, words: str) -> Markup:
        return el("text", words, x=(self.left + self.end) / 2, y=self.height - 4, class_="tick mid")

    def target_range(self, low: float, high: float) -> Markup:
        """From pixel `low` to `high`, shaded over the whole height."""
        return el("rect", x=low, y=self.top, width=max(high - low, 0.0), height=self.tall, class_="band")

    def svg(self, label: str, parts: Sequence[Child]) -> Markup:
        return el("svg", *parts, viewBox=f"0 0 {self.width} {self.height}", role="img", aria_label=label)


def line(points: Iterable[tuple[float, float]], x: Scale, y: Scale, style: str) -> Markup:
    """Points joined by a line."""
    return el("polyline", points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points), class_=style)


def or_zero(words: Words) -> Words:
    """`words`, but 0 without a unit."""
    return lambda value: words(value) if value else "0"


def signed_percent(share: float) -> str:
    return percent(share, signed=True)
