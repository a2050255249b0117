"""What the interface answers: one handler an endpoint, over a `ServiceFace`.

Called by `trimtab.http.app`, which has checked host, origin and token. Every question to the service goes through a thread
(`trimtab.http.calls`) and is waited for only so long.
"""

from __future__ import annotations

import gzip
import logging
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from prometheus_client.exposition import choose_encoder
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

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
    PlanListed,
    PlanQuery,
    PlansView,
    WhyBody,
)  # fmt: skip
from trimtab.http.calls import Calls
from trimtab.http.events import Events
from trimtab.http.excerpt import Excerpt, excerpt
from trimtab.http.glance import with_glance
from trimtab.http.latest import Latest
from trimtab.http.metrics import Requests, scrape
from trimtab.http.others import ClusterStanding, ClustersView, Others
from trimtab.http.problem import Problem
from trimtab.http.reading import body_of, exact_plan_id_of, plan_id_of, query_of
from trimtab.service.views import DecisionView, Refused, ServiceFace, StateView

log = logging.getLogger(__name__)

T = TypeVar("T")

MOST_READING, MOST_CHANGING = (
    16,
    4,
)  # calls under way; those that change have their own, so that readers cannot keep "pause" out
HEALTH_PATIENCE = 2.0  # seconds: a probe gives up early itself
LONG = 12  # times the usual patience for whole plans and snapshots
EXCERPTS = 4  # plans
SMALL, HUGE = 1024, 1 << 20  # bytes: below not worth packing, above packed fast
LATE_CHANGE = "It may still be carried out: look at the state before trying again."
FORMS = {
    "json": ("application/json", "json"), "text": ("text/plain", "txt"), "markdown": ("text/markdown", "md"),
    "html": ("text/html", "html"), "reassignment": ("application/json", "json"), "election": ("application/json", "json"),
}  # fmt: skip
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-scripts"
)  # a report runs apart from the page: it can neither read its token nor ask as it


