"""What the site has beside the pages in docs: the command line's reference, schemas, examples, and pages of the repository's root.

Run by mkdocs; all of it comes from the code and the files that it describes, so it cannot go out of date.
"""

from __future__ import annotations

import io
import json
import os
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
FROM_ROOT = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
SCHEMAS = ("snapshot", "goals", "plan", "calibration")
WIDTH = 100


def on_files(files: Files, config: Any) -> Files:
    """Add the pages and files that are made."""
    for name, source in FROM_ROOT.items():
        text = (ROOT / source).read_text("utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    for path in sorted((ROOT / "examples").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    files.append(File.generated(config, "reference/cli.md", content=command_line()))
    files.append(File.generated(config, "reference/schemas.md", content=schemas()))
    from trimtab.commands.schema import schema_of

    for kind in SCHEMAS:
        text = json.dumps(schema_of(kind), indent=2)  # type: ignore[arg-type]
        files.append(File.generated(config, f"reference/{kind}.schema.json", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links out of docs lead to the example within the site; those to code become plain names."""
    folder = ROOT / "docs" / Path(page.file.src_uri).parent

    def led(found: re.Match[str]) -> str:
        target = (folder / found[2]).resolve()
        if not target.is_file() or target.is_relative_to(ROOT / "docs"):
            return found[0]
        if target.is_relative_to(ROOT / "examples"):
            return f"[{found[1]}]({found[2][3:]})"
        return found[1]

    return re.sub(r"\[([^\]]*)\]\((\.\./[^)#]+)\)", led, markdown)


def command_line() -> str:
    """A page with the help of every command."""
    from trimtab.cli import build

    root: Any = build()
    parts = ["# Command line", "The help of every command, as `--help` prints it.", SETTINGS]

    def walk(group: Any, words: tuple[str, ...]) -> None:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                walk(command, (*words, name))
            else:
                parts.append(f"## trimtab {' '.join((*words, name))}\n\n```text\n{_help((*words, name))}\n```")

    walk(root, ())
    return "\n\n".join(parts) + "\n"


SETTINGS = "An option that is not given may come from a variable or from `trimtab.toml`: see [defaults of options](../configuration.md)."


def _help(words: tuple[str, ...]) -> str:
    """What ``trimtab WORDS --help`` prints on a terminal of `WIDTH` columns."""
    from trimtab.cli import main

    os.environ["COLUMNS"] = str(WIDTH)
    with redirect_stdout(io.StringIO()) as page:
        main([*words, "--help"])
    return "\n".join(line.rstrip() for line in page.getvalue().splitlines()).strip("\n")


def schemas() -> str:
    """A page that names the schemas."""
    lines = [f"- [{kind}.schema.json]({kind}.schema.json): `trimtab schema {kind}`" for kind in SCHEMAS]
    return "\n".join([
        "# Schemas", "", "JSON Schemas (2020-12) of the files that Trimtab reads and writes. Our tests check our own files with them.", "",
        *lines, "", "An editor checks a goals file while you write:", "", "```yaml", "# yaml-language-server: $schema=goals.schema.json",
        "version: 1", "```", "",
    ])  # fmt: skip
