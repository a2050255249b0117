"""`trimtab schema`: JSON Schemas of the files that Trimtab reads and writes. Prints; what a file may hold is its own room's."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from trimtab.commands import options as o
from trimtab.output import emit, require_writable

Kind = Literal["snapshot", "goals", "plan", "calibration"]


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("schema")(schema_command)


def schema_command(
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="Kind of file.", show_default=False)],
    out: o.Out = None,
) -> None:
    """Print the JSON Schema of snapshot, goals, plan or calibration files, for editors and other tools."""
    require_writable("trimtab schema", out)
    emit(json.dumps(schema_of(kind), indent=2, ensure_ascii=False), out)


def schema_of(kind: Kind) -> dict[str, Any]:
    """The schema of one kind of file."""
    match kind:
        case "snapshot":
            from cluster_model.schema import snapshot_schema

            return snapshot_schema()
        case "goals":
            from goals.schema import json_schema

            return json_schema()
        case "plan":
            from optimizer.report.schema import plan_schema

            return plan_schema()
        case "calibration":
            from goals.calibration.models import Calibration

            return {"$schema": "https://json-schema.org/draft/2020-12/schema", **Calibration.model_json_schema()}
