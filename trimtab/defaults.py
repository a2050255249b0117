"""Options that the environment or `trimtab.toml` gives where the command line does not.

Called by the command line, before it parses. It knows names of options, not what they mean to a command.

An option on the command line wins, then a cluster named there (`--cluster`), then a variable, then a cluster that `TRIMTAB_CLUSTER`
names, then the table `defaults`. Credentials of one cluster are never shown to another: with `--bootstrap-server` no named cluster counts.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from cluster_model.errors import ConfigurationError, Problem

LIVE = ("bootstrap_server", "command_config", "interval", "capacity")
WANTED = ("goals", "preset", "calibration")
OTHERS = ("throttle", "threads", "journal")
PATHS = ("command_config", "capacity", "goals", "calibration", "journal")
OF_ONE_CLUSTER = ("bootstrap_server", "command_config")
NAME, CLUSTER, FILE = "trimtab.toml", "TRIMTAB_CLUSTER", "TRIMTAB_TOML"


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values by parameter, as they would be written on the command line, and where each comes from.

    Attributes
    ----------
    said
        Which cluster was taken from which file; None where none was named.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    said: str | None = None


def variable(parameter: str) -> str:
    """The variable that stands for an option: ``TRIMTAB_BOOTSTRAP_SERVER``."""
    return f"TRIMTAB_{parameter.upper()}"


def settable(takes: Collection[str]) -> list[str]:
    """Parameters of a command that have such a default; `takes` are all that it has."""
    live: tuple[str, ...] = LIVE if "bootstrap_server" in takes else ()
    if "capacity" not in takes:  # `metadata` measures no rates: its interval is another one
        live = tuple(name for name in live if name != "interval")
    wanted = WANTED if "bootstrap_server" in takes or "snapshot" in takes else ()
    return [name for name in (*live, *wanted, *OTHERS) if name in takes]


def defaults_for(
    takes: Collection[str], given: Collection[str], cluster: str | None, environment: Mapping[str, str], folder: Path
) -> Defaults:
    """Defaults of one call.

    Parameters
    ----------
    takes, given
        Parameters that the command has, and those that the command line gives.
    cluster
        The name after ``--cluster``.
    folder
        Where `trimtab.toml` is looked for first.

    Raises
    ------
    ConfigurationError
        The file is broken, there is no cluster of that name, or two places name different clusters.
    """
    names = settable(takes)
    live = "bootstrap_server" in names and "snapshot" not in given
    if cluster is not None and not live:
        found = "--snapshot" if "snapshot" in given else "a command that asks no cluster"
        raise _wrong("--cluster", f"names a live cluster, found it with {found}; leave one out")
    if cluster is not None and "bootstrap_server" in given:
        raise _wrong("--cluster, --bootstrap-server", "expected one of them, found both; leave one out")
    wanted = not {"goals", "preset"} & set(given)
    names = [n for n in names if n not in given and (live or n not in LIVE) and (wanted or n not in WANTED)]

    by_variable = {name: environment[variable(name)] for name in names if environment.get(variable(name))}
    named = cluster
    if named is None and live and "bootstrap_server" not in given:
        named = environment.get(CLUSTER) or None
        if named is not None and "bootstrap_server" in by_variable:
            raise _wrong(f"{CLUSTER}, {variable('bootstrap_server')}", "expected one of them, found both; unset one")
    path = toml_file(environment, folder)
    if named is not None and path is None:
        raise _wrong("--cluster" if cluster else CLUSTER, f"expected a file {NAME} that describes {named}, found none; {_places()}")
    tables = read_toml(path) if path is not None else {}
    common = _of(tables.get("defaults", {}), names)
    chosen: dict[str, str] = {}
    if named is not None:
        clusters = tables.get("clusters", {})
        if named not in clusters:
            known = f"expected one of {', '.join(sorted(clusters))}" if clusters else "it describes no cluster"
            raise _wrong("--cluster" if cluster else CLUSTER, f"{known}, found {named!r} ({path})")
        chosen = _of(clusters[named], names)
        # Address and credentials that the shell knows of another cluster are not for this one.
        by_variable = {name: value for name, value in by_variable.items() if name not in OF_ONE_CLUSTER}
    of_cluster, of_shell = (chosen, f"cluster {named} in {path}"), (by_variable, "")
    layers = [(common, f"defaults in {path}"), *([of_shell, of_cluster] if cluster is not None else [of_cluster, of_shell])]
    values: dict[str, str] = {}
    origins: dict[str, str] = {}
    for layer, origin in layers:
        values |= layer
        origins |= {name: origin or variable(name) for name in layer}
    said = f"cluster {named} of {path}: {values.get('bootstrap_server')}" if named is not None else None
    return Defaults(values, origins, said)


def toml_file(environment: Mapping[str, str], folder: Path) -> Path | None:
    """The one file that counts: the one that is named, else the one here, else the user's own."""
    if environment.get(FILE):
        return Path(environment[FILE])
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME") or "~").expanduser() / ".config")
    places = (folder / NAME, Path(home) / "trimtab" / NAME)
    return next((place for place in places if place.is_file()), None)


