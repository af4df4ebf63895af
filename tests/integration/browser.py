# SPDX-License-Identifier: GPL-2.0-or-later
"""Chromium without a window, driven by its own protocol over two pipes: no port, no driver, no library."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 60


class BrowserError(Exception):
    pass


class Browser:
    """One page. console holds what the page complained of: errors, exceptions, violated policies, failed requests."""

    def __init__(self, width=1400, height=1000):
        self.folder = tempfile.TemporaryDirectory(prefix="cstated-browser-")
        to_read, self.to = os.pipe()
        self.of, of_write = os.pipe()
        self.buffer, self.last_id, self.session = b"", 0, None
        self.console, self.requests = [], []
        self.process = subprocess.Popen(
            ["sh", "-c", 'exec "$0" "$@" 3<&%d 4>&%d' % (to_read, of_write), PROGRAM, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--no-proxy-server", "--hide-scrollbars", "--remote-debugging-pipe",
             "--user-data-dir=" + self.folder.name, "--window-size=%d,%d" % (width, height), "about:blank"],
            pass_fds=(to_read, of_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={k: v for k, v in os.environ.items() if k != "LD_PRELOAD"})
        os.close(to_read)
        os.close(of_write)
        target = next(t for t in self.send("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.of)
        for _ in range(50):  # its helpers may still be writing there
            try:
                self.folder.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def send(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + PATIENCE
        while True:
            reply = self.receive(end - time.monotonic())
            if reply is None:
                raise BrowserError("no answer to %s" % method)
            if reply.get("id") == self.last_id:
                if "error" in reply:
                    raise BrowserError("%s: %s" % (method, reply["error"]))
                return reply["result"]

    def receive(self, timeout):
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.of], [], [], left)[0]:
                return None
            data = os.read(self.of, 1 << 20)
            if not data:
                raise BrowserError("chromium ended")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        self.note(message)
        return message

    def note(self, message):
        p = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.console.append(d.get("exception", {}).get("description", d["text"]))
        elif message.get("method") == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif message.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.console.append("%s (%s)" % (p["entry"]["text"], p["entry"].get("url", "")))
        elif message.get("method") == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])

    def pump(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.receive(end - time.monotonic())

    def open(self, url):
        self.send("Page.navigate", url=url)

    def js(self, expression):
        r = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            d = r["exceptionDetails"]
            raise BrowserError("%s: %s" % (expression, d.get("exception", {}).get("description", d["text"])))
        return r["result"].get("value")

    def until(self, expression, what=None, patience=PATIENCE):
        """Evaluates until it is true; returns its value (an element has none: compare it with null)."""
        end = time.monotonic() + patience
        while True:
            value = self.js(expression)
            if value:
                return value
            if time.monotonic() > end:
                raise BrowserError("waited %g s for %s" % (patience, what or expression))
            self.pump(0.1)

    def size(self, width, height, scale=1):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 500)

    def media(self, scheme, kind=""):
        self.send("Emulation.setEmulatedMedia", media=kind,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode={"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowDown": 40}[key],
                      **({"text": "\r"} if key == "Enter" and kind == "keyDown" else {}))

    def mouse(self, kind, x, y, buttons=0):
        """kind: mouseMoved, mousePressed or mouseReleased; buttons: 1 while the left one is down."""
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, buttons=buttons, clickCount=1,
                  button="left" if buttons or kind == "mouseReleased" else "none")

    def screenshot(self, path, full=False):
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
