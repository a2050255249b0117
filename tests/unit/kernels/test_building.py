"""What a process that only compiles changes in numba: how fast options are compared, never which are equal."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kernels.building import hasten


def test_options_compared_at_once_are_equal_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.core.compiler import Flags
    from numba.core.targetconfig import TargetConfig

    monkeypatch.setattr(TargetConfig, "__eq__", TargetConfig.__eq__)  # both are put back in the end
    monkeypatch.setattr(TargetConfig, "__hash__", TargetConfig.__hash__)
    every_kind: list[Any] = [Flags() for _ in range(4)]  # type: ignore[no-untyped-call]
    plain, same, other, further = every_kind
    for each in (plain, same, other, further):
        each.nrt, each.error_model = True, "numpy"
    other.nrt = False
    further.fastmath = {"nnan"}
    every = [plain, same, plain.copy(), other, other.copy(), further]
    before = [a == b for a, b in itertools.product(every, every)]
    hasten()
    monkeypatch.setattr(TargetConfig, "values", None)  # which asks for the options one by one
    assert [a == b for a, b in itertools.product(every, every)] == before
    assert all(hash(a) == hash(b) for a, b in itertools.product(every, every) if a == b)
    assert plain != "options"
    assert before.count(True) == 3 * 3 + 2 * 2 + 1
