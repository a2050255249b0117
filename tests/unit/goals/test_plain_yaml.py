"""The quick reader of YAML: what it takes it reads as the careful one does, to the line, and whatever could be read otherwise it
leaves alone. A difference would be a bound or a capacity that is not what the file says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goals
from cluster_model.errors import ConfigurationError
from goals.calibration import calibration_text
from goals.plain_yaml import NotPlain, plain_values
from goals.yaml_source import MAX_VALUES, read_carefully, read_yaml
from tests.unit.goals.test_calibration import FULL

PRESETS = sorted((Path(goals.__file__).parent / "presets").glob("*.yaml"))
TEXTS = [calibration_text(FULL), *(path.read_text(encoding="utf-8") for path in PRESETS)]
PIECES = [
    "a", "b c", "1", "-1.5", "on", "~", "0o7", "1e5", ".5", "1_0", "- ", "  ", "\n", "\n  ", "\n- ", ": ", ":", ", ", "[", "]", "{", "}",
    "#", " #", "'", '"', "|", ">", "? ", "@", "\t", "\\n", "=", "<<", "---", "&x", "*x", "!", "2026-10-01", "1:30", "\r\n", "null",
    "true", "'a'", "- a\n", "a: 1\n", "  b: [1, 2]\n", "k: {x: 1, y: 'z'}\n", "\ufeff", "\x85", "\u2028", "é", "😀",
]  # fmt: skip


def same(text: str) -> bool:
    """Whether the quick reader took the text; fails where it read anything else than the careful one."""
    try:
        value, lines = plain_values(text, MAX_VALUES)
    except NotPlain:
        return False
    source = read_carefully(text, "file")
    assert repr(value) == repr(source.value)
    assert lines == source.lines
    assert not source.problems
    return True


@pytest.mark.parametrize("text", TEXTS)
def test_what_a_job_writes_and_the_presets_are_read_quickly(text: str) -> None:
    assert same(text)


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_whatever_is_read_quickly_is_read_alike(text: str) -> None:
    same(text)


@settings(max_examples=150)
@given(
    st.sampled_from(TEXTS), st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.sampled_from(PIECES)), min_size=1, max_size=3)
)
def test_a_file_that_a_person_changed_is_read_alike(text: str, changes: list[tuple[float, int, str]]) -> None:
    text = text[:1500]
    for where, gone, put in changes:
        at = int(where * len(text))
        text = text[:at] + put + text[at + gone :]
    same(text)


@pytest.mark.parametrize(
    "text",
    ["a: 1\na: 2\n", "a: !x 1\n", "a: &x 1\nb: *x\n", "a: |\n  text\n", "%YAML 1.1\n---\na: on\n", "a: [1\n", "a:\t1\n", "<<: {a: 1}\n",
     "a: 0x10\n", "a: 1_000\n", "a: .inf\n", f"a: {'1' * 5000}\n", "? [1]\n: 2\n", "a: 1\n---\nb: 2\n", "a: x\x85y\n"],
)  # fmt: skip
def test_what_needs_a_second_look_is_left_to_the_careful_reader(text: str) -> None:
    with pytest.raises(NotPlain):
        plain_values(text, MAX_VALUES)


def test_words_that_older_yaml_takes_for_yes_and_no_are_words() -> None:
    assert plain_values("topic: on\nother: no\nbase: 1:30\n", MAX_VALUES)[0] == {"topic": "on", "other": "no", "base": "1:30"}


def test_a_mistake_is_told_with_its_place_by_every_reader() -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_yaml("a: 1\nb: [1, 2\nc: 3\n", "goals.yaml")
    assert "line 3" in str(refused.value)


def test_more_values_than_a_file_can_need_are_not_read() -> None:
    with pytest.raises(NotPlain):
        plain_values("[1, 2, 3]", most=3)
