"""Checks the dashboard with real processes and a real browser, for `.ci/full dashboard`.

    dashboard.py BINARY FOLDER [TASKS]

Screenshots of every page, in light and dark, wide and narrow, go into FOLDER. Sizes of pages, what the browser
requests and what it can show are judged; times are printed. Lines that begin with "note: " are results.
"""

import base64
import http.client
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from browser import PATIENCE_S, Browser, check, until

PREFIX = "/node/host/1"
PAGE_BYTES_MAX = 60_000
STREAMS = 100
PAIRS = 9
STOPS_MAX = 10

MIXED = """version = 1
name = "mixed"
seeds = { from = 1, count = 12 }
[workloads.lublin]
source = "lublin"
synthetic_jobs_count = 300
synthetic_procs = 64
[platforms.cluster]
[policies.fast]
queue_order = ["fcfs", "sjf"]
backfill = ["none", "easy"]
[policies.saving]
backfill = "easy"
gear_rule = "bsld"
bsld_threshold = [1.5, 2, 3]
[policies.conservative]
backfill = "conservative"
"""
SLOW = """version = 1
name = "running"
seeds = { from = 1, count = 4000 }
[workloads.lublin]
source = "lublin"
synthetic_jobs_count = 40000
synthetic_procs = 64
[policies.gears]
gear_rule = "bsld"
bsld_threshold = [1.5, 2]
"""


def trivial(name, tasks):
    return (
        f'version = 1\nname = "{name}"\nseeds = {{ from = 1, count = {tasks // 2} }}\n[workloads.synthetic]\n'
        'source = "lublin"\nsynthetic_jobs_count = 1\n[policies.gears]\ngear_rule = "bsld"\nbsld_threshold = [1.5, 2]\n'
    )


def note(text):
    print(f"note: {text}", flush=True)


