"""What the terminal report prints on: a rich console with its width, and ASCII in place of signs it cannot
show.

Called by `text`. User text never reaches rich's markup, and lines break at words only.
"""

from __future__ import annotations

from textwrap import TextWrapper
from typing import TYPE_CHECKING

from cluster_model.plain_text import PLAINER, one_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

WIDE = 112  # columns from which there is room for more
LONGEST = 100  # columns of running text
ONE_COLUMN = str.maketrans(PLAINER | {"…": "~"})  # clipped text stays in its column


class Paper:
    """A console and how to write on it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.ascii_only = console.options.ascii_only
        self.wide = console.width >= WIDE

    def text(self, content: str, style: str = "") -> Text:
        """Styled text on as many lines as it has; never markup."""
        from rich.text import Text

        return Text(self.plain(content), style=style)

    def plain(self, content: str) -> str:
        if not self.ascii_only:
            return content
        return content.translate(ONE_COLUMN).encode("ascii", "replace").decode("ascii")

    def clip(self, content: str, most: int) -> str:
        """On one line of at most `most` columns."""
        line = one_line(content)
        return line if len(line) <= most else line[: most - 1] + "…"

    def turn(self, before: str, after: str) -> str:
        """``before → after``, or one of them where they are equal."""
        return after if before == after else f"{before} → {after}"

    def paragraph(self, content: str, style: str = "", indent: int = 0) -> None:
        """Print running text; lines after the first start at `indent`."""
        width = min(self.console.width, LONGEST)
        wrapper = TextWrapper(
            width=width,
            subsequent_indent=" " * indent,
            break_on_hyphens=False,
            break_long_words=False,  # a digest stays one word that can be copied
            replace_whitespace=False,
        )
        lines = [line for part in self.plain(content).split("\n") for line in wrapper.wrap(part) or [""]]
        self.console.print(self.text("\n".join(lines), style), highlight=False, soft_wrap=True)

    def show(self, content: Text | Table) -> None:
        self.console.print(content, highlight=False)

    def heading(self, title: str) -> None:
        self.console.print()
        self.paragraph(title, "bold")

    def item(self, content: str) -> None:
        self.paragraph("- " + one_line(content), indent=2)

    def table(self, *columns: tuple[str, bool]) -> Table:
        """A bare table; columns are names and whether they are aligned right."""
        from rich.table import Table

        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
        for name, right in columns:
            table.add_column(self.text(name), justify="right" if right else "left", no_wrap=True)
        return table
