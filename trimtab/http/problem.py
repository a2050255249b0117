"""What went wrong with a request, as JSON (RFC 9457) that says what to do.

Raised by handlers, answered by `trimtab.http.app`.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

MEDIA = "application/problem+json"


class ProblemView(BaseModel):
    """An error: what, why, and what to do."""

    model_config = ConfigDict(frozen=True)

    type: str = Field(default="about:blank", description="kind of problem, a URI")
    status: int = Field(description="HTTP status")
    title: str = Field(description="what it is, the same for all of its kind")
    detail: str = Field(description="what was expected and what was found")
    what_to_do: str = Field(description="what helps; empty where nothing but another request does")


class Problem(Exception):
    """A request that gets an error for an answer."""

    def __init__(
        self, status: int, detail: str, what_to_do: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.view = ProblemView(
            status=status, title=HTTPStatus(status).phrase, detail=detail, what_to_do=what_to_do
        )
        self.headers = dict(headers or {})

    def response(self) -> Response:
        return Response(self.view.model_dump_json(), self.view.status, self.headers, MEDIA)