class Api:
    """All handlers. Belongs to one event loop."""

    def __init__(
        self, face: ServiceFace, access: AccessView, patience: float, requests: Requests, others: Others, name: str | None
    ) -> None:
        self._face, self._others, self._name = face, others, name
        self._access = access
        self._patience = patience
        self._reading = Calls(MOST_READING)
        self._changing = Calls(MOST_CHANGING)
        self._excerpts: OrderedDict[str, Excerpt] = OrderedDict()
        self._requests = requests
        self.latest = Latest(face)
        self.events = Events(self.latest, patience)

    # --- how it stands ------------------------------------------------------------------------------------------------

    async def healthz(self, _: Request) -> Response:
        return await self._probe(lambda s: (s.healthy, s.why_unhealthy))

    async def readyz(self, _: Request) -> Response:
        return await self._probe(lambda s: (s.ready, s.why_not_ready))

    async def _probe(self, judge: Callable[[StateView], tuple[bool, tuple[str, ...]]]) -> Response:
        try:
            ok, reasons = judge(await self.latest.state(min(HEALTH_PATIENCE, self._patience)))
        except Problem as problem:
            ok, reasons = False, (problem.view.detail,)
        except Exception as error:
            log.exception("the service did not report its state")
            ok, reasons = (
                False,
                (f"The service failed to report its state ({type(error).__name__}); its log says why.",),
            )
        return _answer(HealthView(ok=ok, reasons=reasons), 200 if ok else 503)

    async def metrics(self, request: Request) -> Response:
        state: StateView | None = None
        last: DecisionView | None = None
        try:
            state = await self.latest.state(self._patience)
            decisions = await self._read(lambda: self._face.decisions(1), "its newest decision")
            last = decisions[0] if decisions else None
        except Exception as error:
            log.warning("figures without all of the service's state: %s", error)
        encode, media = choose_encoder(request.headers.get("accept", ""))
        return await self._sent(
            request, lambda: encode(scrape(state, last, self._requests)), "its figures", media
        )

    async def state(self, request: Request) -> Response:
        state = await self.latest.state(self._patience)
        return await self._sent(
            request, lambda: with_glance(state).model_dump_json(), "its state", "application/json"
        )

    async def clusters(self, _: Request) -> Response:
        """This cluster, then the others; what is known of them now, so no request waits for one that hangs."""
        if not self._others.any:
            return _answer(ClustersView(clusters=()))
        own = with_glance(await self.latest.state(self._patience))
        heard = self._others.standings(own.now_ms)
        others = [it.model_copy(update={"here": it.reached and it.cluster_id == own.cluster_id}) for it in heard]
        decider = next((it.url for it in others if it.here and it.decides and it.instance != own.instance), None)
        this = ClusterStanding(
            name=self._name or own.cluster_id or "this cluster", here=True, reached=True, asked_ms=own.now_ms, cluster_id=own.cluster_id,
            instance=own.instance, decides=own.leadership.leads, url=decider, tone=own.glance.tone, label=own.glance.label,
            sentence=own.glance.sentence, mode=own.mode, brokers=sum(own.cluster.lives.values()), partitions=own.cluster.partitions,
        )  # fmt: skip
        return _answer(ClustersView(clusters=(this, *(it for it in others if not it.here))))

    async def access(self, _: Request) -> Response:
        return _answer(self._access)

    async def stream(self, _: Request) -> Response:
        return StreamingResponse(self.events.listen(), media_type="text/event-stream")

    async def snapshot(self, request: Request) -> Response:
        return await self._sent(
            request, self._face.snapshot_text, "the snapshot", "application/json", "snapshot.json", LONG
        )

    async def goals(self, request: Request) -> Response:
        return await self._sent(request, self._face.goals_text, "its goals", "application/yaml")

    async def explain(self, request: Request) -> Response:
        asked = query_of(ExplainQuery, request)
        return await self._sent(
            request,
            lambda: self._face.explain(broker=asked.broker, partition=asked.partition),
            "an explanation",
            "text/plain",
        )

    # --- plans and decisions ------------------------------------------------------------------------------------------

    async def decisions(self, request: Request) -> Response:
        asked = query_of(DecisionsQuery, request)
        found = await self._read(lambda: self._face.decisions(asked.limit, asked.before), "its decisions")
        return _answer(DecisionsView(decisions=found, next_before=_next(found, asked)))

    async def plans(self, request: Request) -> Response:
        asked = query_of(DecisionsQuery, request)
        found = await self._read(lambda: self._face.decisions(asked.limit, asked.before), "its decisions")
        listed = tuple(_listed(d, d.plan_id) for d in found if d.plan_id is not None)
        return _answer(PlansView(plans=listed, next_before=_next(found, asked)))

    async def plan(self, request: Request) -> Response:
        asked, plan_id = query_of(PlanQuery, request), plan_id_of(request)
        media, suffix = FORMS[asked.format]
        name = f"{asked.format if asked.format in ('reassignment', 'election') else 'plan'}.{suffix}"
        response = await self._sent(
            request, lambda: self._face.plan_text(plan_id, asked.format), "the plan", media, name, LONG
        )
        if asked.format == "html":
            response.headers["Content-Security-Policy"] = REPORT_POLICY
        return response

    async def actions(self, request: Request) -> Response:
        asked, plan_id = query_of(ActionsQuery, request), plan_id_of(request)
        kept = self._excerpts.get(plan_id) if plan_id else None
        if kept is None:
            kept = await self._read(
                lambda: excerpt(self._face.plan_text(plan_id, "json")), "the plan's actions", LONG
            )
            self._excerpts[kept.plan_id] = kept
            if len(self._excerpts) > EXCERPTS:
                self._excerpts.popitem(last=False)
        return _answer(kept.page(asked.offset, asked.limit))

    async def execution(self, request: Request) -> Response:
        return await self._sent(request, self._face.execution_text, "the execution", "application/json", times=LONG)

    # --- what changes something ---------------------------------------------------------------------------------------

    async def approve(self, request: Request) -> Response:
        plan_id, by = exact_plan_id_of(request), await body_of(ByBody, request)
        return _answer(
            await self._change(request, lambda: self._face.approve(plan_id, by.who), f"approve plan {plan_id}", by)
        )

    async def reject(self, request: Request) -> Response:
        plan_id, by = exact_plan_id_of(request), await body_of(WhyBody, request)
        return _answer(
            await self._change(
                request, lambda: self._face.reject(plan_id, by.who, by.why), f"reject plan {plan_id}", by
            )
        )

    async def rollback(self, request: Request) -> Response:
        plan_id, by = exact_plan_id_of(request), await body_of(ByBody, request)
        return _answer(await self._change(request, lambda: self._face.rollback(plan_id, by.who), f"roll back plan {plan_id}", by))

    async def cancel_execution(self, request: Request) -> Response:
        by = await body_of(CancelBody, request)
        await self._change(
            request, lambda: self._face.cancel_execution(by.plan_id, by.who, by.why, by.finish), f"cancel the execution of {by.plan_id}", by
        )
        what = "completes" if by.finish else "is taken back"
        return _answer(DoneView(done=f"No further step starts; what is in progress {what}, and what is done stays."), 202)

    async def rollback_execution(self, request: Request) -> Response:
        by = await body_of(ExecutionBody, request)
        await self._change(
            request, lambda: self._face.rollback_execution(by.plan_id, by.who), f"roll back the execution of {by.plan_id}", by
        )
        return _answer(DoneView(done="Everything that it changed is brought back, step by step."), 202)

    async def pause(self, request: Request) -> Response:
        by = await body_of(WhyBody, request)
        await self._change(request, lambda: self._face.pause(by.who, by.why), "pause", by)
        return _answer(DoneView(done="Paused: no plan is made or started, and no further step is taken, until an operator resumes."))

    async def resume(self, request: Request) -> Response:
        by = await body_of(ByBody, request)
        was_paused = await self._change(request, lambda: self._face.resume(by.who), "resume", by)
        return _answer(DoneView(done="Resumed." if was_paused else "It was not paused, so nothing is changed."))

    async def plan_now(self, request: Request) -> Response:
        by = await body_of(ByBody, request)
        await self._change(request, lambda: self._face.plan_now(by.who), "plan now", by)
        return _answer(DoneView(done="A decision is asked for; see the decisions for what came of it."), 202)

    async def drain(self, request: Request) -> Response:
        by = await body_of(DrainBody, request)
        what = f"drain broker {by.broker}" if by.on else f"stop draining broker {by.broker}"
        await self._change(request, lambda: self._face.drain(by.broker, by.on, by.who), what, by)
        done = f"Broker {by.broker} is treated as {'draining' if by.on else 'any other'} from now on."
        return _answer(DoneView(done=done))

    # --- asking the service -------------------------------------------------------------------------------------------

    async def _read(self, call: Callable[[], T], what: str, times: int = 1) -> T:
        try:
            return await self._reading.run(call, self._patience * times, what)
        except Refused as refused:
            raise _refusal(refused) from None

    async def _change(self, request: Request, call: Callable[[], T], what: str, by: ByBody) -> T:
        where = request.client.host if request.client is not None else "an unknown address"
        log.info("%s: asked over HTTP by %s from %s", what, by.who, where)
        try:
            return await self._changing.run(call, self._patience, what, LATE_CHANGE)
        except Refused as refused:
            log.info("%s: refused to %s from %s: %s", what, by.who, where, refused.message)
            raise _refusal(refused) from None
        finally:
            self.events.told()

    async def _sent(
        self,
        request: Request,
        make: Callable[[], str | bytes],
        what: str,
        media: str,
        name: str | None = None,
        times: int = 1,
    ) -> Response:
        """What `make` returns, made, encoded and packed in a thread."""
        packs = "gzip" in request.headers.get("accept-encoding", "")

        def body() -> tuple[bytes, bool]:
            made = make()
            data = made.encode() if isinstance(made, str) else made
            if not packs or len(data) < SMALL:
                return data, False
            return gzip.compress(data, 1 if len(data) > HUGE else 6, mtime=0), True

        data, packed = await self._read(body, what, times)
        headers = {"Vary": "Accept-Encoding"} | ({"Content-Encoding": "gzip"} if packed else {})
        if name:
            headers["Content-Disposition"] = f'inline; filename="trimtab-{name}"'
        return Response(data, 200, headers, media)


def _answer(view: BaseModel, status: int = 200) -> Response:
    return Response(view.model_dump_json(), status, media_type="application/json")


def _refusal(refused: Refused) -> Problem:
    return Problem(404 if refused.missing else 409, refused.message, refused.what_to_do)


def _next(found: tuple[DecisionView, ...], asked: DecisionsQuery) -> int | None:
    return found[-1].id if len(found) == asked.limit else None


def _listed(it: DecisionView, plan_id: str) -> PlanListed:
    kinds = [kind for _, kind, _, _ in sorted(it.outcomes) if kind != "noted"]
    return PlanListed(
        plan_id=plan_id,
        decision_id=it.id,
        made_ms=it.ended_ms,
        instance=it.instance,
        cause=it.cause,
        mode=it.mode,
        actions=it.actions,
        replica_moves=it.replica_moves,
        bytes_to_move=it.bytes_to_move,
        newest_outcome=kinds[-1] if kinds else None,
    )
