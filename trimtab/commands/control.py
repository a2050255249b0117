"""`trimtab pause`, `resume`, `cancel` and `rollback`: what an operator tells an execution, or a cluster where nothing is carried out.

Parsing and writing only; what is safe is `trimtab.execution`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import ExternalError
from trimtab.commands import options as o
from trimtab.commands.execute import require_known, to_the_end
from trimtab.commands.execution_options import DataForm, JournalFolder, Server, Who, folder_of, name_of
from trimtab.output import require_writable
from trimtab.story import log

if TYPE_CHECKING:
    from trimtab.execution.documents import Header
    from trimtab.execution.recorded import How, Verb
    from trimtab.execution.run import Reached


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command("pause")(pause_command)
    app.command("resume")(resume_command)
    app.command("cancel")(cancel_command)
    app.command("rollback")(rollback_command)


def pause_command(
    bootstrap_server: Server, command_config: o.CommandConfig = None, journal: JournalFolder = None, who: Who = None
) -> int:
    """Pause once the steps in progress are complete. If no plan is in progress, none starts on the cluster until `resume`."""
    from metrics_reporter.reporter import SYSTEM_CLOCK
    from trimtab.execution.ledger import PAUSE
    from trimtab.execution.people import Pause
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        header = there.execution.read()
        if header is None or header.state != "running":
            there.ledger.tell(PAUSE, Pause(name_of(who), "", SYSTEM_CLOCK.wall_ms()).document())
            log.info("paused: no command and no service starts a plan on this cluster until `trimtab resume`")
            return 0
        if _heard(there, "pause", who) is None:
            there.execution.pause(name_of(who))
        log.info("paused; `trimtab resume` goes on")
    return 0


def resume_command(
    context: typer.Context,
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    journal: JournalFolder = None,
    who: Who = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Continue a paused cluster or execution, or an execution whose process was killed; works from any machine."""
    require_writable("trimtab resume", out)
    from metrics_reporter.reporter import SYSTEM_CLOCK
    from trimtab.execution.ledger import PAUSE
    from trimtab.execution.people import ended, pause_of
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        paused = pause_of(there.ledger.told()) is not None
        if paused:
            there.ledger.tell(PAUSE, ended(name_of(who), SYSTEM_CLOCK.wall_ms()))
            log.info("the cluster is not paused any more")
        header = there.execution.read()
        if paused and (header is None or header.state != "running"):
            return 0
        _unfinished(there)
        header = _heard(there, "resume", who)
        if header is not None:
            log.info("%s goes on", header.instance)
            return 0
        there.execution.resume()
        return to_the_end(context, there, form, out)


def cancel_command(
    context: typer.Context,
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    finish: Annotated[bool, typer.Option("--finish", help="Let steps in progress complete instead of taking them back.")] = False,
    journal: JournalFolder = None,
    who: Who = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Stop the execution: steps in progress are taken back, completed ones stay, and no throttle is left."""
    require_writable("trimtab cancel", out)
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        _unfinished(there)
        how: How = "finish" if finish else "take back"
        header = _heard(there, "cancel", who, how)
        if header is not None:
            log.info("%s cancels it; `trimtab status` shows how far it is", header.instance)
            return 0
        there.execution.cancel(name_of(who), how)
        return to_the_end(context, there, form, out)


def rollback_command(
    context: typer.Context,
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    journal: JournalFolder = None,
    who: Who = None,
    form: DataForm = "text",
    out: o.Out = None,
) -> int:
    """Bring back every partition that the last execution changed, while it runs or after it ended."""
    require_writable("trimtab rollback", out)
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        require_known(there)
        header = _heard(there, "rollback", who)
        if header is not None:
            log.info("%s takes it back; `trimtab status` shows how far it is", header.instance)
            return 0
        count = there.execution.rollback(name_of(who))
        log.info("%d partitions are brought back", count)
        return to_the_end(context, there, form, out)


def _heard(there: Reached, verb: Verb, who: str | None, how: How = "take back") -> Header | None:
    """The header once the instance at work has heard the wish; None where none is, and this process has taken over."""
    from trimtab.execution.recorded import Wish
    from trimtab.execution.run import asked, at_work, new_id

    if at_work(there.execution):
        return asked(there, Wish(verb, name_of(who), new_id(), how))
    there.execution.adopt()
    return None


def _unfinished(there: Reached) -> None:
    require_known(there)
    header = there.execution.header
    assert header is not None
    if header.state != "running":
        raise ExternalError(f"plan {header.plan_id} is {header.state}: nothing is in progress; `trimtab rollback` would take it back")
