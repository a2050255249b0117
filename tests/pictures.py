"""Pictures of the page on each bad day, light and dark, on a desk and on a phone, for docs/pictures.md, and of all of it for docs/http.md.

``python -m tests.pictures`` makes them all again in docs/images; needs Chromium. A day is the real page of a real service beside a
simulated cluster that has such a day, in virtual time, so what is read there is what an operator would read. The whole page is that of the
examples, and of a thousand brokers.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import SecretStr

from tests.assembled.service.beside import NODE, OTHER, Service, World, simulated_executor
from tests.browser.chromium import Chromium, Tab, found
from tests.service_face import FakeFace, large, small
from trimtab.http import HttpServer, HttpSettings, serve
from trimtab.http.others import ClusterPart
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.spec import GB, MB, BrokerSpec, TopicSpec
from trimtab.simulator.traffic import Traffic

FOLDER = Path(__file__).parents[1] / "docs" / "images"
SIZES = {"desk": (1400, 900), "phone": (390, 844)}
WHOLE: Mapping[str, Callable[[], FakeFace]] = {"page-light": small, "page-dark": partial(large, 1000)}
WHOLE_SIZE = (1280, 1950)
MOST_BYTES = 2_000_000  # of all pictures
COLOURS, ALIKE = 96, 200  # of a picture, and the square of the distance of two that are as one
TOKEN = "a-token-of-some-length"
GOALS = """
version: 1
goals:
  - {kind: rack_aware, hard: true}
  - {kind: count_limit, resource: replicas, max: 400, hard: true}
  - {kind: usage_distribution, resource: network_in, bound: 0.12}
  - {kind: usage_distribution, resource: network_out, bound: 0.15}
  - {kind: usage_distribution, resource: disk, bound: 0.15}
  - {kind: usage_distribution, resource: replicas, bound: 0.2}
