"""Where a runnable Apache Kafka comes from: a class path, and the Java that runs it.

Used by `tests.kafka.cluster`. Either the `libs` folder of ``KAFKA_HOME``, or the jars of `pom.xml` that
Maven copied into a cache outside the tree. Two runs may fill the cache at the same time, and a copy that
was cut off is never used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
OLDEST_JAVA = 17


class Unavailable(RuntimeError):
    """Real Kafka cannot run on this machine; the message says what to install."""


def class_path(environment: Mapping[str, str] = os.environ) -> str:
    """The class path of a complete Kafka, as Java takes it (with its own ``*``)."""
    home = environment.get("KAFKA_HOME")
    if home:
        libs = Path(home) / "libs"
        if not any(libs.glob("kafka_2.13-*.jar")):
            raise Unavailable(
                f"KAFKA_HOME is {home}, but there is no kafka_2.13-*.jar in {libs}. Point KAFKA_HOME at "
                "an unpacked "
                "Apache Kafka 4.x, or unset it so that Maven fetches the jars."
            )
        return f"{libs}/*"
    return f"{_cached_jars(environment)}/*"


def agent(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """The jar of an agent that `pom.xml` names, such as ``jmx_prometheus_javaagent``; no Kafka has it in its
    `libs`."""
    found = sorted(_cached_jars(environment).glob(f"{name}-*.jar"))
    if not found:
        raise Unavailable(f"{POM.name} brought no {name}-*.jar")
    return found[-1]


def kafka_version() -> str:
    """The release that `pom.xml` asks for."""
    found = re.search(r"<kafka\.version>([^<]+)<", POM.read_text())
    if found is None:
        raise Unavailable(f"{POM.name} has no kafka.version")
    return found.group(1)


def java(environment: Mapping[str, str] = os.environ) -> str:
    """Path of a Java that is new enough: ``JAVA_HOME`` first, then ``PATH``."""
    home = environment.get("JAVA_HOME")
    path = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environment.get("PATH"))
    if path is None or not os.access(path, os.X_OK):
        where = f"JAVA_HOME is {home}, without bin/java" if home else "there is no java on the PATH"
        raise Unavailable(f"Kafka needs Java {OLDEST_JAVA} or newer, but {where}. Install a JDK or JRE, or set JAVA_HOME.")
    said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if version is None or int(version.group(1)) < OLDEST_JAVA:
        first = said.strip().splitlines()[0] if said.strip() else "no version at all"
        raise Unavailable(
            f"Kafka needs Java {OLDEST_JAVA} or newer, but {path} says: {first}. Set JAVA_HOME to a newer one."
        )
    return path


def cache_root(environment: Mapping[str, str] = os.environ) -> Path:
    """``TRIMTAB_CACHE``, else ``trimtab`` in the user's cache folder."""
    if environment.get("TRIMTAB_CACHE"):
        return Path(environment["TRIMTAB_CACHE"])
    base = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "trimtab"


def shared_classes(make: Callable[[Path], None], environment: Mapping[str, str] = os.environ) -> Path | None:
    """File of the classes of a running Kafka in the form that the JVM maps into memory (class data sharing): a cluster starts with 40% less
    CPU time. `make` writes it where there is none for these jars and this Java. None where it did not."""
    jars = sorted((jar.name, jar.stat().st_size) for jar in Path(class_path(environment).removesuffix("/*")).glob("*.jar"))
    version = subprocess.run([java(environment), "-version"], capture_output=True, text=True, check=False).stderr
    key = hashlib.sha256(repr((class_path(environment), jars, version)).encode()).hexdigest()[:16]
    path = cache_root(environment) / f"kafka-classes-{key}.jsa"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_suffix(".lock")):
        if not path.is_file():
            scratch = path.with_suffix(f".{os.getpid()}")
            make(scratch)
            if not scratch.is_file():
                return None
            scratch.rename(path)
    return path


def _cached_jars(environment: Mapping[str, str]) -> Path:
    """Folder with the jars of `pom.xml`, filled by Maven on first use. A changed `pom.xml` gets a folder of
    its own."""
    pom = hashlib.sha256(POM.read_bytes()).hexdigest()[:8]
    folder = cache_root(environment) / f"kafka-{kafka_version()}-{pom}"
    if folder.is_dir():
        return folder
    maven = shutil.which("mvn", path=environment.get("PATH"))
    if maven is None:
        raise Unavailable(
            "The real-Kafka tests need Apache Kafka: install Maven (it fetches 55 MB of jars once), or "
            "unpack an "
            "Apache Kafka 4.x and set KAFKA_HOME to it."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _locked(folder.parent / f".{folder.name}.lock"):
        if not folder.is_dir():
            _copy_with_maven(maven, folder)
    return folder


def _copy_with_maven(maven: str, folder: Path) -> None:
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        command = [maven, "-q", "-B", "-f", str(POM), "dependency:copy-dependencies",
                   "-DincludeScope=runtime", f"-DoutputDirectory={scratch}"]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not any(scratch.glob("kafka_2.13-*.jar")):
            raise Unavailable(
                f"Maven could not fetch Apache Kafka {kafka_version()}. Check its network and "
                "settings.xml, or set "
                "KAFKA_HOME to an unpacked Apache Kafka 4.x. Maven "
                f"said:\n{(done.stdout + done.stderr)[-2000:]}"
            )
        scratch.chmod(0o755)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # released with the file, also when the process dies
        yield
