"""Texts name the thing: README, docs, changelog, help, messages, the page, docstrings, comments and names of tests use none of these words.

CONTRIBUTING.md (*Words*) says which to use instead.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("kernels", "cluster_model", "goals", "optimizer", "metrics_reporter", "spark", "trimtab")
INSTEAD = {
    "nobody": "no broker", "somebody": "another tool, a broker", "anybody": "any broker", "everybody": "every broker",
    "whoever": "the reader by name", "anew": "again", "in vain": "without success",
    "begin": "start", "begins": "starts", "began": "started", "begun": "started", "beginning": "start",
    "out of band": "outside its target range", "in band": "within its target range",
    "into band": "into its target range",
}  # fmt: skip
WORDS = re.compile(rf"\b(?:{'|'.join(f'[{word[0].upper()}{word[0]}]{word[1:]}' for word in INSTEAD)})\b")  # not SQL's BEGIN
AT_ALL = re.compile("|".join(word.replace(" ", "[ _]?") for word in INSTEAD), re.IGNORECASE)  # in a file, whatever it is part of
CODE = re.compile(r"^```.*?^```|``.+?``|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^ +\w+(?:, \w+)*$", re.MULTILINE)  # the name of a parameter, above its words
COMMENT = re.compile(r"(?<!\S)#[^\n]*")
CASES = ("tests/**/*.py", "benchmarks/**/*.py")
KAFKAS = {"begin_offsets"}  # the client's own name
SQL = {"trimtab/history/decisions.py"}  # the columns began and ended
PERCENT = re.compile(r"\d %(?![-\w%])")
Found = Iterator[tuple[int, str]]


def found_in(text: str) -> Found:
    """Lines, from 0, and the words there."""
    for match in WORDS.finditer(text):
        yield text.count("\n", 0, match.start()), match[0].lower()


def in_prose(text: str) -> Found:
    """Markdown, without code."""
    return found_in(CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), text))


def in_settings(text: str) -> Found:
    """YAML: what its comments say."""
    for comment in COMMENT.finditer(text):
        for _, word in found_in(comment[0].lstrip("# ")):
            yield text.count("\n", 0, comment.start()), word


def in_strings(source: str) -> Found:
    """Python: sentences in strings, and the docstrings of commands, which are their help."""
    tree = ast.parse(source)
    nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    internal = {
        id(n.body[0].value)
        for n in nodes
        if n.body and isinstance(n.body[0], ast.Expr) and not getattr(n, "name", "").endswith("_command")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and id(node) not in internal:
            for line, word in found_in(re.sub(CODE, "", node.value)):
                yield node.lineno - 1 + line, word


def in_docstrings(source: str) -> Found:
    """Python: docstrings, and comments."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False) or ""
            for line, word in found_in(FIELD.sub("", CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), text))):
                yield node.body[0].lineno - 1 + line, word
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for _, word in found_in(CODE.sub("", token.string)):
                yield token.start[0] - 1, word


def in_names(source: str) -> Found:
    """Python: names of functions and classes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in KAFKAS:
            for _, word in found_in(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", node.name).replace("_", " ")):
                yield node.lineno - 1, word


def files(*patterns: str) -> list[Path]:
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


READERS = {
    "prose": (in_prose, files("*.md", "docs/**/*.md")),
    "strings": (in_strings, [path for room in ROOMS for path in files(f"{room}/**/*.py") if str(path.relative_to(ROOT)) not in SQL]),
    "docstrings": (in_docstrings, [path for room in ROOMS for path in files(f"{room}/**/*.py")]),
    "tests": (in_docstrings, [path for path in files(*CASES) if path != Path(__file__)]),
    "names of tests": (in_names, files(*CASES)),
    "settings": (in_settings, files("examples/**/*.yaml", "goals/presets/*.yaml")),
    "page": (found_in, files("trimtab/http/assets/*.js", "trimtab/http/assets/*.html", "optimizer/report/assets/*.js")),
}


@pytest.mark.parametrize("kind", READERS)
def test_texts_use_plain_words(kind: str) -> None:
    read, paths = READERS[kind]
    assert paths
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    found = [
        f"{path.relative_to(ROOT)}:{line + 1}: {word}, say {INSTEAD[word]}"
        for path, text in texts.items()
        if AT_ALL.search(text)
        for line, word in read(text)
    ]
    assert not found, "\n" + "\n".join(found)


def test_percents_have_one_form() -> None:
    """``50%``, as `cluster_model.quantities.percent` writes it: a report and `explain` wrote it in two."""
    texts = [path for room in ROOMS for path in files(f"{room}/**/*.py")]
    texts += files("README.md", "docs/**/*.md", "examples/goals.yaml", "goals/presets/*.yaml")
    assert not [str(path.relative_to(ROOT)) for path in texts if PERCENT.search(path.read_text(encoding="utf-8"))]


def test_words_are_found_in_texts_and_not_in_code() -> None:
    text = "A log that nobody leads.\nNobody knows; see `nobody`.\n```\nbegin: 1\n```\n"
    assert list(in_prose(text)) == [(0, "nobody"), (1, "nobody")]
    assert list(in_strings('"""Nobody."""\nlog.info("the plan\\n begins")\nbegin = row["begin"]\n')) == [(2, "begins")]
    assert list(in_strings('def stop_command():\n    """Begin nothing more."""\n')) == [(1, "begin")]
    source = '"""Nobody\n\n    begin, end\n"""\nbegin = "begin"  # begins anew, `anew`\n'
    assert list(in_docstrings(source)) == [(0, "nobody"), (4, "begins"), (4, "anew")]
    assert list(in_names("def test_nobody_begins(): ...\nclass Begun: ...\nbegin = 1\n")) == [(0, "nobody"), (0, "begins"), (1, "begun")]
    assert list(in_settings("begin: 1 # begin at noon\n")) == [(0, "begin")]
