"""Drive a headless Chromium over its debugging pipe, without packages, ports or network.

The browser reads commands from file descriptor 3 and writes answers to 4 (NUL-terminated JSON).
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TIMEOUT_SECONDS = 60.0


def find_browser() -> str | None:
    """Return the path of Chromium; the environment variable CHROMIUM overrides it."""
    override = os.environ.get("CHROMIUM")
    return override or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One browser with one page."""

    def __init__(self, program: str, profile: str) -> None:
        to_child, from_parent = os.pipe()
        to_parent, from_child = os.pipe()
        self._in, self._out = from_parent, to_parent
        flags = (
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
            "--hide-scrollbars --remote-debugging-pipe --disable-background-networking "
            f"--user-data-dir={profile} about:blank"
        )
        shell = f'exec "$0" {flags} 3<&{to_child} 4>&{from_child}'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, program],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_child)
        os.close(from_child)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.session: str | None = None
        self.allowed_host = ""  # start of addresses that may be requested
        self.problems: list[str] = []
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its answer; errors of the page are collected in `problems`."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self._notice(answer)

    def open(
        self, place: Path | str, *, ready: str = "document.documentElement?.dataset.ready"
    ) -> None:
        """Open a file or an address and wait until an expression is true."""
        self.problems.clear()
        if isinstance(place, str):
            self.send("Page.navigate", url="about:blank")  # or only the fragment may change
        url = place if isinstance(place, str) else place.resolve().as_uri()
        self.send("Page.navigate", url=url)
        self.wait(ready)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = self.send(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            message = details.get("exception", {}).get("description") or details["text"]
            raise RuntimeError(f"{expression}: {message}")
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + TIMEOUT_SECONDS
        while not self._is_true(expression):
            if time.monotonic() > end:
                raise TimeoutError(expression)
            time.sleep(0.02)

    def _is_true(self, expression: str) -> bool:
        try:
            return bool(self.evaluate(f"Boolean({expression})"))
        except RuntimeError as error:
            # another page is loading, or its elements are not there yet
            if any(text in str(error) for text in ("navigated", "context", "properties of null")):
                return False
            raise

    def click(self, selector: str) -> None:
        """Click the first element that matches a selector."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")

    def choose(self, selector: str, value: str) -> None:
        """Set a field and dispatch its events."""
        self.evaluate(
            f"(() => {{ const field = document.querySelector({json.dumps(selector)});"
            f"field.value = {json.dumps(value)};"
            "field.dispatchEvent(new Event('input', {bubbles: true}));"
            "field.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def press(self, key: str, code: int, *, modifiers: int = 0) -> None:
        """Press and release a key; `modifiers` adds 1 for Alt, 2 for Ctrl and 8 for Shift."""
        text = {"text": "\r" if key == "Enter" else key} if key == "Enter" or len(key) == 1 else {}
        for kind, more in (("keyDown", {} if modifiers & 2 else text), ("keyUp", {})):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                modifiers=modifiers,
                **more,
            )

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def media(self, *, scheme: str = "light", kind: str = "screen") -> None:
        """Emulate a color scheme and a medium."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", media=kind, features=features)

    def save_screenshot(self, path: Path, *, full_page: bool = False) -> None:
        """Save a screenshot as PNG."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=full_page)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """End the browser."""
        os.close(self._in)
        os.close(self._out)
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._out], [], [], TIMEOUT_SECONDS)[0]:
                raise TimeoutError("the browser did not answer")
            chunk = os.read(self._out, 1 << 20)
            if not chunk:
                raise RuntimeError("the browser has exited")
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def _notice(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(json.dumps(params["args"])[:500])
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            is_allowed = bool(self.allowed_host) and url.startswith(self.allowed_host)
            if not is_allowed and not url.startswith(("file:", "blob:", "data:", "about:")):
                self.problems.append(f"requested {url}")


@contextmanager
def browsing(program: str) -> Iterator[Browser]:
    """Run a browser inside the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            yield browser
        finally:
            browser.close()
