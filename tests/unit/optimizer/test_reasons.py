"""Reasons of repairs: each broker that is left is named once, with its state."""

from __future__ import annotations

from optimizer.plan import Change
from optimizer.reasons import reason_of


def test_brokers_that_are_left_are_named_by_state() -> None:
    change = Change("t", 0, (1, 2, 3), (4, 5, 6), 1, 4)
    said = reason_of([change], ["draining_broker", "dead_broker"], None, (), {1: 1, 2: 1, 3: 2})
    assert said == "would take load off draining brokers 1, 2 and dead broker 3"
