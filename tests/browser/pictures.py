"""Pictures of the docs, from the examples: ``python -m tests.browser.pictures [DIR]``. A test makes them, too."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browser.chromium import Chromium, Tab, found

ROOT = Path(__file__).parents[2]
PLAN = ("plan", "-q", "--snapshot", str(ROOT / "examples" / "skewed-12-brokers.json.gz"))
WIDTH = 1280
TERMINAL_COLUMNS = 120


def make(tab: Tab, folder: Path, plan: tuple[str, ...] = PLAN) -> list[Path]:
    """The report in light and dark, an action opened, and the same plan on a terminal; `plan` are the words of the command."""
    from trimtab.cli import main

    with TemporaryDirectory() as made:
        page, saved = Path(made) / "report.html", Path(made) / "plan.json"
        assert main([*plan, "--out", str(page), "--out", str(saved)]) == 0
        terminal = Path(made) / "terminal.html"
        terminal.write_text(_terminal(saved), encoding="utf-8")
        pictures = [
            _picture(tab, page, folder / "report.png", 1500),
            _picture(tab, page, folder / "report-light.png", 2080),
            _picture(tab, page, folder / "report-dark.png", 1500, dark=True),
            _picture(tab, page, folder / "report-actions.png", 760, opened=True),
            _picture(tab, terminal, folder / "report-terminal.png", 1130),
        ]
        tab.open("about:blank#over")
    return pictures


def _picture(tab: Tab, page: Path, path: Path, height: int, *, dark: bool = False, opened: bool = False) -> Path:
    tab.show_as(WIDTH, height, dark=dark)
    tab.open(page.as_uri())
    if opened:
        tab.click("#action-table button.more")
        tab.run("document.querySelector('#actions').scrollIntoView({block: 'start', behavior: 'instant'})")
    tab.picture(path, whole=False)
    return path


def _terminal(saved: Path) -> str:
    """What a terminal of `TERMINAL_COLUMNS` columns shows of a saved plan, as a page."""
    from rich.console import Console

    from optimizer.report import render_text
    from trimtab.commands.show import read_plan_file

    console = Console(record=True, width=TERMINAL_COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    render_text(read_plan_file(saved), console)
    svg = console.export_svg(title="trimtab plan --snapshot skewed-12-brokers.json.gz", font_aspect_ratio=0.61)
    local = "@font-face { font-family: 'none'; }"  # rich names a font of a foreign host; a terminal has its own
    start, end = svg.index("<style>") + len("<style>"), svg.index("</style>")
    rules = svg[start:end]
    while "@font-face" in rules:
        first = rules.index("@font-face")
        rules = rules[:first] + rules[rules.index("}", first) + 1 :]
    svg = svg[:start] + local + rules.replace("Fira Code", "DejaVu Sans Mono") + svg[end:]
    return f"<!DOCTYPE html><meta charset='utf-8'><body style='margin:0;background:#292929'>{svg}</body>"


def main(arguments: list[str]) -> int:
    """Make them all, in the docs where no other folder is named."""
    program = found()
    if program is None:
        print("Chromium is needed: make chromium", file=sys.stderr)
        return 2
    folder = Path(arguments[0]) if arguments else ROOT / "docs" / "images"
    with TemporaryDirectory() as own, Chromium(program, Path(own)) as running, running.tab() as tab:
        for path in make(tab, folder):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
