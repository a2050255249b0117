"""Headless Chromium, driven through its DevTools protocol: one process, one tab a test.

The tab keeps what a test must not find: messages of the console and requests to elsewhere. Nothing here waits by the clock: conditions
are looked at in the page, frame by frame.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 60.0  # seconds for one answer: machines that run tests are slow by turns
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-US",
    "--ignore-certificate-errors", "--remote-debugging-port=0",
)  # fmt: skip


def found() -> str | None:
    """The program, or None where it is not installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """The process. A context manager."""

    def __init__(self, program: str, folder: Path) -> None:
        command = [program, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=_quiet())
        self.port = self._read_port()

    def _read_port(self) -> int:
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if line.startswith("DevTools listening on ws://"):
                return int(line.split(":")[2].partition("/")[0])
        raise RuntimeError("Chromium did not start:\n" + "".join(said[-20:]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def tab(self) -> Tab:
        """A new tab with storage of its own."""
        return Tab(self.port)


def _quiet() -> dict[str, str]:
    """Without a session bus, which Chromium would complain of, and without a proxy."""
    return {k: v for k, v in os.environ.items() if "proxy" not in k.lower() and k != "DBUS_SESSION_BUS_ADDRESS"}


class Tab:
    """One page. `troubles` are errors and warnings of the console, `requests` all URLs that were asked for."""

    def __init__(self, port: int) -> None:
        import urllib.request

        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/json/version", timeout=PATIENCE) as answer:
            url = json.load(answer)["webSocketDebuggerUrl"]
        self._end = ExitStack()
        self._socket: ClientConnection = self._end.enter_context(connect(url, max_size=None, proxy=None, ping_interval=None))
        self._numbers = itertools.count(1)
        self._session: str | None = None
        self._events: deque[dict[str, Any]] = deque()
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self._context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=self._context)["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._session = None
        self.send("Target.disposeBrowserContext", browserContextId=self._context)
        self._end.close()

    def send(self, method: str, /, **params: Any) -> dict[str, Any]:
        """What the browser answers to one command."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(PATIENCE))
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                self.troubles.append(details.get("exception", {}).get("description") or details["text"])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.troubles.append(" ".join(str(a.get("value", a.get("description"))) for a in params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.troubles.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description") or details["text"])
        return result["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        script = f"""new Promise((yes, no) => {{
          const end = performance.now() + {PATIENCE * 500};
          const late = () => new Error({json.dumps(condition)} + " did not come true; the page: " + document.body.innerText.slice(0, 1500));
          const look = () => {{ let is = false; try {{ is = {condition}; }} catch {{}}
            if (is) yes(true); else if (performance.now() > end) no(late()); else setTimeout(look, 20); }};
          look(); }})"""
        self.run(script)

    def open(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def click(self, selector: str) -> None:
        """As a person would: in the middle of what is found, as soon as it is in sight and nothing covers it."""
        middle = f"""(() => {{ const node = document.querySelector({json.dumps(selector)});
          node.scrollIntoView({{block: "center", behavior: "instant"}});
          const box = node.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
          return node.contains(document.elementFromPoint(x, y)) && [x, y]; }})()"""
        self.until(middle)
        x, y = self.run(middle)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, selector: str, text: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def key(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def show_as(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        """Size of the window, and what the system prefers."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        wishes = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce"}
        self.send("Emulation.setEmulatedMedia", features=[{"name": name, "value": value} for name, value in wishes.items()])

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """The page as PNG."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        if whole:
            box = self.send("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": box["width"], "height": box["height"], "scale": 1}
            shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))
