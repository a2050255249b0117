"""Bad days of a real cluster, one after the other; after each everything must be true again (`tests.kafka.days`).

``python -m tests.kafka.unrest`` runs them all, and kills at random for ten minutes; not part of CI, where `test_days` has the short form.
``--days restart,dead`` runs some, ``--days random --minutes 10 --seed 0`` kills alone. Ends with 1 where something was not as it should be.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.kafka.cluster import FIRST_CONTROLLER, KafkaCluster
from tests.kafka.days import DAYS, Scene, at_random
from tests.kafka.islands import Islands, enter

RANDOM = "random"


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = [*DAYS, RANDOM]
    parser.add_argument("--days", default=",".join(every), help=f"of {', '.join(every)}; all by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="of random")
    parser.add_argument("--seed", type=int, default=0, help="of random")
    options = parser.parse_args()
    chosen = options.days.split(",")
    unknown = [name for name in chosen if name not in every]
    if unknown:
        parser.error(f"unknown days: {', '.join(unknown)}; there are {', '.join(every)}")
    why = enter("tests.kafka.unrest", sys.argv[1:])
    if why is not None:
        say(f"no controller can be cut off: {why}")
    days = dict(DAYS) | {RANDOM: partial(at_random, minutes=options.minutes, seed=options.seed)}
    folder, wrong = Path(tempfile.mkdtemp(prefix="trimtab-unrest-")), []
    with ExitStack() as stack:
        controllers = range(FIRST_CONTROLLER, FIRST_CONTROLLER + 3)
        islands = stack.enter_context(Islands(controllers)) if why is None else None
        kafka = stack.enter_context(KafkaCluster(controllers=len(controllers), islands=islands))
        scene = Scene(kafka, folder, say=say)
        with scene:
            if not scene.ready():
                say("WRONG: the services are not ready")
                return 1
            for name in chosen:
                say(f"{name}: {({**DAYS, RANDOM: at_random}[name].__doc__ or '').strip()}")
                begun = time.monotonic()
                found = days[name](scene) + scene.settled()
                say(f"{name}: {'as it should be' if not found else 'WRONG'} after {time.monotonic() - begun:.0f} s")
                for text in found:
                    say(f"  WRONG: {text}")
                wrong += found
        rows = scene.rows()
        wrong += [text for node in scene.services for text in scene.repeated(node)]
    say(f"{len(rows)} decisions {dict(Counter(r.verdict for r in rows))}, epochs {sorted({r.epoch for r in rows})}")
    say(f"slowest stop {scene.slowest_stop:.1f} s; {len(wrong)} wrong; logs in {folder}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
