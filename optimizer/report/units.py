"""How reports write numbers: sizes, amounts of a resource, shares, counts.

Called by every report a person reads. Three significant digits, decimal prefixes.
"""

from __future__ import annotations

from cluster_model.quantities import percent as percent
from cluster_model.resources import RESOURCES

PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def prefixed(value: float) -> tuple[str, str]:
    """Three significant digits and the decimal prefix: 41_230_000_000 -> ("41.2", "G")."""
    sign, value = ("-", -value) if value < 0 else ("", value)
    step = 0
    while step < len(PREFIXES) - 1 and float(f"{value:.3g}") >= 1000:
        value /= 1000
        step += 1
    if value >= 999.5 or (step == 0 and value == int(value)):
        return f"{sign}{value:.0f}", PREFIXES[step]
    decimals = 2 if float(f"{value:.3g}") < 10 else 1 if float(f"{value:.3g}") < 100 else 0
    return f"{sign}{value:.{decimals}f}", PREFIXES[step]


def size(amount: float) -> str:
    """Bytes for people: ``41.2 GB``."""
    number, prefix = prefixed(amount)
    return f"{number} {prefix}B"


def amount(value: float, resource: str) -> str:
    """A load in its unit: ``84.2 MB/s``, ``3.21 cores``, ``412``."""
    unit = RESOURCES.get(resource, "")
    number, prefix = prefixed(value)
    match unit:
        case "bytes":
            return f"{number} {prefix}B"
        case "bytes/s":
            return f"{number} {prefix}B/s"
        case "cores":
            return f"{number}{prefix} core{'' if number == '1' and not prefix else 's'}"
        case "requests/s":
            return f"{number}{prefix} req/s"
        case "count":
            return f"{value:,.0f}"
        case _:
            return number + prefix


def exact(value: float, resource: str) -> str:
    """The same load unrounded, for a title."""
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.9g}"
    unit = RESOURCES.get(resource, "")
    return text if unit in ("", "count") else f"{text} {unit}"


def share_in_band(share: float) -> str:
    """Percent that says 100% only when all are within their target range, and 0% only when none is."""
    tenths = share * 1000
    if tenths <= 0 or tenths >= 1000:
        return "0%" if tenths <= 0 else "100%"
    if tenths < 1 or tenths > 999:
        return "<0.1%" if tenths < 1 else ">99.9%"
    return f"{int(tenths) / 10:.1f}%" if tenths > 990 else percent(share)


def turn(before: float, after: float, resource: str) -> tuple[str, str]:
    """Two amounts of one resource; the first without its unit where that is the unit of the second."""
    first, then = amount(before, resource), amount(after, resource)
    number, _, unit = first.rpartition(" ")
    return (number, then) if number and then.endswith(" " + unit) and first != then else (first, then)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """``1 move``, ``1,234 moves``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listing(names: list[str], most: int = 5) -> str:
    """``7, 9 and 11``; ``7, 9, 11 and 4 more`` beyond `most`."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most:,} more"
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1] if names else ""


def resource_label(resource: str) -> str:
    """``network in`` for ``network_in``."""
    return resource.replace("_", " ")


def ratio(used: float, bound: float) -> str | None:
    """How often `bound` fits into `used`: ``1.04x``; None where the bound is 0."""
    return f"{used / bound:.2f}×" if bound > 0 else None
