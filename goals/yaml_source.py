"""YAML text as plain values, with the line of every place and every problem found.

Called by `goals.document`. YAML 1.2, safe: no tags, no objects. Beside the values it gives what a plain
loader throws away: the line of each key and element, and keys that are written twice. Knows nothing of goals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import NamedTuple

from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from cluster_model.errors import ConfigurationError, Problem
from goals.plain_yaml import NotPlain, plain_values
from goals.plain_yaml import Path as Path

MAX_VALUES = 200_000  # aliases can make a short text expand without end
TOO_DEEP = "nested too deep to be a file of Trimtab; take out the brackets or levels that are too many"


class Found(NamedTuple):
    """A problem and the line it is in."""

    line: int
    problem: Problem


def in_order(found: Iterable[Found]) -> list[Problem]:
    """The problems in the order of the file."""
    return [entry.problem for entry in sorted(found, key=lambda entry: entry.line)]


@dataclass(frozen=True, slots=True)
class YamlSource:
    """`value`: dicts (keys are text), lists and scalars. `lines`: path -> line, from 1."""

    value: object
    lines: Mapping[Path, int]
    problems: tuple[Found, ...]

    def line(self, path: Path) -> int:
        """Line of `path`, or of the nearest place around it that stands in the text."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def problem(self, path: Path, message: str) -> Found:
        """A problem at `path`, with its line."""
        return _found(path, message, self.line(path))


def _found(path: Path, message: str, line: int) -> Found:
    return Found(line, Problem(place(path), f"{message} (line {line})"))


def place(path: Path) -> str:
    """``goals[2].weight`` for ``("goals", 2, "weight")``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def read_yaml(text: str, name: str) -> YamlSource:
    """The values of a YAML text.

    Raises
    ------
    ConfigurationError
        The text is not YAML, or several documents. Keys that are written twice and the like do not raise:
        they are in `problems`, so that the caller can report them beside its own.
    """
    try:
        return YamlSource(*plain_values(text, MAX_VALUES), ())
    except NotPlain:
        return read_carefully(text, name)


def read_carefully(text: str, name: str) -> YamlSource:
    """The same by ruamel.yaml alone, which knows what is wrong and where."""
    yaml = YAML(typ="safe", pure=True)
    try:
        root = yaml.compose(StringIO(text))
    except YAMLError as error:
        raise ConfigurationError(name, [_syntax_problem(error)]) from error
    except RecursionError:
        raise ConfigurationError(name, [Problem("", TOO_DEEP)]) from None
    reader = _Reader(yaml.constructor)
    try:
        value = None if root is None else reader.value(root, ())
    except RecursionError:
        raise ConfigurationError(name, [Problem("", TOO_DEEP)]) from None
    return YamlSource(value, reader.lines, tuple(reader.problems))


def _syntax_problem(error: YAMLError) -> Problem:
    if isinstance(error, ReaderError):
        character = f"U+{ord(error.character) if isinstance(error.character, str) else error.character:04X}"
        return Problem("", f"not YAML: character {character} at offset {error.position} is not allowed")
    if not isinstance(error, MarkedYAMLError):
        return Problem("", f"not YAML: {' '.join(str(error).split())}")
    mark = error.problem_mark or error.context_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    message = f"not YAML: {error.problem or error.context}"
    if "alias" in message or "while scanning an alias" in str(error):
        message += "; a pattern that starts with * needs quotes"
    elif "another document" in message:
        message += "; expected one document, without ---"
    elif "\\t" in message:
        message += "; indent with spaces"
    return Problem(where, message)


@dataclass
class _Reader:
    """Turns nodes into values; one per text."""

    constructor: SafeConstructor
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Found] = field(default_factory=list)
    _open: list[Node] = field(default_factory=list)
    _count: int = 0

    def value(self, node: Node, path: Path) -> object:
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._count += 1
        if any(node is outer for outer in self._open) or self._count > MAX_VALUES:
            if self._count <= MAX_VALUES + 1:
                self._complain(node, path, "an alias inside itself, or more values than a file can need")
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if str(node.tag).rpartition(":")[2] not in ("map", "seq"):
            self._complain(node, path, f"tags are not read, found {node.tag}; leave it out")
            return None
        self._open.append(node)
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, path)
            assert isinstance(node, SequenceNode)
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        finally:
            self._open.pop()

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, object]:
        result: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._complain(key_node, path, "expected a word as key, found a list or mapping")
                continue
            key = self._text(key_node, path)
            inner = (*path, key)
            if str(key_node.tag).endswith(":merge"):
                self._complain(key_node, inner, "merge keys are not read; write the keys out")
            elif key in result:
                first = self.lines[inner]
                self._complain(key_node, inner, f"key written twice, first in line {first}; keep one")
            else:
                self.lines[inner] = key_node.start_mark.line + 1
                result[key] = self.value(value_node, inner)
        return result

    def _scalar(self, node: ScalarNode, path: Path) -> object:
        kind = str(node.tag).rpartition(":")[2]
        try:
            match kind:
                case "null":
                    return None
                case "bool":
                    return bool(self.constructor.construct_yaml_bool(node))
                case "int":
                    return int(self.constructor.construct_yaml_int(node))
                case "float":
                    return float(self.constructor.construct_yaml_float(node))
                case "str" | "timestamp":
                    return self._text(node, path)
        except (ValueError, OverflowError):
            self._complain(node, path, f"expected a number, found {str(node.value)[:40]!r}")
            return None
        self._complain(node, path, f"tags are not read, found {node.tag}; write a plain value")
        return None

    def _text(self, node: ScalarNode, path: Path) -> str:
        """Text of a scalar; JSON writes signs beyond U+FFFF as two escapes, which belong together."""
        try:
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._complain(node, path, "half of a two-part escape; write the sign itself")
            return ""

    def _complain(self, node: Node, path: Path, message: str) -> None:
        self.problems.append(_found(path, message, node.start_mark.line + 1))
