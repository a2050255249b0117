"""`trimtab policies`: what parts policies are made of, the presets, and which bundle a topic is in.

Prints; what parts do is `optimizer.policies`', what a policy may say is `goals.policy`'s.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import Annotated, Literal

import typer

from cluster_model.errors import ConfigurationError, Problem
from trimtab.commands import options as o
from trimtab.commands import values as v
from trimtab.commands.records import expanded
from trimtab.output import emit, overwritten, unwritable
from trimtab.signals import ending_at_once
from trimtab.story import Story

Form = Annotated[Literal["text", "json"], typer.Option("--format", help="Output format.")]


def register(app: typer.Typer) -> None:
    """Add the command and its parts to `app`."""
    group = typer.Typer(name="policies", help="Policies: the parts that a plan can be made of, and presets of them.")
    group.command("list")(list_parts)
    group.command("show")(show)
    group.command("lookup")(lookup)
    app.add_typer(group)


def list_parts(form: Form = "text") -> None:
    """List the presets and every part by stage: what it does, and the system it comes from."""
    from optimizer.policies.registry import PRESET_WORDS, parts_by_stage

    stages = parts_by_stage()
    if form == "json":
        parts = {s: {p.name: {"summary": p.summary, "source": p.source} for p in of.values()} for s, of in stages.items()}
        emit(json.dumps({"presets": PRESET_WORDS, "parts": parts}, indent=1) + "\n", None)
        return
    width = max(map(len, (*PRESET_WORDS, *(name for of in stages.values() for name in of)))) + 2
    lines = ["presets", *(f"  {name:<{width}}{words}" for name, words in PRESET_WORDS.items())]
    for stage, of in stages.items():
        lines += ["", stage, *(f"  {p.name:<{width}}{p.summary} ({p.source})" for p in of.values())]
    emit("\n".join(lines) + "\n", None)


def show(name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a preset or of a part.", show_default=False)]) -> None:
    """Print a preset as YAML for a goals file, every default filled in; or what a part does."""
    from goals.policy import PolicyDocument
    from goals.policy_presets import POLICY_PRESETS
    from optimizer.policies.registry import parts_by_stage

    if name in POLICY_PRESETS:
        whole = PolicyDocument.model_validate({"preset": name}).model_dump(exclude_none=True)
        del whole["preset"]
        head = f"# A part of a goals file, for below its goals or `preset: default`. In short: policy: {{preset: {name}}}\n"
        emit(head + _yaml({"policy": whole}), None)
        return
    parts = [part for of in parts_by_stage().values() for part in of.values()]
    found = [part for part in parts if part.name == name]
    if not found:
        names = [*POLICY_PRESETS, *(part.name for part in parts)]
        near = [known for known in names if known.startswith(name)] or get_close_matches(name, names, n=1)
        meant = f"did you mean {near[0]!r}?" if near else "`trimtab policies list` has all names"
        raise ConfigurationError("trimtab policies show", [Problem("NAME", f"unknown {name!r}; {meant}")])
    emit("".join(f"{part.stage} {part.name}: {part.summary} ({part.source})\n" for part in found), None)


@expanded
def lookup(
    context: typer.Context,
    *,
    topic: Annotated[str | None, typer.Option("--topic", metavar="NAME", help="All partitions of this topic.")] = None,
    partition: Annotated[
        v.TopicPartition | None,
        typer.Option("--partition", parser=v.parsed_by(v.parse_partition), metavar="TOPIC-N", help="This topic-partition."),
    ] = None,
    source: o.Source,
    wanted: o.Wanted,
    form: Form = "text",
    out: o.Out = None,
) -> None:
    """Print which bundle a topic or a partition is in, and which brokers carry it.

    A bundle is a range of CRC32 hashes in a namespace. Bundles are those of `unit: group` in the policy of the goals, after its splits;
    without such a policy plans use none, and the four of each namespace are shown.
    """
    problems = source.problems()
    problems += v.exactly_one({"--topic": topic, "--partition": partition}, "ask about one topic or one partition")
    problems += overwritten({"--out": out, "--save-snapshot": source.save_snapshot}, source.files | wanted.files)
    problems += unwritable("--out", out)
    if problems:
        raise ConfigurationError("trimtab policies lookup", problems)
    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(context.find_object(Story) or Story())
        from dataclasses import asdict

        from cluster_model.plain_text import printable
        from goals.wording import meant_or_known
        from optimizer.detectors import policy_of
        from optimizer.explain import unknown_partition
        from optimizer.policies.lookup import bundles_in, carried, carried_text, locate, located_text, remarks

        if topic is not None and topic not in cluster.row_of_topic:
            known = f"unknown topic {topic!r}; {meant_or_known(topic, list(cluster.topics))}"
            raise ConfigurationError("trimtab policies lookup", [Problem("--topic", known)])
        policy = policy_of(goal_set)
        groups = bundles_in(cluster, policy)
        one = (topic, None) if topic is not None else (partition.topic, partition.number) if partition is not None else ("", None)
        located = locate(cluster, groups, *one)
        if partition is not None and not located[0].replicas:
            would = f"its hash {located[0].hash:08x} would be in {located[0].bundle}"
            known = f"{unknown_partition(cluster, partition.topic, partition.number)}; {would}"
            raise ConfigurationError("trimtab policies lookup", [Problem("--partition", known)])
        bundles = [carried(cluster, groups, name) for name in dict.fromkeys(p.bundle for p in located)]
        if form == "json":
            partitions = [{**asdict(p), "hash": f"{p.hash:08x}"} for p in located]
            used = policy.unit == "group"
            answer = json.dumps({"used": used, "partitions": partitions, "bundles": [asdict(b) for b in bundles]}, indent=1)
        else:
            answer = "\n".join(map(printable, [*map(located_text, located), *map(carried_text, bundles), *remarks(policy, bundles)]))
    source.keep(cluster)
    emit(answer + "\n", out)


def _yaml(document: object) -> str:
    from io import StringIO

    from ruamel.yaml import YAML

    page = StringIO()
    writer = YAML()
    writer.default_flow_style = False
    writer.dump(document, page)
    return page.getvalue()
