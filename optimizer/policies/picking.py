"""Which units to take for an amount: the `order` of a policy. Pure functions on amounts; called by `pipeline` and `shedders`.

`late` marks units that go after all others, whatever they weigh: those of internal topics. Equal ones go by their place.
"""

from __future__ import annotations

from collections.abc import Sequence


def in_order(amounts: Sequence[float], late: Sequence[bool] = (), *, heaviest: bool) -> list[int]:
    """All indices, heaviest or lightest first."""
    sign = -1.0 if heaviest else 1.0
    return sorted(range(len(amounts)), key=lambda i: (bool(late) and late[i], sign * amounts[i], i))


def heaviest_until(amounts: Sequence[float], wanted: float, late: Sequence[bool] = ()) -> list[int]:
    """Indices, heaviest first, until their sum reaches `wanted`; one at least where there is any."""
    taken: list[int] = []
    total = 0.0
    for i in in_order(amounts, late, heaviest=True):
        if taken and total >= wanted:
            break
        taken.append(i)
        total += amounts[i]
    return taken


def best_fit(amounts: Sequence[float], wanted: float, slack: float = 0.0, late: Sequence[bool] = ()) -> list[int]:
    """Indices, heaviest first, of all that still fit into what is wanted, each by at most `slack` more than is left."""
    taken: list[int] = []
    left = wanted
    for i in in_order(amounts, late, heaviest=True):
        if left <= 0.0:
            break
        if 0.0 < amounts[i] <= left + slack:
            taken.append(i)
            left -= amounts[i]
    return taken


def lightest_within(amounts: Sequence[float], wanted: float, late: Sequence[bool] = ()) -> list[int]:
    """Indices, lightest first, as long as their sum stays within `wanted`."""
    taken: list[int] = []
    total = 0.0
    for i in in_order(amounts, late, heaviest=False):
        if amounts[i] <= 0.0:
            continue
        if total + amounts[i] > wanted:
            break
        taken.append(i)
        total += amounts[i]
    return taken
