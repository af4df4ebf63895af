# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs sample-dump on the fake machine and hands back what was read and what it cost."""

import collections
import glob
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "fakecpu", "run")
BUILDS = [os.environ.get("FAKECPU_BUILD")] + sorted(glob.glob(os.path.join(HERE, "..", "..", "build*")))
DUMPS = [os.path.join(b, "tests", "integration", "sample-dump") for b in BUILDS if b]
DUMP = os.environ.get("SAMPLE_DUMP") or next(filter(os.path.exists, DUMPS), "sample-dump")

Value = collections.namedtuple("Value", "value reason scale range")


class Turn:
    """One turn: clocks, costs, values[field, instance][entity], sources[name]."""

    def __init__(self):
        self.mono_ns = self.reads = self.wakeups = self.generation = 0
        self.values = collections.defaultdict(dict)
        self.sources = {}

    def column(self, field, instance=0):
        return self.values.get((field, instance))

    def reasons(self, field, instance=0):
        return {e: v.reason for e, v in self.values[field, instance].items()}


class Ledger:
    """ctl/ledger: reads by client of (cpu, register); opens for writing and writes by anybody."""

    def __init__(self, text):
        self.msr = collections.Counter()
        self.last = {}
        self.write_opens = self.pwrites = None
        for line in text.splitlines():
            w = line.split()
            if w[0] == "msr" and w[4] == "sample-dump":
                key = int(w[1]), int(w[2], 0)
                self.msr[key] += int(w[5])
                self.last[key] = int(w[8])
            elif w[0] in ("write_opens", "pwrites"):
                setattr(self, w[0], int(w[1]))

    def reads(self, register, cpus=None):
        return sum(n for (cpu, reg), n in self.msr.items() if reg == register and (cpus is None or cpu in cpus))


class Result:
    def __init__(self, turns, ledger, expect, stderr):
        self.turns, self.ledger, self.expect, self.stderr = turns, ledger, expect, stderr

    def rate(self, field, entity, span=None, first=1, last=-1):
        """(value[last] - value[first]) over the same of its span field (ns: seconds), scaled."""
        a, b = self.turns[first], self.turns[last]
        x, y = a.column(field)[entity], b.column(field)[entity]
        assert x.reason == y.reason == "-", (field, entity, x, y)
        delta = y.value - x.value
        if y.range == 0 and delta < 0:
            delta += 1 << 32
        if span is None:
            time = (b.mono_ns - a.mono_ns) / 1e9
        else:
            time = b.column(span)[entity].value - a.column(span)[entity].value
            if span.endswith("_ns"):
                time /= 1e9
        return delta * y.scale / time


def parse_turns(text):
    turns = collections.defaultdict(Turn)
    for line in text.splitlines():
        w = line.split("\t")
        t = turns[int(w[1])]
        if w[0] == "tick":
            t.mono_ns, t.reads, t.wakeups, t.generation = map(int, w[2:6])
        elif w[0] == "value":
            t.values[w[2], int(w[3])][w[4]] = Value(int(w[5]), w[6], float(w[7]), int(w[8]))
        elif w[0] == "source":
            t.sources[w[2]] = dict(zip(("state", "errno", "counters", "hint", "detail"), w[3:]))
    return [turns[i] for i in sorted(turns)]


def parse_expect(text):
    expect = {}
    for line in text.splitlines():
        metric, scope, entity, value = line.split("\t")
        expect[metric, scope, entity] = float(value)
    return expect


def sample(scenario, turns=4, interval_ms=500, arguments=("-s", "-idletrace,-perf"), before="", during="",
           limit="", prefix=""):
    """scenario: a name, or the text of one. before/during: statements for ctl/set, the latter while it samples, with
    "wait SECONDS" and "! shell command" between them. BPF and perf see the real kernel, so they stay out. limit: a shell command before;
    prefix: words that the command is run by."""
    with tempfile.TemporaryDirectory() as d:
        if "\n" in scenario:
            path = os.path.join(d, "scenario")
            with open(path, "w", encoding="ascii") as f:
                f.write(scenario)
            scenario = path
        script = ""
        for line in before.splitlines():
            script += 'echo "%s" >"$FAKECPU_CTL/set" || exit 1\n' % line
        script += limit + "\n"
        script += '%s "$1" -n %d -i %d %s >"$2/out" 2>"$2/err" &\n' % (prefix, turns, interval_ms, " ".join(arguments))
        for line in during.splitlines():
            if line.startswith("wait "):
                script += "sleep %s\n" % line.split()[1]
            elif line.startswith("! "):
                script += line[2:] + "\n"
            else:
                script += 'echo "%s" >"$FAKECPU_CTL/set" || exit 1\n' % line
        script += 'wait $! || exit 1\ncat "$FAKECPU_CTL/ledger" >"$2/ledger"; cat "$FAKECPU_CTL/expect" >"$2/expect"\n'
        p = subprocess.run([RUN, scenario, "--", "sh", "-c", script, "sh", DUMP, d], timeout=120,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, encoding="utf-8")
        if p.returncode == 77:
            raise unittest.SkipTest(p.stderr.strip())

        def read(name):
            try:
                with open(os.path.join(d, name), encoding="utf-8") as f:
                    return f.read()
            except FileNotFoundError:
                return ""

        if p.returncode != 0:
            raise AssertionError("exit %d: %s%s" % (p.returncode, p.stderr, read("err")))
        return Result(parse_turns(read("out")), Ledger(read("ledger")), parse_expect(read("expect")), read("err"))


def main():
    """unittest.main with meson's exit status for a run in which every test was skipped."""
    p = unittest.main(exit=False, verbosity=2)
    if p.result.wasSuccessful() and p.result.testsRun and len(p.result.skipped) == p.result.testsRun:
        print("SKIP:", p.result.skipped[0][1])
        sys.exit(77)
    sys.exit(not p.result.wasSuccessful())
