"""A plan file (`optimizer.report.json_form`) read back into a `Plan`, so that a saved plan can be shown, compared and carried out.

Called by the command line. Checks the shape, and that each change names replicas and a leader that Kafka would take; whether the plan
still fits a cluster is for its executor to ask.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from cluster_model.errors import InputError, Problem
from cluster_model.kinds import MAKES, PLAN, other_kind
from optimizer.plan import Action, Band, Batches, BrokerOutcome, Change, GoalOutcome, LowerBounds, Plan, Skipped, Summary

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
GZIP = b"\x1f\x8b"
LONGEST_FOUND = 60
PLAINLY = {  # kinds of errors in words that need no knowledge of a programming language
    "int_type": "expected a whole number", "int_from_float": "expected a whole number", "float_type": "expected a number",
    "string_type": "expected a text", "list_type": "expected a list", "tuple_type": "expected a list", "dict_type": "expected an object",
    "bool_type": "expected true or false", "finite_number": "expected a finite number",
}  # fmt: skip
SHAPES: dict[type, str] = {dict: "an object", list: "a list"}


class _Source(BaseModel):
    cluster_id: str
    taken_at: str
    digest: Digest
    storage: Literal["local", "shared"]


class _Document(BaseModel):
    version: Literal[1]
    plan_id: Digest
    snapshot: _Source
    goals_digest: Digest
    options: dict[str, Any]
    actions: tuple[Action, ...]
    proposals: tuple[Change, ...]
    goals: tuple[GoalOutcome, ...]
    summary: Summary
    lower_bounds: LowerBounds
    brokers: tuple[BrokerOutcome, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    bands: Mapping[str, Mapping[int, Band]]
    stopped: bool = Field(default=False)
    cannot_be_emptied: tuple[int, ...] = ()
    batches: Batches | None = None


def read_plan(content: bytes, name: str) -> Plan:
    """The plan in the bytes of a plan file, plain or gzip; `name` is what messages call the file.

    `frontier` is empty: the file does not have it. Keys that are not known are left out, as additions of a later release.

    Raises
    ------
    InputError
        It is no plan file, or a damaged one; carries every problem with its place.
    """
    content = unpacked(content, name)
    if not content.strip():
        raise InputError(name, [Problem("", f"expected a plan, found an empty file; `{MAKES[PLAN]}` makes one")])
    try:
        read = _Document.model_validate_json(content, strict=True)
    except ValidationError as error:
        if other := "" if any(e["type"] == "json_invalid" for e in error.errors()) else other_kind(json.loads(content), PLAN):
            raise InputError(name, [Problem("", other)]) from None
        raise InputError(name, [_problem(e["type"], e["loc"], e["msg"], e["input"]) for e in error.errors()]) from None
    problems = [
        Problem(f"{part}[{i}]{inner}", message)
        for part, i, inner, change in _changes(read)
        if (message := _refused(change))
    ]
    if problems:
        raise InputError(name, problems)
    return Plan(
        plan_id=read.plan_id, cluster_id=read.snapshot.cluster_id, taken_at=read.snapshot.taken_at,
        snapshot_digest=read.snapshot.digest, storage=read.snapshot.storage, goals_digest=read.goals_digest,
        options=read.options,
        actions=read.actions, proposals=read.proposals, goals=read.goals, summary=read.summary, lower_bounds=read.lower_bounds,
        brokers=read.brokers, skipped=read.skipped, notes=read.notes, bands=read.bands, stopped=read.stopped,
        cannot_be_emptied=read.cannot_be_emptied, batches=read.batches,
    )  # fmt: skip


def unpacked(content: bytes, name: str) -> bytes:
    """The bytes of a plan file without gzip.

    Raises
    ------
    InputError
        It is gzip, and broken.
    """
    if not content.startswith(GZIP):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(name, [Problem("", f"expected a gzip file, found a broken one ({error}); copy it again")]) from None


def _changes(read: _Document) -> list[tuple[str, int, str, Change]]:
    """Every change with its place."""
    of_actions = [("actions", i, f".changes[{j}]", c) for i, a in enumerate(read.actions) for j, c in enumerate(a.changes)]
    return of_actions + [("proposals", i, "", c) for i, c in enumerate(read.proposals)]


def _refused(change: Change) -> str | None:
    """Why Kafka would not take a change; None where it would."""
    for key, replicas, leader in (
        ("before", change.replicas_before, change.leader_before),
        ("after", change.replicas_after, change.leader_after),
    ):
        if not replicas or len(set(replicas)) != len(replicas) or min(replicas) < 0:
            return f"replicas_{key}: expected broker ids, each once, found {list(replicas)}; make the plan again"
        if leader is not None and leader not in replicas:
            return f"leader_{key}: expected one of {list(replicas)}, found {leader}; make the plan again"
    return None


def _problem(kind: str, loc: tuple[int | str, ...], message: str, found: object) -> Problem:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in loc).removeprefix(".")
    remedy = "give a file that `trimtab plan --format json` wrote"
    if kind == "json_invalid":
        return Problem(place, f"expected a plan file, found no whole JSON text ({message.partition(': ')[2]}); {remedy}")
    if kind == "missing":
        return Problem(place, f"expected this key, found none; {remedy}")
    if place == "version" and isinstance(found, int):
        remedy = "another version needs another Trimtab"
    shown = repr(found) if isinstance(found, str | int | float | None) else SHAPES.get(type(found), f"a {type(found).__name__}")
    shown = shown if len(shown) <= LONGEST_FOUND else shown[: LONGEST_FOUND - 1] + "…"
    message = PLAINLY.get(kind, f"{message[:1].lower()}{message[1:]}").replace("input should be", "expected")
    return Problem(place, f"{message}, found {shown}; {remedy}")
