"""Reports as a reader sees them: the terminal's, and the page without its tags."""

from __future__ import annotations

import io
import re

from rich.console import Console

from optimizer.plan import Plan
from optimizer.report import render_text


def text_of(plan: Plan, width: int = 80, *, encoding: str = "utf-8") -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    render_text(plan, Console(file=stream, width=width, color_system=None, force_terminal=False))
    return raw.getvalue().decode(encoding)


def visible(html: str) -> str:
    """What a reader of the page sees."""
    bare = re.sub(r"<(style|script).*?</\1>", "", html, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", bare)
