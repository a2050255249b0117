"""The search stays small enough to be changed: files, lines, and functions that fit a screen and take what they need.

Where a function is longer or takes more, a comment ``# long: …`` or ``# wide: …`` in or directly above it says why.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import optimizer

LINES = {"search": (23, 4_806), "placement": (11, 2_400)}  # modules and lines of each package, at most
LONGEST, WIDEST = 60, 8  # lines and parameters of a function


def sources(*packages: str) -> Iterator[tuple[str, str]]:
    for package in packages or LINES:
        for path in sorted((Path(next(iter(optimizer.__path__))) / package).glob("*.py")):
            if path.name != "__init__.py":
                yield path.name, path.read_text()


@pytest.mark.parametrize("package", LINES)
def test_the_search_does_not_grow(package: str) -> None:
    texts = [text for _, text in sources(package)]
    most_modules, most_lines = LINES[package]
    assert len(texts) <= most_modules
    assert sum(len(text.splitlines()) for text in texts) <= most_lines


def test_functions_are_short_and_take_few_parameters_or_say_why_not() -> None:
    found = []
    for name, text in sources():
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            said = "\n".join(lines[first - 3 : node.end_lineno])
            if (node.end_lineno or 0) - node.lineno + 1 > LONGEST and "# long: " not in said:
                found.append(f"{name}: {node.name} has more than {LONGEST} lines")
            if len(node.args.args) + len(node.args.kwonlyargs) > WIDEST and "# wide: " not in said:
                found.append(f"{name}: {node.name} has more than {WIDEST} parameters")
    assert found == []


def test_the_search_uses_no_library_of_linear_algebra() -> None:
    """Its threads wait at full speed for the next product: one product in a search of a million replicas cost a sixth of its CPU time."""
    products = {"dot", "vdot", "matmul", "einsum", "tensordot", "linalg"}
    for name, text in sources():
        for node in ast.walk(ast.parse(text)):
            assert not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)), name
            assert not (isinstance(node, ast.Attribute) and node.attr in products), name