def cluster_names(environment: Mapping[str, str], folder: Path) -> list[str]:
    """Names for `--cluster`."""
    path = toml_file(environment, folder)
    return [] if path is None else sorted(read_toml(path).get("clusters", {}))


def read_toml(path: Path) -> dict[str, Any]:
    """Tables of the file, checked: ``defaults`` and ``clusters``, paths made absolute.

    Raises
    ------
    ConfigurationError
        It cannot be read, or anything in it is wrong: all problems at once.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigurationError(str(path), [Problem("", f"cannot be read ({error.strerror}); {_places()}")]) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(str(path), [Problem("", f"expected TOML in UTF-8: {error}")]) from None
    problems = [Problem(key, f"expected defaults or clusters{_meant(key, ('defaults', 'clusters'))}") for key in document
                if key not in ("defaults", "clusters")]  # fmt: skip
    keys = (*LIVE, *WANTED, *OTHERS)
    defaults = _table(document.get("defaults", {}), "defaults", [k for k in keys if k not in OF_ONE_CLUSTER], path.parent, problems)
    clusters = document.get("clusters", {})
    if not isinstance(clusters, dict):
        problems.append(Problem("clusters", "expected tables such as [clusters.prod]"))
        clusters = {}
    tables = {name: _table(table, f"clusters.{name}", keys, path.parent, problems) for name, table in clusters.items()}
    for name, written in clusters.items():
        if isinstance(written, dict) and not {"bootstrap-server", "bootstrap_server"} & written.keys():
            problems.append(Problem(f"clusters.{name}", 'expected bootstrap-server = "HOST:PORT", found none; add it'))
    if problems:
        raise ConfigurationError(str(path), problems)
    return {"defaults": defaults, "clusters": tables}


def _table(table: object, place: str, keys: Collection[str], folder: Path, problems: list[Problem]) -> dict[str, str]:
    if not isinstance(table, dict):
        problems.append(Problem(place, f"expected a table [{place}]"))
        return {}
    options = {key.replace("_", "-"): key for key in keys}
    values = {}
    for written, value in table.items():
        at = f"{place}.{written}"
        key = options.get(written)
        if key is None:
            of_one = written.replace("-", "_") in OF_ONE_CLUSTER
            hint = _meant(written, options) or f"; known: {', '.join(options)}"
            if of_one:
                hint = f"; write {written.replace('_', '-')}" if place != "defaults" else "; it stands in [clusters.NAME]"
            problems.append(Problem(at, f"is not a setting here{hint}"))
        elif isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            problems.append(Problem(at, f"expected a text or a whole number, found {value!r}"))
        else:
            values[key] = str(folder / value) if key in PATHS and isinstance(value, str) else str(value)
    return values


def _of(table: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in table.items() if name in names}


def _meant(key: str, known: Collection[str]) -> str:
    close = get_close_matches(key, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def _places() -> str:
    return f"it may stand here, in ~/.config/trimtab/, or where {FILE} says"


def _wrong(place: str, message: str) -> ConfigurationError:
    return ConfigurationError("options", [Problem(place, message)])
