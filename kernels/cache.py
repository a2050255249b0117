"""Where compiled kernels are kept: one folder per module and content, shared by all copies of the same sources.

numba asks `KernelFolder` where to keep a function. It would look at the function's file alone and at where that file stands; here
the key is what the code is made of: the source of its module, the keys of the modules whose kernels it calls, and the values of
constants from elsewhere. So a change in one module renews it and those that call it, no others; a second checkout, an environment
or a zip of the same sources finds what the first compiled.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from kernels import compiled, processor

CACHE_VARIABLE = "NUMBA_CACHE_DIR"
BUILDERS = ("building", "linking", "by_reference", "prefetch")  # modules that decide what a kernel becomes
CONSTANTS = (bool, int, float, str, bytes, tuple, frozenset, np.generic)

_keys: dict[str, str] = {}  # module -> key, of all modules with kernels imported so far


class KernelFolder:
    """A cache locator of numba for one function (https://numba.readthedocs.io/en/stable/developer/caching.html)."""

    def __init__(self, function: FunctionType) -> None:
        self._key = key_of(function)
        self._line = function.__code__.co_firstlineno
        self.name = f"{function.__module__}-{self._key}"
        self._folder = folder() / self.name

    @classmethod
    def from_function(cls, function: FunctionType, _file: str) -> KernelFolder:
        made = cls(function)
        made.ensure_cache_path()
        return made

    def ensure_cache_path(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return self._key

    def get_disambiguator(self) -> str:
        return str(self._line)


def holds(function: FunctionType) -> bool:
    """Whether there is machine code of `function` on disk, for some types of what it is given."""
    kept, shipped = KernelFolder(function), processor.shipped()
    pattern = f"{kept.name}/*.{function.__name__}-{kept.get_disambiguator()}.*.nbi"
    return any(any(each.glob(pattern)) for each in (folder(), *(shipped[:1] if shipped else ())))


def key_of(function: Callable[..., object]) -> str:
    """The key of the module of a function, made when its first kernel is: what it imports is there by then."""
    name = function.__module__
    if name not in _keys:
        seen = function.__globals__
        digest = hashlib.sha256(_versions().encode() if compiled.COMPILED else b"")
        for part in BUILDERS:
            digest.update(_source_of(f"kernels.{part}"))
        digest.update(_source(seen))
        for line in _ingredients(name, seen):
            digest.update(line.encode())
        _keys[name] = digest.hexdigest()[:16]
    return _keys[name]


def _source(seen: Mapping[str, Any]) -> bytes:
    """Of the module with these globals, from a folder or a zip."""
    loader: Any = seen["__loader__"]
    return bytes(loader.get_data(seen["__file__"]))


@cache
def _source_of(module: str) -> bytes:
    """The same without importing it, which may import numba."""
    spec: Any = find_spec(module)
    return bytes(spec.loader.get_data(spec.origin))


def _ingredients(module: str, seen: Mapping[str, Any]) -> Iterator[str]:
    """What a module with kernels has from others: their kernels by key, constants and fields of tuples by value."""
    for name in sorted(seen):
        value = seen[name]
        if name.startswith("__"):
            continue
        if hasattr(value, "py_func"):
            yield f"{name} {getattr(value, 'targetoptions', None)}\n"
            if (other := value.py_func.__module__) != module:
                yield f"{name} of {other} {key_of(value.py_func)}\n"
        elif isinstance(value, type) and issubclass(value, Enum):
            yield f"{name} {[(each.name, each.value) for each in value]}\n"
        elif isinstance(value, type) and issubclass(value, tuple):
            yield f"{name} {getattr(value, '_fields', ())}\n"
        elif isinstance(value, CONSTANTS):
            yield f"{name} {value!r}\n"
        elif isinstance(value, np.ndarray):
            yield f"{name} {value.dtype} {value.shape} {value.tobytes().hex()}\n"


@cache
def _versions() -> str:
    """And what else changes all compiled code."""
    switches = [os.environ.get(f"NUMBA_{name}") for name in ("BOUNDSCHECK", "OPT")]
    return f"{sys.version} {np.__version__} {version('numba')} {switches}"


@cache
def folder() -> Path:
    """Where all kernels are kept, or a folder of this process alone where nothing can be."""
    wanted = wanted_folder()
    try:
        wanted.mkdir(parents=True, exist_ok=True)
        if os.access(wanted, os.W_OK | os.X_OK):
            return wanted
    except OSError:
        pass
    own = Path(tempfile.mkdtemp(prefix="trimtab-kernels-"))
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own


def wanted_folder() -> Path:
    """Where kernels are kept if that can be written: what `NUMBA_CACHE_DIR` names, or the user's cache."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given)
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "trimtab" / "kernels"
    try:
        return Path.home() / ".cache" / "trimtab" / "kernels"
    except RuntimeError:  # a user without a name, as in some containers
        return Path("/nonexistent")


def are_kept() -> bool:
    """Whether compiled kernels outlive this process."""
    return folder() == wanted_folder()
