"""A browser for checks, driven over a pipe by the DevTools protocol: no package of Python is needed."""

import base64
import json
import os
import select
import subprocess
import sys
import time

PATIENCE_S = 120


def check(holds, text):
    if not holds:
        sys.exit(f"FAILED: {text}")


def until(what, looks, interval_s=0.2):
    begun = time.monotonic()
    while not (found := looks()):
        check(time.monotonic() - begun < PATIENCE_S, f"no {what} within {PATIENCE_S} s")
        time.sleep(interval_s)
    return found


class Browser:
    """Chromium with one tab."""

    def __init__(self, folder):
        to_browser, ours_out = os.pipe()
        ours_in, from_browser = os.pipe()

        def ends():
            # The browser reads from 3 and writes to 4, of which one may be a pipe's own number.
            one, other = os.dup(to_browser), os.dup(from_browser)
            os.dup2(one, 3)
            os.dup2(other, 4)

        program = next(
            name
            for name in ("chromium", "chromium-browser", "google-chrome")
            if subprocess.run(["which", name], capture_output=True).returncode == 0
        )
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ]
        options += [
            "--disable-component-update",
            "--disable-sync",
            "--remote-debugging-pipe",
            f"--user-data-dir={folder}",
            "about:blank",
        ]
        self.child = subprocess.Popen(
            [program, *options], preexec_fn=ends, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(to_browser)
        os.close(from_browser)
        self.out, self.inn, self.buffer, self.last, self.session, self.events = ours_out, ours_in, b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.message(PATIENCE_S)
            check(answer is not None, f"the browser does not answer to {method}")
            if answer.get("id") == self.last:
                check("error" not in answer, f"{method}: {answer.get('error')}")
                return answer["result"]
            self.events.append(answer)

    def message(self, patience_s):
        while b"\0" not in self.buffer:
            if not select.select([self.inn], [], [], patience_s)[0]:
                return None
            self.buffer += os.read(self.inn, 1 << 20)
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def value(self, script):
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        check("exceptionDetails" not in found, f"{script}: {found}")
        return found["result"].get("value")

    def look(self, width, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url):
        self.call("Page.navigate", url=url)
        until(url, lambda: self.value("document.readyState") == "complete", 0.05)

    def screenshot(self, file):
        height = self.value("Math.min(document.documentElement.scrollHeight, 6000)")
        width = self.value("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        image = base64.b64decode(
            self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        )
        check(int.from_bytes(image[16:20], "big") == width, f"{file} is not {width} pixels wide")
        with open(file, "wb") as out:
            out.write(image)

    def end(self):
        self.child.kill()
        self.child.wait()
