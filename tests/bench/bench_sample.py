#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a sample costs on the fake machine, beside Debian's turbostat on the same machine. Prints; fails on no figure.

For 64 and 256 CPUs, all but one asleep and all waking: register reads (the fake machine's ledger), syscalls (strace of
a few samples, apart) and CPU time (of the process that reads) a sample, for WakePolicy lazy and always, for the passive
sources alone, and for turbostat under the shim. Then what both processes of the daemon hold at 512 CPUs.

    bench_sample.py [CPUS...]
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "fakecpu"))
import fakecpu  # noqa: E402

CSTATED = os.environ.get("CSTATED", "cstated")
SAMPLES = int(os.environ.get("BENCH_SAMPLES", "8"))
TRACED = 3
KINDS = {
    "asleep": "include skx-rates\ncores %(cores)d\nsleep cpus=1-%(last)d\n",
    "all-wake": "include all-wake\ncores %(cores)d\n",
}
CASES = {
    "passive": ("lazy", "cpuidle,irq,stat"),
    "lazy": ("lazy", "-idletrace,-perf"),
    "always": ("always", "-idletrace,-perf"),
}
BUDGET = {"asleep": 1 / 10, "all-wake": 1 / 3}


# ---- inside the machine ----

def cpu_seconds(pid):
    """CPU time of a process so far: its clock's id is made of its number (clock_getcpuclockid)."""
    return time.clock_gettime(~pid << 3 | 2)


def cost(marks, column):
    """ms a sample, the median: other work on the machine makes single ones dear. marks: (samples so far, seconds so far...)"""
    return statistics.median((b[column] - a[column]) * 1e3 / (b[0] - a[0]) for a, b in zip(marks, marks[1:]) if b[0] > a[0])


def plain_env():
    return {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}


def msr_reads(pid):
    return sum(row.count for key, row in fakecpu.ledger(pid).items() if key[0] == "msr")


def samples_of(pid):
    """Samples our sampler has taken: it asks for CPU 0's interrupts once in each."""
    return next(row.count for key, row in fakecpu.ledger(pid).items() if key[0] == "irq")


def wait_samples(pid, n):
    end = time.monotonic() + 60
    while samples_of(pid) < n:
        if time.monotonic() > end:
            raise RuntimeError("no %d samples in 60 s" % n)
        time.sleep(0.05)
    time.sleep(0.3)  # to the quiet part of the interval


def syscalls_total(path):
    """The calls of strace -c's last line: "100.00 seconds usecs/call calls [errors] total"."""
    with open(path, encoding="ascii", errors="replace") as f:
        for line in f:
            words = line.split()
            if words and words[-1] == "total" and words[0] == "100.00":
                return int(words[3])
    return None


class Daemon:
    def __init__(self, folder, policy, sources):
        self.socket = os.path.join(folder, "s")
        argv = [CSTATED, "--config", os.devnull, "--db", os.path.join(folder, "db"), "--listen", self.socket,
                "--interval", "1s", "--wake-policy", policy, "--sources", sources]
        with open(os.path.join(folder, "log"), "wb") as log:
            self.server = subprocess.Popen(argv, env=plain_env(), stdin=subprocess.DEVNULL, stderr=log)
        end = time.monotonic() + 20
        while True:
            with open("/proc/%d/task/%d/children" % (self.server.pid, self.server.pid), encoding="ascii") as f:
                children = f.read().split()
            if children and any(k[0] == "irq" for k in fakecpu.ledger(int(children[0]))):
                break
            if time.monotonic() > end or self.server.poll() is not None:
                raise RuntimeError("cstated does not run")
            time.sleep(0.05)
        self.sampler = int(children[0])

    def get(self, path):
        out = subprocess.run(["curl", "-sS", "--unix-socket", self.socket, "http://localhost" + path], env=plain_env(),
                             capture_output=True, timeout=60, check=True)
        return out.stdout

    def stop(self):
        self.server.terminate()
        self.server.wait(10)


