"""Sizes and durations as people write them: ``500MB``, ``10GiB``, ``30s``, ``5m``.

Used by goal files and by the command line. Each parser raises `ValueError` whose message says what was
expected and what was found; the caller adds the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

SIZE_UNITS: Final[dict[str, int]] = {
    "B": 1,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50,
}  # fmt: skip
LEAST_THROTTLE: Final = 1_000_000  # bytes/s of a plain number: with less, its unit was forgotten
DURATION_UNITS: Final[dict[str, Decimal]] = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
LARGEST_SIZE: Final = 2**63 - 1  # what the columns of a snapshot hold
_NUMBER_AND_UNIT = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?)\s*(?P<unit>[A-Za-z]*)", re.ASCII
)
MOST_DECIMALS = 6  # of a percentage
_DISPLAYED: Final = ("B", "kB", "MB", "GB", "TB", "PB")


def parse_size(value: str | float, expected: str = "a size such as 500MB, 10GiB or a plain number of bytes") -> int:
    """Bytes of a size such as ``500MB`` (powers of 1000), ``10GiB`` (powers of 1024) or a plain number.

    A fraction of a byte is dropped, so that a budget is never exceeded. `expected` is what an error says was expected.

    Raises
    ------
    ValueError
        Not a size, negative, not finite, or an unknown unit; units are spelt exactly, since ``Mb`` are bits
        elsewhere.
    """
    number, unit = _split(value, expected)
    factor = SIZE_UNITS.get(unit or "B")
    if factor is None:
        spelt = unit.lower()
        meant = [u for u in SIZE_UNITS if u != "KB" and u.lower() in (spelt, f"{spelt}b", f"{spelt}ib")]
        raise ValueError(_unknown_unit(value, number, unit, meant, SIZE_UNITS))
    size = int(number * factor)
    if size > LARGEST_SIZE:
        raise ValueError(f"expected a size below 8EiB, found {value!r}")
    return size


def parse_rate(value: str | float) -> int:
    """Bytes per second of ``50MB/s``, ``50MB`` or a plain number. Raises as `parse_size` does."""
    rate = "a rate such as 50MB/s or a plain number of bytes a second"
    return parse_size(value.strip().removesuffix("/s") if isinstance(value, str) else value, rate)


def parse_throttle(value: str | float) -> int:
    """As `parse_rate`, of a rate that copies are limited to: above 0, and a plain number is `LEAST_THROTTLE` at least.

    Raises
    ------
    ValueError
        As `parse_size`, or it is 0, or a unit was forgotten.
    """
    rate = parse_rate(value)
    if rate <= 0:
        raise ValueError(f"expected a rate above 0 such as 50MB/s, found {value!r}")
    if rate < LEAST_THROTTLE and (not isinstance(value, str) or value.strip().isdigit()):
        number = str(value).strip()
        meant = f"{number}MB/s" if len(number) < 5 else "a unit as in 50MB/s"
        raise ValueError(f"expected a rate with its unit, found {number}; write {meant}, or {number}B/s for {number} bytes a second")
    return rate


def parse_duration(value: str | float) -> float:
    """Seconds of a duration such as ``250ms``, ``30s``, ``5m``, ``1h``, ``7d`` or a plain number.

    Raises
    ------
    ValueError
        Not a duration, negative, not finite, or an unknown unit.
    """
    number, unit = _split(value, "a duration such as 30s, 5m, 1h or a plain number of seconds")
    factor = DURATION_UNITS.get(unit or "s")
    if factor is None:
        spelt = unit.lower()
        meant = ["ms"] if spelt.startswith(("ms", "mil")) else [u for u in "smhd" if u == spelt[0]]
        raise ValueError(_unknown_unit(value, number, unit, meant, DURATION_UNITS))
    return float(number * factor)


def format_size(count: float, digits: int = 3) -> str:
    """A size for people, `digits` significant digits, powers of 1000: ``5 GB``, ``1.25 MB``, ``-300 kB``."""
    sign, amount = ("-", -count) if count < 0 else ("", float(count))
    for unit in _DISPLAYED:
        if float(f"{amount:.{digits}g}") < 1000 or unit == _DISPLAYED[-1]:
            break
        amount /= 1000
    shown = f"{amount:.{digits}g}" if amount < 1000 else f"{amount:.0f}"
    return f"{sign}{shown} {unit}"


def percent(share: float | None, *, signed: bool = False) -> str:
    """A share 0..1 as percent for people: ``12%``, ``+9.1%``; a dash for None. One decimal below ten percent."""
    if share is None:
        return "–"
    value = share * 100
    if abs(value) < 0.05:
        return "0%"
    text = f"{value:+.1f}" if signed else f"{value:.1f}"
    if abs(value) >= 9.95 or text.endswith(".0"):
        text = f"{value:+,.0f}" if signed else f"{value:,.0f}"
    return text + "%"


def told_apart(share: float, line: float) -> tuple[str, str]:
    """A share and what it is compared with as percent, with as many decimals as tell them apart: ``85.04%``, ``85.00%``."""
    told, decimals = (percent(share), percent(line)), 0
    while told[0] == told[1] and share != line and decimals < MOST_DECIMALS:
        decimals += 1
        told = f"{share:.{decimals}%}", f"{line:.{decimals}%}"
    return told


def _split(value: str | float, expected: str) -> tuple[Decimal, str]:
    """The number and the unit ("" where there is none) of `value`."""
    found = f"expected {expected}, found {value!r}"
    if isinstance(value, bool):
        raise ValueError(found)
    if isinstance(value, int | float):
        number = Decimal(str(value))
        if not number.is_finite() or number < 0:
            raise ValueError(f"{found}; it must be finite and not negative")
        return number, ""
    if not isinstance(value, str):
        raise ValueError(found)
    match = _NUMBER_AND_UNIT.fullmatch(value.strip())
    if match is None:
        raise ValueError(found)
    return Decimal(match["number"]), match["unit"]


def _unknown_unit(value: object, number: Decimal, unit: str, meant: list[str], known: Iterable[str]) -> str:
    """Message for an unknown unit, with the spellings that were most likely `meant` where there are any."""
    spellings = " or ".join(f"{number}{name}" for name in meant)
    hint = f"write {spellings}" if meant else f"units are {', '.join(known)}"
    return f"unknown unit {unit!r} in {value!r}; {hint}"
