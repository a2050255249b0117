"""Capacity files: what each broker can carry, as a person writes it.

Used by `trimtab.capture`, and for a snapshot that was captured before.
``default`` holds for every broker that is not listed, resource by resource.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cluster_model.errors import ConfigurationError, Problem
from cluster_model.kinds import CAPACITIES, other_kind
from cluster_model.quantities import parse_rate, parse_size
from cluster_model.resources import RESOURCES

if TYPE_CHECKING:
    from cluster_model.snapshot import Snapshot

EXAMPLE = "{default: {disk: 2TB, network_in: 100MB/s}, brokers: {7: {disk: 4TB}}}"
KEYS = ("default", "brokers")
_BYTES: dict[str, Callable[[Any], float]] = {"bytes": parse_size, "bytes/s": parse_rate}


@dataclass(frozen=True, slots=True)
class Capacities:
    """Resource to amount, for brokers listed and for all others."""

    default: Mapping[str, float]
    brokers: Mapping[int, Mapping[str, float]]

    def of(self, broker: int) -> dict[str, float]:
        return {**self.default, **self.brokers.get(broker, {})}


def read_capacities(path: Path | None) -> Capacities:
    """Capacities of a file; None gives none.

    Raises
    ------
    ConfigurationError
        Not YAML, an unknown key or resource, a broker that is not a number, an amount that is none; all
        problems at once.
    """
    if path is None:
        return Capacities({}, {})
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), [Problem("", f"cannot be read: {error}")]) from None
    except YAMLError as error:
        raise ConfigurationError(str(path), [Problem("", f"not YAML: {' '.join(str(error).split())}")]) from None
    except RecursionError:
        raise ConfigurationError(str(path), [Problem("", f"nested too deep to be capacities; expected {EXAMPLE}")]) from None
    problems: list[Problem] = []
    if not isinstance(document, dict):
        raise ConfigurationError(str(path), [Problem("", f"expected {EXAMPLE}, found {_kind(document)}")])
    if other := other_kind(document, CAPACITIES):
        raise ConfigurationError(str(path), [Problem("", other)])
    for key in document:
        if key not in KEYS:
            problems.append(Problem(str(key), f"unknown key{_meant(str(key), KEYS) or '; expected default or brokers'}"))
    default = _amounts("default", document.get("default"), problems)
    brokers: dict[int, Mapping[str, float]] = {}
    listed = document.get("brokers")
    if listed is not None and not isinstance(listed, dict):
        problems.append(Problem("brokers", f"expected broker ids with capacities, such as {EXAMPLE}, found {_kind(listed)}"))
        listed = None
    for broker, amounts in (listed or {}).items():
        if isinstance(broker, bool) or not isinstance(broker, int) or broker < 0:
            problems.append(Problem(f"brokers.{broker}", "expected a broker id, a whole number from 0"))
        else:
            brokers[broker] = _amounts(f"brokers.{broker}", amounts, problems)
    if problems:
        raise ConfigurationError(str(path), problems)
    return Capacities(default, brokers)


def with_capacities(snapshot: Snapshot, path: Path) -> Snapshot:
    """`snapshot` with the capacities of a file, which go before its own; what the file does not give stays.

    Raises
    ------
    ConfigurationError
        As `read_capacities`.
    """
    import numpy as np

    capacities, ids = read_capacities(path), snapshot.broker_ids.tolist()
    merged, told = dict(snapshot.capacity), []
    for resource in RESOURCES:
        found = np.array([capacities.of(broker).get(resource, np.nan) for broker in ids])
        count = int((~np.isnan(found)).sum())
        if count:
            merged[resource] = np.where(np.isnan(found), merged.get(resource, np.nan), found)
            told.append(f"{resource} of {count:,} broker{'' if count == 1 else 's'}")
    notes = [f"capacity from {path}: {', '.join(told)}"] if told else []
    notes += [f"{path} lists broker {b}, which the snapshot does not have" for b in sorted(capacities.brokers.keys() - set(ids))]
    return replace(snapshot, capacity=merged, notes=(*snapshot.notes, *notes))


def _amounts(place: str, value: object, problems: list[Problem]) -> dict[str, float]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        problems.append(Problem(place, f"expected resources with amounts, such as {{disk: 2TB}}, found {_kind(value)}"))
        return {}
    amounts: dict[str, float] = {}
    for resource, amount in value.items():
        at = f"{place}.{resource}"
        if resource not in RESOURCES:
            problems.append(
                Problem(
                    at,
                    f"unknown resource{_meant(str(resource), tuple(RESOURCES))}; known are {', '.join(RESOURCES)}",
                )
            )
            continue
        try:
            parsed = _BYTES.get(RESOURCES[resource], _plain)(amount)
        except ValueError as error:
            problems.append(Problem(at, str(error)))
            continue
        if parsed <= 0:
            problems.append(Problem(at, f"expected an amount above 0, found {amount!r}"))
        else:
            amounts[resource] = float(parsed)
    return amounts


def _plain(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == float("inf"):
        raise ValueError(f"expected a plain number, found {value!r}")
    return float(value)


def _kind(value: object) -> str:
    return "nothing" if value is None else f"{type(value).__name__} {value!r}"


def _meant(word: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(word, known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
