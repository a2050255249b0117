"""When to act: the `policy.detector` of a goals file as a pure function of a snapshot and a memory.

How a service uses it, once per interval::

    from optimizer.detectors import Memory, agrees, detect, policy_of

    policy = policy_of(goals)                             # once per goals file; defaults applied
    found = detect(policy, snapshot, goals, memory)       # memory: None at first
    memory = found.memory                                 # keep it; any change of the detector starts it again by itself
    if found.fired:
        plan = ...                                        # found.sentence() says why, for the decision record
        after = detect(policy, predicted, goals, before)  # `before`: the memory that went into `found`; optional
        if agrees(policy, found, after): ...              # `accept:` of the policy
    else:
        ...                                               # found.sentence() says why nothing happens
    memory = memory.acted()                               # after a plan was carried out: counts start again

A second look at the same moment (`snapshot.taken_at`) is no second check. Broken hard rules outside of goals, such as replicas on
dead or draining brokers, are not a detector's business: the service plans for them at once. `may_act` (guards) says whether acting
is allowed now: cooldown, moves per hour, brokers that must be there.
"""

from optimizer.detectors.check import agrees, detect, no_worse, policy_of
from optimizer.detectors.guards import Deed, Gate, Guards, may_act
from optimizer.detectors.values import Count, Detection, Finding, Memory

__all__ = [
    "Count",
    "Deed",
    "Detection",
    "Finding",
    "Gate",
    "Guards",
    "Memory",
    "agrees",
    "detect",
    "may_act",
    "no_worse",
    "policy_of",
]