"""
LOADED = (
    "document.querySelector('#live').textContent === 'live' && document.querySelector('table.workers')"
    " && document.querySelector('#verdict .tone').textContent !== 'Connecting'"
)
QUIET = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


def cluster(skew: float = 1.0) -> SimulatedCluster:
    """Six brokers in three racks; with a `skew` the first partitions have so many times the traffic."""
    made = SimulatedCluster(
        [BrokerSpec(i, rack=f"rack-{'abc'[(i - 1) % 3]}") for i in range(1, 7)],
        cluster_id="payments-eu", traffic=Traffic(0, noise=0.0), resolution_s=5.0,
    )  # fmt: skip
    for name, count, factor, rate in (("orders", 24, 3, 2.0), ("clicks", 24, 2, 1.2), ("audit", 12, 3, 0.4)):
        lists = tuple(tuple(1 + (n + k) % 6 for k in range(factor)) for n in range(count))
        produce = np.array([rate * MB * (skew if n % 6 == 0 else 1.0) for n in range(count)])
        made.create_topic(TopicSpec(name, lists, produce, 1.5, np.full(count, 4 * GB), filled=0.9))
        made.min_isr[name] = factor - 1
    return made


class Stage:
    """A cluster with a service beside it, at the end of some day."""

    def __init__(self, folder: Path, *, skew: float = 1.0, node: int = NODE, mode: str = "approve") -> None:
        folder.mkdir()
        self.world = World(folder, cluster(skew))
        self.service = self.beside(node, mode)

    def beside(self, node: int, mode: str = "approve") -> Service:
        executor = simulated_executor(self.world)
        return Service(self.world, node=node, executor=executor, goals=GOALS, mode=mode, instance=f"controller-{node}")


def level(folder: Path) -> Stage:
    """Nothing is wrong."""
    stage = Stage(folder)
    stage.service.run(90)
    return stage


def plan_waits(folder: Path) -> Stage:
    """The cluster is well, and out of balance: a plan waits for approval."""
    stage = Stage(folder, skew=1.7)
    stage.service.run(90)
    return stage


def restart(folder: Path) -> Stage:
    """A broker is being restarted, in a rolling upgrade."""
    stage = level(folder)
    stage.world.cluster.faults.kill(4)
    stage.service.run(35)
    return stage


def settling(folder: Path) -> Stage:
    """That broker is back, and loads settle."""
    stage = restart(folder)
    stage.world.cluster.faults.restart(4)
    stage.service.run(40)
    return stage


def dead(folder: Path) -> Stage:
    """A broker is lost for good, and a plan of repairs waits for approval."""
    stage = level(folder)
    stage.world.cluster.faults.kill(4)
    stage.service.run(130)
    return stage


def partition(folder: Path) -> Stage:
    """The controller beside the service is cut off from the others."""
    stage = level(folder)
    stage.world.away = "none of 6 brokers could describe the metadata quorum: KafkaTimeoutError"
    stage.world.held = "this replica of the metadata log has heard nothing of the leader for 25 s"
    stage.service.run(60)
    return stage


def disk(folder: Path) -> Stage:
    """The disk that the history is on is full."""
    stage = plan_waits(folder)
    stage.service.balancer._decisions.get()._db.execute("PRAGMA max_page_count = 1")  # it grows no more, as on a full disk
    stage.service.balancer.plan_now("anna")
    stage.service.run(90)
    return stage


def topic(folder: Path) -> Stage:
    """The metric topic was deleted, and no reporter may make it again."""
    stage = level(folder)
    stage.world.unread = "there is no topic __trimtab_metrics; is a reporter running that may make it?"
    stage.service.balancer._feed._drop_topic()  # as a reader does whose topic is gone
    stage.service.run(120)
    return stage


def silent(folder: Path) -> Stage:
    """One reporter is not heard."""
    stage = plan_waits(folder)
    stage.world.cluster.faults.lose_reporter(2)
    stage.service.run(90)
    return stage


def cold(folder: Path) -> Stage:
    """The service starts on a machine on which nothing is compiled."""
    stage = Stage(folder)
    for _ in range(12):
        stage.world.pass_time(5)
        stage.service.turns("metadata", "samples")
    return stage


def standby(folder: Path) -> Stage:
    """Another instance decides; this one leads to its page."""
    stage = level(folder)
    stage.world.elect(OTHER)
    stage.service.run(30)
    return stage


def clusters(folder: Path) -> Stage:
    """Several clusters on one page, of which one is lost and one does not answer."""
    return level(folder)


DAYS: Mapping[str, Callable[[Path], Stage]] = {
    "level": level, "plan": plan_waits, "restart": restart, "settling": settling, "dead": dead, "partition": partition, "disk": disk,
    "topic": topic, "silent": silent, "cold": cold, "standby": standby, "clusters": clusters,
}  # fmt: skip


@contextmanager
def served(name: str, folder: Path) -> Iterator[HttpServer]:
    """The page of a day."""
    with ExitStack() as stack:
        stage = DAYS[name](folder / name)
        stack.callback(stage.service.stop)

        def beside(service: Service) -> str:
            server = serve(service.balancer, HttpSettings(port=0))
            stack.callback(server.stop)
            return server.url.rstrip("/")

        others: list[ClusterPart] = []
        if name == "standby":
            decides = stage.beside(OTHER)
            for _ in range(12):
                stage.service.run(5)
                decides.turns()
            stack.callback(decides.stop)
            others = [ClusterPart(name="payments-eu", urls=[beside(decides)])]
        if name == "clusters":
            for other, day in (("payments-us", dead), ("logs-eu", plan_waits)):
                there = day(folder / f"{other}-of-{name}")
                there.world.cluster.cluster_id = there.service.balancer._model.cluster_id = other
                there.service.balancer._metadata.cluster_id = other
                stack.callback(there.service.stop)
                others.append(ClusterPart(name=other, urls=[beside(there.service)]))
            others.append(ClusterPart(name="logs-us", urls=["http://127.0.0.1:9"]))
        settings = HttpSettings(port=0, token=SecretStr(TOKEN), cluster="payments-eu", clusters=others)
        server = serve(stage.service.balancer, settings)
        stack.callback(server.stop)
        yield server


def shown(tab: Tab, server: HttpServer) -> None:
    """Open the page, and wait until all of it is there."""
    tab.open(server.url)
    tab.until(LOADED)
    tab.until("![...document.querySelectorAll('.clusters .badge')].some((b) => b.textContent === 'Being asked')")
    tab.run(QUIET)


def pictures(folder: Path, days: Sequence[str], whole: Sequence[str], say: Callable[[str], object]) -> int:
    """Bytes of all that were made."""
    program, folder = found(), folder.absolute()
    if program is None:
        raise SystemExit("Chromium is needed and was not found: install it (make chromium)")
    (folder / "days").mkdir(parents=True, exist_ok=True)
    total = 0

    def take(tab: Tab, path: Path, size: tuple[int, int], theme: str, server: HttpServer) -> int:
        tab.show_as(*size, dark=theme == "dark")
        shown(tab, server)
        tab.picture(path, whole=False)
        path.write_bytes(few_colours(pixels_of(blank, path.read_bytes())))
        return path.stat().st_size

    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory())
        stack.enter_context(contextlib.chdir(scratch))  # no path of this machine is in a picture
        chromium = stack.enter_context(Chromium(program, Path(scratch) / "chromium"))
        blank = stack.enter_context(chromium.tab())
        for name in days:
            with served(name, Path()) as server, chromium.tab() as tab:
                for size, pixels in SIZES.items():
                    for theme in ("light", "dark"):
                        total += take(tab, folder / "days" / f"{name}-{size}-{theme}.png", pixels, theme, server)
                tab.open("about:blank#over")
            say(f"{name}: {(DAYS[name].__doc__ or '').strip()}")
        for name in whole:
            server = serve(WHOLE[name](), HttpSettings(port=0, token=SecretStr(TOKEN)))
            stack.callback(server.stop)
            with chromium.tab() as tab:
                total += take(tab, folder / f"{name}.png", WHOLE_SIZE, name.partition("-")[2], server)
                tab.open("about:blank#over")
            say(f"{name}: all of the page")
    return total


# -- small files: the pictures have few colours -----------------------------------------------------------------------


def few_colours(pixels: npt.NDArray[np.uint8]) -> bytes:
    """The picture as PNG, with a few dozen colours."""
    height, width, _ = pixels.shape
    packed = (pixels[:, :, 0].astype(np.uint32) << 16) | (pixels[:, :, 1].astype(np.uint32) << 8) | pixels[:, :, 2]
    colours, at, counts = np.unique(packed, return_inverse=True, return_counts=True)
    rgb = np.stack([(colours >> s) & 255 for s in (16, 8, 0)], axis=1).astype(np.int32)
    kept: list[int] = []  # the most frequent, but none that is nearly another: so a few green signs keep their colour
    for each in np.argsort(-counts, kind="stable").tolist():
        if len(kept) < COLOURS and (not kept or ((rgb[kept] - rgb[each]) ** 2).sum(axis=1).min() > ALIKE):
            kept.append(each)
    nearest = ((rgb[:, None, :] - rgb[kept][None, :, :]) ** 2).sum(axis=2).argmin(axis=1).astype(np.uint8)
    rows = np.zeros((height, width + 1), dtype=np.uint8)  # each with its filter, none
    rows[:, 1:] = nearest[at].reshape(height, width)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    palette = rgb[kept].astype(np.uint8).tobytes()
    parts = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pixels_of(tab: Tab, png: bytes) -> npt.NDArray[np.uint8]:
    """uint8 [height, width, 3] of a picture, as the browser reads it."""
    script = f"""(async () => {{
      const bytes = Uint8Array.from(atob({json.dumps(base64.b64encode(png).decode())}), (c) => c.charCodeAt(0));
      const map = await createImageBitmap(new Blob([bytes], {{ type: "image/png" }}));
      const on = new OffscreenCanvas(map.width, map.height).getContext("2d");
      on.drawImage(map, 0, 0);
      const reader = new FileReader(), data = on.getImageData(0, 0, map.width, map.height).data;
      const text = await new Promise((done) => {{ reader.onload = () => done(reader.result); reader.readAsDataURL(new Blob([data])); }});
      return [map.width, map.height, text.slice(text.indexOf(",") + 1)]; }})()"""
    width, height, text = tab.run(script)
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8).reshape(height, width, 4)[:, :, :3]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder for the pictures")
    every = [*DAYS, *WHOLE]
    parser.add_argument("--days", default=",".join(every), help=f"of {', '.join(every)}; all by default")
    options = parser.parse_args()
    chosen = options.days.split(",")
    unknown = [name for name in chosen if name not in every]
    if unknown:
        parser.error(f"unknown days: {', '.join(unknown)}; there are {', '.join(every)}")

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    total = pictures(options.out, [n for n in chosen if n in DAYS], [n for n in chosen if n in WHOLE], say)
    say(f"{total:,} bytes in {options.out}")
    return 0 if total <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
