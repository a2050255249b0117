"""Names from clusters and files as text that is safe to show: they can neither steer a terminal, nor split a line, nor turn
the words around them (bidirectional controls).

Called by everything that shows text to people: errors, the story, explanations, reports. Data in JSON is not touched.
"""

from __future__ import annotations

PLAINER = {
    "→": "->", "↗": "+", "×": "x", "–": "-", "—": "-", "−": "-", "±": "+/-", "…": "...", "≤": "<=", "≥": ">=", "·": "-", "•": "-",
    "✓": "ok", "✗": "x", "█": "#", "‘": "'", "’": "'", "“": '"', "”": '"', "\u00a0": " ",
}  # fmt: skip
"""What stands for a sign where the output has no more than ASCII or Latin-1: a minus that is lost turns a gain into a loss."""


def printable(text: str) -> str:
    """`text` with a space for every control or format character, line ends too; as long as before."""
    return text if text.isprintable() else "".join(c if c.isprintable() or c == "\u00a0" else " " for c in text)


def one_line(text: str) -> str:
    """`printable`, with single spaces between words."""
    return " ".join(printable(text).split())


def lines(text: str) -> str:
    """`text` of several lines, each of them `printable`."""
    return "\n".join(printable(line) for line in text.split("\n"))
