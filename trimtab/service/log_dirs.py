"""Log directories of brokers as the page shows them: the fullest volume of a broker with several, and directories that are offline.

The turn of the worker ``log-dirs``, which asks every serving broker once a minute. Nothing is planned by it: `trimtab directories` moves
replicas between the volumes of a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from cluster_model.errors import ExternalError
from trimtab.capture.reading import BrokerReading, Reading
from trimtab.service.views import DirectoriesView

EVERY = 60.0  # seconds
TURN = 1.0  # seconds, while no broker is known


class LogDirs:
    """Keeps what brokers tell of their log directories; `known` is for any thread.

    Parameters
    ----------
    ask
        What brokers tell, by id; what went wrong is in the answer. Raises `ExternalError`.
    serving
        Brokers that serve, now.
    learned
        Called when something is known that was not.
    """

    def __init__(
        self, ask: Callable[[Collection[int]], Reading], serving: Callable[[], Collection[int]], learned: Callable[[], None]
    ) -> None:
        self._ask, self._serving, self._learned = ask, serving, learned
        self.known: tuple[DirectoriesView, ...] = ()

    def turn(self) -> float:
        """Ask all brokers. One that does not answer is as it was.

        Raises
        ------
        ExternalError
            Brokers do not tell; what others tell is known all the same.
        """
        brokers = sorted(self._serving())
        if not brokers:
            return TURN
        answers = self._ask(brokers)
        before = {view.broker: view for view in self.known}
        found = (_view(b, answers[b]) if b in answers and answers[b].sizes is not None else before.get(b) for b in brokers)
        known = tuple(view for view in found if view is not None)
        if known != self.known:
            self.known = known
            self._learned()
        failed = [f"broker {b}: {answers[b].errors[0]}" for b in brokers if b in answers and answers[b].errors]
        if failed:
            raise ExternalError(f"log directories are not told by {len(failed)} of {len(brokers)} brokers: {failed[0]}", retriable=True)
        return EVERY


def _view(broker: int, told: BrokerReading) -> DirectoriesView | None:
    """None where a broker has one volume, and nothing is offline."""
    assert told.sizes is not None
    volumes, offline = told.sizes.volumes, told.sizes.offline_dirs
    if len(volumes) < 2 and not offline:
        return None
    fullest = max(volumes, key=lambda v: v.used, default=None)
    total = sum(v.total for v in volumes)
    return DirectoriesView(
        broker=broker, volumes=len(volumes), offline=offline,
        fullest=fullest.path if fullest is not None else None, fullest_used=fullest.used if fullest is not None else None,
        used=1.0 - sum(v.usable for v in volumes) / total if total else None,
    )  # fmt: skip