def bench_cstated(policy, sources):
    with tempfile.TemporaryDirectory() as folder:
        d = Daemon(folder, policy, sources)
        try:
            wait_samples(d.sampler, samples_of(d.sampler) + 3)
            marks = []
            for _ in range(SAMPLES + 1):
                marks.append((samples_of(d.sampler), cpu_seconds(d.sampler), cpu_seconds(d.server.pid), msr_reads(d.sampler)))
                wait_samples(d.sampler, marks[-1][0] + 1)
            out = {"reads": (marks[-1][3] - marks[0][3]) / (marks[-1][0] - marks[0][0]), "cpu_ms": cost(marks, 1), "server_ms": cost(marks, 2)}
            trace = os.path.join(folder, "trace")
            n = samples_of(d.sampler)
            tracer = subprocess.Popen(["strace", "-c", "-f", "-o", trace, "-p", str(d.sampler)], env=plain_env(),
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_samples(d.sampler, n + TRACED)
            n = samples_of(d.sampler) - n
            tracer.send_signal(signal.SIGINT)
            tracer.wait(20)
            calls = syscalls_total(trace)
            out["syscalls"] = calls / n if calls else None
        finally:
            d.stop()
    return out


def bench_turbostat():
    argv = ["turbostat", "-q", "-i", "1", "-n", str(SAMPLES + 2)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)
    marks = []
    for line in child.stdout:
        if "Busy%" in line:
            marks.append((len(marks), cpu_seconds(child.pid), msr_reads(child.pid)))
    child.wait()
    if len(marks) < 3:
        return None
    out = {"cpu_ms": cost(marks[1:], 1), "reads": (marks[-1][2] - marks[1][2]) / (len(marks) - 2), "syscalls": None}
    calls = []
    for samples in (1, 1 + TRACED):
        with tempfile.NamedTemporaryFile() as f:
            subprocess.run(["strace", "-c", "-f", "-o", f.name, "-E", "LD_PRELOAD=" + os.environ.get("LD_PRELOAD", ""),
                            *argv[:4], "-n", str(samples)],
                           env=plain_env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=False)
            calls.append(syscalls_total(f.name))
    if all(calls):
        out["syscalls"] = (calls[1] - calls[0]) / TRACED
    return out


def rss(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        fields = dict(line.split(":", 1) for line in f)
    return int(fields["VmRSS"].split()[0]) * 1024


def bench_memory():
    with tempfile.TemporaryDirectory() as folder:
        d = Daemon(folder, "lazy", "-idletrace,-perf")
        try:
            time.sleep(float(os.environ.get("BENCH_MEMORY_SECONDS", "75")))  # a minute is stored
            for path in ("/api/v1/snapshot", "/api/v1/query?metric=busy,c6,idle_time&scope=cpu&start=-1m", "/metrics?scope=cpu"):
                d.get(path)
            status = json.loads(d.get("/api/v1/status"))
            out = {"sampler": rss(d.sampler), "server": rss(d.server.pid), "missed": status["self"]["missed_ticks"],
                   "sample_us": status["self"]["sample_us"]}
        finally:
            d.stop()
    return out


def inside(cases):
    out = {}
    for case in cases:
        if case == "memory":
            out[case] = bench_memory()
        elif case == "turbostat":
            out[case] = bench_turbostat() if shutil.which("turbostat") else None
        else:
            out[case] = bench_cstated(*CASES[case])
    json.dump(out, sys.stdout)


# ---- outside ----

def on_machine(scenario, cases):
    with tempfile.NamedTemporaryFile("w", prefix="scenario-", encoding="ascii") as f:
        f.write(scenario)
        f.flush()
        done = fakecpu.run(f.name, [sys.executable, os.path.abspath(__file__), "--inside", *cases], "--shim",
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=500)
    if done.returncode == fakecpu.SKIP:
        print(done.stderr.strip())
        sys.exit(fakecpu.SKIP)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        sys.exit(1)
    return json.loads(done.stdout)


def number(value, digits=0):
    return "-" if value is None else "%.*f" % (digits, value)


def report(kind, n_cpus, results):
    print("\n%d CPUs, %s; a sample:" % (n_cpus, kind))
    print("%-12s%12s%12s%12s%14s" % ("", "MSR reads", "syscalls", "CPU ms", "of turbostat"))
    theirs = results["turbostat"] or {}
    for case, r in results.items():
        if not r:
            print("%-12s not here (package linux-cpupower)" % case)
            continue
        share = r["cpu_ms"] / theirs["cpu_ms"] if theirs else None
        print("%-12s%12s%12s%12s%14s" % (case, number(r["reads"], 1), number(r["syscalls"], 1), number(r["cpu_ms"], 2), number(share, 3)))
    if theirs:
        share = results["passive"]["cpu_ms"] / theirs["cpu_ms"]
        print("passive tier: %.3f of turbostat's CPU time, budget %.3f: %s" % (share, BUDGET[kind], "met" if share <= BUDGET[kind] else "MISSED"))


def main():
    sizes = [int(a) for a in sys.argv[1:]] or [64, 256]
    for n_cpus in sizes:
        for kind, scenario in KINDS.items():
            report(kind, n_cpus, on_machine(scenario % {"cores": n_cpus // 4, "last": n_cpus - 1}, [*CASES, "turbostat"]))
            sys.stdout.flush()
    r = on_machine("include skx-512\n", ["memory"])["memory"]
    total = (r["sampler"] + r["server"]) / 2**20
    print("\n512 CPUs, RSS: sampler %.1f MiB, server %.1f MiB, together %.1f MiB, budget 48 MiB: %s" % (
        r["sampler"] / 2**20, r["server"] / 2**20, total, "met" if total <= 48 else "MISSED"))
    print("512 CPUs: %d ticks missed, the last sample took %d us" % (r["missed"], r["sample_us"]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2:])
    else:
        main()
