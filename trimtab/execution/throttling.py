"""Throttles on a cluster: have them stand, look at them again, bring the values of before back and see that they are there.

Called by the engine, which writes down what is found before anything is set. What to set is `trimtab.execution.throttle`'s.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from trimtab.execution import throttle
from trimtab.execution.port import ClusterPort, Configs
from trimtab.execution.state import Observed, Task
from trimtab.execution.throttle import Setting

log = logging.getLogger(__name__)


def needed(port: ClusterPort, moves: Sequence[Task], rate: int, written: Sequence[Setting]) -> tuple[Configs, list[Setting]]:
    """What stands on the cluster now, and what is to be written down of throttles for these moves, with what is written already.

    The values of before are those that were found the first time.
    """
    found = port.configs(throttle.resources(moves), throttle.KEYS)
    known = {(s.resource, s.key): s for s in written}
    before = {r: {k: v for k, v in of.items() if (r, k) not in known} for r, of in found.items()}
    for (resource, key), setting in known.items():
        if setting.before is not None:
            before.setdefault(resource, {})[key] = setting.before
    wanted = {
        (s.resource, s.key): throttle.joined(known.get((s.resource, s.key)), s)
        for s in throttle.settings(moves, rate, before)
        if s.resource in found  # of a broker that is down it is not known what stands there
    }
    return found, list((known | wanted).values())


def missing(wanted: Sequence[Setting], found: Configs) -> list[Setting]:
    """What does not stand as wanted, on resources that answer."""
    return [s for s in wanted if s.resource in found and found[s.resource].get(s.key) != throttle.value(s)]


def stand(port: ClusterPort, off: Sequence[Setting]) -> str:
    """Set what does not stand; why it cannot be set, empty where it stands then."""
    for resource, refusal in port.set_configs(throttle.to_set(off)).items() if off else ():
        if refusal is not None:
            return f"waits: the throttle of {resource} cannot be set: {refusal}"
    return ""


def restore(port: ClusterPort, settings: Sequence[Setting], seen: Observed) -> list[Setting]:
    """Bring the values of before back where another tool has not set others; the settings of which that could not be seen.

    A topic or broker that is gone for good needs nothing.
    """
    resources = list(dict.fromkeys(s.resource for s in settings))
    changes = throttle.to_restore(settings, port.configs(resources, throttle.KEYS))
    if changes:
        for resource, refusal in port.set_configs(changes).items():
            if refusal is not None:
                log.warning("the throttle of %s cannot be taken off now: %s", resource, refusal)
    found = port.configs(resources, throttle.KEYS)
    still = throttle.to_restore(settings, found)
    unseen = {r for r in resources if r.kind == "broker" and r not in found and int(r.name) in seen.brokers}
    return [s for s in settings if s.resource in unseen or s.key in still.get(s.resource, {})]
