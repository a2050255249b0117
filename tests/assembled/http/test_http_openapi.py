"""The OpenAPI document is valid, and answers are as it says."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from tests.assembled.http.client import TOKEN, Client
from tests.assembled.http.conftest import Serving
from tests.service_face import FakeFace, small
from trimtab.http.endpoints import ENDPOINTS
from trimtab.http.openapi import document

BODIES: dict[str, object] = {"/api/v1/drain": {"who": "Ana", "broker": 3}}
QUERIES = {"/api/v1/explain": "?broker=3"}


def conforms(answer: Any, schema: dict[str, Any], spec: dict[str, Any]) -> None:
    Draft202012Validator({**schema, "components": spec["components"]}).validate(answer)


def test_the_document_is_valid_openapi(client: Client) -> None:
    spec = client.get("/api/v1/openapi.json").json
    validate(spec)
    assert spec["openapi"] == "3.1.0"
    assert {(method.upper(), path) for path, item in spec["paths"].items() for method in item} == {
        (e.method, e.path) for e in ENDPOINTS
    }


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: f"{e.method} {e.path}")
@pytest.mark.parametrize("well", [True, False])
def test_answers_are_as_the_document_says(serving: Serving, endpoint: Any, well: bool) -> None:
    """Also where the service is unwell or refuses."""
    face = small()
    client = Client(serving(face, patience=2.0).url)
    assert face.made is not None
    if not well:
        face.now = face.now.model_copy(update={"healthy": False, "why_unhealthy": ("No.",), "plan": None, "brokers": ()})
        face.made, face.fails = None, None
    spec = document("1")
    operation = spec["paths"][endpoint.path][endpoint.method.lower()]
    path = endpoint.path.replace("{plan_id}", "sha256:0" if not well else small().now.plan.plan_id)  # type: ignore[union-attr]
    path += QUERIES.get(endpoint.path, "")
    if endpoint.path == "/api/v1/events":
        connection = client.connection()
        connection.request("GET", path)
        assert connection.getresponse().headers["content-type"].partition(";")[0] in operation["responses"]["200"]["content"]
        connection.close()
        return
    answer = client.post(path, BODIES.get(endpoint.path, {"who": "Ana"})) if endpoint.method == "POST" else client.get(path)
    described = operation["responses"][str(answer.status)]["content"]
    media = answer.headers["content-type"].partition(";")[0]
    assert media in described
    if media.endswith("json"):
        conforms(answer.json, described[media]["schema"], spec)


def test_a_description_that_were_wrong_would_be_noticed(client: Client) -> None:
    spec = document("1")
    schema = spec["paths"]["/api/v1/state"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    answer = client.get("/api/v1/state").json
    conforms(answer, schema, spec)
    answer["mode"] = "chaos"
    with pytest.raises(Exception, match="'chaos' is not one of"):
        conforms(answer, schema, spec)


def test_bodies_that_the_document_allows_are_taken(client: Client, face: FakeFace) -> None:
    spec = document("1")
    schema = spec["paths"]["/api/v1/drain"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    for body in ({"broker": 3, "who": "Ana"}, {"broker": 3, "on": False, "who": "Ana"}):
        conforms(body, schema, spec)
        assert client.post("/api/v1/drain", body, token=TOKEN).status == 200
    assert len(face.done) == 2
