"""What `--help` says below the options: examples, exit codes, variables.

Called by the command line. Tests parse every example, so none can go out of date.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trimtab.defaults import CLUSTER, settable, variable

PANELS: Mapping[str, tuple[str, ...]] = {
    "See and plan": ("demo", "snapshot", "capacity", "plan", "show", "diff", "explain", "assign", "check"),
    "Carry out": ("execute", "drain", "directories", "activate", "status", "pause", "resume", "cancel", "rollback", "throttles"),
    "Run beside a cluster": ("serve", "reporter", "metadata"),
    "Goals": ("goals", "policies", "schema"),
    "History": ("history", "calibrate", "backtest", "tune"),
    "This machine": ("compile",),
}
COMMON_CODES: Mapping[int, str] = {
    0: "done",
    1: "the cluster or this machine refused, or a bug",
    2: "wrong usage, configuration or input",
    130: "interrupted",
}
CODES: Mapping[str, Mapping[int, str]] = {
    "plan": {
        3: "with --exit-code: something would move, and 4 does not hold",
        4: "with --exit-code: proven that a hard goal cannot be met or a broker cannot be emptied, whether something would move or not",
        5: "with --exit-code: nothing would move, but hard goals were not checked",
    },
    "execute": {1: "a partition is not as planned, or the cluster refused"},
    "rollback": {1: "a partition is not as it was before, or the cluster refused"},
    "drain": {1: "a broker still hosts replicas, or the cluster refused"},
    "directories": {1: "a replica was not moved, or the cluster refused"},
    "check": {1: "a check fails"},
    "throttles": {1: "throttles of an execution are left"},
    "serve": {
        0: "ended by SIGTERM or Ctrl-C, or --check found no mistake",
        1: "not everything ended in time, this machine refused, or a bug",
        130: "ended at once by a second Ctrl-C, 3 s or more after the first",
    },
    "reporter": {
        0: "ended by SIGTERM or Ctrl-C, and all records were sent",
        1: "records were not sent, a collector of --once failed, the cluster or this machine refused, or a bug",
        130: "ended at once by a second Ctrl-C, 3 s or more after the first",
    },
    "history follow": {0: "ended by SIGTERM or Ctrl-C", 130: "interrupted before it followed the topic"},
    "history backfill": {
        0: "done, or ended early by SIGTERM or Ctrl-C",
        130: "interrupted before it read the topic",
    },
}
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "demo": ("trimtab demo --out report.html", "trimtab demo --quick --seed 7"),
    "snapshot": (
        "trimtab snapshot -b broker1:9092 --capacity capacity.yaml -o cluster.json.gz",
        "trimtab snapshot --cluster prod -o - | trimtab plan -s -",
    ),
    "capacity": ("trimtab capacity -s cluster.json.gz", "trimtab capacity -b broker1:9092 --template -o capacity.yaml"),
    "plan": (
        "trimtab plan -s cluster.json.gz",
        "trimtab plan -s cluster.json.gz -g goals.yaml -o report.html -o plan.json -o moves.json",
        "trimtab plan --cluster prod --remove-broker 3,4 --max-bytes 500GB",
        "trimtab plan -s cluster.json.gz -q -f json | jq .summary",
    ),
    "show": ("trimtab show plan.json", "trimtab show plan.json -o report.html -o rollback.json"),
    "diff": ("trimtab diff cluster.json.gz later.json.gz", "trimtab diff plan.json plan2.json"),
    "explain": (
        "trimtab explain -s cluster.json.gz --partition orders-12",
        "trimtab explain -s cluster.json.gz -g goals.yaml --broker 3",
    ),
    "metadata": ("trimtab metadata -b broker1:9092 --follow", "trimtab metadata --kraft-log kafka-logs/__cluster_metadata-0 -f json"),
    "drain": ("trimtab drain --broker 7 -b broker1:9092 --throttle auto", "trimtab drain --broker 7,8 --cluster prod --yes"),
    "activate": ("trimtab activate --broker 7 -b broker1:9092",),
    "reporter": ("trimtab reporter --config reporter.yaml",),
    "serve": ("trimtab serve --config service.yaml", "trimtab serve --config service.yaml --check"),
    "calibrate": ("trimtab calibrate --history history -o calibration.yaml",),
    "backtest": ("trimtab backtest --history history -g goals.yaml --calibration calibration.yaml",),
    "tune": (
        "trimtab tune -g goals.yaml --calibration calibration.yaml",
        "trimtab tune -g goals.yaml --calibration calibration.yaml --write",
    ),
    "compile": ("trimtab compile", "trimtab compile --for x86-64-v3 -o kernels"),
    "directories": (
        "trimtab directories -b broker1:9092",
        "trimtab directories -s cluster.json.gz -g goals.yaml -f reassignment -o moves.json",
        "trimtab directories -b broker1:9092 --remove 3:/data2 -f reassignment -o moves.json",
        "trimtab directories -b broker1:9092 --execute moves.json",
    ),
    "execute": (
        "trimtab execute --plan plan.json -b broker1:9092 --throttle 50MB/s --dry-run",
        "trimtab execute --plan plan.json -b broker1:9092 --throttle 50MB/s",
    ),
    "status": ("trimtab status -b broker1:9092", "trimtab status --cluster prod -f json"),
    "pause": ("trimtab pause -b broker1:9092",),
    "resume": ("trimtab resume -b broker1:9092",),
    "cancel": ("trimtab cancel -b broker1:9092",),
    "rollback": ("trimtab rollback -b broker1:9092",),
    "throttles": ("trimtab throttles -b broker1:9092", "trimtab throttles -b broker1:9092 --clean"),
    "check": ("trimtab check --original plan/original --migrated plan/migrated",),
    "assign": ("trimtab assign -s cluster.json.gz --topic new --partitions 12 --replication-factor 3",),
    "goals check": ("trimtab goals check goals.yaml", "trimtab goals show default | trimtab goals check -"),
    "goals list": ("trimtab goals list",),
    "goals schema": ("trimtab goals schema > goals.schema.json",),
    "goals show": ("trimtab goals show default > goals.yaml",),
    "goals import": (
        "trimtab goals import --cruise-control cruisecontrol.properties -o goals.yaml",
        "trimtab goals import --cruise-control cruisecontrol.properties --broker-sets brokerSets.json -o goals.yaml",
    ),
    "history import": ("trimtab history import --from metrics.csv --form csv -o history",),
    "history backfill": ("trimtab history backfill -b broker1:9092 -o history",),
    "history follow": ("trimtab history follow -b broker1:9092 -o history",),
    "history check": ("trimtab history check --history history",),
    "history mapping": ("trimtab history mapping prometheus > mapping.yaml",),
    "policies list": ("trimtab policies list",),
    "policies show": ("trimtab policies show danube-balanced",),
    "policies lookup": ("trimtab policies lookup -s cluster.json.gz -g goals.yaml --partition orders-12",),
    "schema": ("trimtab schema plan > plan.schema.json",),
}


def panel(command: str) -> str:
    """The heading that a command stands under in the list of commands."""
    return next(heading for heading, commands in PANELS.items() if command in commands)


def place(command: str) -> int:
    """Where a command stands in the list of commands."""
    return [name for commands in PANELS.values() for name in commands].index(command)


def epilog(command: str, takes: Collection[str]) -> str:
    """Text below the options of a command, such as ``goals check``, that has the parameters `takes`."""
    codes = dict(sorted({**COMMON_CODES, **CODES.get(command, {})}.items()))
    parts = ["Examples:\n" + "\n".join(f"  {line}" for line in EXAMPLES.get(command, ()))] if command in EXAMPLES else []
    parts.append("Exit codes:\n" + "\n".join(f"  {code:<4}{meaning}" for code, meaning in codes.items()))
    variables = [variable(name) for name in settable(takes)]
    if "bootstrap_server" in takes:
        variables.append(CLUSTER)
    if variables:
        parts.append(f"Environment, where the option is not given:\n  {', '.join(sorted(variables))}")
    return "\n\n".join(parts).replace("[", r"\[")
