"""Compiled code is used again where it is still right, and only there."""

from __future__ import annotations

import importlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kernels import cache as kernel_cache

CALLED = "def called(x):\n    return x + 1\n"
NUMBERS = "LIMIT = 3\nother = 4\n"
CALLER = """
from typing import NamedTuple
from numbers_of_a_test import LIMIT
from called_of_a_test import called

def caller(x):
    return called(x) + LIMIT
"""


@pytest.fixture(autouse=True)
def unknown_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As a process that has not imported the modules of these tests."""
    monkeypatch.setattr(kernel_cache, "_keys", {})
    yield
    for name in [n for n in sys.modules if n.endswith("_of_a_test")]:
        del sys.modules[name]


class Compiled:
    """What stands in a module in place of a function with a compiled form."""

    def __init__(self, function: object) -> None:
        self.py_func = function


def key(place: Path, *, called: str = CALLED, numbers: str = NUMBERS, caller: str = CALLER) -> str:
    """Of the module `caller`, with these sources, in a process of its own."""
    place.mkdir()
    sources = {"called": called, "numbers": numbers, "caller": caller}
    for name, text in sources.items():
        (place / f"{name}_of_a_test.py").write_text(text)
    return key_at(place)


def key_at(place: Path) -> str:
    kernel_cache._keys.clear()
    for name in [n for n in sys.modules if n.endswith("_of_a_test")]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, str(place))
    try:
        below: ModuleType = importlib.import_module("called_of_a_test")
        kernel_cache.key_of(below.called)
        below.called = Compiled(below.called)  # type: ignore[attr-defined]
        return kernel_cache.key_of(importlib.import_module("caller_of_a_test").caller)
    finally:
        sys.path.remove(str(place))


def test_a_copy_elsewhere_uses_what_the_first_compiled(tmp_path: Path) -> None:
    """A second checkout, or an environment built again, compiled for two minutes what was there."""
    assert key(tmp_path / "one") == key(tmp_path / "two")


def test_a_zip_uses_what_a_folder_compiled(tmp_path: Path) -> None:
    """Spark's executors get a zip, and compiled again for every application."""
    there = key(tmp_path / "one")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as zipped:
        for source in (tmp_path / "one").glob("*.py"):
            zipped.write(source, source.name)
    assert key_at(tmp_path / "all.zip") == there


def test_what_the_code_is_made_of_renews_it(tmp_path: Path) -> None:
    """Stale code would decide by rules that are no longer in the source."""
    keys = [
        key(tmp_path / "same"),
        key(tmp_path / "own", caller=CALLER.replace("+ LIMIT", "- LIMIT")),
        key(tmp_path / "callee", called=CALLED.replace("+ 1", "+ 2")),
        key(tmp_path / "constant", numbers=NUMBERS.replace("LIMIT = 3", "LIMIT = 5")),
    ]
    assert len(set(keys)) == len(keys)


def test_what_it_does_not_use_does_not(tmp_path: Path) -> None:
    assert key(tmp_path / "same") == key(tmp_path / "other", numbers=NUMBERS.replace("other = 4", "other = 5"))


def test_a_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(kernel_cache.CACHE_VARIABLE, str(tmp_path))
    assert kernel_cache.wanted_folder() == tmp_path
