"""`trimtab throttles`: replication throttles that stand on a cluster, and taking off those that executions left behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import ExternalError
from trimtab.commands import options as o
from trimtab.commands.execution_options import DataForm, JournalFolder, Server, folder_of
from trimtab.output import emit, require_writable
from trimtab.story import log

if TYPE_CHECKING:
    from trimtab.execution.port import Resource
    from trimtab.execution.run import Reached

FAILED = 1


def register(app: typer.Typer) -> None:
    """Add the command to `app`."""
    app.command("throttles")(throttles_command)


def throttles_command(
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    clean: Annotated[bool, typer.Option("--clean", help="Restore the values from before the last execution.")] = False,
    every: Annotated[bool, typer.Option("--every", help="With --clean: remove all others too, whatever tool set them.")] = False,
    journal: JournalFolder = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """List replication throttles of brokers and topics; with --clean remove those that an execution left. Exit code 1 if any remain."""
    require_writable("trimtab throttles", out)
    from trimtab.execution.run import at_work, reached
    from trimtab.execution.throttle import KEYS

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        execution = there.execution
        header = execution.read()
        if clean:
            if header is not None and header.state == "running":
                raise ExternalError(_in_progress(header.plan_id, working=at_work(execution)))
            if execution.throttles:
                execution.adopt()
                for setting in execution.clean():
                    log.error("%s: %s could not be removed; give the command again once it answers", setting.resource, setting.key)
            if every:
                _remove(there)
        left = list(execution.throttles)
        found = _standing(there)
        if form == "json":
            ours = [{"resource": str(s.resource), "key": s.key, "before": s.before, "own": s.own} for s in left]
            emit(json.dumps({"version": 1, "throttles": {str(r): of for r, of in found.items()}, "of_the_execution": ours}, indent=1), out)
        else:
            lines = [f"{r}: {k} = {v}" for r, of in found.items() for k, v in sorted(of.items()) if k in KEYS]
            emit("\n".join(lines) or "no broker or topic has a throttle", out)
    return FAILED if clean and left else 0


def _in_progress(plan_id: str, *, working: bool) -> str:
    ways = "`trimtab cancel` ends it" if working else "`trimtab resume` goes on with it, `trimtab cancel` ends it"
    return f"plan {plan_id} is not over, and removes its throttles itself; {ways}"


def _every(there: Reached) -> list[Resource]:
    from trimtab.execution.port import Resource

    seen = there.port.look(())
    topics = sorted({n.topic for n in seen.partitions})
    return [*(Resource("broker", str(b)) for b in sorted(seen.brokers) if seen.alive(b)), *(Resource("topic", t) for t in topics)]


def _standing(there: Reached) -> dict[Resource, dict[str, str]]:
    from trimtab.execution.throttle import KEYS

    return {r: of for r, of in there.port.configs(_every(there), KEYS).items() if of}


def _remove(there: Reached) -> None:
    found = _standing(there)
    for resource, refusal in there.port.set_configs({r: dict.fromkeys(of) for r, of in found.items()}).items():
        if refusal is not None:
            log.error("%s: %s", resource, refusal)
        else:
            log.warning("%s: removed %s", resource, ", ".join(f"{k} = {v}" for k, v in sorted(found[resource].items())))
