"""What requests may ask for and hand over: parameters and bodies, checked, and what is answered besides the service's views.

Used by the handlers and by the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from cluster_model.plain_text import one_line
from trimtab.service.views import DecisionView, View

PlanForm = Literal["json", "text", "markdown", "html", "reassignment", "election"]


def _words(text: str) -> str:
    """On one line, without what could steer a terminal where the decision is read."""
    return one_line(text)


def _named(text: str) -> str:
    if not text:
        raise ValueError("expected the name of who does it, for the record, found nothing")
    return text


Name = Annotated[
    str,
    Field(min_length=1, max_length=80, description="who does it, for the record; taken as it is"),
    AfterValidator(_words),
    AfterValidator(_named),
]
Why = Annotated[str, Field(max_length=500, description="a sentence for the record"), AfterValidator(_words)]


class Asked(BaseModel):
    """Base: unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class PlanQuery(Asked):
    format: PlanForm = Field(default="json", description="form of the report (docs/report.md)")


class ActionsQuery(Asked):
    offset: int = Field(default=0, ge=0, description="actions to leave out")
    limit: int = Field(default=50, ge=1, le=500, description="actions to give")


class DecisionsQuery(Asked):
    limit: int = Field(default=50, ge=1, le=500, description="decisions to look at")
    before: int | None = Field(default=None, ge=0, description="only decisions with a smaller id")


class ExplainQuery(Asked):
    broker: int | None = Field(default=None, ge=0, description="a broker's id")
    partition: str | None = Field(default=None, max_length=300, description="TOPIC-PARTITION")

    @model_validator(mode="after")
    def _one(self) -> ExplainQuery:
        if (self.broker is None) == (self.partition is None):
            raise ValueError("expected either broker=ID or partition=TOPIC-PARTITION")
        return self


class ByBody(Asked):
    who: Name


class WhyBody(ByBody):
    why: Why = ""


class DrainBody(ByBody):
    broker: int = Field(ge=0, description="a broker's id")
    on: bool = Field(default=True, description="false: treat it as any other again")


class ExecutionBody(ByBody):
    plan_id: str = Field(max_length=200, description="the plan that is carried out, as it was looked at")


class CancelBody(ExecutionBody):
    why: Why = ""
    finish: bool = Field(default=False, description="let what is in progress complete instead of taking it back")


class DecisionsView(View):
    """Decisions, newest first."""

    decisions: tuple[DecisionView, ...]
    next_before: int | None = Field(description="`before` of the next request; null: there are no older ones")


class PlanListed(View):
    """A plan that was made, without its actions."""

    plan_id: str
    decision_id: int
    made_ms: int
    instance: str
    cause: str
    mode: str
    actions: int
    replica_moves: int
    bytes_to_move: int
    newest_outcome: str | None = Field(description="approved, rejected, superseded, started, done, failed, …")


class PlansView(View):
    """Plans, newest first."""

    plans: tuple[PlanListed, ...]
    next_before: int | None = Field(description="`before` of the next request; null: there are no older ones")


class HealthView(View):
    """Whether, and why not."""

    ok: bool
    reasons: tuple[str, ...]


class AccessView(View):
    """Who may do what here."""

    read: Literal["open", "token"]
    change: Literal["token", "refused"]
    why_refused: str | None


class DoneView(View):
    """What was done."""

    done: str
