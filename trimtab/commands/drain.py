"""`trimtab drain` and `trimtab activate`: empty brokers before they are shut down, and take them back.

A drain is told to the cluster, in its record of executions: until `activate`, every later plan of a live cluster and every service treats
the broker as draining. Parsing and writing only.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from trimtab.commands import options as o
from trimtab.commands import values as v
from trimtab.commands.execute import carry_out, tell_size
from trimtab.commands.execution_options import JournalFolder, Server, Throttle, Who, folder_of, name_of
from trimtab.plan_output import Output, write_outputs
from trimtab.signals import ending_at_once
from trimtab.story import Story, log

if TYPE_CHECKING:
    from optimizer.plan import Plan
    from trimtab.execution.run import Reached

FAILED = 1
NAMED = 5  # topics named in a sentence

Brokers = Annotated[
    list[v.BrokerIds],
    typer.Option("--broker", parser=v.parsed_by(v.parse_broker_ids), metavar="ID[,ID]", help="Brokers; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add the commands to `app`."""
    app.command("drain")(drain_command)
    app.command("activate")(activate_command)


def drain_command(
    context: typer.Context,
    broker: Brokers,
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    interval: o.Interval = None,
    capacity: o.CapacityPath = None,
    goals: o.GoalsPath = None,
    preset: o.Preset = None,
    calibration: o.CalibrationPath = None,
    throttle: Throttle = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    journal: JournalFolder = None,
    who: Who = None,
) -> int:
    """Empty brokers before they are shut down: the dry run, a question, the execution, and a check that no replica is left.

    Once you agree, the cluster keeps a record of it: no later plan places replicas there until `trimtab activate`.
    """
    source = o.Source(None, bootstrap_server, command_config, interval, capacity)
    wanted = o.Wanted(goals, preset, calibration)
    problems = source.problems()
    if not yes and not sys.stdin.isatty():
        problems.append(Problem("--yes", "there is no terminal to ask on; give --yes"))
    if problems:
        raise ConfigurationError("trimtab drain", problems)
    brokers = sorted(set(v.all_ids(broker)))
    story = context.find_object(Story) or Story()
    with ending_at_once():
        goal_set = wanted.read()
        cluster = source.read(story)
        from optimizer.options import PlanOptions
        from optimizer.whatif import check_whatifs
        from trimtab.compiling import compile_for_plan
        from trimtab.planning import planned

        planning = PlanOptions(remove_brokers=tuple(brokers))
        check_whatifs(cluster, goal_set, planning, "--broker")
        compile_for_plan(cluster, goal_set, planning, story)
    plan = planned(cluster, goal_set, planning, story)
    write_outputs(plan, [Output("text", None)])
    from trimtab.execution.order import order_of, sized

    order = sized(order_of(plan), cluster)
    tell_size(order.tasks, order.plan_id, throttle, order.headroom)
    if not (yes or typer.confirm(f"Drain {_named(brokers)}?", err=True)):
        log.info("nothing was changed")
        return 0
    _told(brokers, bootstrap_server, command_config, folder_of(journal), name_of(who))
    code = 0
    if order.tasks:
        from trimtab.execution.documents import Settings

        code = carry_out(context, order, Settings(throttle=throttle), bootstrap_server, command_config, journal, interval=interval)
    return _looked(plan, brokers, bootstrap_server, command_config, folder_of(journal), code)


def activate_command(
    broker: Brokers,
    bootstrap_server: Server,
    command_config: o.CommandConfig = None,
    journal: JournalFolder = None,
    who: Who = None,
) -> int:
    """Take brokers back that were drained: later plans may place replicas there again. Moves nothing by itself."""
    from metrics_reporter.reporter import SYSTEM_CLOCK
    from trimtab.execution.people import drain_key, drains_of, ended
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, folder_of(journal)) as there:
        drains = drains_of(there.ledger.told())
        for each in sorted(set(v.all_ids(broker))):
            if each not in drains:
                log.warning("broker %d is not being drained, so there is nothing to do", each)
                continue
            there.ledger.tell(drain_key(each), ended(name_of(who), SYSTEM_CLOCK.wall_ms()))
            log.info("broker %d is active again; the next plan may place replicas there", each)
    return 0


# -- what they are made of -------------------------------------------------------------------------------------


def _told(brokers: Collection[int], bootstrap_server: str, command_config: Path | None, journal: Path, who: str) -> None:
    """Tell the cluster, unless an execution is not over: the drain's own could not start."""
    from metrics_reporter.reporter import SYSTEM_CLOCK
    from trimtab.execution.checks import unfinished
    from trimtab.execution.people import drain_document, drain_key
    from trimtab.execution.run import at_work, reached

    with reached(bootstrap_server, command_config, journal) as there:
        header = there.execution.read()
        if header is not None and header.state == "running":
            raise ExternalError(unfinished(header, working=at_work(there.execution)))
        for broker in brokers:
            there.ledger.tell(drain_key(broker), drain_document(who, SYSTEM_CLOCK.wall_ms()))


def _looked(
    plan: Plan, brokers: Collection[int], bootstrap_server: str, command_config: Path | None, journal: Path, code: int
) -> int:
    """Whether the brokers host nothing any more, by a look at the whole cluster; the exit code."""
    from trimtab.execution.run import reached

    with reached(bootstrap_server, command_config, journal) as there:
        left = _left(there, brokers)
    for broker in brokers:
        if not left[broker]:
            back = f"`trimtab activate --broker {broker}` takes it back"
            log.info("broker %d is drained: it hosts no replica and can be shut down; %s", broker, back)
            continue
        topics = sorted(left[broker])
        more = f" and {len(topics) - NAMED} more topics" if len(topics) > NAMED else ""
        log.error(
            "broker %d is not drained: it still hosts %d replicas, of %s%s; give the command again", broker, left[broker].total(),
            ", ".join(topics[:NAMED]), more,
        )  # fmt: skip
        if broker in plan.cannot_be_emptied:
            log.error("it is proven that no plan can empty it; the dry run says why")
    return FAILED if any(left[b] for b in brokers) else code


def _left(there: Reached, brokers: Collection[int]) -> dict[int, Counter[str]]:
    """By broker, the topics of which it hosts replicas, and how many."""
    found: dict[int, Counter[str]] = {b: Counter() for b in brokers}
    for name, partition in there.port.look(()).partitions.items():
        for broker in partition.replicas:
            if broker in found:
                found[broker][name.topic] += 1
    return found


def _named(brokers: Collection[int]) -> str:
    return f"broker{'s' if len(brokers) > 1 else ''} {', '.join(map(str, brokers))}"
