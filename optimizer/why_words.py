"""Loads, numbers and names as the sentences of a plan say them."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_model.quantities import format_size, percent
from cluster_model.resources import RESOURCES

MOST_DIGITS = 9  # that a plan prints


def counted(number: int, noun: str) -> str:
    """``1 replica``, ``1,234 replicas``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def few(names: Sequence[str], most: int = 3) -> str:
    """``a, b``; ``a, b, c and 2 more`` beyond `most`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def beside(share: float, distance: str | None = None) -> str:
    """``12% above``, ``9.1% below``, or ``at``, of what is a share of the mean beyond it; `distance` where it is written already."""
    off = distance or percent(abs(share))
    return "at" if off == percent(0.0) else f"{off} {'above' if share > 0 else 'below'}"


def amount(value: float, resource: str, digits: int = 3) -> str:
    """A load with its unit, `digits` significant digits or whole."""
    unit = RESOURCES.get(resource, "")
    if unit == "count":
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if unit.startswith("bytes"):
        return f"{format_size(value, digits)}{unit[5:]}"
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:.{digits}g} {unit}"


def amounts(value: float, line: float, resource: str) -> tuple[str, str]:
    """A load and its limit, with as many digits as tell them apart: ``800.1 GB``, ``800 GB``."""
    digits = 3
    told = amount(value, resource), amount(line, resource)
    while told[0] == told[1] and value != line and digits < MOST_DIGITS:
        digits += 1
        told = amount(value, resource, digits), amount(line, resource, digits)
    return told
