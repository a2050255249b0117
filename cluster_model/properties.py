"""Java properties files, read as Java reads them.

Used for ``--command-config``, and for the configuration of brokers and of Cruise Control. Knows nothing of what the keys mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from cluster_model.errors import ConfigurationError, Problem

ENCODING = "iso-8859-1"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_KEY = re.compile(r"((?:\\.|[^\\=:\s])*)\s*[=:]?\s*", re.DOTALL)


def read_properties(path: Path) -> dict[str, str]:
    """Key to value of a properties file (`properties_in`).

    Raises
    ------
    ConfigurationError
        The file cannot be read, or holds a broken escape.
    """
    try:
        text = path.read_bytes().decode(ENCODING)
    except OSError as error:
        raise ConfigurationError(str(path), [Problem("", f"cannot be read: {error.strerror}")]) from None
    return properties_in(text, str(path))


def properties_in(text: str, name: str) -> dict[str, str]:
    """Key to value of the text of a properties file: ``\\u`` escapes, continuation lines, last of equal keys wins. `name` is told in
    errors.

    Raises
    ------
    ConfigurationError
        It holds a broken escape.
    """
    properties = {}
    problems = []
    for number, line in _logical_lines(text):
        if re.search(r"(?<!\\)(?:\\\\)*\\u(?![0-9a-fA-F]{4})", line):
            problems.append(
                Problem(f"line {number}", r"expected four hexadecimal digits after \u; write \\ for a backslash")
            )
            continue
        match = _KEY.match(line)
        assert match is not None  # matches the empty string at the least
        properties[_unescaped(match.group(1))] = _unescaped(line[match.end() :])
    if problems:
        raise ConfigurationError(name, problems)
    return properties


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is neither blank nor a comment, continuations joined."""
    joined, start = "", 0
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        stripped = line.lstrip(" \t\f")
        if not joined:
            if not stripped or stripped[0] in "#!":
                continue
            start = number
        joined += stripped
        if _continues(joined):
            joined = joined[:-1] or " "
            continue
        yield start, joined
        joined = ""
    if joined:
        yield start, joined


def _continues(line: str) -> bool:
    """Whether the line ends with an odd number of backslashes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match.group(1):
            return chr(int(match.group(1), 16))
        return _ESCAPES.get(match.group(2), match.group(2))

    return _ESCAPE.sub(plain, text)
