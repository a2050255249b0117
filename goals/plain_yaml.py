"""Values and lines of YAML by libyaml, where that reads it as ruamel.yaml does: ten times sooner.

Called by `goals.yaml_source`, for calibration files above all, which have thousands of estimates. Only what needs no second look is
taken: everything with tags, anchors, directives, tabs, block scalars, odd numbers, or a mistake of any kind is left to ruamel.yaml,
which is the one that says what is wrong. So are all texts where PyYAML is not there, or has no libyaml.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML

Path = tuple[str | int, ...]
Lines = dict[Path, int]

READ_OTHERWISE = re.compile("[\t\x85\u2028\u2029\ufeff\ud800-\udfff]")  # YAML 1.1, which libyaml reads, takes three for ends of lines
WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)")
DECIMAL = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?")
LONGEST = 300  # digits; Python refuses to read whole numbers of thousands
BOOLS = {"true": True, "false": False}
BLOCK_STYLES = ("|", ">")


class NotPlain(Exception):
    """The text has something that is left to ruamel.yaml."""


def plain_values(text: str, most: int) -> tuple[object, Lines]:
    """The value of a text, and path -> line, from 1.

    Parameters
    ----------
    most
        How many values there may be.

    Raises
    ------
    NotPlain
        Read it with ruamel.yaml.
    """
    try:
        from yaml import YAMLError
        from yaml.cyaml import CParser
    except ImportError:
        raise NotPlain from None
    if READ_OTHERWISE.search(text):
        raise NotPlain
    try:
        reader = _Reader(CParser(text), most)
        return reader.document(), reader.lines
    except (YAMLError, RecursionError) as error:
        raise NotPlain from error


class _Reader:
    """Takes events as they come; one per text."""

    def __init__(self, parser: Any, most: int) -> None:
        self.next = parser.get_event
        self.left = most
        self.lines: Lines = {}
        self.kinds: dict[str, list[tuple[str, re.Pattern[str]]]] = YAML(typ="safe", pure=True).resolver.versioned_resolver

    def document(self) -> object:
        self.next()  # the stream starts
        begin = self.next()
        if _name(begin) == "StreamEndEvent":
            return None
        if begin.explicit or begin.version or begin.tags:
            raise NotPlain
        value = self.value(self.next(), ())
        self.next()  # the document ends
        if _name(self.next()) != "StreamEndEvent":
            raise NotPlain
        return value

    def value(self, event: Any, path: Path) -> object:
        self.left -= 1
        kind = _name(event)
        if kind == "AliasEvent" or event.anchor is not None or event.tag is not None or self.left < 0:
            raise NotPlain
        self.lines.setdefault(path, event.start_mark.line + 1)
        if kind == "ScalarEvent":
            return self.scalar(event)
        if kind == "MappingStartEvent":
            return self.mapping(path)
        items: list[object] = []
        while _name(item := self.next()) != "SequenceEndEvent":
            items.append(self.value(item, (*path, len(items))))
        return items

    def mapping(self, path: Path) -> dict[str, object]:
        found: dict[str, object] = {}
        while _name(event := self.next()) != "MappingEndEvent":
            if _name(event) != "ScalarEvent" or event.anchor is not None or event.tag is not None or event.style in BLOCK_STYLES:
                raise NotPlain
            key = event.value
            if key in found or key in ("", "<<"):
                raise NotPlain
            inner = (*path, key)
            self.lines[inner] = event.start_mark.line + 1
            found[key] = self.value(self.next(), inner)
        return found

    def scalar(self, event: Any) -> object:
        text: str = event.value
        if event.style in BLOCK_STYLES:
            raise NotPlain
        if not event.implicit[0]:
            return text
        kind = next((tag for tag, form in self.kinds.get(text[:1], ()) if form.match(text)), "text").rpartition(":")[2]
        match kind:
            case "text" | "timestamp":
                return text
            case "null":
                return None
            case "bool":
                return BOOLS[text.lower()]
            case "int" if WHOLE.fullmatch(text) and len(text) < LONGEST:
                return int(text)
            case "float" if DECIMAL.fullmatch(text):
                return float(text)
        raise NotPlain


def _name(event: Any) -> str:
    return type(event).__name__
