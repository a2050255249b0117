"""Whether this instance decides: it stands beside the active controller, asked again before every step.

Any thread may ask. What the cluster does not answer is no: who does not know that it leads, does not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

from cluster_model.errors import ExternalError
from cluster_model.metadata.description import QuorumReport
from metrics_reporter.reporter import Clock
from trimtab.service.views import Leadership

log = logging.getLogger(__name__)


class LeaderCheck:
    """Asks the quorum who the active controller is.

    Parameters
    ----------
    always
        This is the only instance: it decides whichever node the controller is, as long as the quorum answers.
    shared
        Who else has the place of this instance, as `Reach.shared` says it.
    """

    def __init__(
        self,
        node_id: int | None,
        ask: Callable[[], QuorumReport],
        clock: Clock,
        *,
        always: bool,
        shared: Callable[[], str | None],
    ) -> None:
        self._node_id, self._ask, self._clock, self._always, self._shared = node_id, ask, clock, always, shared
        self._lock = Lock()
        self._known = Leadership(node=node_id, controller=None, epoch=None, leads=False, checked_ms=None)

    @property
    def known(self) -> Leadership:
        """The newest answer."""
        return self._known

    def ask(self) -> Leadership:
        """Ask now; `checked_ms` is when the question went out, so what it says held at that time or later."""
        with self._lock:
            asked_ms = self._clock.wall_ms()
            before, shared = self._known, self._claimed()
            try:
                report = self._ask()
            except ExternalError as error:
                self._known = before.model_copy(update={"leads": False, "checked_ms": asked_ms, "error": str(error), "shared": shared})
                return self._known
            leads = self._always or (report.leader is not None and report.leader == self._node_id)
            error_text = None if report.leader is not None else "the quorum has no leader at the moment"
            if before.epoch is not None and report.epoch < before.epoch:  # told by a broker that has not heard yet
                leads, error_text = False, f"a broker told of epoch {report.epoch} after {before.epoch}"
                report = QuorumReport(before.controller, before.epoch, report.high_watermark)
            self._known = Leadership(
                node=self._node_id, controller=report.leader, epoch=report.epoch,
                leads=leads and report.leader is not None and shared is None, checked_ms=asked_ms, error=error_text, shared=shared,
            )  # fmt: skip
            return self._known

    def _claimed(self) -> str | None:
        shared = self._shared()
        if shared != self._known.shared:
            if shared is not None:
                log.error("%s", shared)
            else:
                log.info("no other instance has this one's place any more")
        return shared


def whom_to_ask(known: Leadership) -> str:
    """What helps an operator who wants a decision of an instance that does not lead."""
    if known.shared is not None or known.error is not None or known.controller is None:
        return "See why_nothing in /api/v1/state for the cause."
    return f"Ask the instance beside node {known.controller}."


def who_leads(known: Leadership) -> str:
    """Why this instance does not decide, in a sentence."""
    if known.shared is not None:
        return known.shared
    if known.checked_ms is None:
        return "It is not known yet who the active controller is."
    if known.error is not None:
        return f"It is not known who the active controller is, so nothing is decided here: {known.error.rstrip('.')}."
    return (
        f"Node {known.controller} is the active controller (epoch {known.epoch}); this instance stands beside node "
        f"{known.node} and only keeps its model warm."
    )
