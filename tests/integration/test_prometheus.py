#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A real Prometheus scrapes the daemon on the machine that breaks silently: its rates are the machine's watts, the rules
of contrib/prometheus fire, and compare tells before from after.

The outer half starts this file again inside the machine (--inside FOLDER); the inner half leaves what it saw in the
folder; the outer half judges it.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "fakecpu", "run")
RULES = os.path.join(HERE, "..", "..", "contrib", "prometheus", "cstated-rules.yml")
GRAFANA = os.path.join(HERE, "..", "..", "contrib", "grafana", "cstated.json")
CSTATED = os.environ.get("CSTATED", "cstated")
STORY = 32
AFTER = 40
SKIP = 77

CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
scrape_configs:
  - job_name: cstated
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


# ---- inside the machine ----

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(port, path, accept=None, **params):
    url = "http://127.0.0.1:%d%s" % (port, path)
    if params:
        url += "?" + urllib.parse.urlencode(params)
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    with urllib.request.urlopen(request, timeout=20) as r:
        return r.headers["Content-Type"], r.read().decode()


def get_json(port, path, **params):
    return json.loads(get(port, path, **params)[1])


def ask(port, expression):
    return get_json(port, "/api/v1/query", query=expression)["data"]["result"]


def machine_seconds():
    with open(os.path.join(os.environ["FAKECPU_CTL"], "counters")) as f:
        for line in f:
            if line.startswith("time_ns"):
                return int(line.split()[1]) / 1e9
    raise LookupError("time_ns")


