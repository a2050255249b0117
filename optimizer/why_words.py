"""Loads, numbers and names as the sentences of a plan say them."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_model.quantities import format_size, percent
from cluster_model.resources import RESOURCES


def counted(number: int, noun: str) -> str:
    """``1 replica``, ``1,234 replicas``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def few(names: Sequence[str], most: int = 3) -> str:
    """``a, b``; ``a, b, c and 2 more`` beyond `most`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def beside(share: float) -> str:
    """``12% above``, ``9.1% below``, or ``at``, of what is a share of the mean beyond it."""
    off = percent(abs(share))
    return "at" if off == percent(0.0) else f"{off} {'above' if share > 0 else 'below'}"


def amount(value: float, resource: str) -> str:
    """A load with its unit, three significant digits or whole."""
    unit = RESOURCES.get(resource, "")
    if unit == "count":
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if unit.startswith("bytes"):
        return f"{format_size(value)}{unit[5:]}"
    return f"{value:,.0f} {unit}" if abs(value) >= 1000 else f"{value:.3g} {unit}"
