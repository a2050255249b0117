"""Whether a policy acts, before anything is moved and after each cycle of it: its detector on the cluster as it would stand.

A plan is one look, so repeated checks (`persist`) are not waited for; a caller that plans again and again waits for them with
`optimizer.detectors.detect`. A hysteresis holds within a plan: it goes on until its stop.
"""

from __future__ import annotations

from cluster_model.snapshot import Snapshot
from goals.model import GoalSet
from goals.policy import PolicyDocument
from goals.policy_detectors import AllOf, AnyOf, Single
from optimizer.detectors import Detection, Memory, agrees, detect, no_worse
from optimizer.detectors.rules import RATE


class When:
    """The detector of a policy on one cluster, look after look."""

    def __init__(self, policy: PolicyDocument, snapshot: Snapshot, goals: GoalSet) -> None:
        self._policy, self._goals = _at_once(policy), goals
        self._before: Memory | None = None
        self.found = detect(self._policy, snapshot, goals, None)
        self.acts = self.found.fired or self.found.unrepaired > 0
        waits = "" if self._policy == policy else " The dry run does not wait for its further checks."
        self.sentence = f"detector: {self.found.sentence()}{waits}"

    @property
    def by_rate(self) -> bool:
        """Whether it fires for rates of requests: those are to be levelled then, whatever else brokers carry."""
        return any(f.fired and f.subject == RATE for f in self.found.findings)

    def ahead(self, snapshot: Snapshot) -> Detection:
        """What the detector finds in a cluster that steps would lead to."""
        return detect(self._policy, snapshot, self._goals, self.found.memory)

    def agrees(self, after: Detection) -> bool:
        """Whether the detector goes along with what leads to `after`."""
        return agrees(self._policy, self.found, after)

    def no_worse(self, after: Detection) -> bool:
        """Whether what leads to `after` takes nothing further beyond its line."""
        return no_worse(self.found, after)

    def go_on(self, after: Detection) -> bool:
        """Take `after` as where things stand; whether it still fires."""
        self.found = after
        return after.fired


def _at_once(policy: PolicyDocument) -> PolicyDocument:
    """The policy without waiting for repeated checks."""
    def bare(single: Single) -> Single:
        return single.model_copy(update={"persist": None})

    detector: object
    match policy.detector:
        case AnyOf(any_of=parts):
            detector = AnyOf(any_of=[bare(d) for d in parts])
        case AllOf(all_of=parts):
            detector = AllOf(all_of=[bare(d) for d in parts])
        case single:
            detector = bare(single)
    return policy.model_copy(update={"detector": detector})
