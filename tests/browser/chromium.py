"""A headless Chromium that tests drive by the DevTools protocol, over two pipes.

https://chromedevtools.github.io/devtools-protocol: messages are JSON, each ends with a NUL.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from patience import PATIENCE_S

WIDE, NARROW = 1280, 360


class Browser:
    """One browser with a profile of its own; `page` is one tab after the other."""

    def __init__(self, program: str, profile: Path) -> None:
        theirs, self._write = os.pipe()
        self._read, their_write = os.pipe()
        # The browser wants its pipes at these numbers.
        moved = f'exec "$@" 3<&{theirs} 4>&{their_write}'
        options = (
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--disable-background-networking", "--disable-extensions"),
            *("--remote-debugging-pipe", f"--user-data-dir={profile}", "--hide-scrollbars"),
        )
        self._process = subprocess.Popen(
            ["bash", "-c", moved, "bash", program, *options, "about:blank"],
            pass_fds=(theirs, their_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        os.close(their_write)
        self._rest, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        """End the browser and all its processes, which are a group of their own."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, session: str = "", **parameters: Any) -> Any:
        """What the browser answers; events that come before are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, f"{method}: {said['error']}"
                return said["result"]
            self.events.append(said)

    def wait_for(self, method: str, session: str) -> None:
        """Returns once an event came that was not waited for before."""
        end_s = time.monotonic() + PATIENCE_S
        while not any(e["method"] == method and e.get("sessionId") == session for e in self.events):
            assert time.monotonic() < end_s, f"waited in vain: {method}"
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end_s = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(end_s - time.monotonic(), 0.0))
            part = os.read(self._read, 1 << 20) if ready else b""
            assert part, "the browser does not answer"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        said: dict[str, Any] = json.loads(message)
        return said


class Page:
    """A tab that shows `url`."""

    def __init__(
        self, browser: Browser, url: str, width: int = WIDE, *, dark: bool = False
    ) -> None:
        self._browser = browser
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self._target, self._session = target, attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.forget()
        self.call("Page.navigate", url=url)
        self.wait_for_load()

    def call(self, method: str, **parameters: Any) -> Any:
        return self._browser.call(method, self._session, **parameters)

    def forget(self) -> None:
        """What has happened until now does not count."""
        self._browser.events.clear()

    def wait_for_load(self) -> None:
        """Returns once a page is there that was not."""
        self._browser.wait_for("Page.loadEventFired", self._session)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def resize(self, width: int, height: int = 900) -> None:
        sizes = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **sizes)

    def run(self, script: str) -> Any:
        """The value of an expression, awaited if it is a promise."""
        told = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def wait_until(self, condition: str) -> None:
        """Returns once an expression is true."""
        end_s = time.monotonic() + PATIENCE_S
        while not self.run(condition):
            assert time.monotonic() < end_s, f"waited in vain: {condition}"
            self.run("new Promise((done) => setTimeout(done, 20))")

    def press(self, key: str) -> None:
        """One key of a keyboard."""
        code, text = {"Tab": (9, ""), "Enter": (13, "\r")}[key]
        of_key = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        for kind, typed in (("keyDown" if text else "rawKeyDown", text), ("keyUp", "")):
            self.call("Input.dispatchKeyEvent", type=kind, text=typed, **of_key)

    def focused(self) -> tuple[str, str]:
        """Role and name of what has the focus, as a screen reader is told them."""
        told = self.call("Runtime.evaluate", expression="document.activeElement")
        tree = self.call(
            "Accessibility.getPartialAXTree",
            objectId=told["result"]["objectId"],
            fetchRelatives=False,
        )
        node = tree["nodes"][0]
        return node["role"]["value"], node.get("name", {}).get("value", "")

    def complaints(self) -> list[str]:
        """Errors and warnings of the page, and of the browser about it."""
        self.run("0")  # what was under way has arrived
        said = []
        for event in self._browser.events:
            told = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                said.append(str(told["exceptionDetails"]))
            elif event["method"] == "Runtime.consoleAPICalled" and told["type"] in (
                "error",
                "warning",
            ):
                said.append(str(told["args"]))
            elif event["method"] == "Log.entryAdded" and told["entry"]["level"] != "verbose":
                said.append(told["entry"]["text"])
        return said

    def requests(self) -> list[str]:
        """What was asked for; not what lies in the page itself."""
        asked = [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith("data:")]

    def picture(self, path: Path) -> None:
        """The whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def printed(self, path: Path) -> int:
        """The page as PDF on A4; returns the number of sheets."""
        inches = {"paperWidth": 8.27, "paperHeight": 11.69}
        told = self.call("Page.printToPDF", preferCSSPageSize=False, **inches)
        content = base64.b64decode(told["data"])
        path.write_bytes(content)
        return content.count(b"/Type /Page\n")
