"""What a request says: its plan, its parameters, its body; checked, with every fault in words.

Used by `trimtab.http.api`.
"""

from __future__ import annotations

import asyncio
import json
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from trimtab.http.problem import Problem

Q = TypeVar("Q", bound=BaseModel)

MOST_BODY = 16 * 1024
BODY_PATIENCE = 10.0  # seconds
CLOSE = {"Connection": "close"}
SEE = "See /api/v1/openapi.json for what may be sent."


def plan_id_of(request: Request) -> str | None:
    """The plan that the path names; None for the newest."""
    asked = str(request.path_params["plan_id"])
    return None if asked == "current" else asked


def exact_plan_id_of(request: Request) -> str:
    """The plan that the path names, which is not just the newest.

    Raises
    ------
    Problem
        400.
    """
    plan_id = plan_id_of(request)
    if plan_id is None:
        raise Problem(
            400,
            "A plan is approved or rejected by its id, found current.",
            "Name the plan that you have read: another may be the current one now.",
        )
    return plan_id


def query_of(model: type[Q], request: Request) -> Q:
    """The parameters after the question mark.

    Raises
    ------
    Problem
        400: one is unknown, given twice or not what was expected.
    """
    given: dict[str, str] = {}
    for key, value in request.query_params.multi_items():
        if key in given:
            raise Problem(400, f"{key} was given twice.", "Give it once.")
        given[key] = value
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise Problem(400, _faults(error, model), SEE) from None


async def body_of(model: type[Q], request: Request) -> Q:
    """The JSON body. An empty one is an empty object.

    Raises
    ------
    Problem
        413 too long, 408 too slow, 415 not declared as JSON, 400 not JSON or not what was expected.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise Problem(
            415,
            f"Expected a body of type application/json, found {media or 'none declared'}.",
            "Send Content-Type: application/json.",
        )
    text = b""
    try:
        async with asyncio.timeout(BODY_PATIENCE):
            async for part in request.stream():
                text += part
                if len(text) > MOST_BODY:
                    raise Problem(413, f"Expected a body of at most {MOST_BODY:,} bytes.", headers=CLOSE)
    except TimeoutError:
        raise Problem(408, f"The body did not come within {BODY_PATIENCE:g} s.", headers=CLOSE) from None
    try:
        given = json.loads(text) if text.strip() else {}
        if not isinstance(given, dict):
            raise ValueError("a JSON value of another kind")
        return model.model_validate(given, strict=True)
    except ValidationError as error:
        raise Problem(400, _faults(error, model), SEE) from None
    except (ValueError, RecursionError) as error:
        raise Problem(400, f"Expected a JSON object, found {_no_object(text, error)}.", SEE) from None


def _no_object(text: bytes, error: ValueError | RecursionError) -> str:
    """What a body is that is no JSON object."""
    match error:
        case json.JSONDecodeError() if error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated"):
            return f"one that is cut off after {len(text):,} bytes"
        case json.JSONDecodeError():
            return f"text that is none: {error.msg} (line {error.lineno}, character {error.colno})"
        case UnicodeDecodeError():
            return f"byte {text[error.start]:#04x} at {error.start}, which is not UTF-8"
    return "something else"


def _faults(error: ValidationError, model: type[BaseModel]) -> str:
    """Every fault with its place, in words."""
    known = ", ".join(model.model_fields) or "none"
    said = []
    for fault in error.errors(include_url=False):
        place = ".".join(str(step) for step in fault["loc"])
        words = (
            f"unknown; known are {known}"
            if fault["type"] == "extra_forbidden"
            else f"missing; expected {model.model_fields[place].description or 'a value'}"
            if fault["type"] == "missing" and place in model.model_fields
            else fault["msg"].removeprefix("Value error, ")
        )
        said.append(f"{place}: {words}" if place else words)
    return "; ".join(said) + "."
