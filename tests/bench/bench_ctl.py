#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time of cstatectl's verbs (budget 50 ms each) on a week of data of 64 CPUs. Prints; fails on no figure.

History is asked of a daemon on that database; "--db" is the same question without one, where cstatectl does the
daemon's part of the work as well. The live verbs are asked on the fake machine skx-64, if it can run here.

    bench_ctl.py [DAYS]
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fakecpu"))
import fakecpu  # noqa: E402

CSTATED = os.environ.get("CSTATED", "cstated")
CSTATECTL = os.environ.get("CSTATECTL", "cstatectl")
WEEK = os.environ.get("WEEK", "week")
CPUS = 64
BUDGET = 50.0
RUNS = 5


def cpu_ms(argv):
    """Least of some runs, and what it said last."""
    best, out = float("inf"), b""
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime))
        out = done.stdout
        if done.returncode not in (0, 5):
            return None, done.stderr
    return best, out


def show(name, argv, other=None):
    best, out = cpu_ms(argv)
    if best is None:
        print("  %-34s %s" % (name, out.decode().strip()))
        return
    line = "  %-34s %7.1f ms  budget %g%s  %6d lines" % (name, best, BUDGET, "" if best <= BUDGET else " MISSED", out.count(b"\n"))
    if other:
        alone, _ = cpu_ms(other)
        line += "  --db %s" % ("%.1f ms" % alone if alone is not None else "-")
    print(line, flush=True)


def history(folder, days):
    db, sock = os.path.join(folder, "db"), os.path.join(folder, "socket")
    start, end = map(int, subprocess.run([WEEK, db, str(CPUS), str(days)], capture_output=True, text=True, check=True).stdout.split())
    hour = "%d..%d" % (end - 3600000, end)
    print("%d CPUs, %d days, %.0f MB" % (CPUS, days, os.path.getsize(db) / 1e6))
    last = ["--start", str(end - 3600000), "--end", str(end)]
    verbs = {
        "show (last hour)": ["show", hour],
        "show --scope cpu (last minute)": ["show", "--scope", "cpu", "%d..%d" % (end - 60000, end)],
        "show (all days)": ["show", "%d..%d" % (start, end)],
        "compare (2 x 5 windows of 10 min)": ["compare", "old", "new"],
        "compare (two days)": ["compare", "%d..%d" % (end - 2 * 86400000, end - 86400000), "%d..%d" % (end - 86400000, end)],
        "query busy of each CPU, an hour": ["query", "--metric", "busy", *last, "--step", "1m"],
        "query pkg_watts, all days by 1h": ["query", "--metric", "pkg_watts", "--start", str(start), "--end", str(end), "--step", "1h"],
        "labels": ["labels"],
        "events": ["events", *last],
        "export openmetrics, an hour": ["export", "--format", "openmetrics", *last, "--step", "1m"],
        "cpu": ["cpu"],
        "status": ["status"],
        "doctor": ["doctor", *last],
    }
    with open(os.path.join(folder, "log"), "wb") as log:
        daemon = subprocess.Popen([CSTATED, "--config", os.devnull, "--db", db, "--listen", sock, "--interval", "60s"],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 20
        while not os.path.exists(sock) and time.monotonic() < deadline:
            time.sleep(0.1)
        for name, args in verbs.items():
            show(name, [CSTATECTL, "--connect", sock, *args], [CSTATECTL, "--db", db, *args])
    finally:
        daemon.terminate()
        daemon.wait(30)


def live(folder):
    """Inside the fake machine."""
    sock = os.path.join(folder, "live")
    with open(os.path.join(folder, "live.conf"), "w", encoding="ascii") as f:
        f.write("[Sampler]\nSources=-idletrace,-perf\n")
    with open(os.path.join(folder, "live.log"), "wb") as log:
        daemon = subprocess.Popen([CSTATED, "--config", os.path.join(folder, "live.conf"), "--db", os.path.join(folder, "live.db"),
                                   "--listen", sock, "--interval", "500ms"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        time.sleep(4)
        for name, args in {"snapshot": [], "snapshot -S": ["-S"], "snapshot -i 2 -n 1": ["-i", "2", "-n", "1"], "status": ["status"],
                           "top -n 1": ["top", "-n", "1"], "cpu": ["cpu"]}.items():
            show(name, [CSTATECTL, "--connect", sock, *args])
    finally:
        daemon.terminate()
        daemon.wait(30)


def main():
    if sys.argv[1:2] == ["--inside"]:
        return live(sys.argv[2])
    days = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory(prefix="cstated-bench-", dir="/var/tmp") as folder:
        history(folder, days)
        print("live, %d CPUs" % CPUS, flush=True)
        done = fakecpu.run("skx-64", [sys.executable, os.path.abspath(__file__), "--inside", folder], stderr=subprocess.PIPE, text=True)
        if done.returncode == fakecpu.SKIP:
            print(done.stderr.strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
