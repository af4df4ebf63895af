#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The dashboard in a real browser, on the fake machine: what stands on the page is what the API said.

A script that runs before the page's own keeps the text of every reply, so that figures are compared with the very reply
they were made of.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import machinebed  # noqa: E402
from browser import PROGRAM, Browser  # noqa: E402
from machinebed import Daemon, MachineTest  # noqa: E402

CHECKS = os.path.join(HERE, "..", "unit", "dashboard-checks.js")
MODULES = ["api", "charts", "format", "heatmap", "now", "series", "timeframe"]
HOSTILE = "<img src=x onerror=alert(1)>"
KEEP = """
window.kept = {}; window.asked = []; window.alerts = 0; window.alert = () => { window.alerts++; };
const fetchWas = window.fetch;
window.fetch = async (...a) => {
    const r = await fetchWas(...a), url = new URL(r.url), text = await r.clone().text();
    window.asked.push(url.pathname + url.search);
    window.kept[url.pathname.split('/').pop() + ' ' + (url.searchParams.get('metric') ?? '')] = text;
    return r;
};
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Page(Browser):
    def __init__(self, port, hash_="", **more):
        super().__init__(**more)
        self.send("Page.addScriptToEvaluateOnNewDocument", source=KEEP)
        self.url = "http://127.0.0.1:%d/" % port
        self.open(self.url + hash_)
        self.until("document.querySelector('#figures .tile') && document.querySelector('#summary').children.length",
                   "the page to be full")

    def kept(self, route, metric=""):
        return json.loads(self.js("window.kept[%s] ?? 'null'" % json.dumps(route + " " + metric)))

    def text(self, selector):
        return self.js("document.querySelector(%s)?.textContent ?? null" % json.dumps(selector))

    def number(self, text):
        """What a person reads: thousands apart, a real minus, a unit behind."""
        m = re.match(r"[-\d. e+]+", text.replace("\u202f", " ").replace("\u2212", "-"))
        return float(m.group(0).replace(" ", "")) if m and text != "-" else None

    def still(self):
        """Nothing changes any more: paused, and the last round over."""
        self.js("document.getElementById('pause').click()")
        self.pump(1.5)


# ---- inside the machine ----

def tiles(page):
    return page.js("""Object.fromEntries([...document.querySelectorAll('#figures .tile')].map((t) => [t.dataset.key,
        {text: (t.querySelector('.value') ?? t.querySelector('.missing')).textContent,
         title: t.querySelector('.missing')?.title ?? null, alarm: t.classList.contains('alarm')}]))""")


def table(page, selector):
    return page.js("""[...document.querySelectorAll(%s + ' tbody tr')].map((r) =>
        [...r.children].map((c) => c.textContent))""" % json.dumps(selector))


def legend(page, panel):
    return page.js("""Object.fromEntries([...document.querySelectorAll('[data-panel=%s] output')].map((o) =>
        [o.dataset.series, o.textContent]))""" % panel)


def look(page):
    """The parts that are compared with replies; nothing may run meanwhile."""
    page.still()
    seen = {"tiles": tiles(page), "snapshot": page.kept("snapshot"), "number": {}}
    for panel, metric in (("power", "node_watts,pkg_watts,ram_watts,sys_watts"), ("requested", "idle_time"),
                          ("wakeups", "wakeups,wakeups_interrupt,wakeups_store,wakeups_break")):
        seen[panel] = {"legend": legend(page, panel), "reply": page.kept("query", metric),
                       "table": table(page, "[data-panel=%s]" % panel),
                       "note": page.text("[data-panel=%s] .note" % panel)}
    seen["summary"] = {"table": table(page, "#summary"), "reply": page.kept("summary")}
    seen["events"] = {"table": table(page, "#events"), "reply": page.kept("events")}
    seen["labels"] = table(page, "#labels")
    seen["canvas"] = page.js("document.querySelectorAll('.plot canvas').length")
    seen["plot"] = page.js("typeof window.Dygraph")
    return seen


def heat(page):
    page.js("document.querySelector('[data-map=busy]').focus()")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight"):
        page.key(key)
    return {"readout": page.text("#heat-readout"), "cells": page.js("document.querySelectorAll('[data-i]').length"),
            "busy": page.text("[data-heat=busy]"), "requested": page.text("[data-heat=requested]")}


def compare(page):
    """By keyboard: A and B typed, Enter."""
    page.js("document.getElementById('compare-a').value = 'plain'; document.getElementById('compare-b').value = %s;"
            "document.getElementById('compare-b').focus()" % json.dumps(HOSTILE))
    page.key("Enter")
    page.until("document.querySelector('#comparison table') !== null")
    return {"table": table(page, "#comparison"), "reply": page.kept("compare"), "text": page.text("#comparison p"),
            "hash": page.js("location.hash")}


def health(page):
    """What stands there at every moment, without scripts of strangers having run."""
    return {"console": page.console, "alerts": page.js("window.alerts"), "images": page.js("document.images.length"),
            "hosts": sorted({u.split("/")[2] for u in page.requests if u.startswith("http")}),
            "host": page.url.split("/")[2]}


def inside_story():
    """The machine that breaks after eight seconds, two labels, one of them hostile."""
    port = free_port()
    with Daemon(interval="250ms", listen=["127.0.0.1:%d" % port]) as d:
        d.wait_samples(50)
        for name in ("plain", HOSTILE):
            body = json.dumps({"name": name, "start": "-5s", "end": "-1s", "meta": {"cmd": ["<b>make</b>", "-j"]}})
            subprocess.run(["curl", "-sS", "--fail", "--unix-socket", d.socket, "-d", body,
                            "http://localhost/api/v1/labels"], check=True, capture_output=True)
        with Page(port) as page:
            page.until("document.querySelector('#figures .alarm') !== null")
            # the next round of charts, with the storm in it
            page.until("document.querySelectorAll('#events tbody tr').length > 0")
            seen = look(page)
            seen["heat"] = heat(page)
            seen["heat"]["snapshot"] = page.kept("snapshot")
            seen["compare"] = compare(page)
            seen["status"] = {"health": page.text("#health"), "sources": table(page, "#sources"),
                              "reply": page.kept("status"), "brand": page.text("#identity h3"), "cpu": page.kept("cpu")}
            with open(CHECKS, encoding="utf-8") as f:
                source = f.read().rstrip().rstrip(";")
            imports = ",".join("%s: await import('/dashboard/%s.js')" % (m, m) for m in MODULES)
            seen["pure"] = page.js("(async () => (%s)({%s}))()" % (source, imports))
            seen["page"] = health(page)
    return seen


def drag(page):
    """Over the middle of the first chart, then back. None where there are no charts."""
    if page.js("typeof window.Dygraph") != "function":
        return None
    page.js("document.querySelector('[data-panel=power]').scrollIntoView({block: 'center'})")
    box = page.js("(() => { const r = document.querySelector('[data-panel=power] .plot').getBoundingClientRect();"
                  "return [r.x, r.y, r.width, r.height]; })()")
    y, left, right = box[1] + box[3] / 2, box[0] + box[2] * 0.4, box[0] + box[2] * 0.7
    page.mouse("mouseMoved", left, y)
    page.mouse("mousePressed", left, y, 1)
    for i in range(1, 6):
        page.mouse("mouseMoved", left + (right - left) * i / 5, y, 1)
    page.mouse("mouseReleased", right, y)
    page.until("location.hash.includes('start=')")
    seen = {"hash": page.js("location.hash"), "custom": page.js("document.getElementById('custom').hidden")}
    page.until("window.asked.some((u) => u.includes('/query?') && u.includes(location.hash.slice(1).split('&')[0]))")
    page.js("history.back()")
    page.until("!location.hash.includes('start=')")
    seen["back"] = page.text("#windows [aria-pressed=true]")
    return seen


def inside_sizes():
    port = free_port()
    seen = {"wide": {}}
    with Daemon(interval="500ms", listen=["127.0.0.1:%d" % port]) as d:
        d.wait_samples(6)
        with Page(port) as page:
            for width in (360, 768, 1400, 3840):
                page.size(width, 900)
                page.pump(0.5)
                seen["wide"][width] = page.js("document.documentElement.scrollWidth")
            page.media("dark")
            seen["dark"] = page.js("getComputedStyle(document.documentElement).backgroundColor")
            page.media("light")
            seen["light"] = page.js("getComputedStyle(document.documentElement).backgroundColor")
            # from the keyboard alone: the first window button, and its press
            page.js("document.activeElement.blur()")
            reached = []
            for _ in range(60):
                page.key("Tab")
                reached.append(page.js("(document.activeElement.dataset.id ?? document.activeElement.id) + '|' "
                                       "+ (document.activeElement.dataset.map ?? '')"))
                if reached[-1].startswith("6h"):
                    page.key("Enter")
            seen["reached"] = reached
            page.until("document.getElementById('window-text').textContent.includes('2 min')")
            seen["pressed"] = page.text("#windows [aria-pressed=true]")
            seen["hash"] = page.js("location.hash")
            seen["drag"] = drag(page)
            # nobody looks: nothing is asked
            page.js("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
            page.pump(1.5)
            before = page.js("window.asked.length")
            page.pump(3)
            seen["hidden"] = page.js("window.asked.length") - before
            page.js("Object.defineProperty(document, 'hidden', {value: false, configurable: true})")
            page.until("window.asked.length > %d" % (before + 2))
            seen["page"] = health(page)
    return seen


def inside_away():
    """The daemon goes; the page says so and asks ever more seldom; it comes back; the page goes on."""
    port = free_port()
    seen = {}
    with Daemon(interval="500ms", listen=["127.0.0.1:%d" % port]) as d:
        d.wait_samples(6)
        page = Page(port)
        page.__enter__()
    try:
        seen["said"] = page.until("document.getElementById('reach').textContent")
        before = len(page.requests)
        page.pump(7)
        seen["asked"] = len(page.requests) - before  # after 1, 2 and 4 s
        seen["dimmed"] = page.js("document.body.classList.contains('away')")
        with Daemon(interval="500ms", listen=["127.0.0.1:%d" % port]) as d:
            d.wait_samples(6)
            page.until("document.getElementById('reach').textContent === ''")
            now = time.time() * 1000
            page.until("JSON.parse(window.kept['snapshot '] ?? '{}').end > %d" % now)
            seen["back"] = True
    finally:
        page.__exit__()
    return seen


def inside_vm():
    """A machine that gives little: dashes with reasons, no zeros."""
    port = free_port()
    with Daemon(interval="500ms", listen=["127.0.0.1:%d" % port]) as d:
        d.wait_samples(6)
        with Page(port) as page:
            seen = look(page)
            seen["page"] = health(page)
    return seen


def inside_erratum():
    port = free_port()
    with Daemon(interval="500ms", listen=["127.0.0.1:%d" % port]) as d:
        d.wait_samples(4)
        with Page(port) as page:
            return {"alarm": page.text("#erratum-alarm"), "problems": page.text("#problems")}


def inside_large():
    port = free_port()
    with Daemon(interval="1s", listen=["127.0.0.1:%d" % port]) as d:
        d.wait_samples(4)
        with Page(port) as page:
            page.js("""window.long = 0; new PerformanceObserver((l) => { for (const e of l.getEntries())
                window.long = Math.max(window.long, e.duration); }).observe({type: 'longtask'})""")
            page.pump(6)
            seen = heat(page)
            seen["wide"] = page.js("document.documentElement.scrollWidth <= innerWidth")
            seen["long"] = page.js("window.long")
            seen["snapshot"] = len(page.js("window.kept['snapshot ']"))
            seen["page"] = health(page)
    return seen


# ---- outside ----

class Dashboard(MachineTest):
    def on(self, scenario, function, *options, timeout=200):
        return super().on(scenario, function, *options, timeout=timeout)

    def check_page(self, page):
        self.assertEqual(page["console"], [])
        self.assertEqual(page["alerts"], 0)
        self.assertEqual(page["images"], 0)
        self.assertEqual(page["hosts"], [page["host"]])

    def reads(self, text, value, what):
        """text is how value is shown: three digits of it."""
        got = Page.number(None, text)
        self.assertIsNotNone(got, "%s: %r" % (what, text))
        self.assertLessEqual(abs(got - value), max(abs(value) * 0.006, 0.0006),
                             "%s: %r instead of %r" % (what, text, value))

    def check_tiles(self, seen):
        system, seconds = seen["snapshot"]["system"], seen["snapshot"]["interval_ms"] / 1000
        for key in ("node_watts", "pkg_watts", "busy", "bzy_mhz", "c6", "pc6", "pkg_temp"):
            tile = seen["tiles"][key]
            if system.get(key) is None:
                self.assertEqual(tile["text"], "-", key)
                self.assertIn(system.get("reasons", {}).get(key, "absent"), tile["title"])
            else:
                self.reads(tile["text"], system[key], key)
        wakeups = system["wakeups"]
        for key, v in (("wakeups", wakeups.get("total")), ("wakeups_break", wakeups.get("break")),
                       ("irq", system.get("irq"))):
            if v is None:
                self.assertEqual(seen["tiles"][key]["text"], "-", key)
            else:
                self.reads(seen["tiles"][key]["text"], v / seconds, key)

    def last_values(self, reply):
        at = {name: i for i, name in enumerate(reply["columns"])}
        last = {}
        for row in reply["values"]:
            if row[at["mean"]] is not None:
                last[row[at["metric"]], row[at["state"]], row[at["package"]]] = row[at["mean"]]
        return last

    def test_story(self):
        seen = self.on("regression", "inside_story", "--set", "story=8s")
        self.check_page(seen["page"])
        self.assertEqual(seen["pure"], [])
        self.check_tiles(seen)
        self.assertTrue(seen["tiles"]["wakeups_break"]["alarm"])
        # charts: the legend's last values, the table's, and lines on a canvas where there is dygraphs
        power = self.last_values(seen["power"]["reply"])
        self.reads(seen["power"]["legend"]["packages and DRAM"], power["node_watts", None, None], "node")
        self.reads(seen["power"]["legend"]["package 1"], power["pkg_watts", None, 1], "package 1")
        states = self.last_values(seen["requested"]["reply"])
        self.assertEqual(set(seen["requested"]["legend"]), {"POLL", "C1", "C1E", "C6"})
        for (_, state, _), value in states.items():
            self.reads(seen["requested"]["legend"][state], value, state)
        for row in seen["requested"]["table"]:
            self.reads(row[2], states["idle_time", row[0], None], row[0])
        self.assertIn("break, at least", seen["wakeups"]["legend"])
        self.assertIn("not measured here: interrupt, store", seen["wakeups"]["note"])
        self.assertEqual(seen["canvas"] > 0, seen["plot"] == "function")
        # the window in figures
        rows = {(r["metric"], r.get("state")): r for r in seen["summary"]["reply"]["rows"]}
        self.assertEqual(len(seen["summary"]["table"]), len(rows))
        busy = next(r for r in seen["summary"]["table"] if r[0] == "busy")
        self.reads(busy[2], rows["busy", None]["mean"], "summary")
        # what happened, as words
        self.assertEqual([r[3] for r in seen["events"]["table"]],
                         [e["text"] for e in reversed(seen["events"]["reply"]["events"])])
        self.assertIn("break-storm", [r[1] for r in seen["events"]["table"]])
        # strangers' words, as text
        self.assertIn(HOSTILE, [r[0] for r in seen["labels"]])
        self.assertIn("<b>make</b> -j", [r[3] for r in seen["labels"]])
        self.assertIn("B: " + HOSTILE, seen["compare"]["text"])
        # comparison
        reply = {(r["metric"], r.get("state")): r for r in seen["compare"]["reply"]["rows"]}
        self.assertEqual(len(seen["compare"]["table"]), len(reply))
        watts = next(r for r in seen["compare"]["table"] if r[0] == "pkg_watts")
        self.reads(watts[2], reply["pkg_watts", None]["a"]["mean"], "compare A")
        self.reads(watts[5], reply["pkg_watts", None]["b"]["mean"], "compare B")
        self.assertIn("a=plain", seen["compare"]["hash"])
        # every CPU
        self.assertEqual(seen["heat"]["cells"], 32 * 4)
        third = seen["heat"]["snapshot"]["cpus"][2]
        self.assertIn("CPU %d, package %d" % (third["cpu"], third["package"]), seen["heat"]["readout"])
        self.reads(seen["heat"]["busy"], third["busy"], "busy of a CPU")
        self.reads(seen["heat"]["requested"], third["idle"]["C6"]["time"], "C6 of a CPU")
        # health and identity
        status = seen["status"]
        self.assertIn(status["reply"]["health"], status["health"])
        self.assertEqual([r[:2] for r in status["sources"]],
                         [[s["name"], s["state"]] for s in status["reply"]["sources"]])
        self.assertEqual(status["brand"], status["cpu"]["cpus"][0]["brand"])

    def test_sizes_keys_politeness(self):
        seen = self.on("skx-2s", "inside_sizes")
        self.check_page(seen["page"])
        for width, scrolled in seen["wide"].items():
            self.assertLessEqual(scrolled, int(width), "at %s px" % width)
        self.assertNotEqual(seen["dark"], seen["light"])
        self.assertIn("custom|", seen["reached"])
        self.assertIn("pause|", seen["reached"])
        self.assertEqual((seen["pressed"], seen["hash"]), ("6 h", "#window=6h"))
        if seen["drag"]:
            start, end = (int(n) for n in re.findall(r"=(\d+)", seen["drag"]["hash"]))
            self.assertTrue(3600 < (end - start) / 1000 < 9000, seen["drag"])  # three tenths of six hours
            self.assertFalse(seen["drag"]["custom"])
            self.assertEqual(seen["drag"]["back"], "6 h")
        self.assertEqual(seen["hidden"], 0)

    def test_away(self):
        seen = self.on("skx-2s", "inside_away")
        self.assertIn("not reachable", seen["said"])
        self.assertTrue(seen["dimmed"] and seen["back"])
        self.assertLessEqual(seen["asked"], 5)
        self.assertGreaterEqual(seen["asked"], 1)

    def test_little_is_given(self):
        seen = self.on("vm", "inside_vm")
        self.check_page(seen["page"])
        self.check_tiles(seen)
        self.assertEqual(seen["tiles"]["node_watts"]["text"], "-")
        self.assertIn("Not measured here", seen["power"]["note"])

    def test_erratum(self):
        seen = self.on("wsm-ex-4s", "inside_erratum", "--set", "bugs=none")
        self.assertIn("erratum clflush_monitor: UNMITIGATED", seen["alarm"])
        self.assertNotIn("clflush_monitor", seen["problems"])  # once is enough

    def test_large(self):
        seen = self.on("skx-512", "inside_large")
        self.check_page(seen["page"])
        self.assertEqual(seen["cells"], 512 * 4)
        self.assertIn("CPU 2, package 0", seen["readout"])
        self.assertTrue(seen["wide"])
        # a browser reports tasks from 50 ms on
        print("512 CPUs: snapshot of %d bytes, longest task of the page %.0f ms (0: below 50)"
              % (seen["snapshot"], seen["long"]))


if __name__ == "__main__":
    if not PROGRAM:
        print("skipped: chromium is not installed (contrib/check browser installs it)")
        sys.exit(77)
    machinebed.main()
