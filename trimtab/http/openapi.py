"""The OpenAPI document, made from the table of endpoints and the models that they read and answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from trimtab.http.endpoints import ENDPOINTS, Endpoint
from trimtab.http.events import ChangeView
from trimtab.http.problem import MEDIA, ProblemView

_REF = "#/components/schemas/{model}"
_ALWAYS = (421, 500, 503)


def document(version: str) -> dict[str, Any]:
    """OpenAPI 3.1 of the interface."""
    schemas, references = _schemas()
    paths: dict[str, Any] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Trimtab",
            "version": version,
            "description": "The service that keeps a Kafka cluster level. Times are Unix ms; loads are in the units of the snapshot file.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of the configuration.",
                }
            },
        },
    }


def _schemas() -> tuple[dict[str, Any], dict[tuple[type[BaseModel], str], dict[str, Any]]]:
    models: dict[tuple[type[BaseModel], Literal["validation", "serialization"]], None] = {
        (ProblemView, "serialization"): None,
        (ChangeView, "serialization"): None,
    }
    for endpoint in ENDPOINTS:
        for answer in (*endpoint.answers.values(), *endpoint.otherwise.values()):
            if answer is not None:
                models[answer, "serialization"] = None
        if endpoint.body is not None:
            models[endpoint.body, "validation"] = None
    references, definitions = models_json_schema(list(models), ref_template=_REF)
    return definitions["$defs"], {(model, mode): reference for (model, mode), reference in references.items()}  # type: ignore[misc]


def _operation(
    endpoint: Endpoint, references: dict[tuple[type[BaseModel], str], dict[str, Any]]
) -> dict[str, Any]:
    def schema(model: type[BaseModel] | None) -> dict[str, Any]:
        return {} if model is None else {"schema": references[model, "serialization"]}

    def problem(status: int) -> dict[str, Any]:
        return {"description": HTTPStatus(status).phrase, "content": {MEDIA: schema(ProblemView)}}

    answers = {media: schema(model) or {"schema": {}} for media, model in endpoint.answers.items()}
    responses: dict[str, Any] = {str(endpoint.status): {"description": endpoint.says, "content": answers}}
    denied = () if endpoint.access == "anyone" else (401,)
    for status in sorted({*_ALWAYS, *denied, *endpoint.refusals}):
        responses[str(status)] = problem(status)
    for status, model in endpoint.otherwise.items():
        responses[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": schema(model)},
        }
    operation: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.says,
        "parameters": [*_path_parameters(endpoint.path), *_query_parameters(endpoint.query)],
        "responses": responses,
        "security": {"anyone": [{}], "reading": [{}, {"token": []}], "changing": [{"token": []}]}[
            endpoint.access
        ],
    }
    if endpoint.body is not None:
        body = {"application/json": {"schema": references[endpoint.body, "validation"]}}
        operation["requestBody"] = {
            "required": any(f.is_required() for f in endpoint.body.model_fields.values()),
            "content": body,
        }
    return operation


def _path_parameters(path: str) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _query_parameters(model: type[BaseModel] | None) -> Iterable[dict[str, Any]]:
    if model is None:
        return
    described = model.model_json_schema()
    for name, schema in described["properties"].items():
        words = schema.pop("description", "")
        yield {
            "name": name,
            "in": "query",
            "required": name in described.get("required", ()),
            "description": words,
            "schema": schema,
        }
