"""The goal kinds and the shipped presets, by name.

Called by `goals.document` and by ``trimtab goals``. Both tables are written out: a kind or preset that is not
in them does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

from pydantic import BaseModel

from goals import schema


@dataclass(frozen=True, slots=True)
class Parameter:
    """One key of a goal: `default` is None where the key must be given."""

    name: str
    default: str | None
    description: str


@dataclass(frozen=True, slots=True)
class GoalKind:
    """A kind of goal: its name in files, one line on what it wants, and its part of the schema."""

    name: str
    summary: str
    document: type[schema.GoalDocument]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Keys beyond `kind`, required ones first."""
        found = [
            Parameter(key, None if info.is_required() else "" if info.default is None else _default(info.default), info.description or "")
            for key, info in self.document.model_fields.items()
            if key != "kind"
        ]
        return tuple(sorted(found, key=lambda parameter: parameter.default is not None))


def _default(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _kind_name(document: type[BaseModel]) -> str:
    (name,) = document.model_fields["kind"].annotation.__args__  # type: ignore[union-attr]
    return str(name)


def _table(documents: Iterable[type[schema.GoalDocument]]) -> dict[str, GoalKind]:
    table: dict[str, GoalKind] = {}
    for document in documents:
        name = _kind_name(document)
        if name in table:
            raise ValueError(f"goal kind {name!r} is registered twice")
        table[name] = GoalKind(name, (document.__doc__ or "").strip(), document)
    return table


KINDS: dict[str, GoalKind] = _table((
    schema.RackAwareDocument, schema.CapacityDocument, schema.CountLimitDocument,
    schema.UsageDistributionDocument, schema.TopicDistributionDocument, schema.TopicMinimumDocument,
))  # fmt: skip

PRESETS: dict[str, str] = {
    "default": "racks and capacity kept, then network in and out, disk, cpu, replicas and leaders level",
    "counts": "racks kept, replica and leader counts level; for clusters without metrics",
    "topics": "counts, and each topic's replicas and leaders spread over the brokers as well",
    "automq": "network in and out level as AutoMQ does it; for shared storage, one replica, nothing to copy",
}


def preset_text(name: str) -> str:
    """YAML text of a shipped preset. Raises `KeyError` for a name that is not in `PRESETS`."""
    if name not in PRESETS:
        raise KeyError(name)
    return (files("goals") / "presets" / f"{name}.yaml").read_text("utf-8")
