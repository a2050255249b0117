"""Loads, numbers and names as the sentences of a plan say them."""

from __future__ import annotations

from collections.abc import Sequence

from cluster_model.resources import RESOURCES


def counted(number: int, noun: str) -> str:
    """``1 replica``, ``1,234 replicas``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def few(names: Sequence[str], most: int = 3) -> str:
    """``a, b``; ``a, b, c and 2 more`` beyond `most`."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def amount(value: float, resource: str) -> str:
    """A load with its unit, three significant digits."""
    unit = RESOURCES.get(resource, "")
    if unit == "count":
        return f"{value:.4g}"
    if unit.startswith("bytes"):
        for power, name in ((12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
            if abs(value) >= 10**power:
                return f"{value / 10**power:.3g} {name}{unit[5:]}"
        return f"{value:.3g} B{unit[5:]}"
    return f"{value:.3g} {unit}"
