"""`trimtab policies`: what parts policies are made of, and the presets.

Prints; what parts do is `optimizer.policies`', what a policy may say is `goals.policy`'s.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from trimtab.output import emit

Form = Annotated[Literal["text", "json"], typer.Option("--format", help="Shape of the data.")]


def register(app: typer.Typer) -> None:
    """Add the command and its parts to `app`."""
    group = typer.Typer(name="policies", help="Policies: the parts that a plan can be made of, and presets of them.")
    group.command("list")(list_parts)
    group.command("show")(show)
    app.add_typer(group)


def list_parts(form: Form = "text") -> None:
    """List the presets and every part by stage: what it does, and the system it comes from."""
    from optimizer.policies.registry import PRESET_WORDS, parts_by_stage

    stages = parts_by_stage()
    if form == "json":
        parts = {s: {p.name: {"summary": p.summary, "source": p.source} for p in of.values()} for s, of in stages.items()}
        emit(json.dumps({"presets": PRESET_WORDS, "parts": parts}, indent=1) + "\n", None)
        return
    lines = ["presets", *(f"  {name:<22}{words}" for name, words in PRESET_WORDS.items())]
    for stage, of in stages.items():
        lines += ["", stage, *(f"  {p.name:<22}{p.summary} ({p.source})" for p in of.values())]
    emit("\n".join(lines) + "\n", None)


def show(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a preset or of a part.", show_default=False)]) -> None:
    """Print a preset as YAML for a goals file, every default filled in; or what a part does."""
    from goals.policy import PolicyDocument
    from goals.policy_presets import POLICY_PRESETS
    from goals.wording import meant_or_known
    from optimizer.policies.registry import parts_by_stage

    if name in POLICY_PRESETS:
        whole = PolicyDocument.model_validate({"preset": name}).model_dump(exclude_none=True)
        del whole["preset"]
        emit(_yaml({"policy": whole}), None)
        return
    parts = [part for of in parts_by_stage().values() for part in of.values()]
    found = [part for part in parts if part.name == name]
    if not found:
        known = [*POLICY_PRESETS, *(part.name for part in parts)]
        raise ConfigurationError("trimtab policies show", [Problem("NAME", f"unknown {name!r}; {meant_or_known(name, known)}")])
    emit("".join(f"{part.stage} {part.name}: {part.summary} ({part.source})\n" for part in found), None)


def _yaml(document: object) -> str:
    from io import StringIO

    from ruamel.yaml import YAML

    page = StringIO()
    writer = YAML()
    writer.default_flow_style = False
    writer.dump(document, page)
    return page.getvalue()
