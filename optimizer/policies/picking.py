"""Which units to take for an amount: the `order` of a policy. Pure functions on amounts; called by `pipeline`.

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


def best_fit(amounts: Sequence[float], wanted: float, late: Sequence[bool] = (), slack: float = 0.0) -> list[int]:
    """Indices, heaviest first, of all that still fit into what is wanted, or exceed it by no more than `slack`."""
    taken: list[int] = []
    left = wanted
    for i in in_order(amounts, late, heaviest=True):
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


def offload(
    going: Sequence[float], coming: Sequence[float], wanted: float, giver: float, taker: float, *,
    stays: Sequence[bool] = (), late: Sequence[bool] = (), keep: int = 1,
) -> list[tuple[int, tuple[int, ...]]]:  # fmt: skip
    """Indices of `going`, lightest first, until `wanted` has left net; each with those of `coming` that come back so that it may leave.

    A unit that is too heavy alone is swapped, against as many as it takes. `giver` and `taker` are what the two carry before; after a swap
    the giver is below that. Units that `stays` marks are left where they are, and so are the last `keep`.

    Source: Apache Pulsar's transfer shedder. There the giver is below 75% of that after a swap, and what comes back counts in debug mode
    only.
    """
    found: list[tuple[int, tuple[int, ...]]] = []
    net, used = 0.0, set[int]()
    order = in_order(going, late, heaviest=False)
    for left, i in zip(range(len(order) - 1, -1, -1), order, strict=True):
        if going[i] <= 0.0 or (stays and stays[i]):
            continue
        if left < keep:
            break
        back: tuple[int, ...] = ()
        if net + going[i] > wanted:
            back = _returned(coming, net + going[i], giver, taker, used)
            if not back:
                break
            used.update(back)
        found.append((i, back))
        net += going[i] - sum(coming[j] for j in back)
    return found


def _returned(coming: Sequence[float], net: float, giver: float, taker: float, used: set[int]) -> tuple[int, ...]:
    """What comes back, lightest first, so that `net` may leave: until the taker is not above the giver, and both are below what that had.
    Empty where nothing leads there."""
    amount, chosen = 0.0, list[int]()
    for j in in_order(coming, heaviest=False):
        if j in used or coming[j] <= 0.0:
            continue
        gives, takes = giver - net + amount + coming[j], taker + net - amount - coming[j]
        if gives >= giver or takes >= giver:
            continue
        amount += coming[j]
        chosen.append(j)
        if takes <= gives:
            return tuple(chosen)
    return ()