def wait_for(what, seconds):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return what()
        except (OSError, urllib.error.URLError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def start(folder, port, prometheus_port):
    with open(os.path.join(folder, "conf"), "w") as f:
        f.write("[Sampler]\nSources=-idletrace,-perf\n")
    with open(os.path.join(folder, "prometheus.yml"), "w") as f:
        f.write(CONFIG.format(port=port))
    with open(RULES) as f:
        rules = f.read().replace("[5m]", "[20s]").replace("for: 5m", "for: 3s")
    with open(os.path.join(folder, "rules.yml"), "w") as f:
        f.write(rules)
    return [
        subprocess.Popen([CSTATED, "--config", os.path.join(folder, "conf"), "--db", os.path.join(folder, "db"), "--interval",
                          "100ms", "--listen", "127.0.0.1:%d" % port], stdin=subprocess.DEVNULL,
                         stderr=open(os.path.join(folder, "daemon.log"), "wb")),
        subprocess.Popen(["prometheus", "--config.file", os.path.join(folder, "prometheus.yml"), "--storage.tsdb.path",
                          os.path.join(folder, "tsdb"), "--web.listen-address", "127.0.0.1:%d" % prometheus_port],
                         stdin=subprocess.DEVNULL, stderr=open(os.path.join(folder, "prometheus.log"), "wb")),
    ]


def ask_grafana(prometheus_port):
    """What each panel of the Grafana dashboard would show: [[title, expression, values]]."""
    with open(GRAFANA) as f:
        panels = json.load(f)["panels"]
    asked = []
    for title, expression in ((p["title"], t["expr"]) for p in panels for t in p.get("targets", [])):
        found = ask(prometheus_port, expression.replace("$__rate_interval", "20s").replace("$instance", ".*"))
        asked.append([title, expression, [float(s["value"][1]) for s in found]])
    return asked


def look(port, prometheus_port):
    """What everybody says once the story has been told."""
    seen = {"watts": ask(prometheus_port, "rate(cstated_rapl_joules_total[30s])")}
    seen["busy"] = ask(prometheus_port, "package:cstated_busy:ratio_rate5m")
    seen["breaks"] = ask(prometheus_port, "package:cstated_idle_break_wakeups:rate5m")
    seen["grafana"] = ask_grafana(prometheus_port)
    seen["alerts"] = get_json(prometheus_port, "/api/v1/alerts")["data"]["alerts"]
    seen["targets"] = get_json(prometheus_port, "/api/v1/targets")["data"]["activeTargets"]
    story = time.time() - (machine_seconds() - STORY)
    before = "%.3f..%.3f" % (story - 20, story - 1)
    after = "%.3f..%.3f" % (story + 5, story + 25)
    seen["node"] = get_json(port, "/api/v1/compare", a=before, b=after)
    seen["packages"] = get_json(port, "/api/v1/compare", a=before, b=after, scope="package", metric="pkg_watts,ram_watts")
    seen["cores"] = get_json(port, "/api/v1/query", metric="c6", scope="core", start="%.3f" % (story + 5), end="%.3f" % (story + 25),
                             points=1)
    seen["open"] = get(port, "/metrics", accept="application/openmetrics-text;version=1.0.0", scope="cpu")
    seen["text"] = get(port, "/metrics", scope="cpu")
    with open(os.path.join(os.environ["FAKECPU_CTL"], "expect")) as f:
        seen["expect"] = [line.rstrip("\n").split("\t") for line in f]
    return seen


def inside(folder):
    port, prometheus_port = free_port(), free_port()
    processes = start(folder, port, prometheus_port)
    try:
        wait_for(lambda: get(port, "/api/v1/status"), 20)
        wait_for(lambda: get(prometheus_port, "/-/ready"), 30)
        time.sleep(max(0, STORY + AFTER - machine_seconds()))
        with open(os.path.join(folder, "seen.json"), "w") as f:
            json.dump(look(port, prometheus_port), f)
    finally:
        for p in processes:
            p.terminate()
        for p in processes:
            p.wait(20)
    return 0


# ---- outside ----

class Prometheus(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        r = subprocess.run([RUN, "regression", "--set", "story=%ds" % STORY, "--", sys.executable, os.path.abspath(__file__),
                            "--inside", cls.folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=220)
        if r.returncode == SKIP:
            print(r.stdout.decode())
            raise unittest.SkipTest(r.stdout.decode())
        if r.returncode != 0:
            sys.stdout.write(r.stdout.decode())
            for name in ("daemon.log", "prometheus.log"):
                path = os.path.join(cls.folder, name)
                if os.path.exists(path):
                    with open(path) as f:
                        sys.stdout.write(f.read()[-4000:])
            raise AssertionError("the inner half failed: %d" % r.returncode)
        with open(os.path.join(cls.folder, "seen.json")) as f:
            cls.seen = json.load(f)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def row(self, reply, metric, **ids):
        rows = [r for r in self.seen[reply]["rows"] if r["metric"] == metric and all(r.get(k) == v for k, v in ids.items())]
        self.assertEqual(len(rows), 1, (metric, ids))
        return rows[0]

    def test_rates_are_the_machines_watts(self):
        expect = {(m, i): float(v) for m, scope, i, v in self.seen["expect"] if scope == "package"}
        zones = {"package": "PkgWatt", "dram": "RAMWatt"}
        found = 0
        for s in self.seen["watts"]:
            labels, value = s["metric"], float(s["value"][1])
            want = [v for (m, i), v in expect.items()
                    if m == zones.get(labels["zone"]) and i.split("/")[0] == labels["package"]]
            self.assertEqual(len(want), 1, labels)
            self.assertLess(abs(value - want[0]), 0.01 * want[0], labels)
            found += 1
        self.assertEqual(found, 4)

    def test_every_scrape_was_good(self):
        self.assertEqual([t["health"] for t in self.seen["targets"]], ["up"])
        self.assertEqual(self.seen["targets"][0]["lastError"], "")

    def test_grafana_has_something_to_show(self):
        for title, expression, values in self.seen["grafana"]:
            self.assertTrue(values, "%s: %s" % (title, expression))
        shown = {title: values for title, _, values in reversed(self.seen["grafana"])}
        self.assertAlmostEqual(shown["Power"][0], 180 + 13.75, delta=4)
        self.assertAlmostEqual(shown["Busy"][0], 0.03, delta=0.002)
        self.assertEqual(shown["Unmitigated errata"], [0])
        self.assertTrue(all(0 <= v <= 1.01 for v in shown["Deep idle: requested and granted"]))

    def test_the_alert_fires(self):
        firing = {(a["labels"]["alertname"], a["labels"].get("package")) for a in self.seen["alerts"] if a["state"] == "firing"}
        self.assertIn(("CstatedBreakStorm", "0"), firing)
        self.assertIn(("CstatedBreakStorm", "1"), firing)
        names = {name for name, _ in firing}
        self.assertEqual(names, {"CstatedBreakStorm"})

    def test_compare(self):
        c6 = self.row("node", "c6")
        self.assertAlmostEqual(c6["change"], -75, delta=0.5)
        self.assertEqual(c6["change_unit"], "pp")
        for package in (0, 1):
            w = self.row("packages", "pkg_watts", package=package)
            self.assertAlmostEqual(w["b"]["mean"] - w["a"]["mean"], 50, delta=0.5)
        breaks = self.row("node", "wakeups_break")
        self.assertEqual(breaks["method"], "bound")
        # 32 CPUs: 0, but for exits and interrupts that fall into different tenths of a second; then at least 356 each
        self.assertLess(breaks["a"]["mean"], 32 * 5)
        self.assertGreater(breaks["b"]["mean"], 32 * 350)
        self.assertEqual(self.seen["node"]["warnings"], [])

    def test_each_core_lost_its_c6(self):
        rows = self.seen["cores"]["rows"]
        self.assertGreaterEqual(len(rows), 2)
        for r in rows:
            self.assertAlmostEqual(r["mean"], 20, delta=0.3)

    def test_both_dialects(self):
        self.assertTrue(self.seen["open"][0].startswith("application/openmetrics-text"))
        self.assertTrue(self.seen["open"][1].endswith("# EOF\n"))
        self.assertTrue(self.seen["text"][0].startswith("text/plain; version=0.0.4"))
        r = subprocess.run(["promtool", "check", "metrics"], input=self.seen["text"][1].encode(), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        self.assertEqual((r.returncode, r.stdout), (0, b""))


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--inside":
        return inside(sys.argv[2])
    for program in ("prometheus", "promtool"):
        if not shutil.which(program):
            print("skipped: %s is not installed" % program)
            return SKIP
    result = unittest.main(exit=False, verbosity=2).result
    return SKIP if result.skipped and not result.failures and not result.errors else not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