class Farm:
    """A coordinator and its dashboard in a folder of their own."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.children = binary, folder, []
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("POWERSWEEP_")}
        self.environment["HOME"] = folder
        self.serve = self.start("serve", "--listen", "127.0.0.1:0", says="powersweep: serving")
        self.dashboard = self.start("dashboard", says="opens with this link")
        link = self.line(self.dashboard, "opens with this link").split()[-1]
        self.port = int(re.search(r":(\d+)/", link)[1])
        self.key = link.split("key=")[1]

    def start(self, *args, says=None):
        log = open(os.path.join(self.folder, f"{len(self.children)}.log"), "w+")
        child = subprocess.Popen(
            [self.binary, *args],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        child.log = log.name
        self.children.append(child)
        if says:
            self.line(child, says)
        return child

    def line(self, child, text):
        def find():
            check(child.poll() is None, f"a process ended: {open(child.log).read()}")
            return next((line for line in open(child.log) if text in line), None)

        return until(text, find, 0.05)

    def run(self, *args):
        done = subprocess.run(
            [self.binary, *args], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        check(done.returncode == 0, f"{args}: {done.stderr}")
        return done.stdout

    def submit(self, manifest, *args):
        name = re.search(r'name = "(\w+)"', manifest)[1]
        with open(os.path.join(self.folder, f"{name}.toml"), "w") as file:
            file.write(manifest)
        self.run("submit", f"{name}.toml", *args)

    def worker(self, *args):
        return self.start("worker", "--name", f"worker-{len(self.children)}", *args, says="connected to")

    def experiment(self, name):
        return json.loads(self.run("status", name, "--json"))["experiments"][0]

    def end(self):
        for child in self.children:
            child.kill()
            child.wait()


class Pages:
    """A client with a cookie."""

    def __init__(self, farm):
        self.port = farm.port
        answer, _ = self.get(f"/?key={farm.key}")
        self.cookie = answer.getheader("Set-Cookie").split(";")[0]

    cookie = ""

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        return answer, answer.read().decode()

    def stream(self, path):
        """A stream that has begun. A browser connects again, too, where too many callers come at once."""
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nCookie: {self.cookie}\r\n\r\n".encode()
        begun = time.monotonic()
        while True:
            stream = socket.create_connection(("127.0.0.1", self.port))
            try:
                stream.sendall(request)
                if stream.recv(1 << 16):
                    return stream
            except ConnectionError:
                pass
            stream.close()
            check(time.monotonic() - begun < PATIENCE_S, f"no stream of {path}")
            time.sleep(0.05)


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "dashboard.js")) as script:
    WRONG = script.read()

# The focused element, and whether it shows that.
FOCUS = """(() => { const e = document.activeElement, s = getComputedStyle(e);
  const name = e.tagName + " " + (e.id || e.name || e.textContent.slice(0, 30));
  return [name, s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2]; })()"""


def keyboard(browser, page):
    """Goes through a page by the tab key: every stop shows the focus."""
    stops = []
    for _ in range(200):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
        name, shown = browser.value(FOCUS)
        if name.startswith("BODY") or stops and name == stops[0] and len(stops) > 3:
            break
        check(shown, f"{page}: {name} does not show the focus")
        stops.append(name)
    check(stops and "main" not in stops[0], f"{page}: the tab key reaches nothing")
    return len(stops)


def reaches_a_failed_task(browser, farm):
    """Goes by the tab key and the enter key alone from the first page to the rows of a failed task."""
    browser.open(f"http://127.0.0.1:{farm.port}{PREFIX}/experiments")
    stops = 0
    focus = "(e => e.getAttribute('href') || e.getAttribute('aria-label') || '')(document.activeElement)"
    for target in ("failures?", "Retry task"):
        while target not in browser.value(focus):
            browser.call("Input.dispatchKeyEvent", type="keyDown", key="Tab", code="Tab", windowsVirtualKeyCode=9)
            stops += 1
            check(stops <= STOPS_MAX, f"no {target} within {STOPS_MAX} stops of the tab key")
        if target == "failures?":
            browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)
            until("page of failures", lambda: browser.value("location.pathname") == f"{PREFIX}/failures")
    note(f"the keyboard reaches a failed task from the first page in {stops} stops of the tab key")


def foreign(browser, port):
    """Requests to other servers, failed requests and messages of the console."""
    found = []
    for event in browser.events:
        params = event.get("params", {})
        url = params.get("request", {}).get("url", "")
        if event.get("method") == "Network.requestWillBeSent" and not url.startswith(
            (f"http://127.0.0.1:{port}/", "file:", "data:", "about:")
        ):
            found.append(f"a request to {url}")
        if event.get("method") == "Network.responseReceived" and params["response"]["status"] >= 400:
            found.append(f"status {params['response']['status']} of {params['response']['url']}")
        if event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            found.append(params["entry"]["text"])
        if event.get("method") == "Runtime.exceptionThrown":
            found.append(str(params["exceptionDetails"]))
    browser.events.clear()
    return found


def shots(browser, farm, folder, pages, stage):
    """Screenshots and checks of pages."""
    count = 0
    # Rows are read when a page is opened for the first time.
    for _, path in pages:
        if not path.startswith("file:"):
            browser.open(f"http://127.0.0.1:{farm.port}{PREFIX}/{path}")
    time.sleep(2)
    for name, path in pages:
        url = path if path.startswith("file:") else f"http://127.0.0.1:{farm.port}{PREFIX}/{path}"
        for width in (1280, 400):
            for scheme in ("light", "dark"):
                browser.look(width, scheme)
                browser.open(url)
                if not path.startswith("file:"):
                    until(name, lambda: "are being read" not in browser.value("document.body.textContent"))
                browser.screenshot(os.path.join(folder, f"{stage}-{name}-{width}-{scheme}.png"))
                wrong = browser.value(WRONG) + foreign(browser, farm.port)
                check(not wrong, f"{stage} {name} at {width} in {scheme}: {wrong}")
                count += 1
        browser.look(1280, "light")
        browser.open(url)
        if not path.startswith("file:"):
            keyboard(browser, name)
    return count


def browse(binary, folder):
    with tempfile.TemporaryDirectory() as place:
        farm = Farm(binary, place)
        browser = Browser(os.path.join(place, "browser"))
        try:
            browser.open(f"http://127.0.0.1:{farm.port}{PREFIX}/?key={farm.key}")
            until("page of experiments", lambda: browser.value("location.pathname") == f"{PREFIX}/experiments")
            count = shots(browser, farm, folder, [("experiments", "experiments"), ("workers", "workers")], "1-empty")
            farm.submit(MIXED.replace("mixed", "failing").replace("count = 300", "count = 9000"))
            worker = farm.worker("--slots", "1", "--task-deadline", "1ms")
            until(
                "failed tasks",
                lambda: farm.experiment("failing")["failed"] + farm.experiment("failing")["quarantined"] > 10,
            )
            worker.kill()
            farm.submit(MIXED)
            time.sleep(1)  # Pages show a state of the farm that is younger than a second.
            waiting = [
                ("experiment", "experiment?name=mixed"),
                ("results", "results?name=mixed"),
                ("failures", "failures?name=mixed"),
                ("time", "time?name=mixed"),
                ("compare", "compare?name=mixed"),
                ("manifest", "manifest?name=mixed"),
            ]
            count += shots(browser, farm, folder, waiting, "2-waiting")
            farm.worker("--slots", "2")
            until("end of mixed", lambda: farm.experiment("mixed")["state"] == "finished")
            farm.submit(SLOW)
            until("rows", lambda: farm.experiment("running")["done"] > 20)
            fills_in(browser, farm)
            survives(browser, farm)
            reaches_a_failed_task(browser, farm)
            farm.run("report", "mixed", "-o", "report.html")
            pages = [
                ("experiments", "experiments"),
                ("workers", "workers"),
                ("experiment", "experiment?name=mixed"),
                ("running", "experiment?name=running"),
                (
                    "chosen",
                    "experiment?name=mixed&x=wait_s_mean&y=utilization_installed&yup=1&by=backfill&of=wait_s_mean",
                ),
                ("results", "results?name=mixed"),
                (
                    "sorted",
                    "results?name=mixed&columns=task_index,policy,queue_order,backfill,seed,bsld_mean,energy_total_j,"
                    "wait_s_mean,wait_s_max&sort=-bsld_mean&where=backfill%3Deasy",
                ),
                ("failures", "failures?name=failing"),
                ("lines", "lines?name=mixed&of=wait_s_mean"),
                ("time", "time?name=mixed"),
                ("now", "time?name=running"),
                ("compare", "compare?name=mixed&a=mixed%3Apolicy%3Dfast,queue_order%3Dfcfs,backfill%3Deasy&b=mixed%3Apolicy%3Dsaving,bsld_threshold%3D2"),
                ("manifest", "manifest?name=mixed"),
                ("numbers", "experiment?name=mixed&by=bsld_threshold&of=energy_total_j"),
                ("list", "experiments?find=mi&sort=failed"),
                ("report", f"file://{place}/report.html"),
            ]
            count += shots(browser, farm, folder, pages, "3-full")
            farm.serve.kill()
            browser.open(f"http://127.0.0.1:{farm.port}{PREFIX}/experiments")
            until(
                "word about the coordinator", lambda: "has not answered" in browser.value("document.body.textContent")
            )
            count += shots(browser, farm, folder, [("experiments", "experiments")], "4-away")
        finally:
            browser.end()
            farm.end()
    note(
        f"{count} screenshots in {folder}; every page fits its window, every text has a contrast of 4.5, every stop "
        "of the tab key shows the focus, and no request left the machine"
    )


def fills_in(browser, farm):
    """An open page changes by itself, and keeps what a user types."""
    browser.look(1280, "light")
    browser.open(f"http://127.0.0.1:{farm.port}{PREFIX}/experiment?name=running")
    points = "(document.getElementById('plot-desc') || {textContent: ''}).textContent"
    first = until("points", lambda: browser.value(points))
    browser.value("document.querySelector('[name=x]').value = 'typed'")
    until("more points", lambda: browser.value(points) != first)
    check(browser.value("document.querySelector('[name=x]').value") == "typed", "an update has changed what was typed")
    check(browser.value("document.querySelectorAll('.marks').length") > 0, "the plot has no marks")


def survives(browser, farm):
    """An open page keeps its contents when its stream is refused, and asks for it again."""
    shown = "document.querySelector('main').textContent"
    browser.call("Fetch.enable", patterns=[{"urlPattern": "*/events*"}])
    browser.call("Page.navigate", url=f"http://127.0.0.1:{farm.port}{PREFIX}/experiment?name=running")
    answers = [b"<h1>503 Service Unavailable</h1>", b"", None]
    while answers:
        asked = [event for event in browser.events if event.get("method") == "Fetch.requestPaused"]
        browser.events.clear()
        for event in asked[: len(answers)]:
            request, body = event["params"]["requestId"], answers.pop(0)
            if body is None:
                browser.call("Fetch.continueRequest", requestId=request)
                continue
            headers = [{"name": "Content-Type", "value": "text/html"}]
            text = base64.b64encode(body).decode()
            browser.call("Fetch.fulfillRequest", requestId=request, responseCode=503, responseHeaders=headers, body=text)
            time.sleep(0.3)
            check("tasks done" in browser.value(shown), f"a refused stream replaced the page: {browser.value(shown)}")
        if not asked and (event := browser.message(PATIENCE_S)):
            browser.events.append(event)
    browser.call("Fetch.disable")
    done = browser.value(shown)
    until("change of the page", lambda: browser.value(shown) != done)
    browser.events.clear()


def large(binary, tasks):
    """Sizes and times of the pages of a large experiment."""
    with tempfile.TemporaryDirectory() as place:
        farm = Farm(binary, place)
        try:
            farm.worker("--slots", "2")
            farm.submit(trivial("large", tasks), "--wait")
            pages = Pages(farm)
            paths = ["experiments", "workers", "experiment?name=large", "failures?name=large", "results?name=large"]
            paths += [
                "results?name=large&sort=-wait_s_mean&page=3",
                "results?name=large&where=seed%3D7",
                "time?name=large",
                "lines?name=large&x=makespan_s&by=bsld_threshold",
                "compare?name=large&a=large%3Absld_threshold%3D1.5&b=large%3Absld_threshold%3D2",
                "experiment?name=large&x=makespan_s&by=bsld_threshold",
            ]
            for path in paths:
                first_ms, begun = None, time.monotonic()
                while True:
                    asked = time.monotonic()
                    answer, text = pages.get(f"{PREFIX}/{path}")
                    first_ms = first_ms or (time.monotonic() - asked) * 1e3
                    check(answer.status == 200, f"{path}: {answer.status}")
                    if "are being read" not in text:
                        break
                    check(time.monotonic() - begun < PATIENCE_S, f"{path}: {text}")
                    time.sleep(0.1)
                filled_s = time.monotonic() - begun
                times = []
                for _ in range(20):
                    asked = time.monotonic()
                    pages.get(f"{PREFIX}/{path}")
                    times.append((time.monotonic() - asked) * 1e3)
                    time.sleep(0.1)
                check(len(text.encode()) < PAGE_BYTES_MAX, f"{path} has {len(text.encode())} bytes")
                check("This page lacks rows" not in text, f"{path}: {text}")
                note(
                    f"{tasks} tasks, {path}: {len(text.encode())} bytes; first answer {first_ms:.0f} ms, rows after "
                    f"{filled_s:.1f} s; then at most {max(times):.0f} ms, median {sorted(times)[10]:.1f} ms"
                )
        finally:
            farm.end()


def cpu_s(children):
    """Processor time of running processes."""
    ticks = 0
    for child in children:
        with open(f"/proc/{child.pid}/stat") as file:
            ticks += sum(int(field) for field in file.read().rsplit(")", 1)[1].split()[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def viewers(binary, tasks):
    """Tasks a second, and a second of processor time, with and without open pages in turn."""
    with tempfile.TemporaryDirectory() as place:
        farm = Farm(binary, place)
        try:
            farm.worker("--slots", "2")
            farm.submit(trivial("warm", tasks // 10), "--wait")
            pages = Pages(farm)
            rates, costs, shares = [], [], []
            for pair in range(PAIRS):
                found = {}
                for watched in (False, True) if pair % 2 == 0 else (True, False):
                    name = f"pair{pair}{'watched' if watched else 'alone'}"
                    found[watched] = sweep(farm, pages, name, tasks, STREAMS if watched else 0)
                rates.append(found[True][0] / found[False][0])
                costs.append(found[True][1] / found[False][1])
                shares.append(found[True][2] / found[False][1])
            shown = [
                f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
                for ratios in (rates, costs, shares)
            ]
            note(
                f"{STREAMS} open pages, {PAIRS} pairs of sweeps of {tasks} tasks with and without them, median ratios: "
                f"tasks/s {shown[0]}, processor time of all processes {shown[1]}, of the dashboard alone {shown[2]}"
            )
        finally:
            farm.end()


def sweep(farm, pages, name, tasks, viewers):
    """Tasks a second, and processor time of all processes and of the dashboard, of a sweep with open pages."""
    kinds = ["experiments", "workers", "experiment", "results"]
    streams = [pages.stream(f"/events?page={kinds[n % 4]}&name={name}") for n in range(viewers)]
    for stream in streams:
        threading.Thread(target=drain, args=(stream,), daemon=True).start()
    begun, before, own = time.monotonic(), cpu_s(farm.children), cpu_s([farm.dashboard])
    farm.submit(trivial(name, tasks), "--wait")
    rate = tasks / (time.monotonic() - begun)
    measured = rate, cpu_s(farm.children) - before, cpu_s([farm.dashboard]) - own
    for stream in streams:
        stream.shutdown(socket.SHUT_RDWR)
    return measured


def drain(stream):
    try:
        while stream.recv(1 << 16):
            pass
    except OSError:
        pass


def main():
    binary, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    tasks = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    os.makedirs(folder, exist_ok=True)
    browse(binary, folder)
    if tasks:
        large(binary, tasks)
        viewers(binary, tasks)


main()
