"""The table of what is answered: the routes and the OpenAPI document are both made from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from trimtab.http.api import Api
from trimtab.http.asked import (
    AccessView,
    ActionsQuery,
    ByBody,
    CancelBody,
    DecisionsQuery,
    DecisionsView,
    DoneView,
    DrainBody,
    ExecutionBody,
    ExplainQuery,
    HealthView,
    PlanQuery,
    PlansView,
    WhyBody,
)
from trimtab.http.excerpt import ActionsView
from trimtab.http.glance import StateAnswer
from trimtab.http.others import ClustersView
from trimtab.service.views import PlanView

Access = Literal["anyone", "reading", "changing"]
Handler = Callable[[Api, Request], Awaitable[Response]]


@dataclass(frozen=True)
class Endpoint:
    """One method of one path.

    Attributes
    ----------
    answers
        Media type -> model of the answer; None where it is text, or a file that has a description of its own.
    refusals
        Statuses of problems that it may answer, beside those that any may.
    """

    method: Literal["GET", "POST"]
    path: str
    name: str
    says: str
    handler: Handler
    answers: Mapping[str, type[BaseModel] | None]
    access: Access = "reading"
    status: int = 200
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    refusals: tuple[int, ...] = field(default=())
    otherwise: Mapping[int, type[BaseModel]] = field(default_factory=dict)


JSON = "application/json"
PLAN = "/api/v1/plans/{plan_id}"


def _probe(path: str, name: str, says: str, handler: Handler) -> Endpoint:
    return Endpoint(
        "GET", path, name, says, handler, {JSON: HealthView}, access="anyone", otherwise={503: HealthView}
    )


def _change(
    path: str,
    name: str,
    says: str,
    handler: Handler,
    answer: type[BaseModel],
    body: type[BaseModel],
    status: int = 200,
    missing: bool = False,
) -> Endpoint:
    refusals = (400, 403, *((404,) if missing else ()), 408, 409, 413, 415)
    return Endpoint(
        "POST", path, name, says, handler, {JSON: answer}, "changing", status, None, body, refusals
    )


ENDPOINTS: tuple[Endpoint, ...] = (
    _probe(
        "/healthz",
        "healthz",
        "Whether all parts of the service do their work; 503 with reasons where not.",
        Api.healthz,
    ),
    _probe(
        "/readyz",
        "readyz",
        "Whether the service knows enough to decide; 503 with reasons where not.",
        Api.readyz,
    ),
    Endpoint(
        "GET",
        "/metrics",
        "metrics",
        "Figures for Prometheus.",
        Api.metrics,
        {"text/plain": None, "application/openmetrics-text": None},
    ),
    Endpoint(
        "GET",
        "/api/v1/access",
        "access",
        "Who may read and change here.",
        Api.access,
        {JSON: AccessView},
        access="anyone",
    ),
    Endpoint("GET", "/api/v1/state", "state", "Everything at a glance.", Api.state, {JSON: StateAnswer}),
    Endpoint(
        "GET",
        "/api/v1/clusters",
        "clusters",
        "How this cluster and the others of the configuration stand, read-only; as heard some seconds ago at most.",
        Api.clusters,
        {JSON: ClustersView},
    ),
    Endpoint(
        "GET",
        "/api/v1/events",
        "events",
        "Server-sent events named `change`, each with a ChangeView, at most two a second; the first comes at once.",
        Api.stream,
        {"text/event-stream": None},
    ),
    Endpoint(
        "GET",
        "/api/v1/snapshot",
        "snapshot",
        "The snapshot file of this moment.",
        Api.snapshot,
        {JSON: None},
        refusals=(404, 409),
    ),
    Endpoint(
        "GET",
        "/api/v1/goals",
        "goals",
        "The goals in force, with every default.",
        Api.goals,
        {"application/yaml": None},
        refusals=(409,),
    ),
    Endpoint(
        "GET",
        "/api/v1/explain",
        "explain",
        "Why a broker or a partition is as it is.",
        Api.explain,
        {"text/plain": None},
        query=ExplainQuery,
        refusals=(400, 404, 409),
    ),
    Endpoint(
        "GET",
        "/api/v1/decisions",
        "decisions",
        "Decisions, newest first.",
        Api.decisions,
        {JSON: DecisionsView},
        query=DecisionsQuery,
        refusals=(400,),
    ),
    Endpoint(
        "GET",
        "/api/v1/plans",
        "plans",
        "Plans among the decisions that are looked at, newest first.",
        Api.plans,
        {JSON: PlansView},
        query=DecisionsQuery,
        refusals=(400,),
    ),
    Endpoint(
        "GET",
        PLAN,
        "plan",
        "A plan as a report; the id `current` is the newest one.",
        Api.plan,
        {JSON: None, "text/plain": None, "text/markdown": None, "text/html": None},
        query=PlanQuery,
        refusals=(400, 404, 409),
    ),
    Endpoint(
        "GET",
        PLAN + "/actions",
        "actions",
        "Some actions of a plan, and what it comes to.",
        Api.actions,
        {JSON: ActionsView},
        query=ActionsQuery,
        refusals=(400, 404, 409),
    ),
    _change(
        PLAN + "/approve",
        "approve",
        "Approve a plan, by its id.",
        Api.approve,
        PlanView,
        ByBody,
        missing=True,
    ),
    _change(
        PLAN + "/reject", "reject", "Reject a plan, by its id.", Api.reject, PlanView, WhyBody, missing=True
    ),
    _change(
        PLAN + "/rollback",
        "rollback",
        "Bring back what a plan changed, by its id.",
        Api.rollback,
        PlanView,
        ByBody,
        missing=True,
    ),
    Endpoint(
        "GET",
        "/api/v1/execution",
        "execution",
        "The newest execution on the cluster with every partition, as `trimtab status --format json` has it.",
        Api.execution,
        {JSON: None},
        refusals=(404,),
    ),
    _change(
        "/api/v1/execution/cancel",
        "cancelExecution",
        "Start no further step of an execution, whichever process carries it out.",
        Api.cancel_execution,
        DoneView,
        CancelBody,
        status=202,
        missing=True,
    ),
    _change(
        "/api/v1/execution/rollback",
        "rollbackExecution",
        "Bring back what the newest execution changed, whichever process carried it out.",
        Api.rollback_execution,
        DoneView,
        ExecutionBody,
        status=202,
        missing=True,
    ),
    _change(
        "/api/v1/pause",
        "pause",
        "Make and start no plan, and take no further step, until an operator resumes.",
        Api.pause,
        DoneView,
        WhyBody,
    ),
    _change("/api/v1/resume", "resume", "Go on after a pause.", Api.resume, DoneView, ByBody),
    _change(
        "/api/v1/plan", "planNow", "Ask for a decision at once.", Api.plan_now, DoneView, ByBody, status=202
    ),
    _change(
        "/api/v1/drain",
        "drain",
        "Treat a broker as draining, or no longer.",
        Api.drain,
        DoneView,
        DrainBody,
        missing=True,
    ),
)
