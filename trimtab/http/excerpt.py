"""The first actions of a plan and what it comes to, cut from a plan file by lines.

A plan file may have hundreds of megabytes, and stands one action a line (docs/report.md); so a page of it is found without
reading the whole as JSON, and what is kept of it is bounded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MOST_KEPT = 2000  # actions


class ActionsView(BaseModel):
    """Some actions of a plan, in the order they are carried out."""

    model_config = ConfigDict(frozen=True)

    plan_id: str
    total: int = Field(description="actions of the plan")
    offset: int
    actions: list[dict[str, Any]] = Field(description="as in the plan file (docs/report.md)")
    reachable: int = Field(description=f"actions to be had here, at most {MOST_KEPT}; the plan file has all")
    goals: list[dict[str, Any]] = Field(description="as in the plan file")
    summary: dict[str, Any] = Field(description="as in the plan file")
    lower_bounds: dict[str, Any] = Field(description="what no plan can avoid, as in the plan file")
    notes: list[str]


@dataclass(frozen=True)
class Excerpt:
    """What is kept of a plan file; `lines` are its first actions as JSON."""

    plan_id: str
    lines: tuple[str, ...]
    goals: list[dict[str, Any]]
    summary: dict[str, Any]
    lower_bounds: dict[str, Any]
    notes: list[str]

    def page(self, offset: int, limit: int) -> ActionsView:
        return ActionsView(
            plan_id=self.plan_id,
            total=int(self.summary["actions"]),
            offset=offset,
            actions=[json.loads(line) for line in self.lines[offset : offset + limit]],
            reachable=len(self.lines),
            goals=self.goals,
            summary=self.summary,
            lower_bounds=self.lower_bounds,
            notes=self.notes,
        )


def excerpt(text: str) -> Excerpt:
    """What to keep of a plan file.

    Raises
    ------
    ValueError
        The text is not laid out as a plan file is (a bug of the code that made it).
    """
    decode = json.JSONDecoder().raw_decode

    def value(key: str) -> Any:
        mark = f'"{key}":'
        at = text.rfind("\n" + mark)  # no string of a plan file has a line feed or a bare quote in it
        if at < 0:
            raise ValueError(f"expected a line that starts with {mark} in the plan file")
        return decode(text, at + 1 + len(mark))[0]

    begin = text.find('\n"actions":[')
    if begin < 0:
        raise ValueError('expected a line that starts with "actions":[ in the plan file')
    lines: list[str] = []
    at = text.find("\n", begin + 1) + 1
    while len(lines) < MOST_KEPT and text.startswith('{"seq":', at):
        end = text.index("\n", at)
        lines.append(text[at:end].rstrip(",").removesuffix("]"))
        at = end + 1
    plan_id = decode(text, text.index('"plan_id":') + len('"plan_id":'))[0]
    return Excerpt(
        plan_id, tuple(lines), value("goals"), value("summary"), value("lower_bounds"), value("notes")
    )
